"""How a page is told as a connection: field by field, from nodes that are told already."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, islice, repeat
from typing import Any

import orjson

from graph.compiler.leaf_codegen import KEPT_BYTES
from resolvers.planning.page import Page
from store.model.records import Record

KEPT_FIELDS = 4  # of one page; more are asked for by no ordinary set of clients

EMPTY = Page([], total=0)
_numbers = count()


class Part:
    """One field of a connection: its response key, its name, the type that a `__typename` in it tells, and the response
    keys and names of the fields below it.
    """

    def __init__(self, key: str, name: str, kind: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.name = name
        self.kind = kind
        self.number = next(_numbers)
        """Under which pages keep it told: a page may be kept for longer than its plan."""
        self._start = key_of(key)
        self._fields = fields

    def tell(self, page: Page, told: Iterator[bytes]) -> bytes:
        """The field of a page with its key; `told` are nodes, of which it takes those of the page."""
        match self.name:
            case "nodes":
                return b"".join((self._start, b"[", b",".join(islice(told, len(page.records))), b"]"))
            case "edges":
                edges = [self._edge(page, record, told) for record in page.records]
                return b"".join((self._start, b"[", b",".join(edges), b"]"))
            case "pageInfo":
                values = {key: _page_info(page, name, self.kind) for key, name in self._fields}
                return self._start + orjson.dumps(values)
            case "totalCount":
                return self._start + orjson.dumps(page.total)
            case _:
                return self._start + orjson.dumps(self.kind)

    def count(self, pages: int, records: int) -> int:
        """What it counts as in the budget of fields, on so many pages of so many records, without fields of nodes."""
        return pages + len(self._fields) * (records if self.name == "edges" else pages)

    def keep(self, page: Page, field: bytes, fields: int) -> None:
        """Leave the field with its page, and what the nodes' fields in it count as, under the part's number; unless it
        is uncommonly long or there are many others.
        """
        if page.records and len(field) <= KEPT_BYTES * (len(page.records) + 1) and len(page.json_fields) < KEPT_FIELDS:
            page.json_fields[self.number] = field, fields

    def _edge(self, page: Page, record: Record, told: Iterator[bytes]) -> bytes:
        values = {"cursor": lambda: orjson.dumps(page.cursor(record)), "node": lambda: next(told)}
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
    """So many JSON objects, told column by column: the key of a field, empty where the field has it in it already, and
    the field of each object. All of them may have been skipped.
    """
    if not columns:
        return [b"{}"] * size
    parts: list[Iterable[bytes]] = []  # what is told may be long, and is copied once for each object that it is in
    before = b"{"
    for key, fields in columns:
        parts += (repeat(before + key), fields)
        before = b","
    return list(map(b"".join, zip(*parts, repeat(b"}"), strict=False)))
