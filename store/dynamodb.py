"""The store in one table of DynamoDB, or of anything that speaks its API."""

import asyncio
import math
import random
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import parse_qsl

from store import wire
from store.administration import Administration
from store.attributes import Value
from store.aws import Connection, Refused, Silent
from store.calls import Calls
from store.decoded import Decoded
from store.errors import BadInput, Conflict, Unavailable
from store.items import Change, Check, Delete, Item, Put, key_of
from store.keys import Index, Key, Span
from store.layout import LAYOUT_KEY
from store.reads import Reads, units_of
from store.records import Record
from store.stores import check_changes
from store.table import TableOptions
from store.wire_nodes import NodeAnswer, NodeParser

Row = TypeVar("Row", Item, Record)

MAX_CHANGES = 100  # of one TransactWriteItems
MAX_COMMIT_BYTES = 4 * 1024 * 1024  # likewise, all items together
CHUNK = 100  # keys of one BatchGetItem
MAX_LIMIT = 2**31 - 1  # of one Query; `first` may be as much, and one more is read
ATTEMPTS = 8  # for what a call leaves undone; botocore has its own for calls that fail
FIRST_DELAY_SECONDS = 0.05
LONGEST_DELAY_SECONDS = 1.0

_UNKNOWN = (
    "DynamoDB does not answer, so it is not known whether this was changed; look, or repeat it with the same "
    "idempotencyKey."
)
_WRITTEN_BY_OTHERS = frozenset({"TransactionConflict", "TransactionInProgressException"})
_THROTTLED = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})


