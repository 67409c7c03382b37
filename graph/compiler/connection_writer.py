"""Connection writer: a page as the JSON of a connection, field by field, from nodes that are written already."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, islice, repeat
from typing import Any

import orjson

from graph.compiler.leaf_codegen import MAX_FRAGMENT_BYTES
from resolvers.planning.page import Page
from store.model.records import Record

MAX_CACHED_FIELDS = 4  # of one page; ordinary clients select fewer

EMPTY = Page([], total=0)
_numbers = count()


class ConnectionField:
    """One field of a connection: its response key, its name, the value of a `__typename` in it, and the response keys
    and names of the fields below it.
    """

    def __init__(self, key: str, name: str, kind: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.name = name
        self.kind = kind
        self.number = next(_numbers)
        """Key of its JSON in the pages that cache it: a page may be cached for longer than its plan."""
        self._start = key_of(key)
        self._fields = fields

    def write(self, page: Page, nodes: Iterator[bytes]) -> bytes:
        """The field of a page with its key. Takes the JSON of the page's nodes from `nodes`."""
        match self.name:
            case "nodes":
                return b"".join((self._start, b"[", b",".join(islice(nodes, len(page.records))), b"]"))
            case "edges":
                edges = [self._edge(page, record, nodes) for record in page.records]
                return b"".join((self._start, b"[", b",".join(edges), b"]"))
            case "pageInfo":
                values = {key: _page_info(page, name, self.kind) for key, name in self._fields}
                return self._start + orjson.dumps(values)
            case "totalCount":
                return self._start + orjson.dumps(page.total)
            case _:
                return self._start + orjson.dumps(self.kind)

    def count(self, pages: int, records: int) -> int:
        """The fields it counts as in the budget for so many pages of so many records, without the fields of nodes."""
        return pages + len(self._fields) * (records if self.name == "edges" else pages)

    def cache(self, page: Page, field: bytes, fields: int) -> None:
        """Cache the field's JSON and the number of its nodes' fields with the page, unless it is too long or many."""
        is_short = len(field) <= MAX_FRAGMENT_BYTES * (len(page.records) + 1)
        if page.records and is_short and len(page.json_fields) < MAX_CACHED_FIELDS:
            page.json_fields[self.number] = field, fields

    def _edge(self, page: Page, record: Record, nodes: Iterator[bytes]) -> bytes:
        values = {"cursor": lambda: orjson.dumps(page.cursor(record)), "node": lambda: next(nodes)}
        typename = orjson.dumps(self.kind)
        fields = [key_of(key) + (values[name]() if name in values else typename) for key, name in self._fields]
        return b"{" + b",".join(fields) + b"}"


def _page_info(page: Page, name: str, kind: str) -> Any:
    match name:
        case "hasNextPage":
            return page.has_next
        case "hasPreviousPage":
            return page.has_previous
        case "startCursor":
            return page.cursor(page.records[0]) if page.records else None
        case "endCursor":
            return page.cursor(page.records[-1]) if page.records else None
        case _:
            return kind


@lru_cache(1_000)
def key_of(key: str) -> bytes:
    """A response key, which is a GraphQL name, as JSON with its colon."""
    return b'"' + key.encode() + b'":'


def objects(columns: Sequence[tuple[bytes, Iterable[bytes]]], size: int) -> list[bytes]:
    """So many JSON objects from their columns: the key of a field, empty where the fields hold it already, and the
    field of each object. Without columns the objects are empty.
    """
    if not columns:
        return [b"{}"] * size
    parts: list[Iterable[bytes]] = []  # fields may be long, and are copied once for each object around them
    before = b"{"
    for key, fields in columns:
        parts += (repeat(before + key), fields)
        before = b","
    return list(map(b"".join, zip(*parts, repeat(b"}"), strict=False)))
