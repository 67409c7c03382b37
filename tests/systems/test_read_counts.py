"""What queries cost at most: requests, rounds, items and read units."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from examples.drive import DriveNode
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import NotFound
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.records import derived_id
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.edit import Named
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Policy
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.systems.asking import Client, count_nodes, plant

pytestmark = pytest.mark.both_stores

LEVELS = ["COUNTRY", "STATE", "CITY", "POSTAL_CODE", "STORE"]
BELOW_EACH = 4
PAGE = "(first: 2)"


def nested(page: str = "") -> str:
    """A country with four levels below it."""
    lists = f"children{page} {{ nodes {{ id }} }}"
    for _ in LEVELS[2:]:
        lists = f"children{page} {{ nodes {{ id {lists} }} }}"
    return f'{{ country(path: "US") {{ id {lists} }} }}'


TREES = 130
BELOW = {f"r{number:03}": 1 + number % 3 for number in range(TREES)}


async def fill(url: str) -> None:
    """A country with 256 stores below 64 postal codes, 16 cities and 4 states; a drive with 40 folders; many roots."""
    line, places = [("US",)], [(("US",), "COUNTRY")]
    for level in LEVELS[1:]:
        line = [(*path, f"{level[0]}{number}") for path in line for number in range(BELOW_EACH)]
        places += [(path, level) for path in line]
    folders = [("d", f"f{number}") for number in range(40)]
    files = [(("d",), "DRIVE"), *[(one, "FOLDER") for one in folders], *[((*one, "x"), "FILE") for one in folders]]
    roots = [((root,), "CATEGORY") for root in BELOW]
    roots += [((root, f"c{number}"), "CATEGORY") for root, count in BELOW.items() for number in range(count)]
    async with open_store(url) as store:
        await store.create()
        for hierarchy, rows in ((Location, places), (DriveNode, files), (CategoryNode, roots)):
            await plant(store, hierarchy, rows)


@pytest.fixture(scope="module", params=["sqlite", "dynamodb"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store that is filled once, since all tests but the last one only read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('counts')}/clade.db"
    if request.param == "dynamodb":
        url = request.getfixturevalue("engine").address(f"counts-{uuid.uuid4().hex}")
    asyncio.run(fill(url))
    return url


@pytest.fixture
async def opened(filled: str) -> AsyncIterator[Store]:
    async with open_store(filled) as store:
        yield store


@pytest.fixture
def client(opened: Store) -> Client:
    return Client(opened, Location, CategoryNode, DriveNode)


async def test_a_city_with_all_its_ancestors_is_one_request_by_path_and_two_by_id(client):
    reply = await client.ask('{ city(path: "US/S0/C0") { id ancestors { id } parent { id } } }')
    assert [one["id"] for one in reply.data["city"]["ancestors"]]
    assert (reply.requests, reply.rounds, reply.items) == (1, 1, 4), "the city, two ancestors and the stamp"
    by_id = await client.ask("query ($id: ID) { city(id: $id) { id ancestors { id } } }", id=reply.data["city"]["id"])
    assert (by_id.requests, by_id.rounds) == (2, 2)


async def test_all_stores_of_a_country_nested_are_one_read_for_each_tier_or_for_all(client):
    reply = await client.ask(nested())
    assert count_nodes(reply.data) == 1 + 4 + 16 + 64 + 256
    assert len(reply.witness.spans) <= 4
    assert reply.requests <= 1 + 4
    assert reply.rounds == 2
    assert reply.items <= 341 + 1


async def test_pages_at_each_level_are_one_round_for_each(client):
    reply = await client.ask(nested(PAGE))
    assert count_nodes(reply.data) == 1 + 2 + 4 + 8 + 16
    assert reply.rounds <= 5
    assert reply.units <= 40


async def test_all_stores_below_a_place_are_one_read_for_each_tier_that_holds_stores(client):
    asked = "id descendantCount(level: STORE) descendants(level: STORE) { nodes { id } }"
    for path, count in (("US", 256), ("US/S1", 64), ("US/S1/C2", 16)):
        reply = await client.ask(f'{{ location(path: "{path}") {{ {asked} }} }}')
        place = reply.data["location"]
        assert (len(place["descendants"]["nodes"]), place["descendantCount"]) == (count, count)
        assert [span.index.name for span, _, _ in reply.witness.spans] == ["BY_LEVEL"]
        assert (reply.requests, reply.rounds) == (2, 2)
        assert reply.items <= count + 2


async def test_many_nodes_by_id_from_three_hierarchies_are_read_in_hundreds(client):
    found = await client.ask(
        '{ country(path: "US") { list: descendants(first: 100) { nodes { id } } } '
        'drive(path: "d") { list: descendants(first: 60) { nodes { id } } } categories(first: 40) { nodes { id } } }'
    )
    ids = [one["id"] for some in found.data.values() for one in some.get("list", some)["nodes"]]
    assert len(ids) == 200
    parts = " ".join(
        f"... on {kind} {{ parent {{ id }} ancestors {{ id }} }}" for kind in ("Location", "CategoryNode", "DriveNode")
    )
    reply = await client.ask(f"query ($ids: [ID!]!) {{ nodes(ids: $ids) {{ id {parts} }} }}", ids=ids)
    assert [bool(one["ancestors"]) for one in reply.data["nodes"]] == [True] * 160 + [False] * 40
    assert reply.requests <= 2 + 3 + 4
    assert reply.rounds <= 3


async def test_counts_of_siblings_cost_nothing_beyond_them(client):
    plain, counted = [
        await client.ask(f'{{ country(path: "US") {{ children {{ nodes {{ id {more} }} }} }} }}')
        for more in ("", "childCount descendantCount d: descendantCount(level: STORE) children { totalCount }")
    ]
    assert (counted.requests, counted.items, counted.units) == (plain.requests, plain.items, plain.units)


async def test_two_hierarchies_in_one_request_share_its_rounds(client):
    reply = await client.ask(
        '{ country(path: "US") { children { nodes { id children { nodes { id } } } } } '
        'drive(path: "d") { children { nodes { id children { nodes { id } } } } } }'
    )
    assert reply.requests <= 1 + 2 + 2, "the nodes; two tiers of each"
    assert reply.rounds == 2


# -- counts of roots: they are in the versions of their trees, which one BatchGetItem reads ----------------------------

VERSIONS_OF_HIERARCHY = 1  # a list of roots reads it too, since moves may run from and to roots


def rounds_before(store: Store) -> int:
    """SQLite reads that version first, DynamoDB in the same round as the roots."""
    return 0 if store.version() is None else 1


COUNTED = {
    "key childCount": 0,
    "descendantCount": 1,
    "... on Category { descendantCount(level: CATEGORY) }": 1,
    "key children(first: 1) { totalCount } few: descendantCount": 1,
    "descendants(first: 0) { totalCount }": 1,
}


async def test_a_page_of_roots_reads_the_versions_of_its_trees_only_for_counts(client: Client, opened: Store) -> None:
    for fields, more in COUNTED.items():
        reply = await client.ask(f"{{ categories(first: 50) {{ nodes {{ {fields} }} }} }}")
        assert len(reply.data["categories"]["nodes"]) == 50
        assert reply.requests == 1 + VERSIONS_OF_HIERARCHY + more
        assert reply.items == 51 + VERSIONS_OF_HIERARCHY + 50 * more
        assert reply.rounds == 1 + rounds_before(opened) + more


async def test_the_counts_of_all_roots_are_read_in_hundreds(client: Client, opened: Store) -> None:
    reply = await client.ask("{ categories { edges { node { key descendantCount } } } }")
    found = {edge["node"]["key"]: edge["node"]["descendantCount"] for edge in reply.data["categories"]["edges"]}
    assert found == BELOW
    assert reply.requests == 1 + VERSIONS_OF_HIERARCHY + 2
    assert reply.rounds == 2 + rounds_before(opened)


async def test_lists_below_roots_and_their_counts_share_the_versions(client: Client) -> None:
    lists = "children { nodes { key } }"
    plain, counted = [
        await client.ask(f"{{ categories(first: 20) {{ nodes {{ {more} {lists} }} }} }}")
        for more in ("", "descendantCount d: descendants { totalCount }")
    ]
    assert (counted.requests, counted.rounds, counted.units) == (plain.requests, plain.rounds, plain.units)


async def test_a_root_by_path_costs_the_same_with_its_counts(client: Client) -> None:
    plain, counted = [
        await client.ask(f'{{ category(path: "r002") {{ key {more} }} }}')
        for more in ("", "childCount descendantCount")
    ]
    assert counted.data["category"]["descendantCount"] == 3
    assert counted.requests == plain.requests == 1
    assert (counted.rounds, counted.items) == (plain.rounds, plain.items)


async def test_the_root_of_a_deeper_node_has_its_counts_in_the_same_request(client: Client) -> None:
    reply = await client.ask(
        '{ category(path: "r002/c0") { ancestors { descendantCount } parent { descendantCount } } }'
    )
    assert reply.data["category"] == {"ancestors": [{"descendantCount": 3}], "parent": {"descendantCount": 3}}
    assert (reply.requests, reply.rounds) == (1, 1)


# -- restores ----------------------------------------------------------------------------------------------------------

SEARCHED = replace(CATEGORY, search=Search(SearchScope.HIERARCHY))
BACK = f"category:{derived_id('category', ('r', 'a'))}"
TO_B = Named("to", path=("r", "b"))
# Reads of a restore: its requests, which are as many rounds, and its read units with so many nodes.
OF_RESTORES: dict[str, tuple[list[Any], bool, dict[int, tuple[int, float]]]] = {
    "nothing": (["category:none"], False, {1: (4, 6.0), 12: (4, 6.0)}),
    "a dry run": ([BACK], True, {1: (5, 8.0), 12: (10, 32.0)}),
    "elsewhere": ([BACK, TO_B], True, {1: (5, 10.0), 12: (10, 45.0)}),
    "a restore": ([BACK], False, {1: (5, 8.0), 12: (10, 32.0)}),
    "what is there": ([BACK], False, {1: (3, 6.0), 12: (3, 6.0)}),
}


@pytest.mark.parametrize("hierarchy", [CATEGORY, SEARCHED], ids=["plain", "searched"])
@pytest.mark.parametrize("nodes", [1, 12])
async def test_a_restore_reads_all_nodes_in_as_many_requests_as_some(
    store: Store, nodes: int, hierarchy: Hierarchy
) -> None:
    plan = ImportPlan(hierarchy)
    paths = [("r",), ("r", "b"), ("r", "a"), *[("r", "a", f"n{number}") for number in range(nodes - 1)]]
    for number, path in enumerate(paths):
        plan.take(Row(number, path, [Part("CATEGORY", "Lamp")]))
    await load(store, plan, LoadResult())
    await Writer(store).write(Delete(hierarchy, ("r", "a"), Policy.CASCADE), ReadUsage())
    found = {}
    for what, ((node_id, *to), is_dry, _) in OF_RESTORES.items():
        reads, names = ReadUsage(), [Named("id", id=str(node_id)), *to]
        with suppress(NotFound):
            edit = Restore(hierarchy, (), str(node_id), names=names)
            await Writer(store).write(edit, reads, EditOptions(dry_run=is_dry))
        found[what] = reads.requests, reads.units
    assert found == {what: counts[nodes] for what, (_, _, counts) in OF_RESTORES.items()}


async def test_a_root_without_children_takes_no_read_of_lists_below_it(store: Store) -> None:
    await plant(store, CategoryNode, [(("a",), "CATEGORY"), (("b",), "CATEGORY")])
    plain, nested = [
        await Client(store, CategoryNode).ask(f"{{ categories {{ nodes {{ key {more} }} }} }}")
        for more in ("", "descendants { nodes { key } } children { nodes { key } }")
    ]
    if store.version() is not None:
        assert nested.requests == plain.requests
    assert [node["descendants"]["nodes"] for node in nested.data["categories"]["nodes"]] == [[], []]
