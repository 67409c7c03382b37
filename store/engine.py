"""Storage interface: what both stores implement, and what is counted and kept around it.

`Store` has the operations. `ReadUsage` counts the requests, items and read units of one request to Clade, within a
limit of units; `ReadTrace` lists its calls if the client asked for them. `RecordCache` keeps decoded records,
`CallStats` counts calls to a remote engine by their outcome, and `Patience` and `TableOptions` are what callers and
new tables choose.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

from store.cache import BoundedCache
from store.concurrency import in_chunks
from store.errors import BadInput, BudgetExceeded
from store.model.attributes import Value
from store.model.keys import Index, Key, KeyRange, index_name, just_after, siblings
from store.model.records import Change, Item, Put, Record

MAX_TAGS = 50  # of one table
MAX_CALLS = 200  # listed; the others are counted
MAX_KEYS = 20  # listed of one call
UNIT_BYTES = 4096  # one read unit is one strongly consistent read of up to 4 KB, or two eventually consistent ones
LEAST_UNITS = 0.5  # of any request
REQUESTS_A_UNIT = 0.5  # of the limit, since a request takes time however little it returns
PAGE_UNITS = 128.0  # of the largest page, 1 MB, eventually consistent
# Memory of an entry: its content twice, as read and as values, and so much beside it. Measured were 2,600 bytes for a
# record whose content has 455 and that was serialized once, 2,930 where it was serialized in three ways.
RECORD_BYTES = 1_900
CONTENT_TIMES = 2
MAX_RANGES = 20_000  # that are known to have been read
RANGE_BYTES = 200  # of memory for one


@dataclass(slots=True)
class CallStats:
    """Counts since the store was made: `made` are calls of the store, each of one attempt or more.

    `retried` are attempts after the first, `throttled` responses that ask for a lower rate, `failed` calls without a
    response, `skipped` calls that an open circuit breaker rejected, and `is_silent` is whether it is open.
    """

    made: int = 0
    retried: int = 0
    throttled: int = 0
    failed: int = 0
    skipped: int = 0
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """Each attempt of a call has `connect_seconds` and then `read_seconds`; `timeouts` attempts may time out.

    At most `attempts` are made where the engine fails, throttles, or loses the connection.
    """

    connect_seconds: float
    read_seconds: float
    timeouts: int
    attempts: int


REQUEST_PATIENCE = Patience(connect_seconds=2.0, read_seconds=4.0, timeouts=2, attempts=5)
"""A server's, whose requests have to end: some 8 s of silence, 0.8 s of failures."""
COMMAND_PATIENCE = Patience(connect_seconds=5.0, read_seconds=20.0, timeouts=3, attempts=10)
"""A command's, which would have to begin again: some 60 s of silence, 25 s of failures."""


class Capacity(NamedTuple):
    """Provisioned capacity, in DynamoDB's read and write units per second."""

    read: int
    write: int


@dataclass(frozen=True)
class TableOptions:
    """Options of a new table; without `capacity` it is on demand (paid per request).

    `recovery` is point-in-time recovery (35 days), `protection` deletion protection. None turns them on in AWS, and
    off on an engine at an endpoint.
    """

    recovery: bool | None = None
    protection: bool | None = None
    capacity: Capacity | None = None
    index_capacity: Capacity | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    kms_key: str | None = None

    def __post_init__(self) -> None:
        if self.index_capacity and not self.capacity:
            raise BadInput("--index-units needs --units; add it.")
        if min([1, *(self.capacity or ()), *(self.index_capacity or ())]) < 1:
            raise BadInput("A table and its indexes have at least 1 unit each.")
        if len(self.tags) > MAX_TAGS:
            raise BadInput(f"A table has at most {MAX_TAGS} tags, not {len(self.tags)}.")