class DynamoDBStore:
    """A store in the table of this name. Where region or credentials are left out the usual AWS chain gives them.

    Of the nodes that it reads, up to `keep_bytes` are kept decoded.
    """

    max_changes = MAX_CHANGES
    most_changes: int | None = MAX_CHANGES

    def __init__(
        self, table: str, *, region: str | None = None, endpoint: str | None = None, keep_bytes: int = 0
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", table):
            raise BadInput(f'"{table}" is no table\'s name: 3 to 255 letters, digits, _, . and -.')
        self.table = table
        self.region = region
        self._aws = Connection(table, region, endpoint)
        self.calls: Calls | None = self._aws.calls
        self._decoded = Decoded(keep_bytes)
        self._parsers: dict[str, NodeParser] = {}

    @classmethod
    def at(cls, address: str, *, keep_bytes: int = 0) -> Self:
        """The store at `table?region=…&endpoint=…`; both options may be left out."""
        table, _, query = address.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        if unknown := options.keys() - {"region", "endpoint"}:
            raise BadInput(f"A DynamoDB store has no option {', '.join(sorted(unknown))}; it has region and endpoint.")
        region, endpoint = options.get("region") or None, options.get("endpoint") or None
        return cls(table, region=region, endpoint=endpoint, keep_bytes=keep_bytes)

    async def __aenter__(self) -> Self:
        await self._aws.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._aws.__aexit__(kind, error, trace)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: Reads, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        chunks = [wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK)]
        if len(chunks) == 1:  # as nearly always; it costs no task
            found = await self._get_chunk(wanted, reads, strong)
            return [found.get(key) for key in keys]
        found = {}
        for part in await asyncio.gather(*[self._get_chunk(chunk, reads, strong) for chunk in chunks]):
            found.update(part)
        return [found.get(key) for key in keys]

    async def _get_chunk(self, keys: list[Key], reads: Reads, strong: bool) -> dict[Key, Item]:
        pending: Any = {self.table: {"Keys": [wire.encode_key(key) for key in keys], "ConsistentRead": strong}}
        found: dict[Key, Item] = {}
        for delay in _delays():
            await asyncio.sleep(delay)
            answer = await self._aws.call("batch_get_item", RequestItems=pending, ReturnConsumedCapacity="TOTAL")
            items = [wire.decode(item) for item in answer["Responses"].get(self.table, ())]
            units = _units(answer)
            if units is None:
                units = sum(units_of(wire.size_of(item), strong=strong) for item in items)
            alive = _alive(items)
            reads.add(items=len(alive), units=units)
            found.update({key_of(item): item for item in alive})
            pending = answer.get("UnprocessedKeys")
            if not pending:
                return found
            self._aws.calls.throttled += 1
        raise self._overloaded()

    async def range(
        self, span: Span, reads: Reads, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        return await self._query(span, reads, limit, reverse, strong, wire.parse_answer, _items)

    async def nodes(self, span: Span, reads: Reads, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        hierarchy = span.partition.partition("#")[0]
        if hierarchy not in self._parsers:
            self._parsers[hierarchy] = NodeParser(self._decoded)
        return await self._query(span, reads, limit, reverse, False, self._parsers[hierarchy].parse, _records)

    async def _query(
        self,
        span: Span,
        reads: Reads,
        limit: int | None,
        reverse: bool,
        strong: bool,
        parse: Callable[[bytes], wire.Answer],
        rows: Callable[[wire.Answer], list[Row]],
    ) -> list[Row]:
        """The rows of a span, or the first `limit`, page by page."""
        if limit == 0 or span.lo >= span.hi:
            return []
        strong = strong and span.index is Index.TABLE
        query = {**wire.key_range(span), "ScanIndexForward": not reverse, "ConsistentRead": strong}
        spare = 1 if reverse and wire.may_be_key(span.hi) else 0  # the bound's own item comes first and does not belong
        kept: list[Row] = []
        while True:
            if limit is not None:
                query["Limit"] = min(limit - len(kept) + spare, MAX_LIMIT)
            page = await self._aws.call(
                "query", parse=parse, TableName=self.table, ReturnConsumedCapacity="TOTAL", **query
            )
            found = rows(page)
            units = _units(page)
            if units is None:
                units = units_of(sum(map(_size_of, found)), strong=strong)
            new = _within(span, found)[: None if limit is None else limit - len(kept)]
            reads.add(items=len(new), units=units)
            kept += new
            if "LastEvaluatedKey" not in page or len(kept) == limit or _is_through(span, found, reverse):
                return kept
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def version(self) -> object:
        return None  # a table far away changes without telling

    def snapshot(self) -> None:
        return None

    async def count(self, span: Span, reads: Reads) -> int:
        if span.lo >= span.hi:
            return 0
        total = await self._count(span, reads)
        if wire.may_be_key(span.hi):  # then an item at the bound was counted, and only a question for it tells
            total -= await self._count(Span(span.index, span.partition, span.hi, span.hi), reads)
        return total

    async def _count(self, span: Span, reads: Reads) -> int:
        """How many items lie in a span, its upper bound included."""
        query = wire.counted(wire.key_range(span), int(time.time()))
        total = 0
        while True:
            page = await self._aws.call("query", TableName=self.table, ReturnConsumedCapacity="TOTAL", **query)
            total += page["Count"]
            reads.add(items=0, units=_units(page) or units_of(0))
            if "LastEvaluatedKey" not in page:
                return total
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def scan(self, reads: Reads) -> AsyncIterator[list[Item]]:
        query: wire.Json = {"TableName": self.table, "ConsistentRead": True}
        while True:
            page = await self._aws.call("scan", ReturnConsumedCapacity="TOTAL", **query)
            found = [wire.decode(item) for item in page["Items"]]
            units = _units(page)
            if units is None:
                units = units_of(sum(map(wire.size_of, found)), strong=True)
            alive = [item for item in _alive(found) if item["pk"] != LAYOUT_KEY.pk]  # which is the table's own
            reads.add(items=len(alive), units=units)
            if alive:
                yield alive
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, MAX_CHANGES)
        if not changes:
            return
        items = self._transaction(changes)
        token = uuid.uuid4().hex  # makes a call known as the same again, so that one whose answer was lost is harmless
        codes: set[str] = set()
        for delay in _delays():
            await asyncio.sleep(delay)
            try:
                await self._aws.call("transact_write_items", TransactItems=items, ClientRequestToken=token)
                return
            except Refused as error:
                if failed := tuple(i for i, reason in enumerate(error.reasons) if reason == "ConditionalCheckFailed"):
                    raise Conflict.over(failed) from error
                codes = {error.name, *error.reasons}
                if error.name == "InternalServerError":
                    raise Unavailable(_UNKNOWN) from error
                self._aws.calls.throttled += bool(codes & _THROTTLED)
                if not codes & (_WRITTEN_BY_OTHERS | _THROTTLED):
                    raise
            except Silent as error:
                raise Unavailable(_UNKNOWN) from error
        raise Conflict.over() if codes & _WRITTEN_BY_OTHERS else self._overloaded()

    def _transaction(self, changes: Sequence[Change]) -> list[wire.Json]:
        """What TransactWriteItems is told; raises BadInput where it holds too much."""
        now, size, items = int(time.time()), 0, []
        for change in changes:
            where = {"TableName": self.table, **wire.condition(change.when, now)}
            match change:
                case Put(item):
                    kept = wire.settled(item)
                    size += wire.checked_size(kept)
                    items.append({"Put": {**where, "Item": wire.encode(kept)}})
                case Delete(key):
                    items.append({"Delete": {**where, "Key": wire.encode_key(key)}})
                case Check(key):
                    items.append({"ConditionCheck": {**where, "Key": wire.encode_key(key)}})
        if size > MAX_COMMIT_BYTES:
            raise BadInput(f"One commit holds at most {MAX_COMMIT_BYTES} bytes (4 MB), not {size}; make several.")
        return items

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        return await Administration(self._aws).create(options)

    async def check_integrity(self) -> None:
        """DynamoDB proves what it keeps by itself."""

    async def describe(self) -> dict[str, Value]:
        return await Administration(self._aws).describe()

    async def migrate(self) -> object:
        return await Administration(self._aws).migrate()

    async def health(self) -> None:
        await Administration(self._aws).check()

    def _overloaded(self) -> Unavailable:
        return Unavailable(f'The table "{self.table}" is overloaded; try again.')


def _delays() -> Iterator[float]:
    """How long to wait before each attempt; random, so that those who met once do not meet again."""
    yield 0.0
    for attempt in range(ATTEMPTS - 1):
        yield random.uniform(0.0, min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2**attempt))  # noqa: S311


