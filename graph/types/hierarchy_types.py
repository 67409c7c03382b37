"""The GraphQL types of one hierarchy, made of its classes: level enum, interface, levels, edge and connection."""

import inspect
from asyncio import Future
from collections.abc import Awaitable
from enum import Enum
from typing import Any, cast

import strawberry
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.hierarchies.node import Node, description
from graph.types import node_fields
from graph.types.connection_types import ConnectionTypes, list_of, set_fields
from graph.types.field import (
    REQUIRED,
    argument,
    class_of,
    field,
)
from graph.types.history_fields import history_fields
from graph.types.revision_types import RevisionTypes
from graph.types.scalars import Path
from resolvers.planner import list_request
from resolvers.planning.page import Page
from store.model.records import Record


@strawberry.interface(name="Node", description="Anything that has an id, as Relay asks for.")
class NodeInterface:
    id = field(node_fields.RecordField("id"), strawberry.ID, "The node's id, which stays when it is renamed or moved.")


class HierarchyTypes:
    """All types of one hierarchy; `concrete` has those of its levels by the level's name, `type_names` their names."""

    def __init__(self, cls: type[Node]) -> None:
        self.cls = cls
        self.name = cls.name
        self.title = cls.prefix + cls.title
        self.type_names = {(self.name, level): cls.prefix + one.title for level, one in cls.levels.items()}
        self.level = self._level_enum()
        # Types refer to each other, so the classes are there before their fields.
        self.interface = class_of(self.title, {}, NodeInterface)
        pages = ConnectionTypes(self.title)
        self.connection = pages.connection
        self.revisions = RevisionTypes(cls, self.title, self.level, _own)
        self._publish_interface()
        pages.publish(self.interface, f"A page of a list of nodes of the hierarchy {self.name}.")
        self.concrete = {name: self._publish_level(level) for name, level in cls.levels.items()}

    def type_name(self, record: Record, *_: Any) -> str:
        return self.cls.prefix + node_fields.level_of(record, self.cls.levels).title

    def list_arguments(self, *more: str) -> list[inspect.Parameter]:
        """The arguments that every list has, and of the others those that are named."""
        page = [
            argument("first", int | None, "At most so many, from the list's beginning; all where it is left out."),
            argument("after", str | None, "Only what follows this cursor of the same list."),
            argument("last", int | None, "At most so many, from the list's end."),
            argument("before", str | None, "Only what comes before this cursor of the same list."),
            argument("level", cast(Any, self.level) | None, "Only nodes of this level."),
            argument("reverse", bool, "The list from its end to its beginning.", default=False),
        ]
        others = {
            "from": argument("from", str | None, "Only below keys from this one on, in key order."),
            "to": argument("to", str | None, "Only below keys that come before this one, in key order."),
            "maxDepth": argument("maxDepth", int | None, "At most so many levels below the node."),
        }
        return page + [others[name] for name in more]

    # -- making them ---------------------------------------------------------------------------------------------------

    def _level_enum(self) -> type[Enum]:
        members = {
            name: strawberry.enum_value(name, description=description(cls)) for name, cls in self.cls.levels.items()
        }
        make: Any = Enum  # mypy follows only enums that are written out
        plain = make(f"{self.title}Level", members)
        return cast(type[Enum], strawberry.enum(plain, description=f"The levels of the hierarchy {self.name}."))

    def _publish_interface(self) -> None:
        set_fields(self.interface, self._node_fields() | self._relation_fields() | self._past() | _own(self.cls))
        self.interface.resolve_type = self.type_name  # type: ignore[attr-defined]
        strawberry.interface(self.interface, name=self.title, description=description(self.cls))

    def _publish_level(self, cls: type[Node]) -> type:
        shared = self.cls.attributes
        own = {name: one for name, one in _own(cls).items() if name not in shared}
        made = class_of(self.cls.prefix + cls.title, own, self.interface)
        made.is_type_of = lambda record, info: record.level == cls.level  # type: ignore[attr-defined]
        return strawberry.type(made, name=self.cls.prefix + cls.title, description=description(cls))

    def _node_fields(self) -> dict[str, StrawberryField]:
        """What every node tells without a read beyond its own."""
        level = cast(Any, self.level)
        one_level = argument("level", level | None, "Only nodes of this level.")
        return {
            "path": field(node_fields.path, Path, "Where the node lies now."),
            "key": field(node_fields.key, str, "The last segment of its path, which no sibling shares."),
            "name": field(node_fields.RecordField("name"), str, "What it is called."),
            "level": field(node_fields.RecordField("level"), level, "Which level it is of."),
            "depth": field(node_fields.RecordField("depth"), int, "How far it is below its root; a root has 0."),
            "child_count": field(node_fields.Count("kids"), int, "How many children it has.", one_level),
            "descendant_count": field(node_fields.Count("below"), int, "How many nodes lie below it.", one_level),
            "revision": field(node_fields.RecordField("revision"), int, "How often its content was written."),
            "updated_at": field(
                node_fields.RecordField("updated_at"), DateTime, "When its content was last written, in UTC."
            ),
            "changed_at": field(
                node_fields.RecordField("updated_at"), DateTime, "When this revision was written, in UTC."
            ),
            "changed_by": field(
                node_fields.RecordField("changed_by"), str | None, "Who wrote this revision, where that is known."
            ),
            "is_descendant_of": field(
                node_fields.is_descendant_of,
                bool,
                "Whether it lies below this path.",
                argument("path", Path, "The path.", default=REQUIRED),
            ),
            "path_of": field(
                node_fields.path_of,
                Path | None,
                "The path of its ancestor of this level, or its own; null where it has none.",
                argument("level", level, "The level.", default=REQUIRED),
            ),
        }

    def _past(self) -> dict[str, StrawberryField]:
        return history_fields(self.revisions.interface, self.revisions.connection)

    def _relation_fields(self) -> dict[str, StrawberryField]:
        """What leads to other nodes. All are nullable, so that one failed read takes nothing else with it."""
        node, listing = cast(Any, self.interface), cast(Any, self.connection) | None
        return {
            "parent": field(_one_above, node | None, "The node that it lies under; null for a root."),
            "root": field(_one_above, node | None, "The root of its tree; of a root itself."),
            "ancestors": field(_above, list_of(node) | None, "The nodes that it lies under, the root first."),
            "children": field(
                _list,
                listing,
                "The nodes right under it, by level and then in their order.",
                *self.list_arguments("from", "to"),
            ),
            "descendants": field(
                _list, listing, "All nodes below it, in path order.", *self.list_arguments("maxDepth", "from", "to")
            ),
            "siblings": field(_list, listing, "The other nodes under its parent.", *self.list_arguments()),
        }


# -- how they are answered ---------------------------------------------------------------------------------------------


# No coroutines: what is loaded is known as soon as a field is reached, so that one batch has all of a response level.


def _list(record: Record, info: Any, **_: Any) -> "Future[Page]":
    context, raw = info.context, info._raw_info
    return cast("Future[Page]", context.loaders.page.load(list_request(record, context.asked(raw).relation(raw))))


def _above(record: Record, info: Any) -> "Future[list[Record]]":
    context, raw = info.context, info._raw_info
    return cast("Future[list[Record]]", context.loaders.ancestors.load((record, context.asked(raw).relation(raw))))


def _one_above(record: Record, info: Any) -> Awaitable[Record | None]:
    return _first(_above(record, info))


async def _first(found: "Future[list[Record]]") -> Record | None:
    return next(iter(await found), None)


def _own(cls: type[Node]) -> dict[str, StrawberryField]:
    """The own attributes of a level, each checked when it is shown."""
    return {
        name: field(node_fields.AttributeField(attribute), kind, attribute.description)
        for name, (kind, attribute) in cls.attributes.items()
    }
