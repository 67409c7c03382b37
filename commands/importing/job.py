"""Import job: reads a source, moves existing nodes, writes the differences to the store, and reports them."""

import asyncio
import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import typer

from commands.importing.describe import (
    Description,
    check_file,
    check_keys,
    check_sample,
    check_table,
    check_table_shape,
    table_parents,
)
from commands.importing.file_format import (
    FileFormat,
    FileOptions,
    NoLevels,
    columns,
    format_of,
    items_format,
    tree_columns,
)
from commands.importing.source import Source, source_at
from commands.importing.tables import (
    NO_TEMPLATE,
    SCHEME,
    TableOptions,
    TableSource,
    describe_table,
    is_table,
    key_templates,
    table_at,
    table_format,
)
from commands.options import interruptible
from commands.output import output_file, print_json
from commands.progress import progress
from store.connect import opened
from store.engine.protocol import Store
from store.errors import BadInput, CladeError, NoTable, Unavailable, Uncertain
from store.metadata.change_log import Event
from store.model.keys import Key
from store.store_url import SQLiteUrl, parse_store_url
from store.text import quantity, shorten
from store.transfer.created_parents import create_parents
from store.transfer.formats import Format
from store.transfer.formats.files import RejectedRows
from store.transfer.formats.table_rows import PLAIN, named
from store.transfer.load import LoadResult, load
from store.transfer.move_existing import ImportMoves, scratch_copy
from store.transfer.parent_ids import ParentTree, parent_tree
from store.transfer.rows import ImportPlan, Row
from store.transfer.tables.s3_export import find_export
from store.transfer.tables.versions import arrange_versions, delete_nodes, leave_existing_out, leave_wanted_out
from store.writer.writer import Writer

METER_ROWS = 1000

# Almost all objects of an import live until its end; by default the garbage collector would scan them again and again
# and take a quarter of the time.
GC_THRESHOLD = 200_000

MAX_REASONS = 5
GUESSED_ROWS = 20  # of which most are rejected because columns were guessed wrong, not by chance
MAX_JSON_REASONS = 1_000
MAX_ROOTS = 1_000  # of a table, without --yes
MAX_REJECTED = 500_000  # whose reasons are in memory


