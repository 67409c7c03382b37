"""What of the schema may be null: errors below a field of Query make null what `graph/execution/faults.py` says."""

from collections.abc import Iterator
from typing import Any

import pytest
from graphql import (
    GraphQLField,
    GraphQLSchema,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_interface_type,
    is_introspection_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
)

from graph.hierarchies.locations import Location
from graph.hierarchies.registry import served
from graph.operation.selection import core_schema
from graph.types.fields import AttributeField, ComputedField, resolver_of
from graph.types.lookups import LookupField, RootsField
from graph.types.reading import ReadingField
from graph.types.search import SearchField
from tests.classes.shops import Place
from tests.schemas import shared_schema

EXAMPLES = served("graph.hierarchies.locations,graph.hierarchies.categories,examples.asset,examples.drive")
FAILING = (ReadingField, LookupField, RootsField, SearchField, AttributeField, ComputedField)
"""The resolvers of what reads, of attributes and of computed fields; revisions have others for these two."""
FEDERATION = {"Query._entities", "Query._service"}
"""Not null as its specification says; each entity may be."""
OF_A_RESULT = {"edges", "nodes", "node", "pageInfo", "facets"}
"""The parts of connections, edges and what a search found."""
OF_A_VALUE = {
    "names", "userErrors", "Localized.texts", "TreeChangeFeed.changes", "Query.hierarchies", "HierarchyInfo.levels",
    "HierarchyLevel.attributes", "ListFacet.values",
}  # fmt: skip
"""What is made of one item, of the log or of classes, and leads to no node."""


@pytest.fixture(params=[EXAMPLES, [Place, Location]], ids=["examples", "every option"])
def schema(request: pytest.FixtureRequest) -> GraphQLSchema:
    return core_schema(shared_schema(request.param)[0])


def fields(schema: GraphQLSchema) -> Iterator[tuple[Any, str, GraphQLField]]:
    """The fields of all types of responses, with their types and names."""
    for kind in schema.type_map.values():
        if (is_object_type(kind) or is_interface_type(kind)) and not is_introspection_type(kind):
            yield from ((kind, name, field) for name, field in kind.fields.items())


def test_what_reads_and_what_runs_code_of_classes_may_be_null(schema):
    content = {*schema.type_map["NodeRevision"].fields, "level"}
    failing = {
        f"{kind}.{name}": field.type
        for kind, name, field in fields(schema)
        if isinstance(resolver_of(field), FAILING) or (is_revision(schema, kind) and name not in content)
    }
    assert {name for name, kind in failing.items() if is_non_null_type(kind)} == {"Query._entities"}
    assert len(failing) > 50


def is_revision(schema: GraphQLSchema, kind: Any) -> bool:
    return schema.type_map["NodeRevision"] in kind.interfaces


def test_what_is_never_null_is_a_part_of_what_may_be(schema):
    """So a leaf that fails makes null the field that led to its object, or an item of a list."""
    never_null = {
        f"{kind}.{name}"
        for kind, name, field in fields(schema)
        if is_non_null_type(field.type) and is_composite_type(get_named_type(field.type))
        and not (name in OF_A_RESULT and schema.type_map["Node"] not in kind.interfaces)
        and kind not in (schema.mutation_type, schema.subscription_type)
    }  # fmt: skip
    parts = {name for name in never_null if {name, name.partition(".")[2]} & OF_A_VALUE}
    assert never_null - parts == FEDERATION


def test_only_lists_that_query_looks_up_have_items_that_may_be_null(schema):
    """Below a node an item that fails makes null the whole field, for which no list may have null items."""
    found = {
        f"{kind}.{name}": resolver_of(field)
        for kind, name, field in fields(schema)
        if is_list_type(items := get_nullable_type(field.type)) and not is_non_null_type(items.of_type)
    }
    assert {name for name in found if not name.startswith("Query.")} == set()
    assert all(isinstance(resolve, LookupField) for resolve in found.values())
    assert {"Query.nodes", "Query._entities"} <= found.keys()
