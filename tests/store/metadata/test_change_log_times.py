"""Times in the change log: each transaction has its own, however long an import or a repair takes."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from store.checking.check import Check
from store.checking.repair import Repair
from store.engine.protocol import Store
from store.model.items import Change, Delete
from store.model.keys import id_key
from store.text import rfc3339
from store.transfer.load import LoadResult, load
from tests import invariants
from tests.hierarchies import LOCATION
from tests.store.transfer.test_load import Told, wanted_of

PAUSE_SECONDS = 0.02
CITIES: list[Told] = [("US", "COUNTRY"), *[(f"US/C{number}", "CITY", {"population": number}) for number in range(20)]]


class Slow:
    """A store of small transactions, each of which takes a while."""

    max_changes = max_commit_changes = 12

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Sequence[Change]) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await self._store.commit(changes)
        await asyncio.sleep(PAUSE_SECONDS)


async def times(store: Store) -> list[str]:
    logs = [item for item in await invariants.all_items(store) if item["sk"].startswith("!0") and "#" in item["pk"]]
    return [item["at"] for item in sorted(logs, key=lambda item: item["sk"])]


async def imported(store: Store, told: Sequence[Told], *, prune: bool = False) -> None:
    await load(cast(Store, Slow(store)), wanted_of(told), LoadResult(), prune=prune)
    await invariants.check(store)


async def test_each_transaction_of_an_import_has_its_own_time(store: Store) -> None:
    await imported(store, CITIES)
    found = await times(store)
    assert len(found) > 3
    assert found == sorted(set(found))
    nodes = await invariants.nodes(store, "location")
    assert {node["updated_at"] for node in nodes.values()} == set(found)

    await imported(store, [(path, level, {"name": "another"}) for path, level, *_ in CITIES])
    changed = (await times(store))[len(found) :]
    assert len(changed) > 3
    assert changed == sorted(set(changed))
    nodes = await invariants.nodes(store, "location")
    assert {node["updated_at"] for node in nodes.values()} == set(changed)

    await imported(store, CITIES[:1], prune=True)
    removed = (await times(store))[len(found) + len(changed) :]
    assert len(removed) > 3
    assert removed == sorted(set(removed))
    tombs = [item for item in await invariants.all_items(store) if "deleted" in item]
    assert {item["deleted"] for item in tombs} == set(removed)


async def test_each_transaction_of_a_repair_has_its_own_time(store: Store) -> None:
    await imported(store, CITIES)
    before = len(await times(store))
    ids = [node["id"] for node in (await invariants.nodes(store, "location")).values()]
    for node_id in ids:
        await store.commit([Delete(id_key(node_id))])
    slow = cast(Store, Slow(store))
    told = [one async for one in Repair(Check(slow, {"location": LOCATION}, rfc3339(0.0))).run()]
    assert all(one.is_fixed for one in told)
    await invariants.check(store)
    found = (await times(store))[before:]
    assert len(found) > 1
    assert found == sorted(set(found))
    assert found[0] > rfc3339(1.0)