@dataclass
class ImportJob:
    """One import: the file, the plan of its nodes, the store, and the outcome so far.

    `unused` are the columns that are not imported.
    """

    source: Source
    format: Format
    plan: ImportPlan
    url: str
    prune: bool
    moves: bool
    dry_run: bool
    is_confirmed: bool = False
    create_parents: bool = False
    has_columns: bool = False
    unused: Callable[[], Sequence[str]] = list
    outcome: LoadResult = field(default_factory=LoadResult)
    _versions: list[tuple[ImportPlan, dict[Key, int]]] = field(default_factory=list)
    _kept: int = 0
    _seconds: float = 0.0
    _tree: ParentTree | None = None

    def run(self) -> None:
        """Read the file and write its nodes. After an interruption or an error, print the number of written nodes."""
        started = time.monotonic()
        try:
            with interruptible(lambda: self._progress("Stopped")), ExitStack() as stack:
                gc.set_threshold(GC_THRESHOLD)
                if self.format.by_parent:
                    hierarchy, has_keys = self.plan.hierarchy, self.format.has_keys
                    tree = parent_tree(hierarchy, create=self.create_parents, follows_keys=has_keys)
                    self._tree = stack.enter_context(tree)
                self._read()
                gc.freeze()
                asyncio.run(self._write())
        except CladeError as error:
            # A lost store may hide that another transaction was under way.
            if (self.outcome.written or isinstance(error, Unavailable)) and not isinstance(error, Uncertain):
                typer.echo(self._progress("Failed"), err=True)
            raise
        self._seconds = time.monotonic() - started

    def _progress(self, state: str) -> str:
        return f"{state}: {quantity(self.outcome.written, 'node')} written. Run the same command to continue."

    def _read(self) -> None:
        with progress("Reading", "rows") as meter:
            for number, (_, row) in enumerate(self.format.read(self.source.file), start=1):
                if self._tree is not None and isinstance(row, Row):
                    self._tree.add(row)
                else:
                    self.plan.take(row)
                if len(self.plan.rejections) > MAX_REJECTED and not self.is_confirmed:
                    raise BadInput(
                        f"More than {MAX_REJECTED:,} rows of {self.source.name} are rejected; nothing was imported. "
                        f"The last: row {row.number}: {self.plan.rejections[-1].reason} --yes imports the others."
                    )
                if number % METER_ROWS == 0:
                    meter(METER_ROWS)
        if self._tree is None:
            self._versions = arrange_versions(self.plan)
            leave_wanted_out(self.plan)
            if self.create_parents:
                create_parents(self.plan)
            self._check_roots()

    def _check_roots(self) -> None:
        """Raise BadInput for a table that is rather a list than a tree."""
        roots = sum(self.plan.depths[:1])
        if self.has_columns and roots > MAX_ROOTS and not self.is_confirmed:
            raise BadInput(
                f"{self.source.name} makes {roots:,} roots, so it may be a tree by a parent id or by "
                "paths in a column that no option names; nothing was imported. --yes imports it as it is."
            )

    async def _take_tree(self, tree: ParentTree, store: Store) -> None:
        """Take the rows of a tree by parent ids, which have their paths now."""
        await tree.place(store)
        self.plan.keeps_ids = self.prune  # which keeps nodes whose ids the file has
        with progress("Arranging", "rows") as meter:
            for number, row in enumerate(tree.rows(), start=1):
                self.plan.take(row)
                if number % METER_ROWS == 0:
                    meter(METER_ROWS)
                    await asyncio.sleep(0)
        self.plan.created_parents.update(tree.created)
        self.plan.ids.update(dict.fromkeys(tree.moving, 0))
        self._check_roots()

    async def _write(self) -> None:
        url = "sqlite://:memory:" if self.dry_run and not await _has_table(self.url) else self.url
        async with opened(url, make=not self.dry_run or url != self.url) as store:
            # Moves, versions and deletions depend on those before them, so that their dry run needs a copy.
            if self._tree is not None:
                await self._take_tree(self._tree, store)
            moves = bool(self._tree.moving) if self._tree else self.moves
            is_scratch = self.dry_run and bool(moves or self._versions or self.plan.deleted)
            async with scratch_copy(store, self.plan) if is_scratch else nullcontext(store) as target:
                if moves:
                    await self._move(target)
                await self._load_versions(target)
                await self._load(target)
                self._kept = await delete_nodes(target, self.plan, self.outcome)

    async def _move(self, store: Store) -> None:
        from graph.settings import Settings

        only = self._tree.moving if self._tree else None
        with progress("Moving", "nodes", len(only or self.plan.ids)) as meter:
            writer = Writer(store, Settings().move_timing, {self.plan.hierarchy.name: self.plan.hierarchy})
            await ImportMoves(store, writer, self.plan, self.outcome, only).run(meter)

    async def _load_versions(self, store: Store) -> None:
        """Write the former versions of nodes, oldest first."""
        with progress("Writing versions", "versions", len(self._versions)) as meter:
            for plan, revisions in self._versions:
                await leave_existing_out(store, plan, revisions)
                await load(store, plan, self.outcome)
                meter(1)

    async def _load(self, store: Store) -> None:
        with progress("Comparing" if self.dry_run else "Writing", "nodes", self.plan.nodes) as meter:
            await load(store, self.plan, self.outcome, prune=self.prune, dry_run=self.dry_run, on_nodes=meter)

    def report(self, *, as_json: bool = False) -> None:
        """Print the changes, made or planned, and write the rejected rows to a file next to the imported one."""
        reasons = self._reasons()
        place = self._put_rejected(reasons)
        if as_json:
            print_json(self._document(reasons, place))
        else:
            self._print_text()
        if self.prune and self.plan.pathless:
            typer.echo("Nothing was removed, because some rejected rows do not identify their nodes.", err=True)
        if reasons:
            first = f". The first {MAX_REASONS}:" if len(reasons) > MAX_REASONS else ":"
            written = f"; written to {place}" if place else ""
            typer.echo(f"rejected: {quantity(len(reasons), 'row')}{written}{first}", err=True)
            for number in sorted(reasons)[:MAX_REASONS]:
                typer.echo(f"  {self.source.name}, row {number}: {reasons[number]}", err=True)

    def _changes(self) -> list[tuple[str, Event, Counter[str]]]:
        """The changed nodes of each kind, with its verb."""
        outcome = self.outcome
        return [
            ("moved", Event.MOVED, outcome.moved),
            ("added", Event.CREATED, outcome.added),
            ("changed", Event.UPDATED, outcome.changed),
            ("removed", Event.DELETED, outcome.removed),
        ]

    def _document(self, reasons: Mapping[int, str], place: Path | None) -> dict[str, object]:
        """The report as JSON."""
        plan = self.plan
        return {
            "file": self.source.name,
            "dryRun": self.dry_run,
            "seconds": round(self._seconds, 1),
            "rows": plan.rows,
            "nodes": plan.nodes,
            "roots": sum(plan.depths[:1]),
            "nodesByDepth": plan.depths,
            "nodesByLevel": plan.levels,
            **{verb: +counts for verb, _, counts in self._changes()},
            "unchanged": self.outcome.unchanged,
            "createdParents": plan.created_parents,
            "notImported": self.unused(),
            "rejected": len(reasons),
            "rejectedFile": place,
            "reasons": [{"row": number, "reason": reasons[number]} for number in sorted(reasons)[:MAX_JSON_REASONS]],
        }

    def _print_text(self) -> None:
        plan, outcome = self.plan, self.outcome
        size = f"{quantity(plan.rows, 'row')}, {quantity(plan.nodes, 'node')}"
        typer.echo(f"{self.source.name}: {size} in {self._seconds:.1f} s.")
        if depths := plan.depths:
            by_depth = ", ".join(f"{count:,}" for count in depths)
            typer.echo(f"{quantity(depths[0], 'root')}; nodes by depth: {by_depth}; by level: {_by_level(plan.levels)}")
        would = "would be " if self.dry_run else ""
        for verb, event, counts in self._changes():
            if counts:
                levels = dict.fromkeys([*plan.hierarchy.levels, *counts])  # the table may have levels of no class
                ordered = Counter({level: counts[level] for level in levels})
                typer.echo(f"{would}{verb}: {counts.total():,} ({_by_level(+ordered)})")
                for example in outcome.examples[event] if self.dry_run or event is Event.MOVED else ():
                    typer.echo(f"  {example}")
        if not outcome.written:
            typer.echo(f"Nothing {'would change' if self.dry_run else 'changed'}.")
        if outcome.unchanged:
            typer.echo(f"unchanged: {outcome.unchanged:,}")
        if moved := sum(rejection.moved for rejection in outcome.rejections):
            typer.echo(f"not moved: {moved:,}")
        if self._kept:
            nodes = quantity(self._kept, "node")
            typer.echo(f"not removed: {nodes}, whose items were deleted, since other items lie below.")
        if parents := plan.created_parents:
            typer.echo(f"parents without a row of their own: {parents.total():,} ({_by_level(parents)})")
        if self._tree and self._tree.has_other_ids:
            typer.echo("Some ids of the file cannot be ids of nodes; these nodes have ids that are made of them.")
        for sentence in plan.undefined.sentences():
            typer.echo(sentence)

    def _reasons(self) -> dict[int, str]:
        """The reasons against each rejected row, by its number."""
        reasons: dict[int, str] = {}
        for rejection in self.outcome.rejections:
            earlier = reasons.get(rejection.number)
            if earlier is None or rejection.reason not in earlier:
                reasons[rejection.number] = f"{earlier} {rejection.reason}" if earlier else rejection.reason
        return reasons

    def _put_rejected(self, reasons: Mapping[int, str]) -> Path | None:
        """Write the file of rejected rows, or remove that of an earlier import; its name if it was written."""
        rejected = self.format.rejected(self.source.file)
        target = self.source.rejected(rejected.ending)
        try:
            if reasons and not self.dry_run:
                self._write_rejected(target, rejected, reasons)
                return target
            if not self.dry_run and _is_file_of_rejected_rows(target, rejected):
                target.unlink()
        except BadInput as error:
            typer.echo(error, err=True)
        return None

    def _write_rejected(self, target: Path, rejected: RejectedRows, reasons: Mapping[int, str]) -> None:
        """Write the rows with `reasons` by row number. Raises BadInput if the name belongs to anything else."""
        if os.path.lexists(target) and not _is_file_of_rejected_rows(target, rejected):
            raise BadInput(f"{target} is not a file of rejected rows; move it away and import again.")
        with output_file(target) as output:
            output.write(rejected.head)
            for text, row in self.format.read(self.source.file):
                if row.number in reasons:
                    output.write(rejected.line(text, f"row {row.number}: {reasons[row.number]}"))


