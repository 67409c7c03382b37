"""Interrupted moves to another tree that is searched by itself: in the end the items are those of the nodes."""

from dataclasses import replace
from typing import Any

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadPath
from store.metadata.move_record import MoveState
from store.model.hierarchy import Search, SearchScope
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.background_moves import journaled

pytestmark = pytest.mark.both_stores

BY_TREE = replace(CATEGORY, search=Search(SearchScope.TREE))
MOVES = {
    "to another tree": journaled.move("r/a", "o/p/a"),
    "to a root": journaled.move("r/a", "a"),
    "from a root": journaled.move("r", "o/r"),
}


def moved(path: str, target: str) -> Move:
    return replace(journaled.move(path, target), hierarchy=BY_TREE)


async def check(store: Store) -> None:
    assert await journaled.findings(store, BY_TREE) == []
    await invariants.check(store, {"category": BY_TREE})


@pytest.mark.parametrize(
    "what",
    ["to a root", *(pytest.param(one, marks=pytest.mark.both_stores(False)) for one in MOVES if one != "to a root")],
)
async def test_a_move_stopped_after_any_commit_takes_all_items_along(store_url: str, what: str) -> None:
    edit, states = replace(MOVES[what], hierarchy=BY_TREE), list[MoveState]()
    while True:
        commits = len(states) + 1
        url = store_url.replace("clade-", f"clade-{commits}-").replace("clade.db", f"{commits}.db")
        async with open_store(url) as store:
            await store.create()
            await journaled.plant(store, hierarchy=BY_TREE)
            store.max_commit_changes = 48
            if not await journaled.died(store, edit, commits, BY_TREE):
                break
            states.append((await journaled.only_move(store)).state)
            assert await journaled.findings(store, BY_TREE) == []
            await journaled.lapse(store)
            await journaled.resume(store, BY_TREE)
            await check(store)
    assert set(states) == {MoveState.COPYING, MoveState.SWEEPING, MoveState.DONE}


async def test_a_move_that_is_undone_leaves_the_items_as_they_were(store: Store) -> None:
    long = "m" * 500
    await journaled.plant(store, f"o/{long}", f"r/a/{long}", hierarchy=BY_TREE)
    await journaled.write(store, moved("r/b", "r/a/b"))  # so that there are items of moves in the subtree

    longer = replace(journaled.create(f"r/a/{long}/{'n' * 20}"), hierarchy=BY_TREE)
    edited: Any = journaled.EditedMeanwhile(store, longer)
    writer = Writer(edited, journaled.SOON, {"category": BY_TREE})
    with pytest.raises(BadPath):
        await writer.write(moved("r/a", f"o/{long}/a"), ReadUsage())
    await writer.move_worker.finished()
    assert (await journaled.only_move(store)).state is MoveState.UNDONE
    await check(store)


async def test_a_repair_finishes_an_interrupted_move_with_its_items(store: Store) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    assert await journaled.died(store, moved("r/a", "o/p/a"), 3, BY_TREE)
    await journaled.lapse(store)
    results = [one async for one in Repair(Check(store, {"category": BY_TREE}, journaled.AT), journaled.SOON).run()]
    assert [one.is_fixed for one in results] == [True]
    await check(store)
