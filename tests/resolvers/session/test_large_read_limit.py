"""Limit of large reads: slots, waiting and release."""

import asyncio

from resolvers.session.large_read_limit import LARGE_READ_NODES, Slot


def large(limiter: asyncio.Semaphore | None) -> Slot:
    slot = Slot(limiter)
    slot.expect(LARGE_READ_NODES + 1)
    return slot


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
    assert limiter._value == 2


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
    assert limiter._value == 1


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
    assert limiter._value == 1


async def test_a_closed_slot_takes_nothing():
    limiter = asyncio.Semaphore(1)
    slot = Slot(limiter)
    slot.close()
    slot.expect(LARGE_READ_NODES + 1)
    await slot.wait()
    assert limiter._value == 1
