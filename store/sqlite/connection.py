"""SQLite connection: opening a file, noticing that it was replaced, transactions, and the translation of errors."""

import asyncio
import contextlib
import logging
import math
import os
import shlex
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from sqlite3 import Connection as Connection
from sqlite3 import IntegrityError as IntegrityError
from typing import Any
from urllib.parse import quote

from store.concurrency import RetryPolicy
from store.errors import CladeError, Damaged, Forbidden, NoTable, Unavailable, Uncertain, shorten
from store.sqlite.table import SCHEMA, Undecodable

logger = logging.getLogger("clade")
IN_MEMORY = ":memory:"
CHECKPOINT_PAGES = 4000  # of the log until it is written back; a large number saves rewriting pages during an import
LOG_BYTES = CHECKPOINT_PAGES * 4096  # to which the log is cut by the commit after it was written back whole
BUSY_SECONDS = 10.0  # a commit waits for those of other processes
BUSY_RETRIES = RetryPolicy(0.01, 0.01, deadline_seconds=BUSY_SECONDS)
LOOK_SECONDS = 1.0  # between two checks, by reads, that the file is still at its path; each commit checks it
LOCKED_SECONDS = 1.0  # a read waits, while another process recovers the log after a crash
CHECK_STEPS = 100_000  # of SQLite's virtual machine, some milliseconds, between two checks for cancellation
FAULT_CHARACTERS = 200
SCRATCH_KB = 32_000  # of a temporary database that are in memory
LOGS = ("-wal", "-shm")
OWN_MODE = 0o600  # of a new file; SQLite gives its log the same
_REASONS = {
    sqlite3.SQLITE_NOTADB: "is no SQLite database; name another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened or made; check that its directory exists and can be written",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_BUSY: "is being written by another process; try again",
    sqlite3.SQLITE_LOCKED: "is being written by another process; try again",
    sqlite3.SQLITE_FULL: "cannot grow, since the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk fails",
}


class File:
    """The file that is at `path` now.

    `is_writable`: file and log can be written. `_is_fixed`: neither can, and there is no log; then it is read as
    immutable, and its time, size and log are compared to notice changes.
    """

    def __init__(self, path: str) -> None:
        self._path, real = path, os.path.realpath(path)
        self._logs = [real + end for end in LOGS]
        has_log = any(map(os.path.exists, self._logs))
        self.is_writable = os.access(path, os.W_OK) and (has_log or os.access(os.path.dirname(real), os.W_OK))
        self._is_fixed = not self.is_writable and not has_log
        self._state = self._found()

    def options(self, mode: str) -> str:
        """The options of SQLite's URI for the file: `mode` where it can be written or does not exist."""
        if self.is_writable or not self._state:
            return f"mode={mode}"
        return "mode=ro&immutable=1" if self._is_fixed else "mode=ro"

    @property
    def has_moved(self) -> bool:
        """Whether another file, or none, is at the path now."""
        return self._found() != self._state

    def _found(self) -> tuple[int, ...]:
        """Device and inode of the file at the path, and what else tells its state; empty where there is none."""
        try:
            found = os.stat(self._path)
        except OSError:
            return ()
        if not self._is_fixed:
            return found.st_dev, found.st_ino
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, os.path.exists(self._logs[0])

    def check_log(self, former: "File | None") -> None:
        """Raise Unavailable where the log of the `former` file is beside this one: SQLite would apply it to this one.

        Raises FileNotFoundError where no file is there. An empty log is nobody's. A log that others began for this file
        cannot be told from that of the former one, unless the path is a link: then the log has the name of the file
        that it leads to.
        """
        log, index = self._logs
        if former is None:
            return
        if not self._state:
            raise FileNotFoundError(self._path)
        if self._logs != former._logs or self._state[:2] == former._state[:2]:
            return
        if os.path.getsize(log) if os.path.exists(log) else os.path.exists(index):
            raise Unavailable(
                f'"{self._path}" was replaced, and the log of the former file, "{log}", may still be beside it. Stop '
                f'all processes that use it, remove "{log}" and "{index}" where they are left, and start them again. '
                "If another process has written to the new file since then, only restart this one."
            )


