"""Import job: from a source with its options, of a file or a DynamoDB table, to what is written; it moves nodes,
writes the differences to the store, and reports them.
"""

import csv
import gc
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from commands import interrupt
from commands.common import ask, progress, store_url
from commands.importing.advice import Given, Reading, Trial, advised, preview, readings
from commands.importing.describe import (
    DESCRIBED_ROWS,
    check_rejections,
    check_sample,
    describe_file,
    plan_of,
    propose,
    say_description,
    shape_at,
    tree_of_sample,
)
from commands.importing.files import FileOptions, Source, by_column, check_address, source_at
from commands.importing.tables import NO_TEMPLATE, SCHEME, describe_table, item_columns, table_at
from commands.interrupt import interruptible
from commands.output import by_level, print_json, say
from store.connect import DynamoDBUrl, SQLiteUrl, opened, parse_store_url
from store.engine import ReadUsage, Store
from store.errors import BadInput, CladeError, NoTable, Unavailable, Uncertain, quantity
from store.metadata.tree_version import Event
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.names import canonical_language
from store.output_file import output_file
from store.reading import stored_items
from store.transfer.by_id import RowsById, names_in
from store.transfer.formats.cells import CellFormat
from store.transfer.formats.csv import Dialect, delimiter_named
from store.transfer.formats.skip import Skip
from store.transfer.formats.source import Doubt, Guess, RejectedRows
from store.transfer.load import LoadResult, count_pruned, load, load_version, prepare
from store.transfer.moves import ImportMoves, scratch_copy
from store.transfer.rows import ImportPlan, NodesOf
from store.transfer.shapes.choice import check_keys, check_shape, tree_by
from store.transfer.shapes.columns import ColumnOptions
from store.transfer.shapes.parent_tree import ParentTree
from store.transfer.shapes.shape import Shape
from store.transfer.tables.items import Items
from store.transfer.tables.scan import find_export, is_export
from store.transfer.unique import check_plan
from store.writing.writer import Writer

EXIT_REJECTED = 1
METER_ROWS = 1000

# Almost all objects of an import live until its end; by default the garbage collector would scan them again and again
# and take a quarter of the time.
GC_THRESHOLD = 200_000

ENOUGH_ROWS = 100  # of which most are rejected, so that an import stops; of fewer the others are imported
MAX_PRUNED = 20  # nodes, and
MAX_PRUNED_PART = 0.2  # of those that the file may remove: where both are passed, it may have been cut off
OF_FILES = (  # parameters
    "nulls", "numbers", "dates", "separators", "fill_down", "order", "delimiter", "encoding", "quote", "header_row",
    "column_names", "sheet",
)  # fmt: skip
NO_PRUNE = "--prune needs a whole table; this has a part of it."
OVERRIDE = "--yes imports it as it is."
VERBS = {Event.MOVED: "moved", Event.CREATED: "added", Event.UPDATED: "changed", Event.DELETED: "removed"}
MAX_REASONS = 5
MAX_REJECTED = 500_000  # whose reasons are in memory


