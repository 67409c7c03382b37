"""Workers that die, sleep or compete: in the end a subtree is complete at exactly one place."""

import asyncio
import time
from dataclasses import replace as edited
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.metadata.moves import MoveState, MoveTiming
from store.model.hierarchy import Search, SearchScope
from store.model.keys import tree_version_key
from store.model.records import Put
from store.writing.move_lease import LeaseLost, MoveLease
from store.writing.move_worker import MoveWorker
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.store.writing import journaled
from tests.store.writing.journaled import OTHERS, cascade, move
from tests.stores import Interrupted, once
from tests.waiting import until

pytestmark = [pytest.mark.extenddb, pytest.mark.usefixtures("probes")]

BY_TREE = edited(CATEGORY, search=Search(SearchScope.TREE))

KINDS = {
    "a move to another tree": (move("r/a", "o/p/a"), journaled.at("r/a", "o/p/a")),
    "a rename": (move("r/a", "r/z"), journaled.at("r/a", "r/z")),
    "a move to a root": (move("r/a", "a"), journaled.at("r/a", "a")),
    "a cascade": (cascade("r/a"), set()),
}


@pytest.mark.parametrize("what", KINDS)
async def test_a_move_stopped_after_any_commit_is_finished_by_the_next_worker(store_url: str, what: str) -> None:
    edit, there = KINDS[what]
    edit = edited(edit, hierarchy=BY_TREE)
    states: list[MoveState] = []
    while True:
        commits = len(states) + 1
        async with open_store(another(store_url, commits)) as store:
            await store.create()
            await journaled.plant(store, hierarchy=BY_TREE)
            store.max_commit_changes = 2 * journaled.SMALL  # with the search items of as many nodes
            if not await journaled.died(store, edit, commits):
                break
            states.append((await journaled.only_move(store)).state)
            assert await journaled.findings(store, BY_TREE) == []
            await journaled.lapse(store)
            await journaled.resume(store)
            assert await journaled.findings(store, BY_TREE) == []
            assert await journaled.paths(store) == {*OTHERS, *there}
            await journaled.has_ended(store, hierarchy=BY_TREE)
    assert set(states) == {MoveState.COPYING, MoveState.SWEEPING, MoveState.DONE}


def another(store_url: str, number: int) -> str:
    """The address of another table of the same store."""
    return store_url.replace("clade-", f"clade-{number}-").replace("clade.db", f"{number}.db")


async def test_a_worker_that_slept_past_its_lease_writes_nothing_more(store: Store) -> None:
    await journaled.plant(store)
    writer = Writer(store, MoveTiming(60.0, 0.0, 0.0, 5.0))
    written = await writer.write(move("r/a", "o/p/a"), ReadUsage())
    await asyncio.sleep(0)
    await writer.move_worker.stop()
    sleeper = MoveLease(store, await journaled.only_move(store), 5.0)
    await journaled.resume(store)
    assert written.move is not None
    assert written.move.target is not None
    copy = await journaled.there(store, written.move.target)
    with pytest.raises(LeaseLost):
        await sleeper.write([Put({**copy, "name": "overwritten"})])
    assert await journaled.there(store, written.move.target) == copy
    await journaled.has_ended(store)


async def test_a_lease_is_renewed_during_long_waits(store: Store) -> None:
    await journaled.plant(store)
    assert await journaled.died(store, move("r/a", "o/p/a"), 2)
    await journaled.lapse(store)
    lease = MoveLease(store, await journaled.only_move(store), 60.0)
    await lease.wait(0.01)
    assert (await journaled.only_move(store)).lease > time.time()


async def test_a_lease_is_renewed_once_a_third_of_it_has_passed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await journaled.plant(store)
    assert await journaled.died(store, move("r/a", "o/p/a"), 2)
    lease, now = MoveLease(store, await journaled.only_move(store), 60.0), 2e9
    monkeypatch.setattr(store, "now", lambda: now)
    ends = []
    for seconds in (100, 19, 2):
        now += seconds
        await lease.renew()
        ends.append(lease.move.lease - 2e9)
    assert ends == [160, 160, 181]


