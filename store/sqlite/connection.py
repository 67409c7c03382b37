"""SQLite connection: opening a file, transactions, and translation of errors."""

import asyncio
import contextlib
import logging
import os
import shlex
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from sqlite3 import Connection as Connection
from sqlite3 import IntegrityError as IntegrityError
from typing import cast
from urllib.parse import quote

from store.errors import CladeError, Damaged, Forbidden, NoTable, Unavailable, Uncertain
from store.retry import RetryPolicy
from store.sqlite.database_file import File, make
from store.sqlite.sql import MARK, SCHEMA
from store.store_url import IN_MEMORY
from store.text import shorten

logger = logging.getLogger("clade")

CHECKPOINT_PAGES = 4000  # of the log until it is written back; a large number saves rewriting pages during an import
LOG_BYTES = 64_000_000  # to which the log is truncated, as after a large import
SCRATCH_CACHE_KB = 48_000
BUSY_SECONDS = 10.0  # a commit waits for those of other processes
BUSY_RETRIES = RetryPolicy(0.01, 0.01, deadline_seconds=BUSY_SECONDS)
LOOK_SECONDS = 0.001  # between two checks, by reads, that the file is still at its path
LOCKED_SECONDS = 1.0  # a read waits, while another process recovers the log after a crash
CHECK_STEPS = 100_000  # of SQLite's virtual machine, some milliseconds, between two checks for cancellation
FAULT_CHARACTERS = 200

_REASONS = {
    sqlite3.SQLITE_NOTADB: "is no SQLite database; name another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened or made; check that its directory exists and can be written",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_BUSY: "is being written by another process; try again",
    sqlite3.SQLITE_LOCKED: "is being written by another process; try again",
    sqlite3.SQLITE_FULL: "cannot grow, since the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk fails",
}


class Undecodable(Exception):
    """The content of a row is not what was written to it."""


