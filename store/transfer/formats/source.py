"""Bytes of a file: plain, or decompressed from gzip or from a zip archive of one file."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import IO, cast

from store.errors import BadInput
from store.text import shorten

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
BLOCK_BYTES = 1 << 20
SHOWN_NAMES = 5

# zipfile raises RuntimeError for an encrypted member, and NotImplementedError for a compression that it has not.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""Errors of compressed content that cannot be read, beside OSError."""


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file while the block runs. Raises BadInput where it cannot be read or is damaged."""
    try:
        with file.open("rb") as raw:
            start = raw.read(4)
            raw.seek(0)
            if start.startswith(GZIP):
                with GzipFile(fileobj=raw) as content:
                    yield cast(IO[bytes], content)
            elif start == ZIP:
                with archive_in(raw, file) as archive, archive.open(_member(archive, file)) as content:
                    yield content
            else:
                yield raw
    except DAMAGED as error:
        raise BadInput(f"{file.name} cannot be decompressed ({error}); repair or unpack it.") from error
    except OSError as error:
        raise BadInput(f"{file.name} cannot be read: {(error.strerror or str(error)).lower()}.") from error


def content_name(file: Path) -> str:
    """The name of what is in a file: without .gz, or that of the file in a zip archive. Raises BadInput."""
    if file.suffix.lower() == ".gz":
        return file.stem
    if file.suffix.lower() != ".zip":
        return file.name
    with archive_in(file, file) as archive:
        return Path(_member(archive, file).filename).name


def archive_in(source: Path | IO[bytes], file: Path) -> zipfile.ZipFile:
    """The zip archive in a file, which is already open or not. Raises BadInput where it is none, or is damaged."""
    try:
        return zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise BadInput(f"{file.name} is not a zip archive ({error}); repair or unpack it.") from error


def _member(archive: zipfile.ZipFile, file: Path) -> zipfile.ZipInfo:
    members = [
        info
        for info in archive.infolist()
        if not info.filename.endswith("/") and not info.filename.startswith("__MACOSX/")
    ]  # macOS adds files of its own
    if len(members) != 1:
        names = ", ".join(shorten(info.filename) for info in members[:SHOWN_NAMES])
        raise BadInput(f"{file.name} has {len(members)} files ({names or 'none'}), expected 1; unpack it.")
    return members[0]
