"""SQLite store: the same items and indexes as in DynamoDB, in one file.

Each call runs in the coroutine that makes it: a read takes less time than handing it to a thread would. Only waiting
for the commit of another process yields to other coroutines, and a large commit, over a connection of its own.
"""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Self

from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.engine import CallStats, ReadUsage, RecordCache, TableOptions, check_changes, units_of
from store.errors import BadInput, Conflict
from store.metadata.tree_version import check_layout
from store.model.attributes import Value
from store.model.keys import Index, Key, KeyRange, index_name, just_after
from store.model.records import ABSENT, Change, Delete, Item, Put, Record, condition_holds
from store.output_file import output_file
from store.sqlite.connection import OWN_MODE, Connection, Database, IntegrityError, Snapshot
from store.sqlite.table import (
    COLUMNS,
    DELETE,
    EXPIRED,
    INSERT,
    PUT,
    ROW,
    SCAN,
    SCHEMA,
    Row,
    checked_item,
    count_page,
    decode,
    decode_record,
    row_of,
    sizes,
    where,
)

MAX_CHANGES = 2000  # in a commit of an import, whose cost is the flush to the disk; there is no limit
LARGE_CHANGES = MAX_CHANGES  # above which a commit yields to other coroutines
SCAN_ITEMS = 1000  # in one page of a scan
COUNT_ROWS = 2500  # in one page of a count, which is some 1 MB of them
CHUNK = 100  # keys in one statement, as in one BatchGetItem
PURGE_SECONDS = 60.0  # between two removals of expired items
PURGE_ITEMS = 1000  # at most in one removal
PAGES = 1000  # of a backup, copied between two looks at whether the task is cancelled


