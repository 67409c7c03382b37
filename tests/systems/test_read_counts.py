"""What queries over real data cost at most: requests, rounds, items and read units."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from commands.importing.columns import columns
from examples.drive import DriveNode
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from resolvers.children import ChildrenRequest, one_query_per_level
from resolvers.planning.read_cost import ReadOption
from resolvers.planning.sibling_runs import sorted_owners
from store.connect import open_store
from store.engine.protocol import Store
from store.transfer.formats.columns import read_csv
from store.transfer.formats.lines import read_taxonomy, taxonomy_level
from store.transfer.formats.matching import ColumnOptions
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Rejection
from tests.real_files import STARBUCKS, TAXONOMY, real_file
from tests.selection import thorough
from tests.systems.asking import BOUNDLESS, Client, count_nodes, plant, write

STATES = "AK AL AR CA DC DE HI IA ID KS ME MT ND NE NH NM RI SD VT WV WY".split()  # of a plain run
LEVELS = ["country=Country", "state=State/Province", "city=City", "postal_code=Postcode", "store=Store Number"]
STATES_TO_STORES = """{ country(path: "US") { id children { nodes { id children { nodes { id children { nodes { id
  children { nodes { id } } } } } } } } } }"""


def stores_of_the_chain() -> list[ImportPlan]:
    wanted = ImportPlan(Location.definition())
    form = columns(
        wanted.hierarchy, ColumnOptions(LEVELS, ["store=Store Name"], [], ["store.street=Street Address"], ["city"])
    )
    for _, row in read_csv(form, real_file(STARBUCKS)):
        if not isinstance(row, Rejection) and row.path[0] == "US" and (thorough() or row.path[1] in STATES):
            wanted.take(row)
    return [wanted]


def taxonomy() -> list[ImportPlan]:
    wanted = ImportPlan(CategoryNode.definition())
    for _, row in read_taxonomy(taxonomy_level(wanted.hierarchy), real_file(TAXONOMY)):
        wanted.take(row)
    return [wanted]


SOURCES = {"chain": stores_of_the_chain, "taxonomy": taxonomy}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> dict[str, str]:
    """The addresses of SQLite files that hold each source and the demo data, imported once for all tests."""
    place = tmp_path_factory.mktemp("real")
    urls = {name: f"sqlite:///{place / name}.db" for name in SOURCES}
    for name, source in SOURCES.items():
        asyncio.run(_import(urls[name], source()))
    urls["demo"] = f"sqlite:///{shutil.copy(demo_file, place / 'demo.db')}"
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


async def _import(url: str, wanted: list[ImportPlan]) -> None:
    async with open_store(url) as store:
        await store.create()
        for one in wanted:
            await load(store, one, LoadResult())


async def _copy(source: str, target: str) -> None:
    """All items but the log and those of search, which no query here reads; importing once more would take minutes."""
    with sqlite3.connect(source.removeprefix("sqlite:///")) as connection:
        bodies = connection.execute(
            "SELECT body FROM items WHERE sk NOT LIKE '!0%' AND pk NOT LIKE 'words/%' AND pk NOT LIKE 'cells/%'"
        ).fetchall()
    async with open_store(target) as store:
        await store.create()
        await write(store, [msgspec.msgpack.decode(body) for (body,) in bodies])


@pytest.fixture
async def chain(tables: dict[str, str]) -> AsyncIterator[Store]:
    async with open_store(tables["chain"]) as store:
        yield store


@pytest.fixture
async def google(tables: dict[str, str]) -> AsyncIterator[Client]:
    async with open_store(tables["taxonomy"]) as store:
        yield Client(store, CategoryNode)


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


async def test_one_state_of_the_same_costs_what_it_holds(chain):
    reply = await Client(chain, Location).ask(
        '{ state(path: "US/NE") { id children { nodes { id children { nodes { id children { nodes { id } } } } } } } }'
    )
    assert reply.rounds == 2
    assert reply.items <= count_nodes(reply.data) + 1


async def test_pages_at_each_level_cost_at_most_twice_the_cheaper_way(chain, monkeypatch):
    query = """{ country(path: "US") { id children(first: 20) { nodes { id children(first: 20) { nodes { id
      children(first: 20) { nodes { id children(first: 20) { nodes { id } } } } } } } } } }"""
    client = Client(chain, Location)
    reply = await client.ask(query)
    assert reply.rounds <= 5
    costs = {}
    for way in ("singles", "slices"):
        with monkeypatch.context() as patch:
            patch.setattr(ChildrenRequest, "plan_reads", _forced(way))
            costs[way] = (await client.ask(query)).units
    print(
        f"first: 20 at each level: {reply.units} units; "
        f"by single queries {costs['singles']}, by slices {costs['slices']}"
    )
    assert reply.units <= 2 * min(costs.values())


def _forced(way: str):
    """The planner's choice for children, taken from it."""

    def plan_reads(lists, tree):
        if way == "slices" and len(sorted_owners(lists)) > 1:
            return one_query_per_level(lists, tree)
        return ReadOption.all(requested.separate_query(tree) for requested in lists)

    return staticmethod(plan_reads)


async def test_states_with_their_first_three_cities_are_one_read_each_or_a_slice(shown):
    reply = await shown.ask(
        '{ country(path: "US") { id children { nodes { id children(first: 3) { nodes { id } } } } } }'
    )
    states = reply.data["country"]["children"]["nodes"]
    assert len(states) >= 50
    assert all(len(state["children"]["nodes"]) <= 3 for state in states)
    assert reply.requests <= len(states) + 2
    assert reply.rounds <= 3


async def test_the_whole_taxonomy_nested_is_one_read_for_each_root(google):
    nested = "{ id }"
    for _ in range(7):
        nested = f"{{ id children {{ nodes {nested} }} }}"
    reply = await google.ask(f"{{ categories {{ nodes {nested} }} }}")
    roots = len(reply.data["categories"]["nodes"])
    assert count_nodes(reply.data) == 5_595
    assert reply.requests <= roots + 3
    assert reply.rounds == (3 if reply.witness.version() is None else 4), "SQLite reads the version of the roots first"
    assert reply.items == 5_595 + roots + 1, "each node once, and a stamp for each tree and for the hierarchy"


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


async def test_a_catalogue_nested_is_three_requests(shown):
    reply = await shown.ask(
        '{ category(path: "Electronics") { id children(level: PRODUCT) { nodes { id children { nodes { id } } } } '
        "children2: children { nodes { id children { nodes { id children { nodes { id } } } } } } } }"
    )
    assert count_nodes(reply.data) > 20
    assert reply.requests <= 3


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


async def test_places_without_children_cost_nothing(chain):
    client = Client(chain, Location)
    plain, nested = [
        await client.ask(f'{{ city(path: "US/NE/OMAHA") {{ descendants(level: STORE) {{ nodes {{ id {more} }} }} }} }}')
        for more in (
            "",
            "children { nodes { id } } descendants { nodes { id } } few: children(first: 2) { edges { cursor } }",
        )
    ]
    assert nested.requests == plain.requests


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
