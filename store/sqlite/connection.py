"""One SQLite file: how it is opened, its transactions, and what its errors are called here."""

import asyncio
import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from sqlite3 import Connection as Connection
from sqlite3 import IntegrityError as IntegrityError
from urllib.parse import quote

from store.errors import CladeError, Damaged, Forbidden, NoTable, Unavailable, Uncertain
from store.retry import RetryPolicy
from store.sqlite.database_file import File, make
from store.sqlite.sql import MARK, SCHEMA
from store.store_url import IN_MEMORY
from store.text import shorten

logger = logging.getLogger("clade")

CHECKPOINT_PAGES = 4000  # when the log is written back to the file; more saves rewriting pages during an import
LOG_BYTES = 64_000_000  # to which the log is cut when it was longer, as after a large import
BUSY_SECONDS = 10.0  # how long a commit waits for those of other processes
BUSY_RETRIES = RetryPolicy(0.01, 0.01, deadline_seconds=BUSY_SECONDS)
LOOK_SECONDS = 0.001  # between two looks, by reads, at whether the file is still at its path
LOCKED_SECONDS = 1.0  # how long a read does, which happens only while another process mends the log after a crash
STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's, which take some milliseconds
FAULT_CHARACTERS = 200

_REASONS = {
    sqlite3.SQLITE_NOTADB: "is no SQLite database; name another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened or made; see that its directory exists and may be written",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_BUSY: "is being written by another process; try again",
    sqlite3.SQLITE_LOCKED: "is being written by another process; try again",
    sqlite3.SQLITE_FULL: "cannot grow, since the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk fails",
}


class Undecodable(Exception):
    """A row holds something else than what was written to it."""