class SQLiteStore:
    """The store in the file at `path`, or in memory for `:memory:`. Only `create` makes the file.

    Up to `keep_bytes` of decoded records are cached.
    """

    max_changes = MAX_CHANGES
    max_commit_changes: int | None = None
    is_embedded = True
    calls: CallStats | None = None

    def __init__(self, path: str, *, keep_bytes: int = 0) -> None:
        self.path = path
        self._decoded = RecordCache(keep_bytes)
        self.database = Database(path)
        self._commits = asyncio.Lock()
        self._purged = -PURGE_SECONDS
        self._yields = False  # to other coroutines within a transaction

    async def __aenter__(self) -> Self:
        self.database.enter()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.database.close()

    def now(self) -> float:
        return time.time()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
        with self.database.translated():
            for start in range(0, len(wanted), CHUNK):
                reads.check()
                chunk = wanted[start : start + CHUNK]
                rows = self._rows(chunk)
                units = sum([units_of(size, strong=strong) for size in sizes(rows)])
                units += (len(chunk) - len(rows)) * units_of(0, strong=strong)
                reads.add(items=len(rows), units=units)
                if reads.trace is not None:
                    reads.trace.add_keys("SELECT", chunk, items=len(rows), units=units, strong=strong)
                found.update({row[1:3]: decode(*row) for row in rows})
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
            rows = self._selected(ROW, key_range, reads, limit, reverse, strong)
            items: list[Item] = []
            async for chunk in in_chunks(rows, 4):  # items may be large
                items += itertools.starmap(decode, chunk)
            return items

    async def nodes(
        self, key_range: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        bodies = [row[0] for row in self._selected("body", key_range, reads, limit, reverse, False)]
        again = self._decoded.is_read_again(key_range)
        records: list[Record] = []
        async for chunk in in_chunks(bodies):  # so that small requests are answered before a large one is decoded
            with self.database.translated():
                records += self._decoded.records(chunk, decode_record) if again else map(decode_record, chunk)
        return records

    def _selected(
        self, columns: str, key_range: KeyRange, reads: ReadUsage, limit: int | None, reverse: bool, strong: bool
    ) -> list[Any]:
        """These columns, which begin with the body, of the rows of a range."""
        if limit == 0 or key_range.lo >= key_range.hi:
            return []
        reads.check()
        order = f"ORDER BY {key_range.index.sort} {'DESC' if reverse else 'ASC'} LIMIT ?"
        with self.database.translated():
            rows = self.database.connection().execute(
                f"SELECT {columns} {where(key_range.index)} {order}",
                (key_range.partition, key_range.lo, key_range.hi, self.now(), -1 if limit is None else limit),
            )
            found: list[Any] = []
            size = 0
            while some := rows.fetchmany(CHUNK_LENGTH):
                found += some
                size += sum(sizes(some))
                if units_of(size, strong=strong) > reads.units_left:
                    break
        units = units_of(size, strong=strong)
        reads.add(items=len(found), units=units)
        if reads.trace is not None:
            reads.trace.add_range(
                "SELECT", key_range, items=len(found), units=units, limit=limit, reverse=reverse, strong=strong
            )
        reads.check(0)
        return found

    async def count(self, key_range: KeyRange, reads: ReadUsage) -> int:
        lo, total = key_range.lo, 0
        while lo < key_range.hi:  # in pages, as DynamoDB counts, since each row is read
            reads.check()
            with self.database.translated():
                rows = self.database.connection().execute(
                    count_page(key_range.index), (key_range.partition, lo, key_range.hi, self.now(), COUNT_ROWS)
                )
                ((count, size, last),) = rows.fetchall()
            units = units_of(int(size))
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
                rows = self.database.connection().execute(SCAN, (*after, self.now(), SCAN_ITEMS)).fetchall()
                size = sum(sizes(rows))
                page = list(map(checked_item, rows))
            if not rows:
                return
            reads.add(items=len(rows), units=units_of(size, strong=True))
            yield page
            after = rows[-1][1:3]

    def _rows(self, keys: Sequence[Key]) -> list[Row]:
        """The rows of the items that exist, of at most CHUNK keys."""
        # A join on VALUES is one statement and a search for each key; IN (VALUES …) walks the whole table.
        pairs = ", ".join(["(?, ?)"] * len(keys))
        rows = self.database.connection().execute(
            f"WITH wanted (p, s) AS (VALUES {pairs}) SELECT {ROW} FROM wanted CROSS JOIN items "  # noqa: S608
            "ON pk = p AND sk = s WHERE expires IS NULL OR expires > ?",
            [*itertools.chain.from_iterable(keys), self.now()],
        )
        return rows.fetchall()

    def version(self) -> object:
        return self.database.version()

    def snapshot(self) -> "SQLiteStore":
        snapshot = SQLiteStore(self.path)
        snapshot.database = Snapshot(self.database)
        snapshot._decoded = self._decoded
        return snapshot

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, self.max_commit_changes)
        async with self._commits:  # so that small ones wait for a large one as long as it takes, without BUSY_SECONDS
            if len(changes) > LARGE_CHANGES and not self.database.is_in_memory:
                store = SQLiteStore(self.path)
                store.database = Database(self.path, self.database.file)
                store._yields = True
                async with store:
                    return await store._commit(changes)
        await self._commit(changes)

    async def _commit(self, changes: Sequence[Change]) -> None:
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
        async for chunk in in_chunks(list(enumerate(changes))):
            for place, change in chunk:
                inserted = not check_absent and isinstance(change, Put) and change.when == ABSENT
                if change.when and not inserted:
                    conditions.append((place, change))
                if isinstance(change, Put):
                    (new if inserted else rows).append(row_of(change.item))
        async with self.database.transaction() as connection:
            if failed := self._failed(conditions):
                raise Conflict.over(failed)
            for statement, values in ((DELETE, gone), (INSERT, sorted(new)), (PUT, sorted(rows))):
                # Over a shared connection in one chunk: where it yielded, others would write into this transaction.
                async for some in in_chunks(values, CHUNK_LENGTH if self._yields else len(values)):
                    connection.executemany(statement, some)
            self._purge(connection)

    def _failed(self, conditions: Sequence[tuple[int, Change]]) -> tuple[int, ...]:
        """The indexes of the changes whose conditions are not fulfilled."""
        found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
        for start in range(0, len(conditions), CHUNK):
            chunk = [change.key for _, change in conditions[start : start + CHUNK]]
            found.update({row[1:3]: decode(*row) for row in self._rows(chunk)})
        return tuple(place for place, change in conditions if not condition_holds(change.when, found.get(change.key)))

    def _purge(self, connection: Connection) -> None:
        """Delete some expired items, at most once in PURGE_SECONDS, as a part of another commit."""
        if time.monotonic() - self._purged >= PURGE_SECONDS:
            self._purged = time.monotonic()
            connection.executemany(DELETE, connection.execute(EXPIRED, (self.now(), PURGE_ITEMS)).fetchall())

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        if options != TableOptions():
            raise BadInput("These options are for tables of DynamoDB; an SQLite file has none.")
        with self.database.translated():
            made = self.database.connection("rwc")
            if not self._has_table() and made.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise BadInput(f'"{self.path}" is the database of another program; use another file.')
            await self.database.run_alone("PRAGMA journal_mode = WAL")
            async with self.database.transaction() as connection:
                if exists := self._has_table():
                    check_layout(self.path, self._layout())
                for statement in SCHEMA if not exists else ():
                    connection.execute(statement)
        return not exists

    def _has_table(self) -> bool:
        """Whether the file holds the table; raises BadInput where it is that of another program."""
        found = [name for (name,) in self.database.connection().execute("SELECT name FROM pragma_table_info('items')")]
        if found and found != COLUMNS:
            raise BadInput(f'"{self.path}" has a table "items" of another program; use another file.')
        return bool(found)

    def _layout(self) -> int | None:
        (version,) = self.database.connection().execute("PRAGMA user_version").fetchone()
        return version or None  # 0 is that of a file without one

    async def describe(self) -> dict[str, Value]:
        with self.database.translated():
            execute = self.database.connection().execute
            pages, size = execute("PRAGMA page_count").fetchone()[0], execute("PRAGMA page_size").fetchone()[0]
            items = execute("SELECT count(*) FROM items").fetchone()[0]
            layout = self._layout()
        return {
            "name": self.path, "layout": str(layout), "status": "ACTIVE", "items": items, "bytes": pages * size,
            "indexes": sorted(index_name(index) for index in Index if index is not Index.TABLE), "ttl": "expires",
        }  # fmt: skip

    async def health(self) -> None:
        with self.database.translated():
            self.database.connection().execute("SELECT 1 FROM items LIMIT 1").fetchone()
            check_layout(self.path, self._layout())

    async def check_transactions(self) -> None:
        """Nothing: SQLite has transactions."""

    async def check_integrity(self) -> None:
        await self.database.check_integrity()

    async def back_up(self, target: Path) -> None:
        """Write a snapshot to a file; raises Damaged where the store is corrupt."""
        _check_other(target, self.path)
        async with self.snapshot() as snapshot:
            await snapshot.check_integrity()
            with output_file(target, OWN_MODE) as part:
                async with SQLiteStore(part.name) as copy:
                    with copy.database.translated():
                        written = copy.database.connection()
                        snapshot.database.connection().backup(written, pages=PAGES, progress=_stop_if_cancelled)

    async def put_back(self, source: Path, held: tuple[KeyRange, Sequence[Item]] | None = None) -> None:
        """Replace the content by a backup, in one transaction; the file is made where it does not exist.

        Raises BadInput, Damaged or WrongLayout for a file that is no backup, and Conflict where the range of the table
        in `held` has other items than these when nobody else can write any more; then it changes nothing.
        """
        _check_other(source, self.path)
        async with SQLiteStore(str(source)) as backup:
            await backup.check_integrity()
            if not backup._has_table():
                raise BadInput(f'"{source}" has no table of Clade; name a file that clade backup wrote.')
            check_layout(backup.path, backup._layout())
            await self.create()
            copied = backup.database.connection()
            (pages,) = copied.execute("PRAGMA page_count").fetchone()
            async with SQLiteStore(self.path) as present:

                def look(status: int, *_: int) -> None:
                    _stop_if_cancelled()
                    if held is not None and not status and present._in_range(held[0]) != held[1]:  # it has the lock
                        raise Conflict(f'"{self.path}" was written to meanwhile, so nothing was changed; try again.')

                with self.database.translated():
                    # The last step commits, so there is one before it.
                    copied.backup(self.database.connection(), pages=min(PAGES, pages - 1), progress=look)
                    self.database.check_written()

    def _in_range(self, key_range: KeyRange) -> list[Item]:
        return list(itertools.starmap(decode, self._selected(ROW, key_range, ReadUsage(), None, False, True)))


def _check_other(file: Path, path: str) -> None:
    """Raise BadInput where the file of a backup is that of the store at `path`."""
    if file.exists() and os.path.exists(path) and file.samefile(path):
        raise BadInput(f"{file} is the store itself; use another file.")


def _stop_if_cancelled(*_: int) -> None:
    """A progress callback, which ends SQLite's copy where the task is cancelled meanwhile."""
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError
