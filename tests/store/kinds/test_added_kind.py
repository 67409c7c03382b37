"""A kind that is added is kept by every writer, check and repair, without a change elsewhere.

It is one class (`unique_notes.py`), which reads before it writes and writes on a condition.
"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from store.background_moves.timing import MoveTiming
from store.background_moves.worker import MoveWorker
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.edits.batch import Batch, Step
from store.edits.create_update import Update
from store.edits.delete import Delete, Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import AlreadyExists
from store.kinds import kinds
from store.metadata.move_record import MoveState
from store.model.items import Delete as Removal
from store.model.items import Put, key_of
from store.model.paths import parse_path
from store.reading.active_moves import recent_moves
from store.transfer.load import LoadResult, load
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.background_moves import journaled
from tests.store.background_moves.journaled import AT, SMALL, cascade, create, move
from tests.store.background_moves.test_faults import another
from tests.store.kinds.unique_notes import UniqueInTree, UniqueNotes, notes, notes_of_nodes
from tests.store.transfer.test_load import reasons, wanted_of

pytestmark = pytest.mark.both_stores

SOON = MoveTiming(0.0, 0.0, 5.0, 5.0)
PATHS = ["r", "o", "o/p", "r/a", *[f"r/a/n{n}" for n in range(9)], "r/a/n0/x", "r/a/n0/y", "r/a/n8/x"]
SCOPES = {"hierarchy": UniqueNotes, "tree": UniqueInTree}


@pytest.fixture(params=SCOPES, autouse=True)
def scope(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(kinds, "NODE_KINDS", [*kinds.NODE_KINDS, SCOPES[request.param]])
    return str(request.param)


def noted(path: str, note: str, **values: Any) -> Any:
    return replace(create(path, **values), values={"note": note})


async def findings(store: Store) -> list[str]:
    return [str(one) async for one in Check(store, {"category": CATEGORY}, AT).findings()]


async def check(store: Store) -> None:
    """Fail unless there is an item for the note of each node, once where it moves, and none besides."""
    items = await invariants.all_items(store)
    assert notes(items) == notes_of_nodes(items)
    assert await findings(store) == []


async def write(store: Store, *edits: Any) -> list[Any]:
    """What becomes of edits that are asked for at once, after the moves that they begin."""
    writer = Writer(store, SOON, {"category": CATEGORY})
    results = await asyncio.gather(*[writer.write(one, ReadUsage()) for one in edits], return_exceptions=True)
    await writer.move_worker.finished()
    return results


async def planted(store: Store) -> None:
    told = [(path, "CATEGORY", {"note": f"note {path}", "id": path.replace("/", ".")}) for path in PATHS]
    await load(store, wanted_of(told, CATEGORY), LoadResult())
    await check(store)


def update(path: str, note: str | None) -> Update:
    return Update(CATEGORY, parse_path(path), None, None, {"note": note})


async def test_an_import_keeps_it_and_rejects_rows_that_it_refuses(store: Store) -> None:
    await planted(store)
    told = [
        ("r/b", "CATEGORY", {"note": "new"}), ("r/c", "CATEGORY", {"note": "new"}), ("r/c/d", "CATEGORY", {}),
        ("r/e", "CATEGORY", {"note": "note r/a"}), ("r/a/n1", "CATEGORY", {"note": "other"}),
        ("r/a/n2", "CATEGORY", {"note": "note r/a"}), ("r/a/n3", "CATEGORY", {"note": None}),
    ]  # fmt: skip
    outcome = LoadResult()
    await load(store, wanted_of(told, CATEGORY), outcome)
    taken = "Another node has this note; choose another."
    assert reasons(outcome) == {
        2: taken,
        3: "The parent of r/c/d is missing, since row 2 was rejected.",
        4: taken,
        6: taken,
    }
    await check(store)
    kept = [(path, "CATEGORY") for path in PATHS if path != "r/a/n8/x"]
    await load(store, wanted_of([*kept, ("r/b", "CATEGORY")], CATEGORY), LoadResult(), prune=True)
    await check(store)
    assert "note r/a/n8/x" not in dict(notes(await invariants.all_items(store)))


@pytest.mark.both_stores(False)
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_trees_that_are_committed_together_give_it_to_one_another(store: Store, scope: str) -> None:
    await planted(store)
    told = [("r/a", "CATEGORY", {"note": "given up"}), ("r/b", "CATEGORY"), ("o/p", "CATEGORY", {"note": "note r/a"})]
    outcome = LoadResult()
    await load(store, wanted_of(told, CATEGORY), outcome)
    assert (reasons(outcome), outcome.commits) == ({}, 1)
    await check(store)
    twice = [(root, "CATEGORY", {"note": "new"}) for root in ("x", "y", "z")]
    outcome = LoadResult()
    await load(store, wanted_of(twice, CATEGORY), outcome)
    refused = "Another node has this note; choose another."
    assert reasons(outcome) == ({2: refused, 3: refused} if scope == "hierarchy" else {})
    await check(store)


async def test_edits_keep_it_and_are_refused_by_it(store: Store) -> None:
    await planted(store)
    (taken,) = await write(store, noted("r/b", "note r/a"))
    assert isinstance(taken, AlreadyExists)
    assert taken.field == ("attributes", "note")
    one, other = await write(store, noted("r/b", "same"), noted("r/c", "same"))
    assert [isinstance(one, AlreadyExists), isinstance(other, AlreadyExists)] == [False, True]
    assert isinstance((await write(store, update("r/b", "note r/a")))[0], AlreadyExists)
    await check(store)
    at_once = (
        update("r/b", "changed"), noted("r/c", "same"), move("r/a", "r/z"), move("r/z/n1", "o/n1"),
        Delete(CATEGORY, parse_path("r/z/n0"), Policy.REPARENT),
    )  # fmt: skip
    for edits in (at_once, [cascade("o")], [noted("r/d", "note o/p"), update("r/z", None)]):
        assert not [one for one in await write(store, *edits) if isinstance(one, Exception)]
        await check(store)


async def test_a_batch_keeps_it(store: Store) -> None:
    await planted(store)
    edits = [update("r/a", "moved on"), noted("r/b", "note r/a"), move("r/b", "r/c"), update("r/a/n1", None)]
    (made,) = await write(store, Batch(CATEGORY, [Step(edit, number) for number, edit in enumerate(edits)]))
    assert not isinstance(made, Exception), made
    await check(store)


@pytest.mark.parametrize(
    ("edit", "places"),
    [(move("r/a", "o/p/a"), "o/p/a"), (move("r/a", "r/z"), "r/z"), (move("r/a", "a"), "a"), (cascade("r/a"), None)],
    ids=["to another tree", "a rename", "to a root", "a deletion"],
)
async def test_a_large_move_killed_after_any_commit_takes_it_along(
    store_url: str, edit: Any, places: str | None
) -> None:
    commits = 0
    while True:
        commits += 1
        async with open_store(another(store_url, commits)) as store:
            await store.create()
            await planted(store)
            store.max_commit_changes = SMALL
            if not await journaled.died(store, edit, commits):
                break
            assert await findings(store) == []
            await journaled.lapse(store)
            worker = MoveWorker(store, SOON, hierarchies={"category": CATEGORY})
            await worker.resume()
            await worker.finished()
            await check(store)
            found = notes(await invariants.all_items(store))
            assert len(found) == (len(PATHS) if places else 4 - 1)
    assert commits > 5


async def test_a_large_move_that_it_refuses_is_undone(store: Store, scope: str) -> None:
    await planted(store)
    await write(store, noted("o/taken", "note r/a/n7" if scope == "tree" else "free"))
    before = notes(await invariants.all_items(store))
    store.max_commit_changes = SMALL
    await write(store, move("r/a", "o/p/a"))
    (found,) = await recent_moves(store, ReadUsage())
    assert found.state is (MoveState.UNDONE if scope == "tree" else MoveState.DONE)
    await check(store)
    assert notes(await invariants.all_items(store)) == before


async def test_check_finds_each_damage_and_repair_mends_it(store: Store) -> None:
    await planted(store)
    item = next(one for one in await invariants.all_items(store) if one["pk"].endswith("#note r/a"))
    elsewhere = {**item, "pk": item["pk"].replace("note r/a", "nothing")}
    damages = [
        Removal(key_of(item)), Put({**item, "id": "category:none"}), Put({**item, "id": "category:r.a.n1"}),
        Put(elsewhere), Put({**elsewhere, "id": "category:none"}), Put({name: item[name] for name in ("pk", "sk")}),
    ]  # fmt: skip
    for damage in damages:
        await store.commit([damage])
        assert await findings(store), damage
        assert all([one.is_fixed async for one in Repair(Check(store, {"category": CATEGORY}, AT), SOON).run()])
        await check(store)
    await store.commit([Put({**item, "key": "#hint#"})])
    assert await findings(store) == []


async def test_repair_lists_what_the_kind_refuses_and_leaves_it(store: Store) -> None:
    await planted(store)
    node = next(one for one in await invariants.all_items(store) if one.get("id") == "category:r.a" and "tier" in one)
    own = next(one for one in await invariants.all_items(store) if one["pk"].endswith("#note r/a"))
    await store.commit([Put({**node, "note": "note r/a/n1"}), Removal(key_of(own))])
    for _ in range(2):
        found = [one async for one in Repair(Check(store, {"category": CATEGORY}, AT), SOON).run()]
        assert [one.is_fixed for one in found] == [False]
        assert str(found[0].finding) == "category r/a: 1 unique note not as the node is"
