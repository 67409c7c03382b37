"""Limit of large reads: slots, waiting and release."""

import asyncio

from resolvers.session.large_read_limit import LARGE_READ_NODES, LargeReadLimiter, Slot


async def test_slots_are_given_out_first_come_first_served():
    limiter = LargeReadLimiter(2)
    taken = [limiter.take() for _ in range(5)]
    assert [slot.done() for slot in taken] == [True, True, False, False, False]
    limiter.release(taken[1])
    assert [slot.done() for slot in taken] == [True, True, True, False, False]
    limiter.release(taken[3])  # leaves the queue
    assert limiter.slots_taken == 2
    limiter.release(taken[0])
    assert taken[4].done()
    for last in (taken[2], taken[4]):
        limiter.release(last)
    assert limiter.slots_taken == 0
    assert limiter.take().done()


async def test_small_reads_never_wait_and_without_a_limiter_none_does():
    limiter = LargeReadLimiter(0)
    small, large, free = Slot(limiter), Slot(limiter), Slot(None)
    for _ in range(2):
        small.expect(LARGE_READ_NODES // 2)
    await small.wait()
    free.expect(2 * LARGE_READ_NODES)
    await free.wait()
    large.expect(LARGE_READ_NODES + 1)
    waiting = [asyncio.ensure_future(large.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    large.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2


async def test_a_cancelled_read_leaves_the_slot_to_other_reads_of_its_request():
    limiter = LargeReadLimiter(1)
    before = limiter.take()
    slot = Slot(limiter)
    slot.expect(LARGE_READ_NODES + 1)
    given_up, other = [asyncio.ensure_future(slot.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    given_up.cancel()
    limiter.release(before)
    await other
    assert limiter.slots_taken == 1
    slot.close()
    slot.close()
    assert limiter.slots_taken == 0


async def test_a_closed_slot_takes_nothing():
    limiter = LargeReadLimiter(1)
    slot = Slot(limiter)
    slot.close()
    slot.expect(LARGE_READ_NODES + 1)
    assert limiter.slots_taken == 0
    await slot.wait()
