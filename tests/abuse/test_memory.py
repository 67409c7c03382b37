"""Memory: caches and running requests are bounded, whatever clients send."""

import asyncio
import gc
from itertools import product

import orjson
import pytest

from graph.compiler.plan_cache import MAX_SEVERAL_CHARACTERS, PlanCache
from graph.execution.operation import Execution
from graph.execution.response import OperationResponse
from graph.execution.response_cache import ResponseCache
from graph.operation.context import Context
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from resolvers.planning.cursors import CursorKind, encode_cursor
from resolvers.session.large_read_limit import LARGE_READ_NODES
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.errors import Unavailable
from store.model.records import Record, derived_id
from tests.graph.execution.test_response_cache import GROUND, SCHEMA, TYPES, plant
from tests.recorded_reads import ReadRecorder
from tests.systems.asking import WIDE

QUERY = 'query($path: Path!) { area(path: "a") { descendants(where: {path: {gt: $path}}) { totalCount } } }'
SIZE = 100_000


async def test_long_variables_are_not_kept_in_plans_or_caches():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a")
        plans = PlanCache(core_schema(SCHEMA), TYPES)
        cache = ResponseCache(1_000_000)
        execution = Execution(
            SCHEMA, lambda: Context(Request(store, {"ground": GROUND}), TYPES), plans=plans, cache=cache
        )
        for number in range(5):
            await execution.answer(
                GraphQLRequest(QUERY, {"path": f"a/{number}", "x": "y" * SIZE}), allow_mutations=False
            )
            await execution.answer(GraphQLRequest(QUERY, {"path": f"{number}" * SIZE}), allow_mutations=False)
        assert execution.compiled == 10
        assert 0 < len(str(list(execution._documents.get(QUERY).plans._entries))) < SIZE
        assert 0 < len(str(list(cache._entries._entries))) < SIZE


async def test_plans_of_many_documents_with_many_values_each_are_bounded_together():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a")
        execution = Execution(
            SCHEMA,
            lambda: Context(Request(store, {"ground": GROUND}), TYPES),
            plans=PlanCache(core_schema(SCHEMA), TYPES),
        )
        names = "abcd"
        declared = ", ".join(f"${name}: Boolean!" for name in names)
        included = " ".join(f"{name}: key @include(if: ${name})" for name in names)
        rest = "#" * 9_000
        queries = [f'query({declared}) {{ a{n}: area(path: "a") {{ {included} id }} }} {rest}' for n in range(5)]
        for query, values in product(queries, product((True, False), repeat=4)):
            await execution.answer(GraphQLRequest(query, dict(zip(names, values, strict=True))), allow_mutations=False)
        left = [len(query) * len(execution._documents.get(query).plans) for query in queries]
        assert 0 < sum(left) <= MAX_SEVERAL_CHARACTERS


@pytest.mark.parametrize(("lists", "first", "kept"), [(1, "$n", 5), (100, "1", 5), (100, "$n", 0)])
async def test_questions_leave_no_more_of_a_long_document_behind_than_what_they_look_up(lists, first, kept):
    below = " ".join(f"a{number}: children(first: {first}) {{ totalCount }}" for number in range(lists))
    text = f"query($n: Int, $path: Path!) {{ area(path: $path) {{ children(first: $n) {{ totalCount }} {below} }} }}"
    query = (
        text if first == "$n" else text.replace("children(first: $n) { totalCount }", "key").replace("$n: Int, ", "")
    )
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a")
        execution = Execution(
            SCHEMA,
            lambda: Context(Request(store, {"ground": GROUND}), TYPES),
            plans=PlanCache(core_schema(SCHEMA), TYPES),
            limits=WIDE,
        )
        questions = [GraphQLRequest(query, {"path": f"a/{number}", "n": number}) for number in range(5)]
        for question in questions:
            await execution.answer(question, allow_mutations=False)
        assert execution.compiled == 5
        assert len(execution._documents.get(query).bound) == kept


async def test_long_cursors_are_not_kept_in_caches_of_lists():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a", "a/b")
        kept = PageCache(10_000_000)
        execution = Execution(SCHEMA, lambda: Context(Request(store, {"ground": GROUND}, page_cache=kept), TYPES))
        found = await execution.answer(GraphQLRequest('{ area(path: "a") { id } }'), allow_mutations=False)
        children = 'query($after: String) { area(path: "a") { children(after: $after) { nodes { id } } } }'
        roots = "query($after: String) { grounds(after: $after) { nodes { id } } }"
        lists = [(children, CursorKind.CHILDREN, found.body["data"]["area"]["id"]), (roots, CursorKind.ROOTS, "ground")]
        for (query, order, owner), length in product(lists, (0, SIZE)):
            after = encode_cursor(order, owner, "A" + "x" * length)
            found = await execution.answer(GraphQLRequest(query, {"after": after}), allow_mutations=False)
            assert ("errors" in found.body) == (length > 0), found.body
        assert 0 < len(str(list(kept._entries))) < SIZE


