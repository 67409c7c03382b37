"""File of rejected rows: a CSV file beside the one that was imported, with the reason for each row.

A file, link or anything else of this name that is not such a file is left alone.
"""

import csv
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

HEADING = ("row", "reason", "content")
FIRST_LINE = ",".join(HEADING).encode()
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters that spreadsheets read as a formula


class ForeignFile(OSError):
    """The name belongs to something that is not a file of rejected rows."""


def write_rejected_rows(target: Path, reasons: Mapping[int, str], contents: Iterable[tuple[int, str]]) -> None:
    """Write the rejected rows with `reasons` by row number; without any, remove the file of an earlier import.

    `contents` are the numbers and texts of all rows. Raises ForeignFile, and OSError if it cannot be written.
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
    except (FileNotFoundError, ForeignFile):
        return


def _opened(target: Path, flags: int) -> BinaryIO:
    """A file of rejected rows or a new file. Links are not followed, and opening a pipe does not block."""
    if target.is_symlink() or target.is_dir():
        raise ForeignFile
    file = os.fdopen(os.open(target, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666), "rb")
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or (status.st_size and file.readline(100).strip() != FIRST_LINE):
            raise ForeignFile
    except BaseException:
        file.close()
        raise
    return file


def _cell(text: str) -> str:
    """A text that spreadsheets do not read as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
