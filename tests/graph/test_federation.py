"""The subgraph's SDL: the composed fields, and the field that gateways read."""

import re

import pytest
from graphql import (
    GraphQLInterfaceType,
    InterfaceTypeDefinitionNode,
    ObjectTypeDefinitionNode,
    is_introspection_type,
    is_object_type,
    is_specified_scalar_type,
    parse,
    print_ast,
)

from graph.federation import ARGUMENTS, SEARCH, subgraph_sdl
from graph.hierarchies.registry import served
from graph.operation.selection import core_schema
from graph.settings import exposed
from tests.classes.shops import Place
from tests.schemas import schema_of

CLASSES = served("graph.hierarchies.locations,graph.hierarchies.categories")
MACHINERY = {"_Any", "_Entity", "_Service"}


@pytest.fixture(scope="module")
def schema():
    return schema_of(*CLASSES)[0]


@pytest.fixture(scope="module")
def subgraph(schema):
    """The definitions of the subgraph by name."""
    return {one.name.value: one for one in parse(subgraph_sdl(schema, CLASSES)).definitions if hasattr(one, "name")}


def directives_of(definition):
    return [print_ast(one) for one in definition.directives or ()]


def test_the_subgraph_links_the_federation_that_composers_know(schema):
    first, *_ = subgraph_sdl(schema, CLASSES).splitlines()
    assert (
        first == 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", '
        'import: ["@key", "@shareable", "@cost", "@listSize"])'
    )


def test_every_level_and_every_hierarchy_s_interface_is_an_entity_by_id_and_by_path(schema, subgraph):
    entities = {name for name, one in subgraph.items() if one.directives and "@key" in directives_of(one)[0]}
    node = core_schema(schema).type_map["TreeNode"]
    nodes = {
        name
        for name, one in core_schema(schema).type_map.items()
        if (is_object_type(one) or isinstance(one, GraphQLInterfaceType)) and node in one.interfaces
    }
    assert entities == nodes
    assert {"Location", "CategoryNode", "City", "PostalCode", "Variant"} < entities
    assert {tuple(directives_of(subgraph[name])) for name in entities} == {
        ('@key(fields: "id")', '@key(fields: "path")')
    }


def test_types_of_every_subgraph_of_clade_are_shareable(subgraph):
    for name in ("PageInfo", "LocalizedText"):
        assert directives_of(subgraph[name]) == ["@shareable", "@cost(weight: 0)"]


HIDDEN = {
    "DeletedNode", "TreeChangeFeed", "TreeChange", "TreeChangeEvent", "SubtreeMove", "SubtreeMoveState",
    "HierarchyInfo", "HierarchyLevel", "HierarchyAttribute", "HierarchyName", "NodeLevel", "LocalizedTextInput",
    "Mutation", "WritePlan", "DeletePolicy", "Subscription", "TreeNode", "UserError", "UserErrorCode",
}  # fmt: skip
OF_MUTATIONS = (
    r"(Create|Update|Move|Delete|Restore)\w+Input|\w+(Attributes|Payload|Destination|Position|Addition|NumberField)|"
    r"(Location|CategoryNode)(By|Edit)"
)
OF_QUERY = {"node", "nodes", "deletedNode", "changes", "move", "moves", "hierarchies", "_service", "_entities"}
PAST = {"history", "atRevision"}


def test_nothing_else_than_the_hidden_differs_from_the_whole_schema(schema, subgraph):
    kinds = core_schema(schema).type_map
    whole = {
        name for name, one in kinds.items() if not is_specified_scalar_type(one) and not is_introspection_type(one)
    }
    hidden = HIDDEN | {name for name in whole if re.fullmatch(OF_MUTATIONS, name) or "Revision" in name}
    assert set(subgraph) == whole - MACHINERY - hidden
    for name, definition in subgraph.items():
        if isinstance(definition, ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode):
            assert {one.name.value for one in definition.fields} == kinds[name].fields.keys() - (
                OF_QUERY if name == "Query" else PAST
            )


