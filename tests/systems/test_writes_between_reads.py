"""Somebody writes between two reads of one request: its answer is of before the change, or of after it."""

import itertools
from typing import Any

import pytest

from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Item
from store.model.keys import node_key
from store.model.ranges import KeyRange
from store.model.records import Record
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY
from tests.moving_subtree import HERE, THERE, MovingSubtree
from tests.systems.writing import Clients


class Moved:
    """A store in which a subtree is moved right before one of the reads."""

    def __init__(self, store: Store, read: int) -> None:
        self._store = store
        self.left = read

    async def get(self, *arguments: Any, **options: Any) -> list[Item | None]:
        await self._move()
        return await self._store.get(*arguments, **options)

    async def range(self, span: KeyRange, *arguments: Any, **options: Any) -> list[Item]:
        await self._move()
        return await self._store.range(span, *arguments, **options)

    async def nodes(self, span: KeyRange, *arguments: Any, **options: Any) -> list[Record]:
        await self._move()
        return await self._store.nodes(span, *arguments, **options)

    async def _move(self) -> None:
        self.left -= 1
        if self.left == 0:
            await Writer(self._store).write(Move(CATEGORY, path(HERE), path(THERE)), ReadUsage())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def path(text: str) -> tuple[str, ...]:
    return tuple(text.split("/"))


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("where", ["sqlite://:memory:", "sqlite:///{}/{}.db"])
async def test_an_answer_is_of_one_moment(tmp_path, where: str, planned: bool) -> None:
    subtree = MovingSubtree(2, 2)
    query, variables = subtree.watch()
    for read in itertools.count(1):
        async with open_store(where.format(tmp_path, read)) as store:
            await store.create()
            await subtree.plant(store)
            moved = Moved(store, read)
            clients = Clients(moved, planned=planned)
            subtree.place_in(await clients.ask(query, **variables))
            if moved.left > 0:
                assert read > 3  # it was tried before each of several reads
                return
            assert subtree.place_in(await clients.ask(query, **variables)) == THERE


async def test_a_response_of_cached_nodes_is_inconsistent_if_one_was_read_after_a_write():
    subtree = MovingSubtree(1, 1)
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await subtree.plant(store)
        kept = PageCache(1_000_000)
        reading, recalling = [Request(store, {"category": CATEGORY}, page_cache=kept) for _ in range(2)]
        await Writer(store).write(Move(CATEGORY, path(HERE), path(THERE)), ReadUsage())
        key = node_key("category", path(THERE))
        await reading.state.node(key)
        assert await recalling.state.node(key) is not None
        assert recalling.reads.requests == 0
        assert recalling.state.is_outdated
