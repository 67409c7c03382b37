"""Check and repair of what tombstones tell of their deletions: each problem is found once, and mended."""

from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, DamagedItem, NotFound
from store.metadata.moves import MoveState
from store.model.keys import Key, id_key, revision_key
from store.model.records import Item, Put, key_of
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.edit import Named
from store.writing.move_delete import Delete, Policy
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.selection import examples
from tests.store.checking.broken import change, item, remove
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled

PATHS = ["r", "r/a", "r/a/b", "r/a/b/c", "r/a/b/d", "r/a/e", "r/z"]
ID = {path: f"i{number}" for number, path in enumerate(PATHS)}


async def fill(store: Store, limit: int | None) -> None:
    """A tree of which `r/a` was deleted with four nodes below it; with a small `limit` by a job."""
    await load(store, wanted_of([(path, "CATEGORY", {"id": ID[path]}) for path in PATHS], CATEGORY), LoadResult())
    store.max_commit_changes = limit
    await journaled.write(store, Delete(CATEGORY, ("r", "a"), Policy.CASCADE))
    assert len({one["parent"] for one in await tombstones(store)}) > 1 or limit is None


async def tombstones(store: Store) -> list[dict[str, Any]]:
    return [one for one in await invariants.all_items(store) if one["pk"].startswith("id#") and "deleted" in one]


def tombstone(path: str) -> Key:
    return id_key(f"category:{ID[path]}")


A, B = "category r/a: the deleted node category:i1: ", "category r/a/b: the deleted node category:i2: "
CASES: dict[str, tuple[dict[str, dict[str, Any]], list[str]]] = {
    "too few children": ({"r/a": {"kids": 1}}, [f"{A}attribute `kids` is 1, expected 2"]),
    "too few descendants": ({"r/a/b": {"below": 1}}, [f"{B}attribute `below` is 1, expected 2"]),
    "a top that says that it was alone": (
        {"r/a": {"kids": 0, "below": 0}},
        [f"{A}attribute `kids` is 0, expected 2; attribute `below` is 0, expected 4"],
    ),
    "a node within that says so": (
        {"r/a/b": {"kids": 0, "below": 0}},
        [f"{B}attribute `kids` is 0, expected 2; attribute `below` is 0, expected 2"],
    ),
    "two that say so": (
        {"r/a": {"kids": 0, "below": 0}, "r/a/b": {"kids": 0, "below": 0}},
        [
            f"{A}attribute `kids` is 0, expected 2; attribute `below` is 0, expected 4",
            f"{B}attribute `kids` is 0, expected 2; attribute `below` is 0, expected 2",
        ],
    ),
    "no number": ({"r/a": {"kids": "x", "below": None}}, [
        f"{A}attribute `kids` is 'x', expected 2; attribute `below` is absent, expected 4",
    ]),
    "no number of none": ({"r/a/b/c": {"kids": -1}}, [
        "category r/a/b/c: the deleted node category:i3: attribute `kids` is -1, expected 0",
    ]),
    "another place": ({"r/a/e": {"rank": "#z#"}}, [
        "category r/a/e: the deleted node category:i5: attribute `rank` is '#z#', expected '#a#e#'",
    ]),
    "no texts": ({"r/a/e": {"place": 5}}, [
        "category r/a/e: the deleted node category:i5: attribute `place` is 5, expected absent",
    ]),
    "another text": ({"r/a/e": {"place": "x"}}, [
        "category r/a/e: the deleted node category:i5: attribute `place` is 'x', expected absent",
    ]),
    "no parent": ({"r/a/e": {"under": 5}, "r/a/b/c": {"under": "x"}, "r/a/b": {"under": None}}, [
        "category r/a/e: the deleted node category:i5: attribute `under` is 5, expected 'category:i1'",
        "category r/a/b/c: the deleted node category:i3: attribute `under` is 'x', expected 'category:i2'",
        f"{B}attribute `under` is absent, expected 'category:i1'",
    ]),
    "a node that is there": ({"r/z": {"kids": 0, "rank": "#z#"}}, [
        "category r/z: the record of id category:i6 has rank, kids, as of a deleted node",
    ]),
}  # fmt: skip


async def findings(store: Store) -> list[str]:
    return sorted(await journaled.findings(store))


@pytest.mark.parametrize("limit", [None, pytest.param(journaled.SMALL, marks=pytest.mark.both_stores)])
async def test_damage_of_a_deletion_is_found_once_and_mended(store: Store, limit: int | None) -> None:
    await fill(store, limit)
    before = sorted(await tombstones(store), key=key_of)
    for what, (damages, expected) in CASES.items():
        for path, values in damages.items():
            await change(store, tombstone(path), **values)
        assert await findings(store) == sorted(expected), what
        repair = [one async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT)).run()]
        assert sorted([(str(one.finding), one.is_fixed) for one in repair]) == [(one, True) for one in sorted(expected)]
        assert await findings(store) == [], what
        assert sorted(await tombstones(store), key=key_of) == before, what
        await invariants.check(store)


@pytest.mark.parametrize("parent", ["gone/x", "gone", None, f"gone/{'0' * 24}/8"])
async def test_a_tombstone_of_no_known_deletion_is_of_none_after_a_repair(store: Store, parent: str | None) -> None:
    await fill(store, None)
    await change(store, tombstone("r/a/b"), parent=parent)
    assert len(found := await findings(store)) == 1
    assert found[0].startswith(B)
    assert all([one.is_fixed async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT)).run()])
    assert await findings(store) == []
    assert not {"parent", "rank", "under", "kids", "below"} & (await item(store, tombstone("r/a/b"))).keys()


async def test_a_node_that_is_back_is_not_missed_by_the_deletion(store: Store) -> None:
    await fill(store, None)
    await Writer(store).write(Create(CATEGORY, ("r", "b"), "CATEGORY", "b", {}, ID["r/a/b"]), ReadUsage())
    assert await findings(store) == []
    await Writer(store).write(Delete(CATEGORY, ("r", "b"), Policy.REFUSE), ReadUsage())
    assert await findings(store) == []


async def test_a_tombstone_that_a_repair_writes_keeps_its_deletion_at_its_key(store: Store) -> None:
    await fill(store, None)
    found = await item(store, tombstone("r/a/b"))
    await store.commit([Put({**found, "key": "nowhere"})])
    assert all([one.is_fixed async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT)).run()])
    mended = await item(store, tombstone("r/a/b"))
    assert {**mended, "deleted": "", "above": []} == {**found, "deleted": "", "above": []}
    assert await findings(store) == []


async def test_the_id_of_a_lost_node_gets_a_tombstone_of_no_deletion(store: Store) -> None:
    await fill(store, None)
    await Writer(store).write(Update(CATEGORY, ("r", "z"), "other", None, {}), ReadUsage())
    await change(store, tombstone("r/z"), parent="gone/x", kids=0)
    await remove(store, Key("category#r", "#z#"))
    _ = [one async for one in Repair(Check(store, {"category": CATEGORY}, journaled.AT)).run()]
    assert await findings(store) == []
    mended = await item(store, tombstone("r/z"))
    assert (mended["deleted"], mended.keys() & {"parent", "rank", "kids"}) == (journaled.AT, set())


# -- restores of what is damaged, and checks beside restores -----------------------------------------------------------

WRONG: list[Any] = [None, "x", -1, [], True, 1.5, [["x", 1]], {"x": {}}][: examples(3, 8)]
RESTORED = {"kids", "below", "under", "place", "deleted"}
"""What is read of a tombstone in a deletion; without `parent` and `rank`, by which the engines find it."""
HARMLESS = [("kids", None), ("below", None), ("place", None)]


def restore(path: str, to: str | None = None) -> Restore:
    node_id = f"category:{ID[path]}"
    names = [Named("id", id=node_id), *([] if to is None else [Named("to", path=tuple(to.split("/")))])]
    return Restore(CATEGORY, (), node_id, names=names)


async def repaired(store: Store) -> list[tuple[str, bool]]:
    check = Check(store, {"category": CATEGORY}, journaled.AT)
    return [(str(one.finding), one.is_fixed) async for one in Repair(check, journaled.SOON).run()]


async def outcome(store: Store, edit: Restore) -> type[CladeError] | None:
    """The class of the error of a restore."""
    try:
        await journaled.write(store, edit)
    except CladeError as error:
        return type(error)
    return None


@pytest.mark.parametrize("limit", [None, journaled.SMALL // 2])
async def test_a_damaged_tombstone_restores_no_part_and_what_a_repair_mends_comes_back_whole(
    store: Store, limit: int | None
) -> None:
    await fill(store, limit)
    store.max_commit_changes = limit
    for path, name, value in product(("r/a", "r/a/b"), sorted(RESTORED), WRONG if limit is None else ["x"]):
        damage = (path, name, value)
        await change(store, tombstone(path), **{name: value})
        is_harmless = (name, value) in HARMLESS
        assert await outcome(store, restore("r/a")) is (None if is_harmless else DamagedItem), damage
        if not is_harmless:
            assert await journaled.paths(store) == {"r", "r/z"}
            assert [fixed for _, fixed in await repaired(store)] == [True], damage
            assert await findings(store) == []
            place = "r" if (path, name) == ("r/a", "under") else None
            assert await outcome(store, restore("r/a", place)) is None, damage
        assert await journaled.paths(store) == set(PATHS), damage
        assert await findings(store) == [], damage
        await journaled.write(store, Delete(CATEGORY, ("r", "a"), Policy.CASCADE))
    await invariants.check(store)


@pytest.mark.parametrize("parent", [None, "x", "gone/x"])
async def test_the_top_of_a_deletion_that_it_does_not_name_is_restored_after_a_repair_with_a_place(
    store: Store, parent: str | None
) -> None:
    await fill(store, None)
    await change(store, tombstone("r/a"), parent=parent)
    with pytest.raises(DamagedItem, match="expected a deletion in `parent`"):
        await journaled.write(store, restore("r/a", "r"))
    await repaired(store)
    with pytest.raises(NotFound, match="The former parent of category:i1 is not to be found"):
        await journaled.write(store, restore("r/a"))
    for path, to in (("r/a", "r"), ("r/a/b", None), ("r/a/e", None)):
        await journaled.write(store, restore(path, to))
    assert await journaled.paths(store) == set(PATHS)
    assert await findings(store) == []


@pytest.mark.parametrize("limit", [None, journaled.SMALL // 2])
async def test_a_node_without_its_last_revision_is_not_restored_nor_left_out(store: Store, limit: int | None) -> None:
    await fill(store, limit)
    store.max_commit_changes = limit
    await remove(store, revision_key(f"category:{ID['r/a/b/c']}", 1))
    with pytest.raises(DamagedItem, match="the revision 1 of the deleted node is missing"):
        await journaled.write(store, restore("r/a"))
    assert await journaled.paths(store) == {"r", "r/z"}
    assert await findings(store) == ["category r/a/b/c: 1 revision of the deleted node category:i3 missing"]
    await journaled.write(store, restore("r/a/b/d", "r"))
    await invariants.nodes(store, "category")


class Beside(Repair):
    """A repair beside a worker that goes on with its moves."""

    async def _moves(self) -> Any:
        return
        yield


RESTORES: dict[str, tuple[str | None, bool]] = {
    "at its place": (None, False), "elsewhere": ("o", False), "undone": (None, True),
}  # fmt: skip


@pytest.mark.parametrize("what", RESTORES)
async def test_a_restore_killed_after_any_commit_is_no_finding_and_finished_by_a_repair(
    store_url: str, what: str
) -> None:
    to, is_undone = RESTORES[what]
    states: list[MoveState] = []
    while True:
        commits = len(states) + 1
        async with open_store(store_url.replace("clade", f"{commits}")) as store:
            await store.create()
            await journaled.plant(store)
            top = (await journaled.there(store, Key("category#r", "#a#")))["id"]
            below = await journaled.there(store, Key("category#r", "#a#n8#x#y#"))
            await journaled.write(store, journaled.cascade("r/a"))
            before = await tombstones(store)
            if is_undone:
                await remove(store, revision_key(str(below["id"]), 1))
            names = [Named("id", id=top), *([] if to is None else [Named("to", path=(to,))])]
            writer = Writer(journaled.mortal(store, commits), journaled.SOON)
            with suppress(journaled.Dies, DamagedItem):
                await writer.write(Restore(CATEGORY, (), top, names=names), ReadUsage())
            await writer.move_worker.finished()
            found = await journaled.only_restore(store)
            states.append(found.state)
            if found.ended_at is not None:
                break
            expected = await lost(store, below) if is_undone else []
            assert await findings(store) == expected
            items = await invariants.all_items(store)
            beside = Beside(Check(store, {"category": CATEGORY}, journaled.AT))
            assert [str(one.finding) async for one in beside.run()] == expected
            assert await invariants.all_items(store) == items
            await journaled.lapse(store)
            await repaired(store)
            assert await findings(store) == expected
            assert await tombstones(store) == (before if is_undone else [])
            back = set() if is_undone else journaled.at("r/a", f"{to or 'r'}/a")
            assert await journaled.paths(store) == {*journaled.OTHERS, *back}
    end = MoveState.UNDONE if is_undone else MoveState.DONE
    assert {MoveState.COPYING, end} <= set(states)


async def lost(store: Store, node: Item) -> list[str]:
    """The finding on a deleted node whose revision is lost, while it is no hidden copy."""
    return [f"category r/a/n8/x/y: 1 revision of the deleted node {node['id']} missing"]


async def test_what_a_restore_leaves_in_an_id_record_is_found_and_removed(store: Store) -> None:
    await fill(store, None)
    was = await item(store, tombstone("r/a"))
    await change(store, tombstone("r/z"), was=was)
    assert await findings(store) == ["category r/z: the record of id category:i6 has was, as of a deleted node"]
    assert [fixed for _, fixed in await repaired(store)] == [True]
    assert "was" not in await item(store, tombstone("r/z"))
