"""The systems that must work, each with its data and the number of requests that its questions take, on both stores."""

import pytest

from examples.drive import DriveNode
from graph.hierarchies.attribute import Decimal, attribute
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from tests.systems.asking import Client, plant

pytestmark = pytest.mark.both_stores


class Event(Node, hierarchy="event", many="events"):
    """Customers and devices with what happened to them over time."""


class Customer(Event, under=None):
    """A customer, or a device."""


class Order(Event, under=[Customer]):
    """An order; its key begins with its date."""

    total: Decimal | None = attribute("What it came to.")


class Reading(Event, under=[Customer]):
    """A reading of a device; its key is its time."""

    value: float | None = attribute("What was read.")


def paths(listing) -> list[str]:
    return [node["path"] for node in listing["nodes"]]


# -- 1: stores of a coffee chain ---------------------------------------------------------------------------------------

CHAIN = [
    (("USA", "NE", "OMAHA", "68118"), "100 St Andrews lane", 921),
    (("USA", "NY", "NEWYORKCITY", "10001"), "675 6th Ave", 1211),
    (("USA", "NY", "NEWYORKCITY", "10019"), "1500 Broadway", 1924),
    (("FRANCE", "ILE-DE-FRANCE", "PARIS", "75001"), "26 Avenue de l'Opera", 2102),
]


@pytest.fixture
async def chain(store):
    rows = {}
    for path, street, feet in CHAIN:
        for length, level in enumerate(["COUNTRY", "STATE", "CITY", "POSTAL_CODE"], start=1):
            rows.setdefault(path[:length], (path[:length], level))
        rows[*path, "1"] = ((*path, "1"), "STORE", street, {"street": street, "square_feet": feet})
    await plant(store, Location, list(rows.values()))
    return Client(store, Location)


@pytest.mark.parametrize(
    ("place", "streets"),
    [
        ("USA", ["100 St Andrews lane", "675 6th Ave", "1500 Broadway"]),
        ("USA/NY", ["675 6th Ave", "1500 Broadway"]),
        ("USA/NY/NEWYORKCITY", ["675 6th Ave", "1500 Broadway"]),
        ("USA/NY/NEWYORKCITY/10019", ["1500 Broadway"]),
        ("FRANCE", ["26 Avenue de l'Opera"]),
    ],
)
async def test_all_stores_at_any_granularity_are_one_query(chain, place, streets):
    query = "{ ... on Store { street squareFeet } }"
    reply = await chain.ask(f'{{ location(path: "{place}") {{ descendants(level: STORE) {{ nodes {query} }} }} }}')
    assert [one["street"] for one in reply.data["location"]["descendants"]["nodes"]] == streets
    assert len(reply.witness.spans) == 1
    assert reply.requests == 2, "the place and its stores"


# -- 2: a product catalogue --------------------------------------------------------------------------------------------


@pytest.fixture
async def catalogue(store):
    tv, laptop = ("Electronics", "TV-LG-55"), ("Electronics", "LAPTOP-DELL-XPS")
    rows = [
        (("Electronics",), "CATEGORY"),
        (tv, "PRODUCT", "LG 55-inch 4K Smart TV", {"brand": "LG", "price": "799.99"}),
        ((*tv, "Black"), "VARIANT", None, {"stock": 15}),
        ((*tv, "Silver"), "VARIANT", None, {"stock": 8}),
        (laptop, "PRODUCT", "Dell XPS 13 Laptop", {"brand": "Dell", "price": "1299.00"}),
        ((*laptop, "Silver"), "VARIANT", None, {"stock": 25}),
    ]
    await plant(store, CategoryNode, rows)
    return Client(store, CategoryNode)


async def test_all_products_with_all_of_their_variants_are_one_query_nested(catalogue):
    reply = await catalogue.ask(
        '{ category(path: "Electronics") { children { nodes { name ... on Product { price } '
        "children { nodes { name ... on Variant { stock } } } } } } }"
    )
    assert reply.data["category"]["children"]["nodes"] == [
        {"name": "Dell XPS 13 Laptop", "price": "1299.00", "children": {"nodes": [{"name": "Silver", "stock": 25}]}},
        {
            "name": "LG 55-inch 4K Smart TV",
            "price": "799.99",
            "children": {"nodes": [{"name": "Black", "stock": 15}, {"name": "Silver", "stock": 8}]},
        },
    ]
    assert (reply.requests, reply.rounds) == (2, 2)


# -- 3: file drives ----------------------------------------------------------------------------------------------------

FILES = {"photos/2026/beach.jpg": 284_910, "photos/2026/sunset.jpg": 512_004, "docs/taxes.pdf": 88_210, "photos-old": 1}


@pytest.fixture
async def drives(store):
    rows = [(("a91",), "DRIVE"), (("a92",), "DRIVE"), (("a92", "photos"), "FOLDER"), (("a92", "photos", "no"), "FILE")]
    for folder in ("photos", "photos/2026", "docs"):
        rows.append((("a91", *folder.split("/")), "FOLDER"))
    rows += [(("a91", *name.split("/")), "FILE", None, {"bytes": size}) for name, size in FILES.items()]
    rows += [(("a91", "docs", name), "FILE") for name in ("a/b#c.txt", "100%.txt")]
    await plant(store, DriveNode, rows)
    return Client(store, DriveNode)


