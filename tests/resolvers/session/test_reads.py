"""Reads of a request: large ones take turns, and equal ones of several requests are shared."""

import asyncio
import gc
import weakref

import pytest

from resolvers.session.reads import LARGE_READ_NODES, MAX_ALIKE, CoalescedReads, Slot
from store.engine.usage import ReadUsage
from store.errors import Unavailable


def large(limiter: asyncio.Semaphore | None) -> Slot:
    slot = Slot(limiter)
    slot.expect(LARGE_READ_NODES + 1)
    return slot


async def left(limiter: asyncio.Semaphore) -> int:
    """How many slots are left, all of which it takes."""
    taken = 0
    while not limiter.locked():
        await limiter.acquire()
        taken += 1
    return taken


async def settled(waiting: list[asyncio.Task[None]]) -> list[bool]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [one.done() for one in waiting]


async def test_slots_are_given_out_first_come_first_served():
    limiter = asyncio.Semaphore(2)
    slots = [large(limiter) for _ in range(5)]
    waiting = [asyncio.create_task(slot.wait()) for slot in slots]
    assert await settled(waiting) == [True, True, False, False, False]
    slots[1].close()
    assert await settled(waiting) == [True, True, True, False, False]
    slots[3].close()  # leaves the queue
    assert await settled(waiting) == [True, True, True, True, False]
    assert waiting[3].cancelled()
    slots[0].close()
    assert await settled(waiting) == [True] * 5
    for slot in (slots[2], slots[4]):
        slot.close()
    assert await left(limiter) == 2


async def test_a_slot_that_is_closed_while_it_is_given_out_goes_to_the_next():
    limiter = asyncio.Semaphore(1)
    first, second, third = [large(limiter) for _ in range(3)]
    waiting = [asyncio.create_task(slot.wait()) for slot in (first, second, third)]
    assert await settled(waiting) == [True, False, False]
    first.close()
    second.close()  # before it has run
    assert await settled(waiting) == [True, True, True]
    assert waiting[1].cancelled()
    third.close()
    assert await left(limiter) == 1


async def test_small_reads_never_wait_and_without_a_limiter_none_does():
    limiter = asyncio.Semaphore(0)
    small = Slot(limiter)
    for _ in range(2):
        small.expect(LARGE_READ_NODES // 2)
    await small.wait()
    await large(None).wait()
    slot = large(limiter)
    waiting = [asyncio.create_task(slot.wait()) for _ in range(2)]
    assert await settled(waiting) == [False, False]
    slot.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2


async def test_a_cancelled_read_leaves_the_slot_to_other_reads_of_its_request():
    limiter = asyncio.Semaphore(1)
    await limiter.acquire()
    slot = large(limiter)
    given_up, other = [asyncio.create_task(slot.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    given_up.cancel()
    limiter.release()
    await other
    assert limiter.locked()
    slot.close()
    slot.close()
    assert await left(limiter) == 1


async def test_a_closed_slot_takes_nothing():
    limiter = asyncio.Semaphore(1)
    slot = Slot(limiter)
    slot.close()
    slot.expect(LARGE_READ_NODES + 1)
    await slot.wait()
    assert await left(limiter) == 1


class Item:
    """An item that changes all the time; each read of it takes until `go` is set."""

    def __init__(self) -> None:
        self.now = 0
        self.running = self.most = self.reads = 0
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def read(self, usage: ReadUsage) -> int:
        usage.add(items=1, units=1.0)
        seen = self.now
        self.reads += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
            await asyncio.sleep(0)
        finally:
            self.running -= 1
        if self.error is not None:
            raise self.error
        return seen


def tasks_in_memory() -> int:
    gc.collect()
    return sum(isinstance(one, asyncio.Task) for one in gc.get_objects())


async def begun(reads: CoalescedReads, item: Item, count: int) -> tuple[list[asyncio.Task[int]], list[ReadUsage]]:
    usages = [ReadUsage() for _ in range(count)]
    tasks = [asyncio.create_task(reads.run(item, item.read, usage)) for usage in usages]
    await asyncio.sleep(0)
    return tasks, usages


async def test_a_crowd_makes_four_reads_and_one_more():
    reads, item = CoalescedReads(), Item()
    tasks, usages = await begun(reads, item, 100)
    item.now = 1
    item.go.set()
    found = await asyncio.gather(*tasks)
    assert found == [0] * MAX_ALIKE + [1] * (100 - MAX_ALIKE)
    assert (item.reads, item.most) == (MAX_ALIKE + 1, MAX_ALIKE)
    assert sum(usage.requests for usage in usages) == item.reads, "each read is charged once"


async def test_whoever_comes_while_the_shared_read_runs_waits_for_the_next():
    reads, item = CoalescedReads(), Item()
    await begun(reads, item, MAX_ALIKE)
    (early,), _ = await begun(reads, item, 1)
    for number in range(1, 4):
        item.now = number
        item.go.set()
        await asyncio.sleep(0)
        item.go.clear()
        await asyncio.sleep(0.01)
    tasks, _ = await begun(reads, item, MAX_ALIKE + 1)
    item.now = 9
    item.go.set()
    assert await early < 9
    assert max(await asyncio.gather(*tasks)) == 9, "the last of them shares a read that began after it came"


async def test_other_reads_are_not_held_up():
    reads, item, other = CoalescedReads(), Item(), Item()
    await begun(reads, item, 20)
    other.go.set()
    assert await reads.run("other", other.read, ReadUsage()) == 0


@pytest.mark.parametrize("cancelled", [0, 3, 9])
async def test_errors_and_cancellation_leave_nothing_behind(cancelled: int):
    before = tasks_in_memory()
    reads, item = CoalescedReads(), Item()
    item.error = Unavailable("The engine does not answer.")
    tasks, _ = await begun(reads, item, MAX_ALIKE + 9)
    for number in range(cancelled):
        tasks[-1 - number].cancel()
    item.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in found[: len(found) - cancelled]] == [Unavailable] * (len(found) - cancelled)
    await asyncio.sleep(0.01)
    left = weakref.ref(item)
    del item, tasks, found
    assert tasks_in_memory() == before
    assert left() is None
    other = Item()
    begun_again, _ = await begun(reads, other, MAX_ALIKE)
    assert other.running == MAX_ALIKE
    other.go.set()
    await asyncio.gather(*begun_again)


async def test_a_read_that_waits_is_made_even_if_all_others_end_before_it_is_awaited():
    reads, item = CoalescedReads(), Item()
    item.go.set()
    while reads.begin("item"):
        pass
    waiting = reads.next("item", item.read, ReadUsage())
    for _ in range(MAX_ALIKE):
        reads.end("item")
    assert await asyncio.wait_for(waiting, 5) == 0
