"""Connection types: a page of a list with its edges, after Relay's specification of cursor connections."""

from collections.abc import Callable
from typing import Any

import strawberry
from graphql import GraphQLResolveInfo

from graph.types.field import Fields, class_of, field, object_type
from resolvers.lists.arguments import Page
from store.model.records import Record

PAGE_INFO: dict[str, Callable[..., Any]] = {
    "hasNextPage": lambda page, info=None: page.has_next,
    "hasPreviousPage": lambda page, info=None: page.has_previous,
    "startCursor": lambda page, info=None: page.cursor(page.records[0]) if page.records else None,
    "endCursor": lambda page, info=None: page.cursor(page.records[-1]) if page.records else None,
}
"""The resolvers of PageInfo, which plans call as well."""

_CURSOR = str | None
_END = "Cursor of the last item, for `after`; null for an empty page."
_PREVIOUS = "Whether there are items before this page; with `first`, whether `after` was given."

PageInfo = object_type(
    "PageInfo",
    "The position of a page in its list, after Relay's specification of cursor connections.",
    {
        "has_next_page": field(PAGE_INFO["hasNextPage"], bool, "Whether there are items after this page."),
        "has_previous_page": field(PAGE_INFO["hasPreviousPage"], bool, _PREVIOUS),
        "start_cursor": field(PAGE_INFO["startCursor"], _CURSOR, "Cursor of the first item; null for an empty page."),
        "end_cursor": field(PAGE_INFO["endCursor"], _CURSOR, _END),
    },
)


class ConnectionTypes:
    """The connection and the edge of one type of items. Types refer to each other, so their fields are set later."""

    def __init__(self, title: str, item: str) -> None:
        self._item = item
        self.edge: Any = class_of(f"{title}Edge", {})
        self.connection: Any = class_of(f"{title}Connection", {})

    def publish(self, kind: Any, description: str) -> None:
        """Make both types of a list of items of this kind."""
        item = self._item
        edge: Any = self.edge
        cursor = f"Cursor of the {item}, for `after` and `before`."
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


def set_fields(cls: type, fields: Fields) -> None:
    """Give fields to a class that was made without."""
    for name, made in fields.items():
        setattr(cls, name, made)


def _edges(page: Page, info: GraphQLResolveInfo[Any]) -> list[tuple[Page, Record]]:
    return [(page, record) for record in page.records]
