"""Lookup by id while the node moves."""

from collections.abc import Sequence
from typing import Any

import pytest

from resolvers.lookup import find_nodes
from resolvers.planning.relations import NoSelection
from resolvers.session.request import Request
from store.edits.create_update import Edit
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Item
from store.model.keys import Key
from store.model.paths import parse_path
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY
from tests.store.background_moves import journaled


class Overtaken:
    """A store to which another process writes after its first read."""

    def __init__(self, store: Store, *edits: Edit) -> None:
        self._store = store
        self._edits = [*edits]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        items = await self._store.get(keys, reads, strong=strong)
        while self._edits:
            await Writer(self._store).write(self._edits.pop(0), ReadUsage())
        return items


@pytest.mark.parametrize("target", ["r/0/c", "o/p/c", "c"])
async def test_a_node_that_moves_during_a_lookup_by_id_is_found(store: Store, target: str) -> None:
    await journaled.plant(store)
    there = (await store.get([Key("category#r", "#b#c#")], ReadUsage()))[0]
    assert there is not None
    others = journaled.create("r/b/c")
    overtaken: Any = Overtaken(store, journaled.move("r/b/c", target), others)
    request = Request(overtaken, {"category": CATEGORY})
    (found,) = await find_nodes(request, [(("category", str(there["id"])), NoSelection())])
    assert getattr(found, "path", found) == parse_path(target)


async def test_a_node_that_is_deleted_during_a_lookup_by_id_costs_three_reads(store: Store) -> None:
    await journaled.plant(store)
    there = (await store.get([Key("category#r", "#b#c#")], ReadUsage()))[0]
    assert there is not None
    overtaken: Any = Overtaken(store, journaled.cascade("r/b/c"))
    request = Request(overtaken, {"category": CATEGORY})
    assert await find_nodes(request, [(("category", str(there["id"])), NoSelection())]) == [None]
    assert request.reads.requests == 3
