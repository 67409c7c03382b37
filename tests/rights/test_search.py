"""Searches of a caller who may see a part: no answer, and no cost of one, depends on anything else.

Two tables differ in what the caller may not see; all answers and reads of the caller are the same in both. Of a part of
more than 2,000 nodes the items of a search are read, which hidden nodes have as well.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import cycle, product
from typing import Any, NamedTuple

import orjson
import pytest

from graph.execution.operation import Execution
from graph.execution.plan_cache import PlanCache
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from graph.operation.document import GraphQLRequest
from graph.operation.selection import core_schema
from resolvers.search.finder import MAX_SEARCHED_NODES
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests.rights.asking import caller
from tests.schemas import schema_of

LOCATION = Location.definition()
SCHEMA, TYPES = schema_of(Location)
PLANS = PlanCache(core_schema(SCHEMA), TYPES, keep=100)
SEEN = [
    ("USA", "COUNTRY", "United States"), ("USA/NB", "STATE", "Nebraska"), ("USA/NB/Omaha", "CITY", "Omaha"),
    ("USA/NB/Lincoln", "CITY", "Lincoln"), ("USA/NB/Omaha/68118", "POSTAL_CODE", "68118"),
    *[(f"USA/NB/{n}", "CITY", f"Place {n}") for n in range(MAX_SEARCHED_NODES)],
]  # fmt: skip
HIDDEN = [
    ("USA/IA", "STATE", "Omaha Lincoln"), ("USA/NEW", "STATE", "New Omaha"), ("FR", "COUNTRY", "Omaha"),
    *[(f"FR/Omaha {n}", "CITY", f"Omaha {n} Lincoln") for n in range(600)],
    *[(f"USA/IA/{n}", "CITY", f"Nebraska {n}") for n in range(60)],
    ("USA/IA/Secret", "CITY", "Secret"), ("FR/Secret", "CITY", "Secret Lincoln"),
]  # fmt: skip
MOVES = [("USA/NB", "USA/NE"), ("USA", "US")]
HIDDEN_MOVE = ("US/IA", "FR/IA")
TEXTS = ["omaha", "oma", "o", "lincoln", "nebraska", "secret", "lincoln secret", "omaha lincoln", "united", "68", "pl"]
UNDERS = [None, "US", "US/NE", "US/NE/Omaha", "US/IA", "FR", "XX", "US/NEW", "USA/NB", "USA"]
GRANTS = [["US/NE"], ["US/NE/Omaha", "US/NE/Lincoln"], ["US/NE", "XX"], ["US/IA"], ["XX"], []]
PRESENT = {"USA/NB": "US/NE", "USA": "US"}
SEARCH = """query($text: String!, $under: Path, $first: Int!) {
  found: searchLocations(text: $text, under: $under, first: $first) {
    complete nodes { path id name population childCount parent { path name } } } }"""
NEAR = """query($under: Path, $first: Int!) {
  found: locationsNear(latitude: 1, longitude: 1, under: $under, first: $first) { complete nodes { path } } }"""


class Answer(NamedTuple):
    found: Any
    code: str | None
    cost: tuple[int, int]


async def plant(url: str, rows: Sequence[tuple[str, str, str]], moves: Sequence[tuple[str, str]]) -> None:
    plan, result = ImportPlan(LOCATION), LoadResult()
    for number, (path, level, name) in enumerate(rows):
        node_id, point = path.replace("/", "-").replace(" ", "-"), {"latitude": 1.0, "longitude": 1.0}
        plan.take(Row(number, path.split("/"), [Part(level, name, node_id, point)]))
    async with open_store(url) as store:
        await store.create()
        await load(store, plan, result)
        assert not result.rejections
        writer = Writer(store)
        for path, target in moves:
            await writer.write(Move(LOCATION, parse_path(path), parse_path(target)), ReadUsage())
            await writer.move_worker.finished()


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The URLs of a table of what callers may see, and of one with more."""
    folder = tmp_path_factory.mktemp("searches")
    urls = [f"sqlite:///{folder / name}.db" for name in ("alone", "among")]
    asyncio.run(plant(urls[0], SEEN, MOVES))
    asyncio.run(plant(urls[1], [*SEEN, *HIDDEN], [*MOVES, HIDDEN_MOVE]))
    return urls


@pytest.fixture
async def stores(urls: list[str]) -> AsyncIterator[list[Store]]:
    async with open_store(urls[0]) as alone, open_store(urls[1]) as among:
        yield [alone, among]


async def ask(store: Store, who: Any, query: str = SEARCH, read_units: float = 2_000.0, **variables: Any) -> Answer:
    """The answer to a caller, and the requests and rounds that it took, with nothing in a cache."""
    request = Request(store, {"location": LOCATION}, BudgetLimits(read_units=read_units))
    execution = Execution(SCHEMA, lambda: Context(request, TYPES), plans=PLANS)
    answer = await execution.answer(GraphQLRequest(query, variables), caller=who, allow_mutations=False)
    data, errors = orjson.loads(answer.content())["data"], answer.body.get("errors")
    cost = (request.reads.requests, request.scheduler.rounds)
    return Answer(data and data["found"], errors and errors[0]["extensions"]["code"], cost)


async def test_searches_and_their_reads_depend_on_nothing_hidden(stores):
    texts, found, incomplete = cycle(TEXTS), 0, 0
    for grants, under, _ in product(GRANTS, UNDERS, range(2)):
        who, text = caller(*[f"read:location/{one}" for one in grants]), next(texts)
        for query in (SEARCH, NEAR):
            more = {"text": text} if query == SEARCH else {}
            alone, among = [await ask(store, who, query, under=under, first=3, **more) for store in stores]
            # That there was a node at a hidden path costs a read, as for every old path.
            compared = slice(2 if under == HIDDEN_MOVE[0] or grants == [HIDDEN_MOVE[0]] else 3)
            assert alone[compared] == among[compared], (grants, text, under)
            if under in PRESENT:
                assert alone.found == (await ask(stores[0], who, query, under=PRESENT[under], first=3, **more)).found
            found, incomplete = found + len(alone.found["nodes"]), incomplete + (not alone.found["complete"])
    assert found > 50
    assert incomplete > 10


@pytest.mark.parametrize("query", [SEARCH, NEAR], ids=["search", "near"])
async def test_what_a_search_leaves_of_the_read_units_depends_on_nothing_hidden(stores, query):
    """Other fields of the request may have taken all but a few."""
    who, codes = caller("read:location/US/NE"), set()
    more = {"text": "o"} if query == SEARCH else {}
    for limit in (7.0, 8.0, 10.0, 15.0, 20.0, 40.0, 80.0, 200.0, 900.0):
        alone, among = [await ask(store, who, query, limit, under=None, first=3, **more) for store in stores]
        assert alone[:2] == among[:2], limit
        codes.add(alone.code)
    assert codes == {None, "BUDGET_EXCEEDED"}
