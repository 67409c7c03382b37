"""The dataloaders of one request: what resolvers ask one by one, the batch functions answer a level at a time."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from aiodataloader import DataLoader, Loader, dispatch_queue

from resolvers.lookup import Lookup, above, nodes
from resolvers.pages import Page
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import Relation, Selection
from resolvers.restricted_lists import lists
from resolvers.session.request import Request
from store.model.records import Record

K = TypeVar("K")
T = TypeVar("T")


class BatchLoader(DataLoader[K, T]):
    """A dataloader without a cache, whose batch waits as long as more of it may still be asked for."""

    cache = False

    def __init__(self, batch: Callable[..., object], is_asking: Callable[[], bool]) -> None:
        super().__init__(batch)  # type: ignore[arg-type]  # a partial of a coroutine function
        self._is_asking = is_asking

    def do_resolve_reject(self, key: K, future: "asyncio.Future[T]") -> None:
        self._queue.append(Loader(key=key, future=future))
        if len(self._queue) == 1:
            self.loop.call_soon(lambda: asyncio.ensure_future(self._dispatch()))

    async def _dispatch(self) -> None:
        while self._is_asking():  # noqa: ASYNC110 - weak references tell, which nobody is told of
            await asyncio.sleep(0)
        dispatch_queue(self)


class Loaders:
    """`node` loads by lookup and selection, `list` by job, `above` by record and relation.

    They keep nothing: the request knows what was read, and what is returned twice is taken from its budget twice.
    """

    def __init__(self, request: Request, is_asking: Callable[[], bool] = lambda: False) -> None:
        """`is_asking` tells whether the operation is still being gone through, so that more may be asked for."""
        self.request = request
        self.node: BatchLoader[tuple[Lookup, Selection], Record | Exception | None] = BatchLoader(
            partial(nodes, request), is_asking
        )
        self.list: BatchLoader[ListRequest, Page | Exception] = BatchLoader(partial(lists, request), is_asking)
        self.above: BatchLoader[tuple[Record, Relation], list[Record] | Exception] = BatchLoader(
            partial(above, request), is_asking
        )
