"""Random trees, orders, conditions and pages: lists are what a plain model sorts and filters, for callers who see all
and for those who see a part, through plans and Strawberry, on both stores.

The long form: pytest --examples 2000 tests/systems/test_sorted_lists_model.py
"""

import asyncio
import uuid
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.schema import build_schema
from resolvers.access.grants import Visibility
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.connect import open_store
from store.engine.protocol import Store
from store.model.paths import format_path
from store.model.records import Record
from tests.cached_records import changed_records
from tests.granted_model import GrantedModel
from tests.graph.compiler.test_operation_plan import wire
from tests.model import Model, Word
from tests.selection import examples
from tests.sorted_model import LEVELS, PLACES, SortedModel, Thing, grow, random_condition, random_order
from tests.systems.asking import BOUNDLESS, WIDE
from tests.systems.test_answers_model import common, seeds

pytestmark = pytest.mark.usefixtures("each_error")
SCHEMA, TYPES = build_schema([Thing])
PLANS = PlanCache(core_schema(SCHEMA), TYPES, keep=100)
DEFINITIONS = {"thing": Thing.definition()}
ENUMS = {"field", "direction", "level"}
PAGE = "edges { cursor node { path } } nodes { path } pageInfo { hasNextPage hasPreviousPage endCursor }"


class Asked:
    """One list of one node, or of roots, and the caller who asks for it."""

    def __init__(self, random: Random, store: Store, model: Model, cache: PageCache | None) -> None:
        self.random, self.model, self.sorted = random, model, SortedModel(model)
        self._store, self._cache = store, cache
        tops = [record for record in model.nodes.values() if self.is_redacted(record)]
        several: list[list[Record | None]] = [[*model.nodes.values()], [*model.nodes.values()], [None], [*tops]]
        self.owner = random.choice(random.choice([some for some in several if some]))
        self.total = "" if self.owner and self.is_redacted(self.owner) else " totalCount"
        self.kind = random.choice(["children", "descendants"]) if self.owner else "things"
        self.arguments = self.some_arguments()

    def is_redacted(self, record: Record) -> bool:
        model = self.model
        return isinstance(model, GrantedModel) and model.visibility(record.path) is Visibility.REDACTED

    def some_arguments(self) -> dict[str, Any]:
        random, found = self.random, {}
        kind = random.choice(["both", "both", "order", "where"])
        if kind != "where":
            found["orderBy"] = random_order(random)
            if self.kind == "descendants" and found["orderBy"][-1]["field"] == "POSITION":
                found["orderBy"][-1]["field"] = "PATH"
        if kind != "order":
            found["where"] = random_condition(random)
        found |= random.choice([{}, {}, {"level": [random.choice(LEVELS)]}, {"level": LEVELS}])
        if self.kind == "descendants":
            found |= random.choice([{}, {"maxDepth": random.randint(0, 2)}])
        return found

    def expected(self) -> list[Record]:
        """The whole list."""
        given = {name: value for name, value in self.arguments.items() if name == "maxDepth"}
        if "level" in self.arguments:
            given["level"] = [Word(level) for level in self.arguments["level"]]
        order = self.arguments.get("orderBy", [])
        if order and order[-1]["field"] in PLACES:
            given["orderBy"] = [{name: Word(order[-1][name]) for name in ("field", "direction")}]
        found = self.model.listing(self.owner, self.kind, given).nodes
        return self.sorted.sorted(
            [one for one in found if self.sorted.meets(one, self.arguments.get("where", {}))], order
        )

    async def page(self, **paging: Any) -> Any:
        """A page as all ways of answering have it: a connection, or the code of its error."""
        answers = []
        for plans in (None, PLANS):
            for literal in (True, False):
                answers.append(await self._page(self.arguments | paging, plans, literal=literal))
        assert all(answer == answers[0] for answer in answers), (self.arguments, paging)
        return answers[0]

    async def _page(self, arguments: dict[str, Any], plans: PlanCache | None, *, literal: bool) -> Any:
        types = {"orderBy": "[ThingOrderBy!]", "where": "ThingCondition", "first": "Int"}
        types |= {"last": "Int", "after": "String", "before": "String"}
        variables = {} if literal else {name: value for name, value in arguments.items() if name in types}
        given = [f"{name}: {f'${name}' if name in variables else text(name, arguments[name])}" for name in arguments]
        listing = f"{self.kind}({', '.join(given)}) {{ {PAGE}{self.total} }}"
        head = f"query({', '.join(f'${name}: {types[name]}' for name in variables)}) " if variables else ""
        query = f"{{ it: {listing} }}"
        if self.owner is not None:
            query = f"{{ thing(path: {text('', format_path(self.owner.path))}) {{ it: {listing} }} }}"
        grants = self.model.grants if isinstance(self.model, GrantedModel) else None
        request = Request(self._store, DEFINITIONS, BOUNDLESS, grants=grants, page_cache=self._cache)
        execution = Execution(SCHEMA, lambda: Context(request, TYPES), plans=plans, limits=WIDE)
        body = wire(await execution.answer(GraphQLRequest(head + query, variables), allow_mutations=False))
        data = body["data"]
        found = data["it"] if self.owner is None else data["thing"]["it"]
        return [error["extensions"]["code"] for error in body["errors"]] if "errors" in body else found