@pytest.mark.parametrize(
    ("words", "fields", "types"),
    [
        ("node,moves", {"node", "move", "moves"}, {"SubtreeMove", "SubtreeMoveState"}),
        ("changes, history,nodes", {"changes", "deletedNode", "nodes"},
         {"TreeChangeFeed", "TreeChange", "TreeChangeEvent", "DeletedNode", "NodeRevision", "LocationRevision"}),
        ("mutations", set(), {"Mutation", "WritePlan", "MoveLocationInput", "UserError", "CityAttributes"}),
    ],
)  # fmt: skip
def test_exposed_fields_are_in_the_subgraph_with_the_types_that_they_lead_to(schema, subgraph, words, fields, types):
    shown = {one.name.value: one for one in parse(subgraph_sdl(schema, CLASSES, exposed(words))).definitions[1:]
             if hasattr(one, "name")}  # fmt: skip
    more = {one.name.value for one in shown["Query"].fields} - {one.name.value for one in subgraph["Query"].fields}
    assert more == fields
    assert types <= shown.keys() - subgraph.keys()
    assert bool(types) == bool(shown.keys() - subgraph.keys())
    assert ("atRevision" in print_ast(shown["City"])) == ("history" in words)


# -- demand control ----------------------------------------------------------------------------------------------------


def weight_of(part):
    """The weight of a type, field or argument; None without one."""
    found = [re.fullmatch(r"@cost\(weight: (\d+)\)", text) for text in directives_of(part)]
    return next((int(one[1]) for one in found if one), None)


def test_fields_that_are_read_with_their_node_cost_nothing(subgraph):
    weights = {name: weight_of(one) for name, one in subgraph.items() if isinstance(one, ObjectTypeDefinitionNode)}
    free = {"PageInfo", "LocalizedText", "ListFacet", "ListFacetValue"} | {
        name for name in weights if name.endswith("Edge")
    }
    assert {name: weight for name, weight in weights.items() if weight is not None} == dict.fromkeys(free, 0)
    sdl = subgraph_sdl(schema_of(Place)[0], [Place])
    values = {one.name.value: one for one in parse(sdl).definitions if hasattr(one, "name")}
    assert {name: weight_of(values[name]) for name in ("Address", "Hours", "Money", "Localized", "Shop")} == {
        "Address": 0, "Hours": 0, "Money": 0, "Localized": 0, "Shop": None,
    }  # fmt: skip


def test_fields_of_interfaces_and_their_arguments_have_no_cost_since_composers_refuse_it(subgraph):
    for definition in subgraph.values():
        for field in getattr(definition, "fields", None) or ():
            costs = {one.name.value: weight_of(one) for one in getattr(field, "arguments", None) or ()}
            named = {name: ARGUMENTS[name] for name in costs.keys() & ARGUMENTS.keys()}
            is_object = isinstance(definition, ObjectTypeDefinitionNode)
            assert {name: cost for name, cost in costs.items() if cost is not None} == (named if is_object else {})
            if not is_object:
                assert weight_of(field) is None


def test_searches_have_a_cost_and_every_list_of_nodes_at_the_root_a_size(subgraph):
    fields = {one.name.value: one for one in subgraph["Query"].fields}
    assert {name: weight_of(one) for name, one in fields.items() if weight_of(one) is not None} == {
        "searchLocations": SEARCH, "searchCategories": SEARCH,
    }  # fmt: skip
    sized = {name for name, one in fields.items() if any("@listSize" in text for text in directives_of(one))}
    lists = {name for name in fields if re.search("locations|categories", name, re.IGNORECASE)}
    assert sized == lists
    assert lists == {
        "locations", "categories", "searchLocations", "searchCategories", "locationsByPath", "categoriesByPath",
    }  # fmt: skip


def test_a_directive_that_not_every_composer_knows_is_defined_where_it_is_used(schema):
    assert "directive @oneOf on INPUT_OBJECT" in subgraph_sdl(schema, CLASSES, exposed("mutations"))
