"""The journaled moves that this process works on, each in a task of its own that outlives the request it is for."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Container
from math import inf

from store.background_moves.job import MoveJob
from store.background_moves.lease import LeaseLost, MoveLease
from store.background_moves.timing import MoveTiming
from store.concurrency import TreeLocks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict, Unavailable
from store.metadata.move_record import Move, move_id_from
from store.metadata.tree_version import TreeVersion
from store.model.keys import tree_version_key
from store.reading.active_moves import recent_moves

LONGEST_DELAY_SECONDS = 10.0
SHORTEST_DELAY_SECONDS = 1.0
SKEW_SECONDS = 3600.0  # by so much the clocks of processes may differ
STOP_SECONDS = 5.0  # to tell others that they may go on

logger = logging.getLogger("clade")


class MoveWorker:
    """Runs moves to their ends; `queue` is the order in which the process writes to trees."""

    def __init__(self, store: Store, pace: MoveTiming = MoveTiming(), queue: TreeLocks | None = None) -> None:
        self._store = store
        self._pace = pace
        self._queue = queue or TreeLocks()
        self._journeys: dict[str, MoveJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._since = "0"
        self._met: dict[
            str, tuple[Move, float]
        ] = {}  # moves of others as they were when this process last met them anew

    def start(self, move: Move) -> MoveJob:
        """Go on with a move that nobody else works on."""
        return self._start(MoveLease(self._store, move, self._pace.lease_seconds))

    def journey(self, move_id: str) -> MoveJob | None:
        """The move with this id, where this process works on it."""
        return self._journeys.get(move_id)

    async def resume(self) -> list[Move]:
        """Take over all moves whose movers have been silent for the whole of their lease; which those are."""
        taken = []
        for move in await self._left():
            if self._lasts(move) <= 0 and await _is_registered(self._store, move):
                hold = MoveLease(self._store, move, self._pace.lease_seconds)
                with contextlib.suppress(LeaseLost):
                    await hold.take()
                    self._start(hold)
                    taken.append(hold.move)
        return taken

    async def finish(self, hierarchies: Container[str]) -> list[Move]:
        """Take over the moves of these hierarchies that others have left, when their leases have run out, and wait for
        their ends; which those are.
        """
        if left := [move for move in await self._left() if move.hierarchy in hierarchies]:
            await asyncio.sleep(max(0.0, *map(self._lasts, left)))
        taken = [move for move in await self.resume() if move.hierarchy in hierarchies]
        await self.finished()
        return taken

    async def _left(self) -> list[Move]:
        """The moves that have not ended and that this process does not work on.

        Only the first look is at all that there are: what had ended by then need not be read again.
        """
        now = time.time()
        moves = [
            move for move in await recent_moves(self._store, ReadUsage(), since=self._since) if move.ended_at is None
        ]
        self._since = min([move_id_from(now - SKEW_SECONDS), *[move.id for move in moves]])
        left = [move for move in moves if move.id not in self._tasks]
        self._met = {move.id: self._met[move.id] for move in left if move.id in self._met}
        return left

    def _lasts(self, move: Move) -> float:
        """For how many seconds a move is still its mover's, if that stays silent.

        Its lease is in the time of another clock, so it also ends when nothing was heard of its mover for all of it by
        this process's own; whoever was only slow then writes nothing more.
        """
        met, since = self._met.get(move.id, (None, 0.0))
        if met != move:
            since = time.monotonic()
            self._met[move.id] = (move, since)
        return min(move.lease - time.time(), since + self._pace.lease_seconds - time.monotonic())

    async def finished(self) -> None:
        """Wait until all moves that this process works on have ended, or were lost to others."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Within it interrupted moves are taken over; at its end those of this process are left to others."""
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])
            await self.stop()

    @property
    def running(self) -> int:
        """How many moves this process carries out now."""
        return len(self._tasks)

    async def stop(self) -> None:
        """End all tasks, so that others can go on with the moves at once."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)

    async def _watch(self) -> None:
        while True:
            try:
                await self.resume()
            except Unavailable as error:
                logger.warning("Interrupted moves are not looked for now: %s", error)
            except Exception:
                logger.exception("Interrupted moves could not be looked for.")
            ends = [seconds for move, _ in self._met.values() if (seconds := self._lasts(move)) > 0]
            await asyncio.sleep(min(max(SHORTEST_DELAY_SECONDS, min(ends, default=inf)), self._pace.lease_seconds))

    def _start(self, hold: MoveLease) -> MoveJob:
        move_id = hold.move.id
        journey = self._journeys[move_id] = MoveJob(self._store, hold, self._queue, self._pace)
        self._tasks[move_id] = task = asyncio.create_task(self._run(journey))
        task.add_done_callback(lambda _: self._forget(move_id))
        return journey

    def _forget(self, move_id: str) -> None:
        del self._tasks[move_id], self._journeys[move_id]

    async def _run(self, journey: MoveJob) -> None:
        try:
            await _persist(journey)
        except LeaseLost:
            logger.info("The move %s is somebody else's by now.", journey.move.id)
        except Exception:
            logger.exception("The move %s stopped; it is taken up again later.", journey.move.id)
            await _release(journey)
        except BaseException:  # the process ends
            await _release(journey)
            raise
        finally:
            journey.has_flipped.set()


async def _is_registered(store: Store, move: Move) -> bool:
    """Whether the stamps keep others off its ends; if not, the table is damaged and nothing is known to be its own."""
    partitions = sorted(move.running.partitions)
    items = await store.get(list(map(tree_version_key, partitions)), ReadUsage(), strong=True)
    stamps = [TreeVersion.of(*one) for one in zip(partitions, items, strict=True)]
    return all(move.running in stamp.moves for stamp in stamps)


async def _release(journey: MoveJob) -> None:
    with contextlib.suppress(Exception):  # then it is free when its lease has run out
        await journey.hold.release()


async def _persist(journey: MoveJob) -> None:
    """Run a journey, again where the store was away for a while, or others were at the same items all the time."""
    delay = 0.1
    while True:
        try:
            return await journey.run()
        except (Conflict, Unavailable) as error:
            logger.warning("The move %s waits: %s", journey.move.id, error)
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)
        with contextlib.suppress(Unavailable):
            await journey.hold.refresh()
