"""Sorted and filtered lists: what they read, what they spend, and which arguments are refused."""

import json
from decimal import Decimal
from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from resolvers.session.budget import COMPARED_A_UNIT, BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.sorting.conditions import MAX_CHARACTERS, MAX_CONDITIONS, MAX_DEPTH
from resolvers.sorting.ordering import MAX_ORDER_FIELDS, OrderField, Ordering
from resolvers.sorting.values import NodeValue
from store.connect import open_store
from store.model.attributes import Kind
from store.sqlite.store import SQLiteStore
from tests.model import Ground
from tests.systems.asking import Client, plant

NODES = [(("r",), "AREA")] + [(("r", f"a{area}"), "AREA") for area in range(10)]
NODES += [(("r", f"a{area}", f"p{plot}"), "PLOT") for area in range(10) for plot in range(10)]
NODES += [(("s",), "AREA")]
NESTED = '{ area(path: "r") { children%s { nodes { path children%s { nodes { path } } } } } }'
ARRANGED = ["(orderBy: [{field: NAME, direction: DESC}])", '(where: {name: {contains: "3"}})']
LISTS = [
    '{ area(path: "r") { children%s { nodes { path } } } }',
    '{ area(path: "r") { descendants(level: PLOT%s) { nodes { path } } } }',
    '{ area(path: "r") { descendants(maxDepth: 1%s) { nodes { path } totalCount } } }',
    "{ grounds%s { nodes { path } } }",
]


def reads(reply: Any) -> tuple[Any, ...]:
    return reply.requests, reply.rounds, reply.items, reply.units


def count_paths(data: Any) -> int:
    """How many nodes an answer holds that tell their paths; the one at its top does not."""
    return json.dumps(data).count('"path"') + ("area" in data)


def inserted(query: str, arguments: str) -> str:
    """A query with these arguments, among those that it has already."""
    has_others = "(level" in query or "(max" in query
    return query % (arguments and f", {arguments[1:-1]}" if has_others else arguments)


@pytest.mark.parametrize("arguments", [*ARRANGED, '(first: 2, orderBy: [{field: NAME}], where: {name: {ne: ""}})'])
async def test_a_sorted_or_filtered_list_reads_what_the_whole_list_reads(store, arguments):
    await plant(store, Ground, NODES)
    asked = Client(store, Ground)
    for query in LISTS:
        plain, arranged = await asked.ask(inserted(query, "")), await asked.ask(inserted(query, arguments))
        assert not arranged.errors
        assert (query, reads(arranged)) == (query, reads(plain))
        assert arranged.nodes == count_paths(arranged.data), "only nodes that are returned are spent as returned"


async def test_sorted_lists_below_sorted_lists_are_read_in_one_round(store):
    await plant(store, Ground, NODES)
    asked = Client(store, Ground)
    plain = await asked.ask(NESTED % ("", ""))
    for inner in ARRANGED:
        nested = await asked.ask(NESTED % (ARRANGED[0], inner))
        assert reads(nested) == reads(plain)


async def test_below_a_filtered_list_only_the_lists_of_its_nodes_are_read(store):
    await plant(store, Ground, NODES)
    reply = await Client(store, Ground).ask(NESTED % (ARRANGED[1], ""))
    assert reply.data["area"]["children"]["nodes"] == [
        {"path": "r/a3", "children": {"nodes": [{"path": f"r/a3/p{plot}"} for plot in range(10)]}}
    ]
    assert reply.nodes == 1 + 1 + 10


