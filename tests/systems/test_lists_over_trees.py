"""Lists over all trees, those of a level that no root has: their reads and budgets, and refused arguments."""

from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from resolvers.session.budget import COMPARED_A_UNIT, BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from store.sqlite.store import SQLiteStore
from tests.systems.asking import Client, plant

PATHS = "a a/1 a/1/x a/1/y a/1/z a/2 a/2/y a! B B/é B/é/x B/#x".split()
PATHS += "日本 日本/% 日本/%/a 日本/%/b 日本/10 日本/10/c 9 q q/1 q/1/1 z".split()
ROWS: list[tuple[Any, ...]] = [(tuple(one.split("/")), ["COUNTRY", "STATE", "CITY"][one.count("/")]) for one in PATHS]
ROWS.append((("9", "direct"), "CITY", "n", {"population": 25}))
"""Seven countries with states and cities, which are at two depths."""

NEAR = "{near: {latitude: 0, longitude: 0, kilometers: 1}}"
REFUSED = {
    'where: {timezone: {gte: ""}}': "COUNTRY has no timezone. Give level: [CITY], or "
    "put it into children: {some: …}, since CITY may have it, or omit it.",
    'where: {and: [{squareFeet: {isNull: false}}, {name: {ne: "x"}}]}': "COUNTRY has no squareFeet",
    'level: [REGION, STATE], where: {not: {timezone: {ne: "x"}}}': "REGION has no timezone; STATE has no timezone",
    "level: [COUNTRY, CITY], where: {timezone: {ne: null}}": "timezone is null",
    'level: [COUNTRY, CITY], where: {timezone: {gt: "a"}, iso3: {eq: "U"}}': "CITY has no iso3; COUNTRY has no",
    'level: CITY, after: "cg"': "is not a cursor",
    f"level: CITY, where: {{or: [{', '.join([NEAR] * 11)}]}}": "50 conditions; one of near or search counts as 5",
}
MET = [
    "where: {timezone: {isNull: true}}",
    'where: {timezone: {ne: "x"}}',
    'where: {or: [{timezone: {gt: "a"}}, {key: {gte: "!"}}]}',
    'where: {not: {timezone: {gt: "a"}}}',
    "orderBy: {field: TIMEZONE}",
]


async def test_what_no_node_in_a_list_can_meet_is_an_error(store):
    await plant(store, Location, ROWS)
    asked = Client(store, Location)
    for arguments, message in REFUSED.items():
        reply = await asked.ask(f"{{ locations({arguments}) {{ nodes {{ path }} }} }}")
        assert [message in error["message"] for error in reply.errors] == [True], (arguments, reply.errors)
        assert reply.requests == 0 or "after" in arguments
    for arguments in MET:
        reply = await asked.ask(f"{{ locations({arguments}) {{ totalCount }} }}")
        assert (reply.errors, reply.data["locations"]["totalCount"]) == ([], 7), arguments


@pytest.mark.both_stores
async def test_it_takes_the_reads_of_the_roots_and_one_query_for_each_tree_of_the_page(store):
    await plant(store, Location, ROWS)
    asked = Client(store, Location)
    roots = await asked.ask("{ locations { nodes { path descendantCount } } }")
    states = await asked.ask("{ locations(level: STATE) { nodes { path } totalCount } }")
    trees = {row[0][0] for row in ROWS if row[1] == "STATE"}
    assert states.requests == roots.requests + len(trees)
    assert states.rounds == roots.rounds + 1
    assert states.items == roots.items + len(states.data["locations"]["nodes"])
    one = await asked.ask("{ locations(level: STATE, first: 1) { nodes { path } } }")
    assert one.requests <= roots.requests + 2
    assert (await asked.ask("{ locations(level: STATE) { totalCount } }")).requests == roots.requests


@pytest.mark.both_stores
async def test_further_pages_of_a_sorted_list_read_the_roots_and_what_validates_it(store):
    await plant(store, Location, ROWS)
    asked = Client(store, Location, page_cache=PageCache(10_000_000, TreeVersionCache(0.0)))
    roots = await asked.ask("{ locations { nodes { path descendantCount } } }")
    query = "{ locations(level: CITY, orderBy: {field: NAME}, %s: 2) { nodes { path } } }"
    for page in ("first", "first", "last"):
        reply = await asked.ask(query % page)
    expected = (0, 0) if isinstance(store, SQLiteStore) else (roots.requests, roots.units)
    assert (reply.requests, reply.units) == expected
    await plant(store, Location, [*ROWS, (("a", "new"), "CITY", "!")])
    found = await asked.ask(query % "first")
    assert found.data["locations"]["nodes"][0] == {"path": "a/new"}


