"""Readers beside running moves: whenever the flip comes, an answer is that of before or that of after, never of both.

The long form: pytest --examples 2000 tests/systems/test_readers_beside_moves.py
"""

import asyncio
import uuid
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.schema import build_schema
from resolvers.access.grants import Grants
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.paths import format_path, parse_path
from store.model.ranges import KeyRange, siblings
from store.model.records import Record
from tests.graph.compiler.test_operation_plan import wire
from tests.model import AT, Field, GraphText, Model, Word, failures, without_failures
from tests.move_in_progress import MOVE, FlippingStore, MoveInProgress, any_move, flip_back, plant
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
NEVER = 1_000_000
PLANS = PlanCache(core_schema(SCHEMA), SCHEMA_TYPES, keep=100)


async def ask(store: Store, fields: list[Field], plans: PlanCache | None) -> tuple[Any, set[tuple[Any, str]]]:
    """What is answered: the data, and the errors as the model tells them."""
    text = GraphText(fields)
    request = Request(store, DEFINITIONS, BOUNDLESS)
    execution = Execution(SCHEMA, lambda: Context(request, SCHEMA_TYPES), plans=plans, limits=WIDE)
    answer = await execution.answer(GraphQLRequest(text.text, text.variables), allow_mutations=False)
    body = wire(answer)
    return body["data"], {(tuple(error["path"]), error["extensions"]["code"]) for error in body.get("errors", ())}


def told(moving: MoveInProgress, fields: list[Field]) -> list[Any]:
    """What may be answered before and after."""
    answers = [model.answer(fields) for model in (moving.before, moving.after)]
    return [(without_failures(one), set(failures(one))) for one in answers]


async def check(store: Store, moving: MoveInProgress, fields: list[Field], plans: PlanCache | None, most: int) -> None:
    """Ask with a flip before each of the reads that an answer takes, and with none."""
    before, after = told(moving, fields)
    for reads in range(most):
        await flip_back(store, moving)
        flipping: Any = FlippingStore(store, moving, reads)
        answer = await ask(flipping, fields, plans)
        if not flipping.has_flipped:
            assert answer == before, GraphText(fields)
            break
        assert answer in (before, after), (reads, GraphText(fields))
    flipping = FlippingStore(store, moving, 0)
    assert await ask(flipping, fields, plans) == after, GraphText(fields)


async def check_all(url: str, tree: tuple[int, int, bool, bool], seed: int, asked: Any, most: int) -> None:
    model = grow(*tree)
    moving = any_move(model, Random(seed))  # noqa: S311 - no secret
    async with open_store(url) as store:
        await plant(store, moving)
        for number, (one, depth) in enumerate(asked):
            fields = Writer(one, moving.after if number % 2 and moving.after.nodes else model, depth).query()
            await check(store, moving, fields, PLANS if number % 3 else None, most)


# -- a small tree, of which everything is asked ------------------------------------------------------------------------

PATHS = "A A/w A/x A/x/1 A/x/2 A/x/2/3 A/y A/y/4 A/z B B/q B/q/5 C".split()
SMALL = Model("ground", {parse_path(path): "AREA_PART" if "q" in path else "AREA" for path in PATHS})
BACKWARDS = {"orderBy": [{"field": Word("POSITION"), "direction": Word("DESC")}]}
WINDOWS: list[dict[str, Any]] = [
    {}, {"first": 1}, {"first": 2}, {"last": 2}, {"first": 2, **BACKWARDS}, {"first": 3, "level": [Word("AREA")]},
]  # fmt: skip
TOLD = tuple(Field(one, one) for one in "hasNextPage hasPreviousPage startCursor endCursor".split())
PAGE = (Field("n", "nodes", {}, (Field("p", "path"),)), Field("i", "pageInfo", {}, TOLD), Field("t", "totalCount"))


def pages(name: str) -> tuple[Field, ...]:
    windows = [one for one in WINDOWS if name != "descendants" or "orderBy" not in one]
    return tuple([Field(f"{name}{number}", name, window, PAGE) for number, window in enumerate(windows)])