@dataclass
class ImportJob:
    """One import: the parameters of its command, what is imported, its plan, and the outcome so far.

    `taken` are the guesses that are confirmed, with `--yes` all. In a `language` names are imported, and nothing else.
    """

    given: Given
    hierarchy: Hierarchy
    plan: ImportPlan = field(init=False)
    outcome: LoadResult = field(default_factory=LoadResult)
    source: Source = field(init=False)
    shape: Shape = field(init=False)
    _seconds: float = 0.0
    _tree: Sequence[str] = ()

    def __post_init__(self) -> None:
        params = self.given.params
        self.url = store_url(params["store"])
        self.prune: bool = params["prune"] or params["prune_all"]
        self.moves: bool = params["moves"]
        self.dry_run: bool = params["dry_run"]
        self.language = None if params["names_only"] is None else canonical_language(params["names_only"])
        self.taken = {*Guess} if params["yes"] else {Guess.SHAPE} if self.language else set()

    def run(self, source: Source, shape: Shape) -> None:
        """Import a source and report it; ends the command with status 1 where rows were rejected.

        Raises Doubt before anything is written.
        """
        self.source, self.shape = source, shape
        self._load_all()
        self._print_json() if self.given.params["as_json"] else self._report()
        if self.dry_run:
            self._check_removals(self.outcome)
        if self.outcome.rejections and not self.given.params["allow_rejects"]:
            raise typer.Exit(EXIT_REJECTED)

    def _load_all(self) -> None:
        """Read the file and write its nodes. After an interruption or an error, print the number of written nodes."""
        started = time.monotonic()
        try:
            with interruptible(lambda: self._progress("Stopped")):
                gc.set_threshold(GC_THRESHOLD)
                if tree := self.shape.tree:
                    tree.create = self.given.params["create_parents"]
                    with progress("Reading", "rows") as meter:
                        tree.spool(meter)
                elif self._by_id is None:
                    self._read()
                interrupt.run(self._write())
        except CladeError as error:
            # A lost store may hide that another transaction was under way.
            if (self.outcome.written or isinstance(error, Unavailable)) and not isinstance(error, Uncertain):
                say(self._progress("Failed"), err=True)
            raise
        self._seconds = time.monotonic() - started

    def _progress(self, state: str) -> str:
        return f"{state}: {quantity(self.outcome.written, 'node')} written. Run the same command to continue."

    @property
    def _by_id(self) -> NodesOf | None:
        """The ids of a row, where rows are for the stored nodes that have them."""
        level_ids = self.given.params["level_ids"]
        return names_in(self.language, level_ids=level_ids) if self.language else self.shape.by_id

    def _read(self, stored: Collection[Key] = ()) -> None:
        """Make the plan; `stored` nodes keep their keys, also with characters that nobody sees."""
        self.plan = plan_of(self.given, self.hierarchy, stored)
        with progress("Reading", "rows") as meter:
            for row in self.shape.rows():
                self.plan.take(row)
                self._check_number()
                if self.plan.rows % METER_ROWS == 0:
                    meter(METER_ROWS)
        self._prepare()

    async def _read_by_id(self, store: Store, nodes_of: NodesOf) -> None:
        """Make the plan of rows that are for the stored nodes of their ids."""
        self.plan = plan_of(self.given, self.hierarchy)
        rows, attribute = self.shape.rows(), None if self.language else self.shape.given.by_value
        rows_by_id = RowsById(self.plan, nodes_of, not self.language, attribute)
        with progress("Reading", "rows") as meter:
            while page := [*islice(rows, DESCRIBED_ROWS)]:
                await rows_by_id.take(store, page)
                if self.plan.rows <= DESCRIBED_ROWS and Guess.SHAPE not in self.taken:
                    check_rejections(self.plan, self.source.name, ENOUGH_ROWS)
                self._check_number()
                meter(len(page))
        self._prepare()

    def _check_number(self) -> None:
        """Raise BadInput where very many rows are rejected."""
        rejections = self.plan.rejections
        if len(rejections) > MAX_REJECTED and not self.given.params["yes"]:
            self.plan.check_ids()
            raise BadInput(
                f"More than {MAX_REJECTED:,} rows of {self.source.name} are rejected; nothing was imported. "
                f"The last: row {rejections[-1].number}: {rejections[-1].reason} --yes imports the others."
            )

    def _prepare(self) -> None:
        """Prepare the plan for writing, once all rows are in it; a dry run notes its tree."""
        prepare(self.plan, prune=self.prune)
        self._tree = preview(self.plan) if self.dry_run and self._by_id is None else []
        gc.freeze()

    async def _place(self, tree: ParentTree, store: Store | None) -> None:
        """Make the plan of a tree by parents, whose keys depend on the nodes in the store."""
        await tree.place(store)
        if Guess.SHAPE not in self.taken:
            check_sample(plan_of(self.given, self.hierarchy), self.source.name, self.shape.rows(), ENOUGH_ROWS)
        if self._by_id is None:
            self._read()

    async def _write(self) -> None:
        tree, by_id = self.shape.tree, self._by_id
        is_new = (self.dry_run or tree is not None) and by_id is None and not await _has_table(self.url)
        url = "sqlite://:memory:" if self.dry_run and is_new else self.url
        if tree and is_new:
            await self._place(tree, None)  # so that a wrong file leaves no store behind
        async with opened(url, make=url != self.url or not (self.dry_run or by_id is not None)) as store:
            if tree and not is_new:
                await self._place(tree, None if self.language else store)
            if by_id is not None:
                await self._read_by_id(store, by_id)
            exact = set[Key]()
            while found := {key async for key, item in stored_items(store, self.plan.unseen, ReadUsage()) if item}:
                exact |= found
                self._read(exact)
            # Moves, versions and deletions depend on those before them, so that their dry run needs a copy.
            is_scratch = self.dry_run and bool(self.moves or self.plan.versions or self.plan.deleted)
            await check_plan(store, self.plan)
            if self.prune and not (self.given.params["prune_all"] or self.dry_run):
                await self._look_at_removals(store)
            async with scratch_copy(store, self.plan) if is_scratch else nullcontext(store) as target:
                if self.moves:
                    await self._move(target, self.outcome)
                with progress("Writing versions", "versions", len(self.plan.versions)) as meter:
                    for _, version in sorted(self.plan.versions.items()):
                        await load_version(target, version, self.outcome)
                        meter(1)
                with progress("Comparing" if self.dry_run else "Writing", "nodes", self.plan.nodes) as meter:
                    await load(target, self.plan, self.outcome, prune=self.prune, dry_run=self.dry_run, on_nodes=meter)

    async def _look_at_removals(self, store: Store) -> None:
        """Compare the whole file before anything is written; raises BadInput where too many nodes would be removed."""
        outcome = LoadResult()
        is_scratch = self.moves and await self._moves_on(store, self.outcome).are_any()
        async with scratch_copy(store, self.plan) if is_scratch else nullcontext(store) as target:
            if is_scratch:
                await self._move(target, outcome)
            with progress("Comparing", "nodes", self.plan.nodes) as meter:
                await count_pruned(target, self.plan, outcome, meter)
        self.plan.unmoved.clear()
        self._check_removals(outcome)

    def _check_removals(self, outcome: LoadResult) -> None:
        removed, prunable = outcome.removed.total(), outcome.prunable
        is_checked = self.prune and not self.given.params["prune_all"]
        if is_checked and removed > max(MAX_PRUNED, MAX_PRUNED_PART * prunable):
            raise BadInput(
                f"{self.source.name} lacks {removed:,} of the {quantity(prunable, 'stored node')} that --prune may "
                f"remove; nothing {'would be' if self.dry_run else 'was'} written. Was the file cut off? --prune=all "
                "removes them."
            )

    async def _move(self, store: Store, outcome: LoadResult) -> None:
        moves = self._moves_on(store, outcome)
        with progress("Moving", "nodes", len(self.plan.ids if moves.places is None else moves.places)) as meter:
            await moves.run(meter)

    def _moves_on(self, store: Store, outcome: LoadResult) -> ImportMoves:
        from graph.settings import Settings

        writer = Writer(store, Settings().move_timing)
        places = self.shape.tree.moving if self.shape.tree else None
        return ImportMoves(store, writer, self.plan, outcome, places, prune=self.prune)

    def _report(self) -> None:
        """Print the changes, made or planned."""
        outcome, kept, rows, keys = self.outcome, self.outcome.kept, self.plan.repeated, len(self.plan.unseen)
        size = f"{quantity(self.plan.rows, 'row')}, {quantity(self.plan.nodes, 'node')}"
        say(f"{self.source.name}: {size} in {self._seconds:.1f} s.", *self._tree)
        would = "would be " if self.dry_run else ""
        for event, verb in VERBS.items():
            if counts := by_level(self.hierarchy, outcome.counts(event)):
                levels = ", ".join(f"{count:,} {level}" for level, count in counts.items())
                say(f"{would}{verb}: {sum(counts.values()):,} ({levels})")
                for example in outcome.examples[event] if self.dry_run or event is Event.MOVED else ():
                    say(f"  {example}")
        if not outcome.written:
            say(f"Nothing {'would change' if self.dry_run else 'changed'}.")
        parents = ", ".join(f"{count:,} {level}" for level, count in outcome.parents.items())
        sentences = (
            (outcome.unchanged, f"unchanged: {outcome.unchanged:,}"),
            (parents, f"parents without a row of their own: {outcome.parents.total():,} ({parents})"),
            (moved := sum(one.moved for one in outcome.rejections), f"not moved: {moved:,}"),
            (kept, f"not removed: {quantity(kept, 'node')}, whose items were deleted, since other items lie below."),
            (rows, f"repeated: {quantity(rows, 'row')} of nodes that another row has; their values were joined."),
            (keys, f"{quantity(keys, 'key')} had invisible characters or blanks, which were removed."),
        )
        found = [sentence for number, sentence in sentences if number]
        for sentence in (*found, *self._notes(), *self.plan.undefined.sentences()):
            say(sentence)
        self._report_rejected()

    def _notes(self) -> list[str]:
        return [*self.shape.skip.sentences(), *(self.shape.tree.sentences if self.shape.tree else ())]

    def _print_json(self) -> None:
        outcome, plan = self.outcome, self.plan
        reasons, file = self._report_rejected()
        document = {
            "source": self.source.name, "rows": plan.rows, "nodes": plan.nodes, "seconds": round(self._seconds, 3),
            "dryRun": self.dry_run, **({"tree": self._tree} if self._tree else {}),
            **{event.lower(): by_level(self.hierarchy, outcome.counts(event)) for event in VERBS},
            "examples": {event.lower(): examples for event, examples in outcome.examples.items()},
            "unchanged": outcome.unchanged, "notMoved": sum(one.moved for one in outcome.rejections),
            "notDeleted": outcome.kept, "repeated": plan.repeated, "invisibleKeys": len(plan.unseen),
            "parentsWithoutRow": by_level(self.hierarchy, outcome.parents),
            "undefined": plan.undefined.entries(), "rejectedFile": file,
            "notes": self._notes(),
            "rejected": [{"row": number, "reason": reasons[number]} for number in sorted(reasons)],
        }  # fmt: skip
        print_json(document)

    def _report_rejected(self) -> tuple[dict[int, str], str | None]:
        """Write the rejected rows to a file next to the imported one, and print the first of them; returns the reasons
        by row, and the file.
        """
        if self.prune and self.plan.unclear:
            say("Nothing was removed, because some rejected rows do not identify their nodes.", err=True)
        reasons: dict[int, str] = {}
        for rejection in self.outcome.rejections:
            earlier = reasons.get(rejection.number)
            if earlier is None or rejection.reason not in earlier:
                reasons[rejection.number] = f"{earlier} {rejection.reason}" if earlier else rejection.reason
        rejected = self.shape.rejected
        target, written = self.source.rejected(rejected.ending), None
        try:
            if reasons and not self.dry_run:
                self._write_rejected(target, rejected, reasons)
                written = str(target)
            elif not self.dry_run and is_file_of_rejected_rows(target, rejected):
                target.unlink()  # of an earlier import
        except BadInput as error:
            say(error, err=True)
        if reasons:
            first = f". The first {MAX_REASONS}:" if len(reasons) > MAX_REASONS else ":"
            place = f"; written to {written}" if written else ""
            say(f"rejected: {quantity(len(reasons), 'row')}{place}{first}", err=True)
            for number in sorted(reasons)[:MAX_REASONS]:
                say(f"  {self.source.name}, row {number}: {reasons[number]}", err=True)
        return reasons, written

    def _write_rejected(self, target: Path, rejected: RejectedRows, reasons: dict[int, str]) -> None:
        """Write the rows with `reasons` by row number. Raises BadInput if the name belongs to anything else."""
        if os.path.lexists(target) and not is_file_of_rejected_rows(target, rejected):
            raise BadInput(f"{target} is not a file of rejected rows; move it away and import again.")
        with output_file(target) as output:
            output.write(rejected.head)
            for text, row in self.shape.read():
                if row.number in reasons:
                    output.write(rejected.line(text, f"row {row.number}: {reasons[row.number]}"))


