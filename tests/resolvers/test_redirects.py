"""Old paths beside moves: a node that is moved to and fro meanwhile is found at each read."""

from typing import Any

import pytest

from store.edits.create_update import Create
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Item
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY
from tests.systems.writing import Clients

QUERY = "query Q($path: Path!) { categoryNode(path: $path) { path } }"
BACK = [("r/b/x", "r/a/x"), ("r/a/x", "r/b/x")]


def path(text: str) -> tuple[str, ...]:
    return tuple(text.split("/"))


class MovedBetween:
    """A store in which a node is moved right before some of the reads."""

    def __init__(self, store: Store, reads: tuple[int, ...]) -> None:
        self._store = store
        self._reads = reads
        self.number = 0
        self.moves = 0

    async def get(self, *arguments: Any, **options: Any) -> list[Item | None]:
        self.number += 1
        if self.number in self._reads:
            source, target = BACK[self.moves % 2]
            await Writer(self._store).write(Move(CATEGORY, path(source), path(target)), ReadUsage())
            self.moves += 1
        return await self._store.get(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def plant(store: Store) -> None:
    writer = Writer(store)
    for node in ("r", "r/a", "r/b", "r/a/x"):
        await writer.write(Create(CATEGORY, path(node), "CATEGORY", node, {}), ReadUsage())
    await writer.write(Move(CATEGORY, path("r/a/x"), path("r/b/x")), ReadUsage())


@pytest.mark.parametrize("reads", [(1,), (2,), (3,), (4,), (1, 2), (2, 3), (3, 4), (2, 4), (1, 2, 3), (2, 3, 4)])
async def test_a_node_that_is_moved_to_and_fro_is_found(store: Store, reads: tuple[int, ...]) -> None:
    await plant(store)
    for asked in ("r/a/x", "r/b/x"):
        between = MovedBetween(store, reads)
        answer = await Clients(between, planned=False).ask(QUERY, path=asked)
        assert answer["categoryNode"] is not None, (asked, between.number)
        if between.moves % 2:
            await Writer(store).write(Move(CATEGORY, path(BACK[1][0]), path(BACK[1][1])), ReadUsage())
