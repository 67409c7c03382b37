"""`clade import` of DynamoDB tables and of their exports to S3."""

import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
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
from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import ColumnOptions, LevelColumns, fold
from store.transfer.formats.source import Doubt, Format, Guess, rejected_json
from store.transfer.tables.items import ItemReader, key_attributes, key_text, propose_names, propose_templates
from store.transfer.tables.left_out import LeftOut
from store.transfer.tables.scan import Export, find_export, is_export, read_export, sample_items, usual_expiry
from store.transfer.tables.templates import KeyTemplate

if TYPE_CHECKING:
    from store.transfer.tables.scan import TableInfo

SCHEME = "dynamodb://"
SAMPLE_ITEMS = 1_000
SHOWN_KEYS = 5
NO_TEMPLATE = (
    "A table needs --key with the levels in its keys, such as --key "
    '"CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]", or, where its keys are ids, attributes with the '
    "keys of levels, such as --level category=shelf; --describe proposes them."
)


@dataclass(frozen=True)
class TableOptions:
    """The options about a table: key templates, the names of its keys, how it is scanned, and what is left out."""

    templates: Sequence[str] = ()
    keys: Sequence[str] = ()
    units_per_second: float | None = None
    segments: int = 4
    skip: Sequence[str] = ()
    ttl: str | None = None
    keep_deleted: bool = False

    def skipped(self) -> list[tuple[str, str]]:
        """The attributes and values of `--skip`. Raises BadInput."""
        pairs = [text.partition("=") for text in self.skip]
        if wrong := next((name + equals for name, equals, _ in pairs if not (name and equals)), None):
            raise BadInput(f"--skip {shorten(wrong)} has no attribute and value; use --skip __typename=Order.")
        return [(name, value) for name, _, value in pairs]


@dataclass(frozen=True)
class TableSource:
    """A table as an export on disk, with the names of its keys, empty where they are not known.

    `expiry` are the attributes by which its items expire, None where they are not known. `is_part` where not all of its
    items are there.
    """

    source: Source
    export: Export
    keys: Sequence[str] = ()
    expiry: Sequence[str] | None = None
    is_part: bool = False


def is_table(address: str, options: TableOptions) -> bool:
    """Whether an address is that of a table or of an export of one."""
    return bool(address.startswith(SCHEME) or options.templates or is_export(Path(address)))


@contextmanager
def table_at(address: str, options: TableOptions, *, one_page: bool) -> Iterator[TableSource]:
    """The table at an address while the block runs: scanned to files, with `one_page` its first items alone."""
    if not address.startswith(SCHEME):
        export = find_export(Path(address))
        if Path(address).is_file() and not export.table:
            source = Source(Path(address), Path(address).name, Path(address).parent)
        else:
            source = Source(Path(f"{export.table or 'export'}.json"), export.table or address, Path())
        yield TableSource(source, export, options.keys, is_part=export.is_incremental)
        return
    url = DynamoDBUrl.parse(address.removeprefix(SCHEME))
    # Large tables need a disk, and the folder of temporary files may be in memory.
    with TemporaryDirectory(prefix=f"{url.table[:200]}.scan-", dir=None if one_page else Path()) as folder:
        files = [Path(folder) / f"{number}.json" for number in range(1 if one_page else options.segments)]
        with interruptible(lambda: "Stopped: nothing was imported."):
            info, expiry = interrupt.run(_scan(url, files, options, one_page=one_page))
        source = Source(Path(f"{url.table}.json"), url.table, Path())
        export = Export([(file, None) for file in files], url.table)
        yield TableSource(source, export, options.keys or info.keys, expiry, is_part=one_page)


