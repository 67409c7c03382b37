"""What is looked up by path or by id is as it was last written, also where indexes and weak reads are late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.execution.response_cache import ResponseCache
from graph.hierarchies.categories import CategoryNode
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from resolvers.past.history import find_deleted, read_history, read_revision
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.engine.protocol import Store
from store.model.keys import node_key
from store.model.records import derived_id
from store.writer.writer import Writer
from tests.late_indexes import late_stores
from tests.selection import thorough
from tests.systems.asking import plant
from tests.systems.writing import DEFINITIONS, SCHEMA, TYPES

LAG = 0.3
SETTLE = 2 * LAG
TIMES = 3 if thorough() else 2

_ATTRIBUTES = "attributes: { category: true }"
CREATE = f"""mutation($parent: Path, $key: String!) {{
  createCategoryNode(parent: $parent, key: $key, name: "0", {_ATTRIBUTES}) {{ node {{ id path }} }} }}"""
UPDATE = "mutation($path: Path!, $name: String!) { updateCategoryNode(path: $path, name: $name) { node { name } } }"
MOVE = "mutation($path: Path!, $to: Path!) { moveCategoryNode(path: $path, to: $to) { node { path } } }"
DELETE = "mutation($path: Path!) { deleteCategoryNode(path: $path) { node { path } } }"
BY_PATH = "query($path: Path!) { categoryNode(path: $path) { id name path parent { name } } }"
BY_ID = "query($id: ID!) { categoryNode(id: $id) { name path parent { name } } }"


class Server:
    """One server process: plans and a cache of its own."""

    def __init__(self, store: Store, *, planned: bool) -> None:
        self.store = store
        kept, writer = PageCache(1_000_000, TreeVersionCache(SETTLE)), Writer(store)
        plans = PlanCache(core_schema(SCHEMA), TYPES) if planned else None
        self._execution = Execution(
            SCHEMA,
            lambda: Context(Request(store, DEFINITIONS, page_cache=kept, writer=writer, settle_seconds=SETTLE), TYPES),
            plans=plans,
            cache=ResponseCache(1_000_000),
        )

    async def ask(self, query: str, **variables: Any) -> Any:
        data, _ = await self.told(query, **variables)
        return data

    async def told(self, query: str, **variables: Any) -> tuple[Any, dict[str, Any]]:
        """The data of an answer without errors, and what it has read."""
        answer = await self._execution.answer(GraphQLRequest(query, variables), allow_mutations=True, report_reads=True)
        assert "errors" not in answer.body, answer.body["errors"]
        body = orjson.loads(answer.content())
        return body["data"], body["extensions"]["reads"]


@asynccontextmanager
async def servers() -> AsyncIterator[list[Server]]:
    """Two servers that plan, and one that does not, on a table with A and A/B of which all weak reads are late."""
    async with late_stores(3, LAG, weak=100) as stores:
        made = [Server(store, planned=number < 2) for number, store in enumerate(stores)]
        await made[0].ask(CREATE, key="A")
        await made[0].ask(CREATE, parent="A", key="B")
        yield made


async def until_kept(server: Server, query: str, **variables: Any) -> None:
    for _ in range(600):
        if (await server.told(query, **variables))[1]["cached"]:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the answer was never kept")


async def test_the_same_query_after_a_mutation_tells_the_node_as_it_was_written():
    async with servers() as (one, other, _):
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
            node = (await one.ask(CREATE, parent="A", key=f"N{number}"))["createCategoryNode"]["node"]
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
    async with servers() as (one, *_):
        node_id = (await one.ask(BY_PATH, path="A/B"))["categoryNode"]["id"]
        for number in range(2, TIMES + 2):
            await one.ask(UPDATE, path="A/B", name=str(number))
            request, key = Request(one.store, DEFINITIONS), node_key("category", ("A", "B"))
            record = await request.state.node(key)
            assert record is not None
            page = await read_history(request, record, ConnectionArguments(), nodes=True)
            revisions = [state.revision for state in page.records]
            assert revisions == list(range(number, 0, -1))
            assert [(await read_revision(request, record, one)) is not None for one in revisions] == [True] * number
        await one.ask(DELETE, path="A/B")
        assert await find_deleted(Request(one.store, DEFINITIONS), node_id) is not None


async def test_more_nodes_than_one_read_takes_are_all_as_they_were_written():
    async with servers() as (one, *_):
        paths = [("A", f"N{number:03}") for number in range(130)]
        await plant(one.store, CategoryNode, [(path, "CATEGORY") for path in paths])
        ids = [f"category:{derived_id('category', path)}" for path in paths]
        found = await one.ask("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=ids)
        assert [node and node["id"] for node in found["nodes"]] == ids


async def test_ids_that_nobody_has_cost_one_more_read_for_all_of_them():
    async with servers() as (one, *_):
        query = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
        _, reads = await one.told(query, ids=[f"category:none-{number}" for number in range(50)])
        assert (reads["requests"], reads["rounds"]) == (2, 2)
