"""Moves and cascades that take more than one transaction: their dry runs, keys, and waiting requests."""

from typing import Any

import pytest

from store.background_moves.timing import MoveTiming
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.move_record import MoveState
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests import invariants
from tests.counting_store import CountingStore
from tests.store.background_moves import journaled
from tests.store.background_moves.journaled import SUBTREE, cascade, move

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]


async def foretold(store: Store, edit: Any, transactions: int) -> None:
    """Fail unless a dry run tells so many transactions, and the write units of the whole subtree."""
    forecast = (await Writer(store).write(edit, ReadUsage(), EditOptions(dry_run=True))).dry_run
    assert forecast is not None
    assert (forecast.nodes, forecast.transactions) == (len(SUBTREE), transactions)
    assert 10 * forecast.nodes <= forecast.write_units < 14 * forecast.nodes


async def test_a_dry_run_of_a_large_move_writes_nothing(store: Store) -> None:
    await journaled.plant(store)
    before = await invariants.all_items(store)
    for edit, transactions in ((move("r/a", "o/p/a"), 3 + 2 + 2), (cascade("r/a"), 3 + 3)):
        await foretold(store, edit, transactions)
    taken = (await Writer(store).write(move("r/a", "r/b"), ReadUsage(), EditOptions(dry_run=True))).dry_run
    assert taken is not None
    assert taken.collisions == [("r", "b")]
    assert await invariants.all_items(store) == before


async def test_a_dry_run_of_a_cascade_tells_the_transactions_that_end_redirects(store: Store) -> None:
    await journaled.plant(store)
    await journaled.write(store, move("r/b", "r/c"))
    await foretold(store, cascade("r/a"), 3 + 3 + 1)
    counted: Any = CountingStore(store)
    await journaled.write(counted, cascade("r/a"))
    assert len(counted.commits) == 3 + 3 + 1


async def test_a_repeated_large_move_with_one_key_is_one_move(store: Store) -> None:
    await journaled.plant(store)
    writer = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0))
    told = [await writer.write(move("r/a", "o/p/a"), ReadUsage(), EditOptions(key="k")) for _ in range(2)]
    await writer.move_worker.finished()
    told.append(await Writer(store).write(move("r/a", "o/p/a"), ReadUsage(), EditOptions(key="k")))
    assert len({written.move.id for written in told if written.move}) == 1
    assert told[-1].move is not None
    assert told[-1].move.state is MoveState.DONE
    assert len({written.record.id for written in told}) == 1
    await journaled.has_ended(store)


@pytest.mark.parametrize(("request_seconds", "wait_seconds"), [(4.0, 2.0), (10.0, 5.0), (60.0, 5.0)])
def test_a_request_waits_for_a_move_for_five_seconds_and_half_of_its_time_at_most(request_seconds, wait_seconds):
    assert MoveTiming.of(request_seconds, 2.0).wait_seconds == wait_seconds
