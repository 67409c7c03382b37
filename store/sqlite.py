"""The store in one SQLite file: the same items in the same three orders as in DynamoDB.

Each call runs straight in the coroutine that makes it: a read takes less time than handing it to a thread would. Only
waiting for another process's commit gives way to other coroutines.
"""

import asyncio
import contextlib
import itertools
import os
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import msgspec

from store.attributes import Value
from store.calls import Calls
from store.decoded import Decoded
from store.errors import BadInput, CladeError, Conflict, NoTable, Unavailable
from store.items import ABSENT, Change, Delete, Item, Put, holds
from store.keys import Index, Key, Span
from store.layout import check_known, check_layout
from store.reads import Reads, units_of
from store.records import MAX_ITEM_BYTES, Record
from store.statements import COLUMNS, DELETE, EXPIRED, INSERT, MARK, PUT, SCAN, SCHEMA, where
from store.stores import check_changes
from store.table import TableOptions
from store.turns import in_turns
from store.wire import checked_size, index_name, settled

MAX_CHANGES = 2000  # of an import's commit, whose price is its flush to the disk; there is no bound
LARGE_CHANGES = MAX_CHANGES  # from which on others have their turns while a commit is made
SCAN_ITEMS = 1000  # in one page of a scan
CHUNK = 100  # keys in one statement, as in one BatchGetItem
PIECE = 500  # nodes decoded in one go, which takes some 3 ms
CHECKPOINT_PAGES = 4000  # when the log is written back to the file; more saves rewriting pages during an import
BUSY_SECONDS = 10.0  # how long a commit waits for those of other processes
LOCKED_SECONDS = 1.0  # how long a read does, which happens only while another process mends the log after a crash
PURGE_SECONDS = 60.0  # between two removals of expired items
PURGE_ITEMS = 1000  # at most in one removal

_REASONS = {
    sqlite3.SQLITE_NOTADB: "is no SQLite database; name another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened or made; see that its directory exists and may be written",
    sqlite3.SQLITE_READONLY: "may not be written",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_BUSY: "is being written by another process; try again",
    sqlite3.SQLITE_LOCKED: "is being written by another process; try again",
    sqlite3.SQLITE_FULL: "cannot grow, since the disk is full",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a copy or an export",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk fails",
}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


