"""Records that requests share, for tests: what is cached must not change."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from store.dynamodb.codec import Answer
from store.dynamodb.node_codec import NodeParser
from store.engine.record_cache import RecordCache, Row
from store.model.records import Record

MAX_WATCHED = 2_000  # records: more than the cache of a test holds


class SharedRecords:
    """The records to be cached that were read last, with what they were when they were read."""

    def __init__(self) -> None:
        self._records: OrderedDict[int, tuple[bytes, Record]] = OrderedDict()

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.fragments is None:  # it is not to be cached
                continue
            if id(record) not in self._records:
                self._records[id(record)] = msgspec.msgpack.encode(record), record
            self._records.move_to_end(id(record))
            if len(self._records) > MAX_WATCHED:
                self._records.popitem(last=False)

    def changed(self) -> list[Record]:
        """Those that are not what they were: a shared object was changed."""
        return [record for content, record in self._records.values() if msgspec.msgpack.encode(record) != content]


@contextmanager
def shared_records() -> Iterator[SharedRecords]:
    """The records that are read while the block runs."""
    found, records, parse = SharedRecords(), RecordCache.records, NodeParser.parse

    def watched(cache: RecordCache, rows: Iterable[Row], decode: Callable[[Row], Record]) -> list[Record]:
        read = records(cache, rows, decode)
        found.add(read)
        return read

    def watched_parse(parser: NodeParser, body: bytes) -> Answer:
        answer: Any = parse(parser, body)
        found.add(answer.get("Nodes", ()))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordCache, "records", watched)
        patch.setattr(NodeParser, "parse", watched_parse)
        yield found


class NotCached(Exception):
    """A record would have to be decoded."""


def cached(cache: RecordCache, rows: Sequence[Row]) -> list[Row]:
    """Those rows whose records are cached."""
    return [row for row in rows if _is_cached(cache, row)]


def _is_cached(cache: RecordCache, row: Row) -> bool:
    try:
        cache.records([row], _refuse)
    except NotCached:
        return False
    return True


def _refuse(row: Row) -> Record:
    raise NotCached
