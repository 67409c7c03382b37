"""`clade import` of DynamoDB tables and of their exports to S3."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commands import interrupt
from commands.common import progress
from commands.importing.advice import Given, preview
from commands.importing.describe import check_sample, describe_columns, propose
from commands.importing.files import FileOptions, Source
from commands.interrupt import interruptible
from commands.output import say
from store.connect import DynamoDBUrl
from store.dynamodb.client import DynamoDBClient
from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.skip import Skip
from store.transfer.formats.table import SAMPLE_ROWS, Sample, Table
from store.transfer.rows import ImportPlan
from store.transfer.shapes.choice import SHAPES, TREES, check_keys, shape_of
from store.transfer.shapes.columns import ColumnOptions, LevelColumns, columns
from store.transfer.shapes.doubts import Look
from store.transfer.shapes.links import MAX_ROWS
from store.transfer.shapes.shape import Shape
from store.transfer.tables.items import ItemReader, Items, key_text, plain
from store.transfer.tables.left_out import JsonItem, LeftOut
from store.transfer.tables.proposals import Proposal, are_ids, key_attributes, key_candidates, proposals
from store.transfer.tables.scan import Export, TableScan, export_table, find_export, first_items
from store.transfer.tables.templates import DIVIDER, KeyTemplate

SCHEME = "dynamodb://"
SAMPLE_ITEMS = 1_000
SHOWN_KEYS = 5
NO_TEMPLATE = (
    "A table needs --key with the levels in its keys, such as --key "
    '"CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]", or, where its keys are ids, attributes with the '
    "keys of levels, such as --level category=shelf; --describe proposes them."
)
NO_PROPOSAL = "no key says a level, and no attribute is named like a level: write --key or --level yourself."


def _given_keys(params: Mapping[str, Any]) -> list[str]:
    return [name.strip() for name in (params["keys"] or "").split(",") if name.strip()]


@dataclass(frozen=True)
class TableSource:
    """A table as an export on disk, what of it is left out, and the names of its keys, empty if they are not known."""

    source: Source
    export: Export
    left_out: LeftOut
    keys: Sequence[str]

    @property
    def table(self) -> Table:
        """The items as the rows of a table."""
        return export_table(self.export, self.source.name, self.left_out)

    def first_items(self, number: int) -> Iterator[JsonItem]:
        """The items in the first lines."""
        return first_items(self.export, number, self.left_out)

    def check(self, hierarchy: Hierarchy) -> None:
        """Raise Doubt for items of a tree in another shape, such as by ids of parents."""
        header = list(dict.fromkeys(column for item in self.first_items(SAMPLE_ROWS) for column in item))

        def rows(number: int = MAX_ROWS) -> Iterator[list[str]]:
            for item in self.first_items(number):
                yield [key_text(item.get(column)) for column in header]

        first = Sample(header, ((0, row, None, None, "") for row in rows(SAMPLE_ROWS)))
        for shape in SHAPES:
            shape.see_table(Look(hierarchy, self.source.name, first, rows))

    def by_parents(self, hierarchy: Hierarchy, options: FileOptions) -> Shape:
        """The shape of a table whose items name their parents. Raises BadInput."""
        if self.export.is_incremental:
            raise BadInput("--tree-by needs a whole table; this export has only what changed.")
        if options.tree and TREES[options.tree.shape][0].needs_order:
            raise BadInput(f"--tree-by {options.tree.shape} is for files; the items of a table are in no order.")
        return shape_of(hierarchy, self.table, replace(options, skip=Skip()))  # items are left out before

    def by_keys(
        self, hierarchy: Hierarchy, templates: Sequence[KeyTemplate], columns: Sequence[LevelColumns],
        *, prune: bool = False,
    ) -> Items:  # fmt: skip
        """The shape of a table by its keys. Raises BadInput where these are unclear."""
        keys = self.keys if self.keys or not templates else self._matching_keys(hierarchy, templates)
        reader = ItemReader(hierarchy, templates, keys, columns, self.left_out, prune, self.export.is_incremental)
        return Items(reader, self.table)

    def _matching_keys(self, hierarchy: Hierarchy, templates: Sequence[KeyTemplate]) -> Sequence[str]:
        """The names of the keys of a sample that match. Raises BadInput if they are unclear."""
        items = [*self.first_items(SAMPLE_ITEMS)]
        length = 2 if any(template.has_sort_key for template in templates) else 1
        candidates = dict.fromkeys(pair[:length] for pair in key_attributes(items))
        readers = [ItemReader(hierarchy, templates, names) for names in candidates]
        counts = [sum(reader.match(item) is not None for item in items) for reader in readers]
        best = max(counts, default=0)
        if not best or counts.count(best) > 1:
            raise BadInput("The names of the key attributes are unclear; add --keys, such as --keys PK,SK.")
        return readers[counts.index(best)].keys


@contextmanager
def table_at(params: Mapping[str, Any], *, one_page: bool) -> Iterator[TableSource]:
    """The table of a command while the block runs: scanned to files, with `one_page` its first items alone."""
    address = params["file"]
    with ExitStack() as stack:
        if address.startswith(SCHEME):
            url = DynamoDBUrl.parse(address.removeprefix(SCHEME))
            # Large tables need a disk, and the folder of temporary files may be in memory.
            folder = TemporaryDirectory(prefix=f"{url.table[:200]}.scan-", dir=None if one_page else Path())
            top = Path(stack.enter_context(folder))
            files = [top / f"{number}.json" for number in range(1 if one_page else params["segments"])]
            with interruptible(lambda: "Stopped: nothing was imported."):
                scan = interrupt.run(_scan(url, files, params, one_page=one_page))
            export, keys, expiry = Export([(file, None) for file in files], url.table), scan.keys, scan.expiry
            at, is_part = scan.client.now(), one_page
        else:
            export, keys, expiry = find_export(Path(address)), (), None
            at = export.time.timestamp() if export.time else time.time()
            is_part = export.is_incremental
        source = Source(Path(f"{export.table or 'export'}.json"), export.table or address, Path())
        if Path(address).is_file() and not export.table:
            source = Source(Path(address), Path(address).name, Path(address).parent)
        ttl, skip = params["ttl"], Skip.of(params["skip"] or ()).values
        required = [*([ttl] if ttl else []), *(name for name, _ in skip)]
        left_out = LeftOut(skip, ttl or expiry, at, params["keep_deleted"], [] if is_part else required)
        yield TableSource(source, export, left_out, _given_keys(params) or keys)


def item_columns(
    hierarchy: Hierarchy, given: ColumnOptions, texts: Sequence[str]
) -> tuple[list[KeyTemplate], list[LevelColumns]]:
    """The key templates and the columns of a table, before a scan costs units. Raises BadInput for a wrong option."""
    if given.case_insensitive:
        raise BadInput("--fold-case is for files, not for DynamoDB tables; write the keys of the items alike.")
    templates = [KeyTemplate(hierarchy, text) for text in texts]
    found = columns(hierarchy, given, (level for template in templates for level in template.levels))
    values, levels = {(own.level, *own.values) for own in found}, {own.level for own in found}
    if len(values) > len(levels) or any(own.paths and (own.paths.each or own.above) for own in found):
        raise BadInput("Several paths, paths of several levels and values by column are for files, not for tables.")
    return templates, found


def describe_table(given: Given, hierarchy: Hierarchy, table: TableSource, columns: ColumnOptions) -> list[str]:
    """Note keys of a sample, what becomes of each attribute, and a command that has passed the checks of an import;
    returns the lines of the tree of the sample.

    Raises BadInput where each command would reject most of the sample.
    """
    left_out, source = table.left_out, table.source.name
    left_out.clear()
    items = [*table.first_items(SAMPLE_ITEMS)]
    if not items:
        raise BadInput(f"{source} has no items to describe.")
    left_out.ask()
    names = table.keys or next(iter(key_candidates(items)), ())
    number = quantity(len(items), "item")
    given.said.append(f"{source}: {number} in the sample, keys {' and '.join(names) or 'unknown'}")
    given.said += [f"  {' / '.join(key_text(item.get(name)) for name in names)}" for item in items[:SHOWN_KEYS]]
    found = [Proposal(table.keys, given.params["key"] or (), columns)]
    if not given.params["key"] and not columns.levels:
        found = proposals(hierarchy, items, table.keys)
    values = [key_text(item.get(names[0])) for item in items] if names else []
    if values and are_ids(values) and not (found and found[0].templates):
        given.said.append(f"The keys are ids, such as {shorten(values[0])}: they say no levels.")
    reason = ""
    for proposal in found:
        try:
            templates, levels = item_columns(hierarchy, proposal.columns, proposal.templates)
            shape = replace(table, keys=proposal.keys).by_keys(hierarchy, templates, levels)
            check_keys(hierarchy, source, shape.first)
            plan = ImportPlan(hierarchy)
            rejected = check_sample(plan, source, shape.rows())
            break
        except BadInput as error:
            reason = reason or str(error)
    else:
        raise BadInput(f"No command is proposed for {source}: {reason or NO_PROPOSAL}")
    places = {column: f"attribute {name}" for column, name in shape.reader.by_name.items()}
    places |= {column: use for one in levels for column, use in one.places()}
    for parts in [text.split(DIVIDER) for text in proposal.templates]:
        places |= {name: f"key {part}" for name, part in zip(shape.reader.keys, parts, strict=False)}
    header = [*dict.fromkeys(name for item in items for name in item)]
    cells = [[str(plain(item[name])) if name in item else "" for name in header] for item in items]
    describe_columns(given.said, Sample(header, ((0, row, None, None, "") for row in cells)), places)
    given.said += [*([rejected] if rejected else []), *left_out.sentences()]
    is_known = given.params["file"].startswith(SCHEME) and proposal.keys == table.keys
    has_keys = is_known or not proposal.templates or _given_keys(given.params)
    keys = [] if has_keys else [("--keys", ",".join(shape.reader.keys))]
    propose(given, [*keys, *(("--key", text) for text in proposal.templates), *proposal.columns.pairs()])
    return preview(plan)


async def _scan(url: DynamoDBUrl, files: Sequence[Path], params: Mapping[str, Any], *, one_page: bool) -> TableScan:
    """Scan a table to files, a segment to each, or its first page alone; the units are printed."""
    async with DynamoDBClient(url.table, url.region, url.endpoint) as client:
        scan = TableScan(client, params["read_units"])
        await scan.describe(with_expiry=not params["ttl"] and not params["keep_deleted"])
        if scan.expiry is None:
            say(
                f"The time to live of {url.table} is unknown, since DescribeTimeToLive is not allowed; --ttl names it.",
                err=True,
            )
        say(f"Reading the first page of {url.table}." if one_page else scan.sentence(), err=True)
        with progress("Scanning", "items", scan.table_items or None) as meter:
            scan.on_items = meter
            await scan.run(files, one_page=one_page)
    say(f"Read {quantity(scan.items, 'item')} with {scan.units:,.1f} read units.", err=True)
    return scan
