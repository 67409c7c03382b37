"""Two stores that differ only in what a caller may not see, with as many of her own nodes as each limit allows: all of
her responses, read units and numbers of reads are the same in both.

The long form: pytest --examples 300 tests/rights/test_two_worlds.py
"""

import asyncio
import itertools
import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clade import attribute
from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.hierarchies.node import Node
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from resolvers.access.grants import Caller, Grants
from resolvers.search import finder, index, near, search
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.items import Put
from store.model.keys import Key, Path, tree_version_key
from store.model.paths import format_path, parse_path
from store.search.lineage import MovedNode, lineage, running_key
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.schemas import schema_of
from tests.selection import examples


class PlotNode(Node, hierarchy="plot", many="plots", search="hierarchy", location="latitude,longitude"):
    """A plot; all of them are searched together."""

    latitude: float | None = attribute("Degrees.")
    longitude: float | None = attribute("Degrees.")


class Plot(PlotNode, under=[None, "self"]):
    """A plot in a plot."""


class Bed(PlotNode, under=[Plot, "self"]):
    """A bed in a plot."""


class CrateNode(Node, hierarchy="crate", many="crates", search="tree", location="latitude,longitude"):
    """A crate; each tree is searched by itself."""

    latitude: float | None = attribute("Degrees.")
    longitude: float | None = attribute("Degrees.")


class Crate(CrateNode, under=[None, "self"]):
    """A crate in a crate."""


class Item(CrateNode, under=[Crate, "self"]):
    """An item in a crate."""


CLASSES = {"plot": PlotNode, "crate": CrateNode}
LEVELS = {"plot": ("PLOT", "BED"), "crate": ("CRATE", "ITEM")}
DEFINITIONS = {name: cls.definition() for name, cls in CLASSES.items()}
SCHEMA, TYPES = schema_of(*CLASSES.values())
PLANS = PlanCache(core_schema(SCHEMA), TYPES, keep=500)
NODES = 30  # that a search reads itself, in these tests
ITEMS = 40  # that a search of a tree reads
MOVED = 6  # nodes whose moves a search reads
common = settings(suppress_health_check=list(HealthCheck), deadline=None)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", NODES)
    monkeypatch.setattr(index, "MAX_MOVED", MOVED)
    monkeypatch.setattr(near, "MAX_ITEMS", ITEMS)
    monkeypatch.setattr(search.Limits, "of", lambda texts, first, **_: search.Limits(ITEMS, ITEMS))


# -- worlds ------------------------------------------------------------------------------------------------------------


def own_rows(hierarchy: str, top: Path, size: int) -> list[tuple[Any, ...]]:
    """The grant root with so many nodes in all, three of which have children; all have a word and a place in common."""
    plot, bed = LEVELS[hierarchy]
    rows: list[tuple[Any, ...]] = [(top, plot, "Lamp top", point(0))]
    for number in range(min(3, size - 1)):
        rows.append(((*top, f"a{number}"), plot, f"Lamp {number}", point(number)))
    for number in range(size - len(rows)):
        parent = rows[1 + number % 3][0] if len(rows) > 3 else top
        rows.append(((*parent, f"n{number:03}"), bed, f"Lamp n{number}", point(number)))
    return rows


def point(number: int) -> dict[str, Any]:
    return {"latitude": 10 + number / 1000, "longitude": 20.0}


def hidden_rows(hierarchy: str, top: Path, random: Random) -> list[tuple[Any, ...]]:
    """Nodes above, beside and elsewhere, with names that come before those of the caller's own ones."""
    plot, bed = LEVELS[hierarchy]
    homes: list[Path] = [("H",), ("H", "h"), ("H", "h", "i")]
    homes += [] if len(top) == 1 else [(*top[:-1], f"{top[-1]}x"), (*top[:-1], f"{top[-1]}x", "y"), (*top[:-1], "0")]
    rows: list[tuple[Any, ...]] = [(home, plot, "Lamp", point(0)) for home in homes]
    for number in range(random.choice([1, 3, ITEMS + 5])):
        home = random.choice(homes)
        level = random.choice([plot, bed])
        rows.append(((*home, f"m{number}"), level, random.choice(["Lamp", "Lam", "Lamp 0", "Omaha"]), point(number)))
    return rows


