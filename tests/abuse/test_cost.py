"""Cost of requests that once stopped a server or took all of its memory: what each reads and returns is bounded.

`tests/outside/cost.py` measures time and memory, of every list of every argument.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.settings import Settings
from resolvers.lists.arguments import CursorKind, encode_cursor
from resolvers.session.budget import BudgetLimits
from store.connect import open_store
from store.engine import PAGE_UNITS, REQUESTS_A_UNIT
from store.model.records import derived_id
from tests.serving import serving
from tests.systems.asking import plant

STATES, CITIES = 1_900, 3_000  # below the root WIDE
COUNTRIES = 250  # roots, each with three nodes
CHAINS, DEPTH = 10, 32  # of categories below one root
ALIASES = 30
MAX_BYTES = 20_000_000
MAX_UNITS = BudgetLimits.read_units + 4 * PAGE_UNITS  # a gateway's 1,000 entities take 1,502; some are under way
MAX_REQUESTS = BudgetLimits.read_units * REQUESTS_A_UNIT + 32  # which are under way
MARKS = "\u0301\u0323" * 29_000  # above and below: each pair has to be put in order
OUTSIDE = "!" * 40_000
LEAVES = "id path name level levelName depth revision updatedAt"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of wide and deep trees with old paths, which lets each request end."""
    store = f"sqlite:///{tmp_path_factory.mktemp('cost') / 'clade.db'}"
    asyncio.run(fill(store))
    with serving(create_app(Settings(store=store, writes="on", request_seconds=600))) as address:
        for number in range(8):
            rename = (
                f'moveLocation(input: {{node: {{path: "OLD/moved{number}"}}, key: '
                f'"moved{number + 1}"}}) {{ node {{ id }} }}'
            )
            answer = httpx.post(f"{address}/graphql", json={"query": f"mutation {{ {rename} }}"}).json()
            assert "errors" not in answer, answer
        yield f"{address}/graphql"


async def fill(url: str) -> None:
    rows: list[tuple[tuple[str, ...], str]] = [((root,), "COUNTRY") for root in ("WIDE", "OLD", "SCRATCH")]
    rows += [(("OLD", "moved0"), "STATE"), (("OLD", "moved0", "below"), "CITY"), (("SCRATCH", "N0"), "STATE")]
    for number in range(COUNTRIES):
        root = f"C{number:03}"
        rows += [((root,), "COUNTRY"), ((root, "S"), "STATE"), ((root, "S", "A"), "CITY"), ((root, "S", "B"), "CITY")]
    rows += [(("WIDE", f"S{number:04}"), "STATE") for number in range(STATES)]
    rows += [(("WIDE", f"S{number % STATES:04}", f"T{number // STATES}"), "CITY") for number in range(CITIES)]
    chains = [[f"c{chain}"] * depth for chain in range(CHAINS) for depth in range(1, DEPTH)]
    async with open_store(url) as store:
        await store.create()
        await plant(store, Location, rows)
        categories = [("DEEP",), *[("DEEP", *chain) for chain in chains]]
        await plant(store, CategoryNode, [(path, "CATEGORY") for path in categories])


def many(field: str, count: int = ALIASES) -> str:
    """A field under so many aliases."""
    return " ".join(f"a{number}: {field}" for number in range(count))


def wide(below: str) -> str:
    """A query below the node with most children."""
    return f'location(path: "WIDE") {{ {below} }}'


def each(nodes: str, below: str) -> str:
    return f"{nodes} {{ nodes {{ {below} }} }}"


WIDE_ID = f"location:{derived_id('location', ('WIDE',))}"
CURSOR = encode_cursor(CursorKind.CHILDREN, WIDE_ID, "S" * 22_000)
NODES = each("descendants", LEAVES)
ROOTS = f"locations(first: {COUNTRIES - 1})"
FEED = 'changes(hierarchy: LOCATION, tree: "WIDE", under: "WIDE/S0000") { cursor }'
DRY = "dryRun: true) { plan { nodes } }"
ENTITIES = "_entities(representations: $v) { __typename ... on State { id ancestors { id } } }"
COUNTED = 'a{0}: descendants(first: 0, where: {{path: {{gte: "WIDE/S{0:04}"}}}}) {{ totalCount }}'
COUNTS = " ".join(map(COUNTED.format, range(30)))
BELOW = each("descendants(first: 5000)", "children(first: 1, where: $v) { totalCount }")
ORDERED = each("children(first: 60)", "children(first: 1, orderBy: $v) { totalCount }")
BY_PATH = "locationsByPath(paths: $v) { id }"
STATE_ENTITIES = [{"__typename": "State", "path": f"WIDE/S{number:04}"} for number in range(1_000)]
LOST = [{"__typename": "City", "path": f"OLD/moved{number % 8}/{number}/a/b/c/d"} for number in range(1_000)]
SOME = {"or": [{"key": {"in": [f"{key:02}" for key in range(80)]}}] * 18, "and": [{"name": {"startsWith": "S"}}] * 10}
ORDER = {"field": "NAME", "direction": "ASC"}
WHERE, ORDERS, PATHS, ANY = "LocationCondition", "[LocationOrderBy!]", "[Path!]!", "[_Any!]!"

