"""A large move in a file that two processes serve: each response of either is that of before, or that of after."""

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.servers import Server

GROUPS, EACH = 100, 110  # 11,101 nodes with the top, more than one transaction of a file
LAST = f"g{GROUPS - 1}/p{EACH - 1}"
PACE = {"request_seconds": "5", "settle_seconds": "0"}
LONGEST_SECONDS = 300.0
MOVE = 'mutation { moveCategoryNode(path: "T/big", to: "T/dest", idempotencyKey: "once") { move { id } } }'
STATE = "{ moves(hierarchy: CATEGORY, first: 1) { state } }"
_LISTS = """{
  path childCount descendantCount
  children { totalCount nodes { path childCount descendantCount children(first: 2) { nodes { path } } } }
  all: descendants(first: 3) { totalCount nodes { path } }
  end: descendants(last: 3) { nodes { path } }
  sorted: children(orderBy: [{field: KEY, direction: DESC}]) { nodes { path } }
}"""
READ = f"""query($top: ID!, $last: ID!, $since: String) {{
  old: categoryNode(path: "T/big") {{ path }}
  new: categoryNode(path: "T/dest/big") {{ path }}
  oldLast: categoryNode(path: "T/big/{LAST}") {{ path }}
  newLast: categoryNode(path: "T/dest/big/{LAST}") {{ path }}
  from: categoryNode(path: "T") {_LISTS}
  to: categoryNode(path: "T/dest") {_LISTS}
  top: node(id: $top) {{ ... on CategoryNode {{
    path parent {{ path childCount children {{ nodes {{ path }} }} }}
    descendants(first: 2) {{ totalCount nodes {{ path }} }}
  }} }}
  last: node(id: $last) {{ ... on CategoryNode {{ path ancestors {{ path descendantCount }} }} }}
  found: searchCategories(text: "lastone") {{ nodes {{ path }} }}
  below: searchCategories(text: "lastone", under: "T/dest") {{ nodes {{ path }} }}
  roots: categories {{ nodes {{ path childCount descendantCount children {{ nodes {{ path }} }} }} }}
  changes(hierarchy: CATEGORY, tree: "T", after: $since) {{ changes {{ event nodeId path from to }} }}
}}"""
IDS = {"top": "category:top", "last": "category:last"}


async def plant(url: str) -> None:
    wanted = ImportPlan(CategoryNode.definition())
    ids = {"T/big": "top", f"T/big/{LAST}": "last"}
    paths = ["T", "T/dest", "T/dest/other", "T/big"]
    for group in range(GROUPS):
        paths += [f"T/big/g{group}", *[f"T/big/g{group}/p{number}" for number in range(EACH)]]
    for number, path in enumerate(paths):
        name = "lastone" if path in ids and path != "T/big" else None
        wanted.take(Row(number, tuple(path.split("/")), [Part("CATEGORY", name, ids.get(path))]))
    async with open_store(url) as store:
        await store.create()
        await load(store, wanted, LoadResult())


async def ask(server: Server, query: str, **variables: Any) -> dict[str, Any]:
    """The data of a response, asked for again where the machine was too busy for one in time."""
    while True:
        answer = await server.ask(query, **variables)
        codes = [error["extensions"]["code"] for error in answer.get("errors", ())]
        if codes != ["TIMEOUT"]:
            assert not codes, answer["errors"]
            data: dict[str, Any] = answer["data"]
            return data


async def cursor(server: Server) -> str:
    """The cursor after all changes that are made so far."""
    query = 'query($since: String) { changes(hierarchy: CATEGORY, tree: "T", after: $since) { cursor hasMore } }'
    page: dict[str, Any] = {"cursor": None, "hasMore": True}
    while page["hasMore"]:
        page = (await ask(server, query, since=page["cursor"]))["changes"]
    return str(page["cursor"])


async def read(server: Server, since: str) -> dict[str, Any]:
    return await ask(server, READ, **IDS, since=since)


async def watch(server: Server, since: str, ended: asyncio.Event) -> list[dict[str, Any]]:
    """The different responses of a server in their order, until the move has ended."""
    seen = [await read(server, since)]
    while not ended.is_set():
        if (found := await read(server, since)) != seen[-1]:
            seen.append(found)
        await asyncio.sleep(0.02)
    return seen


@pytest.mark.thorough
async def test_each_response_beside_a_large_move_of_a_file_is_that_of_before_or_of_after(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    await plant(url)
    servers = [
        Server(tmp_path, "moving", store=url, writes="on", **PACE),
        Server(tmp_path, "reading", store=url, **PACE),
    ]
    try:
        await asyncio.gather(*[server.start() for server in servers])
        since = await cursor(servers[1])
        before = await read(servers[1], since)
        assert (before["old"], before["new"]) == ({"path": "T/big"}, None)
        ended = asyncio.Event()
        watching = [asyncio.create_task(watch(server, since, ended)) for server in servers]
        end = time.monotonic() + LONGEST_SECONDS
        await ask(servers[0], MOVE)
        while (await ask(servers[1], STATE))["moves"][0]["state"] != "DONE":
            assert time.monotonic() < end, "The move does not end."
            await asyncio.sleep(0.2)
        ended.set()
        seen = await asyncio.gather(*watching)
        after = await read(servers[1], since)
    finally:
        await asyncio.gather(*[server.close() for server in servers])
    assert (after["old"], after["new"]) == ({"path": "T/dest/big"}, {"path": "T/dest/big"})
    assert after["below"]["nodes"] == after["found"]["nodes"] == [{"path": f"T/dest/big/{LAST}"}]
    for one in itertools.chain(*seen):
        assert one in (before, after)
    assert seen == [[before, after], [before, after]]
