"""Benchmark of growth: the same queries to larger and larger stores. Reads are by key, so none should cost more."""

from collections.abc import Callable
from contextlib import ExitStack

from bench import places
from bench.measurement import ExpectedData, Results, Schedule, measure
from bench.places import COUNTRY_NODES
from bench.queries import PLACES
from bench.servers import clade
from bench.stores import Stores
from bench.tree import Tree

SIZES = (10_000, 100_000, 1_000_000)


def grow(directory: Stores, schedule: Schedule, tell: Callable[[str], None]) -> Results:
    """Figures of the same country in stores of each size; without caches, so that each request reads the store."""
    country = list(places.made(COUNTRY_NODES))
    servers = []
    with ExitStack() as running:
        for size in SIZES:
            tell(f"Making {size:,} nodes")
            store = directory.sqlite(f"made-{size}", lambda size=size: places.made(size))  # type: ignore[misc]
            server = clade(f"{size:,} nodes", store, cache_mb=0)
            running.enter_context(server.process)
            servers.append(server)
        return measure(servers, PLACES, ExpectedData(Tree(country), country[0].path[0]), schedule, tell)
