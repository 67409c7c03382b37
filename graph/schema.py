"""GraphQL schema: the root fields of every hierarchy, Relay's `node` and `nodes`, and Federation's fields."""

from collections.abc import Sequence
from typing import Any

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig
from strawberry.types.field import StrawberryField

from graph.federation.entities import REPRESENTATION, Representation, entities_field
from graph.federation.subgraph_sdl import service_field, subgraph_sdl
from graph.hierarchies.names import field_of, list_field_of
from graph.hierarchies.node import Node
from graph.operation.graphql_core import core_schema
from graph.operation.selected_fields import Types
from graph.types.arguments import id_argument
from graph.types.field import REQUIRED, argument, class_of, field, register_resolvers
from graph.types.hierarchy_types import HierarchyTypes, NodeInterface
from graph.types.history_fields import past_fields
from graph.types.move_fields import move_fields
from graph.types.mutations import mutation_type
from graph.types.root_fields import ById, ByIds, Find, RootsField
from graph.types.scalars import SCALARS, Path


def build_schema(
    hierarchies: Sequence[type[Node]], *, expose: frozenset[str] = frozenset()
) -> tuple[strawberry.Schema, Types]:
    """The schema of these hierarchies, and the names of their levels' types.

    `expose` names further parts of the subgraph's schema, as `federation_exposure.exposed` returns them.
    """
    published = [HierarchyTypes(cls) for cls in hierarchies]
    fields = _node_fields([types.name for types in published])
    for types in published:
        fields |= _root_fields(types)
    fields |= move_fields([types.name for types in published])
    fields |= past_fields([types.name for types in published])
    fields |= {"_entities": entities_field(published), "_service": service_field(lambda: subgraph_sdl(schema, expose))}
    query = strawberry.type(class_of("Query", fields), description="The root type of queries.")
    schema = strawberry.Schema(
        query=query,
        mutation=mutation_type(published),
        types=[
            concrete
            for types in published
            for concrete in (*types.concrete.values(), *types.revisions.concrete.values())
        ],
        config=StrawberryConfig(scalar_map=SCALARS | {Representation: REPRESENTATION}),
    )
    core = core_schema(schema)
    register_resolvers(schema, core)
    _resolve_types(core, published)
    return schema, {key: name for types in published for key, name in types.type_names.items()}


def _resolve_types(schema: GraphQLSchema, published: Sequence[HierarchyTypes]) -> None:
    """Resolve types by hierarchy and level. Strawberry goes by level alone, which two hierarchies may share."""
    by_hierarchy = {types.name: types for types in published}
    kinds: dict[str, Any] = schema.type_map
    kinds["Node"].resolve_type = kinds["_Entity"].resolve_type = lambda record, *_: by_hierarchy[
        record.hierarchy
    ].type_name(record)
    kinds["NodeRevision"].resolve_type = lambda record, *_: by_hierarchy[record.hierarchy].revisions.type_name(record)


def _node_fields(hierarchies: Sequence[str]) -> dict[str, StrawberryField]:
    """Relay's `node` and `nodes`, over all hierarchies."""
    node_id = id_argument('ID of the node, such as "location:US-NE".')
    node_ids = argument("ids", list[strawberry.ID], 'IDs of the nodes, such as ["location:US-NE"].', default=REQUIRED)
    found, many = "The node of any hierarchy with this ID; null where there is none.", list[NodeInterface | None] | None
    return {
        "node": field(ById(hierarchies), NodeInterface | None, found, node_id),
        "nodes": field(
            ByIds(hierarchies), many, "The nodes with these IDs, in this order; null for each without a node.", node_ids
        ),
    }


def _root_fields(types: HierarchyTypes) -> dict[str, StrawberryField]:
    """The root fields of one hierarchy: a node by path or ID, the roots, and a node of each level by path or ID."""
    cls = types.cls
    target = [
        argument("path", Path | None, 'Path of the node, such as "US/NE/Omaha"; give either this or `id`.'),
        argument("id", strawberry.ID | None, 'ID of the node, such as "location:US-NE"; give either this or `path`.'),
    ]
    anything = "The node with this path or ID, of any level; null where there is none."
    everything = f"Roots of the hierarchy {cls.name}."
    fields = {
        field_of(types.title): field(Find(types.name, None), types.interface | None, anything, *target),
        list_field_of(cls): field(RootsField(types.name), types.connection | None, everything, *types.list_arguments()),
    }
    for level, concrete in types.concrete.items():
        title = types.type_names[types.name, level]
        text = f"The {title} with this path or ID; null where there is none."
        fields[field_of(title)] = field(Find(types.name, level), concrete | None, text, *target)
    return fields
