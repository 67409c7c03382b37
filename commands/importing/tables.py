"""`clade import` of DynamoDB tables and of their exports to S3."""

import shlex
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from commands import interrupt
from commands.common import progress
from commands.importing.checks import check_keys
from commands.importing.files import Source, columns
from commands.interrupt import interruptible
from store.connect import DynamoDBUrl
from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import ColumnOptions, LevelColumns, fold
from store.transfer.formats.source import REJECTED_JSON, Doubt, Format, Guess
from store.transfer.rows import ImportPlan, Row
from store.transfer.tables.items import ItemReader, JsonItem, key_text, plain
from store.transfer.tables.left_out import LeftOut
from store.transfer.tables.proposals import Proposal, are_ids, key_attributes, key_candidates, proposals
from store.transfer.tables.scan import Export, find_export, is_export, read_export, sample_items, usual_expiry
from store.transfer.tables.templates import DIVIDER, KeyTemplate

if TYPE_CHECKING:
    from store.transfer.tables.scan import TableInfo

SCHEME = "dynamodb://"
SAMPLE_ITEMS = 1_000
SHOWN_KEYS = 5
SHOWN_VALUES = 3
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
    keys = _keys(hierarchy, table, templates, left_out)
    is_changes = table.export.is_incremental
    reader = ItemReader(hierarchy, templates, keys, columns, left_out, removes=prune, is_part=is_changes)
    return Format(lambda: read_export(table.export, reader), REJECTED_JSON._replace(ending=".json")), reader


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
    return LeftOut(skip, expiry or (), at, options.keep_deleted, {} if table.is_part else required)


def describe_table(
    hierarchy: Hierarchy, address: str, table: TableSource, options: TableOptions, columns: ColumnOptions,
    left_out: LeftOut,
) -> None:  # fmt: skip
    """Print keys of a sample, and the command that imports it best, with what becomes of each attribute.

    Raises BadInput where each command would reject most of the sample.
    """
    left_out.clear()
    items = sample_items(table.export, SAMPLE_ITEMS, left_out)
    if not items:
        raise BadInput(f"{table.source.name} has no items to describe.")
    names = table.keys or next(iter(key_candidates(items)), ())
    keys = " and ".join(names) or "unknown"
    typer.echo(f"{table.source.name}: {quantity(len(items), 'item')} in the sample, keys {keys}")
    for item in items[:SHOWN_KEYS]:
        typer.echo(f"  {' / '.join(key_text(item.get(name)) for name in names)}")
    found = [Proposal(names, options.templates, columns)]
    if not options.templates and not columns.levels:
        found = proposals(hierarchy, items, table.keys)
    values = [key_text(item.get(names[0])) for item in items] if names else []
    if values and are_ids(values) and not (found and found[0].templates):
        typer.echo(f"The keys are ids, such as {shorten(values[0])}: they say no levels.")
    reason = "No template fits the keys, and no attribute is named like a level: write --key or --level yourself."
    for number, proposal in enumerate(found):
        tried = _Trial(hierarchy, table, items, proposal)
        if tried.is_good:
            break
        reason = reason if number else tried.reason
    else:
        raise BadInput(f"No command is proposed for {table.source.name}: {reason}")
    tried.describe()
    for sentence in left_out.sentences():
        typer.echo(sentence)
    words = ["clade", "import", hierarchy.name, address]
    is_known = address.startswith(SCHEME) and not options.keys and proposal.keys == table.keys
    words += ["--keys", ",".join(proposal.keys)] if proposal.templates and not is_known else []
    words += [word for text in proposal.templates for word in ("--key", text)]
    words += [word for pair in proposal.columns.pairs() for word in pair]
    words += [word for text in options.skip for word in ("--skip", text)]
    words += ["--ttl", options.ttl] if options.ttl else []
    words += ["--keep-deleted"] if options.keep_deleted else []
    typer.echo(f"Proposed command:\n  {shlex.join(words)}")


class _Trial:
    """A proposal as tried on the items of a sample: how many are rejected, the first reason, and what is used."""

    def __init__(self, hierarchy: Hierarchy, table: TableSource, items: Sequence[JsonItem], proposal: Proposal) -> None:
        templates = [KeyTemplate(hierarchy, text) for text in proposal.templates]
        self._columns = columns(hierarchy, proposal.columns, (level for one in templates for level in one.levels))
        self._proposal, self._items, self._hierarchy = proposal, items, hierarchy
        reader = ItemReader(hierarchy, templates, proposal.keys, self._columns)
        self._matches = sum(reader.match(item) is not None for item in items)
        self._rows = [row for number, item in enumerate(items, 1) if (row := reader.row(number, item))]
        plan = ImportPlan(hierarchy)
        for row in self._rows:
            plan.take(row)
        rejections = [*plan.rejections, *(one for version in plan.versions.values() for one in version.rejections)]
        self._rejected = len(rejections)
        self.reason = f"item {rejections[0].number}: {rejections[0].reason}" if rejections else ""
        self.is_good = 2 * self._rejected <= len(items)
        try:
            check_keys(table.source.name, self._rows)
        except Doubt as doubt:
            self.is_good, self.reason = False, str(doubt)

    def describe(self) -> None:
        """Print how many items are imported, and what becomes of each attribute."""
        total = quantity(len(self._items), "item")
        if self._proposal.templates:
            typer.echo(f"The template matches {self._matches:,} of {total}.")
        if self._proposal.is_guess:
            typer.echo("Its levels are guessed, since no text in the keys names them; correct them in --key.")
        if self._rejected:
            typer.echo(f"Of {total} {self._rejected:,} would be rejected, such as {self.reason}")
        uses = self._uses()
        for name in dict.fromkeys(name for item in self._items for name in item):
            values = dict.fromkeys(shorten(str(plain(item[name])), 30) for item in self._items if name in item)
            typer.echo(f"  {name}: {', '.join([*values][:SHOWN_VALUES])} ({uses.get(name, 'not imported')})")

    def _uses(self) -> dict[str, str]:
        """What becomes of attributes that are imported."""
        uses: dict[str, str] = {}
        for level in {row.parts[-1].level for row in self._rows if isinstance(row, Row) and row.parts}:
            by_name = {fold(name): name for name in self._hierarchy.levels[level].attributes}
            for name in {name for item in self._items for name in item if fold(name) in by_name}:
                uses[name] = f"attribute {by_name[fold(name)]}"
        for one in self._columns:
            level = one.level.lower()
            uses |= {column: f"{name} of {level}" for name, column in one.columns.items()}
            uses |= {column: f"name of {level} in {tag}" for tag, column in one.names.items()}
            uses |= {one.key: f"key of {level}"} if one.key else {}
        for parts in [text.split(DIVIDER) for text in self._proposal.templates]:
            uses |= {name: f"key {part}" for name, part in zip(self._proposal.keys, parts, strict=False)}
        return uses


def _keys(
    hierarchy: Hierarchy, table: TableSource, templates: Sequence[KeyTemplate], left_out: LeftOut
) -> Sequence[str]:
    """The names of the keys; where they are not known, those of a sample that match. Raises BadInput if unclear."""
    if table.keys or not templates:
        return table.keys
    items = sample_items(table.export, SAMPLE_ITEMS, left_out)
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
