"""Nodes of the measured store: many, wide, deep and large ones, with histories, old paths and deleted ones.

The largest are written directly into the table, since mutations and imports reject them; an old table may hold them.
"""

from collections.abc import Iterator

import httpx
from msgspec.structs import replace

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Put
from store.model.keys import node_key
from store.model.records import Record, derived_id
from tests.systems.asking import plant

Rows = list[tuple[tuple[str, ...], str]]

STATES = 3_900  # children of the root WIDE
COUNTRIES = 250  # roots, each with three nodes
DEPTH = 32
CHAINS = 10  # of categories, each with so many below the root
LARGE_NODES, LARGE_CHARACTERS = 20, 200_000
REVISIONS, REVISION_CHARACTERS = 40, 15_000
RENAMES = 8  # each leaves an old path

WIDE, LARGE, OLD, SCRATCH, DEEP = "WIDE", "LARGE", "OLD", "SCRATCH", "DEEP"

_RENAME = "mutation($path: Path!, $key: String!) { renameLocation(path: $path, key: $key) { node { id } } }"
_DELETE = "mutation($path: Path!) { deleteLocation(path: $path) { node { id } } }"
_CREATE = """mutation($parent: Path, $key: String!) {
  createLocation(parent: $parent, key: $key, name: "made", attributes: {state: {}}) { node { id } } }"""


def id_of(*path: str) -> str:
    """The id of a location."""
    return f"location:{derived_id('location', path)}"


async def fill(url: str, nodes: int) -> None:
    """Create the table and all its nodes, so many of them in the tree WIDE."""
    async with open_store(url) as store:
        await store.create()
        await plant(store, Location, _locations(nodes))
        await plant(store, CategoryNode, _categories())
        for number in range(REVISIONS):
            await plant(store, Location, [((OLD, "revised"), "STATE", f"{number} " + "r" * REVISION_CHARACTERS)])
        await _enlarge(store)


def age(url: str) -> None:
    """Send mutations to a server so that there are old paths and a deleted node."""
    for query, variables in _changes():
        answer = httpx.post(url, json={"query": query, "variables": variables}).json()
        assert "errors" not in answer, answer


def _locations(nodes: int) -> Rows:
    rows: Rows = [((root,), "COUNTRY") for root in (WIDE, LARGE, OLD, SCRATCH)]
    for number in range(COUNTRIES):
        root = f"C{number:03}"
        rows += [((root,), "COUNTRY"), ((root, "S"), "STATE"), ((root, "S", "A"), "CITY"), ((root, "S", "B"), "CITY")]
    states = [f"S{number:04}" for number in range(STATES)]
    rows += [((WIDE, state), "STATE") for state in states]
    rows += [((WIDE, states[n % STATES], f"T{n // STATES}"), "CITY") for n in range(nodes - STATES - 1)]
    rows += [((LARGE, f"L{number:02}"), "STATE") for number in range(LARGE_NODES)]
    rows += [((SCRATCH, f"N{number}"), "STATE") for number in range(20)]
    return [*rows, ((OLD, "revised"), "STATE"), ((OLD, "moved0"), "STATE"), ((OLD, "moved0", "below"), "CITY")]


def _categories() -> Rows:
    """Parallel chains below one root."""
    chains = [[f"c{chain}"] * depth for chain in range(CHAINS) for depth in range(1, DEPTH)]
    return [((DEEP,), "CATEGORY"), *[((DEEP, *chain), "CATEGORY") for chain in chains]]


async def _enlarge(store: Store) -> None:
    """Give the nodes below LARGE texts, some of which take several bytes a character in JSON."""
    keys = [node_key("location", (LARGE, f"L{number:02}")) for number in range(LARGE_NODES)]
    for key, item in zip(keys, await store.get(keys, ReadUsage()), strict=True):
        assert item is not None, f"There is no node at {key}."
        name = "x" * LARGE_CHARACTERS if key.sk < "#L10" else '"' * LARGE_CHARACTERS
        await store.commit([Put(replace(Record.of(item), name=name).item())])


def _changes() -> Iterator[tuple[str, dict[str, str]]]:
    for number in range(RENAMES):
        yield _RENAME, {"path": f"{OLD}/moved{number}", "key": f"moved{number + 1}"}
    yield _CREATE, {"parent": OLD, "key": "deleted"}
    yield _DELETE, {"path": f"{OLD}/deleted"}