def item_columns(
    hierarchy: Hierarchy, given: ColumnOptions, options: TableOptions
) -> tuple[list[KeyTemplate], list[LevelColumns]]:
    """The key templates and the columns of a table, before a scan costs units. Raises BadInput for a wrong option."""
    if given.case_insensitive:
        raise BadInput("--fold-case is for files, not for DynamoDB tables; write the keys of the items alike.")
    templates = [KeyTemplate(hierarchy, text) for text in options.templates]
    return templates, columns(hierarchy, given, (level for template in templates for level in template.levels))


def table_format(
    hierarchy: Hierarchy, table: TableSource, templates: Sequence[KeyTemplate], columns: Sequence[LevelColumns],
    left_out: LeftOut, *, prune: bool,
) -> tuple[Format, ItemReader]:  # fmt: skip
    """The format of a table, and the reader of its items. Raises BadInput where its keys are unclear."""
    keys = _keys(hierarchy, table, templates)
    is_changes = table.export.is_incremental
    reader = ItemReader(hierarchy, templates, keys, columns, left_out, removes=prune, is_part=is_changes)
    return Format(lambda: read_export(table.export, reader), rejected_json()._replace(ending=".json")), reader


def left_out_of(
    hierarchy: Hierarchy, table: TableSource, options: TableOptions, used: Collection[str], taken: Collection[Guess]
) -> LeftOut:
    """What of a table is left out, by its options and its time to live, or else by attributes with usual names.

    Raises Doubt where such an attribute is `used` by an option or named like one of a level, or is no time in some
    items; taken as it is, no item expires by it.
    """
    export = table.export
    at = export.time.timestamp() if export.time else time.time()
    expiry = [options.ttl] if options.ttl else table.expiry
    if expiry is None and not options.keep_deleted:
        expiry = []
        levels = {fold(name): level.name for level in hierarchy.levels.values() for name in level.attributes}
        for name, past, other in usual_expiry(export, at):
            why = f'is also "{shorten(other)}"' if other else "is imported as an attribute"
            if other is None and name not in used and fold(name) not in levels:
                expiry.append(name)
            elif Guess.EXPIRY not in taken:
                raise Doubt(
                    Guess.EXPIRY,
                    f'{quantity(past, "item")} of {table.source.name} may have expired by "{name}", which {why}; '
                    f"--ttl {name} leaves them out, --keep-deleted imports them.",
                )
    skip, required = options.skipped(), {options.ttl: "--ttl"} if options.ttl else {}
    required |= {name: "--skip" for name, _ in skip}
    return LeftOut(
        skip, expiry or (), at, keep_deleted=options.keep_deleted, required={} if table.is_part else required
    )


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
    if table.keys or not templates:
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


async def _scan(
    url: DynamoDBUrl, files: Sequence[Path], options: TableOptions, *, one_page: bool
) -> "tuple[TableInfo, Sequence[str] | None]":
    """Scan a table to files, a segment to each, or its first page alone; the units are printed.

    With the table also the attributes by which its items expire, None where they are not known.
    """
    from store.transfer.tables.scan import TableScan  # with the client of DynamoDB, which takes a while to import

    scan = TableScan(url, options.units_per_second)
    with ExitStack() as stack:
        segments = [stack.enter_context(file.open("xb")) for file in files]
        async with scan.client() as client:
            info = await scan.describe(client)
            expiry = () if options.ttl or options.keep_deleted else await scan.expiry(client)
            if expiry is None:
                typer.echo(
                    f"The time to live of {info.name} is unknown, since DescribeTimeToLive is not allowed; attributes "
                    "with usual names, such as expires, are taken for it, and --ttl names another one.",
                    err=True,
                )
            if one_page:
                typer.echo(f"Reading the first page of {info.name}.", err=True)
                await scan.first_page(client, segments[0])
            else:
                typer.echo(info.sentence(), err=True)
                with progress("Scanning", "items", info.items or None) as meter:
                    scan.on_items = meter
                    await scan.run(client, info, segments)
    typer.echo(f"Read {quantity(scan.items, 'item')} with {scan.units:,.1f} read units.", err=True)
    return info, expiry
