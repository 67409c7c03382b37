"""Storage interface: the operations that every store implements."""

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from store.concurrency import in_chunks
from store.engine.call_stats import CallStats
from store.engine.table_options import TableOptions
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.model.attributes import Value
from store.model.items import Change, Item
from store.model.keys import Key
from store.model.ranges import KeyRange
from store.model.records import Record


class Store(Protocol):
    """A table of items in three orders. All verbs raise Unavailable where the engine fails or stays silent.

    Every store gives an item back in the same form: without the attributes that are None, and with whole numbers as
    ints (see `wire.settled`). What has expired is not there for any verb.
    """

    max_changes: int
    """How many changes an import puts into one commit, which any can hold."""

    most_changes: int | None
    """How many changes one commit can hold at most, None where there is no bound."""

    calls: CallStats | None
    """What became of its calls, None where there is nothing to call."""

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        """The items at these keys, in their order, None where there is none; with `strong` as of now.

        A key that comes twice is read once, and its item is then the same object.
        """
        ...

    async def range(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        """All items of a span in its order, or the first `limit`; `strong` is for the table's own order alone."""
        ...

    async def nodes(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        """What `range` brings as records, of a span where nothing but nodes lies."""
        ...

    async def count(self, span: KeyRange, reads: ReadUsage) -> int:
        """How many items a span holds."""
        ...

    def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        """All items of the table as of now, page by page, in no order that can be relied on."""
        ...

    def version(self) -> object:
        """A value that differs after any write by anyone, or None where that cannot be told without a read."""
        ...

    def snapshot(self) -> "Store | None":
        """The store as it is from its first read on, to be opened and only read, or None where there is no such."""
        ...

    async def commit(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none: then it raises Conflict, since a condition did not hold.

        Raises BadInput where a value or an item cannot be stored, or where the changes are more than fit.
        """
        ...

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        """Make the table with its orders if there is none; whether one was made. Raises WrongLayout as `health` does.

        One that is there stays as it is. Raises BadInput where it is not Clade's, and for options that it cannot have.
        """
        ...

    async def migrate(self) -> object:
        """Bring a table of an older layout to the one of this version; the version that it had."""
        ...

    async def describe(self) -> dict[str, Value]:
        """What there is, for people."""
        ...

    async def health(self) -> None:
        """Raise NoTable, WrongLayout or Unavailable unless the table can be read now."""
        ...

    async def check_integrity(self) -> None:
        """Raise Damaged where the engine finds that the table is not whole, which takes a pass through all of it."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


async def check_changes(changes: Sequence[Change], most: int | None) -> None:
    """What every store refuses: too many changes at once (BadInput), and two of one item (ValueError, a mistake)."""
    if most is not None and len(changes) > most:
        raise BadInput(f"One commit holds at most {most} changes, not {len(changes)}; make several.")
    keys: set[Key] = set()
    async for some in in_chunks(changes):
        keys.update([change.key for change in some])
    if len(keys) < len(changes):
        raise ValueError("A commit changes the same item twice.")