async def add_moves(store: Store, hierarchy: str, tree: str, ids: Sequence[str], moved: int, *, by_tree: bool) -> None:
    """Record that so many nodes of a tree were moved, and that a move is running in it."""
    root = ids[0]
    for number in range(moved):
        node = MovedNode(f"{hierarchy}:gone{number}", lineage([root, f"{hierarchy}:gone{number}"]), 3)
        await store.commit([Put(node.item(hierarchy, by_tree=by_tree))])
    move = running_key(hierarchy, "ab" * 12)
    await store.commit([Put({"pk": move.pk, "sk": move.sk})])
    (item,) = await store.get([tree_version_key(tree)], ReadUsage(), strong=True)
    version = TreeVersion.of(tree, item)
    running = ActiveMoveRef("ab" * 12, Key(tree, "#0#gone#"), Key(tree, "#0#there#"))
    await store.commit([version.incremented({}, aliases=1, moves=(running,))])


async def worlds(urls: Sequence[str], hierarchy: str, top: Path, size: int, random: Random) -> None:
    """Two stores with the caller's own nodes, the second of which gets others afterwards."""
    above = [(top[:length], LEVELS[hierarchy][0], "Above", {}) for length in range(1, len(top))]
    own, hidden = [*above, *own_rows(hierarchy, top, size)], hidden_rows(hierarchy, top, random)
    for url, imports in zip(urls, ([own], [own, hidden]), strict=True):
        async with open_store(url) as store:
            await store.create()
            for rows in imports:
                plan, outcome = ImportPlan(DEFINITIONS[hierarchy]), LoadResult()
                for number, (path, level, name, values) in enumerate(rows):
                    plan.take(Row(number, path, [Part(level, name, "-".join(path), values)]))
                await load(store, plan, outcome)
                assert not outcome.rejections


async def hide_moves(url: str, hierarchy: str, top: Path, moved: int) -> None:
    async with open_store(url) as store:
        tree = "H" if len(top) == 1 else top[0]
        await add_moves(
            store, hierarchy, f"{hierarchy}#{tree}", [f"{hierarchy}:H"], moved, by_tree=hierarchy == "crate"
        )


# -- questions ---------------------------------------------------------------------------------------------------------


def queries(hierarchy: str, top: Path) -> list[str]:
    kind, many = {"plot": ("plotNode", "plots"), "crate": ("crateNode", "crates")}[hierarchy]
    title = many.title()
    found = [f"{{ {many}{some} {{ nodes {{ path childCount }} totalCount }} }}" for some in (
        "", "(first: 1)", "(last: 1)", "(orderBy: {field: NAME})", '(where: {name: {contains: "a"}})',
        f"(level: {LEVELS[hierarchy][1]})", f"(level: {LEVELS[hierarchy][1]}, first: 2)",
    )]  # fmt: skip
    nested = "children { nodes { path children { nodes { path } } } }"
    shared = ("", "(first: 2)", "(last: 2)", "(orderBy: {field: KEY, direction: DESC})")
    shared += ('(where: {key: {gte: "n001"}})', f"(level: {LEVELS[hierarchy][0]})")
    for path in (top, (*top, "a0"), (*top, "a0", "n000"), (*top, "no"), top[:-1] or ("I",), ("H",), ("H", "h")):
        at = format_path(path)
        for some in shared:
            lists = " ".join(f"{one}{some} {{ nodes {{ path }} totalCount }}" for one in ("children", "siblings"))
            found.append(f'{{ {kind}(path: "{at}") {{ path parent {{ path }} {lists} }} }}')
            found.append(f'{{ {kind}(path: "{at}") {{ descendants{some} {{ nodes {{ path }} totalCount }} }} }}')
        found.append(f'{{ {kind}(path: "{at}") {{ {nested} }} }}')
        found.append(f'{{ {kind}(path: "{at}") {{ ancestors {{ id }} history {{ totalCount }} }} }}')
        found.append(f'{{ {kind}(id: "{hierarchy}:{"-".join(path)}") {{ path }} deletedNode(id: "{at}") {{ path }} }}')
        for first in (1, 10, 100):
            found.append(f'{{ search{title}(text: "lamp", under: "{at}", first: {first}) {{ {FOUND} }} }}')
            found.append(f'{{ {many}Near(latitude: 10, longitude: 20, under: "{at}", first: {first}) {{ {FOUND} }} }}')
    for text, first in itertools.product(("lamp", "l", "lamp 0", "lamp n", "omaha"), (1, 10, 100)):
        found.append(f'{{ search{title}(text: "{text}", first: {first}) {{ {FOUND} }} }}')
    found += [f"{{ {many}Near(latitude: 10, longitude: 20, first: {first}) {{ {FOUND} }} }}" for first in (1, 10, 100)]
    feed = f'changes(hierarchy: {hierarchy.upper()}, tree: "{top[0]}")'
    return [*found, f"{{ {feed} {{ changes {{ event path }} hasMore }} }}", "{ hierarchies { name } }"]


