"""Moves and cascades that take more than one transaction: where all lies afterwards, and what others may do meanwhile.

They run on both stores, in which transactions are made small; SQLite else takes any size in one.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from store.background_moves.timing import MoveTiming
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.move_record import MoveState
from store.model.items import Change
from store.model.paths import parse_path
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests import invariants
from tests.store.background_moves import journaled
from tests.store.background_moves.journaled import OTHERS, SUBTREE, cascade, move

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]

PLACES = {
    "a rename": ("r/a", "r/z"),
    "another parent": ("r/a", "r/b/c/a"),
    "a place above": ("r/a/n0", "r/n0"),
    "another tree": ("r/a", "o/p/q"),
    "a root": ("r/a", "a"),
    "from a root": ("r", "o/r"),
    "a root's new key": ("r", "s"),
}


@pytest.mark.parametrize("what", PLACES)
async def test_a_large_subtree_is_at_its_new_place_with_its_ids_and_counts(store: Store, what: str) -> None:
    source, target = PLACES[what]
    await journaled.plant(store, *[f"r/a/n0/m{n}" for n in range(9)])
    before = await journaled.paths(store)
    written = await journaled.write(store, move(source, target))
    assert written.record.path == parse_path(target)
    assert written.move is not None
    assert written.move.has_flipped
    gone = {path for path in before if f"{path}/".startswith(f"{source}/")}
    assert await journaled.paths(store) == before - gone | journaled.at(source, target, list(gone))
    assert await journaled.led(store, written.record.id) == parse_path(target)
    await journaled.has_ended(store)


async def test_a_large_cascade_leaves_histories_alone(store: Store) -> None:
    await journaled.plant(store)
    written = await journaled.write(store, cascade("r/a"))
    assert (written.record.kids, written.record.below) == ({}, {})
    assert await journaled.paths(store) == set(OTHERS)
    assert await journaled.led(store, written.record.id) is None
    await journaled.has_ended(store)
    node_id = written.record.id.removeprefix("category:")
    again = await journaled.write(store, journaled.create("r/a", node_id=node_id))
    assert (again.record.id, again.record.revision) == (written.record.id, 2)


async def test_a_tree_is_deleted_with_its_root(store: Store) -> None:
    await journaled.plant(store)
    await journaled.write(store, cascade("r"))
    assert await journaled.paths(store) == {"o", "o/p"}
    await journaled.has_ended(store)


@pytest.mark.thorough
async def test_a_move_of_5_000_nodes_on_dynamodb(engine, tmp_path) -> None:
    async with open_store(engine.address("large")) as store:
        await store.create()
        many = [f"r/a/n{n % 50}/m{n}" for n in range(10, 4_950)]
        await journaled.plant(store, *[f"r/a/n{n}" for n in range(9, 50)], *many)
        store.max_commit_changes = 100
        written = await journaled.write(store, move("r/a", "o/p/a"))
        assert written.move is not None
        assert written.move.nodes == sum(path.startswith("o/p/a") for path in await journaled.paths(store))
        await journaled.has_ended(store)


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


async def test_a_dry_run_of_a_cascade_tells_the_transactions_that_end_redirects(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journaled.plant(store)
    await journaled.write(store, move("r/b", "r/c"))
    await foretold(store, cascade("r/a"), 3 + 3 + 1)
    commit, commits = store.commit, list[Sequence[Change]]()

    async def counted(changes: Sequence[Change]) -> None:
        await commit(changes)
        commits.append(changes)

    monkeypatch.setattr(store, "commit", counted)
    await journaled.write(store, cascade("r/a"))
    assert len(commits) == 3 + 3 + 1


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
