"""Node budget: rejected before a read where the counts allow it; no list is ever truncated silently."""

import pytest

from resolvers.session.cache import PageCache
from store.engine import Store
from tests.model import Ground, Model
from tests.systems.asking import Client

pytestmark = pytest.mark.both_stores

NODES = {("r",): "AREA"} | {("r", area): "AREA" for area in "abcd"}
NODES |= {("r", area, f"p{plot:02}"): "PLOT" for area in "abcd" for plot in range(30)}
NODES |= {(f"s{number:02}",): "AREA" for number in range(20)}


@pytest.fixture
async def planted(store: Store) -> Store:
    await Model("ground", NODES).plant(store)
    return store


async def test_a_list_too_long_by_its_counts_is_rejected_without_a_read(planted):
    """On DynamoDB the counts of a tree are known beforehand to a server that has read its version before."""
    client = Client(planted, Ground, max_nodes=100, page_cache=PageCache(0))
    await client.ask('{ area(path: "r") { path } }')
    reply = await client.ask('{ area(path: "r") { path descendants { nodes { path } } } }')
    assert reply.data == {"area": {"path": "r", "descendants": None}}
    (error,) = reply.errors
    assert error["extensions"] == {"code": "BUDGET_EXCEEDED"}
    assert error["message"] == (
        "The descendants of r would be 124 nodes, and this request may return 99 more. "
        "Ask for fewer with first: and go on with after: in the next request, or raise CLADE_MAX_NODES."
    )
    assert reply.witness.spans == []


async def test_a_list_of_an_unknown_tree_is_read_no_further_than_the_budget(planted):
    reply = await Client(planted, Ground, max_nodes=100).ask('{ area(path: "r") { descendants { nodes { path } } } }')
    assert [error["extensions"]["code"] for error in reply.errors] == ["BUDGET_EXCEEDED"]
    assert reply.items <= 2 + 99 + 2, "the node, the version of its tree, and two nodes more than are left"


async def test_prefetched_levels_beyond_the_budget_are_rejected_without_a_read(planted):
    query = '{ area(path: "r") { children { nodes { path children { nodes { path } } } } } }'
    reply = await Client(planted, Ground, max_nodes=100).ask(query)
    assert [error["extensions"]["code"] for error in reply.errors] == ["BUDGET_EXCEEDED"]
    assert reply.witness.spans == []


LISTS = [
    ('{ area(path: "r") { children { nodes { path } } } }', 1 + 4, 1),
    ('{ area(path: "r/a") { children { nodes { path } } } }', 1 + 30, 1),
    ('{ area(path: "r/a") { children(first: 7) { nodes { path } } } }', 1 + 7, 1),
    ('{ area(path: "r") { descendants(level: PLOT) { nodes { path } } } }', 1 + 120, 0),
    ('{ area(path: "r") { descendants(level: PLOT, maxDepth: 2) { nodes { path } } } }', 1 + 120, 0),
    ('{ area(path: "r") { descendants(maxDepth: 1) { nodes { path } } } }', 1 + 4, 2),
    ('{ area(path: "r") { descendants(where: {path: {gte: "r/b"}}) { nodes { path } } } }', 1 + 93, 1),
    ('{ area(path: "r/a") { children(where: {key: {gte: "p10", lt: "p20"}}) { nodes { path } } } }', 1 + 10, 1),
    ('{ plot(path: "r/a/p03") { parent { children { nodes { path } } } } }', 1 + 1 + 30, 0),
    ("{ grounds { nodes { path } } }", 21, 1),
    ('{ plot(path: "r/a/p03") { ancestors { path } } }', 1 + 2, 0),
    ('{ nodes(ids: ["ground:n1", "ground:n2", "ground:n3"]) { id } }', 3, 0),
]


async def test_a_list_is_complete_or_rejected_and_never_truncated(planted):
    """`least` is the number of nodes of the response, `reads` the ranges that may be read before it is rejected."""
    for query, least, reads in LISTS:
        whole = await Client(planted, Ground, max_nodes=least).ask(query)
        assert not whole.errors, query
        refused = await Client(planted, Ground, max_nodes=least - 1).ask(query)
        assert {error["extensions"]["code"] for error in refused.errors} == {"BUDGET_EXCEEDED"}, query
        assert len(refused.witness.spans) <= reads, query
        assert refused.items <= least + 5, f"{query}: nothing is read much further than the budget goes"


async def test_counts_spend_no_nodes(planted):
    reply = await Client(planted, Ground, max_nodes=1).ask(
        '{ area(path: "r") { children { totalCount } descendants { totalCount } } }'
    )
    assert not reply.errors
    assert reply.data["area"]["descendants"]["totalCount"] == 124
