"""Requests that are stopped at each of their steps hold nothing afterwards, and the next ones are answered right.

On DynamoDB some steps are taken; CLADE_TEST_STOPS=1 takes all of them.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from store.engine.protocol import Store
from tests import invariants
from tests.stops.scene import Ask, Scene, scene
from tests.stops.steps import Steps, counted_steps

ALL_STEPS = bool(os.environ.get("CLADE_TEST_STOPS"))
SOME = {"sqlite": 1, "dynamodb": 9}  # one step of so many

_PLACES = "nodes { path name }"
_LARGE = f"descendants {{ {_PLACES} }}"
_UPDATE = """mutation($path: Path!, $name: String!, $dry: Boolean! = false) {
  updateLocation(path: $path, name: $name, dryRun: $dry) { %s } }"""
_CREATE = """mutation($key: String!) {
  createLocation(parent: "US/MO", key: $key, name: $key, attributes: { city: {} }) {
    node { path parent { children { nodes { key } } } } } }"""
_MOVE = "mutation($from: Path!, $to: Path!) { moveLocation(path: $from, to: $to) { node { path } } }"
_TWO = """mutation($name: String!) {
  a: updateLocation(path: "US/NE", name: $name) { node { %s } }
  b: updateLocation(path: "US/MO", name: $name) { node { %s } } }"""
_PAGES = """{ location(path: "US") {
  children(first: 1) { totalCount nodes { children(first: 1) { edges { cursor node { key } } } } } } }"""
_ENTITIES = """{ _entities(representations: [
    { __typename: "City", id: "location:the-Omaha" }, { __typename: "State", path: "US/MO" }
  ]) { ... on City { name parent { name } } ... on State { name } } }"""

_SEARCH = """{ __schema { __typename }
  searchLocations(text: "o l", under: "US") { complete nodes { path descendantCount } } }"""


@dataclass(frozen=True)
class Kind:
    """A kind of request: what is asked as the n-th, and what else is asked beside it."""

    ask: Callable[[int], Ask]
    beside: Callable[[int], Sequence[Ask]] = lambda n: ()


def query(text: str, *, key: bool = False) -> Kind:
    return Kind(lambda n: Ask(text, key=key))


def updated(path: str, n: int, payload: str = "node { name }", **more: Any) -> Ask:
    return Ask(_UPDATE % payload, {"path": path, "name": f"name {n}", **more})


def created(n: int) -> Ask:
    return Ask(_CREATE, {"key": f"made {n}"})


def moved(n: int) -> Ask:
    here, there = [("US/NE", "US/MO"), ("US/MO", "US/NE")][n % 2]
    return Ask(_MOVE, {"from": f"{here}/Lincoln", "to": there})


KINDS = {
    "compiled": query('{ location(path: "US/NE") { name parent { name } children { nodes { name } } } }'),
    "interpreted": query('{ __type(name: "City") { name } location(path: "US/NE") { children { nodes { name } } } }'),
    "by id": query('{ node(id: "location:the-Omaha") { id ... on City { name ancestors { name } } } }'),
    "by ids": query('{ nodes(ids: ["location:the-Omaha", "location:nowhere"]) { id } }'),
    "pages": query(_PAGES),
    "counts": query(
        '{ location(path: "US") { descendants(maxDepth: 2, where: {path: {gte: "US/A", lt: "US/Z"}}) { totalCount } } }'
    ),
    "roots": query("{ locations { totalCount nodes { path } } }"),
    "large": query(f'{{ location(path: "US") {{ {_LARGE} }} }}'),
    "large, interpreted": query(f'{{ __schema {{ __typename }} location(path: "US/NE") {{ parent {{ {_LARGE} }} }} }}'),
    "history": query('{ location(path: "US/NE") { history(first: 2) { totalCount } } }'),
    "changes": query('{ changes(hierarchy: LOCATION, tree: "US", after: null) { hasMore } }'),
    "entities": query(_ENTITIES),
    "by a key": query('{ location(path: "US/NE") { name } }', key=True),
    "search": query('{ searchLocations(text: "oma") { complete nodes { path parent { path } } } }'),
    "search below": query(_SEARCH),
    "search by a key": query('{ searchLocations(text: "o", under: "US") { nodes { path } } }', key=True),
    "near": query('{ locationsNear(latitude: 0, longitude: 0, under: "US") { complete nodes { path } } }'),
    "sorted": query('{ location(path: "US") { descendants(orderBy: [{field: NAME}], first: 2) { nodes { path } } } }'),
    "sorted roots": query('{ locations(where: {name: {contains: "u"}}) { totalCount nodes { path } } }'),
    "update": Kind(lambda n: updated("US/NE", n)),
    "update, large payload": Kind(lambda n: updated("US/NE", n, f"node {{ parent {{ {_LARGE} }} }}")),
    "two mutations": Kind(lambda n: Ask(_TWO % (_LARGE, _LARGE), {"name": f"name {n}"})),
    "dry run": Kind(lambda n: updated("US/NE", n, "node { name }", dry=True)),
    "create": Kind(created),
    "move": Kind(moved),
    "in a group": Kind(lambda n: updated("US/NE", n), lambda n: [updated("US/MO", n), updated("US/NE/Omaha", n)]),
}


async def stopped(at: Scene, kind: Kind, n: int, stop_at: int) -> int:
    """How many steps a request took that was stopped at one of them; those beside it are answered."""
    steps = Steps(stop_at)
    beside = [asyncio.create_task(at.data(ask)) for ask in kind.beside(n)]
    with contextlib.suppress(asyncio.CancelledError):
        await steps.run(at.send(kind.ask(n)))
    await asyncio.gather(*beside)
    await at.quiet()
    return steps.taken


async def answered(at: Scene, ask: Ask) -> Any:
    """The data of an answer, which for a mutation may also be that it was made by the one that was stopped."""
    answer = await at.send(ask)
    codes = {error["extensions"]["code"] for error in answer.get("errors", ())}
    assert codes <= {"ALREADY_EXISTS", "NOT_FOUND"}, answer
    return answer["data"]


async def stopped_at_each_step(at: Scene, kind: Kind, every: int) -> int:
    """Stop requests of a kind at one step after another, until one ends before; how many were stopped."""
    expected = await at.data(kind.ask(0))
    is_query = "mutation" not in kind.ask(0).query
    for n in itertools.count(1):
        step = 1 + (n - 1) * every
        if await stopped(at, kind, n, step) < step:
            return n - 1
        again = await answered(at, kind.ask(n))
        assert not is_query or again == expected
    raise AssertionError("it never ends")


@pytest.mark.parametrize("keeps", [False, pytest.param(True, marks=pytest.mark.thorough)])
async def test_requests_that_are_stopped_at_any_step_hold_nothing(
    store: Store, store_url: str, keeps: bool, monkeypatch, caplog
) -> None:
    every = 1 if ALL_STEPS else SOME[store_url.partition(":")[0]]
    async with scene(store, monkeypatch, keeps=keeps) as at, counted_steps():
        strange: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: strange.append(context))
        stops = {}
        for name, kind in KINDS.items():
            try:
                stops[name] = await stopped_at_each_step(at, kind, every)
            except AssertionError as error:
                raise AssertionError(f"{name}, after {stops}") from error
            assert stops[name] > 0, name
        print(sum(stops.values()), stops)
        at.check_memory()
        assert not strange
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
    await invariants.check(store)
