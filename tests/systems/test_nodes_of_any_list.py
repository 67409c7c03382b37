"""Nodes of any list have all their fields: each field that leads to nodes is asked for what lies above these, alone and
combined, over HTTP, of a process on each store.
"""

import asyncio
from pathlib import Path
from typing import Any

from graphql import build_schema as parse_schema

from graph.hierarchies.registry import served
from graph.schema import build_schema
from store.connect import open_store
from tests.servers import Server
from tests.systems.asking import plant

CLASSES = served("graph.hierarchies.locations,graph.hierarchies.categories")
POINT = {"latitude": 41.0, "longitude": -96.0}
LOCATIONS = [
    (("US",), "COUNTRY", "United States", POINT | {"population": 300}),
    (("US", "NE"), "STATE", "United Nebraska", POINT | {"population": 200}),
    (("US", "NE", "Omaha"), "CITY", "Omaha United", POINT | {"population": 100}),
    (("US", "NE", "Lincoln"), "CITY", "Lincoln", None),
    (("GB",), "COUNTRY", "United Kingdom", POINT | {"population": 250}),
    (("GB", "London"), "CITY", "London", None),
    (("VA",), "COUNTRY", "United Vatican", POINT),
]
CATEGORIES = [
    (("Shop",), "CATEGORY", "United shop"),
    (("Shop", "Toys"), "CATEGORY", "Toys"),
    (("Else",), "CATEGORY", "United else"),
]
TREE = {"/".join(path): path for path, *_ in LOCATIONS + CATEGORIES}

# Selections of what lies above a node; `path` says which node it is.
ABOVE = {
    "own": "descendantCount",
    "of level": "a: ancestors { path c: descendantCount(level: %(level)s) }",
    "ancestors": "ancestors { path descendantCount parent { path descendantCount } }",
    "parent": "parent { path descendantCount ancestors { path descendantCount } }",
    "below": "ancestors { path children(first: 1) { nodes { path ancestors { path descendantCount } } } }",
}
COMBINED = [*ABOVE.values(), " ".join(ABOVE.values())]
AT_ONCE = 20  # requests

# Fields of Query that lead to nodes, as often as they can be asked in different ways.
LISTS = {
    "locations": [
        "", "(first: 2)", "(last: 2)", "(level: COUNTRY)", "(level: [COUNTRY])",
        "(orderBy: {field: POSITION, direction: DESC})", "(orderBy: {field: KEY})",
        "(orderBy: {field: NAME})", "(orderBy: {field: POPULATION}, first: 2)",
        '(where: {name: {startsWith: "united"}})',
        '(where: {name: {startsWith: "united"}}, orderBy: {field: NAME}, first: 1)',
    ],
    "searchLocations": ['(text: "united")', '(text: "united", first: 2)', '(text: "united", level: [COUNTRY])'],
    "locationsNear": ["(latitude: 41, longitude: -96)", "(latitude: 41, longitude: -96, level: [COUNTRY])"],
    "categories": ["", "(first: 1)", "(orderBy: {field: NAME})"],
    "searchCategories": ['(text: "united")'],
}  # fmt: skip
LOOKUPS = {
    "location": ['(path: "US")', '(path: "US/NE/Omaha")'],
    "country": ['(path: "US")'],
    "state": ['(path: "US/NE")'],
    "city": ['(path: "GB/London")'],
    "locationsByPath": ['(paths: ["US", "GB", "US/NE/Omaha", "no"])'],
    "categoryNode": ['(path: "Shop")'],
    "category": ['(path: "Shop/Toys")'],
    "categoriesByPath": ['(paths: ["Shop", "Else", "Shop/Toys"])'],
}
NOT_PLANTED = {"region", "county", "neighborhood", "postalCode", "store", "product", "variant"}
BELOW = [
    "children", "descendants", "children(orderBy: {field: NAME})", "descendants(first: 1)",
]  # fmt: skip


