"""Lists over all trees: the root list of a level that no root has, compared with brute force."""

from random import Random
from typing import Any

import orjson
import pytest

from graph.hierarchies.locations import Location
from graph.operation.context import Context
from resolvers.access.grants import Grants
from resolvers.session.request import Request
from tests.graphql_core import executing
from tests.schemas import schema_of
from tests.systems.asking import Client, plant

pytestmark = pytest.mark.both_stores

KEYS = ["a", "B", "é", "#x", "z-1", "%", "日本", "10", "9"]


def rows(seed: int) -> list[tuple[Any, ...]]:
    """Countries with states and cities, which are at two depths."""
    random = Random(seed)  # noqa: S311
    found: list[tuple[Any, ...]] = []
    for country in random.sample(KEYS, 6):
        found.append(((country,), "COUNTRY"))
        for state in random.sample(KEYS, random.randint(0, 4)):
            found.append(((country, state), "STATE"))
            for city in random.sample(KEYS, random.randint(0, 5)):
                values = {"population": random.randint(0, 50)} if random.random() < 0.8 else {}
                found.append(((country, state, city), "CITY", f"n{random.randint(0, 20)}", values))
    return found


def texts(paths: list[tuple[str, ...]]) -> list[str]:
    return ["/".join(segment.replace("%", "%25") for segment in path) for path in paths]


def in_order(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Paths in the order of the tree: by segments, by bytes."""
    return sorted(paths, key=lambda path: [segment.encode() for segment in path])


async def all_pages(asked: Client, arguments: str, size: int, *, backwards: bool = False) -> list[str]:
    """The paths of a list by its pages, whose counts have to be right."""
    found: list[list[str]] = []
    end, (count, beside) = "", ("last", "before") if backwards else ("first", "after")
    while True:
        window = f"{count}: {size}{end}"
        listed = f"locations({arguments}, {window}) {{ nodes {{ path }} totalCount pageInfo {{ {INFO} }} }}"
        reply = await asked.ask(f"{{ {listed} }}")
        assert not reply.errors, reply.errors
        page = reply.data["locations"]
        found.append([node["path"] for node in page["nodes"]])
        info = page["pageInfo"]
        if not info["hasPreviousPage" if backwards else "hasNextPage"]:
            break
        end = f', {beside}: "{info["startCursor" if backwards else "endCursor"]}"'
    assert page["totalCount"] == sum(map(len, found))
    return [path for part in (found[::-1] if backwards else found) for path in part]


INFO = "hasNextPage hasPreviousPage startCursor endCursor"


@pytest.mark.parametrize("seed", range(3))
async def test_a_level_below_the_roots_is_listed_over_all_trees(store, seed):
    planted = rows(seed)
    await plant(store, Location, planted)
    asked = Client(store, Location)
    cities = in_order([row[0] for row in planted if row[1] == "CITY"])
    values = {row[0]: (row[3] if len(row) > 3 else {}).get("population") for row in planted}
    for backwards in (False, True):
        assert await all_pages(asked, "level: CITY", 3, backwards=backwards) == texts(cities)
    assert await all_pages(asked, "level: CITY, orderBy: {field: PATH, direction: DESC}", 4) == texts(cities[::-1])
    wanted = [path for path in cities if values[path] is not None and values[path] >= 25]
    by_value = sorted(wanted, key=lambda path: values[path], reverse=True)  # equal ones stay in their order
    order = "orderBy: [{field: POPULATION, direction: DESC}, {field: PATH}], where: {population: {gte: 25}}"
    assert await all_pages(asked, f"level: CITY, {order}", 2) == texts(by_value)
    by_key = sorted(cities, key=lambda path: (path[-1].encode(), [one.encode() for one in path]))
    assert await all_pages(asked, "level: CITY, orderBy: {field: KEY}", 5) == texts(by_key)
    several = in_order([row[0] for row in planted if row[1] != "STATE"])
    assert await all_pages(asked, "level: [COUNTRY, CITY]", 7) == texts(several)


async def test_a_level_of_roots_lists_roots_alone(store):
    await plant(store, Location, rows(0))
    asked = Client(store, Location)
    found = (await asked.ask("{ locations(level: COUNTRY) { nodes { path } totalCount } }")).data["locations"]
    assert found["totalCount"] == len(found["nodes"]) == 6
    reply = await asked.ask("{ locations(level: CITY, orderBy: {field: POSITION}) { nodes { path } } }")
    assert [error["extensions"]["code"] for error in reply.errors] == ["BAD_USER_INPUT"]


async def test_it_takes_the_reads_of_the_roots_and_one_query_for_each_tree(store):
    planted = rows(1)
    await plant(store, Location, planted)
    asked = Client(store, Location)
    roots = await asked.ask("{ locations { nodes { path descendantCount } } }")
    states = await asked.ask("{ locations(level: STATE) { nodes { path } } }")
    trees = {row[0][0] for row in planted if row[1] == "STATE"}
    assert states.requests == roots.requests + len(trees)
    assert states.rounds == roots.rounds + 1
    assert states.items == roots.items + len(states.data["locations"]["nodes"])


async def test_a_caller_with_grants_sees_the_nodes_below_them_alone(store):
    planted = rows(2)
    await plant(store, Location, planted)
    granted = [row[0] for row in planted if row[1] == "STATE"][::2]
    cities = [row[0] for row in planted if row[1] == "CITY" and row[0][:2] in granted]
    schema, types = schema_of(Location)
    grants = Grants.of([("location", path) for path in granted], [])
    request = Request(store, {"location": Location.definition()}, grants=grants)
    query = "{ locations(level: CITY, first: 100) { nodes { path } } }"
    answer = await executing(schema, lambda: Context(request, types)).execute(query, {}, allow_mutations=False)
    found = [node["path"] for node in orjson.loads(answer.content())["data"]["locations"]["nodes"]]
    assert found == texts(in_order(cities))