# -- what check and repair make of it ----------------------------------------------------------------------------------


async def test_a_repair_waits_for_the_lease_and_finishes_the_move(store: Store) -> None:
    await journaled.plant(store)
    assert await journaled.died(store, move("r/a", "o/p/a"), 2)
    found = await journaled.only_move(store)
    await store.commit([Put(replace(found, lease=time.time() + 0.2).item(), {"epoch": found.epoch})])
    results = [one async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT), journaled.SOON).run()]
    assert [(str(one.finding), one.is_fixed) for one in results] == [
        (f"category r/a: the move {found.id} was interrupted", True)
    ]
    await journaled.has_ended(store)


async def test_a_move_that_stops_again_is_not_repaired(store: Store) -> None:
    await journaled.plant(store)
    assert await journaled.died(store, move("r/a", "o/p/a"), 2)
    await journaled.lapse(store)
    found = await journaled.only_move(store)

    async def fail() -> None:
        raise RuntimeError("A defect.")

    broken: Any = Interrupted(store, "commit", before=once(2, fail))
    for place, says, is_fixed in [(broken, ", and stops again: the log says why", False), (store, "", True)]:
        check = Check(place, {"category": CATEGORY}, journaled.AT)
        results = [(str(one.finding), one.is_fixed) async for one in Repair(check, journaled.SOON).run()]
        assert (f"category r/a: the move {found.id} was interrupted{says}", is_fixed) in results
        await journaled.lapse(store)
    await journaled.has_ended(store)


async def test_a_worker_with_a_clock_a_day_ahead_keeps_its_move_while_it_works(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("store.writing.move_worker.time", SimpleNamespace(monotonic=lambda: now[0]))
    await journaled.plant(store)
    assert await journaled.died(store, move("r/a", "o/p/a"), 2)
    watcher = MoveWorker(store, journaled.SOON)
    for number in range(3):
        found = await journaled.only_move(store)
        ahead = replace(found, lease=time.time() + 24 * 3600 + number)
        await store.commit([Put(ahead.item(), {"epoch": found.epoch})])
        assert await watcher.resume() == []
        now[0] += journaled.SOON.lease_seconds - 0.1
        assert await watcher.resume() == []
    now[0] += 0.2

    async def has_ended() -> bool:  # it looks by itself
        return (await journaled.only_move(store)).ended_at is not None

    async with watcher.watching():
        await until(has_ended)
    await journaled.has_ended(store)


async def test_versions_and_records_that_do_not_refer_to_each_other_are_found_and_repaired(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.checking.sums.SETTLE_SECONDS", 0.0)
    await journaled.plant(store)
    assert await journaled.died(store, move("r/a", "a"), 1)
    found = await journaled.only_move(store)
    stamps = [await journaled.there(store, tree_version_key(one)) for one in ("category#r", "category#a", "category")]
    await store.commit([Put({**one, "moves": None}) for one in stamps])
    lost = f"category r/a: the move {found.id} has not ended, and no tree version lists it"
    assert await journaled.findings(store) == [lost]
    await journaled.lapse(store)
    assert await MoveWorker(store, journaled.SOON).resume() == [], "nothing is known to be its own"
    results = [one async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT), journaled.SOON).run()]
    assert [(str(one.finding), one.is_fixed) for one in results] == [(lost, True)]
    await store.commit([Put(one) for one in stamps])
    problem = f"the move {found.id} is not running"
    assert [one.rpartition(": ")[2] for one in await journaled.findings(store)] == [problem, problem, problem]
    results = [one async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT), journaled.SOON).run()]
    assert all(one.is_fixed for one in results)
    assert await journaled.findings(store) == []
