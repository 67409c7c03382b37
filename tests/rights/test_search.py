"""Searches of a caller who may see a part: nothing in the answer, or in its cost, depends on anything else.

Two tables differ in what the caller may not see; all answers and reads of the caller are the same in both.
"""

import itertools
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.schema import build_schema
from resolvers.search import finder
from resolvers.session.budget import BudgetLimits
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.background_moves.timing import MoveTiming
from store.connect import open_store
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.writer import Writer
from tests.rights.asking import caller
from tests.selection import thorough

LOCATION = Location.definition()
SCHEMA, TYPES = build_schema([Location])
SEEN = [
    ("US", "COUNTRY", "United States"), ("US/NE", "STATE", "Nebraska"), ("US/NE/Omaha", "CITY", "Omaha"),
    ("US/NE/Lincoln", "CITY", "Lincoln"), ("US/NE/Omaha/68118", "POSTAL_CODE", "68118"),
]  # fmt: skip
HIDDEN = [
    ("US/IA", "STATE", "Omaha Lincoln"), ("US/NEW", "STATE", "New Omaha"), ("FR", "COUNTRY", "Omaha"),
    *[(f"FR/Omaha {n}", "CITY", f"Omaha {n} Lincoln") for n in range(60)],
    *[(f"US/IA/{n}", "CITY", f"Nebraska {n}") for n in range(60)],
    ("US/IA/Secret", "CITY", "Secret"), ("FR/Secret", "CITY", "Secret Lincoln"),
]  # fmt: skip
MOVED = "US/IA"
TEXTS = ["omaha", "oma", "o", "lincoln", "nebraska", "secret", "lincoln secret", "omaha lincoln", "united", "68"]
UNDERS = [None, "US", "US/NE", "US/NE/Omaha", "US/IA", "FR", "XX", "US/NEW", "US/XX"]
GRANTS = [["US/NE"], ["US/NE/Omaha", "US/NE/Lincoln"], ["US/NE", "XX"], ["XX"], []]
QUERY = """query($text: String!, $under: Path, $first: Int!) {
  found: searchLocations(text: $text, under: $under, first: $first) {
    complete nodes { path id name population childCount parent { path name } } } }"""


NEAR = """query($under: Path, $first: Int!) {
  found: locationsNear(latitude: 1, longitude: 1, under: $under, first: $first) { complete nodes { path } } }"""


async def planted(
    url: str, rows: list[tuple[str, str, str]], moved: Sequence[tuple[str, str]] = (), point: Any = None
) -> None:
    plan, result = ImportPlan(LOCATION), LoadResult()
    for number, (path, level, name) in enumerate(rows):
        node_id = path.replace("/", "-").replace(" ", "-")
        plan.take(Row(number, path.split("/"), [Part(level, name, node_id, point or {})]))
    async with open_store(url) as store:
        await store.create()
        await load(store, plan, result)
        assert not result.rejections
        writer = Writer(store, MoveTiming(0.0, 0.0))
        for path, target in moved:
            await writer.write(Move(LOCATION, parse_path(path), parse_path(target)), ReadUsage())
            await writer.move_worker.finished()


class Asker:
    """Asks one table, with what a server caches between requests."""

    def __init__(self, store: Store, read_units: float = 2_000.0) -> None:
        self._store = store
        self._budget = BudgetLimits(read_units=read_units)
        self._cache = PageCache(10_000_000, TreeVersionCache(0.0))
        self._plans = PlanCache(core_schema(SCHEMA), TYPES, keep=100)

    async def ask(self, who: Any, *, planned: bool, query: str = QUERY, **variables: Any) -> Any:
        """The whole answer, and what it took."""
        request = Request(self._store, {"location": LOCATION}, self._budget, page_cache=self._cache)
        execution = Execution(SCHEMA, lambda: Context(request, TYPES), plans=self._plans if planned else None)
        answer = await execution.answer(GraphQLRequest(query, variables), caller=who, allow_mutations=False)
        assert answer.executed, answer.body
        errors, reads = answer.body.get("errors"), request.reads
        cost = (reads.requests, request.scheduler.rounds)
        return orjson.loads(answer.content())["data"], errors, cost


def asked(*lists: Sequence[Any], texts: int) -> Iterator[tuple[Any, ...]]:
    """All combinations of the lists, each with so many of the texts in turns, and with one in a plain run."""
    turns = itertools.cycle(TEXTS)
    return ((*some, next(turns)) for some in itertools.product(*lists) for _ in range(texts if thorough() else 1))


