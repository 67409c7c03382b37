"""Limit of large reads: a request that has ended takes no slot, which nobody would release."""

import asyncio

from resolvers.session.large_read_limit import LARGE_READ_NODES, Slot


async def test_a_closed_slot_takes_nothing():
    limiter = asyncio.Semaphore(1)
    slot = Slot(limiter)
    slot.close()
    slot.expect(LARGE_READ_NODES + 1)
    await slot.wait()
    assert not limiter.locked()
