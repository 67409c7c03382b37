"""What is looked up by path or by id is as it was last written, also where indexes and weak reads are late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from graph.execution.operation import Execution
from graph.execution.response import ResponseCache
from graph.operation.context import Context
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.engine import Store
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.selection import thorough
from tests.systems.writing import CLASSES, DEFINITIONS
from tests.tables import late_stores
from tests.user_errors import take_user_errors, with_user_errors

LAG = 0.3
SETTLE = 2 * LAG
TIMES = 3 if thorough() else 2

CREATE = """mutation($parent: CategoryNodeBy, $key: String!) { createCategoryNode(
  input: { parent: $parent, key: $key, name: "0", attributes: { category: {} } }) { node { id path } } }"""
UPDATE = (
    "mutation($path: Path!, $name: String!) { updateCategoryNode(input: {node: {path: $path}, "
    "name: $name}) { node { name } } }"
)
MOVE = (
    "mutation($path: Path!, $to: Path!) { moveCategoryNode(input: {node: {path: $path}, to: "
    "{parent: {path: $to}}}) { node { path } } }"
)
DELETE = "mutation($path: Path!) { deleteCategoryNode(input: {node: {path: $path}}) { node { path } } }"
BY_PATH = "query($path: Path!) { categoryNode(path: $path) { id name path parent { name } } }"
BY_ID = "query($id: ID!) { categoryNode(id: $id) { name path parent { name } } }"


class Server:
    """One server process: plans and a cache of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        kept, writer = PageCache(1_000_000, TreeVersionCache(SETTLE)), Writer(store)
        self._execution = Execution(
            *schema_of(*CLASSES),
            lambda: Context(Request(store, DEFINITIONS, page_cache=kept, writer=writer, settle_seconds=SETTLE)),
            cache=ResponseCache(1_000_000),
        )

    async def ask(self, query: str, **variables: Any) -> Any:
        return (await self.told(query, **variables))[0]

    async def told(self, query: str, **variables: Any) -> tuple[Any, dict[str, Any]]:
        """The data of an answer without errors, and what it has read."""
        query = with_user_errors(query)
        answer = await answer_to(self._execution, query, variables, allow_mutations=True, report_reads=True)
        assert "errors" not in answer.body, answer.body["errors"]
        body = orjson.loads(answer.content())
        assert (faults := take_user_errors(body["data"])) == [], faults
        return body["data"], body["extensions"]["reads"]


@asynccontextmanager
async def servers() -> AsyncIterator[list[Server]]:
    """Two servers on a table with A and A/B of which all weak reads are late."""
    async with late_stores(2, LAG, weak=100) as stores:
        made = list(map(Server, stores))
        await made[0].ask(CREATE, key="A")
        await made[0].ask(CREATE, parent={"path": "A"}, key="B")
        yield made


async def until_kept(server: Server, query: str, **variables: Any) -> None:
    for _ in range(600):
        if (await server.told(query, **variables))[1]["cached"]:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the answer was never kept")


async def test_the_same_query_after_a_mutation_tells_the_node_as_it_was_written():
    async with servers() as (one, other):
        for number in range(1, TIMES + 1):
            for server in (one, other):
                await until_kept(server, BY_PATH, path="A/B")
            for path in ("A", "A/B"):
                await one.ask(UPDATE, path=path, name=str(number))
            for server in (one, other):
                for _ in range(3):
                    node = (await server.ask(BY_PATH, path="A/B"))["categoryNode"]
                    assert (node["name"], node["parent"]["name"]) == (str(number), str(number))


async def test_an_id_finds_its_node_from_its_creation_on():
    async with servers() as all_servers:
        one = all_servers[0]
        await one.ask(CREATE, key="C")
        for number in range(TIMES):
            node = (await one.ask(CREATE, parent={"path": "A"}, key=f"N{number}"))["createCategoryNode"]["node"]
            for server in all_servers:
                assert (await server.ask(BY_ID, id=node["id"]))["categoryNode"]["path"] == node["path"]
            await one.ask(MOVE, path=node["path"], to="C")
            for server in all_servers:
                assert (await server.ask(BY_ID, id=node["id"]))["categoryNode"]["path"] == f"C/N{number}"
                assert (await server.ask(BY_PATH, path=node["path"]))["categoryNode"]["path"] == f"C/N{number}"
            await one.ask(DELETE, path=f"C/N{number}")
            for server in all_servers:
                assert (await server.ask(BY_ID, id=node["id"]))["categoryNode"] is None
                assert (await server.ask(BY_PATH, path=f"C/N{number}"))["categoryNode"] is None


async def test_former_states_are_there_as_soon_as_the_newest_is_seen():
    query = """query($path: Path!, $id: ID!) {
      node: categoryNode(path: $path) { revision history { nodes { revision } } } deletedNode(id: $id) { path } }"""
    async with servers() as (one, *_):
        node_id = (await one.ask(BY_PATH, path="A/B"))["categoryNode"]["id"]
        for number in range(2, TIMES + 2):
            await one.ask(UPDATE, path="A/B", name=str(number))
            node = (await one.ask(query, path="A/B", id=node_id))["node"]
            assert [state["revision"] for state in node["history"]["nodes"]] == list(range(number, 0, -1))
        await one.ask(DELETE, path="A/B")
        assert await one.ask(query, path="A/B", id=node_id) == {"node": None, "deletedNode": {"path": "A/B"}}


async def test_ids_that_nobody_has_cost_one_more_read_for_all_of_them():
    async with servers() as (one, *_):
        query = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
        _, reads = await one.told(query, ids=[f"category:none-{number}" for number in range(50)])
        assert (reads["requests"], reads["rounds"]) == (2, 2)
