"""The schema: the root fields of every hierarchy, and Relay's `node` and `nodes`."""

from collections.abc import Sequence
from typing import Any

import strawberry
from strawberry.schema.config import StrawberryConfig
from strawberry.types.field import StrawberryField

from graph.field import REQUIRED, argument, class_of, field
from graph.node import Node
from graph.scalars import SCALARS, Path
from graph.selection import Types
from graph.types import HierarchyTypes, NodeInterface
from resolvers.lists import Page, roots
from resolvers.nodes import Lookup
from store.errors import BadInput, WrongLevel
from store.keys import format_path, parse_path
from store.records import MAX_ID_CHARACTERS, Record


def build_schema(hierarchies: Sequence[type[Node]]) -> tuple[strawberry.Schema, Types]:
    """The schema of these hierarchies, and the names of their levels' types."""
    published = [HierarchyTypes(cls) for cls in hierarchies]
    fields = _node_fields([types.name for types in published])
    for types in published:
        fields |= _root_fields(types)
    query = strawberry.type(class_of("Query", fields), description="Where every query begins.")
    schema = strawberry.Schema(
        query=query,
        types=[concrete for types in published for concrete in types.concrete.values()],
        config=StrawberryConfig(scalar_map=SCALARS),
    )
    return schema, {key: name for types in published for key, name in types.type_names.items()}


def _node_fields(known: Sequence[str]) -> dict[str, StrawberryField]:
    """Relay's `node` and `nodes`, over all hierarchies."""

    async def node(root: Any, info: Any, id_: str) -> Record | None:
        return (await _load(info, [_by_id(known, id_)]))[0]

    async def nodes(root: Any, info: Any, ids_: list[str]) -> list[Record | None]:
        return await _load(info, [_by_id(known, one) for one in ids_])

    one = argument("id", strawberry.ID, "The node's id.", default=REQUIRED)
    many = argument("ids", list[strawberry.ID], "The nodes' ids.", default=REQUIRED)
    any_node: Any = NodeInterface | None
    return {
        "node": field(node, any_node, "The node of any hierarchy with this id; null where there is none.", one),
        "nodes": field(
            nodes,
            list[NodeInterface | None] | None,
            "The nodes with these ids, in their order, null where there is none.",
            many,
        ),
    }


def _root_fields(types: HierarchyTypes) -> dict[str, StrawberryField]:
    """A hierarchy's own: a node by path or id, the roots, and each level by path or id."""
    cls = types.cls
    target = [
        argument("path", Path | None, "Where the node lies; either this or `id` is given."),
        argument("id", strawberry.ID | None, "The node's id; either this or `path` is given."),
    ]
    fields = {
        _field_name(types.title): field(
            _finder(types, None),
            types.interface | None,
            "The node at this path or with this id, of any level.",
            *target,
        ),
        _field_name(cls.prefix + cls.many[:1].upper() + cls.many[1:] if cls.prefix else cls.many): field(
            _lister(types), types.connection | None, f"The roots of the hierarchy {cls.name}.", *types.list_arguments()
        ),
    }
    for level, concrete in types.concrete.items():
        title = types.type_names[types.name, level]
        fields[_field_name(title)] = field(
            _finder(types, level), concrete | None, f"The {title} at this path or with this id.", *target
        )
    return fields


def _finder(types: HierarchyTypes, level: str | None) -> Any:
    async def find(root: Any, info: Any, path_: str | None = None, id_: str | None = None) -> Record | None:
        if (path_ is None) == (id_ is None):
            raise BadInput("Give either path or id, and not both, to say which node is meant.")
        lookup = _by_id([types.name], id_) if id_ is not None else (types.name, parse_path(path_ or ""))
        found = (await _load(info, [lookup]))[0]
        if found is not None and level not in (None, found.level):
            raise WrongLevel(f"{format_path(found.path)} is of the level {found.level}, not {level}.")
        return found

    return find


def _lister(types: HierarchyTypes) -> Any:
    async def find(root: Any, info: Any, **_: Any) -> Page:
        relation = info.context.asked(info._raw_info).connection(info._raw_info)
        request = info.context.request
        return await roots(request, types.name, relation.window, nodes=relation.nodes, total=relation.total)

    return find


def _by_id(known: Sequence[str], node_id: str) -> Lookup | None:
    """An id as what is looked up, or None where no node of these hierarchies can have it."""
    hierarchy, _, rest = node_id.partition(":")
    return (hierarchy, node_id) if hierarchy in known and 0 < len(rest) <= MAX_ID_CHARACTERS else None


async def _load(info: Any, lookups: Sequence[Lookup | None]) -> list[Record | None]:
    """The nodes that are looked up for a field, None where there are none."""
    selection = info.context.asked(info._raw_info).selection(info._raw_info)
    keys = [(lookup, selection) for lookup in lookups if lookup is not None]
    found = iter(await info.context.loaders.node.load_many(keys))
    return [None if lookup is None else next(found) for lookup in lookups]


def _field_name(title: str) -> str:
    return title[:1].lower() + title[1:]
