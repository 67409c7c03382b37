"""Two stores that differ only in what a caller may not see, with as many of her own nodes as each limit allows: all of
her responses, read units and reads are the same in both, also after somebody who may see everything has asked the same.
Of her own nodes she sees what everybody sees.

The fields are taken from the schema: one that no query here asks fails a test. The long form:
pytest --examples 300 tests/rights/test_two_worlds.py
"""

import asyncio
import itertools
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any
from zlib import crc32

import pytest
from graphql import get_named_type, is_leaf_type, is_required_argument
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clade import attribute
from graph.execution.operation import Execution
from graph.execution.response import ResponseCache
from graph.hierarchies.node import Node
from graph.operation.context import Context
from graph.operation.document import GraphQLRequest
from graph.operation.selection import core_schema
from resolvers.access.callers import Caller
from resolvers.search import finder, item_lists, words
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.kinds.lineage import STEP, MovedNode, lineage, moved_key, running_key
from store.metadata.moves import Move, MoveState
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Key, Path, tree_version_key
from store.model.paths import format_path, parse_path
from store.model.records import Put
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing import move_delete
from store.writing.writer import Writer
from tests.model import AT
from tests.rights.asking import Server, caller
from tests.schemas import schema_of
from tests.selection import examples, thorough
from tests.stores import ReadRecorder
from tests.user_errors import with_user_errors


class PlotNode(Node, hierarchy="plot", many="plots", search="hierarchy", location="latitude,longitude"):
    """A plot; all of them are searched together."""

    code: str | None = attribute("Code.", unique=True, federation_key=True)
    number: int | None = attribute("Number.", unique=True)
    latitude: float | None = attribute("Degrees.")
    longitude: float | None = attribute("Degrees.")


class Plot(PlotNode, under=[None, "self"]):
    """A plot in a plot."""


class Bed(PlotNode, under=[Plot, "self"]):
    """A bed in a plot."""


class CrateNode(Node, hierarchy="crate", many="crates", search="tree", location="latitude,longitude"):
    """A crate; each tree is searched by itself."""

    code: str | None = attribute("Code.", unique=True, federation_key=True)
    number: int | None = attribute("Number.", unique=True)
    latitude: float | None = attribute("Degrees.")
    longitude: float | None = attribute("Degrees.")


class Crate(CrateNode, under=[None, "self"]):
    """A crate in a crate."""


class Item(CrateNode, under=[Crate, "self"]):
    """An item in a crate."""


CLASSES = {"plot": PlotNode, "crate": CrateNode}
LEVELS = {"plot": ("PLOT", "BED"), "crate": ("CRATE", "ITEM")}
DEFINITIONS = {name: cls.definition() for name, cls in CLASSES.items()}
NODES = 30  # that a search reads itself, in these tests
ITEMS = 40  # that a search of a tree reads
MOVED = 6  # nodes whose moves a search reads
REQUIRED = {"n": "n: 1", "fields": "fields: [LEVEL]"}
common = settings(suppress_health_check=list(HealthCheck), deadline=None, phases=set(Phase) - {Phase.shrink})


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", NODES)
    monkeypatch.setattr(finder, "MAX_MOVED", MOVED)
    monkeypatch.setattr(item_lists, "MAX_ITEMS", ITEMS)
    monkeypatch.setattr(item_lists, "MIN_NODES", 0)
    monkeypatch.setattr(words, "_limits", lambda texts, first, **_: (ITEMS, ITEMS))


# -- worlds ------------------------------------------------------------------------------------------------------------


def own_rows(hierarchy: str, top: Path, size: int) -> list[tuple[Any, ...]]:
    """The grant root with so many nodes in all, three of which have children; all have a word and a place in common."""
    outer, inner = LEVELS[hierarchy]
    rows: list[tuple[Any, ...]] = [(top, outer, "Lamp top", point(0))]
    for number in range(min(3, size - 1)):
        rows.append(((*top, f"a{number}"), outer, f"Lamp {number}", point(number)))
    for number in range(size - len(rows)):
        parent = rows[1 + number % 3][0] if len(rows) > 3 else top
        rows.append(((*parent, f"n{number:03}"), inner, f"Lamp n{number}", point(number)))
    return rows