async def _has_table(url: str) -> bool:
    """Whether there is a table to compare with; a missing SQLite file counts as an empty table."""
    if not isinstance(parse_store_url(url), SQLiteUrl):
        return True
    try:
        async with opened(url):
            return True
    except NoTable:
        return False


def is_file_of_rejected_rows(target: Path, rejected: RejectedRows) -> bool:
    """Whether this is a regular file that an import may replace: empty, or begun as one of rejected rows."""
    if target.is_symlink() or not target.is_file():
        return False
    with target.open("rb") as file:
        return file.read(len(rejected.mark)) in (b"", rejected.mark)


def _file_options(hierarchy: Hierarchy, params: Mapping[str, Any], taken: Collection[Guess] = ()) -> FileOptions:
    """The options about a file, with the guesses that are confirmed; a description adds some to the parameters."""
    lists = [params[name] or [] for name in ("levels", "names", "ids", "attributes", "case_insensitive", "names_in")]
    dialect = Dialect(params["encoding"], delimiter_named(params["delimiter"]), params["quote"])
    of_cells = [params[name] or [] for name in ("nulls", "fill_down", "separators")]
    cells = CellFormat.of(of_cells[0], params["numbers"], of_cells[1], params["dates"], of_cells[2])
    names_of_columns = tuple([name.strip() for name in next(csv.reader([params["column_names"] or ""]), [])])
    by_id, by_value = (None, None) if params["by"] is None else by_column(hierarchy, params["by"], params)
    return FileOptions(
        ColumnOptions(*lists), cells, tree_by(params["tree"]), by_id, taken, params["ignore_unknown"],
        by_value, Skip.of(params["skip"] or ()), params["order"] or None, dialect, params["sheet"],
        params["header_row"], names_of_columns,
    )  # fmt: skip


