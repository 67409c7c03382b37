"""Stores on tables whose indexes and weak reads trail behind, as DynamoDB's may; and a table that is always empty."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from store.connect import open_store
from store.dynamodb.codec import encode
from store.engine import Store
from store.metadata.tree_version import layout_item
from tests.engines import NoEngine, find
from tests.proxy import Call, Forward, LateIndexes


@contextlib.asynccontextmanager
async def late_stores(count: int, lag: float, *, weak: int = 0) -> AsyncIterator[list[Store]]:
    """Stores on one new table whose indexes, and some weak reads, trail `lag` seconds behind."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            table, indexes = stack.enter_context(find()), stack.enter_context(find())
        except NoEngine as missing:
            pytest.skip(str(missing))
        proxy = await stack.enter_async_context(LateIndexes(table.url, indexes.url, lag, weak=weak))
        url = f"dynamodb://clade?region=eu-west-1&endpoint={proxy.url}"
        stores = [await stack.enter_async_context(open_store(url)) for _ in range(count)]
        await stores[0].create()
        yield stores


async def empty(call: Call, forward: Forward) -> web.Response:
    """Respond as an empty table that accepts every write."""
    layout = {"Item": encode(layout_item())}  # the only item that is read by GetItem
    answers = {"Query": {"Items": [], "Count": 0}, "BatchGetItem": {"Responses": {}}, "GetItem": layout}
    return web.json_response(answers.get(call.operation, {}))
