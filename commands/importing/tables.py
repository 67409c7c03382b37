"""`clade import` of DynamoDB tables and of their exports to S3."""

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from commands.importing.file_format import columns
from commands.importing.source import Source
from commands.options import EXIT_INTERRUPTED, interruptible
from commands.progress import progress
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.store_url import DynamoDBUrl
from store.text import quantity
from store.transfer.formats import Format
from store.transfer.formats.files import rejected_items
from store.transfer.formats.matching import ColumnOptions
from store.transfer.formats.table_rows import LevelColumns
from store.transfer.rows import ImportPlan, Rejection, Row
from store.transfer.tables.items import ItemReader, KeyTemplate, WireItem
from store.transfer.tables.proposal import key_attributes, propose_names, propose_templates
from store.transfer.tables.s3_export import Export, find_export, is_data_file, is_export, read_export, sample_items
from store.transfer.tables.scan_files import ScanFiles

if TYPE_CHECKING:
    from store.transfer.tables.scan import TableInfo

SCHEME = "dynamodb://"
SAMPLE_ITEMS = 1_000
SHOWN_KEYS = 5
SEGMENTS = 4
NO_TEMPLATE = (
    "A table needs --key with the levels in its keys, such as --key "
    '"CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]", or --tree-by or --level with attributes; '
    "--describe proposes one."
)


@dataclass(frozen=True)
class TableOptions:
    """The options about a table: key templates, the names of its keys, and how it is scanned."""

    templates: Sequence[str] = ()
    keys: Sequence[str] = ()
    units_per_second: float | None = None
    segments: int | None = None

    @property
    def are_of_scan(self) -> bool:
        """Whether one says how a table is scanned."""
        return self.units_per_second is not None or self.segments is not None


@dataclass(frozen=True)
class TableSource:
    """A table as an export on disk, with the names of its keys, empty where they are not known."""

    source: Source
    export: Export
    keys: Sequence[str] = ()


def is_table(address: str, options: TableOptions) -> bool:
    """Whether an address is that of a table or of an export of one."""
    file = Path(address)
    return bool(address.startswith(SCHEME) or options.templates or is_export(file) or is_data_file(file))


@contextmanager
def table_at(address: str, options: TableOptions, *, one_page: bool) -> Iterator[TableSource]:
    """The table at an address while the block runs: scanned to files, with `one_page` its first items alone."""
    if not address.startswith(SCHEME):
        export = find_export(Path(address))
        if Path(address).is_file() and not is_export(Path(address)):
            source = Source(Path(address), Path(address).name, Path(address).parent)
        else:
            source = Source(Path(f"{export.table or 'export'}.json"), export.table or address, Path())
        yield TableSource(source, export, options.keys)
        return
    url = DynamoDBUrl.parse(address.removeprefix(SCHEME))
    with _first_page(url) if one_page else _scanned(url, address, options) as (export, keys):
        yield TableSource(Source(Path(f"{url.table}.json"), url.table, Path()), export, options.keys or keys)


@contextmanager
def _first_page(url: DynamoDBUrl) -> Iterator[tuple[Export, Sequence[str]]]:
    """The first items of a table, and the names of its keys."""
    with TemporaryDirectory(prefix="clade-") as folder:
        file = Path(folder) / url.table
        with interruptible(lambda: "Stopped: nothing was written."):
            info = asyncio.run(_scan_page(url, file))
        yield Export([(file, None)], url.table), info.keys


@contextmanager
def _scanned(url: DynamoDBUrl, address: str, options: TableOptions) -> Iterator[tuple[Export, Sequence[str]]]:
    """The items of a table, and the names of its keys; the files of the scan are removed when all was imported."""
    with ScanFiles(Path(f"{url.table}.scan"), address, options.segments or SEGMENTS) as files:
        if files.items:
            sentence = f"Continuing the scan in {files.folder} after {quantity(files.items, 'item')}"
            typer.echo(f"{sentence}; delete this folder to read the table anew.", err=True)
        with interruptible(lambda: "Stopped: nothing was imported. The same command continues the scan."):
            info = asyncio.run(_scan(url, files, options))
        try:
            yield Export([(segment.path, None) for segment in files.segments], url.table), info.keys
        except BadInput:
            if not files.items:  # nothing was paid for
                files.remove()
            raise
        except typer.Exit as ended:
            if ended.exit_code != EXIT_INTERRUPTED:
                files.remove()
            raise
        files.remove()


def table_format(
    hierarchy: Hierarchy, table: TableSource, given: ColumnOptions, options: TableOptions
) -> tuple[Format, ItemReader]:
    """The format of a table, and the reader of its items. Raises BadInput."""
    templates, levels = key_templates(hierarchy, given, options)
    reader = ItemReader(hierarchy, templates, _keys(hierarchy, table, templates), levels)

    def read(_: Path) -> Iterator[tuple[str, Row | Rejection]]:
        reader.unused.clear()
        return read_export(table.export, reader.row_of)

    return Format(read, lambda _: rejected_items()), reader