def everything(moving: MoveInProgress) -> Iterator[list[Field]]:
    """All lists of all nodes and of the hierarchy, and each node by its id and by the paths of both ends."""
    yield list(pages("grounds"))
    path = (Field("p", "path"),)
    above = (*path, Field("up", "parent", {}, path), Field("a", "ancestors", {}, path), Field("c", "childCount"))
    yield [Field(f"n{n}", "ground", {"id": one}, above) for n, one in enumerate(moving.before.ids)]
    paths = sorted({format_path(one) for one in (*moving.before.nodes, *moving.after.nodes)})
    yield [Field(f"n{n}", "ground", {"path": one}, above) for n, one in enumerate(paths)]
    wide = {path[:-1] for model in (moving.before, moving.after) for path in model.nodes if len(path) > 1}
    for one in sorted(map(format_path, wide)):
        for kind in ("children", "descendants"):
            yield [Field("g", "ground", {"path": one}, pages(kind))]


@pytest.mark.parametrize(
    ("source", "target", "planned"),
    [
        ("A/x", "B/x", True),
        pytest.param("A/x", "A/y/x", False, marks=pytest.mark.thorough),
        pytest.param("A/x", "x", True, marks=pytest.mark.thorough),
        pytest.param("B", "A/B", False, marks=pytest.mark.thorough),
        pytest.param("A/x", None, True, marks=pytest.mark.thorough),
        pytest.param("B", None, False, marks=pytest.mark.thorough),
    ],
)
async def test_every_list_of_a_small_tree_is_whole_on_one_side(source, target, planned):
    moving = MoveInProgress(SMALL, parse_path(source), None if target is None else parse_path(target))
    async with open_store("sqlite://:memory:") as store:
        await plant(store, moving)
        for fields in everything(moving):
            await check(store, moving, fields, PLANS if planned else None, NEVER)


MOVES = """query($id: ID!) {
  move(id: $id) { id hierarchy from to state reason nodes written startedAt endedAt }
  moves(hierarchy: GROUND) { id }
}"""


@pytest.mark.parametrize(
    ("tops", "is_seen"), [(None, True), (["A", "B"], True), (["A/x", "B/x"], True), (["A"], False), (["B/x/2"], False)]
)
async def test_a_move_is_told_to_those_who_may_read_both_ends(store, tops, is_seen):
    await plant(store, MoveInProgress(SMALL, ("A", "x"), ("B", "x")))
    grants = None if tops is None else Grants.of([("ground", parse_path(top)) for top in tops], [])
    request = Request(store, DEFINITIONS, grants=grants)
    execution = Execution(SCHEMA, lambda: Context(request, SCHEMA_TYPES))
    answer = await execution.answer(GraphQLRequest(MOVES, {"id": MOVE}), allow_mutations=False)
    told = {
        "id": MOVE, "hierarchy": "GROUND", "from": "A/x", "to": "B/x", "state": "COPYING", "reason": None, "nodes": 1,
        "written": 1, "startedAt": AT, "endedAt": None,
    }  # fmt: skip
    expected = {"move": told, "moves": [{"id": MOVE}]} if is_seen else {"move": None, "moves": []}
    assert answer.body["data"] == expected


def asked_of(store: Any) -> Context:
    return Context(Request(store, DEFINITIONS), SCHEMA_TYPES)


