"""Caches beside the data: every one is bounded, whatever clients send."""

import gc
import tracemalloc
from collections.abc import Callable

import httpx
import pytest

from graph.auth.loopback import has_loopback_host
from graph.execution.operation import Execution
from graph.operation.document_cache import CHARACTER_BYTES, KEPT_CHARACTERS
from graph.operation.graphql_request import GraphQLRequest
from graph.server.content_negotiation import JSON, choose, is_json
from graph.server.graceful_shutdown import GracefulShutdown
from resolvers.sorting.node_values import folded
from store.bounded_cache import cache_usage
from store.model.languages import lookup
from store.model.paths import parse_path
from store.search.folding import fold
from store.search.lineage import id_hash
from tests.graph.small_app import Context, SmallStore, schema, small_app

WIDE = "\U0001f600"  # takes four bytes
TIMES = 1_200
HOSTILE: dict[str, tuple[int, Callable[[int], object]]] = {
    "paths": (1_000 * 4_500, lambda n: parse_path(f"{n}/" + "/".join([WIDE * 5] * 30))),
    "long paths": (0, lambda n: parse_path(f"{n}" + "a" * 240)),
    "names": (TIMES * 1_000, lambda n: fold(f"{n} " + "東" * 90)),
    "long texts": (0, lambda n: fold(f"{n} " + "é" * 200)),
    "sorted texts": (TIMES * 1_000, lambda n: folded(f"{n} " + "é" * 90)),
    "ids": (TIMES * 800, lambda n: id_hash(f"{n}" + WIDE * 120)),
    "languages": (256 * 8_000, lambda n: lookup((), [f"de-{n:04}-{x:04}" for x in range(20)])),
    "media types": (512 * 1_500, lambda n: (choose(f"a/{n}" + "x" * 900, (JSON,)), is_json(f"a/{n};" + "x" * 900))),
    "hosts": (64 * 500, lambda n: has_loopback_host({b"host": b"%d" % n + b"x" * 60_000})),
}
"""How a client fills the cache of a function, and the bytes that this leaves."""
SLOW = ("long texts", "languages")
SLACK = 100_000  # bytes


@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=pytest.mark.thorough if one in SLOW else []) for one in HOSTILE]
)
def test_what_hostile_values_leave_in_memory_is_bounded(kind: str) -> None:
    most, use = HOSTILE[kind]
    tracemalloc.start()
    try:
        for number in range(TIMES):
            use(number)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= most + SLACK


async def test_parsed_requests_are_bounded_and_counted() -> None:
    drain = GracefulShutdown()
    transport = httpx.ASGITransport(app=small_app(SmallStore(), drain=drain))
    gc.collect()  # the figure is the sum of all applications, also of those of former tests
    before = usage_of("requests")
    with drain.started():
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for number in range(100):
                body = f'{{"query": "{{ hello(name: \\"a\\") }}", "variables": {{"x{number}": [{"[]," * 600}[]]}}}}'
                answer = await client.post("/graphql", content=body, headers={"content-type": JSON})
                assert answer.status_code == 200
    assert 5_000_000 < usage_of("requests") - before <= 8_000_000


async def test_parsed_documents_are_bounded_by_their_length() -> None:
    gc.collect()
    execution, before = Execution(schema, Context), usage_of("documents")
    for number in range(30):
        await execution.answer(GraphQLRequest(f'{{ hello(name: "{number}{"a" * 20_000}") }}'), allow_mutations=False)
    most = KEPT_CHARACTERS * CHARACTER_BYTES
    assert most / 2 < usage_of("documents") - before <= most


def usage_of(name: str) -> int:
    found = cache_usage().get(name)
    return 0 if found is None else found.bytes