class SQLiteStore:
    """A store in the file at `path`, or in memory where that is `:memory:`. Only `create` makes the file.

    Of the nodes that it reads, up to `keep_bytes` are kept decoded.
    """

    max_changes = MAX_CHANGES
    most_changes: int | None = None
    calls: Calls | None = None

    def __init__(self, path: str, *, keep_bytes: int = 0) -> None:
        if not path:
            raise BadInput("The store's address names no file; write sqlite:///FILE.")
        self.path = path
        self._decoded = Decoded(keep_bytes)
        self._entered = False
        self._open: sqlite3.Connection | None = None
        self._purged = -PURGE_SECONDS

    async def __aenter__(self) -> Self:
        self._entered = True
        with contextlib.suppress(Unavailable), self._translated():  # whoever reads is told, and later it may be there
            self._connection()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        if self._open is not None:
            self._open.close()
            self._open = None

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: Reads, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
        with self._translated():
            for start in range(0, len(wanted), CHUNK):
                chunk = wanted[start : start + CHUNK]
                rows = self._rows(chunk)
                missing = (len(chunk) - len(rows)) * units_of(0, strong=strong)
                reads.add(items=len(rows), units=sum(units_of(len(r[2]), strong=strong) for r in rows) + missing)
                found.update({(pk, sk): _decode(body) for pk, sk, body in rows})
        return [found.get(key) for key in keys]

    async def range(
        self, span: Span, reads: Reads, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        return list(map(_decode, self._bodies(span, reads, limit, reverse, strong)))

    async def nodes(self, span: Span, reads: Reads, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        bodies = self._bodies(span, reads, limit, reverse, False)
        records: list[Record] = []
        for start in range(0, len(bodies), PIECE):
            if start:
                await asyncio.sleep(0)  # so that small requests are answered before a large one is decoded
            records += map(self._record, bodies[start : start + PIECE])
        return records

    def _record(self, body: bytes) -> Record:
        record = self._decoded.get(body)
        if record is None:
            record = Record.of(_decode(body))
            self._decoded.put(body, record)
        return record

    def _bodies(self, span: Span, reads: Reads, limit: int | None, reverse: bool, strong: bool) -> list[bytes]:
        if limit == 0 or span.lo >= span.hi:
            return []
        order = f"ORDER BY {span.index.sort} {'DESC' if reverse else 'ASC'} LIMIT ?"
        with self._translated():
            rows = self._connection().execute(
                f"SELECT body {where(span.index)} {order}",
                (span.partition, span.lo, span.hi, time.time(), -1 if limit is None else limit),
            )
            bodies = [row[0] for row in rows]
        reads.add(items=len(bodies), units=units_of(sum(map(len, bodies)), strong=strong))
        return bodies

    async def count(self, span: Span, reads: Reads) -> int:
        if span.lo >= span.hi:
            return 0
        with self._translated():
            rows = self._connection().execute(
                f"SELECT count(*), total(length(body)) {where(span.index)}",
                (span.partition, span.lo, span.hi, time.time()),
            )
            ((count, size),) = rows.fetchall()
        reads.add(items=0, units=units_of(int(size)))
        return cast(int, count)

    async def scan(self, reads: Reads) -> AsyncIterator[list[Item]]:
        after = ("", "")
        while True:
            with self._translated():
                rows = self._connection().execute(SCAN, (*after, time.time(), SCAN_ITEMS)).fetchall()
            if not rows:
                return
            reads.add(items=len(rows), units=units_of(sum(len(body) for _, _, body in rows), strong=True))
            yield [_decode(body) for _, _, body in rows]
            after = rows[-1][:2]

    def _rows(self, keys: Sequence[Key]) -> list[tuple[str, str, bytes]]:
        """Key and body of those items that there are, at most CHUNK at a time."""
        # A join on VALUES is one statement and a search for each key; IN (VALUES …) walks the whole table.
        asked = ", ".join(["(?, ?)"] * len(keys))
        rows = self._connection().execute(
            f"WITH asked (p, s) AS (VALUES {asked}) SELECT pk, sk, body FROM asked CROSS JOIN items "  # noqa: S608
            "ON pk = p AND sk = s WHERE expires IS NULL OR expires > ?",
            [*itertools.chain.from_iterable(keys), time.time()],
        )
        return rows.fetchall()

    def version(self) -> object:
        try:
            connection = self._connection()
            return connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes
        except (sqlite3.Error, FileNotFoundError):
            return None  # whoever reads is told

    def snapshot(self) -> "SQLiteStore":
        return _Snapshot(self)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, self.most_changes)
        if len(changes) <= LARGE_CHANGES or self.path == ":memory:":  # which no second connection sees
            return await self._commit(changes)
        async with _Apart(self.path) as apart:
            await apart._commit(changes)

    async def _commit(self, changes: Sequence[Change]) -> None:
        with self._translated():
            try:
                await self._write(changes, look=False)
            except sqlite3.IntegrityError:  # something lies where nothing may, if only what has expired
                await self._write(changes, look=True)

    async def _write(self, changes: Sequence[Change], *, look: bool) -> None:
        """Make all changes, or none. Unless it is to `look`, SQLite itself finds what lies where a new item goes."""
        conditions: list[tuple[int, Change]] = []
        new: list[tuple[Value | bytes, ...]] = []
        rows: list[tuple[Value | bytes, ...]] = []
        gone = [change.key for change in changes if isinstance(change, Delete)]
        async for some in in_turns(list(enumerate(changes))):
            for place, change in some:
                inserted = not look and isinstance(change, Put) and change.when == ABSENT
                if change.when and not inserted:
                    conditions.append((place, change))
                if isinstance(change, Put):
                    (new if inserted else rows).append(_row(change.item))
        async with self._transaction() as connection:
            if failed := self._failed(conditions):
                raise Conflict.over(failed)
            for statement, values in ((DELETE, gone), (INSERT, sorted(new)), (PUT, sorted(rows))):
                await self._execute(connection, statement, values)
            self._purge(connection)

    async def _execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of some values in one go, since whatever else were done meanwhile would be part
        of the transaction.
        """
        connection.executemany(statement, values)

    def _failed(self, conditions: Sequence[tuple[int, Change]]) -> tuple[int, ...]:
        """The places of the changes whose conditions are not true."""
        found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
        for start in range(0, len(conditions), CHUNK):
            chunk = [change.key for _, change in conditions[start : start + CHUNK]]
            found.update({(pk, sk): _decode(body) for pk, sk, body in self._rows(chunk)})
        return tuple(place for place, change in conditions if not holds(change.when, found.get(change.key)))

    def _purge(self, connection: sqlite3.Connection) -> None:
        """Remove some of what has expired, now and then, as part of a commit that is made anyway."""
        if time.monotonic() - self._purged >= PURGE_SECONDS:
            self._purged = time.monotonic()
            connection.executemany(DELETE, connection.execute(EXPIRED, (time.time(), PURGE_ITEMS)).fetchall())

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[sqlite3.Connection]:
        """All that is written in it, or nothing. Nothing may be awaited inside: the connection is everybody's."""
        await self._run_alone("BEGIN IMMEDIATE")
        connection = self._connection()
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    async def _run_alone(self, statement: str) -> None:
        """Run what one process alone may do at a time; while another one does, other coroutines go on."""
        connection = self._connection()
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            finally:
                connection.execute(f"PRAGMA busy_timeout = {LOCKED_SECONDS * 1000:.0f}")
            await asyncio.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no secret

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        if options != TableOptions():
            raise BadInput("These options are for tables of DynamoDB; an SQLite file has none.")
        with self._translated():
            self._connection("rwc")
            await self._run_alone("PRAGMA journal_mode = WAL")
            async with self._transaction() as connection:
                if is_there := self._is_there():
                    check_layout(self.path, self._layout())
                for statement in (*SCHEMA, MARK) if not is_there else ():
                    connection.execute(statement)
        return not is_there

    async def migrate(self) -> object:
        with self._translated():
            async with self._transaction() as connection:
                if not self._is_there():
                    raise self._no_table()
                check_known(self.path, found := self._layout())
                connection.execute(MARK)
        return found

    def _is_there(self) -> bool:
        """Whether the file holds the table; raises BadInput where it is another program's."""
        found = [name for (name,) in self._connection().execute("SELECT name FROM pragma_table_info('items')")]
        if found and found != COLUMNS:
            raise BadInput(f'"{self.path}" holds a table "items" of something else; name another file.')
        return bool(found)

    def _layout(self) -> int:
        (version,) = self._connection().execute("PRAGMA user_version").fetchone()
        return version or 1  # as a table is whose version nobody kept

    async def describe(self) -> dict[str, Value]:
        with self._translated():
            one = self._connection().execute
            pages, size = one("PRAGMA page_count").fetchone()[0], one("PRAGMA page_size").fetchone()[0]
            items = one("SELECT count(*) FROM items").fetchone()[0]
            layout = self._layout()
        return {
            "name": self.path, "layout": str(layout), "status": "ACTIVE", "items": items, "bytes": pages * size,
            "indexes": sorted(index_name(index) for index in Index if index is not Index.TABLE), "ttl": "expires",
        }  # fmt: skip

    async def health(self) -> None:
        with self._translated():
            self._connection().execute("SELECT 1 FROM items LIMIT 1").fetchone()
            check_layout(self.path, self._layout())

    def _connection(self, mode: str = "rw") -> sqlite3.Connection:
        """The connection, opened as soon as there is a file; the mode `rwc` makes it."""
        if not self._entered:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        if self._open is None:
            self._open = _connect(self.path, mode)
        return self._open

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """The one border between sqlite3's errors and ours."""
        try:
            yield
        except FileNotFoundError as error:
            raise NoTable(f'There is no file "{self.path}"; make it with: clade table create') from error
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            raise self._translate(error) from error

    def _no_table(self) -> NoTable:
        return NoTable(f'"{self.path}" holds no table of Clade; make it with: clade table create')

    def _translate(self, error: sqlite3.Error) -> CladeError:
        if "no such table" in str(error):
            return self._no_table()
        reason = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "cannot be used now")
        return Unavailable(f'"{self.path}" {reason}.')


