"""What tests of DynamoDB's store share: a proxy before the engine, and short pauses between attempts."""

import uuid
from collections.abc import AsyncIterator

import pytest

from store.concurrency import RetryPolicy
from store.dynamodb.store import DynamoDBStore
from store.engine import REQUEST_PATIENCE
from tests.engines import Engine
from tests.proxy import Proxy


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many attempts as ever, one soon after the other."""
    monkeypatch.setattr("store.dynamodb.client.RETRIES", RetryPolicy(0.0005, 0.01))
    monkeypatch.setattr("store.dynamodb.transaction.RETRIES", RetryPolicy(0.0005, 0.01, attempts=8))
    monkeypatch.setattr("store.dynamodb.table.POLLS", RetryPolicy(0.01, 0.05, deadline_seconds=60.0))


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
