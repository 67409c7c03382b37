"""Reads that requests share: few read the version of a tree at a time, and none gets one from before it was asked."""

import asyncio
import uuid
from collections.abc import Sequence

from resolvers.session.cache import PageCache
from store.connect import open_store
from store.engine import ReadUsage
from store.errors import Unavailable
from store.model.keys import Key, tree_version_key
from store.model.records import Item
from tests.model import Ground
from tests.stores import ReadRecorder
from tests.systems.asking import Client, plant

VERSION = tree_version_key("ground#r")
ALIKE = 4
QUERY = '{ area(path: "r") { childCount } }'


class Held(ReadRecorder):
    """A store whose reads of the version return what is stored when they begin, one for each `go.release()`."""

    calls = reads = running = most = 0
    fails = False
    go: asyncio.Semaphore

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        self.calls += 1
        found = await super().get(keys, reads, strong=strong)
        if VERSION in keys:
            self.reads += 1
            self.running += 1
            self.most = max(self.most, self.running)
            await self.go.acquire()
            self.running -= 1
            if self.fails:
                raise Unavailable("The table is overloaded; try again.")
        return found


async def test_requests_share_reads_that_begin_after_they_were_asked(engine):
    async with open_store(engine.address(f"clade-{uuid.uuid4().hex}")) as store, asyncio.timeout(120):
        await store.create()
        held = Held(store)
        held.go = asyncio.Semaphore(0)
        client = Client(held, Ground, page_cache=PageCache(0))
        rows, asked = [(("r",), "AREA")], []
        for number in range(1, 9):
            rows.append((("r", f"a{number}"), "AREA"))
            await plant(store, Ground, rows)
            asked += [(number, asyncio.create_task(client.ask(QUERY))) for _ in range(12)]
            while held.running < ALIKE:  # noqa: ASYNC110  # the engine's answers come in any order
                await asyncio.sleep(0.001)
            for _ in range(ALIKE // 2):
                held.go.release()
        for _ in asked:
            held.go.release()
        for number, task in asked:
            assert (await task).data["area"]["childCount"] >= number
        assert held.most == ALIKE
        assert held.reads < len(asked) / 2
        assert sum([(await task).requests for _, task in asked]) == held.calls, "each read is charged once"

        held.fails = True
        failed = [asyncio.create_task(client.ask(QUERY)) for _ in range(12)]
        failed[-1].cancel()
        for _ in range(12):
            held.go.release()
        for reply in await asyncio.gather(*failed[:-1]):
            assert [error["extensions"]["code"] for error in reply.errors] == ["UNAVAILABLE"]
        held.fails, held.go = False, asyncio.Semaphore(12)
        assert (await client.ask(QUERY)).data == {"area": {"childCount": 8}}
