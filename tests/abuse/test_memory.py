"""Memory: caches and running requests are bounded, whatever clients send."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

import orjson
import pytest

from graph.compiler.plan_cache import CHARACTER_BYTES, MAX_SEVERAL_CHARACTERS, PlanCache
from graph.execution.operation import Execution
from graph.execution.response import OperationResponse
from graph.execution.response_cache import ResponseCache
from graph.operation.context import Context
from graph.operation.document_cache import DocumentCache
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from resolvers.planning.cursors import CursorKind, encode_cursor
from resolvers.session.cache import PageCache
from resolvers.session.reads import LARGE_READ_NODES
from resolvers.session.request import Request
from store.bounded_cache import CacheUsage, cache_usage
from store.connect import open_store
from store.engine.protocol import Store
from store.errors import Unavailable
from store.model.records import Record, derived_id
from tests.graph.execution.test_response_cache import GROUND, SCHEMA, TYPES, plant
from tests.graphql_core import body_of, executing
from tests.recorded_reads import ReadRecorder
from tests.systems.asking import WIDE

QUERY = 'query($path: Path!) { area(path: "a") { descendants(where: {path: {gt: $path}}) { totalCount } } }'
SIZE = 100_000


@contextmanager
def holding() -> Iterator[Callable[[], int]]:
    """Tells how many of the bytes that are allocated in the block are still held."""

    def held() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        yield held
    finally:
        tracemalloc.stop()


def plans_cached() -> CacheUsage:
    gc.collect()  # of others, which no test holds any more
    return cache_usage().get("plans", CacheUsage(0, 0))


async def test_long_variables_are_not_kept_in_plans_or_caches():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a")
        plans = PlanCache(core_schema(SCHEMA), TYPES)
        cache = ResponseCache(1_000_000)
        execution = executing(
            SCHEMA, lambda: Context(Request(store, {"ground": GROUND}), TYPES), plans=plans, cache=cache
        )
        await execution.execute(QUERY, {"path": "a"}, allow_mutations=False)
        plans = plans_cached()
        with holding() as held:
            for number in range(5):
                await execution.execute(QUERY, {"path": f"a/{number}", "x": "y" * SIZE}, allow_mutations=False)
                await execution.execute(QUERY, {"path": f"{number}" * SIZE}, allow_mutations=False)
            assert held() < SIZE
        assert plans_cached() == (plans.bytes, plans.hits + 10)
        await execution.execute(QUERY, {"path": "4" * SIZE}, allow_mutations=False)
        assert plans_cached() == (plans.bytes, plans.hits + 10), "the response is cached"


async def test_plans_of_many_documents_with_many_values_each_are_bounded_together():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a")
        execution = executing(
            SCHEMA,
            lambda: Context(Request(store, {"ground": GROUND}), TYPES),
            plans=PlanCache(core_schema(SCHEMA), TYPES),
        )
        names = "abcd"
        declared = ", ".join(f"${name}: Boolean!" for name in names)
        included = " ".join(f"{name}: key @include(if: ${name})" for name in names)
        rest = "#" * 9_000
        queries = [f'query({declared}) {{ a{n}: area(path: "a") {{ {included} id }} }} {rest}' for n in range(5)]
        before = plans_cached()
        for query, values in product(queries, product((True, False), repeat=4)):
            await execution.execute(query, dict(zip(names, values, strict=True)), allow_mutations=False)
        assert 0 < plans_cached().bytes - before.bytes <= MAX_SEVERAL_CHARACTERS * CHARACTER_BYTES


@pytest.mark.parametrize(("lists", "first", "kept"), [(1, "$n", 5), (100, "1", 5), (100, "$n", 0)])
def test_questions_leave_no_more_of_a_long_document_behind_than_what_they_look_up(lists, first, kept):
    below = " ".join(f"a{number}: children(first: {first}) {{ totalCount }}" for number in range(lists))
    text = f"query($n: Int, $path: Path!) {{ area(path: $path) {{ children(first: $n) {{ totalCount }} {below} }} }}"
    query = (
        text if first == "$n" else text.replace("children(first: $n) { totalCount }", "key").replace("$n: Int, ", "")
    )
    plans, document = PlanCache(core_schema(SCHEMA), TYPES), DocumentCache(SCHEMA, WIDE).get(query)
    operation = document.operation(None)
    questions = [GraphQLRequest(query, {"path": f"a/{number}", "n": number}) for number in range(5)]
    for question in questions:
        assert plans.get(document, operation, question) is not None
    assert len(document.bound) == kept


async def test_hostile_documents_evict_no_data(tmp_path):
    """Neither a cached response nor a page, however many documents are parsed, rejected and answered without a read."""
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        await plant(store, "a", "a/b")
        pages, responses = PageCache(100_000), ResponseCache(100_000)
        plans = PlanCache(core_schema(SCHEMA), TYPES)
        execution = Execution(
            SCHEMA, lambda: Context(Request(store, {"ground": GROUND}, page_cache=pages), TYPES), plans, cache=responses
        )
        wanted, other = (f'{{ area(path: "a") {{ {name} children {{ nodes {{ key }} }} }} }}' for name in ("key", "id"))
        first = await execution.execute(wanted, allow_mutations=False)
        for number in range(150):
            for query in ("{ a%d: __typename }", "{ a%d }", "{ a%d: __typename", "{ area(path: %d) { id } }"):
                await execution.execute(query % number + " " * 1_000, allow_mutations=False)
        again = await execution.execute(wanted, allow_mutations=False, report_reads=1)
        assert again.json == first.json
        assert again.body["extensions"]["reads"]["cached"]
        paged = await execution.execute(other, allow_mutations=False, report_reads=1)
        assert body_of(paged)["data"]["area"]["children"]["nodes"]
        assert paged.body["extensions"]["reads"]["requests"] == 0


async def test_long_cursors_are_not_kept_in_caches_of_lists():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a", "a/b")
        kept = PageCache(10_000_000)
        execution = executing(SCHEMA, lambda: Context(Request(store, {"ground": GROUND}, page_cache=kept), TYPES))
        found = await execution.execute('{ area(path: "a") { id } }', allow_mutations=False)
        area = body_of(found)["data"]["area"]["id"]
        children = 'query($after: String) { area(path: "a") { children(after: $after) { nodes { id } } } }'
        roots = "query($after: String) { grounds(after: $after) { nodes { id } } }"
        lists = [
            (children, CursorKind.CHILDREN, area),
            (roots, CursorKind.ROOTS, "ground"),
        ]
        for query, order, owner in lists:
            after = encode_cursor(order, owner, "A")
            found = await execution.execute(query, {"after": after}, allow_mutations=False)
            assert "errors" not in body_of(found)
        assert len(kept) > 0
        with holding() as held:
            for query, order, owner in lists:
                after = encode_cursor(order, owner, "A" + "x" * SIZE)
                found = await execution.execute(query, {"after": after}, allow_mutations=False)
                assert "errors" in body_of(found)
                del after, found
            assert held() < SIZE


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


class Turns(asyncio.Semaphore):
    """Turns of large answers; counts those that are `taken`."""

    taken = 0

    async def acquire(self) -> bool:
        acquired = await super().acquire()
        self.taken += 1
        return acquired

    def release(self) -> None:
        self.taken -= 1
        super().release()


class Crowd(ReadRecorder):
    """A store that counts how many nodes there are in memory after each read, and how many requests have their turn."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.turns = Turns(TURNS)
        self.most_nodes = self.most_turns = 0
        gc.collect()
        self._other_records = records_in_memory()  # of the tests that ran before in this process
        self.fails = False
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    async def nodes(self, *asked, **limits):
        self.asked.set()
        await self.goes_on.wait()
        if self.fails:
            raise Unavailable("The store is away.")
        found = await super().nodes(*asked, **limits)
        await asyncio.sleep(0)
        self.most_nodes = max(self.most_nodes, records_in_memory() - self._other_records)
        self.most_turns = max(self.most_turns, self.turns.taken)
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
    return executing(SCHEMA, context, plans=plans, limits=DocumentLimits(request_seconds=seconds))


async def ask(execution: Execution, query: str) -> OperationResponse:
    ids = [f"ground:{derived_id('ground', ('a', str(number)))}" for number in range(NODES)]
    return await execution.execute(query, {"ids": ids}, allow_mutations=False)


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
    assert crowd.turns.taken == 0


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
    assert crowd.turns.taken == 1


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
    assert crowd.turns.taken == 1
    leaving.cancel()
    assert [type(one) for one in await asyncio.gather(leaving, return_exceptions=True)] == [asyncio.CancelledError]
    crowd.goes_on.set()
    assert crowd.turns.taken == 0
    for _ in range(TURNS):
        await crowd.turns.acquire()
    waiting = asyncio.ensure_future(ask(asking, large))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert codes(await ask(execution(crowd, planned=planned, seconds=0.1), large)) == {"TIMEOUT"}
    for _ in range(TURNS):
        crowd.turns.release()
    assert crowd.turns.taken == 0
    assert not codes(await ask(asking, large))
