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

    max_changes = 12

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


async def test_each_transaction_of_an_import_and_of_a_repair_has_its_own_time(store: Store) -> None:
    renamed = [(path, level, {"name": "another"}) for path, level, *_ in CITIES]
    known = 0
    for rows, prune in ((CITIES, False), (renamed, False), (CITIES[:1], True)):
        await imported(store, rows, prune=prune)
        found = (await times(store))[known:]
        known += len(found)
        assert len(found) > 3
        assert found == sorted(set(found))
        nodes = await invariants.nodes(store, "location")
        tombs = [item["deleted"] for item in await invariants.all_items(store) if "deleted" in item]
        assert set(tombs if prune else [node["updated_at"] for node in nodes.values()]) == set(found)

    await imported(store, CITIES)
    known = len(await times(store))
    for node in (await invariants.nodes(store, "location")).values():
        await store.commit([Delete(id_key(node["id"]))])
    repair = Repair(Check(cast(Store, Slow(store)), {"location": LOCATION}, rfc3339(0.0)))
    assert all([one.is_fixed async for one in repair.run()])
    await invariants.check(store)
    found = (await times(store))[known:]
    assert len(found) > 1
    assert found == sorted(set(found))
    assert found[0] > rfc3339(1.0)