async def test_a_list_longer_than_the_read_units_is_refused_before_it_is_read(store):
    await plant(store, Ground, [(("r",), "AREA"), *[(("r", f"p{plot}"), "PLOT") for plot in range(250)]])
    asked = Client(store, Ground, budget=BudgetLimits(read_units=12.0))
    lookup = await asked.ask('{ area(path: "r") { path childCount } }')
    for arguments in ("orderBy: [{field: NAME}], first: 1", 'where: {name: {eq: "p3"}}, first: 1'):
        reply = await asked.ask(f'{{ area(path: "r") {{ path descendants({arguments}) {{ nodes {{ path }} }} }} }}')
        assert reply.data == {"area": {"path": "r", "descendants": None}}
        (error,) = reply.errors
        assert error == {
            "message": (
                "The descendants of r would be 250 nodes, and this request may sort and filter 240 more (20 a read "
                "unit). orderBy and where take the whole list: narrow it with level and conditions on key or path, or "
                "ask for pages by key or path, or raise CLADE_MAX_READ_UNITS."
            ),
            "path": ["area", "descendants"],
            "extensions": {"code": "BUDGET_EXCEEDED"},
        } | {"locations": error["locations"]}
        # On DynamoDB a list of a path comes beside the node, up to the budget; its counts are not known before.
        assert reply.items == (lookup.items if isinstance(store, SQLiteStore) else lookup.items + 242)


async def test_a_cached_list_spends_what_it_was_sorted_from():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, Ground, NODES)
        asked = Client(store, Ground, budget=BudgetLimits(read_units=10.0), page_cache=PageCache(10_000_000))
        lists = [f"a{n}: descendants(orderBy: {{field: {by}}}, first: 1) {{ totalCount }}"
                 for n, by in enumerate(("NAME", "NOTE"))]  # fmt: skip
        for each in (*lists, lists[0]):
            assert not (await asked.ask(f'{{ area(path: "r") {{ {each} }} }}')).errors
        reply = await asked.ask(f'{{ area(path: "r") {{ {" ".join(lists)} }} }}')
        assert [error["path"] for error in reply.errors] == [["area", "a1"]]
        assert reply.requests == 0


async def test_nodes_that_are_returned_are_refused_before_they_are_sorted(store):
    await plant(store, Ground, NODES)
    for arguments in ("orderBy: [{field: NAME}]", "orderBy: [{field: NAME}], first: 60"):
        reply = await Client(store, Ground, max_nodes=50).ask(
            f'{{ area(path: "r") {{ descendants({arguments}) {{ nodes {{ path }} }} }} }}'
        )
        (error,) = reply.errors
        assert "may return 49 more" in error["message"]
    roots = await Client(store, Ground, max_nodes=1).ask('{ grounds(where: {key: {eq: "s"}}) { nodes { path } } }')
    assert roots.data == {"grounds": {"nodes": [{"path": "s"}]}}


@pytest.mark.both_stores
async def test_pages_of_a_long_sorted_list_are_one_read_of_it(store):
    """All products of a category by price; prices are unique."""
    count = 1_050
    prices = [f"{number * 7919 % count}.50" for number in range(count)]
    rows = [(("shop", f"p{number}"), "PRODUCT", f"P{number}", {"price": price}) for number, price in enumerate(prices)]
    await plant(store, CategoryNode, [(("shop",), "CATEGORY"), *rows])
    cache = PageCache(32_000_000, TreeVersionCache(0.0))
    asked = Client(store, CategoryNode, page_cache=cache)
    listed = "nodes { ... on Product { price } } pageInfo { endCursor hasNextPage } totalCount"
    query = f'{{ category(path: "shop") {{ children(orderBy: {{field: PRICE}}, first: 50%s) {{ {listed} }} }} }}'
    cold = await asked.ask(query % "")
    assert count <= cold.items <= count + 2
    assert cold.units < count / COMPARED_A_UNIT + 3, "nodes are no larger than the budget expects"
    await asked.ask(query % "")  # the version is settled
    found, after = [], ""
    while True:
        reply = await asked.ask(query % after)
        assert not reply.errors
        expected = (0, 0) if isinstance(store, SQLiteStore) else (1, 1.0)  # the version of the tree
        assert (reply.requests, reply.units) == expected
        page = reply.data["category"]["children"]
        assert (page["totalCount"], reply.nodes) == (count, 1 + len(page["nodes"]))
        found += [node["price"] for node in page["nodes"]]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = f', after: "{page["pageInfo"]["endCursor"]}"'
    assert found == sorted(prices, key=Decimal)
    assert cache.size_bytes < 500 * count, "a long list is cached packed"