class ReadTrace:
    """The calls in the order in which they returned, at most MAX_CALLS, and the cached pages and records.

    `round_number` returns the number of the round that is under way, None where rounds are not counted, as in edits. A
    round is what `ReadScheduler.rounds` counts: reads that are waited for together. So the pages of one long Query are
    in one round.
    """

    def __init__(self, round_number: Callable[[], int | None]) -> None:
        self.pages = 0
        self.records = 0
        self._round_number = round_number
        self._calls: list[dict[str, Any]] = []
        self._left_out = 0

    def add_range(
        self,
        operation: str,
        key_range: KeyRange,
        *,
        items: int,
        units: float,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = False,
        count: bool = False,
        after: str | None = None,
    ) -> None:
        """Add a call for a range, or for the part of it behind the sort key `after`; `count` returns no items."""
        if self._has_room():
            options = {
                "limit": limit,
                "scanIndexForward": False if reverse else None,
                "select": "COUNT" if count else None,
                "after": after,
            }
            what = {"keyCondition": key_condition(key_range)} | {k: v for k, v in options.items() if v is not None}
            self._add(operation, key_range.index, what, items, units, strong=strong)

    def add_keys(self, operation: str, keys: Sequence[Key], *, items: int, units: float, strong: bool) -> None:
        """Add a call for items by their keys, of which at most MAX_KEYS are listed."""
        if self._has_room():
            listed = [f"{_equal('pk', pk)} AND {_equal('sk', sk)}" for pk, sk in keys[:MAX_KEYS]]
            what: dict[str, Any] = {"keys": listed}
            if len(keys) > MAX_KEYS:
                what["moreKeys"] = len(keys) - MAX_KEYS
            self._add(operation, Index.TABLE, what, items, units, strong=strong)

    def report(self) -> dict[str, Any]:
        """The members of `extensions.reads` beside the counts; `moreCalls` only where some are left out."""
        more = {"moreCalls": self._left_out} if self._left_out else {}
        return {"fromCache": {"pages": self.pages, "records": self.records}, "calls": self._calls, **more}

    def _has_room(self) -> bool:
        has_room = len(self._calls) < MAX_CALLS
        self._left_out += not has_room
        return has_room

    def _add(
        self, operation: str, index: Index, what: dict[str, Any], items: int, units: float, *, strong: bool
    ) -> None:
        number = self._round_number()
        self._calls.append(
            {
                "operation": operation,
                "index": index_name(index),
                **what,
                "consistentRead": strong,
                "items": items,
                "units": units,
                **({} if number is None else {"round": number}),
            }
        )


def key_condition(key_range: KeyRange) -> str:
    """A range as a key condition with its values: `pk = "location#US" AND begins_with(sk, "#NE#")`.

    Ranges of a prefix are `begins_with`, also where they leave out the node whose key is the prefix itself, and those
    of one key are `=`, though DynamoDB is sent BETWEEN for all of them. Of BETWEEN the upper bound is not in the range.
    """
    partition, lo, hi = _equal(key_range.index.partition, key_range.partition), key_range.lo, key_range.hi
    sort = key_range.index.sort
    if key_range == siblings(key_range.partition):
        return partition
    if lo and hi == just_after(lo):
        return f"{partition} AND {_equal(sort, lo)}"
    prefix = lo[:-1] if lo.endswith("#!") else lo
    if prefix and hi in (_next(prefix), prefix + chr(sys.maxunicode)):
        return f"{partition} AND begins_with({sort}, {_quoted(prefix)})"
    return f"{partition} AND {sort} BETWEEN {_quoted(lo)} AND {_quoted(hi)}"


def _next(prefix: str) -> str:
    """The least text that follows all texts with a prefix; `prefix_end` of one that ends with `#`."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    following = ord(kept[-1:] or "\0") + 1
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)  # no key has half of a surrogate pair


def _equal(name: str, value: str) -> str:
    return f"{name} = {_quoted(value)}"


def _quoted(value: str) -> str:
    """A value as in JSON, with escapes also of what cannot be seen."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join([c if c.isprintable() else json.dumps(c)[1:-1] for c in text])


@dataclass(slots=True)
class ReadUsage:
    """The counts that each reading method of a store checks before a request to the engine, and adds to after it.

    `requests` are calls that reach the engine, `items` those that they returned, `units` DynamoDB's read capacity
    units. At most `limit` units are allowed, and half as many requests, beside those that are `free`; requests that run
    when it is reached still count.
    """

    requests: int = 0
    items: int = 0
    units: float = 0.0
    limit: float = float("inf")
    free_requests: int = 0
    free_units: float = 0.0
    refusal: BudgetExceeded | None = None
    """The error of the reads that the limit has rejected."""
    trace: ReadTrace | None = None
    """Lists each call, if that was requested."""

    def add(self, *, items: int, units: float) -> None:
        """Count one request with its items and units."""
        self.requests += 1
        self.items += items
        self.units += units

    @property
    def units_left(self) -> float:
        return self.limit + self.free_units - self.units

    @property
    def requests_left(self) -> float:
        return self.limit * REQUESTS_A_UNIT + self.free_requests - self.requests

    def include(self, other: "ReadUsage", *, free: bool = False) -> None:
        """Add the counts of another usage, which has a bound of its own where it is `free`."""
        self.requests += other.requests
        self.items += other.items
        self.units += other.units
        if free:
            self.free_requests += other.requests
            self.free_units += other.units

    def check(self, planned: int = 1) -> None:
        """Raise BudgetExceeded where the next `planned` requests would pass the limit even if they return nothing."""
        if planned * LEAST_UNITS > self.units_left or planned > self.requests_left:
            self.refusal = BudgetExceeded(
                f"The request needs more than {self.limit:g} read units, or {self.limit * REQUESTS_A_UNIT:g} requests "
                "to the store. Ask for less in each, with first: and after:, or raise CLADE_MAX_READ_UNITS."
            )
            raise self.refusal

    def renew(self) -> None:
        """Begin anew, beside what was read so far."""
        self.free_requests, self.free_units, self.refusal = self.requests, self.units, None


