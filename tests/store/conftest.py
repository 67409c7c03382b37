"""What tests of DynamoDB's store share."""

import uuid
from collections.abc import AsyncIterator

import pytest

from store.dynamodb.store import DynamoDBStore
from store.engine import REQUEST_PATIENCE
from tests.engines import Engine
from tests.proxy import Proxy


@pytest.fixture
async def proxy(engine: Engine) -> AsyncIterator[Proxy]:
    """What stands before the engine."""
    async with Proxy(engine.url) as opened:
        yield opened


@pytest.fixture
async def proxied(proxy: Proxy) -> AsyncIterator[DynamoDBStore]:
    """An empty table behind the proxy, opened as a server does."""
    table = f"clade-{uuid.uuid4().hex}"
    async with DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url, patience=REQUEST_PATIENCE) as opened:
        await opened.create()
        proxy.calls.clear()
        yield opened