# -- large answers under way -------------------------------------------------------------------------------------------

NODES = LARGE_READ_NODES + 100
TURNS = 2  # of large answers at a time
SMALL = '{ area(path: "a/0") { key children { nodes { key } } parent { key } } }'
LARGE_ONES = [
    '{ area(path: "a") { children { nodes { key } } } }',
    '{ area(path: "a") { descendants { nodes { key children { nodes { key } } } } } }',
    "{ grounds { nodes { children { nodes { key children { nodes { key } } } } } } }",
    "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
]


def records_in_memory() -> int:
    return sum(isinstance(one, Record) for one in gc.get_objects())


class Crowd(ReadRecorder):
    """A store that counts how many nodes there are in memory after each read, and how many requests have their turn."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.turns = asyncio.Semaphore(TURNS)
        self.most_nodes = self.most_turns = 0
        gc.collect()
        self._other_records = records_in_memory()  # of the tests that ran before in this process
        self.fails = False
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    @property
    def turns_taken(self) -> int:
        return TURNS - self.turns._value

    async def nodes(self, *asked, **limits):
        self.asked.set()
        await self.goes_on.wait()
        if self.fails:
            raise Unavailable("The store is away.")
        found = await super().nodes(*asked, **limits)
        await asyncio.sleep(0)
        self.most_nodes = max(self.most_nodes, records_in_memory() - self._other_records)
        self.most_turns = max(self.most_turns, self.turns_taken)
        return found


@pytest.fixture
async def crowd(tmp_path):
    """Many nodes in a store, whose requests take turns."""
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
        await plant(store, "a", *[f"a/{number}" for number in range(NODES)])
        yield Crowd(store)


def execution(crowd: Crowd, *, planned: bool = True, seconds: float = 60.0) -> Execution:
    def context() -> Context:
        return Context(Request(crowd, {"ground": GROUND}, large_reads=crowd.turns), TYPES)

    plans = PlanCache(core_schema(SCHEMA), TYPES) if planned else None
    return Execution(SCHEMA, context, plans=plans, limits=DocumentLimits(request_seconds=seconds))


async def ask(execution: Execution, query: str) -> OperationResponse:
    ids = [f"ground:{derived_id('ground', ('a', str(number)))}" for number in range(NODES)]
    return await execution.answer(GraphQLRequest(query, {"ids": ids}), allow_mutations=False)


def codes(answer: OperationResponse) -> set[str]:
    body = orjson.loads(answer.content())
    return {error["extensions"]["code"] for error in body.get("errors", ())}


@pytest.mark.parametrize("planned", [True, pytest.param(False, marks=pytest.mark.thorough)])
async def test_at_most_two_large_responses_are_made_at_a_time(crowd, planned):
    asking = execution(crowd, planned=planned)
    answers = await asyncio.gather(*[ask(asking, query) for query in LARGE_ONES[:3] * 4])
    assert not any(map(codes, answers))
    assert crowd.most_turns == TURNS
    assert crowd.most_nodes < TURNS * (NODES + 10) + LARGE_READ_NODES
    assert crowd.turns_taken == 0


@pytest.mark.parametrize("planned", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("query", LARGE_ONES)
async def test_small_requests_are_answered_while_large_ones_wait(crowd, query, planned):
    asking = execution(crowd, planned=planned)
    for _ in range(TURNS):
        await crowd.turns.acquire()
    large = asyncio.ensure_future(ask(asking, query))
    for _ in range(20):
        assert not codes(await ask(asking, SMALL))
    assert not large.done()
    crowd.turns.release()
    assert not codes(await large)
    assert crowd.turns_taken == 1


@pytest.mark.parametrize("planned", [True, False])
async def test_a_turn_is_given_back_however_a_request_ends(crowd, planned):
    asking = execution(crowd, planned=planned)
    large = LARGE_ONES[1]
    crowd.fails = True
    assert "UNAVAILABLE" in codes(await ask(asking, large))
    crowd.fails = False
    crowd.asked.clear()
    crowd.goes_on.clear()
    leaving = asyncio.ensure_future(ask(asking, large))
    await crowd.asked.wait()
    assert crowd.turns_taken == 1
    leaving.cancel()
    assert [type(one) for one in await asyncio.gather(leaving, return_exceptions=True)] == [asyncio.CancelledError]
    crowd.goes_on.set()
    assert crowd.turns_taken == 0
    for _ in range(TURNS):
        await crowd.turns.acquire()
    waiting = asyncio.ensure_future(ask(asking, large))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert codes(await ask(execution(crowd, planned=planned, seconds=0.1), large)) == {"TIMEOUT"}
    for _ in range(TURNS):
        crowd.turns.release()
    assert crowd.turns_taken == 0
    assert not codes(await ask(asking, large))
