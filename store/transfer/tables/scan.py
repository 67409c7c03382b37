"""Scan of a foreign DynamoDB table into files, and the exports of tables to S3 that such files are alike.

Nothing is ever written to the table: DescribeTable, DescribeTimeToLive and Scan are the only calls.
"""

import asyncio
import base64
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import orjson

from store.concurrency import task_group
from store.dynamodb.client import DynamoDBClient, Refused
from store.errors import BadInput, NoTable, quantity, shorten
from store.transfer.formats.lines import text_lines
from store.transfer.formats.source import JSON_REASON
from store.transfer.formats.table import Table, TableRow
from store.transfer.tables.items import REJECTED_ITEMS, Line, item_of, plain
from store.transfer.tables.left_out import JsonItem, LeftOut

UNIT_BYTES = 8_192  # an eventually consistent read unit
MAX_LIMIT = 10_000
MANIFEST, SUMMARY = "manifest-files.json", "manifest-summary.json"
MAX_MANIFEST_BYTES = 100_000_000
REASON_LINE = f'{{"{JSON_REASON}"'  # in files of rejected rows
DATA_ENDINGS = (".json.gz", ".json")


@dataclass
class TableScan:
    """A scan of the table of a client in parallel segments; `units` and `items` are those that it has read.

    Once the table is described: `keys` are its key attributes, `table_items` and `table_bytes` its size as DynamoDB
    last counted it, some hours ago. `expiry` is the attribute by which items expire, empty if none do, None where that
    is not to be known. With a limit of `units_per_second` no page is read before `_next`.
    """

    client: DynamoDBClient
    units_per_second: float | None = None
    on_items: Callable[[int], None] = lambda items: None
    units: float = 0.0
    items: int = 0
    keys: tuple[str, ...] = ()
    table_items: int = 0
    table_bytes: int = 0
    expiry: str | None = ""
    _next: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def describe(self, *, with_expiry: bool) -> None:
        """Read keys and size of the table, and the attribute by which its items expire. Raises NoTable."""
        name = self.client.table
        try:
            found = (await self.client.call("DescribeTable", TableName=name))["Table"]
        except NoTable:
            raise NoTable(f'There is no table "{name}" in this region and account.') from None
        order = sorted(found["KeySchema"], key=lambda key: key["KeyType"])  # HASH before RANGE
        self.keys = tuple(key["AttributeName"] for key in order)
        self.table_items, self.table_bytes = found.get("ItemCount", 0), found.get("TableSizeBytes", 0)
        try:
            if with_expiry:
                time_to_live = (await self.client.call("DescribeTimeToLive", TableName=name))["TimeToLiveDescription"]
                is_enabled = time_to_live.get("TimeToLiveStatus") in ("ENABLING", "ENABLED")
                self.expiry = time_to_live["AttributeName"] if is_enabled else ""
        except Refused:
            self.expiry = None

    def sentence(self) -> str:
        """What the scan reads."""
        units = -(-self.table_bytes // UNIT_BYTES)
        return (
            f"The scan of {self.client.table} reads some {quantity(self.table_items, 'item')} of "
            f"{self.table_bytes:,} bytes: {quantity(units, 'read unit')}, as counted by DynamoDB within the last hours."
        )

    async def run(self, files: Sequence[Path], *, one_page: bool) -> None:
        """Write all items to files, a segment to each, or their first page: lines of DynamoDB JSON as in an export."""
        limit = {}
        if self.units_per_second:  # a page takes about the units of one second
            bytes_an_item = self.table_bytes / max(1, self.table_items) or UNIT_BYTES
            limit["Limit"] = max(1, min(MAX_LIMIT, int(self.units_per_second * UNIT_BYTES / bytes_an_item)))
        async with task_group() as group:
            for number, file in enumerate(files):
                segment = {"Segment": number, "TotalSegments": len(files)}
                group.create_task(self._read(file, {**limit, **segment}, one_page=one_page))

    async def _read(self, file: Path, parameters: dict[str, Any], *, one_page: bool) -> None:
        with file.open("xb") as segment:
            while page := await self._page(parameters):
                self.units += _units(page)
                self.items += len(page["Items"])
                self.on_items(len(page["Items"]))
                segment.write(b"".join([msgspec.json.encode({"Item": item}) + b"\n" for item in page["Items"]]))
                if one_page or not page.get("LastEvaluatedKey"):
                    return
                parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def _page(self, parameters: dict[str, Any]) -> Any:
        """A page; with a limit pages follow one another, since the units of a page are known after it."""
        limit = self.units_per_second
        async with self._lock if limit else nullcontext():
            await asyncio.sleep(self._next - time.monotonic())
            page = await self.client.call(
                "Scan", TableName=self.client.table, ReturnConsumedCapacity="TOTAL", **parameters
            )
            if limit:
                self._next = time.monotonic() + _units(page) / limit
            return page


@dataclass(frozen=True)
class Export:
    """An export as a folder on disk: its data files of DynamoDB JSON, with their numbers of items by its manifest, None
    without one. It has the state of the table at a time, None if unknown.
    """

    files: list[tuple[Path, int | None]]
    table: str | None = None
    is_incremental: bool = False
    time: datetime | None = None


def is_export(path: Path) -> bool:
    """Whether a path is that of an export: a folder, its manifest, or a data file, which begins with an item.

    A file of rejected items is one, too.
    """
    if path.is_dir() or path.name in (MANIFEST, SUMMARY):
        return True
    if not path.name.endswith(DATA_ENDINGS) or not path.is_file():
        return False
    with suppress(BadInput):
        lines = (text for _, text, _ in text_lines(path) if not text.startswith(REASON_LINE))
        return item_of(next(lines, ""))[0] == "Item"
    return False


def find_export(path: Path) -> Export:
    """The export at a path: its folder, one above it, its manifest, or a data file. Raises BadInput."""
    if path.is_file() and path.name not in (MANIFEST, SUMMARY):
        return Export([(path, None)])
    folder = path if path.is_dir() else path.parent
    exports = [folder] if (folder / MANIFEST).is_file() else sorted(one.parent for one in folder.glob(f"**/{MANIFEST}"))
    if len(exports) > 1:
        names = ", ".join(map(str, exports[:5]))
        raise BadInput(f"{folder} has {len(exports)} exports ({names}); import each, the oldest first.")
    if not exports:
        files = sorted(file for file in folder.iterdir() if file.name.endswith(DATA_ENDINGS) and file.is_file())
        if not files:
            raise BadInput(f"{folder} is not an export of a DynamoDB table: it has neither {MANIFEST} nor data files.")
        return Export([(file, None) for file in files])
    (folder,) = exports
    summary = _summary(folder)
    if (kind := summary.get("outputFormat", "DYNAMODB_JSON")) != "DYNAMODB_JSON":
        raise BadInput(f"The export is in the format {kind}; export the table as DYNAMODB_JSON.")
    described = [*_data_files(folder)]
    table = str(summary.get("tableArn", "")).rpartition("/")[2] or None
    time = None
    with suppress(KeyError, TypeError, ValueError):
        time = datetime.fromisoformat(summary.get("exportTime") or summary["exportToTime"])
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return Export(described, table, summary.get("exportType") == "INCREMENTAL_EXPORT", time)


def export_table(export: Export, name: str, left_out: LeftOut) -> Table:
    """The table of an export: the attributes of its items as plain values, without items that are left out, and as
    `values` the lines as they are, each with the name of its file and its number there as a Line.

    Raises BadInput, while it is read, for a file that is damaged or has another number of items than its manifest says,
    and where an option names an attribute that no item has; Doubt where items may have expired.
    """

    def values() -> Iterator[tuple[int, str, Line]]:
        number, is_rejected = 0, False
        left_out.clear()
        for file, expected in export.files:
            count = 0
            for line, text, problem in text_lines(file):
                if text.startswith(REASON_LINE):
                    is_rejected = True
                    continue
                number += 1
                count += 1
                yield number, text, Line(f"{file.name}, line {line}: ", problem.reason if problem else None)
            if expected is not None and count != expected:
                raise BadInput(f"{file.name} has {count:,} items, {expected:,} by the manifest; copy it again.")
        left_out.ask()
        if number and not is_rejected:
            left_out.check()

    def rows() -> Iterator[TableRow]:
        header = table.header
        for number, text, line in values():
            try:
                kind, item = line.item(text)
            except BadInput as error:
                yield number, (), str(error), text, line.place
            else:
                if kind != "Keys" and not left_out.skips(item) and not left_out.is_gone(item):
                    cells = [plain(item[name]) if name in item else None for name in header]
                    yield number, cells, None, text, line.place

    def columns() -> list[str]:
        return list(dict.fromkeys(name for item in first_items(export, sys.maxsize, left_out) for name in item))

    table = Table(name, columns, rows, rejected_by=lambda _: REJECTED_ITEMS, values=values)
    return table


def first_items(export: Export, lines: int, left_out: LeftOut) -> Iterator[JsonItem]:
    """The items in so many lines, without those that cannot be read or are left out."""
    found = (line for file, _ in export.files for line in text_lines(file))
    for _, text, problem in islice(found, lines):
        if problem is None:
            with suppress(BadInput):
                item = item_of(text)[1]
                if not left_out.skips(item) and not left_out.is_gone(item):
                    yield item


def _units(page: Any) -> float:
    return float((page.get("ConsumedCapacity") or {}).get("CapacityUnits", 0.0))


def _summary(folder: Path) -> dict[str, Any]:
    file = folder / SUMMARY
    try:
        found = orjson.loads(file.read_bytes()[:MAX_MANIFEST_BYTES]) if file.is_file() else {}
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file} is not valid JSON: {error}.") from error
    return found if isinstance(found, dict) else {}


def _data_files(folder: Path) -> Iterator[tuple[Path, int | None]]:
    """The data files of the manifest with their numbers of items; their content is verified by its checksums."""
    manifest = folder / MANIFEST
    for number, line in enumerate(manifest.read_bytes()[:MAX_MANIFEST_BYTES].splitlines(), start=1):
        try:
            entry = orjson.loads(line)
            key = entry["dataFileS3Key"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            raise BadInput(f"{manifest}, line {number} names no data file: {shorten(repr(line))}.") from None
        file = folder / "data" / Path(key).name
        if not file.is_file():
            raise BadInput(f"{file} is missing; the manifest names it.")
        if expected := entry.get("md5Checksum"):
            with file.open("rb") as source:
                digest = hashlib.file_digest(source, lambda: hashlib.md5(usedforsecurity=False))
            if base64.b64encode(digest.digest()).decode() != expected:
                raise BadInput(f"{file} is damaged: its checksum is not that of the manifest; copy it again.")
        count = entry.get("itemCount")
        yield file, count if isinstance(count, int) else None
