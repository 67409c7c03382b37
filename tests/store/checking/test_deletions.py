"""Check and repair of what tombstones tell of their deletions: each problem is found once, and mended."""

from typing import Any

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.model.keys import Key, id_key
from store.model.records import Put, key_of
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
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
    "a node that is there": ({"r/z": {"kids": 0, "rank": "#z#"}}, [
        "category r/z: the record of id category:i6 has rank, kids, as of a deleted node",
    ]),
}  # fmt: skip


async def findings(store: Store) -> list[str]:
    return sorted(await journaled.findings(store))


@pytest.mark.both_stores
@pytest.mark.parametrize("limit", [None, journaled.SMALL])
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
