"""Two server processes on one table, each with its cache: what one writes is in the next answer of the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, repeat
from pathlib import Path

import httpx
import pytest

from store.connect import open_store
from tests.selection import examples
from tests.servers import Server, codes_of

pytestmark = pytest.mark.extenddb

LIST = '{ category(path: "A") { name children { nodes { name } } } }'
CREATE = """
mutation ($key: String!, $parent: CategoryNodeBy) {
  createCategoryNode(input: {key: $key, name: $key, parent: $parent, level: CATEGORY}) { node { path } }
}
"""
NAME = "query ($path: Path, $id: ID) { categoryNode(path: $path, id: $id) { id name ancestors { name } } }"
RENAME = 'mutation ($name: String!) { updateCategoryNode(input: {node: {path: "A"}, name: $name}) { node { name } } }'
TIMES = 3
WRITES = examples(12, 30)


async def create(server: Server, key: str, parent: str | None = None) -> None:
    answer = await server.ask(CREATE, key=key, parent=parent and {"path": parent})
    assert codes_of(answer) == [], answer


async def listed(server: Server) -> tuple[list[str], bool]:
    """The names that a server lists, and whether its answer was a kept one."""
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{server.url}/graphql", json={"query": LIST}, headers={"clade-reads": "1"})
    body = answer.json()
    names = [node["name"] for node in body["data"]["category"]["children"]["nodes"]]
    return names, body["extensions"]["reads"]["cached"]


async def kept(server: Server) -> list[str]:
    """What a server lists when its answer is a kept one, which it is after a while of asking."""
    for _ in range(200):
        names, cached = await listed(server)
        if cached:
            return names
        await asyncio.sleep(0.02)
    raise AssertionError("the answer was never kept")


@asynccontextmanager
async def two(folder: Path, url: str, **settings: str) -> AsyncIterator[tuple[Server, Server]]:
    """Two servers on a new table, in which there is A."""
    async with open_store(url) as store:
        await store.create()
    async with AsyncExitStack() as stack:
        one, other = (Server(folder, name, store=url, writes="on", **settings) for name in ("one", "other"))
        for server in (one, other):
            stack.push_async_callback(server.close)
            await server.start()
        await create(one, "A")
        yield one, other


async def test_what_one_server_writes_is_in_the_next_answer_of_each(store_url, tmp_path):
    async with two(tmp_path, store_url, settle_seconds="0.1") as (one, other):
        made: list[str] = []
        for number in range(TIMES):
            assert await kept(one) == await kept(other) == made
            writer = (one, other)[number % 2]
            made.append(f"B{number}")
            await create(writer, made[-1], "A")
            assert await listed(other) == (made, False)
            assert await listed(one) == (made, False)


class Named:
    """The node A as several clients see it, each of which never sees a name from before the last acknowledged one."""

    def __init__(self, node_id: str, *, repeats: bool) -> None:
        """Without `repeats` each request has another variable that is not used, so that no response is a cached one."""
        self._ways = ({"path": "A"}, {"id": node_id})
        self._unused = repeat(0) if repeats else count()
        self._acknowledged = 0
        self.asked = 0

    async def write(self, server: Server, number: int) -> None:
        answer = await server.ask(RENAME, name=str(number))
        assert "errors" not in answer, answer
        self._acknowledged = number

    async def look(self, server: Server) -> None:
        """Ask by path and by id at once."""
        before = self._acknowledged
        unused = next(self._unused)
        for answer in await asyncio.gather(*[server.ask(NAME, **way, unused=unused) for way in self._ways]):
            assert int(answer["data"]["categoryNode"]["name"]) >= before
            self.asked += 1

    async def watch(self, server: Server, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.look(server)


@pytest.mark.parametrize("repeats", [pytest.param(True, marks=pytest.mark.thorough), False])
async def test_an_acknowledged_write_is_in_all_responses_to_later_requests(tmp_path, repeats):
    async with two(tmp_path, f"sqlite:///{tmp_path}/clade.db") as servers:
        node_id = (await servers[0].ask(NAME, path="A"))["data"]["categoryNode"]["id"]
        named, ended = Named(node_id, repeats=repeats), asyncio.Event()
        await named.write(servers[0], 1)
        async with asyncio.TaskGroup() as watching:
            for server in [*servers] * 3:
                watching.create_task(named.watch(server, ended))
            for number in range(2, WRITES):
                await named.write(servers[number % 2], number)
                await asyncio.gather(*[named.look(server) for server in servers])
            ended.set()
        assert named.asked > 4 * WRITES  # more than beside the writes alone