ACCEPTED: dict[str, tuple[str, str, Any]] = {
    "path of marks for the children of every node": (
        wide(each("descendants", "children(where: {path: {lte: $v}}) { totalCount }")), "Path!", MARKS),
    "key of combining marks": (
        'createLocation(input: {parent: {path: "SCRATCH"}, key: $v, name: $v, attributes: {state: {code: $v}}}, '
        + DRY,
        "String!", MARKS),
    "thousand entities": (ENTITIES, ANY, STATE_ENTITIES),
    "many old paths": ("_entities(representations: $v) { __typename }", ANY, LOST),
    "long cursor for every list": (
        wide(each("children", many("children(first: 1, after: $v) { totalCount }"))), "String!", CURSOR),
    "long cursor for some histories": (
        wide(each("children(first: 300)", many("history(first: 1, after: $v) { nodes { id } }"))), "String!", CURSOR),
    "long cursor for changes": (many(FEED.replace("under", "after: $v, under")), "String!", CURSOR),
    "keys from a long one for every root": (
        each(ROOTS, many("children(where: {key: {gte: $v}}) { nodes { id } }", 29)), "String!", OUTSIDE),
    "long paths for every root": (
        each(ROOTS, many("descendants(where: {path: {gte: $v, lt: $v}}) { nodes { id } }", 29)), "Path!", OUTSIDE),
    "one list under many aliases": (wide(many(NODES)), "", None),
    "ancestors of all nodes many times": (wide(each("descendants", many(f"ancestors {{ {LEAVES} }}"))), "", None),
    "parents of all children": (wide(each("children", many(f"parent {{ {LEAVES} }}"))), "", None),
    "ancestors of deep nodes": (
        f'categoryNode(path: "DEEP") {{ {each("descendants", f"{LEAVES} ancestors {{ {LEAVES} }}")} }}', "", None),
    "histories of some nodes": (wide(each("descendants(first: 900)", "history { nodes { id } }")), "", None),
    "many old states of some nodes": (
        wide(each("descendants(first: 500)", many("atRevision(n: 1) { id name }"))), "", None),
    "counts of many ranges": (wide(COUNTS), "", None),
    "counts of ranges of every root": (
        each("locations", many('descendants(level: STATE, where: {path: {gte: "C000/A"}}) { totalCount }')), "", None),
    "changes many times": (many(FEED), "", None),
    "dry runs of a large deletion": (
        many(f'deleteLocation(input: {{node: {{path: "WIDE"}}, policy: CASCADE}}, {DRY}'), "", None),
    "dry runs of a large move": (
        many(f'moveLocation(input: {{node: {{path: "WIDE"}}, to: {{parent: {{path: "SCRATCH"}}}}}}, {DRY}'), "", None),
    "dry runs of an order among many": (
        many(f'moveLocation(input: {{node: {{path: "WIDE/S0000"}}, position: {{last: true}}}}, {DRY}'), "", None),
    "error in every list": (wide(each("children", many("children(first: 1, last: 1) { nodes { id } }"))), "", None),
    "conditions of many lists": (wide(BELOW), WHERE, SOME),
    "orders of many lists": (wide(ORDERED), ORDERS, [ORDER] * 600),
    "many paths": (BY_PATH, PATHS, ["C000/S/A", "C001"] * 990),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_requests_keep_the_bounds_of_what_they_read_and_return(url, name):
    root, kind, value = ACCEPTED[name]
    word = "mutation" if "dryRun" in root else "query"
    body = {"query": f"{word}{f'($v: {kind})' if kind else ''} {{ {root} }}", "variables": {"v": value}}
    headers = {"clade-reads": "1", "accept": "application/graphql-response+json"}
    answer = httpx.post(url, json=body, headers=headers, timeout=600)
    assert answer.status_code == 200, answer.text[:500]
    reads = answer.json().get("extensions", {}).get("reads", {"requests": 0, "units": 0.0})
    assert len(answer.content) <= MAX_BYTES
    assert reads["units"] <= MAX_UNITS
    assert reads["requests"] <= MAX_REQUESTS
