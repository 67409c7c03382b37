"""Two server processes on one table, each with its cache: what one writes is in the next answer of the other."""

import asyncio
from contextlib import AsyncExitStack

import httpx

from store.stores import open_store
from tests.servers import Server

LIST = '{ category(path: "A") { name children { nodes { name } } } }'
CREATE = """
mutation ($key: String!, $parent: Path) {
  createCategoryNode(key: $key, name: $key, parent: $parent, attributes: { category: true }) { node { path } }
}
"""
TIMES = 3


async def create(server: Server, key: str, parent: str | None = None) -> None:
    answer = await server.ask(CREATE, key=key, parent=parent)
    assert "errors" not in answer, answer


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


async def test_what_one_server_writes_is_in_the_next_answer_of_each(store_url, tmp_path):
    async with open_store(store_url) as store:
        await store.create()
    async with AsyncExitStack() as stack:
        one, other = servers = [
            Server(tmp_path, name, store=store_url, writes="on", settle_seconds="0.1", cache_mb="8")
            for name in ("one", "other")
        ]
        for server in servers:
            stack.push_async_callback(server.close)
            await server.start()
        await create(one, "A")
        made: list[str] = []
        for number in range(TIMES):
            assert await kept(one) == await kept(other) == made
            writer = (one, other)[number % 2]
            made.append(f"B{number}")
            await create(writer, made[-1], "A")
            assert await listed(other) == (made, False)
            assert await listed(one) == (made, False)
