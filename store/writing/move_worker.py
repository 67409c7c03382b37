"""Move worker: runs the large moves of this process, each in a task that continues after its request has ended."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Container
from math import inf

from store.concurrency import RetryPolicy, TreeLocks
from store.engine import ReadUsage, Store
from store.errors import CladeError, Conflict, DamagedItem, Unavailable
from store.metadata.moves import Move, MoveTiming, move_id_from
from store.reading import recent_moves, tree_versions
from store.writing.large_moves import MoveJob
from store.writing.move_lease import LeaseLost, MoveLease

RETRIES = RetryPolicy(0.1, 10.0)  # of a move after an outage of the store
SHORTEST_DELAY_SECONDS = 1.0
SKEW_SECONDS = 3600.0  # by so much the clocks of processes may differ
STOP_SECONDS = 5.0  # to release the leases

logger = logging.getLogger("clade")


class MoveWorker:
    """Runs moves to their ends; `locks` are those of all writes of the process."""

    def __init__(self, store: Store, timing: MoveTiming, locks: TreeLocks | None = None) -> None:
        self._store = store
        self._timing = timing
        self._locks = locks or TreeLocks()
        self._jobs: dict[str, MoveJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._since = "0"
        self._others: dict[str, tuple[Move, float]] = {}  # moves of other workers, with the time of their last change

    def start(self, move: Move) -> MoveJob:
        """Run a move that this process has registered."""
        return self._start(MoveLease(self._store, move, self._timing.lease_seconds))

    def job(self, move_id: str) -> MoveJob | None:
        """The job of a move that this process works on."""
        return self._jobs.get(move_id)

    @property
    def running(self) -> int:
        """The number of moves that this process works on."""
        return len(self._tasks)

    async def resume(self) -> list[Move]:
        """Take over the moves whose lease has run out; returns them."""
        taken = []
        for move in await self._moves_of_others():
            if self._lease_left(move) <= 0 and await _is_registered(self._store, move):
                lease = MoveLease(self._store, move, self._timing.lease_seconds)
                with contextlib.suppress(LeaseLost):
                    await lease.acquire()
                    self._start(lease)
                    taken.append(lease.move)
        return taken

    async def finish(self, hierarchies: Container[str]) -> list[Move]:
        """Take over the moves of these hierarchies when their leases have run out, and wait for their ends."""
        if left := [move for move in await self._moves_of_others() if move.hierarchy in hierarchies]:
            await asyncio.sleep(max(0.0, *map(self._lease_left, left)))
        taken = [move for move in await self.resume() if move.hierarchy in hierarchies]
        await self.finished()
        return taken

    async def finished(self) -> None:
        """Wait until all moves of this process have ended, or were taken over by others."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Takes over interrupted moves while the block runs; at its end releases those of this process."""
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])
            await self.stop()

    async def stop(self) -> None:
        """Stop all tasks and release the moves, so that others can take them over at once."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)

    async def _moves_of_others(self) -> list[Move]:
        """The moves that have not ended and that this process does not work on.

        Moves that had ended at the first call are not read again.
        """
        now = self._store.now()
        found = await recent_moves(self._store, ReadUsage(), since=self._since, on_damaged=_log_damaged)
        moves = [move for move in found if move.ended_at is None]
        self._since = min([move_id_from(now - SKEW_SECONDS), *[move.id for move in moves]])
        left = [move for move in moves if move.id not in self._tasks]
        self._others = {move.id: self._others[move.id] for move in left if move.id in self._others}
        return left

    def _lease_left(self, move: Move) -> float:
        """The seconds until another worker's lease runs out.

        The lease is a time of another clock, so it also ends when its record did not change for the whole of it by the
        clock of this process; a worker that was only slow then writes nothing more.
        """
        known, since = self._others.get(move.id, (None, 0.0))
        if known != move:
            since = time.monotonic()
            self._others[move.id] = (move, since)
        return min(move.lease - self._store.now(), since + self._timing.lease_seconds - time.monotonic())

    async def _watch(self) -> None:
        while True:
            try:
                await self.resume()
            except CladeError as error:
                logger.warning("The search for interrupted moves failed and is repeated: %s", error)
            except Exception:
                logger.exception("The search for interrupted moves failed.")
            ends = [seconds for move, _ in self._others.values() if (seconds := self._lease_left(move)) > 0]
            await asyncio.sleep(min(max(SHORTEST_DELAY_SECONDS, min(ends, default=inf)), self._timing.lease_seconds))

    def _start(self, lease: MoveLease) -> MoveJob:
        move_id = lease.move.id
        job = self._jobs[move_id] = MoveJob(self._store, lease, self._locks, self._timing)
        self._tasks[move_id] = task = asyncio.create_task(self._run(job))
        task.add_done_callback(lambda _: self._forget(move_id))
        return job

    def _forget(self, move_id: str) -> None:
        del self._tasks[move_id], self._jobs[move_id]

    async def _run(self, job: MoveJob) -> None:
        try:
            await _persist(job)
        except LeaseLost:
            logger.info("The move %s was taken over by another worker.", job.move.id)
        except DamagedItem as error:
            logger.warning("The move %s stopped; it is resumed later: %s", job.move.id, error)
            await _release(job)
        except Exception:
            logger.exception("The move %s stopped; it is resumed later.", job.move.id)
            await _release(job)
        except BaseException:  # the process ends
            await _release(job)
            raise
        finally:
            job.is_decided.set()


async def _is_registered(store: Store, move: Move) -> bool:
    """Whether the tree versions list a move; if not, the table is damaged, and other writers may be in its subtrees."""
    try:
        versions = await tree_versions(store, sorted(move.running.partitions), ReadUsage())
    except DamagedItem as error:
        _log_damaged(error)
        return False
    return all(move.running in version.moves for version in versions)


def _log_damaged(error: DamagedItem) -> None:
    logger.warning("A move is not resumed: %s", error)


async def _release(job: MoveJob) -> None:
    with contextlib.suppress(Exception):  # others then wait until the lease has run out
        await job.lease.release()


async def _persist(job: MoveJob) -> None:
    """Run a job, again after an outage of the store or conflicts with other writers."""
    pauses = RETRIES.pauses()
    while True:
        try:
            return await job.run()
        except (Conflict, Unavailable) as error:
            logger.warning("The move %s waits: %s", job.move.id, error)
            await asyncio.sleep(next(pauses))
        with contextlib.suppress(Unavailable):
            await job.lease.refresh()
