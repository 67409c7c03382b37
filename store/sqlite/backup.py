"""Backup files: written under a temporary name and renamed when they are complete."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store.errors import BadInput
from store.sqlite.connection import LOGS

PAGES = 1000  # copied between two looks at whether the task is cancelled


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A temporary path, which is renamed to `target` at the end of the block, or removed where that fails.

    Raises BadInput where the file cannot be written.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(target)
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        for end in ("", *LOGS):
            part.with_name(part.name + end).unlink(missing_ok=True)


def check_other(file: Path, path: str) -> None:
    """Raise BadInput where the file of a backup is that of the store at `path`."""
    if file.exists() and os.path.exists(path) and file.samefile(path):
        raise BadInput(f"{file} is the store itself; use another file.")


def stop_if_cancelled(*_: int) -> None:
    """A progress callback, which ends SQLite's copy where the task is cancelled meanwhile."""
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError
