"""Connection types: a page of a list with its edges, after Relay's specification of cursor connections."""

from typing import Any

import strawberry
from graphql import GraphQLResolveInfo
from strawberry.types.field import StrawberryField

from graph.types.field import class_of, field
from resolvers.pages import Page
from store.model.records import Record


def _start(page: Page, info: Any) -> str | None:
    return page.cursor(page.records[0]) if page.records else None


def _end(page: Page, info: Any) -> str | None:
    return page.cursor(page.records[-1]) if page.records else None


PageInfo = strawberry.type(
    class_of(
        "PageInfo",
        {
            "has_next_page": field(lambda page, info: page.has_next, bool, "Whether there are items after this page."),
            "has_previous_page": field(
                lambda page, info: page.has_previous,
                bool,
                "Whether there are items before this page; with `first`, whether `after` was given.",
            ),
            "start_cursor": field(_start, str | None, "Cursor of the first item; null for an empty page."),
            "end_cursor": field(_end, str | None, "Cursor of the last item, for `after`; null for an empty page."),
        },
    ),
    description="The position of a page in its list, after Relay's specification of cursor connections.",
)


class ConnectionTypes:
    """The connection and the edge of one type of items. Types refer to each other, so their fields are set later."""

    def __init__(self, title: str, *, item: str = "node") -> None:
        self._item = item
        self.edge = class_of(f"{title}Edge", {})
        self.connection = class_of(f"{title}Connection", {})

    def publish(self, kind: Any, description: str) -> None:
        """Make both types of a list of items of this kind."""
        item = self._item
        edge_fields = {
            "cursor": field(
                lambda edge, info: edge[0].cursor(edge[1]), str, f"Cursor of the {item}, for `after` and `before`."
            ),
            "node": field(lambda edge, info: edge[1], kind, f"The {item}."),
        }
        set_fields(self.edge, edge_fields)
        strawberry.type(self.edge, description=f"A {item} with its cursor.")
        fields = {
            "edges": field(_edges, list_of(self.edge), f"Edges of the page: its {item}s with their cursors."),
            "nodes": field(lambda page, info: page.records, list_of(kind), f"The {item}s of the page."),
            "page_info": field(lambda page, info: page, PageInfo, "Position of the page in the list."),
            "total_count": field(lambda page, info: page.total, int, f"Number of {item}s in the whole list."),
        }
        set_fields(self.connection, fields)
        strawberry.type(self.connection, description=description)


def list_of(kind: Any) -> Any:
    """The annotation of a list of a type that is only known as a value."""
    return list[kind]


def set_fields(cls: type, fields: dict[str, StrawberryField]) -> None:
    """Give fields to a class that was made without."""
    for name, made in fields.items():
        setattr(cls, name, made)


def _edges(page: Page, info: GraphQLResolveInfo[Any]) -> list[tuple[Page, Record]]:
    return [(page, record) for record in page.records]
