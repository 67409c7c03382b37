"""Storage interface: the operations that every store implements."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from store.concurrency import in_chunks
from store.engine.usage import CallStats, ReadUsage
from store.errors import BadInput
from store.model.attributes import Value
from store.model.items import Change, Item, Put
from store.model.keys import Key
from store.model.ranges import KeyRange
from store.model.records import Record


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


MAX_TAGS = 50  # of one table


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


class Store(Protocol):
    """A table of items with two indexes. All methods raise Unavailable where the engine fails or does not respond.

    Items are returned in canonical form (`canonical_item`): without attributes that are None, whole numbers as ints.
    Expired items are never returned.
    """

    max_changes: int
    """The number of changes that an import puts into one commit; every commit can hold so many."""

    max_commit_changes: int | None
    """The maximum number of changes of one commit, None: unlimited."""

    is_remote: bool
    """Whether reads take time, and those of indexes may lag behind the table; False for an embedded engine."""

    calls: CallStats | None
    """Statistics of its calls, None for an embedded engine."""

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

    def token(self) -> object:
        """A value that differs after any write by any process, None where knowing it would take a read."""
        ...

    def may_have_moves(self) -> bool:
        """Whether large moves may be running in any tree; True where knowing it would take a read."""
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