def text(name: str, value: Any) -> str:
    """A value as GraphQL writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() if name in ENUMS or value in ("SMALL", "MEDIUM", "LARGE", "BOX", "ITEM"):
            return value
        case str():
            return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\u{{{ord(c):X}}}" for c in value) + '"'
        case list():
            return "[" + ", ".join(text(name, one) for one in value) + "]"
        case dict():
            return "{" + ", ".join(f"{key}: {text(key, one)}" for key, one in value.items()) + "}"
    return repr(value)


def paths(records: list[Record]) -> list[str]:
    return [format_path(record.path) for record in records]


def shown(page: Any) -> list[str]:
    assert [edge["node"] for edge in page["edges"]] == page["nodes"]
    return [node["path"] for node in page["nodes"]]


async def check_list(asked: Asked) -> None:
    expected = paths(asked.expected())
    if not asked.total:
        asked.total = " totalCount"
        assert await asked.page() == ["FORBIDDEN"]
        asked.total = ""
    whole = await asked.page()
    assert shown(whole) == expected, asked.arguments
    assert whole.get("totalCount", len(expected)) == len(expected)
    assert not whole["pageInfo"]["hasNextPage"]
    cursors = [edge["cursor"] for edge in whole["edges"]]
    assert len({*cursors}) == len(cursors)
    await check_pages(asked, expected, cursors)
    if cursors:
        await check_other_lists(asked, cursors)


async def check_pages(asked: Asked, expected: list[str], cursors: list[str]) -> None:
    """Pages from one end to the other, and one between two cursors."""
    size = asked.random.choice([1, 2, 3, 7])
    found: list[str] = []
    after: dict[str, str] = {}
    for _ in range(min(4, len(expected))):
        page = await asked.page(first=size, **after)
        found += shown(page)
        assert found == expected[: len(found)]
        assert page.get("totalCount", len(expected)) == len(expected)
        assert page["pageInfo"]["hasNextPage"] is (len(found) < len(expected))
        assert page["pageInfo"]["hasPreviousPage"] is bool(after)
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = {"after": page["pageInfo"]["endCursor"]}
    if not expected:
        return
    low, high = sorted(asked.random.choices(range(len(expected)), k=2))
    between = expected[low + 1 : high]
    last = await asked.page(last=size, after=cursors[low], before=cursors[high])
    assert shown(last) == between[-size:]
    assert last["pageInfo"]["hasPreviousPage"]
    backwards = await asked.page(last=size, before=cursors[high])
    assert shown(backwards) == expected[:high][-size:]


async def check_other_lists(asked: Asked, cursors: list[str]) -> None:
    """A cursor is refused in another order and under another condition."""
    cursor = asked.random.choice(cursors)
    own = asked.arguments
    changed = {**own, "where": {"and": [own.get("where", {}), {"not": {"or": []}}]}}
    unsorted = {name: value for name, value in own.items() if name not in ("orderBy", "where")}
    for other in (changed, {**own, "orderBy": [{"field": "RATIO"}, {"field": "GRAMS"}, {"field": "LEVEL"}]}, unsorted):
        asked.arguments = other
        assert await asked.page(after=cursor) == ["BAD_CURSOR"], (own, other)


async def check(url: str, seed: int, size: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    model = grow(seed, size)
    tops = random.choices(list(model.nodes), k=random.choice([1, 1, 2, 4]))
    granted = GrantedModel(model, tops)
    cache = PageCache(1_000_000, TreeVersionCache(0.0))
    async with open_store(url, keep_bytes=1_000_000) as store:
        await store.create()
        await model.plant(store)
        for visible in (model, model, granted, granted):
            if visible.nodes:
                await check_list(Asked(random, store, visible, random.choice([None, cache])))
        assert not changed_records(store)


@settings(common, max_examples=examples(6, 30))
@given(seeds, st.integers(1, 60))
def test_sqlite_sorts_and_filters_as_the_model_does(seed, size):
    asyncio.run(check("sqlite://:memory:", seed, size))


@settings(common, max_examples=examples(2, 6))
@given(seeds, st.integers(1, 60))
def test_dynamodb_sorts_and_filters_as_the_model_does(engine, seed, size):
    asyncio.run(check(engine.address(f"sorted-{uuid.uuid4().hex}"), seed, size))
