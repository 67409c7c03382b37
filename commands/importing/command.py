"""`clade import`: the nodes of a file into the store."""

import asyncio
import gc
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import typer

from commands.importing.columns import columns
from commands.importing.rejected_rows import NotOurs, write_rejects
from commands.move_timing import move_timing
from commands.progress import progress
from graph.hierarchies.registry import hierarchies
from graph.settings import Settings
from store.connect import opened
from store.engine.protocol import Store
from store.errors import BadInput, CladeError, NoTable
from store.metadata.change_log import Event
from store.model.hierarchy import Hierarchy
from store.store_url import SQLiteUrl, parse_store_url
from store.text import quantity
from store.transfer import formats
from store.transfer.formats import Format
from store.transfer.formats.jsonl import JSONLines
from store.transfer.formats.taxonomy import Taxonomy
from store.transfer.load import LoadResult, load
from store.transfer.move_existing import ImportMoves
from store.transfer.rows import ImportPlan
from store.transfer.scratch_copy import scratch_copy
from store.writer.writer import Writer

EXIT_REJECTED = 1
EXIT_INTERRUPTED = 130
REASONS_SHOWN = 5
ROWS_A_STEP = 1000

# Almost all that an import makes stays to its end, or goes at once without the collector, which would look through all
# of it again and again for a quarter of the time.
COLLECT_AFTER = 200_000

_EVENTS = (Event.MOVED, Event.CREATED, Event.UPDATED, Event.DELETED)
_DONE = ("moved", "added", "changed", "removed")

HierarchyName = Annotated[str, typer.Argument(help="The hierarchy, such as location.", metavar="HIERARCHY")]
File = Annotated[Path, typer.Argument(help="A .csv, .tsv, .jsonl or .txt file.", exists=True, dir_okay=False)]
Levels = Annotated[list[str] | None, typer.Option("--level", help="CSV: city=Column, from the root down; repeat it.")]
Names = Annotated[list[str] | None, typer.Option("--name", help="CSV: city=Column; else a name is the key.")]
Ids = Annotated[list[str] | None, typer.Option("--id", help="CSV: city=Column; else ids are made from paths.")]
Attributes = Annotated[list[str] | None, typer.Option("--attr", help="CSV: store.street=Column; repeat it.")]
Folded = Annotated[list[str] | None, typer.Option("--fold-case", help="CSV: OMAHA and Omaha are one; a level.")]
FormatName = Annotated[
    Literal["csv", "jsonl", "taxonomy"] | None, typer.Option("--format", help="Else by the file's ending.")
]
IgnoreUnknown = Annotated[bool, typer.Option("--ignore-unknown", help="Leave out attributes that a level has not.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and write nothing.")]
Prune = Annotated[bool, typer.Option("--prune", help="Remove what the file lacks below the nodes that it has.")]
Moves = Annotated[bool, typer.Option("--moves", help="Move nodes that lie elsewhere to where the file has their ids.")]
AllowRejects = Annotated[bool, typer.Option("--allow-rejects", help="Exit with 0 although rows were rejected.")]
StoreUrl = Annotated[str | None, typer.Option("--store", help="Another store than CLADE_STORE names.", metavar="URL")]


def import_file(
    hierarchy: HierarchyName,
    file: File,
    levels: Levels = None,
    names: Names = None,
    ids: Ids = None,
    attributes: Attributes = None,
    folded: Folded = None,
    format_name: FormatName = None,
    ignore_unknown: IgnoreUnknown = False,
    dry_run: DryRun = False,
    prune: Prune = False,
    moves: Moves = False,
    allow_rejects: AllowRejects = False,
    store: StoreUrl = None,
) -> None:
    """Bring the nodes of a file into the store; what is there already stays, and the same file again changes nothing.

    Rows that cannot be taken go to FILE.rejected.csv with the reason, and the exit status is 1.

    Example: clade import location stores.csv --level country=Country --level city=City --fold-case city
    """
    kind = hierarchy_named(hierarchy)
    options = [levels or [], names or [], ids or [], attributes or [], folded or []]
    chosen = _format(kind, file, format_name or formats.name_of(file), options)
    wanted = ImportPlan(kind, ignore_unknown=ignore_unknown)
    work = _Import(file, chosen, wanted, store or Settings().store, prune=prune, moves=moves, dry_run=dry_run)
    work.run()
    work.tell()
    if work.outcome.rejections and not allow_rejects:
        raise typer.Exit(EXIT_REJECTED)


def hierarchy_named(name: str) -> Hierarchy:
    known = hierarchies()
    if name not in known:
        raise BadInput(f'There is no hierarchy "{name}"; CLADE_HIERARCHIES names {", ".join(known)}.')
    return known[name]


def _format(hierarchy: Hierarchy, file: Path, name: str | None, options: list[list[str]]) -> Format:
    if name != "csv" and any(options):
        raise BadInput("--level, --name, --id, --attr and --fold-case are for CSV files; --format csv says it is one.")
    match name:
        case "csv":
            return columns(hierarchy, *options)
        case "jsonl":
            return JSONLines()
        case "taxonomy":
            return Taxonomy.of(hierarchy)
        case _:
            raise BadInput(f'The ending of "{file.name}" tells no format; say --format {", ".join(formats.NAMES)}.')


