"""The store in one SQLite file: the same items in the same three orders as in DynamoDB.

Each call runs straight in the coroutine that makes it: a read takes less time than handing it to a thread would. What
gives way to other coroutines is waiting for another process's commit, and a large commit, over a connection of its own.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.engine.call_stats import CallStats
from store.engine.protocol import check_changes
from store.engine.record_cache import RecordCache
from store.engine.table_options import TableOptions
from store.engine.usage import ReadUsage, units_of
from store.errors import BadInput, Conflict
from store.metadata.schema_version import check_layout, check_supported
from store.model.attributes import Value
from store.model.items import (
    ABSENT,
    MAX_ITEM_BYTES,
    Change,
    Delete,
    Item,
    Put,
    canonical_item,
    checked_item_size,
    condition_holds,
)
from store.model.keys import Index, Key, index_name
from store.model.ranges import KeyRange, just_after
from store.model.records import Record
from store.sqlite.backup import (
    PAGES,
    allow_interrupt,
    atomic_file,
    check_other,
)
from store.sqlite.connection import (
    Connection,
    Database,
    IntegrityError,
    Snapshot,
    Undecodable,
)
from store.sqlite.sql import (
    COLUMNS,
    DELETE,
    EXPIRED,
    INSERT,
    MARK,
    PUT,
    SCAN,
    SCHEMA,
    count_page,
    where,
)

MAX_CHANGES = 2000  # of an import's commit, whose price is its flush to the disk; there is no bound
LARGE_CHANGES = MAX_CHANGES  # from which on others have their turns while a commit is made
SCAN_ITEMS = 1000  # in one page of a scan
COUNT_ROWS = 2500  # in one page of a count, which is some 1 MB of them
CHUNK = 100  # keys in one statement, as in one BatchGetItem
PURGE_SECONDS = 60.0  # between two removals of expired items
PURGE_ITEMS = 1000  # at most in one removal

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(dict[str, Any]).decode


class SQLiteStore:
    """A store in the file at `path`, or in memory where that is `:memory:`. Only `create` makes the file.

    Of the nodes that it reads, up to `keep_bytes` are kept decoded.
    """

    max_changes = MAX_CHANGES
    most_changes: int | None = None
    calls: CallStats | None = None

    def __init__(self, path: str, *, keep_bytes: int = 0) -> None:
        self.path = path
        self._decoded = RecordCache(keep_bytes)
        self._database = Database(path)
        self._large = asyncio.Lock()  # what has it is a large commit
        self._purged = -PURGE_SECONDS

    async def __aenter__(self) -> Self:
        self._database.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        wanted = list(dict.fromkeys(keys))
        found: dict[tuple[str, str], Item] = {}  # a Key is such a tuple
        with self._database.translated():
            for start in range(0, len(wanted), CHUNK):
                reads.check()
                chunk = wanted[start : start + CHUNK]
                rows = self._rows(chunk)
                missing = (len(chunk) - len(rows)) * units_of(0, strong=strong)
                reads.add(items=len(rows), units=sum(units_of(_size(r[2:]), strong=strong) for r in rows) + missing)
                found.update({(pk, sk): _decode(body) for pk, sk, body in rows})
        return [found.get(key) for key in keys]

    async def range(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        with self._database.translated():
            bodies = self._bodies(span, reads, limit, reverse, strong)
            items: list[Item] = []
            async for some in in_chunks(bodies, 4):  # which may be large
                items += map(_decode, some)
            return items

    async def nodes(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        bodies = self._bodies(span, reads, limit, reverse, False)
        records: list[Record] = []
        async for some in in_chunks(bodies):  # so that small requests are answered before a large one is decoded
            with self._database.translated():
                records += self._decoded.records(some, _record)
        return records

    def _bodies(self, span: KeyRange, reads: ReadUsage, limit: int | None, reverse: bool, strong: bool) -> list[bytes]:
        if limit == 0 or span.lo >= span.hi:
            return []
        reads.check()
        order = f"ORDER BY {span.index.sort} {'DESC' if reverse else 'ASC'} LIMIT ?"
        with self._database.translated():
            rows = self._database.connection().execute(
                f"SELECT body {where(span.index)} {order}",
                (span.partition, span.lo, span.hi, time.time(), -1 if limit is None else limit),
            )
            bodies: list[bytes] = []
            size = 0
            while some := rows.fetchmany(CHUNK_LENGTH):
                bodies += [row[0] for row in some]
                size += _size(bodies[-len(some) :])
                if units_of(size, strong=strong) > reads.limit - reads.units:
                    break
        reads.add(items=len(bodies), units=units_of(size, strong=strong))
        reads.check(0)
        return bodies

    async def count(self, span: KeyRange, reads: ReadUsage) -> int:
        lo, total = span.lo, 0
        while lo < span.hi:  # in pages, as DynamoDB counts, since each row is looked at
            reads.check()
            with self._database.translated():
                rows = self._database.connection().execute(
                    count_page(span.index), (span.partition, lo, span.hi, time.time(), COUNT_ROWS)
                )
                ((count, size, last),) = rows.fetchall()
            reads.add(items=0, units=units_of(int(size)))
            total += count
            if count < COUNT_ROWS:
                break
            lo = just_after(last)
            await yield_to_loop()
        return total

    async def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        after = ("", "")
        while True:
            with self._database.translated():
                rows = self._database.connection().execute(SCAN, (*after, time.time(), SCAN_ITEMS)).fetchall()
                size = _size([body for _, _, body in rows])
                page = [_at_key(pk, sk, _decode(body)) for pk, sk, body in rows]
            if not rows:
                return
            reads.add(items=len(rows), units=units_of(size, strong=True))
            yield page
            after = rows[-1][:2]

    def _rows(self, keys: Sequence[Key]) -> list[tuple[str, str, bytes]]:
        """Key and body of those items that there are, at most CHUNK at a time."""
        # A join on VALUES is one statement and a search for each key; IN (VALUES …) walks the whole table.
        asked = ", ".join(["(?, ?)"] * len(keys))
        rows = self._database.connection().execute(
            f"WITH asked (p, s) AS (VALUES {asked}) SELECT pk, sk, body FROM asked CROSS JOIN items "  # noqa: S608
            "ON pk = p AND sk = s WHERE expires IS NULL OR expires > ?",
            [*itertools.chain.from_iterable(keys), time.time()],
        )
        return rows.fetchall()

    def version(self) -> object:
        return self._database.version()  # where it is None, whoever reads is told

    def snapshot(self) -> "SQLiteStore":
        snapshot = SQLiteStore(self.path)
        snapshot._database = Snapshot(self._database)
        snapshot._decoded = self._decoded
        return snapshot

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> None:
        await check_changes(changes, self.most_changes)
        async with self._large:  # for its own large commit a process waits however long that takes, unlike for others'
            if len(changes) > LARGE_CHANGES and not self._database.is_in_memory:
                async with _Apart(self.path) as apart:
                    return await apart._commit(changes)
        await self._commit(changes)

    async def _commit(self, changes: Sequence[Change]) -> None:
        with self._database.translated():
            try:
                await self._write(changes, look=False)
            except IntegrityError:  # something lies where nothing may, if only what has expired
                await self._write(changes, look=True)

    async def _write(self, changes: Sequence[Change], *, look: bool) -> None:
        """Make all changes, or none. Unless it is to `look`, SQLite itself finds what lies where a new item goes."""
        conditions: list[tuple[int, Change]] = []
        new: list[tuple[Value | bytes, ...]] = []
        rows: list[tuple[Value | bytes, ...]] = []
        gone = [change.key for change in changes if isinstance(change, Delete)]
        async for some in in_chunks(list(enumerate(changes))):
            for place, change in some:
                inserted = not look and isinstance(change, Put) and change.when == ABSENT
                if change.when and not inserted:
                    conditions.append((place, change))
                if isinstance(change, Put):
                    (new if inserted else rows).append(_row(change.item))
        async with self._database.transaction() as connection:
            if failed := self._failed(conditions):
                raise Conflict.over(failed)
            for statement, values in ((DELETE, gone), (INSERT, sorted(new)), (PUT, sorted(rows))):
                await self._execute(connection, statement, values)
            self._purge(connection)

    async def _execute(self, connection: Connection, statement: str, values: Sequence[Sequence[Any]]) -> None:
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
        return tuple(place for place, change in conditions if not condition_holds(change.when, found.get(change.key)))

    def _purge(self, connection: Connection) -> None:
        """Remove some of what has expired, now and then, as part of a commit that is made anyway."""
        if time.monotonic() - self._purged >= PURGE_SECONDS:
            self._purged = time.monotonic()
            connection.executemany(DELETE, connection.execute(EXPIRED, (time.time(), PURGE_ITEMS)).fetchall())

    # -- the table -----------------------------------------------------------------------------------------------------

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        if options != TableOptions():
            raise BadInput("These options are for tables of DynamoDB; an SQLite file has none.")
        with self._database.translated():
            self._database.connection("rwc")
            await self._database.run_alone("PRAGMA journal_mode = WAL")
            async with self._database.transaction() as connection:
                if is_there := self._is_there():
                    check_layout(self.path, self._layout())
                for statement in (*SCHEMA, MARK) if not is_there else ():
                    connection.execute(statement)
        return not is_there

    async def migrate(self) -> object:
        with self._database.translated():
            async with self._database.transaction() as connection:
                if not self._is_there():
                    raise self._database.no_table()
                check_supported(self.path, found := self._layout())
                connection.execute(MARK)
        return found

    def _is_there(self) -> bool:
        """Whether the file holds the table; raises BadInput where it is another program's."""
        found = [name for (name,) in self._database.connection().execute("SELECT name FROM pragma_table_info('items')")]
        if found and found != COLUMNS:
            raise BadInput(f'"{self.path}" holds a table "items" of something else; name another file.')
        return bool(found)

    def _layout(self) -> int:
        (version,) = self._database.connection().execute("PRAGMA user_version").fetchone()
        return version or 1  # as a table is whose version nobody kept

    async def describe(self) -> dict[str, Value]:
        with self._database.translated():
            one = self._database.connection().execute
            pages, size = one("PRAGMA page_count").fetchone()[0], one("PRAGMA page_size").fetchone()[0]
            items = one("SELECT count(*) FROM items").fetchone()[0]
            layout = self._layout()
        return {
            "name": self.path, "layout": str(layout), "status": "ACTIVE", "items": items, "bytes": pages * size,
            "indexes": sorted(index_name(index) for index in Index if index is not Index.TABLE), "ttl": "expires",
        }  # fmt: skip

    async def health(self) -> None:
        with self._database.translated():
            self._database.connection().execute("SELECT 1 FROM items LIMIT 1").fetchone()
            self._database.check_log()
            check_layout(self.path, self._layout())

    async def check_integrity(self) -> None:
        await self._database.check_integrity()

    async def back_up(self, target: Path) -> None:
        """Write all of it to a file, as of one moment; raises Damaged where it is not whole."""
        check_other(target, self.path)
        async with self.snapshot() as seen:
            await seen.check_integrity()
            with atomic_file(target) as part:
                async with SQLiteStore(str(part)) as copy:
                    with copy._database.translated():
                        written = copy._database.connection("rwc")
                        seen._database.connection().backup(written, pages=PAGES, progress=allow_interrupt)

    async def put_back(self, source: Path) -> None:
        """Replace all of it by a backup, in one transaction, and make the file where there is none.

        Raises BadInput, Damaged or WrongLayout for a file that is none, and then nothing is changed.
        """
        check_other(source, self.path)
        async with SQLiteStore(str(source)) as backup:
            await backup.check_integrity()
            if not backup._is_there():
                raise backup._database.no_table()
            check_layout(str(source), backup._layout())
            await self.create()
            with self._database.translated():
                backup._database.connection().backup(self._database.connection())


