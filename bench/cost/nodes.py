"""Nodes of the measured store: many, wide, deep and large ones, with histories, old paths and deleted ones.

The largest are written directly into the table, since mutations and imports reject them; an old table may hold them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from msgspec.structs import replace

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Put
from store.model.keys import node_key
from store.model.records import Record
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row

Rows = list[tuple[tuple[str, ...], str]]

COUNTRIES = 250  # roots, each with three nodes
DEPTH = 32
CHAINS = 10  # of categories, each with so many below the root
LARGE_NODES, LARGE_CHARACTERS = 20, 200_000
REVISIONS, REVISION_CHARACTERS = 40, 15_000
RENAMES = 8  # each leaves an old path

WIDE, LARGE, OLD, SCRATCH, DEEP = "WIDE", "LARGE", "OLD", "SCRATCH", "DEEP"
DELETED_ID = "location:deleted"


@dataclass(frozen=True)
class Sizes:
    """The tree WIDE: its nodes, and how many of them are children of its root."""

    nodes: int = 10_000
    states: int = 3_900


_RENAME = """mutation($path: Path!, $key: String!) {
  changed: moveLocation(input: {node: {path: $path}, key: $key}) { userErrors { message } } }"""
_DELETE = """mutation($path: Path!) {
  changed: deleteLocation(input: {node: {path: $path}}) { userErrors { message } } }"""
_CREATE = """mutation($parent: Path!, $key: String!, $id: ID) {
  changed: createLocation(
    input: {parent: {path: $parent}, key: $key, name: "made", id: $id, attributes: {state: {}}}
  ) { userErrors { message } } }"""


def locations(sizes: Sizes = Sizes()) -> Rows:
    """The hierarchy `location`."""
    rows: Rows = [((root,), "COUNTRY") for root in (WIDE, LARGE, OLD, SCRATCH)]
    for number in range(COUNTRIES):
        root = f"C{number:03}"
        rows += [((root,), "COUNTRY"), ((root, "S"), "STATE"), ((root, "S", "A"), "CITY"), ((root, "S", "B"), "CITY")]
    states = [f"S{number:04}" for number in range(sizes.states)]
    rows += [((WIDE, state), "STATE") for state in states]
    others = range(sizes.nodes - len(states) - 1)
    rows += [((WIDE, states[number % len(states)], f"T{number // len(states)}"), "CITY") for number in others]
    rows += [((LARGE, f"L{number:02}"), "STATE") for number in range(LARGE_NODES)]
    rows += [((SCRATCH, f"N{number}"), "STATE") for number in range(20)]
    return [*rows, ((OLD, "revised"), "STATE"), ((OLD, "moved0"), "STATE"), ((OLD, "moved0", "below"), "CITY")]


def categories() -> Rows:
    """The hierarchy `category`: parallel chains below one root."""
    rows: Rows = [((DEEP,), "CATEGORY")]
    for chain in range(CHAINS):
        rows += [((DEEP, *[f"c{chain}"] * depth), "CATEGORY") for depth in range(1, DEPTH)]
    return rows


async def fill(url: str, sizes: Sizes = Sizes()) -> None:
    """Create the table and all its nodes."""
    async with open_store(url) as store:
        await store.create()
        await _load(store, Location, locations(sizes))
        await _load(store, CategoryNode, categories())
        for number in range(REVISIONS):
            await _load(store, Location, [((OLD, "revised"), "STATE")], f"{number} " + "r" * REVISION_CHARACTERS)
        await _enlarge(store)


def id_of(*path: str) -> str:
    """The id of a node, without its hierarchy's name."""
    return "-".join(path)[-100:]


async def _load(store: Store, hierarchy: type[Node], rows: Rows, name: str | None = None) -> None:
    wanted, outcome = ImportPlan(hierarchy.definition()), LoadResult()
    for number, (path, level) in enumerate(rows, start=1):
        wanted.take(Row(number, path, [Part(level, name, id_of(*path))]))
    await load(store, wanted, outcome)
    assert not outcome.rejections, outcome.rejections[:3]


async def _enlarge(store: Store) -> None:
    """Give the nodes below LARGE texts, some of which take several bytes a character in JSON."""
    keys = [node_key("location", (LARGE, f"L{number:02}")) for number in range(LARGE_NODES)]
    for key, item in zip(keys, await store.get(keys, ReadUsage()), strict=True):
        assert item is not None, f"There is no node at {key}."
        name = "x" * LARGE_CHARACTERS if key.sk < "#L10" else '"' * LARGE_CHARACTERS
        await store.commit([Put(replace(Record.of(item), name=name).item())])


def age(url: str) -> None:
    """Send mutations to a server so that there are old paths and a deleted node."""
    for query, variables in _changes():
        answer = httpx.post(url, json={"query": query, "variables": variables}, timeout=60).json()
        assert "errors" not in answer, answer
        assert not answer["data"]["changed"]["userErrors"], answer


def _changes() -> Iterator[tuple[str, dict[str, str]]]:
    for number in range(RENAMES):
        yield _RENAME, {"path": f"{OLD}/moved{number}", "key": f"moved{number + 1}"}
    yield _CREATE, {"parent": OLD, "key": "deleted", "id": "deleted"}
    yield _DELETE, {"path": f"{OLD}/deleted"}
