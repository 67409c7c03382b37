"""Sources of imports: a file, or the standard input as `-`, which is first copied to a file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

import typer

from store.errors import BadInput, shorten, shown_address
from store.transfer.formats.source import BLOCK_BYTES, content_name

STDIN = "-"
MAX_BYTES = 4_000_000_000  # of the standard input
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
    if address != STDIN:
        file = Path(address)
        if not file.exists() and "://" in address:
            raise BadInput(
                f"{shown_address(address)} is an address, and only files are imported; download it, or pipe it in: "
                "curl -fL ADDRESS | clade import HIERARCHY - --format csv."
            )
        if not file.is_file():
            raise typer.BadParameter(f"file '{shorten(address, 200)}' does not exist.", param_hint="FILE")
        yield Source(file, file.name, file.parent)
        return
    with TemporaryDirectory(prefix="clade-") as folder:
        file = Path(folder) / "stdin"
        with file.open("xb") as target:
            _copy_stdin(target)
        yield Source(file, file.name, Path())


def _copy_stdin(target: BinaryIO) -> None:
    size = 0
    while block := sys.stdin.buffer.read(BLOCK_BYTES):
        size += len(block)
        if size > MAX_BYTES:
            raise BadInput(f"The standard input has more than {MAX_BYTES:,} bytes; import it as a file.")
        target.write(block)
