"""Read state: a discarded attempt leaves nothing for the next one."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from resolvers.session.cache import PageCache
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from store.engine import Store
from store.model.keys import node_key, subtree
from tests import stores
from tests.model import Ground, Model
from tests.stores import Interrupted

MODEL, GROUND = Model("ground", {("a",): "AREA", ("a", "b"): "AREA"}), Ground.definition()
SPAN = subtree("ground#a", "#")
KEY = node_key("ground", ("a", "b"))


READS: dict[str, Callable[[Request], Awaitable[Any]]] = {
    "a range": lambda request: request.state.range(Read(SPAN)),
    "a node": lambda request: request.state.node(KEY),
    "an item": lambda request: request.state.items([KEY]),
    "an item as of now": lambda request: request.state.strong_items([KEY]),
    "items": lambda request: request.state.items_in(SPAN),
    "a count": lambda request: request.state.count(SPAN),
}


@pytest.mark.parametrize("name", READS)
async def test_a_late_read_of_a_discarded_state_adds_nothing(name: str, store: Store) -> None:
    await MODEL.plant(store)
    begun, may_end, page_cache = asyncio.Event(), asyncio.Event(), PageCache(1_000_000)

    async def end(_: int) -> None:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):  # as an answer that was on its way already
            await may_end.wait()

    slow: Any = Interrupted(store, *stores.READS, after=end)
    request = Request(slow, {"ground": GROUND}, page_cache=page_cache)
    late = asyncio.ensure_future(READS[name](request))
    await begun.wait()
    request.discard_reads()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await late
    await asyncio.sleep(0)
    assert request.state.records_read.nodes == {}
    assert request.state.records_read.in_range(SPAN) is None
    assert request.state.tree_versions == {}
    assert not page_cache
    assert (await request.state.nodes([KEY]))[KEY] is not None


async def test_a_stopped_request_reads_nothing(store: Store) -> None:
    await MODEL.plant(store)
    request = Request(store, {"ground": GROUND})
    request.stop()
    for read in READS.values():
        with pytest.raises(asyncio.CancelledError):
            await read(request)
    assert request.reads.requests == 0
