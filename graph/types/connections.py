"""Connection types and level types.

A connection is a page of a list with its edges, after Relay's specification of cursor connections. Plans write it;
resolvers take the page, and those of an edge its record as well. The level types of
a hierarchy are an interface, a type of each level that implements it, and their connection. Types refer to each other,
so their classes are made before their fields.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import strawberry

from graph.hierarchies.node import Node
from graph.hierarchies.registry import values_of
from graph.types.fields import (
    AttributeField,
    ComputedField,
    Fields,
    Resolver,
    class_of,
    field,
    object_type,
    set_fields,
)
from graph.types.values import output_type
from store.model.records import Record

_PAGE_INFO: list[tuple[str, Any, Any, str]] = [
    ("hasNextPage", attrgetter("has_next"), bool, "Whether there are items after this page."),
    ("hasPreviousPage", attrgetter("has_previous"), bool,
     "Whether there are items before this page; with `first`, whether `after` was given."),
    ("startCursor", lambda page: page.cursor(page.records[0]) if page.records else None, str | None,
     "Cursor of the first item; null for an empty page."),
    ("endCursor", lambda page: page.cursor(page.records[-1]) if page.records else None, str | None,
     "Cursor of the last item, for `after`; null for an empty page."),
]  # fmt: skip
PageInfo = object_type(
    "PageInfo",
    "The position of a page in its list, after Relay's specification of cursor connections.",
    {name: field(resolve, kind, text) for name, resolve, kind, text in _PAGE_INFO},
)


_KILOMETERS = "Distance from the point of the `near` that stands directly in `where`; null without one."


class ConnectionTypes:
    """The connection and the edge of one type of items."""

    def __init__(self, title: str, item: str = "node", *, cursors: str = "`after` and `before`") -> None:
        """`cursors` are the arguments that take a cursor of the list."""
        self._item, self._cursors = item, cursors
        self._edge: Any = class_of(f"{title}Edge", {})
        self.connection: Any = class_of(f"{title}Connection", {})

    def publish(self, kind: Any, description: str, more: Fields | None = None, of_edges: Fields | None = None) -> None:
        """Make both types of a list of items of this kind; the connection has `more` fields, and its edges others."""
        item = self._item
        edge: Any = self._edge
        cursor = f"Cursor of the {item}, for {self._cursors}."
        edge_fields = {
            "cursor": field(lambda page, record, *_: page.cursor(record), str, cursor),
            "node": field(None, kind, f"The {item}."),
        }
        fields = {
            "edges": field(None, list[edge], f"Edges of the page: its {item}s with their cursors."),
            "nodes": field(None, list[kind], f"The {item}s of the page."),
            "page_info": field(None, PageInfo, "Position of the page in the list."),
            "total_count": field(attrgetter("total"), int | None, f"Number of {item}s in the whole list."),
        }
        set_fields(edge, edge_fields | (of_edges or {}))
        set_fields(self.connection, fields | (more or {}))
        strawberry.type(edge, description=f"A {item} with its cursor.")
        strawberry.type(self.connection, description=description)


def _kilometers(page: Any, record: Record, *_: object) -> float | None:
    return None if page.near is None else page.near.distance(record)


class LevelTypes:
    """`concrete` has the types of the levels by the level's name."""

    concrete: dict[str, type]

    def __init__(self, cls: type[Node], base: type) -> None:
        self._cls = cls
        self.title = self._title(cls)
        self.interface: Any = class_of(self.title, {}, base)
        self._pages = ConnectionTypes(self.title)
        self.connection: Any = self._pages.connection

    def publish(self, fields: Fields, describe: Callable[[type[Node]], str], page: str, of_lists: Fields) -> None:
        """Make the types: the interface has these fields and the hierarchy's attributes, each level further ones.

        `describe` returns the description of the type of a class, `page` is that of the connection, which has the
        fields `of_lists` as well.
        """
        set_fields(self.interface, fields | _attribute_fields(self._cls))
        strawberry.interface(self.interface, name=self.title, description=describe(self._cls))
        distance = {"kilometers": field(_kilometers, float | None, _KILOMETERS)} if self._cls.location else {}
        self._pages.publish(self.interface, page, of_lists, distance)
        self.concrete = {name: self._publish_level(level, describe(level)) for name, level in self._cls.levels.items()}

    def _title(self, cls: type[Node]) -> str:
        return f"{self._cls.prefix}{cls.title}"

    def _publish_level(self, cls: type[Node], text: str) -> type:
        shared = _attribute_fields(self._cls)
        own = {name: made for name, made in _attribute_fields(cls).items() if name not in shared}
        made = class_of(self._title(cls), own, self.interface)
        return strawberry.type(made, name=self._title(cls), description=text)


def _attribute_fields(cls: type[Node]) -> Fields:
    """The attributes of a level, each checked when it is read, and its computed fields."""
    return {
        name: field(resolver_for(cls, name), output_type(hint), attribute.description, deprecated=attribute.deprecated)
        for name, (hint, attribute) in values_of(cls).items()
    }


def resolver_for(cls: type[Node], name: str) -> Resolver:
    """The resolver of an attribute or a computed field of a level."""
    if name in cls.attributes:
        return AttributeField(cls.attributes[name][1])
    return ComputedField(cls.computed[name], {one: attribute for one, (_, attribute) in cls.attributes.items()})