def point(number: int) -> dict[str, Any]:
    return {"latitude": 10 + number / 1000, "longitude": 20.0}


def hidden_rows(hierarchy: str, top: Path, random: Random) -> list[tuple[Any, ...]]:
    """Nodes beside and elsewhere, also deeper ones, with names that come before those of the caller's own."""
    outer, inner = LEVELS[hierarchy]
    homes: list[Path] = [("H",), ("H", "h"), ("H", "h", "i"), ("H", "h", "i", "j"), ("H", "h", "i", "j", "k")]
    beside = f"{top[-1]}x"
    homes += [] if len(top) == 1 else [(*top[:-1], beside, *"yz"[:length]) for length in range(3)] + [(*top[:-1], "0")]
    rows: list[tuple[Any, ...]] = [(home, outer, "Lamp", point(0)) for home in homes]
    for number in range(random.choice([1, 3, ITEMS + 5])):
        home, level = random.choice(homes), random.choice([outer, inner])
        rows.append(((*home, f"m{number}"), level, random.choice(["Lamp", "Lam", "Lamp 0", "Omaha"]), point(number)))
    return rows


async def add_moves(store: Store, hierarchy: str, tree: str, moved: int) -> None:
    """Record that so many nodes of a tree were moved, that a move is running in it, and that another has ended."""
    by_tree = hierarchy == "crate"
    for number in range(moved):
        node = MovedNode(f"{hierarchy}:gone{number}", lineage([f"{hierarchy}:H", f"{hierarchy}:gone{number}"]), 3)
        key = moved_key(hierarchy, node.id, node.line[:STEP] if by_tree else "")
        await store.commit([Put(node.item(key))])
    move, ends = running_key(hierarchy, "ab" * 12), (Key(tree, "#0#gone#"), Key(tree, "#0#there#"))
    await store.commit([Put({"pk": move.pk, "sk": move.sk})])
    record = Move(
        id="cd" * 12, from_pk=tree, from_sk=ends[0].sk, to_pk=tree, to_sk=ends[1].sk, top_id=f"{hierarchy}:x",
        state=MoveState.DONE, nodes=1, written=1, epoch=1, lease=1e12, started_at=AT, ended_at=AT,
    )  # fmt: skip
    await store.commit([Put(record.item())])
    (item,) = await store.get([tree_version_key(tree)], ReadUsage(), strong=True)
    running = ActiveMoveRef("ab" * 12, *ends)
    await store.commit([TreeVersion.of(tree, item).incremented({}, moves=(running,), has_redirects=True)])


def number_of(path: Path) -> int:
    """A number that no other path has."""
    return crc32("-".join(path).encode()) >> 1


EDITED = [("H", "old"), ("H", "old", "x"), ("H", "away"), ("H", "dead")]


async def add_edits(store: Store, hierarchy: str) -> None:
    """Leave former paths and a deleted node: a hidden node was renamed, one was moved to the roots, one deleted."""
    definition, writer = DEFINITIONS[hierarchy], Writer(store)
    await plant(store, hierarchy, [(path, LEVELS[hierarchy][0], "Lamp", point(0)) for path in EDITED])
    for edit in (
        move_delete.Move(definition, ("H", "old"), ("H", "new")),
        move_delete.Move(definition, ("H", "away"), ("G",)),
        move_delete.Delete(definition, ("H", "dead"), move_delete.Policy.CASCADE),
    ):
        await writer.write(edit, ReadUsage())


