"""GraphQL schema: the root fields of every hierarchy, Relay's `node` and `nodes`, and Federation's fields; and what
differs between an older schema and the present one, by what it does to clients.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import strawberry
from graphql import GraphQLError, GraphQLInputObjectType, GraphQLSchema
from graphql import build_schema as schema_of
from graphql.utilities import BreakingChange, DangerousChange, find_schema_changes
from strawberry.schema.config import StrawberryConfig
from strawberry.types.field import StrawberryField

from graph.federation import REPRESENTATION, Representation, entities_field, service_field, subgraph_sdl
from graph.hierarchies.node import Node
from graph.hierarchies.registry import field_of, list_field_of, paths_field_of
from graph.operation.selection import Types, core_schema
from graph.types.fields import SCALARS, Fields, Path, argument, field, object_type, register_one_of, register_resolvers
from graph.types.hierarchies import HierarchyEnums, hierarchies_field
from graph.types.history import move_fields, move_type, past_fields
from graph.types.lookups import ById, ByPaths, Find, RootsField, unique_arguments, worded
from graph.types.mutations import mutation_type
from graph.types.nodes import HierarchyTypes, NodeInterface
from graph.types.search import search_fields
from graph.types.values import output_type
from store.errors import BadInput


def build_schema(
    hierarchies: Sequence[type[Node]], *, expose: frozenset[str] = frozenset()
) -> tuple[strawberry.Schema, Types]:
    """The schema of these hierarchies, and the names of their levels' types.

    `expose` names further parts of the subgraph's schema, as `settings.exposed` returns them.
    """
    published = [HierarchyTypes(cls) for cls in hierarchies]
    names = [types.name for types in published]
    fields = _node_fields(names)
    for types in published:
        fields |= _root_fields(types) | search_fields(types)
    enums = HierarchyEnums(hierarchies)
    past, followed = past_fields(names, enums)
    move = move_type(enums)
    fields |= move_fields(enums, move) | past
    fields["hierarchies"] = hierarchies_field(hierarchies, enums)
    fields |= {
        "_entities": entities_field(published),
        "_service": service_field(lambda: subgraph_sdl(schema, hierarchies, expose)),
    }
    schema = strawberry.Schema(
        query=object_type("Query", "The root type of queries.", fields),
        mutation=mutation_type(published, move),
        subscription=object_type("Subscription", "The root type of subscriptions, sent as events.", followed),
        types=[kind for types in published for kind in types.concrete.values()],
        config=StrawberryConfig(scalar_map=SCALARS | {Representation: REPRESENTATION}),
    )
    core = core_schema(schema)
    register_resolvers(schema, core)
    register_one_of(schema, core)
    for types in published:
        types.inputs.register(core)
    revisions: Any = core.type_map["NodeRevision"]
    titles = {types.name: types.revision for types in published}
    revisions.resolve_type = lambda record, *_: titles[record.hierarchy]
    return schema, {key: name for types in published for key, name in types.type_names.items()}


def _node_fields(hierarchies: Sequence[str]) -> Fields:
    """Relay's `node` and `nodes`, over all hierarchies."""
    one, many = NodeInterface | None, list[NodeInterface | None] | None
    node_id = argument("id", strawberry.ID, 'ID of the node, such as "location:US-NE".')
    node_ids = argument("ids", list[strawberry.ID], 'IDs of the nodes, such as ["location:US-NE"].')
    found = "The node of any hierarchy with this ID; null where there is none."
    found_many = "The nodes with these IDs, in this order; null for each without a node."
    return {
        "node": field(ById(hierarchies), one, found, node_id),
        "nodes": field(ById(hierarchies, many=True), many, found_many, node_ids),
    }


def _root_fields(types: HierarchyTypes) -> Fields:
    """The root fields of one hierarchy: a node of any level, the roots, nodes by paths, and a node of each level."""
    cls = types.cls
    listing = types.nodes.connection | None
    paths = argument("paths", list[Path], 'Paths of the nodes, such as ["US/NE/Omaha"].')
    interface: Any = types.interface
    nodes = list[interface | None] | None
    several = "The nodes with these paths, in this order; null for each without a node."
    everything = f"Roots of the hierarchy {cls.name}; of a level that no root can have, its nodes in all trees."
    fields = {
        field_of(types.title): _find_field(types, None, interface, "The node with this {}, of any level; {}"),
        list_field_of(cls): field(RootsField(types.name), listing, everything, *types.list_arguments()),
        paths_field_of(cls): field(ByPaths(types.name), nodes, several, paths),
    }
    for level, concrete in types.concrete.items():
        title = types.type_names[types.name, level]
        fields[field_of(title)] = _find_field(types, level, concrete, f"The {title} with this {{}}; {{}}")
    return fields


def _find_field(types: HierarchyTypes, level: str | None, returns: Any, text: str) -> StrawberryField:
    """The field that finds a node of a level, or of any, by its path, its ID or a unique value."""
    cls = types.cls if level is None else types.cls.levels[level]
    unique = unique_arguments(cls)
    path, node_id, *others = [f"`{name}`" for name in ("path", "id", *unique)]
    target = [
        argument("path", Path | None, f"Path of the node; give {worded(['this', node_id, *others], 'or')}."),
        argument("id", strawberry.ID | None, f"ID of the node; give {worded(['this', path, *others], 'or')}."),
    ]
    for name, attribute in unique.items():
        hint = output_type(cls.attributes[attribute.name][0])
        target.append(argument(name, hint, f"Its {name}, which is unique."))
    described = text.format(worded(["path", "ID", *unique], "or"), "null where there is none.")
    return field(Find(types.name, level, unique), returns | None, described, *target)


class SchemaChanges(NamedTuple):
    """The changes between two schemas that a client may notice, each a sentence.

    `breaking` ones make operations invalid that were valid; `dangerous` ones may confuse a client that is not prepared
    for them, such as an additional value of an enum.
    """

    breaking: list[str]
    dangerous: list[str]


def schema_changes(old: str, new: str) -> SchemaChanges:
    """The changes from one SDL to another. Raises BadInput, with a sentence about `old`, if it is no schema."""
    before, after = _parsed(old), _parsed(new)
    found = find_schema_changes(before, after)
    breaking = [change.description for change in found if isinstance(change, BreakingChange)]
    dangerous = [change.description for change in found if isinstance(change, DangerousChange)]
    return SchemaChanges([*breaking, *_narrowed(before, after)], dangerous)


def _parsed(sdl: str) -> GraphQLSchema:
    """The schema of an SDL; that of a subgraph, too, whose directives Federation defines."""
    try:
        schema = schema_of(sdl, assume_valid_sdl="@link(" in sdl)
    except (GraphQLError, TypeError) as error:
        reason = error.message if isinstance(error, GraphQLError) else str(error).partition("\n")[0]
        raise BadInput(f"is not a GraphQL schema in SDL: {reason.rstrip('.')}") from None
    if schema.query_type is None:
        raise BadInput("is not a GraphQL schema in SDL: it has no type Query")
    return schema


def _narrowed(before: GraphQLSchema, after: GraphQLSchema) -> list[str]:
    """Inputs that take exactly one of their fields now, and took any number: graphql-core does not compare that."""
    return [
        f"Input {name} has become @oneOf."
        for name, new in after.type_map.items()
        if isinstance(new, GraphQLInputObjectType) and new.is_one_of
        if isinstance(old := before.type_map.get(name), GraphQLInputObjectType) and not old.is_one_of
    ]