async def test_more_nodes_than_the_budgets_allow_are_refused_before_they_are_read(store):
    await plant(store, Location, ROWS)
    cities = sum(row[1] == "CITY" for row in ROWS)
    roots = await Client(store, Location).ask("{ locations { nodes { path descendantCount } } }")
    for budget, arguments in (
        (BudgetLimits(cities - 1), ""),
        (BudgetLimits(read_units=(cities + 6) / COMPARED_A_UNIT), ", orderBy: {field: NAME}, first: 1"),
    ):
        asked = Client(store, Location, budget=budget)
        reply = await asked.ask(f"{{ locations(level: CITY{arguments}) {{ nodes {{ path }} }} }}")
        assert [error["extensions"]["code"] for error in reply.errors] == ["BUDGET_EXCEEDED"]
        assert reply.items <= roots.items


@pytest.mark.both_stores
async def test_a_page_and_a_condition_on_paths_take_the_trees_that_they_need(store):
    trees = [f"{number:03}" for number in range(150)]
    rows = [*[((tree,), "COUNTRY") for tree in trees], *[((tree, "c"), "CITY", f"n{tree}") for tree in trees]]
    await plant(store, Location, rows)
    asked = Client(store, Location, budget=BudgetLimits(read_units=60))  # fewer than all versions take
    for arguments, paths in {
        "first: 3": ["000/c", "001/c", "002/c"],
        "last: 2": ["148/c", "149/c"],
        'first: 2, where: {path: {gte: "070", lt: "080"}}, orderBy: {field: NAME, direction: DESC}': ["079/c", "078/c"],
        'first: 2, where: {path: {gt: "148"}}': ["148/c", "149/c"],
    }.items():
        reply = await asked.ask(f"{{ locations(level: CITY, {arguments}) {{ nodes {{ path }} }} }}")
        assert not reply.errors, (arguments, reply.errors)
        assert [node["path"] for node in reply.data["locations"]["nodes"]] == paths
        assert reply.requests <= 14, arguments
    reply = await asked.ask("{ locations(level: CITY, first: 1) { totalCount } }")
    assert [error["extensions"]["code"] for error in reply.errors] == ["BUDGET_EXCEEDED"]


async def test_of_a_level_that_roots_can_have_only_the_roots_are_counted_beside_another_level(store):
    rows = [(("a",), "CATEGORY"), (("a", "b"), "CATEGORY"), (("a", "b", "p"), "PRODUCT"), (("q", "r"), "CATEGORY")]
    await plant(store, CategoryNode, [(("q",), "CATEGORY"), *rows])
    reply = await Client(store, CategoryNode).ask(
        "{ categories(level: [CATEGORY, PRODUCT]) { totalCount nodes { path } } }"
    )
    paths = [{"path": path} for path in ("a", "a/b/p", "q")]
    assert reply.data == {"categories": {"totalCount": 3, "nodes": paths}}


@pytest.mark.both_stores
async def test_lists_below_listed_roots_are_those_below_the_same_nodes_by_path(store):
    await plant(store, Location, ROWS)
    asked = Client(store, Location)
    lists = " ".join(
        f"d{number}: descendants({arguments}) {{ totalCount nodes {{ path }} }}"
        for number, arguments in enumerate(
            (
                'where: {search: {text: "c"}}',
                "where: {near: {latitude: 0, longitude: 0, kilometers: 100}}",
                'where: {children: {some: {name: {ne: "x"}}}}',
                "orderBy: {field: POSITION}",
                "orderBy: {field: NAME}",
            )
        )
    )
    listed = await asked.ask(f"{{ locations {{ nodes {{ path {lists} }} }} }}")
    assert not listed.errors
    for one in listed.data["locations"]["nodes"]:
        alone = await asked.ask(f'{{ location(path: "{one["path"]}") {{ path {lists} }} }}')
        assert (alone.errors, alone.data["location"]) == ([], one)
