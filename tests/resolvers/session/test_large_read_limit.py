"""Who may read much at a time, and who waits for it."""

import asyncio

from resolvers.session.large_read_limit import LARGE_READ_NODES, LargeReadLimiter, Slot


async def test_so_many_have_their_turn_and_the_others_follow_in_the_order_in_which_they_came():
    turns = LargeReadLimiter(2)
    taken = [turns.take() for _ in range(5)]
    assert [turn.done() for turn in taken] == [True, True, False, False, False]
    turns.release(taken[1])
    assert [turn.done() for turn in taken] == [True, True, True, False, False]
    turns.release(taken[3])  # leaves the queue
    assert turns.slots_taken == 2
    turns.release(taken[0])
    assert taken[4].done()
    for last in (taken[2], taken[4]):
        turns.release(last)
    assert turns.slots_taken == 0
    assert turns.take().done()


async def test_what_is_small_never_waits_and_without_turns_nothing_does():
    turns = LargeReadLimiter(0)
    small, large, free = Slot(turns), Slot(turns), Slot(None)
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


async def test_one_read_that_is_given_up_leaves_its_turn_to_the_others_of_its_request():
    turns = LargeReadLimiter(1)
    before = turns.take()
    turn = Slot(turns)
    turn.expect(LARGE_READ_NODES + 1)
    given_up, other = [asyncio.ensure_future(turn.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    given_up.cancel()
    turns.release(before)
    await other
    assert turns.slots_taken == 1
    turn.close()
    turn.close()
    assert turns.slots_taken == 0


async def test_nothing_is_taken_after_the_end():
    turns = LargeReadLimiter(1)
    turn = Slot(turns)
    turn.close()
    turn.expect(LARGE_READ_NODES + 1)
    assert turns.slots_taken == 0
    await turn.wait()
