"""Repairs, on both stores: afterwards the table is good by the check and by independent invariants."""

import asyncio

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.tree_version import TreeVersion
from store.model.items import Item, Put, key_of
from store.model.keys import Key, id_key, tree_version_key
from store.transfer.load import LoadResult, load
from tests import invariants
from tests.store.checking.broken import HIERARCHIES, OMAHA, OMAHA_ID, US, at, change, fill, item, remove
from tests.store.checking.test_check import AT, BROKEN, FR, caught_up, findings  # noqa: F401 - a fixture of both
from tests.store.transfer.test_load import wanted_of

pytestmark = pytest.mark.extenddb

LASTING = {  # what only the node or its history said, so that nothing tells how it was
    "name", "revision", "many revisions", "a revision gone back", "a revision that is no number", "updated_at",
    "changed_by", "an own attribute", "a former state", "a former state that says another revision",
    "the state of a deleted node", "a deleted node without a revision", "an alias", "the log", "the end of the log",
    "a key that is not in normal form", "a key that is none",
}  # fmt: skip


async def repaired(store: Store) -> tuple[list[str], list[str]]:
    """What a repair says that it mended, and what it says that it cannot mend."""
    told = [one async for one in Repair(Check(store, HIERARCHIES, AT)).run()]
    return [str(one.finding) for one in told if one.is_fixed], [str(one.finding) for one in told if not one.is_fixed]


async def all_items(store: Store) -> dict[Key, Item]:
    return {key_of(one): one for one in await invariants.all_items(store)}


@pytest.mark.parametrize("what", [what for what in BROKEN if what not in LASTING])
async def test_derived_values_are_repaired(store: Store, what: str) -> None:
    breaking, found = BROKEN[what]
    await fill(store)
    await breaking(store)
    mended, lasting = await repaired(store)
    assert mended
    assert set(mended) <= set(found)
    assert lasting == []
    assert await findings(store) == []
    await invariants.check(store)


@pytest.mark.parametrize("what", sorted(LASTING))
async def test_other_problems_are_reported_and_left(store: Store, what: str) -> None:
    breaking, found = BROKEN[what]
    await fill(store)
    await breaking(store)
    before = await all_items(store)
    assert await repaired(store) == ([], found)
    assert await all_items(store) == before


async def test_a_good_table_is_left_as_it_is(store: Store) -> None:
    await fill(store)
    before = await all_items(store)
    assert await repaired(store) == ([], [])
    assert await all_items(store) == before


TOGETHER = (
    "kids", "below", "above", "tier", "parent", "rank", "an id", "the record of an id that leads nowhere",
    "the record of an id without a node", "the record of an id that is another's", "a former state of nothing",
    "the aliases of a stamp", "the stamp of the roots", "a stamp",
)  # fmt: skip


async def test_many_problems_are_repaired_and_a_second_repair_changes_nothing(store: Store) -> None:
    await fill(store)
    for what in TOGETHER:
        await BROKEN[what][0](store)
    await repaired(store)
    assert await findings(store) == []
    await invariants.check(store)
    before = await all_items(store)
    assert await repaired(store) == ([], [])
    assert await all_items(store) == before


async def test_a_node_gets_its_own_id_back(store: Store) -> None:
    await fill(store)
    await change(store, OMAHA, id="location:oz")
    await repaired(store)
    assert (await item(store, OMAHA))["id"] == OMAHA_ID
    await invariants.check(store)


async def test_the_id_of_a_lost_node_becomes_a_tombstone_of_its_last_revision(store: Store) -> None:
    await fill(store)
    await remove(store, at("US/NE/Omaha/68118/1"), OMAHA)
    _, lasting = await repaired(store)
    assert lasting == ["location US/NE/Omaha/68118: parent US/NE/Omaha is missing"]
    tombstone = await item(store, id_key(OMAHA_ID))
    assert (tombstone["deleted"], tombstone["revision"], tombstone["key"]) == (AT, 2, OMAHA.sk)
    assert await findings(store) == lasting, "the node below stays, and its parent can be imported"
    await load(store, wanted_of([("US/NE/Omaha", "CITY", {"id": OMAHA_ID.partition(":")[2]})]), LoadResult())
    assert (await item(store, OMAHA))["revision"] == 3


async def test_a_repair_increments_the_version_and_adds_an_empty_log_item(store: Store) -> None:
    await fill(store)
    await change(store, OMAHA, kids={}, below={})
    before = TreeVersion.of(US, await item(store, tree_version_key(US)))
    await repaired(store)
    after = TreeVersion.of(US, await item(store, tree_version_key(US)))
    assert (after.number, after.shape, after.has_redirects) == (before.number + 1, before.shape, before.has_redirects)
    assert (await item(store, Key(US, f"!{after.number:012d}")))["changes"] == []


async def test_many_fixes_take_several_transactions(store: Store) -> None:
    await fill(store)
    count = store.max_changes + 50
    await load(store, wanted_of([(f"FR/C{n}", "CITY") for n in range(count)]), LoadResult())
    keys = [at(f"FR/C{n}") for n in range(count)]
    found = [one for one in await store.get(keys, ReadUsage(), strong=True) if one is not None]
    for start in range(0, count, store.max_changes):
        await store.commit([Put({**one, "kids": {"CITY": 1}}) for one in found[start : start + store.max_changes]])
    mended, lasting = await repaired(store)
    assert (len(mended), lasting) == (count, [])
    await invariants.check(store)


async def test_findings_beyond_the_bound_are_repaired_in_rounds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.checking.findings.MAX_KEPT", 2)
    await fill(store)
    for path in ("US", "US/NE", "US/NE/Omaha", "US/NE/Bellevue"):
        await change(store, at(path), kids="?")
    mended, lasting = await repaired(store)
    assert (len(mended), lasting) == (4, [])
    await invariants.check(store)


async def test_concurrent_checks_and_repairs_report_and_lose_nothing(store: Store) -> None:
    await fill(store)

    async def write() -> None:
        for n in range(12):
            await load(store, wanted_of([(f"US/NE/N{n}", "CITY"), (f"C{n}", "COUNTRY")]), LoadResult())
            await asyncio.sleep(0)

    async def check() -> list[str]:
        found = []
        for _ in range(5):
            found += [str(one) async for one in Check(store, HIERARCHIES, AT).findings()]
            await repaired(store)
        return found

    _, found = await asyncio.gather(write(), check())
    assert [one for one in found if "not checked" not in one] == []
    assert await findings(store) == []
    await invariants.check(store)
    assert (await item(store, at("US/NE")))["kids"] == {"CITY": 15}