def _alive(items: list[Item]) -> list[Item]:
    """Those that have not expired; DynamoDB takes up to days to remove what has."""
    now = time.time()
    return [item for item in items if item.get("expires", math.inf) > now]  # type: ignore[operator]


def _items(page: wire.Answer) -> list[Item]:
    return _alive([wire.decode(item) for item in page["Items"]])


def _records(page: wire.Answer) -> list[Record]:
    """Nodes, which a parser of nodes or, where it had to give up, the ordinary one has read."""
    nodes = cast(NodeAnswer, page).get("Nodes")
    return [Record.of(item) for item in _items(page)] if nodes is None else nodes


def _size_of(row: Item | Record) -> int:
    return wire.size_of(row.item() if isinstance(row, Record) else row)


def _sort_key(row: Item | Record, span: Span) -> str:
    name = span.index.sort
    return cast(str, getattr(row, name) if isinstance(row, Record) else row[name])


def _within(span: Span, found: list[Row]) -> list[Row]:
    """Those rows that lie in a span; since they are in order, the first and the last mostly tell that all do."""
    if all(span.lo <= _sort_key(row, span) < span.hi for row in found[:1] + found[-1:]):
        return found
    return [row for row in found if span.lo <= _sort_key(row, span) < span.hi]


def _is_through(span: Span, found: Sequence[Item | Record], reverse: bool) -> bool:
    """Whether a page reached beyond the far end of a span, so that nothing of it can follow."""
    if not found:
        return False
    last = _sort_key(found[-1], span)
    return last < span.lo if reverse else last >= span.hi


def _units(answer: wire.Answer) -> float | None:
    """The read units that a call took, None where the engine does not tell."""
    told = answer.get("ConsumedCapacity") or []
    parts = told if isinstance(told, list) else [told]
    return sum(part["CapacityUnits"] for part in parts) if parts else None