class _Apart(SQLiteStore):
    """Another connection, for a large commit alone, so that others have their turns while it is made."""

    async def _execute(self, connection: Connection, statement: str, values: Sequence[Sequence[Any]]) -> None:
        async for some in in_chunks(values):
            connection.executemany(statement, some)


def _decode(body: bytes) -> Item:
    try:
        return _decoder(body)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise Undecodable(str(error)) from error


def _at_key(pk: str, sk: str, item: Item) -> Item:
    """An item that has the key that it was found at."""
    if (item.get("pk"), item.get("sk")) != (pk, sk):
        raise Undecodable("a row has another key than its content")
    return item


def _record(body: bytes) -> Record:
    return Record.of(_decode(body))


def _size(bodies: Iterable[object]) -> int:
    """How many bytes these have together."""
    try:
        return sum(map(len, bodies))  # type: ignore[arg-type]  # which they are not where a row is damaged
    except TypeError as error:
        raise Undecodable("a row has no content") from error


def _row(item: Item) -> tuple[Value | bytes, ...]:
    kept = canonical_item(item)
    body = _encode(kept)
    if len(body) > MAX_ITEM_BYTES // 4:  # msgpack is no more than that much shorter than what DynamoDB counts
        checked_item_size(kept)
    return (*map(kept.get, COLUMNS[:-1]), body)
