"""Benchmark of sorted and filtered lists: processor time of sorting 10,000 nodes beside that of serializing them.

In one process on SQLite, without page and response cache. Serializing is what a query of the nodes takes more than one
of their `pageInfo` alone; sorting is what `pageInfo` of a sorted list takes more than that of the list itself.

Usage: python -m bench.sorting
"""

import asyncio
import time
from collections.abc import Iterator
from random import Random
from statistics import median
from typing import Any

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.graphql_core import body_of

NODES = 10_000
RUNS = 15
LEAVES = "nodes { path name level population latitude longitude }"
PAGE = "pageInfo { hasNextPage }"
WAYS = {
    "by name": "(orderBy: [{field: NAME}])",
    "by population, descending": "(orderBy: [{field: POPULATION, direction: DESC}])",
    "by level, population and name": "(orderBy: [{field: LEVEL}, {field: POPULATION}, {field: NAME}])",
    "names that contain a text": '(where: {name: {contains: "an"}})',
    "three conditions": '(where: {population: {gte: 1000}, latitude: {lt: 60}, or: [{name: {startsWith: "s"}}]})',
}
_LETTERS = "aeinorstlmkuäéöü"


def rows() -> Iterator[Row]:
    """A country with cities, each third name with letters that are not ASCII."""
    random = Random(1)
    yield Row(1, ("X",), [Part("COUNTRY", "X", None, {})])
    for number in range(NODES):
        letters = _LETTERS if number % 3 == 0 else _LETTERS[:12]
        name = "".join(random.choices(letters, k=random.randint(5, 14))).title()
        attributes = {"population": random.randrange(100_000), "latitude": random.uniform(-90, 90), "longitude": 1.5}
        yield Row(number + 2, ("X", f"c{number:05}"), [Part("CITY", name, None, attributes)])


async def measure(store: Store) -> dict[str, float]:
    """Processor time in milliseconds of each way, and of `serializing`."""
    schema, types = build_schema([Location])
    definitions, limits = {"location": Location.definition()}, BudgetLimits(nodes=2 * NODES, fields=20 * NODES)
    plans = PlanCache(core_schema(schema), types)
    execution = Execution(schema, lambda: Context(Request(store, definitions, limits), types), plans)
    queries = {"list": f'{{ country(path: "X") {{ children {{ {PAGE} }} }} }}'}
    queries["nodes"] = f'{{ country(path: "X") {{ children {{ {PAGE} {LEAVES} }} }} }}'
    queries |= {name: f'{{ country(path: "X") {{ children{way} {{ {PAGE} }} }} }}' for name, way in WAYS.items()}
    times: dict[str, list[float]] = {name: [] for name in queries}
    for _ in range(RUNS):
        for name, query in queries.items():
            times[name].append(await _cpu(execution, query))
    medians = {name: median(some) for name, some in times.items()}
    found = {name: medians[name] - medians["list"] for name in WAYS}
    return {"serializing": medians["nodes"] - medians["list"], **found}


async def _cpu(execution: Any, query: str) -> float:
    began = time.process_time()
    answer = await execution.execute(query, {}, allow_mutations=False)
    answer.content()
    taken = 1_000 * (time.process_time() - began)
    assert "errors" not in body_of(answer), body_of(answer)
    return taken


async def main() -> None:
    async with open_store("sqlite://:memory:", keep_bytes=100_000_000) as store:
        await store.create()
        wanted, outcome = ImportPlan(Location.definition()), LoadResult()
        for row in rows():
            wanted.take(row)
        await load(store, wanted, outcome)
        found = await measure(store)
    print(f"| {NODES:,} nodes | CPU ms | of serializing |\n| --- | --- | --- |")
    for name, taken in found.items():
        print(f"| {name} | {taken:.1f} | {taken / found['serializing']:.2f} × |")


if __name__ == "__main__":
    asyncio.run(main())