async def test_a_folder_with_all_below_it_is_one_query_in_path_order(drives):
    reply = await drives.ask('{ folder(path: "a91/photos") { descendants { nodes { path ... on File { bytes } } } } }')
    assert reply.data["folder"]["descendants"]["nodes"] == [
        {"path": "a91/photos/2026"},
        {"path": "a91/photos/2026/beach.jpg", "bytes": 284_910},
        {"path": "a91/photos/2026/sunset.jpg", "bytes": 512_004},
    ]
    assert reply.requests == 2


async def test_one_folders_listing_is_one_query_and_holds_nothing_deeper(drives):
    reply = await drives.ask('{ drive(path: "a91") { children { nodes { path } } } }')
    assert paths(reply.data["drive"]["children"]) == ["a91/photos-old", "a91/docs", "a91/photos"]
    assert reply.requests == 2


async def test_names_with_what_divides_paths_and_keys_are_safe(drives):
    reply = await drives.ask('{ folder(path: "a91/docs") { children { nodes { path key } } } }')
    assert [one["key"] for one in reply.data["folder"]["children"]["nodes"]] == ["100%.txt", "a/b#c.txt", "taxes.pdf"]
    found = await drives.ask('{ file(path: "a91/docs/a%2Fb#c.txt") { key parent { path } } }')
    assert found.data["file"] == {"key": "a/b#c.txt", "parent": {"path": "a91/docs"}}


async def test_one_account_never_sees_anothers_drive(drives):
    reply = await drives.ask('{ drive(path: "a91") { descendants { totalCount nodes { path } } } }')
    assert all(path.startswith("a91/") for path in paths(reply.data["drive"]["descendants"]))
    assert all("a92" not in span.partition for span, _, _ in reply.witness.spans)


# -- 4: geography at six levels ----------------------------------------------------------------------------------------


@pytest.fixture
async def geography(store):
    levels = ["COUNTRY", "REGION", "STATE", "COUNTY", "CITY", "NEIGHBORHOOD"]
    rows, line = [(("C",), "COUNTRY")], [("C",)]
    for level in levels[1:]:
        line = [(*path, f"{level[:2]}{number}") for path in line for number in range(2)]
        rows += [(path, level) for path in line]
    await plant(store, Location, rows)
    return Client(store, Location)


@pytest.mark.parametrize(
    ("level", "count"), [("REGION", 2), ("STATE", 4), ("COUNTY", 8), ("CITY", 16), ("NEIGHBORHOOD", 32)]
)
async def test_a_list_at_any_level_of_aggregation_is_one_query(geography, level, count):
    asked = f"descendantCount(level: {level}) descendants(level: {level}) {{ nodes {{ path }} }}"
    reply = await geography.ask(f'{{ country(path: "C") {{ {asked} }} }}')
    found = paths(reply.data["country"]["descendants"])
    assert (len(found), reply.data["country"]["descendantCount"]) == (count, count)
    assert found == sorted(found)
    assert reply.requests == 2


async def test_a_list_below_any_node_is_one_query(geography):
    reply = await geography.ask('{ state(path: "C/RE1/ST0") { descendants(level: NEIGHBORHOOD) { nodes { path } } } }')
    assert len(paths(reply.data["state"]["descendants"])) == 8
    assert reply.requests == 2


# -- 6: children in the order of time ----------------------------------------------------------------------------------


@pytest.fixture
async def events(store):
    orders = [(("ann", f"2026-{month:02}-{day:02}#{day}"), "ORDER") for month in (9, 10, 11) for day in (1, 15, 30)]
    readings = [(("d7", f"2026-10-05T{hour:02}:00:00Z"), "READING") for hour in range(24)]
    await plant(store, Event, [(("ann",), "CUSTOMER"), (("d7",), "CUSTOMER"), *orders, *readings])
    return Client(store, Event)


async def test_the_orders_of_a_month_are_one_query(events):
    query = '{ customer(path: "ann") { children(where: {key: {startsWith: "2026-10"}}) { nodes { path } } } }'
    reply = await events.ask(query)
    assert paths(reply.data["customer"]["children"]) == [f"ann/2026-10-{day}#{int(day)}" for day in ("01", "15", "30")]
    assert (reply.requests, reply.items) == (2, 2 + 3), "the customer and the stamp; the three orders"


async def test_the_latest_readings_before_a_moment_are_one_query_of_so_many_items(events):
    query = (
        '{ customer(path: "d7") { children(where: {key: {lt: "2026-10-05T12:00:00Z"}}, '
        "first: 2, orderBy: {field: KEY, direction: DESC}) { nodes { path } } } }"
    )
    reply = await events.ask(query)
    assert paths(reply.data["customer"]["children"]) == ["d7/2026-10-05T11:00:00Z", "d7/2026-10-05T10:00:00Z"]
    assert (reply.requests, reply.items) == (2, 2 + 3), "one more than asked for tells that there are others"
