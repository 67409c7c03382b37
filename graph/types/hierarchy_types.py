"""Hierarchy types: the GraphQL types of one hierarchy, made of its classes. They are the level enum, the interface, a
type per level, the edge, the connection and the revisions.
"""

import inspect
from asyncio import Future
from collections.abc import Awaitable
from enum import Enum
from typing import Any, cast

import strawberry
from graphql import GraphQLResolveInfo
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.hierarchies.node import Node, description
from graph.types.arguments import AFTER, FIRST, path_argument
from graph.types.connection_types import ConnectionTypes, list_of, set_fields
from graph.types.field import REQUIRED, argument, class_of, field
from graph.types.history_fields import history_fields
from graph.types.node_fields import AttributeField, Count, RecordField, is_descendant_of, key, level_of, path, path_of
from graph.types.revision_types import RevisionTypes
from graph.types.scalars import Path
from resolvers.pages import Page
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import Relation
from store.model.records import Record

Info = GraphQLResolveInfo[Any]

_LAST = argument("last", int | None, "Maximum number of items, from the end of the list.")
_BEFORE = argument("before", str | None, "Only items before this cursor, such as the `startCursor` of the page after.")
_REVERSE = argument("reverse", bool, "Whether to reverse the order of the list.", default=False)
_FROM = argument("from", str | None, 'Lowest key right below the node, inclusive, such as "M". Orders the list by key.')
_TO = argument("to", str | None, 'Highest key right below the node, exclusive, such as "N". Orders the list by key.')
_MAX_DEPTH = argument("maxDepth", int | None, "Maximum number of levels below the node; 1 is its children alone.")


@strawberry.interface(name="Node", description="An object with a globally unique ID, after Relay's specification.")
class NodeInterface:
    id = field(RecordField("id"), strawberry.ID, "Globally unique ID; unchanged when the node is renamed or moved.")