PRICE, PIECES, SIZE = (
    OrderField(NodeValue(name, kind, members=("S", "M")))
    for name, kind in (("price", Kind.DECIMAL), ("pieces", Kind.INT), ("size", Kind.ENUM))
)


@pytest.mark.parametrize(
    "values",
    [None, {}, [], ["2"], ["2", 1, 1, 1], [2, 1, 1], ["NaN", 1, 1], ["two", 1, 1], ["2", "1", 1], ["2", True, 1],
     ["2", [1], 1], ["2", 1, "M"]],
)  # fmt: skip
def test_values_that_no_cursor_of_an_order_has_are_refused(values):
    order = Ordering((PRICE, PIECES, SIZE))
    assert order.checked(["2.50", 1.5, 1]) == [Decimal("2.5"), 1.5, 1]
    assert order.checked([None, None, None]) == [None, None, None]
    with pytest.raises(ValueError):  # noqa: PT011 - its message is shown to nobody
        order.checked(values)


ORDERED_BY = "NAME NOTE LEVEL CHILD_COUNT UPDATED_AT".split()[: MAX_ORDER_FIELDS + 1]
ORDER = ", ".join(f"{{field: {name}}}" for name in ORDERED_BY)
MANY = ", ".join('{name: {ne: "x"}}' for _ in range(MAX_CONDITIONS + 1))
REFUSED = [
    f"orderBy: [{ORDER}]",
    "orderBy: [{field: NAME}, {field: NAME, direction: DESC}]",
    f"where: {{and: [{MANY}]}}",
    f"where: {{or: [{', '.join(['{}'] * (MAX_CONDITIONS + 1))}]}}",
    f"where: {{or: [{', '.join(['{and: []}'] * (MAX_CONDITIONS + 1))}]}}",
    "where: " + "{not: " * MAX_DEPTH + '{key: {eq: "x"}}' + "}" * MAX_DEPTH,
    f'where: {{name: {{contains: "{"x" * (MAX_CHARACTERS + 1)}"}}}}',
    "where: {name: {eq: null}}",
    "where: {name: null}",
    "where: {not: null}",
    'orderBy: [{field: NAME, languages: ["no tag"]}]',
    'orderBy: [{field: LEVEL, languages: ["de"]}]',
    'where: {name: {eq: "x", languages: ["no tag"]}}',
    'where: {name: {languages: ["de"]}}',
    "orderBy: [{field: KEY}, {field: NAME}]",
    'where: {key: {lt: ""}}',
    'where: {path: {startsWith: "US/"}}',
    "level: []",
]


async def test_more_than_is_taken_is_refused_before_anything_is_read_and_as_much_is_answered(store):
    asked = Client(store, Ground)
    for arguments in REFUSED:
        reply = await asked.ask(f"{{ grounds({arguments}) {{ nodes {{ path }} }} }}")
        assert [error["extensions"]["code"] for error in reply.errors] == ["BAD_USER_INPUT"], arguments
        assert reply.requests == 0
    await plant(store, Ground, NODES)
    most = ", ".join('{name: {ne: "x"}}' for _ in range(MAX_CONDITIONS))
    deepest = "{not: " * (MAX_DEPTH - 1) + '{key: {eq: "r"}}' + "}" * (MAX_DEPTH - 1)
    operands = ", ".join(['"r"'] * 600)
    longest = f'{{name: {{ne: "{"x" * MAX_CHARACTERS}"}}}}'
    for where in (f"{{and: [{most}]}}", deepest, f"{{key: {{in: [{operands}]}}}}", longest):
        reply = await asked.ask(f"{{ grounds(where: {where}) {{ nodes {{ key }} }} }}")
        assert {"key": "r"} in reply.data["grounds"]["nodes"]


