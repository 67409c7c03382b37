"""`clade edit`: the edits of a file of JSON lines, each line one transaction, in the order of the file."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from commands.common import HierarchyName, StoreUrl, hierarchy_named, progress, store_url, with_store
from commands.interrupt import interruptible
from commands.moves import REST, ended
from commands.output import AsJson, print_json, say
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, CladeError, Unavailable, Uncertain, quantity, shorten
from store.metadata.moves import Move, MoveState
from store.transfer.formats.lines import json_values
from store.transfer.formats.source import REJECTED_JSON
from store.transfer.rows import Rejection
from store.writing import move_delete
from store.writing.edit_request import EditOptions, EditResult
from store.writing.writer import MAX_COMBINED, Writer

if TYPE_CHECKING:
    from commands.importing.files import Source
    from graph.edits import EditReader, ReadEdit

EXIT_REJECTED = 1
WINDOW_CHARACTERS = 1_000_000  # of lines that are in memory at once, unless one alone has more
MAX_KEY_CHARACTERS = 100  # to which the number of a line is added
MAX_REASONS, MAX_LISTED = 5, 1_000  # rejected lines that are printed, and in a document; their file has all of them
ALONE = "Each line was tried alone, on what is stored now: what lines before it would change does not count."


def edit(
    hierarchy: HierarchyName,
    file: Annotated[
        str, typer.Argument(help="File of JSON lines, such as prices.jsonl; - for the standard input.", metavar="FILE")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Try each line on what is stored now, and change nothing.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key", metavar="KEY",
            help="A name for this run: if it is repeated with the same lines within 24 hours, each is made only once.",
        ),
    ] = None,
    allow_rejects: Annotated[
        bool, typer.Option("--allow-rejects", help="Exit with status 0 despite rejected lines.")
    ] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:  # fmt: skip
    """Create, update, move and delete nodes by a file of JSON lines.

    A line is an edit, or a list of 1 to 100, in the form of the mutation that makes several. It is made as a whole or
    rejected, after the lines before it. Rejected lines are written to FILE.rejected.jsonl with their reasons, and the
    exit status is 1. That file can be corrected and given to the command again. Servers may run meanwhile.

    Example: clade edit category prices.jsonl --dry-run
    """
    # With Strawberry, pydantic and the formats, which the help does without.
    from commands.importing.files import check_address, source_at
    from commands.importing.job import is_file_of_rejected_rows
    from graph.edits import EditReader
    from graph.hierarchies.registry import served

    name, url = hierarchy_named(hierarchy).name, store_url(store)
    if key is not None and not (0 < len(key) <= MAX_KEY_CHARACTERS and key.isprintable()):
        raise typer.BadParameter(f"has 1 to {MAX_KEY_CHARACTERS} visible characters.", param_hint="--idempotency-key")
    check_address(file, f"clade edit {name} -")
    with ExitStack() as stack:
        source = stack.enter_context(source_at(file))
        target = source.rejected(REJECTED_JSON.ending)
        if not dry_run and os.path.lexists(target):
            if not is_file_of_rejected_rows(target, REJECTED_JSON):
                raise BadInput(f"{target} is not a file of rejected lines; move it away and try again.")
            target.unlink()  # of an earlier run
        reader = EditReader(next(cls for cls in served() if cls.name == name))
        job = EditJob(source, reader, stack, dry_run=dry_run, key=key)
        try:
            with interruptible(lambda: job.progress("Stopped")):
                with_store(opened(url), job.run)
        except (CladeError, OSError) as error:
            if job.done and not isinstance(error, Uncertain):
                say(job.progress("Failed"), err=True)
            raise
        job.print_json() if as_json else job.report()
    if job.counts["rejected"] and not allow_rejects:
        raise typer.Exit(EXIT_REJECTED)


class Line(NamedTuple):
    """A line of the file with its edit, or with the reason for which it has none."""

    number: int
    text: str
    read: "ReadEdit | str"


class EditJob:
    """A run over a file, and its outcome so far; `done` is the number of the last line that is made or rejected."""

    def __init__(
        self, source: "Source", reader: "EditReader", stack: ExitStack, *, dry_run: bool, key: str | None
    ) -> None:
        self._source, self._reader, self._stack, self._dry_run, self._key = source, reader, stack, dry_run, key
        self.done = 0
        self.counts: Counter[str] = Counter()
        self._reasons: dict[int, str] = {}
        self._rejects: BinaryIO | None = None
        self._is_moving = False
        self._seconds = 0.0

    async def run(self, store: Store) -> None:
        """Make the lines. Raises Unavailable in the place of the first one whose outcome is not known."""
        from graph.settings import Settings

        started, settings = time.monotonic(), Settings()
        writer = Writer(store, settings.move_timing)
        try:
            with progress("Trying" if self._dry_run else "Editing", "lines") as meter:
                for window in self._windows():
                    await self._make(store, writer, window, settings.settle_seconds)
                    meter(len(window))
        finally:
            await writer.move_worker.stop()
        self._seconds = time.monotonic() - started

    def _windows(self) -> Iterator[list[Line]]:
        """Lines that are made together, as many as a group of the writer has. A move or a deletion ends them, since the
        line after it has to wait for the end of a large one.
        """
        window: list[Line] = []
        characters = 0
        for number, text, value in json_values(self._source.file):
            window.append(Line(number, text, self._read(number, text, value)))
            characters += len(text)
            may_be_large = isinstance(getattr(window[-1].read, "edit", None), move_delete.Move | move_delete.Delete)
            if may_be_large or len(window) == MAX_COMBINED or characters > WINDOW_CHARACTERS:
                yield window
                window, characters = [], 0
        if window:
            yield window

    def _read(self, number: int, text: str, value: Any) -> "ReadEdit | str":
        """The edit of a line, or what is wrong with it. Raises BadInput for a file whose lines are parts of JSON."""
        if isinstance(value, Rejection):
            if number == 1 and text in ("[", "{"):
                raise BadInput(
                    f"{self._source.name} has JSON over several lines, and each line has to be a transaction. jq -c . "
                    "makes one line of it, and jq -c '.[]' one of each element."
                )
            return value.reason
        try:
            json.loads(text, object_pairs_hook=_check_names, parse_int=str, parse_float=str)
            return self._reader.read(value)
        except BadInput as error:
            return str(error)

    async def _make(self, store: Store, writer: Writer, window: Sequence[Line], settle_seconds: float) -> None:
        edits = []
        for line in window:
            if not isinstance(line.read, str):
                key = self._key and f"{self._key}:{line.number}"
                options = EditOptions(self._dry_run, key, line.read.asked, settle_seconds=settle_seconds)
                edits.append((line.read.edit, options))
        making = asyncio.create_task(writer.write_in_order(edits, ReadUsage()))
        try:
            await asyncio.shield(making)
        finally:  # also after Ctrl-C: what has begun is made, so that it is known how far the command came
            await asyncio.wait([making])
            move = self._take(window, making.result())
        if move is not None:
            await self._finish(store, writer, window[-1], move)

    def _take(self, window: Sequence[Line], results: Sequence[EditResult | BaseException]) -> Move | None:
        """Count the lines in their order; returns the large move that the last one has begun."""
        left, move = iter(results), None
        for line in window:
            result = line.read if isinstance(line.read, str) else next(left)
            if isinstance(result, Unavailable) or not isinstance(result, str | EditResult | CladeError):
                raise result
            self.done = line.number
            self.counts["lines"] += 1
            if isinstance(result, CladeError) and not isinstance(line.read, str):
                result = self._reader.told(result, line.read)
            if not isinstance(result, EditResult):
                self._reject(line, str(result))
                continue
            plan, move = result.dry_run, result.move
            nodes = result.written if plan is None else plan.nodes
            self.counts["repeated" if result.is_repeated else "made" if nodes else "unchanged"] += 1
            self.counts["nodes"] += nodes
            if plan is not None:
                self.counts["transactions"] += plan.transactions
                self.counts["writeUnits"] += plan.write_units
        return move

    async def _finish(self, store: Store, writer: Writer, line: Line, move: Move) -> None:
        """Wait for the end of a large move; the line is rejected if it was undone."""
        self._is_moving = True
        if (move := await ended(store, writer, move)).state is MoveState.UNDONE:
            self.counts.subtract({"made": 1, "nodes": move.nodes})
            self._reject(line, move.reason or "")
        self._is_moving = False

    def _reject(self, line: Line, reason: str) -> None:
        self.counts["rejected"] += 1
        if len(self._reasons) < MAX_LISTED:
            self._reasons[line.number] = reason
        if not self._dry_run:
            if self._rejects is None:
                self._rejects = self._stack.enter_context(self._source.rejected(REJECTED_JSON.ending).open("xb"))
            self._rejects.write(REJECTED_JSON.line(line.text, f"line {line.number}: {reason}"))
            self._rejects.flush()

    # -- reports -------------------------------------------------------------------------------------------------------

    def progress(self, state: str) -> str:
        """How far the run came, and how to continue."""
        lines = f"{quantity(self.counts['lines'], 'line')} done, {self.counts['rejected']:,} of them rejected"
        way = "Run the same command to continue." if self._key else f"Continue after line {self.done}."
        return " ".join([f"{state}: {lines}.", way, *([REST] if self._is_moving else [])])

    def report(self) -> None:
        """Print what was made, or what would be."""
        counts, would = self.counts, "would be " if self._dry_run else ""
        say(f"{self._source.name}: {quantity(counts['lines'], 'line')} in {self._seconds:.1f} s.")
        nodes = quantity(counts["nodes"], "node")
        if self._dry_run:
            nodes += f", at most {quantity(counts['transactions'], 'transaction')}"
            nodes += f", about {quantity(counts['writeUnits'], 'write unit')} of DynamoDB"
        for number, sentence in (
            (counts["made"], f"{would}made: {counts['made']:,} ({nodes})"),
            (counts["unchanged"], f"{would}unchanged: {counts['unchanged']:,}"),
            (counts["repeated"], f"made before, by this idempotency key: {counts['repeated']:,}"),
        ):
            if number:
                say(sentence)
        if self._dry_run and counts["lines"] > 1:
            say(ALONE)
        if counts["rejected"]:
            first = f". The first {MAX_REASONS}:" if counts["rejected"] > MAX_REASONS else ":"
            place = f"; written to {self._rejects.name}" if self._rejects else ""
            say(f"{would}rejected: {quantity(counts['rejected'], 'line')}{place}{first}", err=True)
            for number in [*self._reasons][:MAX_REASONS]:
                say(f"  {self._source.name}, line {number}: {self._reasons[number]}", err=True)

    def print_json(self) -> None:
        """Print the outcome as one document."""
        names = ("lines", "made", "unchanged", "repeated", "nodes", "transactions", "writeUnits")
        document = {
            "source": self._source.name, "seconds": round(self._seconds, 3), "dryRun": self._dry_run,
            **{name: self.counts[name] for name in names if self._dry_run or name not in names[5:]},
            "rejectedLines": self.counts["rejected"], "rejectedFile": self._rejects and str(self._rejects.name),
            "rejected": [{"line": number, "reason": reason} for number, reason in self._reasons.items()],
        }  # fmt: skip
        print_json(document)


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    """Raise BadInput where an object has a name twice, since all but its last value would be lost."""
    for name, number in Counter([name for name, _ in pairs]).items():
        if number > 1:
            raise BadInput(f'"{shorten(name)}" is in one object {number} times; each name is given once.')
