"""The store in one table of DynamoDB, or of anything that speaks its API."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any, Self

from store.dynamodb import codec
from store.dynamodb.attempts import IN_PROGRESS, Attempts
from store.dynamodb.client import DynamoDBClient, Refused
from store.dynamodb.node_codec import NodeParser
from store.dynamodb.result_pages import (
    Row,
    alive,
    consumed_units,
    is_through,
    items_of,
    records_of,
    row_size,
    within,
)
from store.dynamodb.table_admin import TableAdmin
from store.engine.call_stats import CallStats
from store.engine.protocol import check_changes
from store.engine.record_cache import RecordCache
from store.engine.table_options import TableOptions
from store.engine.usage import ReadUsage, units_of
from store.errors import BadInput, Conflict, Unavailable, Uncertain
from store.metadata.schema_version import LAYOUT_KEY
from store.model.attributes import Value
from store.model.items import (
    Change,
    Check,
    Delete,
    Item,
    Put,
    canonical_item,
    checked_item_size,
    key_of,
    size_of,
)
from store.model.keys import Index, Key
from store.model.ranges import KeyRange
from store.model.records import Record
from store.retry import RetryPolicy

MAX_CHANGES = 100  # of one TransactWriteItems
MAX_COMMIT_BYTES = 4 * 1024 * 1024  # likewise, all items together
CHUNK = 100  # keys of one BatchGetItem
MAX_LIMIT = 2**31 - 1  # of one Query; `first` may be as much, and one more is read
RETRIES = RetryPolicy(0.05, 1.0, attempts=8)  # of what a call leaves undone; botocore has its own for calls that fail
LOOK_SECONDS = 2.0  # for reading what became of a transaction

_REJECTED = "DynamoDB rejects a value of this change: it is too large, or of a kind that cannot be stored."
_WRITTEN_BY_OTHERS = "TransactionConflict"
_THROTTLED = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})
_TRIED_AGAIN = _THROTTLED | {_WRITTEN_BY_OTHERS, IN_PROGRESS}


class DynamoDBStore:
    """A store in the table of this name. Where region or credentials are left out the usual AWS chain gives them.

    Of the nodes that it reads, up to `keep_bytes` are kept decoded.
    """

    max_changes = MAX_CHANGES
    most_changes: int | None = MAX_CHANGES

    def __init__(
        self, table: str, *, region: str | None = None, endpoint: str | None = None, keep_bytes: int = 0
    ) -> None:
        self.table = table
        self.region = region
        self._aws = DynamoDBClient(table, region, endpoint)
        self.calls: CallStats | None = self._aws.calls
        self._decoded = RecordCache(keep_bytes)
        self._parsers: dict[str, NodeParser] = {}

    async def __aenter__(self) -> Self:
        await self._aws.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._aws.__aexit__(kind, error, trace)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        chunks = [wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK)]
        if len(chunks) == 1:  # as nearly always; it costs no task
            found = await self._get_chunk(wanted, reads, strong)
            return [found.get(key) for key in keys]
        found = {}
        for part in await asyncio.gather(*[self._get_chunk(chunk, reads, strong) for chunk in chunks]):
            found.update(part)
        return [found.get(key) for key in keys]

    async def _get_chunk(self, keys: list[Key], reads: ReadUsage, strong: bool) -> dict[Key, Item]:
        pending: Any = {self.table: {"Keys": [codec.encode_key(key) for key in keys], "ConsistentRead": strong}}
        found: dict[Key, Item] = {}
        delays = RETRIES.delays()
        while (delay := next(delays, None)) is not None:
            await asyncio.sleep(delay)
            reads.check()
            answer = await self._aws.call("batch_get_item", RequestItems=pending, ReturnConsumedCapacity="TOTAL")
            items = [codec.decode(item) for item in answer["Responses"].get(self.table, ())]
            units = consumed_units(answer)
            if units is None:
                units = sum(units_of(size_of(item), strong=strong) for item in items)
            lasting = alive(items)
            reads.add(items=len(lasting), units=units)
            found.update({key_of(item): item for item in lasting})
            left = answer.get("UnprocessedKeys")
            if not left:
                return found
            if _key_count(left) < _key_count(pending):  # only attempts in a row that bring nothing are counted
                delays = RETRIES.pauses()
            pending = left
            self._aws.calls.throttled += 1
        raise self._overloaded()

    async def range(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        return await self._query(span, reads, limit, reverse, strong, codec.parse_answer, items_of)

    async def nodes(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        hierarchy = span.partition.partition("#")[0]
        if hierarchy not in self._parsers:
            self._parsers[hierarchy] = NodeParser(self._decoded)
        return await self._query(span, reads, limit, reverse, False, self._parsers[hierarchy].parse, records_of)

    async def _query(
        self,
        span: KeyRange,
        reads: ReadUsage,
        limit: int | None,
        reverse: bool,
        strong: bool,
        parse: Callable[[bytes], codec.Answer],
        rows: Callable[[codec.Answer], list[Row]],
    ) -> list[Row]:
        """The rows of a span, or the first `limit`, page by page."""
        if limit == 0 or span.lo >= span.hi:
            return []
        strong = strong and span.index is Index.TABLE
        query = {**codec.key_range(span), "ScanIndexForward": not reverse, "ConsistentRead": strong}
        spare = (
            1 if reverse and codec.may_be_key(span.hi) else 0
        )  # the bound's own item comes first and does not belong
        kept: list[Row] = []
        while True:
            if limit is not None:
                query["Limit"] = min(limit - len(kept) + spare, MAX_LIMIT)
            reads.check()
            page = await self._aws.call(
                "query", parse=parse, TableName=self.table, ReturnConsumedCapacity="TOTAL", **query
            )
            found = rows(page)
            units = consumed_units(page)
            if units is None:
                units = units_of(sum(map(row_size, found)), strong=strong)
            new = within(span, found)[: None if limit is None else limit - len(kept)]
            reads.add(items=len(new), units=units)
            kept += new
            if "LastEvaluatedKey" not in page or len(kept) == limit or is_through(span, found, reverse):
                return kept
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def version(self) -> object:
        return None  # a table far away changes without telling

    def snapshot(self) -> None:
        return None

    async def count(self, span: KeyRange, reads: ReadUsage) -> int:
        if span.lo >= span.hi:
            return 0
        total = await self._count(span, reads)
        if codec.may_be_key(span.hi):  # then an item at the bound was counted, and only a question for it tells
            total -= await self._count(KeyRange(span.index, span.partition, span.hi, span.hi), reads)
        return total

    async def _count(self, span: KeyRange, reads: ReadUsage) -> int:
        """How many items lie in a span, its upper bound included."""
        query = codec.counted(codec.key_range(span), int(time.time()))
        total = 0
        while True:
            reads.check()
            page = await self._aws.call("query", TableName=self.table, ReturnConsumedCapacity="TOTAL", **query)
            total += page["Count"]
            reads.add(items=0, units=consumed_units(page) or units_of(0))
            if "LastEvaluatedKey" not in page:
                return total
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        query: codec.Json = {"TableName": self.table, "ConsistentRead": True}
        while True:
            page = await self._aws.call("scan", ReturnConsumedCapacity="TOTAL", **query)
            found = [codec.decode(item) for item in page["Items"]]
            units = consumed_units(page)
            if units is None:
                units = units_of(sum(map(size_of, found)), strong=True)
            lasting = [item for item in alive(found) if item["pk"] != LAYOUT_KEY.pk]  # which is the table's own
            reads.add(items=len(lasting), units=units)
            if lasting:
                yield lasting
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, MAX_CHANGES)
        if not changes:
            return
        items, attempts = self._transaction(changes), Attempts()
        try:
            await self._transact(items, attempts)
        except (Conflict, Unavailable) as error:
            if not attempts.uncertain:
                raise
            if await self._is_made(changes):
                return
            if isinstance(error, Conflict) and error.failed:  # an attempt that was made would not have met this
                raise
            raise Uncertain.after(error) from error

    async def _transact(self, items: list[codec.Json], attempts: Attempts) -> None:
        """Send a transaction until there is an answer; raises BadInput, Conflict or Unavailable where that says no."""
        token = uuid.uuid4().hex  # makes a call known as the same again, so that one whose answer was lost is harmless
        outcome: Conflict | Unavailable = self._overloaded()
        for delay in RETRIES.delays():
            await asyncio.sleep(delay)
            try:
                await self._aws.call(
                    "transact_write_items", attempts=attempts, TransactItems=items, ClientRequestToken=token
                )
                return
            except Refused as error:
                if failed := tuple(i for i, reason in enumerate(error.reasons) if reason == "ConditionalCheckFailed"):
                    raise Conflict.over(failed) from error
                if "ValidationError" in error.reasons:
                    raise BadInput(_REJECTED) from error
                codes = {error.name, *error.reasons}
                self._aws.calls.throttled += bool(codes & _THROTTLED)
                if not codes & _TRIED_AGAIN:
                    raise
                if _WRITTEN_BY_OTHERS in codes:
                    outcome = Conflict.over()
                else:
                    outcome = error if error.name == IN_PROGRESS else self._overloaded()
        raise outcome

    async def _is_made(self, changes: Sequence[Change]) -> bool:
        """Whether the table holds all that a transaction would have written; not, where it cannot be read now."""
        puts = [canonical_item(one.item) for one in changes if isinstance(one, Put)]
        left: dict[Key, Item | None] = {key_of(item): item for item in puts}
        left |= dict.fromkeys([one.key for one in changes if isinstance(one, Delete)])
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self.get(list(left), ReadUsage(), strong=True) == list(left.values())
        except (Unavailable, TimeoutError):
            return False

    def _transaction(self, changes: Sequence[Change]) -> list[codec.Json]:
        """What TransactWriteItems is told; raises BadInput where it holds too much."""
        now, size, items = int(time.time()), 0, []
        for change in changes:
            where = {"TableName": self.table, **codec.condition(change.when, now)}
            match change:
                case Put(item):
                    kept = canonical_item(item)
                    size += checked_item_size(kept)
                    items.append({"Put": {**where, "Item": codec.encode(kept)}})
                case Delete(key):
                    items.append({"Delete": {**where, "Key": codec.encode_key(key)}})
                case Check(key):
                    items.append({"ConditionCheck": {**where, "Key": codec.encode_key(key)}})
        if size > MAX_COMMIT_BYTES:
            raise BadInput(f"One commit holds at most {MAX_COMMIT_BYTES} bytes (4 MB), not {size}; make several.")
        return items

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        return await TableAdmin(self._aws).create(options)

    async def check_integrity(self) -> None:
        """DynamoDB proves what it keeps by itself."""

    async def describe(self) -> dict[str, Value]:
        return await TableAdmin(self._aws).describe()

    async def migrate(self) -> object:
        return await TableAdmin(self._aws).migrate()

    async def health(self) -> None:
        await TableAdmin(self._aws).check()

    def _overloaded(self) -> Unavailable:
        return Unavailable(f'The table "{self.table}" is overloaded; try again.')


def _key_count(pending: codec.Json) -> int:
    return sum(len(one["Keys"]) for one in pending.values())