class Database:
    """One connection to the file at `path`, or to a database in memory for `:memory:`.

    `file` is the one that was opened last, at first by another connection to the same path.
    """

    def __init__(self, path: str, file: File | None = None) -> None:
        self.path = path
        self.file = file
        self._entered = False
        self._open: Connection | None = None
        self._versions: sqlite3.Cursor | None = None  # of the open connection
        self._openings = 0  # number of times that a file was opened
        self._looked = -math.inf  # time of the last check that the file is still at its path

    @property
    def is_in_memory(self) -> bool:
        """Whether only this connection can read it."""
        return self.path == IN_MEMORY

    def enter(self) -> None:
        """Open the file, or leave that to the first read where it does not exist yet."""
        self._entered = True
        with contextlib.suppress(Unavailable), self.translated():  # a read raises it again
            self.connection()
        if self.file is not None and not self.file.is_writable:
            logger.warning('"%s" cannot be written; it is opened read-only.', self.path)

    def close(self) -> None:
        self._entered, self.file = False, None
        self._leave()

    def _leave(self) -> None:
        """Close the connection. SQLite neither writes back nor removes the log of a file that is no longer there."""
        connection, self._open, self._versions = self._open, None, None
        if connection is not None:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.close()

    def connection(self, mode: str = "rw") -> Connection:
        """The connection to the file that is at the path, opened if necessary; the mode `rwc` makes the file.

        Whether another file is there is checked at most every LOOK_SECONDS, and never within a transaction.
        Raises FileNotFoundError, and Unavailable for a file beside the log of a former one.
        """
        if not self._entered:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        is_due = time.monotonic() - self._looked >= LOOK_SECONDS
        if self._open is not None and is_due and not self._open.in_transaction and self._has_moved():
            self._looked = -math.inf  # so that the next read looks again where this one fails
            # Checked before it is closed: until then no other file gets the number of its inode.
            File(self.path).check_log(self.file)
            self._leave()
        if self._open is None:
            former = self.file
            self._open, self.file = _opened(self.path, mode, former)
            self._openings += 1
            if former is not None and former.has_moved:
                logger.warning('"%s" was replaced or changed; it is opened again.', self.path)
        return self._open

    def _has_moved(self) -> bool:
        """Whether another file, or none, is at the path now."""
        self._looked = time.monotonic()
        return self.file is not None and self.file.has_moved

    def version(self) -> object:
        """A value that differs after any write by any process, and for each file that is opened.

        None where the file cannot be read.
        """
        try:
            connection = self.connection()
            if self._versions is None:
                self._versions = connection.cursor()
            (version,) = self._versions.execute("PRAGMA data_version").fetchone()
            return self._openings, version, connection.total_changes
        except (sqlite3.Error, FileNotFoundError, Unavailable):
            return None

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction, committed at the end of the block. Where the connection is shared, do not await inside."""
        await self.run_alone("BEGIN IMMEDIATE")
        connection = self.connection()
        try:
            yield connection
            if self._has_moved():
                raise self._moved()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.check_written()

    def check_written(self) -> None:
        """Raise Uncertain where the file was replaced or removed before what was written to it was committed."""
        if self._has_moved():
            raise Uncertain.after(self._moved("while it was written."))

    async def run_alone(self, statement: str) -> None:
        """Run a statement that takes the write lock, retried while another process has it; coroutines continue."""
        pauses = BUSY_RETRIES.pauses()
        while True:
            connection = self.connection()  # which may be another one after a pause
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

    def _moved(self, when: str = "meanwhile, so nothing was changed; try again.") -> Unavailable:
        self._looked = -math.inf  # so that the next read opens the other file
        return Unavailable(f'"{self.path}" was replaced or removed {when}')

    @property
    def _create(self) -> str:
        """The command that makes this file."""
        return f"clade table create --store {shlex.quote(f'sqlite:///{self.path}')}"

    def _translate(self, error: sqlite3.Error) -> CladeError:
        if "no such table" in str(error):
            return NoTable(f'"{self.path}" has no table of Clade; create it with: {self._create}')
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_READONLY_DBMOVED:  # of a file without WAL, such as one of VACUUM INTO
            return self._moved()
        code &= 0xFF
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
        super().__init__(database.path, database.file)
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


class Scratch(Connection):
    """A temporary database on the disk, which nobody else sees and which ends with its connection.

    Raises Unavailable where the disk is full or fails.
    """

    def __init__(self) -> None:
        super().__init__("", isolation_level=None)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE", f"cache_size = {-SCRATCH_KB}"):
            self.execute(f"PRAGMA {setting}")

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        with _on_disk():
            return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        with _on_disk():
            return super().executemany(*arguments)


@contextlib.contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Unavailable(f"The folder of temporary files cannot be used: {error}.") from error


def _opened(path: str, mode: str, former: File | None) -> tuple[Connection, File | None]:
    """A new connection and its file, None for a new table in memory; raises as Database.connection does."""
    if path == IN_MEMORY:
        connection = _connect(path, mode)
        for statement in SCHEMA:
            connection.execute(statement)
        return connection, None
    if mode == "rwc":  # after a failure SQLite reports the reason
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWN_MODE))
    while True:
        file = File(path)
        file.check_log(former)
        connection = _connect(path, file.options(mode))
        if not file.has_moved:
            return connection, file
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
        connection.execute("PRAGMA schema_version").fetchone()  # the first read, which opens file and log
    except BaseException:
        connection.close()
        raise
    return connection
