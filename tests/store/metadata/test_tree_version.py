"""Tree version, which every transaction increments, so that of two that read the same number one fails; and its log."""

from store.checking.check import Check
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Index, KeyRange, tree_version_key
from store.model.records import ABSENT, Put
from store.transfer.load import LoadResult, load
from tests import invariants
from tests.hierarchies import LOCATION
from tests.store.transfer.test_load import wanted_of

TREE = "location#US"


def test_a_tree_without_writes_has_a_version_too() -> None:
    stamp = TreeVersion.of(TREE, None)
    assert (stamp.number, stamp.shape, stamp.has_redirects, stamp.key) == (0, {}, False, tree_version_key(TREE))


def test_an_increment_requires_the_number_that_was_read() -> None:
    first = TreeVersion.of(TREE, None).incremented({"COUNTRY@0": 1})
    assert first.when == ABSENT
    second = TreeVersion.of(TREE, first.item).incremented({})
    assert second.when == {"n": 1}
    assert second.item["n"] == 2


def test_a_shape_adds_and_subtracts_and_drops_zeros() -> None:
    stamp = TreeVersion(TREE, 4, {"COUNTRY@0": 1, "STATE@1": 2, "CITY@2": 5}, has_redirects=True)
    raised = TreeVersion.of(TREE, stamp.incremented({"STATE@1": -2, "CITY@2": 1, "CITY@1": 7, "STORE@3": 0}).item)
    assert raised == TreeVersion(TREE, 5, {"COUNTRY@0": 1, "CITY@2": 6, "CITY@1": 7}, has_redirects=True)


def test_a_shape_has_levels_and_depths() -> None:
    stamp = TreeVersion(
        TREE,
        1,
        {level_at_depth("CITY", 2): 5, level_at_depth("POSTAL_CODE", 10): 1, level_at_depth("CITY", 1): 2, "GONE@1": 0},
    )
    assert sorted(stamp.tiers()) == [("CITY", 1), ("CITY", 2), ("POSTAL_CODE", 10)]
    assert stamp.depths("CITY") == [1, 2]
    assert stamp.depths("STATE") == []
    assert stamp.below_root == {"CITY": 7, "POSTAL_CODE": 1}


async def test_each_transaction_of_an_import_and_of_a_repair_has_its_own_time(store: Store) -> None:
    store.max_changes = 12
    await load(store, wanted_of([("US", "COUNTRY"), *[(f"US/C{n}", "CITY") for n in range(40)]]), LoadResult())
    imported = await times(store)
    assert len(set(imported)) > 1
    assert imported == sorted(imported)
    nodes = (await invariants.nodes(store, "location")).values()
    assert {node["updated_at"] for node in nodes} == set(imported)
    for node in nodes:
        await store.commit([Put({**node, "kids": "?"})])
    results = [one async for one in Repair(Check(store, {"location": LOCATION}, imported[0])).run()]
    assert all(one.is_fixed for one in results)
    repaired = (await times(store))[len(imported) :]
    assert len(set(repaired)) > 1
    assert repaired == sorted(repaired)


async def times(store: Store) -> list[str]:
    """Those of the change log in its order."""
    found = await store.range(KeyRange(Index.TABLE, TREE, "!0", "!~"), ReadUsage())
    return [str(item["at"]) for item in found]