class Database:
    """The file at `path`, or what lives in memory where that is `:memory:`, over one connection."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._entered = False
        self._open: Connection | None = None
        self._file: File | None = None  # which the connection has opened
        self._times = 0  # that a file was opened
        self._looked = 0.0  # when it was looked whether it is still at its path

    @property
    def is_in_memory(self) -> bool:
        """Whether no second connection sees it."""
        return self.path == IN_MEMORY

    def enter(self) -> None:
        """From now on it is opened as soon as there is a file, at the latest by whoever reads."""
        self._entered = True
        with contextlib.suppress(Unavailable), self.translated():  # whoever reads is told, and later it may be there
            self.connection()
        if self._file is not None and not self._file.is_writable:
            logger.warning('"%s" cannot be written, so it is only read.', self.path)

    def close(self) -> None:
        self._entered = False
        if self._open is not None:
            if self._open.in_transaction:
                self._open.execute("ROLLBACK")
            self._leave(self._open)

    def connection(self, mode: str = "rw") -> Connection:
        """The connection to the file that is at the path now, opened as soon as there is one; the mode `rwc` makes it.

        Within a transaction it stays the same.
        """
        if not self._entered:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        if self._open is not None and self._seems_moved() and not self._open.in_transaction:
            self._leave(self._open)
        if self._open is None:
            self._open, self._file = _opened(self.path, mode)
            self._times += 1
        return self._open

    def _seems_moved(self) -> bool:
        """Whether the file has moved, as of a moment ago: looking takes longer than many a read, and a commit looks
        again.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        return self._has_moved

    @property
    def _has_moved(self) -> bool:
        return self._file is not None and self._file.has_moved

    def _leave(self, connection: Connection) -> None:
        """Close the connection. A file that was replaced gets all that was written to it, and takes its log along."""
        try:
            if self._file is not None and self._file.has_moved:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
                self._file.discard_log()
        finally:
            self._open = self._file = None
            connection.close()

    def version(self) -> object:
        """A value that differs after any write by anyone, or None where there is nothing to be read."""
        try:
            connection = self.connection()
            return self._times, connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes
        except (sqlite3.Error, FileNotFoundError):
            return None

    def check_log(self) -> None:
        """Raise Unavailable where the log is gone that commits are written to."""
        if self._file is not None and (log := self._file.lost_log()) is not None:
            raise Unavailable(
                f'"{log}" was removed or replaced while it was in use; restart all processes that use "{self.path}".'
            )

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """All that is written in it, or nothing. Who shares the connection may await nothing inside."""
        await self.run_alone("BEGIN IMMEDIATE")
        connection = self.connection()
        try:
            yield connection
            self.check_log()
            if self._has_moved:
                raise Unavailable(
                    f'"{self.path}" was replaced or removed meanwhile, so nothing was changed; try again.'
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if self._has_moved:
            raise Uncertain.after(Unavailable(f'"{self.path}" was replaced or removed while it was written.'))

    async def run_alone(self, statement: str) -> None:
        """Run what one process alone may do at a time; while another one does, other coroutines go on."""
        connection = self.connection()
        pauses = BUSY_RETRIES.pauses()
        while True:
            try:
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                pause = next(pauses, None) if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY else None
                if pause is None:
                    raise
            finally:
                connection.execute(f"PRAGMA busy_timeout = {LOCKED_SECONDS * 1000:.0f}")
            await asyncio.sleep(pause)

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """The one border between sqlite3's errors and ours."""
        try:
            yield
        except FileNotFoundError as error:
            raise NoTable(f'There is no file "{self.path}"; make it with: clade table create') from error
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except Undecodable as error:
            raise self._damaged(str(error)) from error

    async def check_integrity(self) -> None:
        """Raise Damaged where pages, rows and indexes do not fit together; whoever cancels it need not wait for it."""
        with self.translated():
            connection, task = self.connection(), asyncio.current_task()
            if task is not None:
                connection.set_progress_handler(task.cancelling, STEPS_BETWEEN_LOOKS)
            try:
                faults = [fault for (fault,) in connection.execute("PRAGMA integrity_check(1)") if fault != "ok"]
            except sqlite3.OperationalError:
                await asyncio.sleep(0)  # which ends it where it was interrupted for that
                raise
            finally:
                connection.set_progress_handler(None, 0)
        if faults:
            raise self._damaged(faults[0])

    def _damaged(self, fault: str) -> Damaged:
        fault = shorten(" ".join(fault.split()), FAULT_CHARACTERS)
        return Damaged(
            f'"{self.path}" is damaged ({fault}). Put a backup in its place, or make it anew from an export.'
        )

    def no_table(self) -> NoTable:
        return NoTable(f'"{self.path}" holds no table of Clade; make it with: clade table create')

    def _translate(self, error: sqlite3.Error) -> CladeError:
        if "no such table" in str(error):
            return self.no_table()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT or "decode" in str(error):
            return self._damaged(str(error))
        if code == sqlite3.SQLITE_READONLY:
            return Forbidden("The store can only be read here: its file, or the directory of that, cannot be written.")
        reason = _REASONS.get(code, "cannot be used now")
        return Unavailable(f'"{self.path}" {reason}.')


class Snapshot(Database):
    """What a database holds, over another connection, in one transaction that reads from its first read on."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.path)
        self._database = database
        self._moment = object()

    def version(self) -> object:
        return self._moment

    def connection(self, mode: str = "rw") -> Connection:
        opened = self._open
        connection = super().connection(mode)
        if opened is None:
            if self.is_in_memory:
                self._database.connection().backup(connection)
            connection.execute("BEGIN")
        return connection


def _opened(path: str, mode: str) -> tuple[Connection, File | None]:
    """A connection and the file that it has opened, or None and a table in memory; raises FileNotFoundError."""
    if path == IN_MEMORY:
        connection = _connect(path, mode)
        for statement in (*SCHEMA, MARK):
            connection.execute(statement)
        return connection, None
    if mode == "rwc":
        make(path)
    while True:
        before = File(path)
        connection = _connect(path, before.options(mode))
        if not before.has_moved:
            return connection, File(path)
        connection.close()


def _connect(path: str, options: str) -> Connection:
    memory = path == IN_MEMORY
    if not memory and options == "mode=rw" and not os.path.exists(path):
        raise FileNotFoundError(path)
    address = path if memory else f"file:{quote(path)}?{options}"
    connection = sqlite3.connect(address, uri=not memory, isolation_level=None, timeout=LOCKED_SECONDS)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        connection.execute("PRAGMA schema_version").fetchone()  # from this first read on it holds file and log
    except BaseException:
        connection.close()
        raise
    return connection
