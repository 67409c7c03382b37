"""File of rejected rows: a CSV file beside the one that was imported, with the reason for each row.

A file, a link or anything else of its name that is not one of these is left alone.
"""

import csv
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

HEADING = ("row", "reason", "content")
FIRST_LINE = ",".join(HEADING).encode()
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the beginning of one


class NotOurs(OSError):
    """Something else has the name."""


def write_rejects(target: Path, reasons: Mapping[int, str], contents: Iterable[tuple[int, str]]) -> None:
    """The rejected rows as they stand in the file; where none are, an earlier import's are taken away.

    Raises NotOurs where something else lies there, OSError where it cannot be written.
    """
    if not reasons:
        return _remove(target)
    with _opened(target, os.O_RDWR | os.O_CREAT) as file:
        os.ftruncate(file.fileno(), 0)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        with open(file.fileno(), "w", encoding="utf-8", newline="", closefd=False) as output:
            writer = csv.writer(output)
            writer.writerow(HEADING)
            writer.writerows(
                [number, _cell(reasons[number]), _cell(text)] for number, text in contents if number in reasons
            )
    return None


def _remove(target: Path) -> None:
    try:
        with _opened(target, os.O_RDONLY):
            target.unlink()
    except (FileNotFoundError, NotOurs):
        return


def _opened(target: Path, flags: int) -> BinaryIO:
    """A file of rejected rows, or an empty new one; no link is followed, and no pipe is waited for."""
    if target.is_symlink() or target.is_dir():
        raise NotOurs
    file = os.fdopen(os.open(target, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666), "rb")
    try:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or (found.st_size and file.readline(100).strip() != FIRST_LINE):
            raise NotOurs
    except BaseException:
        file.close()
        raise
    return file


def _cell(text: str) -> str:
    """A text as no spreadsheet takes it for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
