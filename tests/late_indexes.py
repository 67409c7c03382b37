"""Late indexes: an engine whose indexes and weak reads trail behind its table, as DynamoDB's may."""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

import pytest
from aiohttp import web

from tests.engines import NoEngine, find
from tests.proxy import Call, Proxy

if TYPE_CHECKING:
    from store.engine import Store

_CHANGES = {"CreateTable", "UpdateTimeToLive", "TransactWriteItems", "BatchWriteItem", "PutItem", "DeleteItem"}


class LateIndexes(Proxy):
    """Proxy that answers index queries from a second table, which gets every change `lag` seconds after the first.

    So many of a hundred weak reads of the table are answered from there as well, and of index queries from the first;
    `late` is how many reads were answered from there.
    Where the second table falls behind, as on a busy machine, its reads wait: none is later than `lag`.
    """

    def __init__(self, table: str, indexes: str, lag: float, *, weak: int = 0, fresh: int = 0) -> None:
        super().__init__(table)
        self._indexes = indexes
        self.lag = lag
        self._weak, self._fresh = weak, fresh
        self.late = 0
        self._random = random.Random(0)  # noqa: S311 - no secret
        self._changes: asyncio.Queue[tuple[float, dict[str, Any], dict[str, str]]] = asyncio.Queue()
        self._pending: deque[tuple[float, asyncio.Future[None]]] = deque()  # the changes with the times they are due

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._follower = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._follower
        await super().__aexit__(*error)

    def target_of(self, call: Call) -> str:
        late = 0 if _is_strong(call) else 100 - self._fresh if "IndexName" in call.body else self._weak
        is_late = self._random.randrange(100) < late
        self.late += is_late
        return self._indexes if is_late else self.target

    def sent(self, call: Call, body: dict[str, Any], headers: dict[str, str], answer: web.Response) -> None:
        if call.operation in _CHANGES and answer.status == 200:
            lag = 0.0 if call.operation in ("CreateTable", "UpdateTimeToLive") else self.lag
            loop = asyncio.get_running_loop()
            self._pending.append((loop.time() + lag, loop.create_future()))
            self._changes.put_nowait((loop.time() + lag, body, headers))

    async def send(self, target: str, body: dict[str, Any], headers: dict[str, str]) -> web.Response:
        now = asyncio.get_running_loop().time()
        if target == self._indexes and (overdue := [made for due, made in self._pending if due <= now]):
            await overdue[-1]
        return await super().send(target, body, headers)

    async def _follow(self) -> None:
        while True:
            due, body, headers = await self._changes.get()
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            answer = await super().send(self._indexes, body, headers)
            assert answer.status == 200, answer.body
            self._pending.popleft()[1].set_result(None)


def _is_strong(call: Call) -> bool:
    """Whether a call sees all acknowledged writes, as writes and strong reads do."""
    if call.operation == "BatchGetItem":
        return all(asked.get("ConsistentRead") for asked in call.body["RequestItems"].values())
    return call.operation != "Query" or bool(call.body.get("ConsistentRead"))


@contextlib.asynccontextmanager
async def late_stores(count: int, lag: float, *, weak: int = 0, fresh: int = 0) -> AsyncIterator[list["Store"]]:
    """Stores on one new table whose indexes, and some weak reads, trail `lag` seconds behind."""
    from store.connect import open_store  # tests/outside imports this module, and nothing of Clade

    async with contextlib.AsyncExitStack() as stack:
        try:
            table, indexes = stack.enter_context(find()), stack.enter_context(find())
        except NoEngine as missing:
            pytest.skip(str(missing))
        proxy = await stack.enter_async_context(LateIndexes(table.url, indexes.url, lag, weak=weak, fresh=fresh))
        url = f"dynamodb://clade?region=eu-west-1&endpoint={proxy.url}"
        stores = [await stack.enter_async_context(open_store(url)) for _ in range(count)]
        await stores[0].create()
        await asyncio.sleep(lag)  # until the indexes have a table, too
        yield stores