FOUND = "nodes { path } complete"


async def ask(store: Store, who: Caller, query: str, limits: BudgetLimits) -> Any:
    """The whole response with its units, requests and rounds, of a server that has nothing in its caches."""
    request = Request(store, DEFINITIONS, limits)
    execution = Execution(SCHEMA, lambda: Context(request, TYPES), PLANS)
    response = await execution.execute(query, {}, caller=who, allow_mutations=False)
    reads = request.reads
    return orjson.loads(response.content()), reads.requests, reads.units, request.scheduler.rounds


async def compare(urls: Sequence[str], hierarchy: str, top: Path, chance: Random, share: float) -> int:
    grants = Grants.parse([f"read:{hierarchy}/{format_path(top)}"])
    who, seen = Caller("sub:me", "me", grants, grants), 0
    async with open_store(urls[0]) as alone, open_store(urls[1]) as among:
        for query in queries(hierarchy, top):
            if chance.random() > share:
                continue
            limits = BudgetLimits(nodes=chance.choice([3, 10_000]), read_units=chance.choice([4.0, 2_000.0]))
            answers = [await ask(store, who, query, limits) for store in (alone, among)]
            assert answers[0] == answers[1], (query, grants.read, limits)
            assert "INTERNAL_SERVER_ERROR" not in str(answers[0]), query
            seen += str(answers[0]).count("path")
    return seen


async def check(urls: Sequence[str], seed: int, share: float) -> int:
    random = Random(seed)  # noqa: S311 - no secret
    hierarchy = random.choice([*CLASSES])
    top = parse_path(random.choice(["T", "T/t", "T/s/t"]))
    size = random.choice([1, 4, NODES - 1, NODES, NODES + 1, ITEMS - 1, ITEMS, ITEMS + 1])
    await worlds(urls, hierarchy, top, size, random)
    await hide_moves(urls[1], hierarchy, top, random.choice([0, 1, MOVED, MOVED + 1]))
    return await compare(urls, hierarchy, top, random, share)


seeds = st.integers(0, 1 << 32)


@settings(common, max_examples=examples(6, 40))
@given(seeds)
def test_a_hidden_node_changes_no_byte_unit_or_number_of_reads(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("worlds")
    asyncio.run(check([f"sqlite:///{folder}/{name}.db" for name in ("alone", "among")], seed, 0.5))


@settings(common, max_examples=examples(2, 10))
@given(seeds)
def test_on_dynamodb_neither(engine, seed):
    asyncio.run(check([engine.address(f"{name}-{uuid.uuid4().hex}") for name in ("alone", "among")], seed, 0.3))
