"""What queries over real data cost at most: requests, rounds, items and read units."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from commands.importing.files import columns
from examples.drive import DriveNode
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.transfer.formats.columns import ColumnOptions, RowReader
from store.transfer.formats.csv import csv_table
from store.transfer.formats.tables import read_table
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Rejection
from tests.real_files import STARBUCKS, real_file
from tests.selection import thorough
from tests.systems.asking import BOUNDLESS, Client, count_nodes, plant, write

STATES = "AK AL AR CA DC DE HI IA ID KS ME MT ND NE NH NM RI SD VT WV WY".split()  # of a plain run
LEVELS = ["country=Country", "state=State/Province", "city=City", "postal_code=Postcode", "store=Store Number"]
STATES_TO_STORES = """{ country(path: "US") { id children { nodes { id children { nodes { id children { nodes { id
  children { nodes { id } } } } } } } } } }"""


def stores_of_the_chain() -> ImportPlan:
    wanted = ImportPlan(Location.definition())
    form = columns(
        wanted.hierarchy, ColumnOptions(LEVELS, ["store=Store Name"], [], ["store.street=Street Address"], ["city"])
    )
    table = csv_table(real_file(STARBUCKS))
    for _, row in read_table(table, RowReader(form, table.header)):
        if not isinstance(row, Rejection) and row.path[0] == "US" and (thorough() or row.path[1] in STATES):
            wanted.take(row)
    return wanted


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> dict[str, str]:
    """The addresses of SQLite files that hold the chain and the demo data, imported once for all tests."""
    place = tmp_path_factory.mktemp("real")
    urls = {
        "chain": f"sqlite:///{place / 'chain.db'}",
        "demo": f"sqlite:///{shutil.copy(demo_file, place / 'demo.db')}",
    }
    asyncio.run(_import(urls["chain"], stores_of_the_chain()))
    return urls


@pytest.fixture(scope="session", params=["sqlite", "dynamodb"])
def tables(request: pytest.FixtureRequest, files: dict[str, str]) -> dict[str, str]:
    """The addresses of tables that hold each source, on each store."""
    if request.param == "sqlite":
        return files
    urls = {name: request.getfixturevalue("engine").address(f"real-{name}") for name in files}
    for name, url in urls.items():
        asyncio.run(_copy(files[name], url))
    return urls


async def _import(url: str, wanted: ImportPlan) -> None:
    async with open_store(url) as store:
        await store.create()
        await load(store, wanted, LoadResult())


async def _copy(source: str, target: str) -> None:
    """All items but the log and those of search, which no query here reads; importing once more would take minutes."""
    async with open_store(source) as read, open_store(target) as store:
        await store.create()
        async for page in read.scan(ReadUsage()):
            left = [one for one in page if not str(one["pk"]).startswith(("words/", "cells/"))]
            await write(store, [one for one in left if not str(one["sk"]).startswith("!0")])


@pytest.fixture
async def chain(tables: dict[str, str]) -> AsyncIterator[Store]:
    async with open_store(tables["chain"]) as store:
        yield store


@pytest.fixture
async def shown(tables: dict[str, str]) -> AsyncIterator[Client]:
    async with open_store(tables["demo"]) as store:
        yield Client(store, Location, CategoryNode)


async def test_a_city_by_path_with_all_its_ancestors_is_one_request(chain):
    reply = await Client(chain, Location).ask('{ city(path: "US/NE/OMAHA") { id ancestors { id } parent { id } } }')
    assert [one["id"] for one in reply.data["city"]["ancestors"]]
    assert (reply.requests, reply.rounds, reply.items) == (1, 1, 4), "the city, two ancestors and the stamp"


async def test_a_city_by_id_with_all_its_ancestors_is_two_requests(chain):
    client = Client(chain, Location)
    city = (await client.ask('{ city(path: "US/NE/OMAHA") { id } }')).data["city"]["id"]
    reply = await client.ask("query ($id: ID) { city(id: $id) { id ancestors { id } } }", id=city)
    assert (reply.requests, reply.rounds) == (2, 2)


async def test_all_stores_of_a_country_nested_are_one_read_for_each_tier_or_for_all(chain):
    reply = await Client(chain, Location, budget=BOUNDLESS).ask(STATES_TO_STORES)
    nodes = count_nodes(reply.data)
    print(f"US to its stores: {nodes} nodes, {reply.requests} requests, {reply.rounds} rounds, {reply.units} units")
    assert nodes == (29_513 if thorough() else 8_140)
    assert len(reply.witness.spans) <= 4
    assert reply.requests <= 1 + 4 + reply.units / 127, "a page holds 1 MB: 128 eventually consistent units"
    assert reply.rounds == 2
    assert reply.items <= nodes + 1


async def test_pages_at_each_level_are_one_round_for_each(chain):
    query = """{ country(path: "US") { id children(first: 20) { nodes { id children(first: 20) { nodes { id
      children(first: 20) { nodes { id children(first: 20) { nodes { id } } } } } } } } } }"""
    reply = await Client(chain, Location).ask(query)
    assert reply.rounds <= 5
    assert reply.units <= 250


@pytest.mark.parametrize(("field", "path"), [("country", "US"), ("state", "US/CA"), ("city", "US/CA/San Diego")])
async def test_all_stores_below_a_place_are_one_read_for_each_tier_that_holds_stores(chain, field, path):
    asked = "id descendantCount(level: STORE) descendants(level: STORE) { nodes { id } }"
    query = f'{{ {field}(path: "{path}") {{ {asked} }} }}'
    reply = await Client(chain, Location, max_nodes=50_000).ask(query)
    stores = reply.data[field]["descendants"]["nodes"]
    assert len(stores) == reply.data[field]["descendantCount"] > 10
    assert len(reply.witness.spans) <= 3
    assert all(span.index.name in ("BY_LEVEL", "TABLE") for span, _, _ in reply.witness.spans)
    assert reply.rounds == 2
    assert reply.items <= 2 * len(stores) + 2


async def test_many_nodes_by_id_from_three_hierarchies_are_read_in_hundreds(tables):
    async with open_store(tables["demo"]) as store:
        if not (await Client(store, DriveNode).ask("{ drives { nodes { id } } }")).data["drives"]["nodes"]:
            files = [(("d", f"f{n}"), "FILE") for n in range(60)]
            await plant(store, DriveNode, [(("d",), "DRIVE"), *files])
        client = Client(store, Location, CategoryNode, DriveNode)
        found = await client.ask(
            '{ country(path: "US") { descendants(first: 100) { nodes { id } } } '
            'category(path: "Electronics") { descendants(first: 40) { nodes { id } } } '
            'drive(path: "d") { children { nodes { id } } } }'
        )
        lists = [next(iter(one.values()))["nodes"] for one in found.data.values()]
        ids = [one["id"] for some in lists for one in some][:200]
        assert len(ids) == 200
        parts = " ".join(
            f"... on {kind} {{ parent {{ id }} ancestors {{ id }} }}"
            for kind in ("Location", "CategoryNode", "DriveNode")
        )
        reply = await client.ask(f"query ($ids: [ID!]!) {{ nodes(ids: $ids) {{ id {parts} }} }}", ids=ids)
    assert all(one["ancestors"][0] for one in reply.data["nodes"])
    assert reply.requests <= 2 + 3 + 4
    assert reply.rounds <= 3


async def test_counts_of_a_thousand_siblings_cost_nothing_beyond_them(chain):
    client = Client(chain, Location)
    plain, counted = [
        await client.ask(f'{{ state(path: "US/CA") {{ children(first: 1000) {{ nodes {{ id {more} }} }} }} }}')
        for more in ("", "childCount descendantCount d: descendantCount(level: STORE) children { totalCount }")
    ]
    assert (counted.requests, counted.items, counted.units) == (plain.requests, plain.items, plain.units)


async def test_two_hierarchies_in_one_request_share_its_rounds(shown):
    reply = await shown.ask(
        '{ country(path: "US") { children { nodes { id children { nodes { id } } } } } '
        'category(path: "Electronics") { children { nodes { id children { nodes { id } } } } } }'
    )
    assert reply.requests <= 1 + 1 + 4, "the nodes; all of the country; the four tiers that the category has"
    assert reply.rounds == 2


async def test_the_same_list_under_aliases_is_read_once(chain):
    reply = await Client(chain, Location).ask(
        '{ state(path: "US/NE") { a: children(first: 3) { nodes { id } } b: children(first: 5) { nodes { id } } '
        "c: children { nodes { id } } d: children(last: 2) { nodes { id } } e: children(level: CITY) { totalCount } } }"
    )
    assert len(reply.witness.spans) == 1
    short, long, whole = (reply.data["state"][alias]["nodes"] for alias in "abc")
    assert (short, long) == (whole[:3], whole[:5])
    assert reply.data["state"]["d"]["nodes"] == whole[-2:]


# -- counts of roots: they are in the versions of their trees, which one BatchGetItem reads ----------------------------

TREES = 130
BELOW = {f"r{number:03}": 1 + number % 3 for number in range(TREES)}


@pytest.fixture
async def roots(store: Store) -> Client:
    rows = [((root,), "CATEGORY") for root in BELOW]
    rows += [((root, f"c{number}"), "CATEGORY") for root, count in BELOW.items() for number in range(count)]
    await plant(store, CategoryNode, rows)
    return Client(store, CategoryNode)


VERSIONS_OF_HIERARCHY = 1  # a list of roots reads it too, since moves may run from and to roots


def rounds_before(store: Store) -> int:
    """SQLite reads that version first, DynamoDB in the same round as the roots."""
    return 0 if store.version() is None else 1


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ("key childCount", 0),
        ("descendantCount", 1),
        ("descendantCount(level: CATEGORY)", 1),
        ("key children(first: 1) { totalCount } few: descendantCount", 1),
        ("descendants(first: 0) { totalCount }", 1),
    ],
)
async def test_a_page_of_roots_reads_the_versions_of_its_trees_only_for_counts(
    roots: Client, store: Store, fields: str, more: int
) -> None:
    reply = await roots.ask(f"{{ categories(first: 50) {{ nodes {{ {fields} }} }} }}")
    assert len(reply.data["categories"]["nodes"]) == 50
    assert reply.requests == 1 + VERSIONS_OF_HIERARCHY + more
    assert reply.items == 51 + VERSIONS_OF_HIERARCHY + 50 * more
    assert reply.rounds == 1 + rounds_before(store) + more


@pytest.mark.both_stores
async def test_the_counts_of_all_roots_are_read_in_hundreds(roots: Client, store: Store) -> None:
    reply = await roots.ask("{ categories { edges { node { key descendantCount } } } }")
    found = {edge["node"]["key"]: edge["node"]["descendantCount"] for edge in reply.data["categories"]["edges"]}
    assert found == BELOW
    assert reply.requests == 1 + VERSIONS_OF_HIERARCHY + 2
    assert reply.rounds == 2 + rounds_before(store)


async def test_lists_below_roots_and_their_counts_share_the_versions(roots: Client) -> None:
    lists = "children { nodes { key } }"
    plain, counted = [
        await roots.ask(f"{{ categories(first: 20) {{ nodes {{ {more} {lists} }} }} }}")
        for more in ("", "descendantCount d: descendants { totalCount }")
    ]
    assert (counted.requests, counted.rounds, counted.units) == (plain.requests, plain.rounds, plain.units)


@pytest.mark.parametrize("way", ["", "... on CategoryNode {", "... on Category {"], ids=["plain", "interface", "level"])
async def test_counts_are_read_wherever_a_fragment_selects_them(roots: Client, way: str) -> None:
    close = "}" if way else ""
    reply = await roots.ask(f"{{ categories(first: 3) {{ nodes {{ key {way} descendantCount {close} }} }} }}")
    assert [node["descendantCount"] for node in reply.data["categories"]["nodes"]] == [1, 2, 3]


@pytest.mark.both_stores
async def test_a_root_by_path_costs_the_same_with_its_counts(roots: Client) -> None:
    plain, counted = [
        await roots.ask(f'{{ category(path: "r002") {{ key {more} }} }}') for more in ("", "childCount descendantCount")
    ]
    assert counted.data["category"]["descendantCount"] == 3
    assert counted.requests == plain.requests == 1
    assert (counted.rounds, counted.items) == (plain.rounds, plain.items)


async def test_the_root_of_a_deeper_node_has_its_counts_in_the_same_request(roots: Client) -> None:
    reply = await roots.ask(
        '{ category(path: "r002/c0") { ancestors { descendantCount } parent { descendantCount } } }'
    )
    assert reply.data["category"] == {"ancestors": [{"descendantCount": 3}], "parent": {"descendantCount": 3}}
    assert (reply.requests, reply.rounds) == (1, 1)


async def test_a_root_without_children_takes_no_read_of_lists_below_it(store: Store) -> None:
    await plant(store, CategoryNode, [(("a",), "CATEGORY"), (("b",), "CATEGORY")])
    plain, nested = [
        await Client(store, CategoryNode).ask(f"{{ categories {{ nodes {{ key {more} }} }} }}")
        for more in ("", "descendants { nodes { key } } children { nodes { key } }")
    ]
    if store.version() is not None:
        assert nested.requests == plain.requests
    assert [node["descendants"]["nodes"] for node in nested.data["categories"]["nodes"]] == [[], []]
