"""What the counts of roots cost: they are in the versions of their trees, which one BatchGetItem reads."""

import pytest

from graph.hierarchies.categories import CategoryNode
from store.engine.protocol import Store
from tests.systems.asking import Client, plant

TREES = 130
BELOW = {f"r{number:03}": 1 + number % 3 for number in range(TREES)}


@pytest.fixture
async def client(store: Store) -> Client:
    rows = [((root,), "CATEGORY") for root in BELOW]
    rows += [((root, f"c{number}"), "CATEGORY") for root, count in BELOW.items() for number in range(count)]
    await plant(store, CategoryNode, rows)
    return Client(store, CategoryNode)


VERSIONS_OF_HIERARCHY = 1  # that a list of roots reads too, since moves may run from and to roots


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
    client: Client, store: Store, fields: str, more: int
) -> None:
    reply = await client.ask(f"{{ categories(first: 50) {{ nodes {{ {fields} }} }} }}")
    assert len(reply.data["categories"]["nodes"]) == 50
    assert reply.requests == 1 + VERSIONS_OF_HIERARCHY + more
    assert reply.items == 51 + VERSIONS_OF_HIERARCHY + 50 * more
    assert reply.rounds == 1 + rounds_before(store) + more


@pytest.mark.both_stores
async def test_the_counts_of_all_roots_are_read_in_hundreds(client: Client, store: Store) -> None:
    reply = await client.ask("{ categories { edges { node { key descendantCount } } } }")
    found = {edge["node"]["key"]: edge["node"]["descendantCount"] for edge in reply.data["categories"]["edges"]}
    assert found == BELOW
    assert reply.requests == 1 + VERSIONS_OF_HIERARCHY + 2
    assert reply.rounds == 2 + rounds_before(store)


async def test_lists_below_roots_and_their_counts_share_the_versions(client: Client) -> None:
    lists = "children { nodes { key } }"
    plain, counted = [
        await client.ask(f"{{ categories(first: 20) {{ nodes {{ {more} {lists} }} }} }}")
        for more in ("", "descendantCount d: descendants { totalCount }")
    ]
    assert (counted.requests, counted.rounds, counted.units) == (plain.requests, plain.rounds, plain.units)


@pytest.mark.parametrize("way", ["", "... on CategoryNode {", "... on Category {"], ids=["plain", "interface", "level"])
async def test_counts_are_read_wherever_a_fragment_selects_them(client: Client, way: str) -> None:
    close = "}" if way else ""
    reply = await client.ask(f"{{ categories(first: 3) {{ nodes {{ key {way} descendantCount {close} }} }} }}")
    assert [node["descendantCount"] for node in reply.data["categories"]["nodes"]] == [1, 2, 3]


@pytest.mark.both_stores
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


async def test_the_root_of_nodes_below_listed_roots_has_its_counts(client: Client) -> None:
    reply = await client.ask(
        "{ categories(first: 3) { nodes { children(first: 1) { nodes { ancestors { descendantCount } } } } } }"
    )
    found = [
        node["children"]["nodes"][0]["ancestors"][0]["descendantCount"] for node in reply.data["categories"]["nodes"]
    ]
    assert found == [1, 2, 3]


async def test_a_root_without_children_takes_no_read_of_lists_below_it(store: Store) -> None:
    await plant(store, CategoryNode, [(("a",), "CATEGORY"), (("b",), "CATEGORY")])
    plain, nested = [
        await Client(store, CategoryNode).ask(f"{{ categories {{ nodes {{ key {more} }} }} }}")
        for more in ("", "descendants { nodes { key } } children { nodes { key } }")
    ]
    if store.version() is not None:
        assert nested.requests == plain.requests
    assert [node["descendants"]["nodes"] for node in nested.data["categories"]["nodes"]] == [[], []]