BOUNDED = [  # lists of r, their keys or number, and how many items are read beside the node and the version
    ('children(where: {key: {gte: "a2", lt: "a4"}})', ["a2", "a3"], 2),
    ('children(where: {key: {gte: "a2", lt: "a4"}}, orderBy: {field: POSITION, direction: DESC})', ["a3", "a2"], 2),
    ('children(first: 1, where: {key: {gte: "a2"}}, orderBy: {field: KEY})', ["a2"], 2),
    ('children(first: 2, where: {key: {lt: "a4"}}, orderBy: {field: KEY, direction: DESC})', ["a3", "a2"], 3),
    ('children(where: {or: [{key: {lte: "a1"}}, {key: {in: ["a3", "a9"]}}]})', ["a0", "a1", "a3", "a9"], 4),
    ('children(where: {not: {key: {gt: "a1"}}})', ["a0", "a1"], 2),
    ('children(where: {key: {startsWith: "a3"}, name: {ne: "no"}})', ["a3"], 1),
    ('children(where: {path: {startsWith: "r/a3"}})', ["a3"], 1),
    ('children(where: {key: {eq: "a3"}, path: {gt: "r/a3"}})', [], 0),
    ("children(orderBy: {field: KEY, direction: DESC}, last: 2)", ["a1", "a0"], 3),
    ('descendants(where: {path: {startsWith: "r/a3"}})', 11, 11),
    ('descendants(where: {path: {gt: "r/a3", lt: "r/a4"}}, level: PLOT)', 10, 10),
    ('descendants(where: {path: {gte: "r/a9/p8"}}, first: 1)', ["p8"], 2),
    ('descendants(where: {path: {lt: "r/a1"}}, orderBy: {field: PATH, direction: DESC}, first: 2)', ["p9", "p8"], 3),
    ('descendants(maxDepth: 1, where: {key: {in: ["a2", "a8"]}})', ["a2", "a8"], 2),
    ('descendants(where: {key: {eq: "p3"}, path: {startsWith: "r/a7"}})', ["p3"], 11),
]


@pytest.mark.both_stores
async def test_only_the_keys_that_a_condition_leaves_are_read(store):
    await plant(store, Ground, NODES)
    asked = Client(store, Ground)
    lookup = await asked.ask('{ area(path: "r") { path it: childCount } }')
    for listing, expected, items in BOUNDED:
        reply = await asked.ask(f'{{ area(path: "r") {{ path it: {listing} {{ nodes {{ key }} }} }} }}')
        assert not reply.errors
        keys = [node["key"] for node in reply.data["area"]["it"]["nodes"]]
        assert (keys if isinstance(expected, list) else len(keys)) == expected, listing
        assert reply.items - lookup.items <= items + 1, listing


async def test_nodes_by_many_paths_are_one_read(store):
    await plant(store, Ground, NODES)
    asked = Client(store, Ground)
    paths = [f"r/a{area}/p{plot}" for area in range(4) for plot in range(10)]
    query = "query($paths: [Path!]!) { groundsByPath(paths: $paths) { path } }"
    reply = await asked.ask(query, paths=[*paths, "r/none", "none", paths[0]])
    expected = [{"path": path} for path in paths]
    assert reply.data["groundsByPath"] == [*expected, None, None, expected[0]]
    assert reply.rounds <= 2, "the second one looks for redirects of missing paths"
    found = await asked.ask(query, paths=paths)
    assert (found.requests, found.rounds) == (1, 1)
    assert (await asked.ask(query, paths=[])).data == {"groundsByPath": []}
    (error,) = (await Client(store, Ground, max_nodes=39).ask(query, paths=paths)).errors
    assert error["extensions"]["code"] == "BUDGET_EXCEEDED"


async def test_several_levels_are_read_by_their_own_ranges(store):
    rows = [(("r",), "AREA")]
    rows += [(("r", f"{level}{n}"), level) for level in ("AREA", "PLOT", "TREE") for n in range(5)]
    await plant(store, Ground, rows)
    asked = Client(store, Ground)
    reply = await asked.ask('{ area(path: "r") { children(level: [TREE, AREA]) { totalCount nodes { level } } } }')
    levels = [node["level"] for node in reply.data["area"]["children"]["nodes"]]
    assert (levels, reply.data["area"]["children"]["totalCount"]) == (["AREA"] * 5 + ["TREE"] * 5, 10)
    whole = await asked.ask('{ area(path: "r") { children { nodes { level } } } }')
    assert whole.items - reply.items == 5
