"""Dataloaders: batch the calls of Strawberry's resolvers, one batch for each response level.

| loader | key | batch function |
| --- | --- | --- |
| `node` | lookup and selection | `lookup.find_nodes` |
| `page` | list of a node: children, descendants | `pages.read_pages` |
| `ancestors` | node and relation: parent, ancestors | `ancestors.read_ancestors` |

Compiled queries call the same batch functions without dataloaders.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from aiodataloader import DataLoader, Loader, dispatch_queue

from resolvers.ancestors import read_ancestors
from resolvers.lists.arguments import Page, Relation, Selection
from resolvers.lists.list_request import ListRequest
from resolvers.lookup import Lookup, find_nodes
from resolvers.pages import read_pages
from resolvers.session.request import Request
from store.model.records import Record

K = TypeVar("K")
T = TypeVar("T")


class BatchLoader(DataLoader[K, T]):
    """A dataloader without a cache, whose batch is dispatched when no resolver of the response level is pending."""

    cache = False

    def __init__(self, batch: Callable[..., object], has_pending: Callable[[], bool]) -> None:
        super().__init__(batch)  # type: ignore[arg-type]  # a partial of a coroutine function
        self._has_pending = has_pending

    def do_resolve_reject(self, key: K, future: "asyncio.Future[T]") -> None:
        self._queue.append(Loader(key=key, future=future))
        if len(self._queue) == 1:
            self.loop.call_soon(lambda: asyncio.ensure_future(self._dispatch()))

    async def _dispatch(self) -> None:
        while self._has_pending():  # noqa: ASYNC110 - it counts weak references, which notify nobody
            await asyncio.sleep(0)
        dispatch_queue(self)


class Loaders:
    """The dataloaders of one request.

    They have no cache: the request has what was read, and a node that is returned twice is spent twice.
    """

    def __init__(self, request: Request, has_pending: Callable[[], bool] = lambda: False) -> None:
        """`has_pending` is whether resolvers are still to be called, so that more keys may come."""
        self.request = request
        self.node: BatchLoader[tuple[Lookup, Selection], Record | Exception | None] = BatchLoader(
            partial(find_nodes, request), has_pending
        )
        self.page: BatchLoader[ListRequest, Page | Exception] = BatchLoader(partial(read_pages, request), has_pending)
        self.ancestors: BatchLoader[tuple[Record, Relation], list[Record] | Exception] = BatchLoader(
            partial(read_ancestors, request), has_pending
        )
