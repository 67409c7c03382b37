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
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from resolvers.access.grants import Grants
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.model.keys import Path
from tests.granted_model import GrantedModel
from tests.graph.compiler.test_operation_plan import wire
from tests.graphql_core import executing
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
    """Asks for no cursors of grant roots, which are always read whole and then sorted or filtered."""

    def __init__(self, seed: int, model: Model, granted: GrantedModel, depth: int) -> None:
        super().__init__(seed, model, depth)
        self.granted = granted

    def is_sorted(self, name: str, given: dict[str, Any]) -> bool:
        return (name == "grounds" and self.granted.is_partial) or super().is_sorted(name, given)


def some_tops(model: Model, random: Random) -> list[Path]:
    """The tops of what is granted: of nodes that are there, now and then of one that is not, or of everything."""
    paths = [*model.nodes, ("nowhere", "at", "all"), *([()] if random.random() < 0.1 else [])]
    return random.choices(paths, k=random.choice([0, 1, 1, 2, 3, 8]))


async def ask(store: Store, query: str, variables: dict[str, Any], grants: Grants, plans: PlanCache | None) -> Any:
    request = Request(store, DEFINITIONS, BOUNDLESS, grants=grants)
    execution = executing(SCHEMA, lambda: Context(request, SCHEMA_TYPES), plans=plans, limits=WIDE)
    return wire(await execution.execute(query, variables, allow_mutations=False))


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


SHOWN = "path key name level depth __typename"
SMALL = Model("ground", dict.fromkeys([("A",), ("A", "b"), ("A", "b", "c"), ("A", "d"), ("E",)], "AREA"))
GRANTS = Grants.of([("ground", ("A", "b"))], [])


@pytest.mark.parametrize("plans", [None, PLANS])
async def test_a_grant_root_is_a_root_at_its_true_place(store, plans):
    await SMALL.plant(store)
    query = f"""{{
      above: ground(path: "A") {{ path }}
      aboveById: ground(id: "{SMALL.nodes[("A",)].id}") {{ path }}
      beside: ground(path: "A/d") {{ path }}
      root: ground(path: "A/b") {{ {SHOWN} parent {{ path }} ancestors {{ path }}
        siblings {{ nodes {{ path }} totalCount pageInfo {{ hasNextPage }} }} }}
      grounds {{ totalCount nodes {{ {SHOWN} }} }}
      below: ground(path: "A/b/c") {{ id parent {{ path }} ancestors {{ {SHOWN} }} }}
    }}"""
    body = await ask(store, query, {}, GRANTS, plans)
    root = {"path": "A/b", "key": "b", "name": "N b", "level": "AREA", "depth": 1, "__typename": "Area"}
    siblings = {"nodes": [], "totalCount": 0, "pageInfo": {"hasNextPage": False}}
    below = {"id": SMALL.nodes[("A", "b", "c")].id, "parent": {"path": "A/b"}, "ancestors": [root]}
    assert body == {
        "data": {
            "above": None,
            "aboveById": None,
            "beside": None,
            "root": root | {"parent": None, "ancestors": [], "siblings": siblings},
            "grounds": {"totalCount": 1, "nodes": [root]},
            "below": below,
        }
    }


@pytest.mark.parametrize("plans", [None, PLANS])
async def test_of_nested_grants_the_highest_are_roots_by_level_and_key(store, plans):
    model = Model("ground", {
        ("B",): "AREA", ("B", "x"): "AREA_PART", ("B", "a"): "AREA", ("B", "a", "c"): "PLOT", ("A",): "AREA",
        ("A", "a"): "AREA", ("A", "p"): "PLOT", ("A", "p", "t"): "TREE",
    })  # fmt: skip
    await model.plant(store)
    tops = ["B/x", "B/a", "B/a/c", "A/a", "A/p", "A/p/t", "A/nowhere"]
    grants = Grants.of([("ground", tuple(top.split("/"))) for top in tops], [])
    query = """{ all: grounds { edges { cursor node { path } } } last: grounds(last: 2) { nodes { path } }
      paths: grounds(orderBy: {field: PATH}) { nodes { path } } keys: grounds(orderBy: {field: KEY}) { nodes { path } }
      deep: grounds(level: [PLOT, TREE, AREA_PART]) { nodes { path } totalCount }
      parts: grounds(level: AREA_PART) { totalCount } }"""
    data = (await ask(store, query, {}, grants, plans))["data"]
    found = [edge["node"]["path"] for edge in data["all"]["edges"]]
    assert found == ["A/a", "B/a", "B/x", "A/p"]
    assert {name: [node["path"] for node in data[name]["nodes"]] for name in ("last", "paths", "keys", "deep")} == {
        "last": ["B/x", "A/p"],
        "paths": ["A/a", "A/p", "B/a", "B/x"],
        "keys": ["A/a", "B/a", "A/p", "B/x"],
        "deep": ["A/p", "A/p/t", "B/a/c", "B/x"],
    }
    assert (data["deep"]["totalCount"], data["parts"]["totalCount"]) == (4, 1)
    for number, edge in enumerate(data["all"]["edges"]):
        query = (
            f"""{{ grounds(first: 1, after: "{edge["cursor"]}") {{ nodes {{ path }} pageInfo {{ hasNextPage }} }} }}"""
        )
        page = (await ask(store, query, {}, grants, plans))["data"]["grounds"]
        assert [node["path"] for node in page["nodes"]] == found[number + 1 : number + 2]
        assert page["pageInfo"]["hasNextPage"] is (number < 2)


async def test_a_caller_with_a_grant_on_the_hierarchy_has_its_roots(store):
    await SMALL.plant(store)
    grants = Grants.of([("ground", ())], [])
    query = '{ ground(path: "A") { siblings { nodes { path } totalCount } } grounds { totalCount nodes { path } } }'
    body = await ask(store, query, {}, grants, PLANS)
    assert body["data"]["ground"]["siblings"] == {"nodes": [{"path": "E"}], "totalCount": 1}
    assert body["data"]["grounds"] == {"totalCount": 2, "nodes": [{"path": "A"}, {"path": "E"}]}
