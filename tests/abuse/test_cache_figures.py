"""Caches beside the data: every one is bounded and in `clade_cache_bytes`, whatever clients send."""

import ast
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import store as store_package
from graph.auth.loopback import has_loopback_host
from graph.compiler.json_writers import key_of
from graph.server.graphql_over_http import JSON, choose, is_json
from graph.server.lifecycle import GracefulShutdown
from resolvers.sorting.node_values import folded
from store.bounded_cache import cache_usage
from store.model.names import lookup
from store.model.paths import parse_path
from store.search.folding import fold
from store.search.lineage import id_hash
from tests.graph.small_app import SmallStore, small_app

ROOT = Path(store_package.__file__ or "").parent.parent
WIDE = "\U0001f600"  # takes four bytes
HOSTILE: dict[str, tuple[str, Callable[[int], object]]] = {
    "paths": ("paths", lambda n: parse_path(f"{n}/" + "/".join([WIDE * 5] * 30))),
    "long paths": ("", lambda n: parse_path(f"{n}" + "a" * 240)),
    "names": ("folded_words", lambda n: fold(f"{n} " + "東" * 90)),
    "long texts": ("", lambda n: fold(f"{n} " + "é" * 200)),
    "sorted texts": ("folded_texts", lambda n: folded(f"{n} " + "é" * 90)),
    "ids": ("id_hashes", lambda n: id_hash(f"{n}" + WIDE * 120)),
    "languages": ("languages", lambda n: lookup((), [f"de-{n:04}-{x:04}" for x in range(20)])),
    "media types": ("media_types", lambda n: (choose(f"a/{n}" + "x" * 900, (JSON,)), is_json(f"a/{n};" + "x" * 900))),
    "hosts": ("hosts", lambda n: has_loopback_host({b"host": b"%d" % n + b"x" * 60_000})),
    "response keys": ("response_keys", lambda n: key_of(f"a{n}" + "k" * 90)),
    "long response keys": ("", lambda n: key_of(f"a{n}" + "k" * 900)),
}
SLOW = ("long texts", "languages")
SLACK = 100_000  # bytes


@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=pytest.mark.thorough if one in SLOW else []) for one in HOSTILE]
)
def test_what_hostile_values_leave_in_memory_is_in_the_figures(kind: str) -> None:
    name, use = HOSTILE[kind]
    tracemalloc.start()
    try:
        for number in range(1_200):
            use(number)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= usage_of(name) + SLACK


async def test_parsed_requests_are_bounded_and_counted() -> None:
    drain = GracefulShutdown()
    transport = httpx.ASGITransport(app=small_app(SmallStore(), drain=drain))
    before = usage_of("requests")
    with drain.started():
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for number in range(100):
                body = f'{{"query": "{{ hello(name: \\"a\\") }}", "variables": {{"x{number}": [{"[]," * 600}[]]}}}}'
                answer = await client.post("/graphql", content=body, headers={"content-type": JSON})
                assert answer.status_code == 200
    assert 5_000_000 < usage_of("requests") - before <= 8_000_000


def usage_of(name: str) -> int:
    found = cache_usage().get(name)
    return 0 if found is None else found.bytes


def test_no_cache_is_made_that_is_not_counted() -> None:
    """`functools.cache` is for what is made once for each class or setting."""
    found = []
    for folder in ("store", "resolvers", "graph", "clade", "commands"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = [one.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
                     and node.module == "functools" for one in node.names]  # fmt: skip
            found += [str(path.relative_to(ROOT))] if "lru_cache" in names else []
    assert found == ["store/bounded_cache.py"]
