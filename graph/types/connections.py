"""Connection types and level types.

A connection is a page of a list with its edges, after Relay's specification of cursor connections. The level types of
a hierarchy are an interface, a type of each level that implements it, and their connection. Types refer to each other,
so their classes are made before their fields.
"""

from collections.abc import Callable
from typing import Any

import strawberry
from graphql import GraphQLResolveInfo

from graph.hierarchies.node import Node
from graph.hierarchies.registry import values_of
from graph.types.fields import (
    AttributeField,
    ComputedField,
    Fields,
    Resolver,
    class_of,
    field,
    level_of,
    object_type,
    set_fields,
)
from graph.types.values import output_type
from resolvers.lists.arguments import Page
from store.model.records import Record

PAGE_INFO: dict[str, Callable[..., Any]] = {
    "hasNextPage": lambda page, info=None: page.has_next,
    "hasPreviousPage": lambda page, info=None: page.has_previous,
    "startCursor": lambda page, info=None: page.cursor(page.records[0]) if page.records else None,
    "endCursor": lambda page, info=None: page.cursor(page.records[-1]) if page.records else None,
}
"""The resolvers of PageInfo, which plans call as well."""

_PAGE_INFO: list[tuple[str, Any, str]] = [
    ("hasNextPage", bool, "Whether there are items after this page."),
    ("hasPreviousPage", bool, "Whether there are items before this page; with `first`, whether `after` was given."),
    ("startCursor", str | None, "Cursor of the first item; null for an empty page."),
    ("endCursor", str | None, "Cursor of the last item, for `after`; null for an empty page."),
]
PageInfo = object_type(
    "PageInfo",
    "The position of a page in its list, after Relay's specification of cursor connections.",
    {name: field(PAGE_INFO[name], kind, text) for name, kind, text in _PAGE_INFO},
)


class ConnectionTypes:
    """The connection and the edge of one type of items."""

    def __init__(self, title: str, item: str = "node", *, cursors: str = "`after` and `before`") -> None:
        """`cursors` are the arguments that take a cursor of the list."""
        self._item, self._cursors = item, cursors
        self._edge: Any = class_of(f"{title}Edge", {})
        self.connection: Any = class_of(f"{title}Connection", {})

    def publish(self, kind: Any, description: str) -> None:
        """Make both types of a list of items of this kind."""
        item = self._item
        edge: Any = self._edge
        cursor = f"Cursor of the {item}, for {self._cursors}."
        edge_fields = {
            "cursor": field(lambda edge, info: edge[0].cursor(edge[1]), str, cursor),
            "node": field(lambda edge, info: edge[1], kind, f"The {item}."),
        }
        fields = {
            "edges": field(_edges, list[edge], f"Edges of the page: its {item}s with their cursors."),
            "nodes": field(lambda page, info: page.records, list[kind], f"The {item}s of the page."),
            "page_info": field(lambda page, info: page, PageInfo, "Position of the page in the list."),
            "total_count": field(lambda page, info: page.total, int | None, f"Number of {item}s in the whole list."),
        }
        set_fields(edge, edge_fields)
        set_fields(self.connection, fields)
        strawberry.type(edge, description=f"A {item} with its cursor.")
        strawberry.type(self.connection, description=description)


def _edges(page: Page, info: GraphQLResolveInfo[Any]) -> list[tuple[Page, Record]]:
    return [(page, record) for record in page.records]


class LevelTypes:
    """`concrete` has the types of the levels by the level's name."""

    concrete: dict[str, type]

    def __init__(self, cls: type[Node], base: type) -> None:
        self._cls = cls
        self.title = self._title(cls)
        self.interface: Any = class_of(self.title, {}, base)
        self._pages = ConnectionTypes(self.title)
        self.connection: Any = self._pages.connection

    def publish(self, fields: Fields, describe: Callable[[type[Node]], str], page: str) -> None:
        """Make the types: the interface has these fields and the hierarchy's attributes, each level further ones.

        `describe` returns the description of the type of a class, `page` is that of the connection.
        """
        set_fields(self.interface, fields | _attribute_fields(self._cls))
        self.interface.resolve_type = self.type_name
        strawberry.interface(self.interface, name=self.title, description=describe(self._cls))
        self._pages.publish(self.interface, page)
        self.concrete = {name: self._publish_level(level, describe(level)) for name, level in self._cls.levels.items()}

    def type_name(self, record: Record, *_: Any) -> str:
        """The name of a record's type. Raises BadData where the hierarchy has no such level."""
        return self._title(level_of(record, self._cls.levels))

    def _title(self, cls: type[Node]) -> str:
        return f"{self._cls.prefix}{cls.title}"

    def _publish_level(self, cls: type[Node], text: str) -> type:
        shared = _attribute_fields(self._cls)
        own = {name: made for name, made in _attribute_fields(cls).items() if name not in shared}
        made = class_of(self._title(cls), own, self.interface)
        made.is_type_of = lambda record, info: record.level == cls.level  # type: ignore[attr-defined]
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
