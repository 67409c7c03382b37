"""One table with a subtree that is moved repeatedly, a server that reads, and one that writes and is killed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from graph.hierarchies.registry import hierarchies
from store.checking.check import Check
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.tree_version import TreeVersion
from store.model.keys import path_of, tree_version_key
from store.model.paths import format_path
from tests import invariants
from tests.moving_subtree import MovingSubtree
from tests.servers import Server
from tests.writing.killing import PACE, READ_SECONDS, hasten

REST_SECONDS = 300.0


@dataclass
class Scene:
    store: Store
    subtree: MovingSubtree
    reading: Server
    writing: Server

    async def restart(self, *prepare: Callable[[], None]) -> None:
        self.writing.kill()
        await self.writing.start(hasten, *prepare)

    async def rest(self) -> None:
        """Wait until no move runs any more, or the server that writes is dead."""
        end = time.monotonic() + REST_SECONDS
        while self.writing.is_alive and await self.is_moving():
            assert time.monotonic() < end, "The interrupted move is not finished."
            await asyncio.sleep(0.05)

    async def is_moving(self) -> bool:
        """Whether a move runs in the tree."""
        key = tree_version_key("category#r")
        (item,) = await self.store.get([key], ReadUsage(), strong=True)
        return bool(TreeVersion.of(key.pk, item).moves)

    async def check(self, place: str | None) -> None:
        """Fail unless nothing is wrong in the whole table, and the subtree lies in one place alone."""
        found = [str(one) async for one in Check(self.store, hierarchies(), "2026-11-20T00:00:00.000Z").findings()]
        assert found == []
        await invariants.check(self.store)
        nodes = await invariants.nodes(self.store, "category")
        paths = sorted(format_path(path_of(item["pk"], item["sk"])) for item in nodes.values())
        assert paths == ["r", *self.subtree.below_root(place)]


@asynccontextmanager
async def scene(
    folder: Path, url: str, subtree: MovingSubtree, *prepare: Callable[[], None], through: str | None = None
) -> AsyncIterator[Scene]:
    """A scene on a new table; the server that writes is prepared, and reaches the table by the address `through`."""
    settings = {"settle_seconds": str(PACE.settle_seconds), "max_nodes": str(10 * subtree.size)}
    reading = Server(folder, "reading", store=url, request_seconds=str(READ_SECONDS), **settings)
    writing = Server(folder, "writing", store=through or url, writes="on", **settings)
    async with open_store(url) as store:
        await store.create()
        await subtree.plant(store)
        try:
            await asyncio.gather(reading.start(), writing.start(hasten, *prepare))
            yield Scene(store, subtree, reading, writing)
        finally:
            await asyncio.gather(reading.close(), writing.close())


async def outcome(asking: "asyncio.Task[dict[str, Any]]") -> dict[str, Any] | None:
    """What was answered, or None where the server was killed before."""
    try:
        return await asking
    except httpx.TransportError:
        return None
