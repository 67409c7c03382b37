"""SQLite store: the same items and indexes as in DynamoDB, in one file.

Each read runs in the coroutine that makes it: it takes less time than handing it to a thread would. Commits have a
connection of their own, so that others read meanwhile: they yield between their rows, while they wait for another
process, and while a thread waits for the disk.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.engine.protocol import TableOptions, check_changes
from store.engine.record_cache import RecordCache
from store.engine.usage import CallStats, ReadUsage, units_of
from store.errors import BadInput, Conflict
from store.metadata.move_record import PARTITION
from store.model.attributes import Value
from store.model.items import ABSENT, Change, Delete, Item, Put, condition_holds
from store.model.keys import Key
from store.model.ranges import KeyRange, just_after
from store.model.records import Record
from store.sqlite.backup import PAGES, allow_interrupt, atomic_file, check_other
from store.sqlite.connection import Connection, Database, IntegrityError, Snapshot
from store.sqlite.rows import ROW_BYTES, Row, decode, decode_record, row_of, total_size
from store.sqlite.sql import DELETE, EXPIRED, INSERT, NODE_ROW, PUT, ROW, RUNNING_MOVES, SCAN, count_page, where
from store.sqlite.table import Table

MAX_CHANGES = 2000  # in a commit of an import, whose cost is the flush to the disk; there is no limit
ROWS = 100  # that a commit writes between two looks whether others wait, some milliseconds
SCAN_ITEMS = 1000  # in one page of a scan
COUNT_ROWS = 2500  # in one page of a count, which is some 1 MB of them
CHUNK = 100  # keys in one statement, as in one BatchGetItem
PURGE_SECONDS = 60.0  # between two removals of expired items
PURGE_ITEMS = 1000  # at most in one removal


T = TypeVar("T")


class SQLiteStore:
    """The store in the file at `path`, or in memory for `:memory:`. Only `create` makes the file.

    Up to `keep_bytes` of decoded records are cached.
    """

    max_changes = MAX_CHANGES
    max_commit_changes: int | None = None
    calls: CallStats | None = None
    is_remote = False

    def __init__(self, path: str, *, keep_bytes: int = 0) -> None:
        self.path = path
        self._decoded = RecordCache(keep_bytes)
        self.database = Database(path)
        self._commits = asyncio.Lock()
        self._purged = -PURGE_SECONDS

    async def __aenter__(self) -> Self:
        self.database.enter()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.database.close()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
        with self.database.translated():
            for start in range(0, len(wanted), CHUNK):
                reads.check()
                chunk = wanted[start : start + CHUNK]
                rows = _rows(self.database.connection(), chunk)
                units = sum(units_of(total_size([row]), strong=strong) for row in rows)
                units += (len(chunk) - len(rows)) * units_of(0, strong=strong)
                reads.add(items=len(rows), units=units)
                if reads.trace is not None:
                    reads.trace.add_keys("SELECT", chunk, items=len(rows), units=units, strong=strong)
                found.update({row[:2]: decode(row) for row in rows})
        return [found.get(key) for key in keys]

    async def range(
        self,
        key_range: KeyRange,
        reads: ReadUsage,
        *,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = False,
    ) -> list[Item]:
        with self.database.translated():
            rows = self._rows(ROW, key_range, reads, limit, reverse, strong)
            items: list[Item] = []
            async for chunk in in_chunks(rows, 4):  # items may be large
                items += map(decode, chunk)
            return items

    async def nodes(
        self, key_range: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        rows = self._rows(NODE_ROW, key_range, reads, limit, reverse, False)
        records: list[Record] = []
        async for chunk in in_chunks(rows):  # so that small requests are answered before a large one is decoded
            with self.database.translated():
                records += self._decoded.records(chunk, decode_record)
        return records

    def _rows(
        self, columns: str, key_range: KeyRange, reads: ReadUsage, limit: int | None, reverse: bool, strong: bool
    ) -> list[Row]:
        if limit == 0 or key_range.lo >= key_range.hi:
            return []
        reads.check()
        order = f"ORDER BY {key_range.index.sort} {'DESC' if reverse else 'ASC'} LIMIT ?"
        with self.database.translated():
            found = self.database.connection().execute(
                f"SELECT {columns} {where(key_range.index)} {order}",
                (key_range.partition, key_range.lo, key_range.hi, time.time(), -1 if limit is None else limit),
            )
            rows: list[Row] = []
            size = 0
            while some := found.fetchmany(CHUNK_LENGTH):
                rows += some
                size += total_size(some)
                if units_of(size, strong=strong) > reads.limit - reads.units:
                    break
        units = units_of(size, strong=strong)
        reads.add(items=len(rows), units=units)
        if reads.trace is not None:
            reads.trace.add_range(
                "SELECT", key_range, items=len(rows), units=units, limit=limit, reverse=reverse, strong=strong
            )
        reads.check(0)
        return rows

    async def count(self, key_range: KeyRange, reads: ReadUsage) -> int:
        lo, total = key_range.lo, 0
        while lo < key_range.hi:  # in pages, as DynamoDB counts, since each row is read
            reads.check()
            with self.database.translated():
                rows = self.database.connection().execute(
                    count_page(key_range.index), (key_range.partition, lo, key_range.hi, time.time(), COUNT_ROWS)
                )
                ((count, size, last),) = rows.fetchall()
            units = units_of(int(size) + ROW_BYTES * count)
            reads.add(items=0, units=units)
            if reads.trace is not None:
                after = None if lo == key_range.lo else lo[:-1]
                reads.trace.add_range("SELECT", key_range, items=0, units=units, count=True, after=after)
            total += count
            if count < COUNT_ROWS:
                break
            lo = just_after(last)
            await yield_to_loop()
        return total

    async def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        after = ("", "")
        while True:
            with self.database.translated():
                rows = self.database.connection().execute(SCAN, (*after, time.time(), SCAN_ITEMS)).fetchall()
                size = total_size(rows)
                page = list(map(decode, rows))
            if not rows:
                return
            reads.add(items=len(rows), units=units_of(size, strong=True))
            yield page
            after = rows[-1][:2]

    def token(self) -> object:
        return self.database.version()

    def may_have_moves(self) -> bool:
        with self.database.translated():
            return self.database.connection().execute(RUNNING_MOVES, (PARTITION,)).fetchone() is not None

    def snapshot(self) -> "SQLiteStore":
        snapshot = SQLiteStore(self.path)
        snapshot.database = Snapshot(self.database)
        snapshot._decoded = self._decoded
        return snapshot

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, self.max_commit_changes)
        # One after another, so that small ones wait for a large one as long as it takes, without BUSY_SECONDS.
        async with self._commits:
            with self.database.translated():
                try:
                    await self._write(changes, check_absent=False)
                except IntegrityError:  # an item is at the key of a new one, perhaps an expired one
                    await self._write(changes, check_absent=True)

    async def _write(self, changes: Sequence[Change], *, check_absent: bool) -> None:
        """Make all changes, or none; with `check_absent` also check the keys of new items, which INSERT does else."""
        conditions: list[tuple[int, Change]] = []
        new: list[tuple[Value | bytes, ...]] = []
        rows: list[tuple[Value | bytes, ...]] = []
        gone = [change.key for change in changes if isinstance(change, Delete)]
        async for chunk in in_chunks(range(len(changes))):
            for place in chunk:
                change = changes[place]
                inserted = not check_absent and isinstance(change, Put) and change.when == ABSENT
                if change.when and not inserted:
                    conditions.append((place, change))
                if isinstance(change, Put):
                    (new if inserted else rows).append(row_of(change.item, is_canonical=change.is_canonical))
        async with self.database.transaction() as connection:
            failed: list[int] = []
            async for some in self._in_pieces(conditions):
                failed += _failed(connection, some)
            if failed:
                raise Conflict.over(tuple(failed))
            for statement, values in ((DELETE, gone), (INSERT, sorted(new)), (PUT, sorted(rows))):
                async for piece in self._in_pieces(values):
                    connection.executemany(statement, piece)
            async for piece in self._in_pieces(self._expired(connection)):
                connection.executemany(DELETE, piece)

    def _in_pieces(self, values: Sequence[T]) -> in_chunks[T]:
        """Pieces of ROWS, yielding between two; one in memory, where others would write into the same transaction."""
        return in_chunks(values, max(ROWS, len(values) if self.database.is_in_memory else 0))

    def _expired(self, connection: Connection) -> list[Key]:
        """Some expired items, which are deleted as a part of another commit, at most once in PURGE_SECONDS."""
        if time.monotonic() - self._purged < PURGE_SECONDS:
            return []
        self._purged = time.monotonic()
        return [Key(*key) for key in connection.execute(EXPIRED, (time.time(), PURGE_ITEMS))]

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        async with self._commits:
            return await Table(self.database).create(options)

    async def describe(self) -> dict[str, Value]:
        return Table(self.database).describe()

    async def health(self) -> None:
        Table(self.database).check_health()

    async def check_transactions(self) -> None:
        """Nothing: SQLite has transactions."""

    async def check_integrity(self) -> None:
        await self.database.check_integrity()

    async def back_up(self, target: Path) -> None:
        """Write a snapshot to a file; raises Damaged where the store is corrupt."""
        check_other(target, self.path)
        async with self.snapshot() as snapshot:
            await snapshot.check_integrity()
            with atomic_file(target) as part:
                async with SQLiteStore(str(part)) as copy:
                    with copy.database.translated():
                        written = copy.database.connection("rwc")
                        snapshot.database.connection().backup(written, pages=PAGES, progress=allow_interrupt)

    async def put_back(self, source: Path) -> None:
        """Replace the content by a backup, in one transaction; the file is made where it does not exist.

        Raises BadInput, Damaged or WrongLayout for a file that is no backup, and then changes nothing.
        """
        check_other(source, self.path)
        async with SQLiteStore(str(source)) as backup:
            await backup.check_integrity()
            table = Table(backup.database)
            if not table.exists():
                raise BadInput(f'"{source}" has no table of Clade; name a file that clade backup wrote.')
            table.check_version()
            await self.create()
            with self.database.translated():
                backup.database.connection().backup(self.database.connection())


def _rows(connection: Connection, keys: Sequence[Key]) -> list[Row]:
    """The rows of the items that exist, of at most CHUNK keys."""
    # A join on VALUES is one statement and a search for each key; IN (VALUES …) walks the whole table.
    pairs = ", ".join(["(?, ?)"] * len(keys))
    rows = connection.execute(
        f"WITH wanted (p, s) AS (VALUES {pairs}) SELECT {ROW} FROM wanted CROSS JOIN items "  # noqa: S608
        "ON pk = p AND sk = s WHERE expires IS NULL OR expires > ?",
        [*itertools.chain.from_iterable(keys), time.time()],
    )
    return rows.fetchall()


def _failed(connection: Connection, conditions: Sequence[tuple[int, Change]]) -> list[int]:
    """The indexes of the changes whose conditions are not fulfilled."""
    found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
    for start in range(0, len(conditions), CHUNK):
        keys = [change.key for _, change in conditions[start : start + CHUNK]]
        found.update({row[:2]: decode(row) for row in _rows(connection, keys)})
    return [place for place, change in conditions if not condition_holds(change.when, found.get(change.key))]