def _by_level(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {level}" for level, count in counts.items())


async def _has_table(url: str) -> bool:
    """Whether there is a table to compare with; a missing SQLite file counts as an empty table."""
    if not isinstance(parse_store_url(url), SQLiteUrl):
        return True
    try:
        async with opened(url):
            return True
    except NoTable:
        return False


def _is_file_of_rejected_rows(target: Path, rejected: RejectedRows) -> bool:
    """Whether this is a regular file that an import may replace: empty, or begun as one of rejected rows."""
    if target.is_symlink() or not target.is_file():
        return False
    start = rejected.mark
    with target.open("rb") as file:
        found = file.read(len(start))
    return not found or found == start


EXIT_REJECTED = 1


class ImportTarget(NamedTuple):
    """Where an import goes, and how."""

    plan: ImportPlan
    store: str
    prune: bool
    moves: bool
    dry_run: bool
    allow_rejects: bool
    is_confirmed: bool = False
    create_parents: bool = False
    as_json: bool = False

    def load(
        self, source: Source, form: Format, *, has_columns: bool, unused: Callable[[], Sequence[str]] = list
    ) -> None:
        """Import a source and report it; ends the command with status 1 where rows were rejected."""
        job = ImportJob(
            source, form, self.plan, self.store, self.prune, self.moves, self.dry_run, self.is_confirmed,
            self.create_parents, has_columns, unused,
        )  # fmt: skip
        job.run()
        job.report(as_json=self.as_json)
        if job.outcome.rejections and not self.allow_rejects:
            raise typer.Exit(EXIT_REJECTED)


def run_import(
    address: str, name: str | None, options: FileOptions, table_options: TableOptions, target: ImportTarget, *,
    describe: bool,
) -> None:  # fmt: skip
    """Import the file or the table at an address, or only describe it; `name` is that of the file's format."""
    if is_table(address, table_options):
        if name is not None:
            raise BadInput(f"--format is for files, and {shorten(address)} is a DynamoDB table or an export of one.")
        _import_table(address, options, table_options, target, describe=describe)
    else:
        if table_options.keys or table_options.are_of_scan:
            raise BadInput("--keys, --read-units and --segments are for DynamoDB tables, not for files.")
        _import_file(address, name, options, target, describe=describe)


def _import_file(
    address: str, format_name: str | None, options: FileOptions, target: ImportTarget, *, describe: bool
) -> None:
    hierarchy = target.plan.hierarchy
    if options.columns.is_table:  # before anything is downloaded
        (tree_columns if options.columns.tree else columns)(hierarchy, options.columns)
    with source_at(address) as source:
        if describe:
            return Description(hierarchy, address, source, format_name, options, target.is_confirmed).print()
        try:
            found = format_of(hierarchy, source.file, format_name, options)
        except NoLevels:
            if not target.is_confirmed:  # a better reason
                opened = format_of(hierarchy, source.file, format_name, replace(options, is_open=True))
                check_table_shape(hierarchy, source, opened)
            raise
        if found.is_guessed and not target.is_confirmed:
            try:
                check_sample(hierarchy, source, found, enough=GUESSED_ROWS)
            except BadInput as error:
                raise BadInput(
                    f"By the names of the columns {error} --level sets the columns; --yes keeps these."
                ) from None
        _import_rows(source, found, target)


def _import_rows(source: Source, found: FileFormat, target: ImportTarget) -> None:
    for guess in found.guesses:
        typer.echo(f"{source.name}: {guess}", err=True)
    if not target.is_confirmed:
        check_file(target.plan.hierarchy, source, found)
    if found.unused:
        typer.echo(f"{source.name}: not imported: {named(found.unused)}.", err=True)
    target.load(source, found.format, has_columns=found.rows is not None, unused=lambda: found.unused)


def _import_table(
    address: str, options: FileOptions, table_options: TableOptions, target: ImportTarget, *, describe: bool
) -> None:
    hierarchy, given = target.plan.hierarchy, options.columns
    if replace(options, cells=PLAIN) != FileOptions(given):
        raise BadInput("--columns, --delimiter, --encoding and --sheet are for files, not for DynamoDB tables.")
    is_rows = given.is_table and not table_options.templates
    if given.tree is not None and table_options.templates:
        raise BadInput("--key and --tree-by both say where items are in the tree; give one of them.")
    if is_rows and table_options.keys:
        raise BadInput("--keys names the keys that --key has levels of; leave it out with --tree-by and --level.")
    if table_options.are_of_scan and not address.startswith(SCHEME):
        raise BadInput("--read-units and --segments are for a table that is scanned, not for an export of one.")
    if options.cells != PLAIN and not is_rows:
        raise BadInput("--null and --numbers are for files, and for DynamoDB tables without --key.")
    if not describe and not is_rows and not table_options.templates:
        if not address.startswith(SCHEME):
            find_export(Path(address))  # a folder that has none needs no template
        raise BadInput(NO_TEMPLATE)
    if is_rows:  # options are checked before the table is read
        (tree_columns if given.tree else columns)(hierarchy, given)
    else:
        key_templates(hierarchy, given, table_options)
    is_page = describe or (target.dry_run and given.tree is None)  # which has not the parents of all its items
    with table_at(address, table_options, one_page=is_page) as table:
        if describe:
            _describe_table(address, options, table_options, target, table)
            return
        if target.prune and (table.export.is_incremental or (is_page and address.startswith(SCHEME))):
            raise BadInput("--prune needs a whole table; this has a part of it.")
        if is_rows:
            _import_items(table, options, target)
            return
        form, reader = table_format(hierarchy, table, given, table_options)
        if not target.is_confirmed:
            check_table(table)
            check_keys(table.source.name, (row for _, row in form.read(table.source.file)))
        try:
            target.load(table.source, form, has_columns=True, unused=lambda: [*reader.unused])
        finally:
            for sentence in reader.sentences():
                typer.echo(sentence, err=True)


def _import_items(table: TableSource, options: FileOptions, target: ImportTarget) -> None:
    """Import the items of a table as rows whose columns are the attributes."""
    if table.export.is_incremental:
        raise BadInput(
            f"{table.source.name} is an incremental export, whose deletions have keys alone; without --key import a "
            "full export or the table, and add --prune."
        )
    _import_rows(table.source, items_format(target.plan.hierarchy, table.export, options), target)


def _describe_table(
    address: str, options: FileOptions, table_options: TableOptions, target: ImportTarget, table: TableSource
) -> None:
    """Describe a table by the parent ids of its items, else by its keys, else by its attributes."""
    hierarchy, confirmed = target.plan.hierarchy, target.is_confirmed
    given = options.columns.is_table or table_options.templates
    is_rows = options.columns.is_table and not table_options.templates
    if not given and not confirmed:
        is_rows = table_parents(table) is not None
    elif not is_rows and not confirmed:
        check_table(table)
    if is_rows or not describe_table(hierarchy, address, table, table_options):
        Description(hierarchy, address, table.source, None, options, confirmed, table.export).print()