class HierarchyTypes:
    """All types of one hierarchy.

    `concrete` has the types of the levels by the level's name, `type_names` their names by (hierarchy, level).
    """

    def __init__(self, cls: type[Node]) -> None:
        self.cls = cls
        self.name = cls.name
        self.title = cls.prefix + cls.title
        self.type_names = {(self.name, level): cls.prefix + one.title for level, one in cls.levels.items()}
        self.level = self._level_enum()
        # Types refer to each other, so the classes are made before their fields.
        self.interface = class_of(self.title, {}, NodeInterface)
        pages = ConnectionTypes(self.title)
        self.connection = pages.connection
        self.revisions = RevisionTypes(cls, self.title, self.level, _attribute_fields)
        self._publish_interface()
        pages.publish(self.interface, f"A page of a list of nodes of the hierarchy {self.name}.")
        self.concrete = {name: self._publish_level(level) for name, level in cls.levels.items()}

    def type_name(self, record: Record, *_: Any) -> str:
        return self.cls.prefix + level_of(record, self.cls.levels).title

    def list_arguments(self, *more: inspect.Parameter) -> list[inspect.Parameter]:
        """The arguments of every list, and further ones."""
        return [FIRST, AFTER, _LAST, _BEFORE, self._level_argument(), _REVERSE, *more]

    # -- construction --------------------------------------------------------------------------------------------------

    def _level_argument(self) -> inspect.Parameter:
        return argument("level", cast(Any, self.level) | None, "Only nodes of this level.")

    def _level_enum(self) -> type[Enum]:
        members = {
            name: strawberry.enum_value(name, description=description(cls)) for name, cls in self.cls.levels.items()
        }
        make: Any = Enum  # mypy follows only enums that are written out
        plain = make(f"{self.title}Level", members)
        return cast(type[Enum], strawberry.enum(plain, description=f"The levels of the hierarchy {self.name}."))

    def _publish_interface(self) -> None:
        past = history_fields(self.revisions.interface, self.revisions.connection)
        fields = self._node_fields() | self._relation_fields() | past | _attribute_fields(self.cls)
        set_fields(self.interface, fields)
        self.interface.resolve_type = self.type_name  # type: ignore[attr-defined]
        strawberry.interface(self.interface, name=self.title, description=description(self.cls))

    def _publish_level(self, cls: type[Node]) -> type:
        shared = self.cls.attributes
        own = {name: made for name, made in _attribute_fields(cls).items() if name not in shared}
        made = class_of(self.cls.prefix + cls.title, own, self.interface)
        made.is_type_of = lambda record, info: record.level == cls.level  # type: ignore[attr-defined]
        return strawberry.type(made, name=self.cls.prefix + cls.title, description=description(cls))

    def _node_fields(self) -> dict[str, StrawberryField]:
        """The fields that take no read beyond the node's own."""
        level, of_level = cast(Any, self.level), self._level_argument()
        return {
            "path": field(path, Path, "Current path: the keys from the root down to the node."),
            "key": field(key, str, "Last segment of the path; unique among siblings."),
            "name": field(RecordField("name"), str, "Display name."),
            "level": field(RecordField("level"), level, "Level of the node in its hierarchy."),
            "depth": field(RecordField("depth"), int, "Number of ancestors; 0 for a root."),
            "child_count": field(Count("kids"), int, "Number of children.", of_level),
            "descendant_count": field(Count("below"), int, "Number of descendants.", of_level),
            "revision": field(RecordField("revision"), int, "Number of the revision; each write adds 1."),
            "updated_at": field(RecordField("updated_at"), DateTime, "Time of the last write of the content, in UTC."),
            "changed_at": field(RecordField("updated_at"), DateTime, "Time of the write of this revision, in UTC."),
            "changed_by": field(
                RecordField("changed_by"), str | None, "Caller that wrote this revision; null where unknown."
            ),
            "is_descendant_of": field(
                is_descendant_of,
                bool,
                "Whether the node is a descendant of the node at this path.",
                path_argument('Path of the other node, such as "US/NE".'),
            ),
            "path_of": field(
                path_of,
                Path | None,
                "Path of the ancestor of this level, or of the node itself; null where it has none.",
                argument("level", level, "Level of the ancestor.", default=REQUIRED),
            ),
        }

    def _relation_fields(self) -> dict[str, StrawberryField]:
        """The fields that lead to other nodes. All are nullable, so that a failed read affects one field alone."""
        node, listing = cast(Any, self.interface), cast(Any, self.connection) | None
        below = self.list_arguments(_MAX_DEPTH, _FROM, _TO)
        return {
            "parent": field(_first_above, node | None, "Parent; null for a root."),
            "root": field(_first_above, node | None, "Root of the node's tree; a root is its own."),
            "ancestors": field(_above, list_of(node) | None, "Ancestors, from the root down to the parent."),
            "children": field(
                _list,
                listing,
                "Children, ordered by level and sibling order.",
                *self.list_arguments(_FROM, _TO),
            ),
            "descendants": field(_list, listing, "Descendants, ordered by path.", *below),
            "siblings": field(_list, listing, "Other nodes with the same parent.", *self.list_arguments()),
        }


# -- resolvers ---------------------------------------------------------------------------------------------------------


# No coroutines: a load is registered as soon as its field is reached, so that one batch has all of a response level.


def _relation(info: Info) -> Relation:
    return cast(Relation, info.context.look_ahead(info).relation_of(info))


def _list(record: Record, info: Info, **_: Any) -> "Future[Page]":
    return cast("Future[Page]", info.context.loaders.list.load(ListRequest(record, _relation(info))))


def _above(record: Record, info: Info) -> "Future[list[Record]]":
    return cast("Future[list[Record]]", info.context.loaders.above.load((record, _relation(info))))


def _first_above(record: Record, info: Info) -> Awaitable[Record | None]:
    return _first(_above(record, info))


async def _first(found: "Future[list[Record]]") -> Record | None:
    return next(iter(await found), None)


def _attribute_fields(cls: type[Node]) -> dict[str, StrawberryField]:
    """The attributes of a level, each checked when it is read."""
    return {
        name: field(AttributeField(attribute), kind, attribute.description)
        for name, (kind, attribute) in cls.attributes.items()
    }
