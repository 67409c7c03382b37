"""Edits made, those of one tree one after another; what waits for the same trees is committed together."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import islice

from store.background_moves.timing import MoveTiming
from store.background_moves.worker import MoveWorker
from store.concurrency import TreeLocks
from store.edits.create_update import Edit
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import UNCERTAIN_HINT, Uncertain
from store.reading.recent_changes import RecentChanges
from store.writer.group_commit import GroupCommit
from store.writer.request import EditOptions as EditOptions
from store.writer.request import EditRequest
from store.writer.request import EditResult as EditResult

MOST_TOGETHER = 30  # edits, since a transaction of DynamoDB holds some 30 creations
STOP_SECONDS = 5.0  # for edits that are under way when the process ends

_ENDING = f"The server stops. {UNCERTAIN_HINT}"

Line = dict[EditRequest, None]  # those who wait for the same trees, in their order; a mapping since any of them may go


class Writer:
    """Makes edits; a process needs one for a store. What takes more than one transaction is left to its `mover`.

    Those who wish for something only wait for it: the work is done by tasks of the writer, so that whoever goes takes
    nobody else along.
    """

    def __init__(self, store: Store, pace: MoveTiming = MoveTiming()) -> None:
        self._store = store
        self._queue = TreeLocks()
        self._recent = RecentChanges(store)
        self._pace = pace
        self._lines: dict[frozenset[str], Line] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.mover = MoveWorker(store, pace, self._queue)

    @property
    def waiting(self) -> int:
        """How many edits wait for those before them."""
        return sum(map(len, self._lines.values()))

    async def write(self, edit: Edit, reads: ReadUsage, terms: EditOptions = EditOptions()) -> EditResult:
        """Make an edit. Raises a CladeError where it cannot be made, Conflict where others never stop writing."""
        written = await self._write(EditRequest(edit, reads, terms))
        journey = self.mover.journey(written.move.id) if written.move else None
        if journey is None:
            return written
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pace.wait_seconds):
                await journey.has_flipped.wait()
        if journey.refusal is not None:
            raise journey.refusal
        return replace(written, move=journey.move)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Within it interrupted moves are taken over; at its end nothing of this process is under way any more."""
        async with self.mover.watching():
            try:
                yield
            finally:
                await self._stop()

    async def _write(self, wish: EditRequest) -> EditResult:
        partitions = frozenset(wish.edit.partitions())
        if partitions in self._lines:
            self._lines[partitions][wish] = None
        else:
            self._form(partitions, {wish: None})
        try:
            return await wish.outcome
        finally:
            wish.outcome.cancel()
            self._lines.get(partitions, {}).pop(wish, None)  # else who goes kept a place, and memory, till its turn

    def _form(self, partitions: frozenset[str], line: Line) -> None:
        """Have these wait for the trees; until they are served whoever comes for the same ones stands behind them."""
        self._lines[partitions] = line
        task = asyncio.create_task(self._serve(partitions, line))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _serve(self, partitions: frozenset[str], line: Line) -> None:
        """Make what the first of a line wish for; the others wait again, behind those who came for one of the trees."""
        first: list[EditRequest] = []
        try:
            async with self._queue.turn(partitions):
                del self._lines[partitions]
                first = list(islice(line, MOST_TOGETHER))
                if rest := dict.fromkeys(islice(line, MOST_TOGETHER, None)):
                    self._form(partitions, rest)
                line = {}
                await GroupCommit(self._store, first, self.mover.start, self._recent).make()
        except BaseException as error:  # the process ends
            told = Uncertain(_ENDING) if isinstance(error, asyncio.CancelledError) else error
            for wish in (*first, *line):
                wish.settle(told)
            if self._lines.get(partitions) is line:
                del self._lines[partitions]
            raise

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # those who wait were told

    async def _stop(self) -> None:
        """Let what is under way come to its end, if that comes soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
