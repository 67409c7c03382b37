"""The verbs that a store has, and how one is opened from its address."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Protocol, Self

from store.attributes import Value
from store.calls import Calls
from store.errors import BadInput
from store.items import Change, Item
from store.keys import Key, Span
from store.reads import Reads
from store.records import Record
from store.table import TableOptions
from store.turns import in_turns


class Store(Protocol):
    """A table of items in three orders. All verbs raise Unavailable where the engine fails or stays silent.

    Every store gives an item back in the same form: without the attributes that are None, and with whole numbers as
    ints (see `wire.settled`). What has expired is not there for any verb.
    """

    max_changes: int
    """How many changes an import puts into one commit, which any can hold."""

    most_changes: int | None
    """How many changes one commit can hold at most, None where there is no bound."""

    calls: Calls | None
    """What became of its calls, None where there is nothing to call."""

    async def get(self, keys: Sequence[Key], reads: Reads, *, strong: bool = False) -> list[Item | None]:
        """The items at these keys, in their order, None where there is none; with `strong` as of now.

        A key that comes twice is read once, and its item is then the same object.
        """
        ...

    async def range(
        self, span: Span, reads: Reads, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        """All items of a span in its order, or the first `limit`; `strong` is for the table's own order alone."""
        ...

    async def nodes(self, span: Span, reads: Reads, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        """What `range` brings as records, of a span where nothing but nodes lies."""
        ...

    async def count(self, span: Span, reads: Reads) -> int:
        """How many items a span holds."""
        ...

    def scan(self, reads: Reads) -> AsyncIterator[list[Item]]:
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
    async for some in in_turns(changes):
        keys.update([change.key for change in some])
    if len(keys) < len(changes):
        raise ValueError("A commit changes the same item twice.")


def open_store(url: str, *, keep_bytes: int = 0) -> Store:
    """The store at an address, to be used as an async context manager.

    `sqlite:///clade.db` is a file beside the working directory, `sqlite:////srv/clade.db` an absolute one,
    `sqlite://:memory:` lives as long as it is open. `dynamodb://table?region=eu-west-1&endpoint=http://…` is a table of
    DynamoDB or of what speaks its API; region and credentials come from the usual AWS chain where they are left out.
    Of the nodes that it reads, up to `keep_bytes` are kept decoded.
    """
    scheme, _, rest = url.partition("://")
    match scheme:
        case "sqlite":
            from store.sqlite import SQLiteStore

            return SQLiteStore(rest if rest == ":memory:" else rest.removeprefix("/"), keep_bytes=keep_bytes)
        case "dynamodb":
            from store.dynamodb import DynamoDBStore

            return DynamoDBStore.at(rest, keep_bytes=keep_bytes)
        case _:
            raise BadInput(f'"{url}" is no store; write sqlite:///FILE or dynamodb://TABLE?region=REGION.')


@asynccontextmanager
async def opened(url: str, *, make: bool = False) -> AsyncIterator[Store]:
    """The store at an address while the block runs; raises as `health` does.

    With `make` an SQLite file is made where there is none; a table of DynamoDB, which costs money, never is.
    """
    async with open_store(url) as store:
        if make and url.startswith("sqlite:"):
            await store.create()
        else:
            await store.health()
        yield store