@dataclass
class _Import:
    """One import: what it reads, where it writes, and what came of it."""

    file: Path
    format: Format
    wanted: ImportPlan
    url: str
    prune: bool
    moves: bool
    dry_run: bool
    outcome: LoadResult = field(default_factory=LoadResult)

    def run(self) -> None:
        """Read the file and write what it asks for; where that is stopped, say how far it came."""
        began = time.monotonic()
        try:
            gc.set_threshold(COLLECT_AFTER)
            self._read()
            gc.freeze()
            nodes, rows = self.wanted.nodes, self.wanted.rows
            asyncio.run(self._write())
        except KeyboardInterrupt:
            self._tell_stopped("Stopped")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except CladeError:
            if self.outcome.written:
                self._tell_stopped("Failed half-way")
            raise
        read = f"{quantity(rows, 'row')}, {quantity(nodes, 'node')}"
        typer.echo(f"{self.file.name}: {read} in {time.monotonic() - began:.1f} s.")

    def _read(self) -> None:
        with progress("Reading", "rows") as meter:
            for row in self.format.rows(self.file):
                self.wanted.take(row)
                if self.wanted.rows % ROWS_A_STEP == 0:
                    meter(ROWS_A_STEP)

    async def _write(self) -> None:
        url = "sqlite://:memory:" if self.dry_run and not await _holds_table(self.url) else self.url
        async with opened(url, make=not self.dry_run or url != self.url) as store:
            if not self.moves:
                await self._load(store)
            elif self.dry_run:
                async with scratch_copy(store, self.wanted) as copy:
                    await self._load(await self._moved(copy))
            else:
                await self._load(await self._moved(store))

    async def _moved(self, store: Store) -> Store:
        with progress("Moving", "nodes", len(self.wanted.ids)) as meter:
            await ImportMoves(store, Writer(store, move_timing()), self.wanted, self.outcome).run(meter)
        return store

    async def _load(self, store: Store) -> None:
        with progress("Comparing" if self.dry_run else "Writing", "nodes", self.wanted.nodes) as meter:
            await load(store, self.wanted, self.outcome, prune=self.prune, dry_run=self.dry_run, on_nodes=meter)

    def _tell_stopped(self, how: str) -> None:
        typer.echo(f"{how}: {quantity(self.outcome.written, 'node')} written. The same command goes on.", err=True)

    # -- what it did ---------------------------------------------------------------------------------------------------

    def tell(self) -> None:
        """Print what was done, or would be, and leave the rejected rows in a file beside the one that was read."""
        outcome = self.outcome
        kinds = (outcome.moved, outcome.added, outcome.changed, outcome.removed)
        for verb, event, counts in zip(_DONE, _EVENTS, kinds, strict=True):
            if counts:
                would = "would be " if self.dry_run else ""
                typer.echo(f"{would}{verb}: {counts.total():,} ({self._by_level(counts)})")
                for example in outcome.examples[event] if self.dry_run or event is Event.MOVED else ():
                    typer.echo(f"  {example}")
        if not outcome.written:
            typer.echo(f"Nothing {'would change' if self.dry_run else 'changed'}.")
        if outcome.unchanged:
            typer.echo(f"unchanged: {outcome.unchanged:,}")
        if moved := sum(rejection.moved for rejection in outcome.rejections):
            typer.echo(f"would be moved, and are not: {moved:,}")
        if self.prune and self.wanted.pathless:
            typer.echo("Nothing was removed, since rejected rows do not tell which nodes they are about.", err=True)
        self._tell_rejected()

    def _by_level(self, counts: Counter[str]) -> str:
        """In the hierarchy's order; trees are written side by side, so the counts are in none."""
        order = [*self.wanted.hierarchy.levels, *counts]  # the table may hold levels that are no more
        return ", ".join(f"{counts[level]:,} {level}" for level in dict.fromkeys(order) if counts[level])

    def _tell_rejected(self) -> None:
        reasons: dict[int, str] = {}
        for rejection in self.outcome.rejections:
            reasons.setdefault(rejection.number, rejection.reason)
        target = self.file.with_suffix(".rejected.csv")
        place = "" if self.dry_run else f"; {'it is' if len(reasons) == 1 else 'they are'} in {target}"
        try:
            if not self.dry_run:
                write_rejects(target, reasons, self.format.contents(self.file))
        except NotOurs:
            place = ""
            typer.echo(
                f"{target} is no file of rejected rows; move it away, and import again to have them there.", err=True
            )
        except OSError as error:
            place = ""
            typer.echo(f"{target} cannot be written: {(error.strerror or str(error)).lower()}.", err=True)
        if reasons:
            first = ". The first:" if len(reasons) > REASONS_SHOWN else ":"
            typer.echo(f"rejected: {quantity(len(reasons), 'row')}{place}{first}", err=True)
            for number, reason in list(reasons.items())[:REASONS_SHOWN]:
                typer.echo(f"  row {number}: {reason}", err=True)


async def _holds_table(url: str) -> bool:
    """Whether there is something to compare with; an SQLite file that is not there is as good as an empty one."""
    if not isinstance(parse_store_url(url), SQLiteUrl):
        return True
    try:
        async with opened(url):
            return True
    except NoTable:
        return False