def run_import(given: Given, hierarchy: Hierarchy) -> None:
    """Import the file or the table of a command, or only describe it.

    A tree by parent ids says where its nodes are now, so that those that are elsewhere are moved.
    """
    params = given.params
    excluded = ("prune", "prune_all", "moves", "order", "describe")
    if params["names_only"] is not None and any(params[name] for name in excluded):
        raise BadInput("--names-only only adds names; leave --prune, --moves and --describe out, and --order.")
    if params["as_json"] and params["describe"]:
        raise BadInput("--describe prints text; leave --json out.")
    job, address, options = ImportJob(given, hierarchy), params["file"], _file_options(hierarchy, params)
    has_ids = options.tree is not None and options.tree.shape in ("parent", "left")
    job.moves = job.moves or (has_ids and not job.language)
    if has_ids and params["level_ids"]:
        raise BadInput("--level-ids is not for --tree-by id=ID, whose rows name one another by their ids.")
    if not address.startswith(SCHEME):
        check_address(address, "clade import HIERARCHY - --format csv")
    if address.startswith(SCHEME) or params["key"] or is_export(Path(address)):
        return _import_table(job, options)
    if params["ttl"] or params["keep_deleted"]:
        raise BadInput("--ttl and --keep-deleted are for DynamoDB tables and their exports.")
    with source_at(address) as source:

        def trial(given: Given) -> Sequence[str]:
            return describe_file(given, hierarchy, source, _file_options(hierarchy, given.params, job.taken))

        def attempt() -> None:
            options = _file_options(hierarchy, params, job.taken)
            shape = shape_at(given, hierarchy, source, options, [])
            for guess in (*shape.table.guesses, *shape.guesses):
                say(f"{source.name}: {guess}", err=True)
            check_shape(shape)
            if Guess.SHAPE not in job.taken and shape.tree is None and shape.by_id is None:
                check_sample(plan_of(given, hierarchy), source.name, shape.first, ENOUGH_ROWS)
            shape.forget_first()
            job.run(source, shape)

        _run(job, attempt, trial)


