"""Random trees, grants and queries: no answer holds anything of a node that its caller may not see.

Each node's key, name, id and note hold marks that no other node has, which the whole answer is searched for, cursors
included. The long form: pytest --examples 2000 tests/rights/test_nothing_else.py
"""

import asyncio
import base64
import binascii
import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from graph.operation.graphql_request import GraphQLRequest
from resolvers.access.caller import Caller
from resolvers.access.grants import Grants, Visibility
from store.connect import open_store
from store.engine.protocol import Store
from store.model.keys import Path
from store.model.paths import format_path
from tests.model import GraphText, Ground, Model
from tests.rights.asking import Server
from tests.selection import examples
from tests.systems.asking import WIDE
from tests.systems.test_answers_model import UNDER, Writer

EVERYTHING = """
{ found: WAY { ...all } seen: WAY { ...way } grounds { nodes { ...way } totalCount } }
fragment redacted on Ground { __typename path key name level levelName depth }
fragment way on Ground { ...redacted parent { ...redacted } ancestors { ...redacted }
  children { edges { cursor node { ...redacted } } pageInfo { hasNextPage endCursor } }
  sorted: children(orderBy: [{field: NOTE}, {field: UPDATED_AT}]) { edges { cursor node { ...redacted } } }
  found: descendants(where: {or: [{note: {contains: "o"}}, {note: {isNull: true}}]}) { edges { cursor node { key } } }
  beside: parent { children(orderBy: [{field: CHILD_COUNT}], where: {not: {note: {lt: "o"}}}, first: 2) {
    edges { cursor node { key } } } }
  descendants { edges { cursor node { ...redacted } } } }
fragment own on Ground { id path key name level depth revision updatedAt changedBy childCount descendantCount note }
fragment all on Ground { ...own parent { ...own } ancestors { ...own }
  children { edges { cursor node { ...own } } pageInfo { endCursor hasNextPage } totalCount }
  descendants(first: 5) { edges { cursor node { ...own } } pageInfo { endCursor } }
  history { totalCount nodes { ...then } } atRevision(n: 1) { ...then } }
fragment then on GroundRevision { id revision changedAt changedBy name level note }"""


def grow(seed: int, size: int) -> Model:
    """A random forest, in which the number in a key is that of its node alone."""
    random = Random(seed)  # noqa: S311 - no secret
    nodes: dict[Path, str] = {}
    for number in range(size):
        under: Path = random.choice([(), *nodes]) if random.random() > 0.1 else ()
        levels = UNDER[nodes.get(under)]
        if levels and len(under) < 6:
            nodes[(*under, f"k{number}k")] = random.choice(levels)
    model = Model("ground", nodes)
    for path, record in model.nodes.items():
        key = path[-1]
        model.nodes[path] = replace(record, id=f"ground:i{key[1:-1]}i", attributes={"note": f"o{key[1:-1]}o"})
    model.ids = {record.id: record for record in model.nodes.values()}
    return model


def grants_for(seed: int, model: Model) -> Grants:
    """Some nodes' paths, some that begin alike, and at times nothing."""
    random = Random(seed)  # noqa: S311 - no secret
    tops = random.choices(list(model.nodes), k=random.randint(0, 3))
    beside = [(*top[:-1], top[-1][:-1]) for top in tops if random.random() < 0.3]
    return Grants.of([("ground", top) for top in tops + beside], [])


def texts_in(answer: Any) -> Iterator[str]:
    """All texts of an answer, cursors as what they hold too."""
    match answer:
        case dict():
            for name, value in answer.items():
                yield name
                yield from texts_in(value)
        case list():
            for value in answer:
                yield from texts_in(value)
        case str():
            yield answer
            with contextlib.suppress(binascii.Error, ValueError):
                yield base64.urlsafe_b64decode(answer + "=" * (-len(answer) % 4)).decode(errors="replace")


def check(grants: Grants, model: Model, answer: Any, asked: str) -> None:
    """Fail where an answer holds a mark of what may not be seen."""
    known = {record.path[-1][1:-1]: record for record in model.nodes.values()}
    for text in texts_in(answer):
        for mark, number in re.findall(r"(?=([koi])(\d+)\1)", text):
            record = known[number]
            visibility = grants.visibility("ground", record.path)
            allowed = visibility is Visibility.FULL or (visibility is Visibility.REDACTED and mark == "k")
            assert allowed, (text, format_path(record.path), grants.read, asked)


def counts_in(answer: Any) -> int:
    """How many nodes an answer tells, so that a test which sees nothing is noticed."""
    return sum(len(re.findall(r"k\d+k", text)) for text in texts_in(answer))


async def ask_all(store: Store, seed: int, size: int, granted: int, asked: list[tuple[int, int]]) -> int:
    model = grow(seed, size)
    grants = grants_for(granted, model)
    await store.create()
    await model.plant(store)
    server = Server(store, Ground, limits=WIDE)
    who = Caller("sub:somebody", "somebody", grants, grants)
    everybody = Caller("sub:all", "all", Grants.parse(["read:ground"]), Grants.parse([]))
    seen = 0
    for text, variables in [*texts_for(model), *written(model, asked)]:
        await server.planned.answer(
            GraphQLRequest(text, variables), caller=everybody, allow_mutations=False
        )  # and what it read is kept
        answer = await server.ask(who, text, **variables)
        check(grants, model, answer, f"{text} {json.dumps(variables)}")
        seen += counts_in(answer)
    return seen


BY_PATH = f"query($it: Path!) {EVERYTHING.replace('WAY', 'ground(path: $it)')}"
BY_ID = f"query($it: ID!) {EVERYTHING.replace('WAY', 'ground(id: $it)')}"
BY_NODE = f"query($it: ID!) {EVERYTHING.replace('WAY', 'node(id: $it)')}"


def texts_for(model: Model) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything of some nodes by path and by id."""
    for record in list(model.nodes.values())[:8]:
        yield BY_PATH, {"it": format_path(record.path)}
        yield BY_ID, {"it": record.id}
    yield BY_NODE, {"it": record.id}


def written(model: Model, asked: list[tuple[int, int]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for seed, depth in asked:
        text = GraphText(Writer(seed, model, depth).query())
        yield text.text, text.variables


def run(url: str, *arguments: Any) -> int:
    async def go() -> int:
        async with open_store(url) as store:
            return await ask_all(store, *arguments)

    return asyncio.run(go())


seeds = st.integers(0, 1 << 32)
queries = st.lists(st.tuples(seeds, st.integers(1, 4)), min_size=1, max_size=3)  # seed and depth of each
common = settings(suppress_health_check=list(HealthCheck), deadline=None)


@settings(common, max_examples=examples(1, 8))
@given(seeds, st.integers(1, 40), seeds, queries)
def test_sqlite_discloses_nothing_outside_the_grants(seed, size, granted, asked):
    run("sqlite://:memory:", seed, size, granted, asked)


@settings(common, max_examples=examples(1, 3))
@given(seeds, st.integers(1, 40), seeds, queries)
def test_dynamodb_discloses_nothing_outside_the_grants(engine, seed, size, granted, asked):
    run(engine.address(f"rights-{uuid.uuid4().hex}"), seed, size, granted, asked)


SEEDS = examples(1, 5)


def test_the_marks_of_values_are_found():
    assert sum(run("sqlite://:memory:", seed, 30, seed, [(seed, 3)]) for seed in range(SEEDS)) > 200 * SEEDS