async def plant(store: Store, hierarchy: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Load nodes given as path, level, name and values, whose ids are made of their paths but for the fifth, as their
    unique values are.
    """
    plan, outcome = ImportPlan(DEFINITIONS[hierarchy]), LoadResult()
    for number, (path, level, name, values, *own_id) in enumerate(rows):
        values = {**values, "code": "-".join(path), "number": number_of(path)}
        plan.take(Row(number, list(path), [Part(level, name, *(own_id or ["-".join(path)]), values)]))
    await load(store, plan, outcome)
    assert not outcome.rejections


async def make_worlds(
    urls: Sequence[str], hierarchy: str, tops: Sequence[Path], size: int, random: Random, moved: int
) -> None:
    """Two stores with the caller's own nodes: in the second one the nodes above them are others, and more are added."""
    paths = sorted({top[:length] for top in tops for length in range(1, len(top))}, key=len)
    own: list[tuple[Any, ...]] = []
    for top, nodes in zip(tops, [size - len(tops) + 1, *[1] * (len(tops) - 1)], strict=True):
        own += own_rows(hierarchy, top, nodes)
    for url, above in zip(urls, ("Above", "Other"), strict=True):
        async with open_store(url) as store:
            await store.create()
            others = [(path, LEVELS[hierarchy][0], above, {}, f"{above}-{'-'.join(path)}") for path in paths]
            await plant(store, hierarchy, others + own)
    async with open_store(urls[1]) as store:
        await plant(store, hierarchy, hidden_rows(hierarchy, tops[0], random))
        await add_edits(store, hierarchy)
        if moved:
            tree = "H" if len(tops[0]) == 1 else tops[0][0]
            await add_moves(store, hierarchy, f"{hierarchy}#{tree}", moved)


# -- queries -----------------------------------------------------------------------------------------------------------


def every_field(kind: Any, expanded: set[str]) -> Iterator[str]:
    """Selections of all fields of a type, and of the types that they lead to and that are not `expanded` yet."""
    fields = getattr(kind, "fields", {})  # none of a union
    yield f"{{ __typename {' '.join(name for name, one in fields.items() if is_leaf_type(get_named_type(one.type)))} }}"
    if kind.name in expanded:
        return
    expanded.add(kind.name)
    for name, one in fields.items():
        if not is_leaf_type(inner := get_named_type(one.type)):
            needed = {name for name, argument in one.args.items() if is_required_argument(argument)}
            given = f"({REQUIRED[needed.pop()]})" if needed else ""
            yield from (f"{{ {name}{given} {below} }}" for below in every_field(inner, expanded))


QUERY = core_schema(schema_of(*CLASSES.values())[0]).query_type
ABOVE = ("top", "above", "other")  # words of her grant root, and of nodes above it in either world
OWN = {name: [*every_field(get_named_type(QUERY.fields[f"{name}Node"].type), set())] for name in CLASSES}
"""All that can be asked of a node."""
FOUND, TOTAL = "nodes { path } complete", "nodes { path } complete totalCount"
NEAR = """(where: {near: {latitude: 10, longitude: 20, kilometers: 60}}, orderBy: {field: DISTANCE}, first: 3) {
    totalCount edges { kilometers node { path } } }"""
SEARCH = """(where: {search: {text: "%s"}}, orderBy: {field: RELEVANCE}, first: 3) {
    totalCount edges { cursor node { path } } facets(fields: [LEVEL]) { values { value count } } }"""
COUNTED = "facets(fields: [LEVEL]) { missingCount values { value count } }"
LISTS = ("", "(first: 2)", "(last: 2)", "(orderBy: {field: KEY, direction: DESC})", '(where: {key: {gte: "n001"}})')
LISTS += ("(orderBy: {field: POSITION, direction: DESC}, first: 2)", '(where: {children: {some: {name: {gte: "a"}}}})')


def queries(hierarchy: str, tops: Sequence[Path]) -> dict[str, list[str]]:
    """The queries of each field of Query, by its name."""
    many, outer, inner = f"{hierarchy}s", *LEVELS[hierarchy]
    title, top, found = many.title(), tops[0], dict[str, list[str]]()

    def add(name: str, arguments: Iterable[str], selection: str) -> None:
        found.setdefault(name, []).extend(f"{{ {name}{one} {{ {selection} }} }}" for one in arguments)

    orders = ("(first: 1)", "(last: 1)", "(orderBy: {field: NAME})", "(orderBy: {field: PATH, direction: DESC})")
    orders += ('(where: {name: {contains: "a"}})', f"(level: {inner})", f"(level: {outer}, first: 2)")
    orders += tuple([f"({one}, orderBy: {{field: POSITION}})" for one in ("first: 9", f"level: {inner}")])
    orders += ('(where: {children: {some: {key: {gte: "n"}}}})', "(where: {children: {none: {childCount: {gt: 0}}}})")
    add(
        many,
        ("", *orders),
        f"nodes {{ path childCount descendantCount }} totalCount pageInfo {{ endCursor }} {COUNTED}",
    )
    own = (top, (*top, "a0"), (*top, "a0", "n000"), (*top, "no"))
    for path in (*own, top[:-1] or ("I",), ("H",), ("H", "h"), ("T",), ("T", "s"), *EDITED):
        at, node_id = f'(path: "{format_path(path)}")', f'(id: "{hierarchy}:{"-".join(path)}")'
        for some in (*LISTS, f"(level: {outer})", f"(level: {inner}, first: 1)"):
            lists = [f"{one}{some} {{ nodes {{ path }} totalCount {COUNTED} }}" for one in ("children", "descendants")]
            add(f"{hierarchy}Node", [at], f"path parent {{ path }} {' '.join(lists)}")
        deep = f"descendants(maxDepth: 2, level: {inner}) {{ totalCount nodes {{ path }} }}"
        add(hierarchy, [at], deep)
        add(inner.lower(), [at, node_id], "path ancestors { id }")
        code, serial = f'(code: "{"-".join(path)}")', f"(number: {number_of(path)})"
        add(f"{hierarchy}Node", [code, serial], "path ancestors { id } children { nodes { path } }")
        add(inner.lower(), [code], "path")
        field, known = f"{hierarchy}Node", " { path }"
        beside = [f"c: {field}{serial}{known}", f"d: {field}{node_id}{known}", f"e: {field}{at}{known}"]
        found[field] += [
            f"{{ a: {field}{code}{known} b: {field}{one}{known} {' '.join(beside)} }}" for one in (at, code)
        ]
        found[field] += [f"{{ a: {field}{code}{known} {one} }}" for one in beside]
        add(f"{hierarchy}Node", [at], "children { nodes { path children { nodes { path } } } }")
        add(f"{hierarchy}Node", [at, node_id], "ancestors { id } history { totalCount }")
        add("node", [node_id], "id")
        add("deletedNode", [node_id], "path descendantCount")
        under = f'under: "{format_path(path)}"'
        for first in (1, 10, 100):
            add(f"search{title}", [f'(text: "lamp", {under}, first: {first})'], TOTAL)
            add(f"search{title}", [f'(text: "lamp {word}", {under}, first: {first})' for word in ABOVE], FOUND)
        at_place = f"path children{NEAR} descendants{NEAR}"
        add(f"{hierarchy}Node", [at], at_place)
        for text in ("lamp", *[f"lamp {word}" for word in ABOVE]):
            add(f"{hierarchy}Node", [at], f"path children{SEARCH % text} descendants{SEARCH % text}")
        add(
            "_entities",
            [f'(representations: [{{__typename: "{outer.title()}", path: "{format_path(path)}"}}])'],
            "__typename",
        )
        representation = f'{{__typename: "{title[:-1]}Node", code: "{"-".join(path)}"}}'
        add("_entities", [f"(representations: [{representation}])"], "__typename")
    texts = ("lamp", "l", "lamp 0", "lamp n", "omaha", *[f"lamp {word}" for word in ABOVE])
    for text, first in itertools.product(texts, (1, 10, 100)):
        add(f"search{title}", [f'(text: "{text}", first: {first})'], TOTAL if len(text) > first else FOUND)
    lists = [NEAR, *[SEARCH % text for text in texts]]
    for one, level in itertools.product(lists, ("", f"level: {inner}, ")):
        found[many] += [f"{{ {many}{one.replace('(', f'({level}', 1)} }}"]
    add(f"{many}ByPath", [f'(paths: ["{format_path(top)}", "H", "T/no"])'], "path")
    add("nodes", [f'(ids: ["{hierarchy}:{"-".join(top)}", "{hierarchy}:H", "{hierarchy}:no"])'], "id")
    add("hierarchies", [""], "name mayWrite searchNeedsUnder")
    add("moves", [f"(hierarchy: {hierarchy.upper()})"], "from to")
    add("move", [f'(id: "{"cd" * 12}")', f'(id: "{"ab" * 12}")'], "from")
    add("_service", [""], "sdl")
    found[f"{hierarchy}Node"] += [f'{{ {hierarchy}Node(path: "{format_path(top)}") {one} }}' for one in OWN[hierarchy]]
    # What the log tells beside its entries: that there were transactions.
    trees = [f'(hierarchy: {hierarchy.upper()}, tree: "{tree}")' for tree in (top[0], "H")]
    add("changes", [*trees, f"(hierarchy: {hierarchy.upper()})"], "changes { event path nodeId }")
    return found


TIME = re.compile(rb'"\d{4}-\d\d-\d\dT[^"]*Z"')
MUTATIONS = (
    'update%s(input: {node: IT, name: "n"}, idempotencyKey: "once")', 'move%s(input: {node: IT, key: "n"})',
    "move%s(input: {node: IT, position: {last: true}})", 'move%s(input: {node: IT, to: {parent: OWN}, key: " "})',
    'move%s(input: {node: OWN, to: {parent: IT}, key: " ", expectedRevision: 7})',
    "move%s(input: {node: OWN, position: {before: IT}})", "delete%s(input: {node: IT, policy: REPARENT})",
    'create%s(input: {parent: IT, key: "n", name: "", attributes: {}}, idempotencyKey: "once")',
    "delete%s(input: {node: IT, policy: CASCADE}, dryRun: true)",
)  # fmt: skip

RESTORES = (
    "restore%s(input: {id: IT})", 'restore%s(input: {id: IT, to: {parent: OWN}}, idempotencyKey: "once")',
    'restore%s(input: {id: IT, to: {parent: OWN}, key: "a0"}, dryRun: true)', 'restore%s(input: {id: IT, key: " "})',
    'restore%s(input: {id: IT, to: {root: true}})', 'restore%s(input: {id: OWNID, to: {parent: {id: IT}}})',
)  # fmt: skip
OWN_EDITS = ('{update: {node: {path: "%s"}, name: "m"}}', '{move: {node: {path: "%s"}, key: "other"}}')


def mutations(hierarchy: str, top: Path) -> Iterator[str]:
    """Mutations that name what is hidden, or not there, and so are refused."""
    for path in (("H",), ("H", "h"), ("H", "no"), *EDITED):
        node_id = f'id: "{hierarchy}:{"-".join(path)}"'
        new = f'parent: {{path: "{format_path(top)}"}}, key: "n", name: "n", {node_id}, attributes: {{}}'
        yield f"mutation {{ create{hierarchy.title()}Node(input: {{{new}}}) {{ node {{ id }} }} }}"
        own = {"OWNID": f'"{hierarchy}:{"-".join(top)}"', "OWN": f'{{path: "{format_path(top)}"}}'}
        for one in RESTORES:
            named = one.replace("IT", node_id.removeprefix("id: "))
            for name, text in own.items():
                named = named.replace(name, text)
            asked = "node { id } move { id } plan { nodes }"
            yield f"mutation {{ {named % f'{hierarchy.title()}Node'} {{ {asked} }} }}"
        for one, it in itertools.product(MUTATIONS, (f'path: "{format_path(path)}"', node_id)):
            named = one.replace("IT", f"{{{it}}}").replace("OWN", f'{{path: "{format_path((*top, "a0"))}"}}')
            yield f"mutation {{ {named % f'{hierarchy.title()}Node'} {{ node {{ id }} }} }}"
            verb, given = re.findall(r"(\w+)%s\(input: (.*})", named)[0]
            edits = [own % format_path((*top, "a0")) for own in OWN_EDITS]
            edits.insert(len(it) % 3, f"{{{verb}: {given}}}")
            yield f"mutation {{ edit{hierarchy.title()}s(edits: [{' '.join(edits)}]) {{ nodes {{ id }} }} }}"


PREPARED = Execution(*schema_of(*CLASSES.values()), Context).requests


async def ask(store: Store, who: Caller, query: str, limits: BudgetLimits) -> list[Any]:
    """The whole responses with their reads and units, of a server that has nothing in its caches, of the same server
    once more, where the response may be cached; and where no limit kept her from her nodes, after somebody who may see
    everything has asked the same.
    """
    seen: Any = ReadRecorder(store)
    pages, writer, requests = PageCache(10_000_000, TreeVersionCache(0.0)), Writer(seen), list[Request]()
    everybody = caller("write:plot", "write:crate")

    def context() -> Context:
        requests.append(Request(seen, DEFINITIONS, limits, page_cache=pages, writer=writer))
        return Context(requests[-1])

    execution = Execution(*schema_of(*CLASSES.values()), context, cache=ResponseCache(10_000_000, store.version))
    asked = [(who, query), (who, query)]
    if not query.startswith("mutation") and limits == BudgetLimits():
        asked += [(everybody, query), (who, query + " ")]
    told: list[Any] = []
    for one, text in asked:
        seen.keys, seen.spans, seen.counts, requests[:] = [], [], [], []
        prepared = PREPARED.prepare(GraphQLRequest(with_user_errors(text), {}))
        answer = await execution.answer(prepared, caller=one, allow_mutations=True)
        if one is who:
            reads = len(seen.keys), len(seen.spans), len(seen.counts)
            costs = [(each.reads.requests, each.reads.units) for each in requests]
            content = TIME.sub(b"", answer.content()), answer.body.get("errors")
            told.append((*content, *([] if "changes(" in query else [reads, costs])))
    return told


async def compare(urls: Sequence[str], hierarchy: str, tops: Sequence[Path], chance: Random, share: float) -> None:
    who = caller(*[f"write:{hierarchy}/{format_path(top)}" for top in tops])
    asked = [*itertools.chain.from_iterable(queries(hierarchy, tops).values()), *mutations(hierarchy, tops[0])]
    async with open_store(urls[0]) as alone, open_store(urls[1]) as among:
        for query in asked:
            if chance.random() > share:
                continue
            small = BudgetLimits(nodes=chance.choice([3, 10_000]), read_units=chance.choice([1.0, 2.0, 4.0]))
            limits = BudgetLimits() if "changes(" in query else chance.choice([BudgetLimits(), small])
            answers = [await ask(store, who, query, limits) for store in (alone, among)]
            assert answers[0] == answers[1], (query, tops, limits)
            assert "INTERNAL_SERVER_ERROR" not in str(answers[0]), query


async def check(urls: Sequence[str], hierarchy: str, granted: str, seed: int, share: float) -> None:
    random = Random(f"{hierarchy} {granted} {seed}")  # noqa: S311 - no secret
    tops = [parse_path(one) for one in granted.split()]
    size = random.choice([1, 4, NODES - 1, NODES, NODES + 1, ITEMS - 1, ITEMS, ITEMS + 1])
    await make_worlds(urls, hierarchy, tops, max(size, len(tops)), random, random.choice([0, 1, MOVED, MOVED + 1]))
    await compare(urls, hierarchy, tops, random, share)


seeds = st.integers(0, 1 << 32)


def test_every_field_of_query_is_asked():
    asked = queries("plot", [("T",)]).keys() | queries("crate", [("T",)]).keys()
    assert asked == QUERY.fields.keys()


@pytest.mark.parametrize("hierarchy", CLASSES)
async def test_of_her_own_nodes_a_caller_sees_what_everybody_sees(store, hierarchy):
    top = ("T", "s", "t")
    above = [(path, LEVELS[hierarchy][0], "Above", {}) for path in (top[:1], top[:2])]
    await plant(store, hierarchy, [*above, *own_rows(hierarchy, top, 12), *own_rows(hierarchy, ("U",), 2)])
    server = Server(store, *CLASSES.values())
    own, everybody = caller(f"read:{hierarchy}/T/s/t", f"read:{hierarchy}/U"), caller(f"read:{hierarchy}")
    for below in OWN[hierarchy]:
        query = f'{{ it: {hierarchy}Node(path: "T/s/t") {below} }}'
        seen, whole = [(await server.data(who, query))["it"] for who in (own, everybody)]
        hidden = {"{ parent": {"parent": None}, "{ ancestors": {"ancestors": []}}
        assert seen == hidden.get(" ".join(below.split()[:2]), whole), below
    roots = {"nodes": [{"path": "U"}, {"path": "T/s/t"}], "totalCount": 2}  # in the order of their keys
    assert await server.data(own, f"{{ it: {hierarchy}s {{ nodes {{ path }} totalCount }} }}") == {"it": roots}


async def test_a_response_depends_on_nothing_of_its_caller_but_what_it_may_read(store):
    """Every field, asked by two who may read the same and write other nodes."""
    await plant(store, "plot", own_rows("plot", ("T",), 12))
    server, differing, cached, expanded = Server(store, *CLASSES.values()), set(), set(), set()
    who = caller("write:plot/T", name="editor"), caller("read:plot/T")
    for name, asked in (queries("plot", [("T",)]) | queries("crate", [("T",)])).items():
        head = asked[0][2:].partition(" {")[0]
        for below in every_field(get_named_type(QUERY.fields[name].type), expanded):
            (_, first), (how, second) = [await server.how(one, f"{{ {head} {below} }}") for one in who]
            differing |= {name} if first != second else set()
            cached |= {name} if how == "cached" else set()
    assert differing == {"hierarchies"}, "what a caller may write is told here alone"
    executed = {"move", "moves", "hierarchies", "deletedNode", "changes", "_service"}
    assert cached == (QUERY.fields.keys() - executed if store.is_embedded else set())


@pytest.mark.parametrize("granted", ["T", "T/t", "T/s/t", "T/t T/ta U T/s/t"])
@pytest.mark.parametrize("hierarchy", CLASSES)
@settings(common, max_examples=examples(1, 5))
@given(seed=seeds)
def test_a_hidden_node_changes_no_byte_unit_or_number_of_reads(tmp_path_factory, hierarchy, granted, seed):
    folder = tmp_path_factory.mktemp("worlds")
    urls = [f"sqlite:///{folder}/{name}.db" for name in ("alone", "among")]
    asyncio.run(check(urls, hierarchy, granted, seed, 0.5 if thorough() else 0.04))


@pytest.mark.thorough
@settings(common, max_examples=examples(1, 10))
@given(st.sampled_from([*CLASSES]), st.sampled_from(["T", "T/s/t"]), seeds)
def test_on_dynamodb_neither(engine, hierarchy, granted, seed):
    urls = [engine.address(f"{name}-{uuid.uuid4().hex}") for name in ("alone", "among")]
    asyncio.run(check(urls, hierarchy, granted, seed, 0.3))