def _run(job: ImportJob, attempt: Callable[[], None], trial: Trial) -> None:
    """Attempt an import, or describe it. A doubt is shown with the trees of the readings that pass a trial; then it is
    a question on a terminal, after which the next attempt takes the guess, and elsewhere ends the command. A
    description proposes the readings.
    """
    given, describe = job.given, job.given.params["describe"]
    while True:
        try:
            if not describe:
                return attempt()
            found = [Reading(given, trial(given))]
        except Doubt as doubt:
            has_tree = given.params["by"] is None and job.language is None
            found, reason = readings(given, doubt, trial) if has_tree else ([], "")
            if not (describe and found):
                trees = [line for one, tree in found for line in (f"{one.added(given)} makes this tree:", *tree)]
                if lines := [*given.said, *trees]:
                    say(*lines, err=not describe)
                sentence = advised(given, doubt, found, reason)
                if describe or not (sys.stdin.isatty() and sys.stderr.isatty()):
                    raise BadInput(f"{sentence} {OVERRIDE}") from None
                ask("Import it as it is?", sentence)
                job.taken.add(doubt.guess)
                continue
        except BadInput:
            if given.said:
                say(*given.said)
            raise
        return say_description(found)


def _import_table(job: ImportJob, options: FileOptions) -> None:
    hierarchy, params = job.hierarchy, job.given.params
    address, describe, texts = params["file"], params["describe"], params["key"]
    if any(params[name] for name in OF_FILES):
        raise BadInput("Options of cells, of the order and of CSV and Excel are for files, not for DynamoDB tables.")
    if options.by_id:
        raise BadInput("--by needs a file, not a DynamoDB table; import the table by its keys.")
    if options.tree and texts:
        raise BadInput("--key and --tree-by are two ways to say the tree; give one of them.")
    is_given = bool(texts or options.columns.levels or options.tree)
    if not is_given and not describe:
        if not address.startswith(SCHEME):
            find_export(Path(address))  # a folder that has none needs no template
        raise BadInput(NO_TEMPLATE)
    by_levels = is_given and not options.tree
    templates, columns = item_columns(hierarchy, options.columns, texts or ()) if by_levels else ([], [])
    if job.prune and job.dry_run and address.startswith(SCHEME):
        raise BadInput(NO_PRUNE)
    if address.startswith(SCHEME) and not job.dry_run and not describe:
        DynamoDBUrl.parse(address.removeprefix(SCHEME))  # so that a wrong address leaves no store behind
        interrupt.run(_find_store(job.url))
    with table_at(params, one_page=job.dry_run or describe) as table:

        def trial(given: Given) -> Sequence[str]:
            options = _file_options(hierarchy, given.params, job.taken)
            if options.tree:
                propose(given, ())
                return tree_of_sample(given, table.by_parents(hierarchy, options))
            if Guess.SHAPE not in job.taken:
                table.check(hierarchy)
            return describe_table(given, hierarchy, table, options.columns)

        def attempt() -> None:
            if Guess.EXPIRY in job.taken:
                table.left_out.keep_unknown()
            if Guess.SHAPE not in job.taken and not options.tree:
                table.check(hierarchy)
            if job.prune and table.export.is_incremental:
                raise BadInput(NO_PRUNE)
            if options.tree:
                shape = table.by_parents(hierarchy, options)
                say(*[f"{table.source.name}: {guess}" for guess in shape.guesses], err=True)
            else:
                shape = table.by_keys(hierarchy, templates, columns, prune=job.prune)
                if Guess.SHAPE not in job.taken:
                    check_keys(hierarchy, table.source.name, shape.first)
            try:
                job.run(table.source, shape)
            finally:
                for sentence in (shape.reader if isinstance(shape, Items) else table.left_out).sentences():
                    say(sentence, err=True)

        _run(job, attempt, trial)


async def _find_store(url: str) -> None:
    """Raise NoTable or Unavailable where there is no store, before a scan costs read units."""
    async with opened(url, make=True):
        pass
