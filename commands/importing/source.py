"""Sources of imports: a file, the standard input as `-`, or a web address, which are first copied to a file."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit

from store.errors import BadInput
from store.text import shorten, shown_address
from store.transfer.formats.files import BLOCK_BYTES, content_name

STDIN = "-"
MAX_BYTES = 4_000_000_000  # of the standard input and of a download
DOWNLOAD_SECONDS = 1_800.0
MAX_NAME_BYTES = 200  # of a file; most systems take 255


class Source(NamedTuple):
    """A file to import, its name in messages, and the folder of its rejected rows."""

    file: Path
    name: str
    folder: Path

    def rejected(self, ending: str) -> Path:
        """The file of its rejected rows."""
        stem = "".join([c if c.isprintable() else "_" for c in Path(content_name(self.file)).stem])
        return self.folder / f"{stem.encode()[:MAX_NAME_BYTES].decode(errors='ignore')}.rejected{ending}"


@contextmanager
def source_at(address: str) -> Iterator[Source]:
    """The source at an address while the block runs. Raises BadInput where it cannot be read."""
    if address != STDIN and not address.lower().startswith(("http://", "https://")):
        file = Path(address)
        if not file.exists() and "://" in address:
            shown = shown_address(address)
            raise BadInput(f"{shown} is of no scheme that is read; download the file, or use http or https.")
        if not file.is_file():
            raise BadInput(f'There is no file "{shorten(address, 200)}".')
        yield Source(file, file.name, file.parent)
        return
    with TemporaryDirectory(prefix="clade-") as folder:
        name = "stdin" if address == STDIN else _name(address)
        file = Path(folder) / name
        with file.open("xb") as target:
            if address == STDIN:
                _copy_stdin(target)
            else:
                from store.download import download_to  # with aiohttp, which files do without

                shown = shown_address(address)
                try:
                    asyncio.run(download_to(address, target, seconds=DOWNLOAD_SECONDS, max_bytes=MAX_BYTES))
                except TimeoutError:
                    raise BadInput(f"{shown} was not received within {DOWNLOAD_SECONDS:,.0f} seconds.") from None
                except OSError as error:
                    reason = str(error).replace(" ssl:default", "")  # which aiohttp writes also of http
                    raise BadInput(f"{shown} cannot be read: {reason}.") from error
        yield Source(file, name, Path())


def _name(address: str) -> str:
    try:
        name = Path(unquote(urlsplit(address).path)).name
    except ValueError:  # the download says so
        return "download"
    is_name = name.isprintable() and 0 < len(name.encode()) <= MAX_NAME_BYTES and name != ".."
    return name if is_name else "download"


def _copy_stdin(target: BinaryIO) -> None:
    size = 0
    while block := sys.stdin.buffer.read(BLOCK_BYTES):
        size += len(block)
        if size > MAX_BYTES:
            raise BadInput(f"The standard input has more than {MAX_BYTES:,} bytes; import it as a file.")
        target.write(block)