@pytest.mark.parametrize("engine_name", ["sqlite", "dynamodb"])
@pytest.mark.parametrize("searched", [2_000, 0], ids=["a small part", "a large part"])
async def test_searches_depend_on_nothing_hidden(engine_name, searched, tmp_path, request, monkeypatch):
    """Of a large part, too: with so many nodes that are read, all parts are."""
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", searched)
    if engine_name == "sqlite":
        urls = [f"sqlite:///{tmp_path / name}" for name in ("alone.db", "among.db")]
    else:
        engine = request.getfixturevalue("engine")
        urls = [engine.address(f"{uuid.uuid4().hex}-{name}") for name in ("alone", "among")]
    await planted(urls[0], SEEN)
    await planted(urls[1], [*SEEN, *HIDDEN], [(MOVED, "FR/IA")])
    async with open_store(urls[0]) as alone, open_store(urls[1]) as among:
        found = 0
        texts = len(TEXTS) if engine_name == "sqlite" and searched else 3
        for grants, under, text in asked(GRANTS, UNDERS, texts=texts):
            who = caller(*[f"read:location/{one}" for one in grants], name=str(grants))
            askers = Asker(alone), Asker(among)  # which have nothing in their caches
            for planned in (True, False):
                answers = [await one.ask(who, planned=planned, text=text, under=under, first=3) for one in askers]
                # That there was a node at a hidden path costs a read, as for every old path.
                compared = slice(2 if under == MOVED else 3)
                assert answers[0][compared] == answers[1][compared], (grants, text, under)
            found += len(answers[0][0]["found"]["nodes"])
        assert found > 5
        # A grant at an old path leads nowhere.
        for under, text in asked(UNDERS, texts=len(TEXTS)):
            who = caller(f"read:location/{MOVED}", name="old")
            answers = [await one.ask(who, planned=True, text=text, under=under, first=3) for one in askers]
            assert answers[0][:2] == answers[1][:2] == ({"found": {"complete": True, "nodes": []}}, None)


@pytest.mark.parametrize("query", [QUERY, NEAR], ids=["search", "near"])
async def test_what_a_search_leaves_of_the_read_units_depends_on_nothing_hidden(tmp_path, monkeypatch, query):
    """Other fields of the request may have taken all but a few."""
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", 0)
    urls = [f"sqlite:///{tmp_path / name}" for name in ("alone.db", "among.db")]
    hidden = [(f"FR/o{n}", "CITY", f"Omaha {n}") for n in range(600)]
    for url, rows in zip(urls, (SEEN, [*SEEN, *HIDDEN, *hidden]), strict=True):
        await planted(url, rows, point={"latitude": 1.0, "longitude": 1.0})
    who, codes = caller("read:location/US/NE"), set()
    async with open_store(urls[0]) as alone, open_store(urls[1]) as among:
        for limit in (7.0, 8.0, 10.0, 15.0, 20.0, 40.0, 80.0, 200.0, 900.0):
            askers = Asker(alone, limit), Asker(among, limit)
            answers = [await one.ask(who, planned=True, query=query, text="o", under=None, first=3) for one in askers]
            assert answers[0][:2] == answers[1][:2], limit
            codes.add(answers[0][1] and answers[0][1][0]["extensions"]["code"])
    assert codes == {None, "BUDGET_EXCEEDED"}


RENAMED = [("USA/NB", "USA/NE"), ("USA", "US"), ("US/NE/Secret", "FR/Secret")]
AT_FIRST = [
    ("USA", "COUNTRY", "United States"), ("USA/NB", "STATE", "Nebraska"), ("USA/NB/Omaha", "CITY", "Omaha"),
    ("USA/NB/Secret", "CITY", "Omaha"), ("FR", "COUNTRY", "Omaha"),
]  # fmt: skip
FORMER = {"USA/NB": "US/NE", "USA/NE": "US/NE", "USA": "US", "US/NE/Secret": "XX", "USA/NB/Secret": "XX"}


@pytest.mark.parametrize("searched", [2_000, 0], ids=["a small part", "a large part"])
async def test_an_old_path_leads_to_what_the_caller_sees_at_the_new_one(store, store_url, searched, monkeypatch):
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", searched)
    await planted(store_url, AT_FIRST, RENAMED)
    asker, who = Asker(store), caller("read:location/US/NE")
    for former, present in FORMER.items():
        found, expected = [
            await asker.ask(who, planned=True, text="omaha", under=under, first=3) for under in (former, present)
        ]
        assert found[:2] == expected[:2]
        assert [one["path"] for one in found[0]["found"]["nodes"]] == ["US/NE/Omaha"] * (present != "XX")
