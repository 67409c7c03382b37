"""`clade import` of DynamoDB tables and of their exports to S3."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from commands import interrupt
from commands.common import progress
from commands.importing.files import Source, columns
from commands.interrupt import interruptible
from store.connect import DynamoDBUrl
from store.errors import BadInput, quantity
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import ColumnOptions, LevelColumns
from store.transfer.formats.source import Format, rejected_json
from store.transfer.tables.items import ItemReader, key_attributes, key_text, propose_names, propose_templates
from store.transfer.tables.scan import Export, find_export, is_export, read_export, sample_items
from store.transfer.tables.templates import KeyTemplate

if TYPE_CHECKING:
    from store.transfer.tables.scan import TableInfo

SCHEME = "dynamodb://"
SAMPLE_ITEMS = 1_000
SHOWN_KEYS = 5
NO_TEMPLATE = (
    "A table needs --key with the levels in its keys, such as --key "
    '"CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]"; --describe proposes one.'
)


@dataclass(frozen=True)
class TableOptions:
    """The options about a table: key templates, the names of its keys, and how it is scanned."""

    templates: Sequence[str] = ()
    keys: Sequence[str] = ()
    units_per_second: float | None = None
    segments: int = 4


@dataclass(frozen=True)
class TableSource:
    """A table as an export on disk, with the names of its keys, empty where they are not known."""

    source: Source
    export: Export
    keys: Sequence[str] = ()


def is_table(address: str, options: TableOptions) -> bool:
    """Whether an address is that of a table or of an export of one."""
    return bool(address.startswith(SCHEME) or options.templates or is_export(Path(address)))


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
    # Large tables need a disk, and the folder of temporary files may be in memory.
    with TemporaryDirectory(prefix=f"{url.table[:200]}.scan-", dir=None if one_page else Path()) as folder:
        files = [Path(folder) / f"{number}.json" for number in range(1 if one_page else options.segments)]
        with interruptible(lambda: "Stopped: nothing was imported."):
            info = interrupt.run(_scan(url, files, options, one_page=one_page))
        source = Source(Path(f"{url.table}.json"), url.table, Path())
        yield TableSource(source, Export([(file, None) for file in files], url.table), options.keys or info.keys)


def item_columns(
    hierarchy: Hierarchy, given: ColumnOptions, options: TableOptions
) -> tuple[list[KeyTemplate], list[LevelColumns]]:
    """The key templates and the columns of a table, before a scan costs units. Raises BadInput for a wrong option."""
    if given.case_insensitive:
        raise BadInput("--fold-case is for files, not for DynamoDB tables; write the keys of the items alike.")
    templates = [KeyTemplate(hierarchy, text) for text in options.templates]
    return templates, columns(hierarchy, given, (level for template in templates for level in template.levels))


def table_format(
    hierarchy: Hierarchy, table: TableSource, templates: Sequence[KeyTemplate], columns: Sequence[LevelColumns]
) -> tuple[Format, ItemReader]:
    """The format of a table, and the reader of its items. Raises BadInput where its keys are unclear."""
    reader = ItemReader(hierarchy, templates, _keys(hierarchy, table, templates), columns)
    return Format(lambda: read_export(table.export, reader), rejected_json()._replace(ending=".json")), reader


def describe_table(
    hierarchy: Hierarchy, address: str, table: TableSource, options: TableOptions, check: Callable[[], None]
) -> None:
    """Print keys of a sample and the proposed command, if the table passes the `check`."""
    items = sample_items(table.export, SAMPLE_ITEMS)
    if not items:
        raise BadInput(f"{table.source.name} has no items to describe.")
    pairs = [table.keys] if table.keys else key_attributes(items)
    if not pairs:
        raise BadInput("No attributes look like the keys; add --keys, such as --keys PK,SK.")
    keys = [[key_text(item.get(name)) for name in pairs[0]] for item in items]
    typer.echo(f"{table.source.name}: {quantity(len(items), 'item')} in the sample, keys {' and '.join(pairs[0])}")
    for values in keys[:SHOWN_KEYS]:
        typer.echo(f"  {' / '.join(values)}")
    check()
    templates = list(options.templates) or propose_templates(hierarchy, keys)
    if not templates:
        typer.echo(f"No template fits the levels of {hierarchy.name}; write --key yourself.")
        return
    reader = ItemReader(hierarchy, [KeyTemplate(hierarchy, text) for text in templates], pairs[0])
    found = [(match.levels[-1], item) for item in items if (match := reader.match(item))]
    typer.echo(f"The template matches {len(found):,} of {quantity(len(items), 'item')}.")
    words = ["clade", "import", hierarchy.name, address]
    words += [] if address.startswith(SCHEME) else ["--keys", ",".join(pairs[0])]
    words += [word for text in templates for word in ("--key", text)]
    names = propose_names([level for level, _ in found], [item for _, item in found])
    words += [word for name in names for word in ("--name", name)]
    typer.echo(f"Proposed command:\n  {shlex.join(words)}")


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


async def _scan(url: DynamoDBUrl, files: Sequence[Path], options: TableOptions, *, one_page: bool) -> "TableInfo":
    """Scan a table to files, a segment to each, or its first page alone; the units are printed."""
    from store.transfer.tables.scan import TableScan  # with the client of DynamoDB, which takes a while to import

    scan = TableScan(url, options.units_per_second)
    with ExitStack() as stack:
        segments = [stack.enter_context(file.open("xb")) for file in files]
        async with scan.client() as client:
            info = await scan.describe(client)
            if one_page:
                typer.echo(f"Reading the first page of {info.name}.", err=True)
                await scan.first_page(client, segments[0])
            else:
                typer.echo(info.sentence(), err=True)
                with progress("Scanning", "items", info.items or None) as meter:
                    scan.on_items = meter
                    await scan.run(client, info, segments)
    typer.echo(f"Read {quantity(scan.items, 'item')} with {scan.units:,.1f} read units.", err=True)
    return info
