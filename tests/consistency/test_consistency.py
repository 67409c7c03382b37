"""Every answer tells what docs/consistency.md says: late indexes and late weak reads included, and kept answers.

CLADE_TEST_CONSISTENCY_SECONDS sets for how long on each store at least, CLADE_TEST_CONSISTENCY_SEED what is done.
"""

import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest

from store.connect import open_store
from store.engine.protocol import Store
from tests.consistency.clients import READS, Clients, Tree
from tests.late_indexes import late_stores
from tests.systems.test_read_your_writes import Server

SECONDS = float(os.environ.get("CLADE_TEST_CONSISTENCY_SECONDS") or 0.0)
SEED = int(os.environ.get("CLADE_TEST_CONSISTENCY_SEED") or 1)
LAG, SETTLE = 0.3, 1.5  # so that a machine that is slow by a second still keeps the lag within what is allowed
STALE = 1.0  # seconds for which servers take a tree version for current
CLIENTS = 4  # whose order is that of the clock; of one client it is always the same
OPERATIONS, KEPT = 200, 5  # at least, and answers among them that were kept
LONGEST_SECONDS = 200.0  # for these


async def check(stores: Sequence[Store], clients: int, late: float, stale: float) -> None:
    servers = [Server(store, planned=number < 2, settle=late, stale=stale) for number, store in enumerate(stores)]
    trees = [Tree("busy", 40), Tree("calm", 2)]
    crowd = Clients(servers, trees, late, stale, SEED)
    await crowd.plant()
    began, counts = time.monotonic(), crowd.counts

    def is_done() -> bool:
        seconds = time.monotonic() - began
        enough = counts.total() >= OPERATIONS and crowd.kept >= KEPT and all(counts[kind] for kind in READS)
        assert enough or seconds < LONGEST_SECONDS, counts
        return enough and seconds >= SECONDS

    await crowd.run(is_done, clients)
    print(f"{counts.total()} operations in {time.monotonic() - began:.0f} s: {dict(counts)}, {crowd.kept} kept")


@pytest.mark.parametrize(
    ("clients", "engine_is_late", "stale"),
    [
        (1, False, 0.0),
        pytest.param(CLIENTS, False, 0.0, marks=pytest.mark.thorough),
        pytest.param(CLIENTS, True, 0.0, marks=pytest.mark.thorough),
        pytest.param(CLIENTS, True, STALE, marks=pytest.mark.thorough),
    ],
    ids=["one client", "sqlite", "late", "late and stale"],
)
async def test_what_a_read_sees_of_the_writes_before_it(
    clients: int, engine_is_late: bool, stale: float, tmp_path
) -> None:
    async with AsyncExitStack() as stack:
        if engine_is_late:
            stores = await stack.enter_async_context(late_stores(3, LAG, weak=70, fresh=30))
        else:
            url = f"sqlite:///{tmp_path / 'clade.db'}"
            stores = [await stack.enter_async_context(open_store(url)) for _ in range(3)]
            await stores[0].create()
        await check(stores, clients, SETTLE if engine_is_late else 0.0, stale)
