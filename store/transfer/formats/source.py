"""Files of imports: their bytes, what an import may guess wrongly about them, and the files of their rejected rows."""

import csv
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from gzip import GzipFile
from itertools import chain, count
from pathlib import Path
from typing import IO, NamedTuple, cast

import orjson

from store.errors import BadInput, shorten

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
BLOCK_BYTES = 1 << 20
SHOWN_NAMES = 5
REASON = "reason"
JSON_REASON = "$reason"  # no attribute can have this name

# Errors of compressed content that cannot be read, beside OSError: zipfile raises RuntimeError for an encrypted member,
# and NotImplementedError for a compression that it has not.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, NotImplementedError)


class Guess(StrEnum):
    """What an import can guess wrongly, so that it would make another tree than a person sees in the file."""

    ENCODING = "encoding"
    QUOTES = "quotes"
    HEADER = "header"
    SHAPE = "shape"
    IDS = "ids"
    EXPIRY = "expiry"


class Doubt(BadInput):
    """A guess that nobody has confirmed: what was `seen`, and `readings`, the words of options that each decide, the
    likeliest first; `other` is the way out where none of them imports the file. Both texts have no stop at their ends.

    An import asks on a terminal whether it takes the guess, and stops elsewhere. Nothing is written yet. `others` are
    what else was seen, for the case that no reading of this doubt imports the file.
    """

    def __init__(self, guess: Guess, seen: str, *readings: Sequence[str], other: str = "") -> None:
        super().__init__(f"{seen}; {other}." if other else f"{seen}.")
        self.guess, self.seen, self.other = guess, seen, other
        self.readings = [words for words in readings if words]
        self.others: Sequence[Doubt] = ()


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file while the block runs: plain, or decompressed from gzip or from a zip archive of one file.

    Raises BadInput where it cannot be read or is damaged.
    """
    try:
        with file.open("rb") as raw:
            start = raw.read(4)
            raw.seek(0)
            if start.startswith(GZIP):
                with GzipFile(fileobj=raw) as content:
                    yield cast(IO[bytes], content)
            elif start == ZIP:
                with _archive(raw, file) as (archive, member), archive.open(member) as content:
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
    with _archive(file, file) as (_, member):
        return Path(member.filename).name


@contextmanager
def _archive(source: Path | IO[bytes], file: Path) -> Iterator[tuple[zipfile.ZipFile, zipfile.ZipInfo]]:
    """The zip archive in a file, which is already open or not, and its only member. Raises BadInput."""
    try:
        archive = zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise BadInput(f"{file.name} is not a zip archive ({error}); repair or unpack it.") from error
    with archive:
        # macOS adds files of its own.
        members = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]
        if len(members) != 1:
            names = ", ".join(shorten(one.filename) for one in members[:SHOWN_NAMES])
            raise BadInput(f"{file.name} has {len(members)} files ({names or 'none'}), expected 1; unpack it.")
        yield archive, members[0]


class RejectedRows(NamedTuple):
    """How a file of rejected rows is written: its extension, its head, and each row of its text and reason.

    Such a file can be corrected and imported again. The rows are unchanged: CSV gets one more column for the reason,
    and in files of one row per line it is on a separate line before the row, which imports skip. Whatever its head, an
    earlier file begins with the `mark`.
    """

    ending: str
    head: bytes
    mark: bytes
    line: Callable[[str, str], bytes]


def _json_lines(text: str, reason: str) -> bytes:
    content = text.rstrip("\r\n").encode("utf-8", "surrogateescape")
    return b"%b\n%b\n" % (orjson.dumps({JSON_REASON: reason}), content)


REJECTED_JSON = RejectedRows(".jsonl", b"", b'{"' + JSON_REASON.encode(), _json_lines)


def csv_line(cells: Iterable[str], *, delimiter: str = ",", always_quoted: bool = False) -> str:
    """A line of CSV without its end."""
    output = io.StringIO()
    writer = csv.writer(output, delimiter=delimiter, quoting=csv.QUOTE_ALL if always_quoted else csv.QUOTE_MINIMAL)
    writer.writerow(cells)
    return output.getvalue().removesuffix("\r\n")


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, with a number where a column has it already."""
    names = chain((name,), (f"{name}_{number}" for number in count(2)))
    return next(found for found in names if found not in taken)
