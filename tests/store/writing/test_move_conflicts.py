"""Requests for moves and cascades of several transactions, and other writes while those run."""

from typing import Any

import pytest

from store.concurrency import RetryPolicy
from store.engine import ReadUsage, Store
from store.errors import AlreadyExists, Conflict
from store.metadata.moves import MoveState, MoveTiming
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.writing.create_update import Update
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position, Side
from store.writing.transaction import MAX_MOVES
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import SUBTREE, cascade, create, move
from tests.stores import CountingStore

pytestmark = pytest.mark.extenddb

STATES = [MoveState.COPYING, MoveState.SWEEPING]


def update(path: str) -> Update:
    return Update(CATEGORY, parse_path(path), "another name", None, {})


def reorder(path: str, side: Side, beside: str | None = None) -> Move:
    position = Position(side, None if beside is None else parse_path(beside))
    return Move(CATEGORY, parse_path(path), parse_path(path), position=position)


def reparent(path: str) -> Delete:
    return Delete(CATEGORY, parse_path(path), Policy.REPARENT)


INSIDE = {
    MoveState.COPYING: [
        update("r/a"), update("r/a/n0/x"), create("r/a/n0/new"), cascade("r/a/n0/x"), move("r/a/n0/x", "r/b/x"),
        move("r/a", "r/y"), cascade("r/a"), reorder("r/a", Side.FIRST), reorder("r/b", Side.BEFORE, "r/a"),
        reparent("o/p"),
    ],
    MoveState.SWEEPING: [
        update("o/p/a"), update("o/p/a/n0/x"), create("o/p/a/n0/new"), cascade("o/p/a/n0/x"), create("r/a"),
        move("o/p/a", "o/y"), move("r/b", "r/a"), reorder("o/p/a", Side.FIRST),
    ],
}  # fmt: skip
EITHER = [
    create("o/p/a"), move("r/b", "o/p/a"), move("o/p/a/n0", "r/b/n0"), move("r", "s"), cascade("r"), cascade("o/p"),
    move("o/p", "r/b/p"), move("o", "u"), cascade("o"),
]  # fmt: skip


TOLD = "^(r/a is being moved with all below it|A subtree is moved to o/p/a)"


@pytest.mark.parametrize("state", STATES)
async def test_writes_to_either_end_or_its_ancestors_are_rejected(store: Store, state: MoveState) -> None:
    await journaled.plant(store)
    found = await journaled.halted(store, move("r/a", "o/p/a"), state)
    before = await journaled.paths(store)
    for edit in [*INSIDE[state], *EITHER]:
        for dry_run in (True, False):
            with pytest.raises(Conflict, match=f"{TOLD}; .* the move {found.id}"):
                await Writer(store, journaled.SOON).write(edit, ReadUsage(), EditOptions(dry_run=dry_run))
    for edit, told, other in ((cascade("r"), "^r/a is", "o/p/a"), (create("o/p/a"), "to o/p/a;", "r/a")):
        with pytest.raises(Conflict, match=told) as refused:
            await Writer(store, journaled.SOON).write(edit, ReadUsage())
        assert other not in str(refused.value), "the other end may be where the client may not read"
    assert await journaled.paths(store) == before
    await journaled.lapse(store)
    await journaled.resume(store)
    await journaled.has_ended(store)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("edit", [move("r/a", "o/p/a"), cascade("r/a")], ids=["a move", "a cascade"])
async def test_other_writes_go_on_and_all_counts_are_right_in_the_end(
    store: Store, state: MoveState, edit: Any
) -> None:
    await journaled.plant(store, "o/p/a2", "r/a2", "r/a2/x", *[f"r/big/n{n}" for n in range(9)], "r/big")
    await journaled.halted(store, edit, state)
    for one in (
        create("r/new"), create("r/b/c/new"), update("r"), update("o/p"), create("o/p/z"), cascade("r/a2"),
        move("o/p/a2", "r/a2"), reorder("r/b", Side.FIRST), move("r/b", "o/p/b"), cascade("r/0"),
    ):  # fmt: skip
        await journaled.write(store, one)
    assert await journaled.findings(store) == []
    both = Writer(store, journaled.SOON)
    await both.write(move("r/big", "o/p/big"), ReadUsage())
    await both.move_worker.finished()
    await journaled.lapse(store)
    await journaled.resume(store)
    assert await journaled.findings(store) == []
    assert not await journaled.paths(store) & {"r/a", "r/big", "r/0", "r/b"}