def key_templates(
    hierarchy: Hierarchy, given: ColumnOptions, options: TableOptions
) -> tuple[list[KeyTemplate], list[LevelColumns]]:
    """The templates of the options, and the columns of levels. Raises BadInput for the first wrong option."""
    if given.case_insensitive:
        raise BadInput("--fold-case is for files, not for DynamoDB tables; write the keys of the items alike.")
    templates = [KeyTemplate(hierarchy, text) for text in options.templates]
    in_keys = dict.fromkeys(level for template in templates for level in template.levels)
    return templates, columns(hierarchy, given, in_keys) if templates else []


def describe_table(hierarchy: Hierarchy, address: str, table: TableSource, options: TableOptions) -> bool:
    """Print keys of a sample and the proposed command; False where no template fits."""
    items = sample_items(table.export, SAMPLE_ITEMS)
    if not items:
        raise BadInput(f"{table.source.name} has no items to describe.")
    pairs = [table.keys] if table.keys else key_attributes(items)
    if not pairs:
        raise BadInput("No attributes look like the keys; add --keys, such as --keys PK,SK.")
    keys = [[_text(item, name) for name in pairs[0]] for item in items]
    typer.echo(f"{table.source.name}: {quantity(len(items), 'item')} in the sample, keys {' and '.join(pairs[0])}")
    for values in keys[:SHOWN_KEYS]:
        typer.echo(f"  {' / '.join(values)}")
    templates = list(options.templates) or propose_templates(hierarchy, keys)
    if not templates:
        typer.echo(f"No --key fits the levels of {hierarchy.name}.")
        return False
    reader = ItemReader(hierarchy, [KeyTemplate(hierarchy, text) for text in templates], pairs[0])
    found = [(match.levels[-1], item) for item in items if (match := reader.match(item))]
    typer.echo(f"The template matches {len(found):,} of {quantity(len(items), 'item')}.")
    plan = ImportPlan(hierarchy)
    for number, item in enumerate(items, start=1):
        plan.take(reader.row(number, item))
    if len(plan.rejections) * 2 > plan.rows:
        first = plan.rejections[0].reason
        raise BadInput(f"{len(plan.rejections):,} of these items would be rejected: {first} Write --key yourself.")
    words = ["clade", "import", hierarchy.name, address]
    words += [] if address.startswith(SCHEME) else ["--keys", ",".join(pairs[0])]
    words += [word for text in templates for word in ("--key", text)]
    names = propose_names([level for level, _ in found], [item for _, item in found])
    words += [word for name in names for word in ("--name", name)]
    typer.echo(f"Proposed command:\n  {shlex.join(words)}")
    return True


def _text(item: WireItem, name: str) -> str:
    value = item.get(name, {})
    return str(value.get("S") or value.get("N") or "")


def _keys(hierarchy: Hierarchy, table: TableSource, templates: Sequence[KeyTemplate]) -> Sequence[str]:
    """The names of the keys; where they are not known, those of a sample that match. Raises BadInput if unclear."""
    if table.keys:
        return table.keys
    items = sample_items(table.export, SAMPLE_ITEMS)
    pairs: list[tuple[str, ...]] = [*key_attributes(items)]
    if not any(template.has_sort_key for template in templates):
        pairs = [*dict.fromkeys((first,) for first, _ in pairs)]
    readers = [(ItemReader(hierarchy, templates, pair), pair) for pair in pairs]
    counts = [(sum(reader.match(item) is not None for item in items), pair) for reader, pair in readers]
    best = max((count for count, _ in counts), default=0)
    found = [pair for count, pair in counts if count == best]
    if not best or len(found) > 1:
        raise BadInput("The names of the key attributes are unclear; add --keys, such as --keys PK,SK.")
    return found[0]


async def _scan(url: DynamoDBUrl, files: ScanFiles, options: TableOptions) -> "TableInfo":
    """Scan a table to files; the units are printed before and after."""
    from store.transfer.tables.scan import TableScan  # with the client of DynamoDB, which takes a while to import

    scan = TableScan(url, options.units_per_second)
    async with scan.client() as client:
        info = await scan.describe(client)
        typer.echo(info.sentence(), err=True)
        with progress("Scanning", "items", info.items or None) as meter:
            meter(files.items)
            scan.on_items = meter
            await scan.run(client, info, files.segments)
    typer.echo(f"Read {quantity(scan.items, 'item')} with {scan.units:,.1f} read units.", err=True)
    return info


async def _scan_page(url: DynamoDBUrl, file: Path) -> "TableInfo":
    """Read the first page of a table to a file."""
    from store.transfer.tables.scan import TableScan

    scan = TableScan(url)
    async with scan.client() as client:
        info = await scan.describe(client)
        typer.echo(f"Reading the first page of {info.name}.", err=True)
        with file.open("xb") as target:
            await scan.first_page(client, target)
    typer.echo(f"Read {quantity(scan.items, 'item')} with {scan.units:,.1f} read units.", err=True)
    return info
