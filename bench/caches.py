"""Benchmark of each cache: how many times as long queries take without it, beside all others and beside none.

Responses are not cached, since a cached response needs no other cache. The time is the median processor time of single
queries in the process, without HTTP, for a breadcrumb, a page of children and a nested list of the demo data.

| queries | |
| --- | --- |
| warm | the same query again |
| written | after a write to another partition, which ends the validity of all pages on SQLite |
| cold | with all caches empty |
| variables | the same text, each time with other variables |
| distinct | the same, where each tenth has a text that was never seen before; the mean |

Usage: python -m bench.caches FILE
FILE is an SQLite file with the demo data (clade demo --store sqlite:///FILE).
"""

import asyncio
import sys
import time
from itertools import count
from statistics import median

import orjson

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.hierarchies.registry import served
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest, PersistedDocuments
from graph.schema import build_schema
from graph.server.graphql_over_http import read_json
from graph.settings import Settings
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.model.items import Put

NESTED = "nodes { id key name path level children(first: 8) { nodes { id key name path level updatedAt } } }"
QUERIES = {
    "breadcrumb": '{ city(path: "US/NE/Omaha") { name population ancestors { name level } } }',
    "children": '{ state(path: "US/NE") { name children(first: 20) { nodes { name } } } }',
    "nested": f'{{ country(path: "US") {{ name children(first: 55) {{ {NESTED} }} }} }}',
}
CACHES = ("requests", "documents", "plans", "pages", "records")
SCENES = ("warm", "written", "cold", "variables", "distinct")
CACHE_BYTES = 32_000_000
NO_DOCUMENTS = PersistedDocuments({})
_numbers = count()


class Server:
    """One process with these caches."""

    def __init__(self, path: str, caches: frozenset[str]) -> None:
        self._caches = caches
        self._classes = served(Settings.model_fields["hierarchies"].default)
        self._definitions = {cls.name: cls.definition() for cls in self._classes}
        schema, self._types = build_schema(self._classes)
        self._schema = schema
        self.store = open_store(path, keep_bytes=CACHE_BYTES if "records" in caches else 0)
        self._requests: dict[bytes, GraphQLRequest] = {}
        self.empty()

    def empty(self) -> None:
        """Empty all caches."""
        self._pages = PageCache(CACHE_BYTES if "pages" in self._caches else 0)
        plans = PlanCache(core_schema(self._schema), self._types, keep=16 if "plans" in self._caches else 0)
        self._execution = Execution(self._schema, self._context, plans)
        self._requests.clear()

    def _context(self) -> Context:
        return Context(Request(self.store, self._definitions, page_cache=self._pages), self._types)

    async def answer(self, body: bytes) -> float:
        """Answer a query; returns its time in microseconds."""
        began = time.process_time()
        request = self._requests.get(body) or read_json(body, NO_DOCUMENTS)
        if "requests" in self._caches:
            self._requests[body] = request
        response = await self._execution.answer(request, allow_mutations=False)
        response.content()
        took = (time.process_time() - began) * 1e6
        if "documents" not in self._caches:
            plans = PlanCache(core_schema(self._schema), self._types)
            self._execution = Execution(self._schema, self._context, plans)
        return took


async def times(path: str, caches: frozenset[str]) -> dict[tuple[str, str], float]:
    """The median time of each query in each scene."""
    server = Server(path, caches)
    found = {}
    async with server.store as store:
        for scene in SCENES:
            for name, query in QUERIES.items():
                number = 10 if scene == "cold" else 50
                taken = []
                for turn in range(number + 3):
                    if scene == "cold":
                        server.empty()
                    if scene == "written":
                        await store.commit([Put({"pk": "bench", "sk": f"{next(_numbers) % 50}"})])
                    text = query
                    if scene == "distinct" and turn % 10 == 0:
                        text = query.replace("{", f"{{ a{next(_numbers)}: __typename ", 1)
                    variables = {"x": next(_numbers)} if scene == "variables" else None
                    taken.append(await server.answer(orjson.dumps({"query": text, "variables": variables})))
                rest = taken[3:]
                found[scene, name] = sum(rest) / len(rest) if scene == "distinct" else median(rest)
    return found


async def main(path: str) -> None:
    every = frozenset(CACHES)
    await times(path, every)  # to warm the process up
    all_on, none_on = await times(path, every), await times(path, frozenset())
    print("| cache | queries | " + " | ".join(QUERIES) + " |")
    for cache in CACHES:
        off, alone = await times(path, every - {cache}), await times(path, frozenset({cache}))
        for scene in SCENES:
            places = [(scene, name) for name in QUERIES]
            figures = [f"{off[one] / all_on[one]:.2f}, {none_on[one] / alone[one]:.2f}" for one in places]
            print(f"| {cache} | {scene} | " + " | ".join(figures) + " |", flush=True)


if __name__ == "__main__":
    asyncio.run(main(f"sqlite:///{sys.argv[1]}"))
