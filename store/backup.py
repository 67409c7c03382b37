"""Backup: the whole of a SQLite file as another file, as of one moment, and back, while others read and write."""

import contextlib
import os
import sqlite3
from pathlib import Path
from sqlite3 import Connection
from urllib.parse import quote

from store.errors import BadInput, Damaged
from store.file import File, make
from store.layout import check_layout
from store.statements import COLUMNS

PAGES = 1000  # copied between two looks at Ctrl-C


def check_other(file: Path, path: str) -> None:
    """Raise BadInput where a backup would be the store's own file."""
    if file.exists() and os.path.exists(path) and file.samefile(path):
        raise BadInput(f"{file} is the store itself; name another file.")


def back_up(connection: Connection, target: Path) -> None:
    """Copy what a connection reads, which is in a transaction, into a file that appears when it is whole."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        make(str(part))
        with contextlib.closing(sqlite3.connect(part)) as copy:
            connection.backup(copy, pages=PAGES, progress=_heed)
            _check(copy, "The store", "Restore an earlier backup, or make it anew from an export.")
        part.replace(target)
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            part.with_name(part.name + end).unlink(missing_ok=True)


def put_back(source: Path, connection: Connection) -> None:
    """Replace all that a connection's file holds by a backup, in one transaction; raises BadInput for another file."""
    try:
        address = f"file:{quote(str(source))}?{File(str(source)).options('ro')}"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as backup:
            _check(backup, str(source), "Use another backup.")
            found = [name for (name,) in backup.execute("SELECT name FROM pragma_table_info('items')")]
            if found != COLUMNS:
                raise BadInput(f"{source} holds no table of Clade; name a file that clade backup has written.")
            (layout,) = backup.execute("PRAGMA user_version").fetchone()
            check_layout(str(source), layout)
            backup.backup(connection)
    except sqlite3.OperationalError as error:
        raise BadInput(f"{source} cannot be restored: {error}.") from error


def _heed(*_: int) -> None:
    """Nothing: Python raises KeyboardInterrupt between two calls of it."""


def _check(connection: Connection, name: str, way_out: str) -> None:
    try:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise Damaged(f"{name} is damaged ({found}). {way_out}")
