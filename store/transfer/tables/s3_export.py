"""Exports of DynamoDB tables to S3, as folders on disk: `manifest-files.json`, and data files of DynamoDB JSON."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from store.errors import BadInput
from store.text import shorten
from store.transfer.formats.files import BLOCK_BYTES, REASON
from store.transfer.formats.lines import text_lines
from store.transfer.formats.table_rows import CellReader, Table, TableRow, found_columns
from store.transfer.rows import Rejection, Row
from store.transfer.tables.items import KINDS, WireItem, fields_of, item_of

MANIFEST, SUMMARY = "manifest-files.json", "manifest-summary.json"
MAX_MANIFEST_BYTES = 100_000_000
REASON_LINE = f'{{"{REASON}"'  # in files of rejected rows
LINES_AN_ITEM = 10  # of a sample, in which so many of the lines may be damaged
DATA_ENDINGS = (".json.gz", ".json")


@dataclass(frozen=True)
class Export:
    """The data files of an export, with their numbers of items by its manifest, None without one."""

    files: list[tuple[Path, int | None]]
    table: str | None = None
    is_incremental: bool = False


def is_export(path: Path) -> bool:
    """Whether a path may be that of an export: a folder, or its manifest."""
    return path.is_dir() or path.name in (MANIFEST, SUMMARY)


def is_data_file(path: Path) -> bool:
    """Whether a file is a data file of an export, or one of rejected items, by its first item."""
    if not path.name.endswith(DATA_ENDINGS) or not path.is_file():
        return False
    first = next((text for _, text, _ in text_lines(path) if not text.startswith(REASON_LINE)), "")
    try:
        _, item = item_of(first)
    except BadInput:
        return False
    return all(value.keys() <= KINDS for value in item.values())


def find_export(path: Path) -> Export:
    """The export at a path: its folder, one above it, its manifest, or a data file. Raises BadInput."""
    if path.is_file() and path.name not in (MANIFEST, SUMMARY):
        return Export([(path, None)])
    folder = path if path.is_dir() else path.parent
    if not (folder / MANIFEST).is_file():
        exports = sorted(found.parent for found in folder.glob(f"**/{MANIFEST}"))
        if len(exports) > 1:
            names = ", ".join(map(str, exports[:5]))
            raise BadInput(f"{folder} has {len(exports)} exports ({names}); import each, the oldest first.")
        if not exports:
            return _without_manifest(folder)
        (folder,) = exports
    summary = _summary(folder)
    if (kind := summary.get("outputFormat", "DYNAMODB_JSON")) != "DYNAMODB_JSON":
        raise BadInput(f"The export is in the format {kind}; export the table as DYNAMODB_JSON.")
    files = [_data_file(folder, entry) for entry in _entries(folder / MANIFEST)]
    table = str(summary.get("tableArn", "")).rpartition("/")[2] or None
    return Export(files, table, is_incremental=summary.get("exportType") == "INCREMENTAL_EXPORT")


RowOf = Callable[[int, str, WireItem], Row | Rejection | None]


def read_export(export: Export, row_of: RowOf) -> Iterator[tuple[str, Row | Rejection]]:
    """The lines of all data files, each with the row of its number, kind and item; without those that have none.

    Raises BadInput for a file that is damaged or has another number of items than its manifest says.
    """
    number = 0
    for file, expected in export.files:
        count = 0
        for line, text, problem in text_lines(file):
            if text.startswith(REASON_LINE):
                continue
            number += 1
            count += 1
            row = Rejection(number, problem.reason) if problem else _row(number, text, row_of)
            if isinstance(row, Rejection):
                row = Rejection(number, f"{file.name}, line {line}: {row.reason}")
            if row is not None:
                yield text, row
        if expected is not None and count != expected:
            raise BadInput(f"{file.name} has {count:,} items, {expected:,} by the manifest; copy it again.")


def items_table(export: Export) -> Table:
    """The table of all items, with a column for each attribute."""
    name = Path(export.table or export.files[0][0].name)
    header = sorted(found_columns(name, _fields(export)))  # scans have no order
    if not header:
        raise BadInput(f"{name} has no items.")

    def rows() -> Iterator[TableRow]:
        for number, found in enumerate(_fields(export), start=1):
            yield number, [found.get(name) for name in header], None

    return Table(header, rows)


def _fields(export: Export) -> Iterator[dict[str, object]]:
    """The columns of all items that can be read."""
    for item in first_items(export, None):
        with suppress(BadInput):
            yield fields_of(item)


def read_items(export: Export, reader: CellReader, header: Sequence[str]) -> Iterator[tuple[str, Row | Rejection]]:
    """The lines of all data files, each with the row of its attributes."""

    def row_of(number: int, _: str, item: WireItem) -> Row | Rejection:
        found = fields_of(item)
        return reader.row(number, [found.get(name) for name in header])

    return read_export(export, row_of)


def sample_items(export: Export, count: int) -> list[Any]:
    """The first items that can be read."""
    return list(islice(first_items(export, count * LINES_AN_ITEM), count))


def first_items(export: Export, lines: int | None) -> Iterator[Any]:
    """The items in so many lines, None for all, without those that cannot be read."""
    found = (line for file, _ in export.files for line in text_lines(file))
    for _, text, problem in islice(found, lines):
        if problem is None:
            with suppress(BadInput):
                yield item_of(text)[1]


def _row(number: int, text: str, row_of: RowOf) -> Row | Rejection | None:
    try:
        return row_of(number, *item_of(text))
    except BadInput as error:
        return Rejection(number, str(error))


def _without_manifest(folder: Path) -> Export:
    files = sorted(file for file in folder.iterdir() if file.name.endswith(DATA_ENDINGS) and file.is_file())
    if not files:
        raise BadInput(f"{folder} is not an export of a DynamoDB table: it has neither {MANIFEST} nor data files.")
    return Export([(file, None) for file in files])


def _summary(folder: Path) -> dict[str, Any]:
    file = folder / SUMMARY
    if not file.is_file():
        return {}
    try:
        found = orjson.loads(file.read_bytes()[:MAX_MANIFEST_BYTES])
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file} is not valid JSON: {error}.") from error
    return found if isinstance(found, dict) else {}


def _entries(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file.read_bytes()[:MAX_MANIFEST_BYTES].splitlines(), start=1):
        try:
            entry = orjson.loads(line)
            key = entry["dataFileS3Key"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            raise BadInput(f"{file}, line {number} names no data file: {shorten(repr(line))}.") from None
        yield {**entry, "name": Path(key).name}


def _data_file(folder: Path, entry: dict[str, Any]) -> tuple[Path, int | None]:
    """A data file of the manifest, whose content is verified by its checksum."""
    file = folder / "data" / entry["name"]
    if not file.is_file():
        raise BadInput(f"{file} is missing; the manifest names it.")
    if expected := entry.get("md5Checksum"):
        digest = hashlib.md5(usedforsecurity=False)
        with file.open("rb") as source:
            while block := source.read(BLOCK_BYTES):
                digest.update(block)
        if base64.b64encode(digest.digest()).decode() != expected:
            raise BadInput(f"{file} is damaged: its checksum is not that of the manifest; copy it again.")
    count = entry.get("itemCount")
    return file, count if isinstance(count, int) else None