def queries(ids: dict[str, str]) -> list[str]:
    """Every way to nodes with every selection of what lies above them."""
    found: list[str] = []
    for above in COMBINED:
        for name, ways in LISTS.items():
            level = "CATEGORY" if "ategories" in name else "COUNTRY"
            selected = f"path {above % {'level': level}}"
            found += [f"{{ {name}{way} {{ nodes {{ {selected} }} }} }}" for way in ways]
            if not name.startswith("search"):
                found.append(f"{{ {name}{ways[0]} {{ edges {{ node {{ {selected} }} }} }} }}")
        selected = f"path {above % {'level': 'COUNTRY'}}"
        for name, ways in LOOKUPS.items():
            own = f"path {above % {'level': 'CATEGORY'}}" if "ategor" in name else selected
            found += [f"{{ {name}{way} {{ {own} }} }}" for way in ways]
        on = f"... on Country {{ {selected} }}"
        found.append(f'{{ node(id: "{ids["US"]}") {{ {on} }} }}')
        found.append(f'{{ nodes(ids: ["{ids["US"]}", "{ids["VA"]}", "{ids["US/NE"]}"]) {{ {on} }} }}')
        representation = '{__typename: "Country", path: "GB"}'
        found.append(f"{{ _entities(representations: [{representation}]) {{ {on} }} }}")
        found += [f"{{ locations {{ nodes {{ path {way} {{ nodes {{ {selected} }} }} }} }} }}" for way in BELOW]
    return found


def true_count(path: str, name: str) -> int:
    """The number of descendants, for `c` of countries or categories among them, as the planted nodes have it."""
    is_country = name == "c" and path[:2].isupper()
    return 0 if is_country else sum(one.startswith(f"{path}/") for one in TREE)


def check(value: Any, parent: str | None = None) -> None:
    """Compare counts and paths of all nodes in a response with the planted ones."""
    if isinstance(value, list):
        for one in value:
            check(one, parent)
        return
    if not isinstance(value, dict):
        return
    path = value.get("path", parent)
    for name, below in value.items():
        match name:
            case "descendantCount" | "c":
                assert below == true_count(path, name), (path, value)
            case "parent":
                assert (below or {"path": ""})["path"] == path.rpartition("/")[0], (path, below)
            case "ancestors" | "a":
                keys = path.split("/")
                assert [one["path"] for one in below] == ["/".join(keys[:n]) for n in range(1, len(keys))]
        check(below, path)


def test_every_field_of_queries_that_leads_to_nodes_is_asked() -> None:
    query = parse_schema(build_schema(CLASSES)[0].as_str()).query_type
    assert query is not None
    names = {name for name, one in query.fields.items() if name not in ("move", "moves", "deletedNode", "changes")}
    asked = LISTS.keys() | LOOKUPS.keys() | {"node", "nodes", "_entities"}
    assert names - {"hierarchies", "_service"} == asked | NOT_PLANTED


async def test_what_lies_above_the_nodes_of_any_list(store_url: str, tmp_path: Path) -> None:
    async with open_store(store_url) as store:
        await store.create()
        for cls, rows in zip(CLASSES, (LOCATIONS, CATEGORIES), strict=True):
            await plant(store, cls, rows)
    server = Server(tmp_path, "server", store=store_url)
    try:
        await server.start()
        listed = await server.ask("{ locations { nodes { id path descendants { nodes { id path } } } } }")
        roots = listed["data"]["locations"]["nodes"]
        ids = {one["path"]: one["id"] for root in roots for one in [root, *root["descendants"]["nodes"]]}
        failed: dict[str, Any] = {}
        asked = queries(ids)
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            for query, answer in zip(some, await asyncio.gather(*map(server.ask, some)), strict=True):
                if "errors" in answer:
                    failed[query] = answer["errors"][:1]
                else:
                    check(answer["data"])
        assert not failed, (len(failed), list(failed.items())[:3])
    finally:
        await server.close()
