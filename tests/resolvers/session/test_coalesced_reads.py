"""Coalesced reads: few alike run at a time, and nobody shares a read that began before they came."""

import asyncio

import pytest

from resolvers.session.coalesced_reads import MAX_ALIKE, CoalescedReads
from store.engine.usage import ReadUsage
from store.errors import Unavailable


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


async def begun(reads: CoalescedReads, item: Item, count: int) -> tuple[list[asyncio.Task[int]], list[ReadUsage]]:
    usages = [ReadUsage() for _ in range(count)]
    tasks = [asyncio.create_task(reads.run("item", item.read, usage)) for usage in usages]
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
    reads, item = CoalescedReads(), Item()
    item.error = Unavailable("The engine does not answer.")
    tasks, _ = await begun(reads, item, MAX_ALIKE + 9)
    for task in tasks[-1 : -1 - cancelled : -1]:
        task.cancel()
    item.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in found[: len(found) - cancelled]] == [Unavailable] * (len(found) - cancelled)
    await asyncio.sleep(0.01)
    assert not {*reads._running, *reads._next, *reads._tasks}


async def test_a_read_that_waits_is_made_even_if_all_others_end_before_it_is_awaited():
    reads, item = CoalescedReads(), Item()
    item.go.set()
    while reads.begin("item"):
        pass
    waiting = reads.next("item", item.read, ReadUsage())
    for _ in range(MAX_ALIKE):
        reads.end("item")
    assert await asyncio.wait_for(waiting, 5) == 0
