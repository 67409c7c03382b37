"""Backup file: one that appears under its name when it is whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store.errors import BadInput
from store.sqlite.database_file import LOGS

PAGES = 1000  # copied between two looks at Ctrl-C


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Where to write a file that gets its name at the end of the block, and is removed where that fails."""
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
    """Raise BadInput where a backup would be the store's own file."""
    if file.exists() and os.path.exists(path) and file.samefile(path):
        raise BadInput(f"{file} is the store itself; name another file.")


def allow_interrupt(*_: int) -> None:
    """Nothing: Python raises KeyboardInterrupt between two steps that tell of their progress."""
