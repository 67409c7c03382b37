"""Searches of a store that fails in the middle, or whose indexes are late."""

import asyncio
from random import Random
from typing import Any

import pytest

from resolvers.search.search import SearchArguments, search
from resolvers.session.request import Request
from store.background_moves.timing import MoveTiming
from store.engine.protocol import Store
from store.errors import Unavailable
from store.model.keys import Path
from store.search.folding import SearchText
from store.writer.writer import Writer
from tests.brute_search import Brute
from tests.late_indexes import late_stores
from tests.rights.asking import Server
from tests.systems.searching import ALL, CLASSES, RandomTree, Spot, all_nodes

LAG = 0.2
HIERARCHY = Spot.definition()


class Failing:
    """A store of which one read fails, the first being number 1."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._left = number

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("get", "range", "nodes", "count"):
            return found

        async def read(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                raise Unavailable("The store does not answer.")
            return await found(*args, **options)

        return read


@pytest.mark.parametrize("under", [None, ("oma",)])
async def test_a_search_fails_where_a_read_fails(store, under: Path | None):
    tree, writer = RandomTree(HIERARCHY, Random(1)), Writer(store, MoveTiming(0.0, 0.0))  # noqa: S311 - no secret
    while ("oma",) not in tree.paths or len(tree.paths) < 20:
        await tree.edit(store, writer)
        tree.paths = {record.path: record.level for record in await all_nodes(store, "spot")}
    asked = SearchArguments(SearchText.of("om n"), under=under)
    whole = await search(Request(store, {"spot": HIERARCHY}), HIERARCHY, asked)
    for number in range(1, 20):
        try:
            found = await search(Request(Failing(store, number), {"spot": HIERARCHY}), HIERARCHY, asked)
        except Unavailable:
            continue
        assert number > 3
        assert (found.records, found.complete) == (whole.records, whole.complete)
        return
    pytest.fail("no search succeeded")


async def test_searches_find_what_was_written_once_indexes_have_it():
    async with late_stores(1, LAG, weak=50, fresh=30) as (store,):
        tree, writer = RandomTree(HIERARCHY, Random(2)), Writer(store, MoveTiming(0.0, LAG))  # noqa: S311 - no secret
        server = Server(store, *CLASSES.values())
        for _ in range(8):
            await tree.edit(store, writer)
            await asyncio.sleep(LAG * 1.5)
            records = await all_nodes(store, "spot")
            tree.paths = {record.path: record.level for record in records}
            for _ in range(4):
                asked = tree.search()
                found = (await asked.ask(server, ALL))["data"]["found"]
                expected = Brute(HIERARCHY, records).find(
                    asked.text, shown=asked.is_in_scope, levels=asked.levels, languages=asked.languages,
                    first=asked.first,
                )  # fmt: skip
                assert [one["id"] for one in found["nodes"]] == [one.id for one in expected], asked
