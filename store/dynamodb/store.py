"""DynamoDB store: one table of DynamoDB, or of an engine that speaks its API."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar, cast

from store.dynamodb import codec, transaction
from store.dynamodb.client import DynamoDBClient
from store.dynamodb.codec import NodeAnswer, NodeParser
from store.dynamodb.table import TableAdmin
from store.engine import (
    COMMAND_PATIENCE,
    CallStats,
    Patience,
    ReadTrace,
    ReadUsage,
    RecordCache,
    TableOptions,
    check_changes,
    units_of,
)
from store.errors import Conflict, Unavailable, Uncertain
from store.metadata.tree_version import LAYOUT_KEY
from store.model.attributes import Value
from store.model.keys import Index, Key, KeyRange
from store.model.records import Change, Delete, Item, Put, Record, canonical_item, key_of, size_of

Row = TypeVar("Row", Item, Record)

MAX_CHANGES = 100  # of one TransactWriteItems
CHUNK = 100  # keys of one BatchGetItem
MAX_LIMIT = 2**31 - 1  # of one Query; `first` can be as large, and one more is read
VERIFY_SECONDS = 2.0  # for the read that verifies whether a transaction was made


class DynamoDBStore:
    """The store in one table. Region and credentials come from the usual AWS chain where they are left out.

    Up to `keep_bytes` of decoded records are cached.
    """

    max_changes = MAX_CHANGES
    max_commit_changes: int | None = MAX_CHANGES
    is_embedded = False

    def __init__(
        self,
        table: str,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        keep_bytes: int = 0,
        patience: Patience = COMMAND_PATIENCE,
    ) -> None:
        self.table = table
        self.client = DynamoDBClient(table, region, endpoint, patience)
        self.calls: CallStats | None = self.client.calls
        self._decoded = RecordCache(keep_bytes)
        self._parsers: dict[str, NodeParser] = {}

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.client.__aexit__(*error)

    def now(self) -> float:
        return self.client.now()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        chunks = [wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK)]
        if len(chunks) == 1:  # nearly always; no task is needed
            found = await self._get_chunk(wanted, reads, strong)
            return [found.get(key) for key in keys]
        found = {}
        for part in await asyncio.gather(*[self._get_chunk(chunk, reads, strong) for chunk in chunks]):
            found.update(part)
        return [found.get(key) for key in keys]

    async def _get_chunk(self, keys: list[Key], reads: ReadUsage, strong: bool) -> dict[Key, Item]:
        pending: Any = {self.table: {"Keys": [codec.encode_key(key) for key in keys], "ConsistentRead": strong}}
        found: dict[Key, Item] = {}
        delays = transaction.RETRIES.delays()
        while (delay := next(delays, None)) is not None:
            await asyncio.sleep(delay)
            reads.check()
            answer = await self.client.call("BatchGetItem", RequestItems=pending, ReturnConsumedCapacity="TOTAL")
            items = [codec.decode(item) for item in answer["Responses"].get(self.table, ())]
            units = _consumed_units(answer)
            if units is None:
                units = sum(units_of(size_of(item), strong=strong) for item in items)
            unexpired = self._unexpired(items)
            reads.add(items=len(unexpired), units=units)
            if reads.trace is not None:
                asked = [codec.decode_key(key) for key in pending[self.table]["Keys"]]
                reads.trace.add_keys("BatchGetItem", asked, items=len(unexpired), units=units, strong=strong)
            found.update({key_of(item): item for item in unexpired})
            left = answer.get("UnprocessedKeys")
            if not left:
                return found
            if _key_count(left) < _key_count(pending):  # only successive attempts without progress count
                delays = transaction.RETRIES.pauses()
            pending = left
            self.client.calls.throttled += 1
        raise transaction.overloaded(self.table)

    async def range(
        self,
        key_range: KeyRange,
        reads: ReadUsage,
        *,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = False,
    ) -> list[Item]:
        return await self._query(key_range, reads, limit, reverse, strong, codec.parse_answer, self._items_of)

    async def nodes(
        self, key_range: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        hierarchy = key_range.partition.partition("#")[0]
        if hierarchy not in self._parsers:
            self._parsers[hierarchy] = NodeParser(self._decoded)
        parse = partial(self._parsers[hierarchy].parse, again=self._decoded.is_read_again(key_range))
        return await self._query(key_range, reads, limit, reverse, False, parse, self._records_of)

    async def _query(
        self,
        key_range: KeyRange,
        reads: ReadUsage,
        limit: int | None,
        reverse: bool,
        strong: bool,
        parse: Callable[[bytes], codec.Answer],
        decode: Callable[[codec.Answer], list[Row]],
    ) -> list[Row]:
        """The rows of a range, or the first `limit`, page by page."""
        if limit == 0 or key_range.lo >= key_range.hi:
            return []
        strong = strong and key_range.index is Index.TABLE
        query = {**codec.key_condition(key_range), "ScanIndexForward": not reverse, "ConsistentRead": strong}
        spare = reverse and codec.may_be_key(key_range.hi)  # an item at the upper bound comes first, and is dropped
        rows: list[Row] = []
        while True:
            if limit is not None:
                query["Limit"] = min(limit - len(rows) + spare, MAX_LIMIT)
            reads.check()
            page = await self.client.call(
                "Query", parse=parse, TableName=self.table, ReturnConsumedCapacity="TOTAL", **query
            )
            found = decode(page)
            units = _consumed_units(page)
            if units is None:
                units = units_of(sum(map(_row_size, found)), strong=strong)
            new = _within(key_range, found)[: None if limit is None else limit - len(rows)]
            reads.add(items=len(new), units=units)
            if reads.trace is not None:
                _trace(reads.trace, key_range, query, len(new), units)
            rows += new
            if "LastEvaluatedKey" not in page or len(rows) == limit or _is_through(key_range, found, reverse):
                return rows
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def version(self) -> object:
        return None  # it would take a read

    def snapshot(self) -> None:
        return None

    async def count(self, key_range: KeyRange, reads: ReadUsage) -> int:
        if key_range.lo >= key_range.hi:
            return 0
        total = await self._count(key_range, reads)
        if codec.may_be_key(key_range.hi):  # then an item at the bound was counted too
            total -= await self._count(
                KeyRange(key_range.index, key_range.partition, key_range.hi, key_range.hi), reads
            )
        return total

    async def _count(self, key_range: KeyRange, reads: ReadUsage) -> int:
        """The number of items in a range, its upper bound included."""
        query = codec.counted(codec.key_condition(key_range), int(self.now()))
        total = 0
        while True:
            reads.check()
            page = await self.client.call("Query", TableName=self.table, ReturnConsumedCapacity="TOTAL", **query)
            total += page["Count"]
            units = _consumed_units(page) or units_of(0)
            reads.add(items=0, units=units)
            if reads.trace is not None:
                _trace(reads.trace, key_range, query, 0, units)
            if "LastEvaluatedKey" not in page:
                return total
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        query: codec.Json = {"TableName": self.table, "ConsistentRead": True}
        while True:
            page = await self.client.call("Scan", ReturnConsumedCapacity="TOTAL", **query)
            found = [codec.decode(item) for item in page["Items"]]
            units = _consumed_units(page)
            if units is None:
                units = units_of(sum(map(size_of, found)), strong=True)
            unexpired = [item for item in self._unexpired(found) if item["pk"] != LAYOUT_KEY.pk]
            reads.add(items=len(unexpired), units=units)
            if unexpired:
                yield unexpired
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _unexpired(self, items: list[Item]) -> list[Item]:
        """The items that have not expired; DynamoDB can take days to delete those that have, and keeps other values."""
        now = self.now()
        return [item for item in items if not (isinstance(end := item.get("expires"), int | float) and end <= now)]

    def _items_of(self, page: codec.Answer) -> list[Item]:
        return self._unexpired([codec.decode(item) for item in page["Items"]])

    def _records_of(self, page: codec.Answer) -> list[Record]:
        """The records of a page, parsed by NodeParser or, as a fallback, as items."""
        nodes = cast(NodeAnswer, page).get("Nodes")
        return [Record.of(item) for item in self._items_of(page)] if nodes is None else nodes

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, MAX_CHANGES)
        if not changes:
            return
        attempts = self.client.new_attempts()
        try:
            await transaction.transact(self.client, changes, attempts)
        except (Conflict, Unavailable) as error:
            if not attempts.uncertain:
                raise
            if await self._is_made(changes):
                return
            if isinstance(error, Conflict) and error.failed:  # not after an attempt that was carried out
                raise
            raise Uncertain.after(error) from error

    async def _is_made(self, changes: Sequence[Change]) -> bool:
        """Whether the table holds all that a transaction writes; False where it cannot be read now."""
        expected: dict[Key, Item | None] = dict.fromkeys(change.key for change in changes if isinstance(change, Delete))
        expected |= {change.key: canonical_item(change.item) for change in changes if isinstance(change, Put)}
        try:
            async with asyncio.timeout(VERIFY_SECONDS):
                return await self.get(list(expected), ReadUsage(), strong=True) == list(expected.values())
        except (Unavailable, TimeoutError):
            return False

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        return await TableAdmin(self.client).create(options)

    async def check_integrity(self) -> None:
        """Nothing: DynamoDB verifies its storage itself."""

    async def describe(self) -> dict[str, Value]:
        return await TableAdmin(self.client).describe()

    async def health(self) -> None:
        await TableAdmin(self.client).check()

    async def check_transactions(self) -> None:
        await transaction.check_transactions(self.client)


def _trace(trace: ReadTrace, key_range: KeyRange, query: codec.Json, items: int, units: float) -> None:
    """Add a Query of a range to the trace."""
    start = query.get("ExclusiveStartKey")
    trace.add_range(
        "Query",
        key_range,
        items=items,
        units=units,
        limit=query.get("Limit"),
        reverse=not query.get("ScanIndexForward", True),
        strong=query.get("ConsistentRead", False),
        count=query.get("Select") == "COUNT",
        after=start and start[key_range.index.sort]["S"],
    )


def _key_count(pending: codec.Json) -> int:
    return sum(len(table["Keys"]) for table in pending.values())


def _row_size(row: Item | Record) -> int:
    return size_of(row.item() if isinstance(row, Record) else row)


def _sort_key(row: Item | Record, key_range: KeyRange) -> str:
    name = key_range.index.sort
    return cast(str, getattr(row, name) if isinstance(row, Record) else row[name])


def _within(key_range: KeyRange, found: list[Row]) -> list[Row]:
    """The rows in a range; they are sorted, so mostly only the first and the last are compared."""
    if all(key_range.lo <= _sort_key(row, key_range) < key_range.hi for row in found[:1] + found[-1:]):
        return found
    return [row for row in found if key_range.lo <= _sort_key(row, key_range) < key_range.hi]


def _is_through(key_range: KeyRange, found: Sequence[Item | Record], reverse: bool) -> bool:
    """Whether a page has reached the end of a range, so that no more rows of it follow."""
    if not found:
        return False
    last = _sort_key(found[-1], key_range)
    return last < key_range.lo if reverse else last >= key_range.hi


def _consumed_units(answer: codec.Answer) -> float | None:
    """The read units that a call consumed, None where the engine does not report them."""
    consumed = answer.get("ConsumedCapacity") or []
    parts = consumed if isinstance(consumed, list) else [consumed]
    return sum(part["CapacityUnits"] for part in parts) if parts else None