def units_of(size: int, *, strong: bool = False) -> float:
    """The read capacity units of one request that reads `size` bytes; 0 bytes cost as much as 1.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    """
    return (-(-size // UNIT_BYTES) or 1) * (1.0 if strong else 0.5)


class RecordCache:
    """The records of ranges that were read more than once, up to so many bytes; none where that is 0.

    Most ranges are read once, as long as their page is cached, and an entry takes longer than decoding its record.
    """

    def __init__(self, max_bytes: int) -> None:
        self._records: BoundedCache[bytes, Record] = BoundedCache("records", max_bytes, weigh=_size)
        self._ranges: BoundedCache[int, bool] = BoundedCache("ranges", MAX_RANGES, bytes_each=RANGE_BYTES)

    def is_read_again(self, key_range: KeyRange) -> bool:
        """Whether a range was read before, or one that begins like it, so that its records are to be cached."""
        if not self._records.max_weight:
            return False
        begin = hash((key_range.partition, key_range.lo))  # keys may have 3 KB
        if self._ranges.get(begin):
            return True
        self._ranges.put(begin, True)
        return False

    def records(self, contents: Iterable[bytes], decode: Callable[[bytes], Record]) -> list[Record]:
        """The records of these contents, decoded where they are not cached; raises what `decode` raises."""
        records: list[Record] = []
        for content in contents:
            record = self._records.get(content)
            if record is None:
                record = decode(content).with_fragments()
                self._records.put(content, record)
            records.append(record)
        return records


def _size(content: bytes, record: Record) -> int:
    return CONTENT_TIMES * len(content) + RECORD_BYTES


class Store(Protocol):
    """A table of items with two indexes. All methods raise Unavailable where the engine fails or does not respond.

    Items are returned in canonical form (`canonical_item`): without attributes that are None, whole numbers as ints.
    Expired items are never returned.
    """

    max_changes: int
    """The number of changes that an import puts into one commit; every commit can hold so many."""

    max_commit_changes: int | None
    """The maximum number of changes of one commit, None: unlimited."""

    is_embedded: bool
    """Whether the engine is in this process, so that small reads do not wait."""

    calls: CallStats | None
    """Statistics of its calls, None for an embedded engine."""

    def now(self) -> float:
        """The time by the store's clock, in seconds since 1970: of all stored times, and of what is compared with them.

        The machines that share a store may have different clocks.
        """
        ...

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        """The items at these keys, in the order of the keys, None where there is none; `strong` reads consistently.

        A key that is given twice is read once, and its item is the same object.
        """
        ...

    async def range(
        self,
        key_range: KeyRange,
        reads: ReadUsage,
        *,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = False,
    ) -> list[Item]:
        """All items of a range in the order of its sort key, or the first `limit`; `strong` is not for indexes."""
        ...

    async def nodes(
        self, key_range: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        """The records of the nodes in a range that holds nothing but nodes."""
        ...

    async def count(self, key_range: KeyRange, reads: ReadUsage) -> int:
        """The number of items in a range."""
        ...

    def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        """All items of the table, read consistently, page by page, in no particular order."""
        ...

    def version(self) -> object:
        """A value that differs after any write by any process, None where knowing it would take a read."""
        ...

    def snapshot(self) -> "Store | None":
        """A read-only view of the store as of its first read, to be opened; None where the engine has none."""
        ...

    async def commit(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none and raise Conflict, where a condition is not fulfilled.

        Raises BadInput for a value or an item that cannot be stored, and for too many changes.
        """
        ...

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        """Create the table with its indexes unless it exists; whether it was created.

        Raises WrongTable as `health` and `check_transactions` do, BadInput for unsupported options and a file of
        another program.
        """
        ...

    async def describe(self) -> dict[str, Value]:
        """Properties of the table by name, for `clade table show`."""
        ...

    async def health(self) -> None:
        """Raise NoTable, WrongTable or Unavailable where the table cannot be read."""
        ...

    async def check_transactions(self) -> None:
        """Raise WrongTable where the engine has no transactions, without which nothing can be written."""
        ...

    async def check_integrity(self) -> None:
        """Raise Damaged where the engine finds the table corrupt, which takes a pass through all of it."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...


async def check_changes(changes: Sequence[Change], limit: int | None) -> None:
    """Raise BadInput for more than `limit` changes in one commit, ValueError for two changes of one item."""
    if limit is not None and len(changes) > limit:
        raise BadInput(f"One commit may have at most {limit} changes, not {len(changes)}; split it.")
    keys: set[tuple[Value, Value]] = set()
    async for chunk in in_chunks(changes):
        keys.update(
            [(change.item["pk"], change.item["sk"]) if isinstance(change, Put) else change.key for change in chunk]
        )
    if len(keys) < len(changes):
        raise ValueError("A commit changes the same item twice.")