BESIDE = {
    "move(id: $id) { state }": ("COPYING", "SWEEPING"),
    "move: moves(hierarchy: GROUND) { state }": ("COPYING", "SWEEPING"),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("field", BESIDE)
async def test_the_state_of_a_move_is_of_the_same_side_as_what_is_beside_it(engine, field, is_first):
    moving = MoveInProgress(SMALL, ("A", "x"), ("B", "x"))
    fields = [field, 'node: ground(path: "A/x/2") { path parent { childCount } }']
    query = f"query($id: ID) {{ {' '.join(fields if is_first else fields[::-1])} }}".replace("ID)", "ID!)")
    async with open_store(engine.address(f"told-{uuid.uuid4().hex}")) as store:
        await plant(store, moving)
        seen = set()
        for reads in range(NEVER):
            await flip_back(store, moving)
            flipping: Any = FlippingStore(store, moving, reads)
            execution = Execution(SCHEMA, partial(asked_of, flipping), limits=WIDE)
            variables = {"id": MOVE} if "$id" in field else {}
            text = query if variables else query.removeprefix("query($id: ID!) ")
            data = (await execution.answer(GraphQLRequest(text, variables), allow_mutations=False)).body["data"]
            (move,) = data["move"] if isinstance(data["move"], list) else [data["move"]]
            seen.add((move["state"], data["node"]["path"]))
            if not flipping.has_flipped:
                break
        assert seen == {("COPYING", "A/x/2"), ("SWEEPING", "B/x/2")}


class LateRoots(FlippingStore):
    """A store whose index of roots still has the counts of before."""

    before: list[Record]

    async def nodes(self, span: KeyRange, reads: ReadUsage, **how: Any) -> list[Record]:
        found = await super().nodes(span, reads, **how)
        return self.before if span.partition == "ground" else found


@pytest.mark.parametrize("kind", [FlippingStore, LateRoots])
@pytest.mark.parametrize("is_first", [True, False])
async def test_the_counts_of_listed_roots_are_of_the_same_side_as_what_is_beside_them(engine, is_first, kind):
    moving = MoveInProgress(SMALL, ("A", "x"), ("B", "x"))
    node_id = moving.before.nodes["A", "x", "2"].id
    fields = ["roots: grounds { nodes { path childCount } }", f'node: ground(id: "{node_id}") {{ path }}']
    query = f"{{ {' '.join(fields if is_first else fields[::-1])} }}"
    async with open_store(engine.address(f"counts-{uuid.uuid4().hex}")) as store:
        await plant(store, moving)
        seen = set()
        for reads in range(NEVER):
            await flip_back(store, moving)
            flipping: Any = kind(store, moving, reads)
            flipping.before = await store.nodes(siblings("ground"), ReadUsage())
            execution = Execution(SCHEMA, partial(asked_of, flipping), limits=WIDE)
            data = (await execution.answer(GraphQLRequest(query, {}), allow_mutations=False)).body["data"]
            counts = [node["childCount"] for node in data["roots"]["nodes"]]
            seen.add((*counts, data["node"]["path"]))
            if not flipping.has_flipped:
                break
        assert seen == {(4, 1, 0, "A/x/2"), (3, 2, 0, "B/x/2")}


async def test_a_move_of_a_hierarchy_that_is_not_served_is_none(store):
    await plant(store, MoveInProgress(SMALL, ("A", "x"), ("B", "x")))
    schema, types = build_schema([Location])
    definitions = {Location.name: Location.definition()}
    execution = Execution(schema, lambda: Context(Request(store, definitions), types))
    query = "query($id: ID!) { move(id: $id) { id hierarchy } }"
    answer = await execution.answer(GraphQLRequest(query, {"id": MOVE}), allow_mutations=False)
    assert answer.body == {"data": {"move": None}}


async def test_moves_come_as_a_window_says(store):
    await plant(store, MoveInProgress(SMALL, ("A", "x"), ("B", "x")))
    execution = Execution(SCHEMA, lambda: Context(Request(store, DEFINITIONS), SCHEMA_TYPES))
    for arguments, expected in (("", 1), (", first: null", 1), (", first: 1", 1), (", first: 0", 0)):
        query = f"{{ moves(hierarchy: GROUND{arguments}) {{ id }} }}"
        answer = await execution.answer(GraphQLRequest(query, {}), allow_mutations=False)
        assert len(answer.body["data"]["moves"]) == expected
    answer = await execution.answer(
        GraphQLRequest("{ moves(hierarchy: GROUND, first: -1) { id } }", {}), allow_mutations=False
    )
    assert [error["extensions"]["code"] for error in answer.body["errors"]] == ["BAD_USER_INPUT"]


async def test_a_request_that_meets_no_move_reads_nothing_more(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
        await SMALL.plant(store)
        request = Request(store, DEFINITIONS)
        assert await request.state.are_moves_unchanged()
        assert (request.reads.requests, request.state.filter) == (0, None)


# -- random trees ------------------------------------------------------------------------------------------------------


@settings(common, max_examples=examples(4, 40))
@given(models, seeds, queries)
def test_a_response_during_a_move_is_that_from_before_or_after_the_flip(tree, seed, asked):
    asyncio.run(check_all("sqlite://:memory:", tree, seed, asked, NEVER))


@settings(common, max_examples=examples(2, 8))
@given(models, seeds, queries)
def test_on_dynamodb_too(engine, tree, seed, asked):
    asyncio.run(check_all(engine.address(f"moves-{uuid.uuid4().hex}"), tree, seed, asked, 6))