class Database:
    """One connection to the file at `path`, and one more for its transactions, so that others do not read what is not
    committed; for `:memory:` one connection to a database in memory.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._entered = False
        self._open: Connection | None = None
        self._writing: Connection | None = None  # to the same file, of transactions; opened for the first one
        self._file: File | None = None  # that the connection has opened
        self._openings = 0  # number of times that a file was opened
        self._checked = 0.0  # time of the last check that the file is still at its path

    @property
    def is_in_memory(self) -> bool:
        """Whether only this connection can read it."""
        return self.path == IN_MEMORY

    def enter(self) -> None:
        """Open the file, or leave that to the first read where it does not exist yet."""
        self._entered = True
        with (
            contextlib.suppress(Unavailable),
            self.translated(),
        ):  # a read raises it again
            self.connection()
        if self._file is not None and not self._file.is_writable:
            logger.warning('"%s" cannot be written; it is opened read-only.', self.path)

    def close(self) -> None:
        self._entered = False
        if self._open is not None:
            for connection in (self._open, self._writing):
                if connection is not None and connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._leave(self._open)

    def connection(self, mode: str = "rw") -> Connection:
        """The connection to the file that is at the path now, opened if necessary; the mode `rwc` makes the file.

        Within a transaction it stays the same. Raises FileNotFoundError.
        """
        if not self._entered:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        if self._open is not None and self._seems_moved() and not self._is_in_transaction:
            self._leave(self._open)
        if self._open is None:
            self._open, self._file = _opened(self.path, mode)
            self._openings += 1
        return self._open

    def _connection_for_writing(self) -> Connection:
        connection = self.connection()
        if self.is_in_memory:
            return connection
        while self._writing is None:
            self._writing = _connect(self.path, cast(File, self._file).options("rw"))
            self._writing.execute("PRAGMA busy_timeout = 0")  # coroutines continue while it waits for its turn
            if self._has_moved:  # it may be another file
                self._leave(connection)
                connection = self.connection()
        return self._writing

    @property
    def _is_in_transaction(self) -> bool:
        return any(one is not None and one.in_transaction for one in (self._open, self._writing))

    def _seems_moved(self) -> bool:
        """Whether the file has moved, checked at most every LOOK_SECONDS: a check takes longer than a small read.

        A commit checks again.
        """
        now = time.monotonic()
        if now - self._checked < LOOK_SECONDS:
            return False
        self._checked = now
        if self._has_moved:
            return True
        self._save_log()
        return False

    @property
    def _has_moved(self) -> bool:
        return self._file is not None and self._file.has_moved

    def _save_log(self) -> None:
        """Write a log back to the file where it was removed: what is in it would end with the last process that has it
        open. Readers may keep a part of it from being written, so this is repeated.
        """
        if self._open is not None and self._file is not None and self._file.is_log_removed:
            with contextlib.suppress(sqlite3.Error):
                self._open.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # which waits for nobody

    def _leave(self, connection: Connection) -> None:
        """Close the connections; of a file that was replaced, the log is written back and removed."""
        if self._writing is not None:
            self._writing.close()
            self._writing = None
        try:
            if self._file is not None and self._file.has_moved:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
                self._file.discard_log()
        finally:
            self._open = self._file = None
            connection.close()

    def version(self) -> object:
        """A value that differs after any write by any process, None where the file cannot be read."""
        try:
            connection = self.connection()
            return self._openings, connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes
        except (sqlite3.Error, FileNotFoundError):
            return None

    def check_log(self) -> None:
        """Raise Unavailable where the log that commits are written to was removed or replaced."""
        if self._file is not None and (log := self._file.lost_log()) is not None:
            raise Unavailable(
                f'"{log}" was removed or replaced while it was in use; restart all processes that use "{self.path}".'
            )

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction, committed at the end of the block; one at a time. In memory, do not await inside."""
        connection = await self.run_alone("BEGIN IMMEDIATE")
        file = self._file  # reads may leave it as soon as the commit has ended
        try:
            yield connection
            self.check_log()
            if self._has_moved:
                raise Unavailable(
                    f'"{self.path}" was replaced or removed meanwhile, so nothing was changed; try again.'
                )
            await self._commit(connection)
        except BaseException:
            with contextlib.suppress(sqlite3.ProgrammingError):  # it was left and closed after a commit that failed
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._save_log()
            raise
        if file is not None and file.has_moved:
            raise Uncertain.after(Unavailable(f'"{self.path}" was replaced or removed while it was written.'))

    async def _commit(self, connection: Connection) -> None:
        """Commit in a thread, since it waits for the disk and may write the log back: other coroutines continue.

        It is not interrupted: where the task is cancelled meanwhile, that takes effect when the task waits again.
        """
        if self.is_in_memory:
            connection.execute("COMMIT")
            return
        commit = asyncio.get_running_loop().run_in_executor(None, connection.execute, "COMMIT")
        task, cancellations = asyncio.current_task(), 0
        while not commit.done():
            try:
                await asyncio.wait([commit])
            except asyncio.CancelledError:
                cancellations += 1
        if task is not None:
            for _ in range(cancellations):
                task.uncancel()
                task.cancel()
        commit.result()

    async def run_alone(self, statement: str) -> Connection:
        """Run a statement that takes the write lock, retried while another process has it; coroutines continue.

        Returns the connection for transactions, which is that to the file which is at the path then.
        """
        pauses = BUSY_RETRIES.pauses()
        while True:
            connection = self._connection_for_writing()
            try:
                connection.execute(statement)
                return connection
            except sqlite3.OperationalError as error:
                pause = next(pauses, None) if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Translate errors of sqlite3 into those of the store; the only place that does."""
        try:
            yield
        except FileNotFoundError as error:
            raise NoTable(f'There is no file "{self.path}"; create it with: {self._create}') from error
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except Undecodable as error:
            raise self._damaged(str(error)) from error

    async def check_integrity(self) -> None:
        """Raise Damaged where pages, rows and indexes are inconsistent; cancelling the task interrupts it."""
        with self.translated():
            connection, task = self.connection(), asyncio.current_task()
            if task is not None:
                connection.set_progress_handler(task.cancelling, CHECK_STEPS)
            try:
                faults = [fault for (fault,) in connection.execute("PRAGMA integrity_check(1)") if fault != "ok"]
            except sqlite3.OperationalError:
                await asyncio.sleep(0)  # raises CancelledError where that was the reason
                raise
            finally:
                connection.set_progress_handler(None, 0)
        if faults:
            raise self._damaged(faults[0])

    def _damaged(self, fault: str) -> Damaged:
        fault = shorten(" ".join(fault.split()), FAULT_CHARACTERS)
        return Damaged(
            f'"{self.path}" is damaged ({fault}). Replace it by a backup, or import an export into a new one.'
        )

    def no_table(self) -> NoTable:
        return NoTable(f'"{self.path}" has no table of Clade; create it with: {self._create}')

    @property
    def _create(self) -> str:
        """The command that makes this file."""
        return f"clade table create --store {shlex.quote(f'sqlite:///{self.path}')}"

    def _translate(self, error: sqlite3.Error) -> CladeError:
        if "no such table" in str(error):
            return self.no_table()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT or "decode" in str(error):
            return self._damaged(str(error))
        if code == sqlite3.SQLITE_READONLY:
            return Forbidden("The store is read-only: its file, or the directory of the file, cannot be written.")
        if code == sqlite3.SQLITE_CANTOPEN and Path(self.path).is_dir():
            return Unavailable(f'"{self.path}" is a folder; name a file in it.')
        if code == sqlite3.SQLITE_CANTOPEN and not Path(self.path).parent.is_dir():
            return Unavailable(f'"{Path(self.path).parent}" is not a folder; create it, or name another one.')
        reason = _REASONS.get(code, "cannot be used now")
        return Unavailable(f'"{self.path}" {reason}.')


class Snapshot(Database):
    """A read-only view of a database, over another connection, in one transaction that begins with the first read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.path)
        self._database = database
        self._version = object()

    def version(self) -> object:
        return self._version

    def connection(self, mode: str = "rw") -> Connection:
        opened = self._open
        connection = super().connection(mode)
        if opened is None:
            if self.is_in_memory:
                self._database.connection().backup(connection)
            connection.execute("BEGIN")
        return connection


def scratch_database(path: Path) -> Connection:
    """A connection to a temporary database without a log, of which as much is in memory as of a store."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in (
        "journal_mode = OFF",
        "synchronous = OFF",
        f"cache_size = -{SCRATCH_CACHE_KB}",
        "temp_store = FILE",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _opened(path: str, mode: str) -> tuple[Connection, File | None]:
    """A new connection and its file, None for a new table in memory; raises FileNotFoundError."""
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
    connection = sqlite3.connect(
        address, uri=not memory, isolation_level=None, timeout=LOCKED_SECONDS, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        connection.execute("PRAGMA schema_version").fetchone()  # the first read, which opens file and log
    except BaseException:
        connection.close()
        raise
    return connection
