"""Tree version, which every transaction increments, so that of two that read the same number one fails; and its log."""

import time

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.errors import Conflict
from store.metadata.tree_version import LOG_SECONDS, Event, LogEntry, TreeVersion, level_at_depth, log_item
from store.model.keys import Index, KeyRange, log_key, subtree, tree_version_key
from store.model.records import ABSENT, Put, key_of
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


async def test_of_two_transactions_that_read_one_version_the_second_fails(store: Store) -> None:
    for _ in range(2):  # the first time there is no stamp yet
        (found,) = await store.get([tree_version_key(TREE)], ReadUsage(), strong=True)
        seen = TreeVersion.of(TREE, found)
        await store.commit([seen.incremented({"STATE@1": 1})])
        with pytest.raises(Conflict) as caught:
            await store.commit([Put({"pk": TREE, "sk": "#x#"}), seen.incremented({"STATE@1": 1})])
        assert caught.value.failed == (1,)
    (found,) = await store.get([tree_version_key(TREE)], ReadUsage(), strong=True)
    assert TreeVersion.of(TREE, found) == TreeVersion(TREE, 2, {"STATE@1": 2})


async def test_the_log_is_behind_the_version_in_order_and_apart_from_the_nodes(store: Store) -> None:
    stamp, now = TreeVersion(TREE), int(time.time()) + 0.7  # an entry that has expired is not read
    for number in range(12):
        entry = LogEntry(Event.CREATED, f"#{number}#", f"location:{number}", "STATE", 1)
        raised = stamp.incremented({"STATE@1": 1})
        await store.commit([raised, log_item(stamp, [entry], "2026-11-20T12:00:00Z", now)])
        stamp = TreeVersion.of(TREE, raised.item)
    log = await store.range(KeyRange(Index.TABLE, TREE, "!0", "!~"), ReadUsage())
    assert [key_of(item) for item in log] == [log_key(TREE, number) for number in range(1, 13)]
    assert log[10]["changes"] == [["CREATED", "#10#", "location:10", "STATE", 1]]
    assert log[0]["expires"] == int(now) + LOG_SECONDS
    assert await store.range(subtree(TREE, "#"), ReadUsage()) == []


async def test_each_transaction_of_an_import_and_of_a_repair_has_its_own_time(store: Store) -> None:
    store.max_changes = 12
    await load(store, wanted_of([("US", "COUNTRY"), *[(f"US/C{n}", "CITY") for n in range(200)]]), LoadResult())
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
