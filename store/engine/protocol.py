"""Storage interface: the operations that every store implements."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, Self

from store.concurrency import in_chunks
from store.engine.call_stats import CallStats
from store.engine.table_options import TableOptions
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.model.attributes import Value
from store.model.items import Change, Item, Put
from store.model.keys import Key
from store.model.ranges import KeyRange
from store.model.records import Record


class Store(Protocol):
    """A table of items with two indexes. All methods raise Unavailable where the engine fails or does not respond.

    Items are returned in canonical form (`canonical_item`): without attributes that are None, whole numbers as ints.
    Expired items are never returned.
    """

    max_changes: int
    """The number of changes that an import puts into one commit; every commit can hold so many."""

    max_commit_changes: int | None
    """The maximum number of changes of one commit, None: unlimited."""

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