class _Snapshot(SQLiteStore):
    """Another connection to what a store holds, in one transaction that reads from its first read on."""

    def __init__(self, store: SQLiteStore) -> None:
        super().__init__(store.path)
        self._store = store
        self._decoded = store._decoded
        self._moment = object()

    def version(self) -> object:
        return self._moment

    def _connection(self, mode: str = "rw") -> sqlite3.Connection:
        opened = self._open
        connection = super()._connection(mode)
        if opened is None:
            if self.path == ":memory:":  # which no second connection sees
                self._store._connection().backup(connection)
            connection.execute("BEGIN")
        return connection


class _Apart(SQLiteStore):
    """Another connection, for a large commit alone, so that others have their turns while it is made."""

    async def _execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Sequence[Any]]) -> None:
        async for some in in_turns(values):
            connection.executemany(statement, some)


def _connect(path: str, mode: str) -> sqlite3.Connection:
    """Raises FileNotFoundError where the mode does not make the file."""
    memory = path == ":memory:"
    if not memory and mode == "rw" and not os.path.exists(path):
        raise FileNotFoundError(path)
    address = path if memory else f"file:{quote(path)}?mode={mode}"
    connection = sqlite3.connect(address, uri=not memory, isolation_level=None, timeout=LOCKED_SECONDS)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _row(item: Item) -> tuple[Value | bytes, ...]:
    kept = settled(item)
    body = _encode(kept)
    if len(body) > MAX_ITEM_BYTES // 4:  # msgpack is no more than that much shorter than what DynamoDB counts
        checked_size(kept)
    return (*map(kept.get, COLUMNS[:-1]), body)
