"""Random trees, grants and queries: an answer holds exactly what the granted part of the tree holds.

The long form: pytest --examples 2000 tests/systems/test_grants_model.py
"""

import asyncio
import uuid
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from resolvers.access.grants import Grants
from resolvers.planning.cursors import CursorKind, encode_cursor
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.model.keys import Path
from store.model.paths import format_path
from store.model.records import Record
from tests.granted_model import GrantedModel, position
from tests.graph.compiler.test_operation_plan import wire
from tests.model import GraphText, Model, failures, without_failures
from tests.selection import examples
from tests.systems.asking import BOUNDLESS, WIDE
from tests.systems.test_answers_model import (
    DEFINITIONS,
    SCHEMA,
    SCHEMA_TYPES,
    Writer,
    common,
    grow,
    models,
    queries,
    seeds,
)

pytestmark = pytest.mark.usefixtures("each_error")
PLANS = PlanCache(core_schema(SCHEMA), SCHEMA_TYPES, keep=100)


class GrantedWriter(Writer):
    """Asks for nothing that stubs withhold under a type that is never null, so that errors stay where they are."""

    def __init__(self, seed: int, model: Model, granted: GrantedModel, depth: int) -> None:
        super().__init__(seed, model, depth)
        self.granted = granted

    def leaf(self, likely: Record) -> Any:
        leaf = super().leaf(likely)
        while leaf.name in ("id", "childCount", "descendantCount"):
            leaf = super().leaf(likely)
        return leaf

    def cursor(self, name: str, likely: Record | None, bounded: bool) -> str:
        if name == "grounds" or (likely and not self.granted.is_partial(likely)):
            return super().cursor(name, likely, bounded)
        assert likely is not None
        owner = format_path(likely.path)
        below = [one for one in self.records if one.path[: len(likely.path)] == likely.path]
        if name == "descendants" or bounded:
            order = CursorKind.DESCENDANTS if name == "descendants" else CursorKind.CHILDREN_BY_KEY
            return encode_cursor(order, owner, self.one_of(below).sk[len(likely.sk) :] or "#")
        return encode_cursor(CursorKind.CHILDREN, owner, position(self.one_of(below)))


def some_tops(model: Model, random: Random) -> list[Path]:
    """The tops of what is granted: of nodes that are there, now and then of one that is not, or of everything."""
    paths = [*model.nodes, ("nowhere", "at", "all"), *([()] if random.random() < 0.1 else [])]
    return random.choices(paths, k=random.choice([0, 1, 1, 2, 3, 8]))


async def ask(store: Store, query: str, variables: dict[str, Any], grants: Grants, plans: PlanCache | None) -> Any:
    request = Request(store, DEFINITIONS, BOUNDLESS, grants=grants)
    execution = Execution(SCHEMA, lambda: Context(request, SCHEMA_TYPES), plans=plans, limits=WIDE)
    return wire(await execution.answer(GraphQLRequest(query, variables), allow_mutations=False))


async def check(url: str, tree: tuple[int, int, bool, bool], seed: int, asked: list[tuple[int, int]]) -> None:
    model = grow(*tree)
    granted = GrantedModel(model, some_tops(model, Random(seed)))  # noqa: S311 - no secret
    async with open_store(url) as store:
        await store.create()
        await model.plant(store)
        for one, depth in asked:
            fields = GrantedWriter(one, model, granted, depth).query()
            text = GraphText(fields)
            expected = granted.answer(fields)
            plain = await ask(store, text.text, text.variables, granted.grants, None)
            told = (granted.grants, text)
            assert plain["data"] == without_failures(expected), told
            errors = {(tuple(error["path"]), error["extensions"]["code"]) for error in plain.get("errors", ())}
            assert errors == set(failures(expected)), told
            assert await ask(store, text.text, text.variables, granted.grants, PLANS) == plain, told


@settings(common, max_examples=examples(10, 60))
@given(models, seeds, queries)
def test_an_answer_holds_exactly_what_is_granted(tree, seed, asked):
    asyncio.run(check("sqlite://:memory:", tree, seed, asked))


@settings(common, max_examples=examples(2, 8))
@given(models, seeds, queries)
def test_on_dynamodb_too(engine, tree, seed, asked):
    asyncio.run(check(engine.address(f"visibility-{uuid.uuid4().hex}"), tree, seed, asked))


WITHHELD = "id revision updatedAt changedBy childCount descendantCount note".split()
SHOWN = "path key name level depth __typename"
SMALL = Model("ground", dict.fromkeys([("A",), ("A", "b"), ("A", "b", "c"), ("A", "d"), ("E",)], "AREA"))
GRANTS = Grants.of([("ground", ("A", "b"))], [])


@pytest.mark.parametrize("plans", [None, PLANS])
@pytest.mark.parametrize("name", WITHHELD)
async def test_what_a_stub_withholds_is_forbidden_at_its_field(store, name, plans):
    await SMALL.plant(store)
    body = await ask(store, f'{{ ground(path: "A") {{ path {name} }} }}', {}, GRANTS, plans)
    (error,) = body["errors"]
    assert (error["path"], error["extensions"]["code"]) == (["ground", name], "FORBIDDEN")


@pytest.mark.parametrize("plans", [None, PLANS])
async def test_a_stub_is_told_where_it_lies_and_by_what_is_granted(store, plans):
    await SMALL.plant(store)
    query = f"""{{
      ground(path: "A") {{
        {SHOWN} children {{ nodes {{ path id }} pageInfo {{ hasNextPage }} }}
      }}
      grounds {{ totalCount nodes {{ {SHOWN} }} }}
      beside: ground(path: "A/d") {{ path }}
      other: ground(path: "E") {{ path }}
      byId: ground(id: "{SMALL.nodes[("A",)].id}") {{ path }}
      below: ground(path: "A/b/c") {{ id ancestors {{ {SHOWN} }} }}
    }}"""
    body = await ask(store, query, {}, GRANTS, plans)
    stub = {"path": "A", "key": "A", "name": "N A", "level": "AREA", "depth": 0, "__typename": "Area"}
    assert body == {
        "data": {
            "ground": stub
            | {
                "children": {
                    "nodes": [{"path": "A/b", "id": SMALL.nodes[("A", "b")].id}],
                    "pageInfo": {"hasNextPage": False},
                },
            },
            "grounds": {"totalCount": 1, "nodes": [stub]},
            "beside": None,
            "other": None,
            "byId": None,
            "below": {
                "id": SMALL.nodes[("A", "b", "c")].id,
                "ancestors": [stub, stub | {"path": "A/b", "key": "b", "name": "N b", "depth": 1}],
            },
        }
    }