@pytest.mark.parametrize("state", STATES)
async def test_hidden_nodes_are_not_siblings_of_others(store: Store, state: MoveState) -> None:
    await journaled.plant(store)
    await journaled.halted(store, move("r/a", "r/z" if state is MoveState.COPYING else "r/y"), state)
    before = await journaled.there(store, (await journaled.write(store, update("r/b"))).record.key)
    where = reorder("r/b", Side.LAST) if state is MoveState.COPYING else reorder("r/b", Side.AFTER, "r/0")
    written = await journaled.write(store, where)
    assert written.record.rank == before["rank"], "it stands there already"


async def test_an_id_that_goes_with_a_cascade_is_not_given_to_another_node_before_it_is_gone(store: Store) -> None:
    await journaled.plant(store)
    top = (await journaled.write(store, update("r/a/n8/x/y"))).record
    await journaled.halted(store, cascade("r/a"), MoveState.SWEEPING)
    again = create("o/again", node_id=top.id.partition(":")[2])
    with pytest.raises(Conflict, match="r/a is being deleted"):
        await journaled.write(store, again)
    await journaled.lapse(store)
    await journaled.resume(store)
    assert (await journaled.write(store, again)).record.revision == top.revision + 1
    await journaled.has_ended(store)


async def test_the_number_of_running_moves_in_a_tree_is_limited(store: Store) -> None:
    tops = [f"r/t{number}" for number in range(MAX_MOVES + 1)]
    await journaled.plant(store, *tops, *[f"{top}/n{number}" for top in tops for number in range(9)])
    writer = Writer(store, MoveTiming(60.0, 0.0, 0.0, 60.0))
    for top in tops[1:]:
        await writer.write(move(top, f"{top}-moved"), ReadUsage())
    with pytest.raises(Conflict, match=f"{MAX_MOVES} large moves are running in this tree"):
        await writer.write(move(tops[0], f"{tops[0]}-moved"), ReadUsage())
    await writer.move_worker.stop()


async def test_an_import_waits_for_the_moves_in_its_trees_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.reading.MOVE_POLLS", RetryPolicy(0.001, 0.001, attempts=3))
    await journaled.plant(store, "other")
    await journaled.halted(store, move("r/a", "o/p/a"), MoveState.COPYING)
    await load(store, wanted_of([("other/x", "CATEGORY")], CATEGORY), LoadResult())
    with pytest.raises(Conflict, match=r"r/a is being moved .* clade repair finishes an abandoned move"):
        await load(store, wanted_of([("r/new", "CATEGORY")], CATEGORY), LoadResult())
    await journaled.lapse(store)
    await journaled.resume(store)
    rows = wanted_of([("o/p/a/n0", "CATEGORY"), ("o/p/a/mine", "CATEGORY")], CATEGORY)
    await load(store, rows, outcome := LoadResult())
    assert (outcome.unchanged, outcome.added.total()) == (1, 1)
    await journaled.has_ended(store)


# -- the requests that ask for them ------------------------------------------------------------------------------------


async def foretold(store: Store, edit: Any, transactions: int) -> None:
    """Fail unless a dry run tells so many transactions and the write units of the subtree, and writes nothing."""
    before = await invariants.all_items(store)
    forecast = (await Writer(store).write(edit, ReadUsage(), EditOptions(dry_run=True))).dry_run
    assert forecast is not None
    assert (forecast.nodes, forecast.transactions) == (len(SUBTREE), transactions)
    assert 10 * forecast.nodes <= forecast.write_units < 14 * forecast.nodes
    assert await invariants.all_items(store) == before


async def test_a_dry_run_tells_the_transactions_of_a_large_move_and_those_that_end_redirects(store: Store) -> None:
    await journaled.plant(store)
    await foretold(store, move("r/a", "o/p/a"), 3 + 2 + 2)
    await foretold(store, cascade("r/a"), 3 + 3)
    with pytest.raises(AlreadyExists):
        await Writer(store).write(move("r/a", "r/b"), ReadUsage(), EditOptions(dry_run=True))
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


def test_a_request_waits_for_a_move_for_five_seconds_and_half_of_its_time_at_most() -> None:
    assert [MoveTiming.of(seconds, 2.0).wait_seconds for seconds in (4.0, 10.0, 60.0)] == [2.0, 5.0, 5.0]
