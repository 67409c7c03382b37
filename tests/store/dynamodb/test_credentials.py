"""Credentials of every kind are refreshed under the direct calls, before they expire and when they are rejected."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.dynamodb.store import DynamoDBStore
from store.engine.usage import ReadUsage
from store.errors import Unavailable
from store.model.items import Item, Put
from store.model.ranges import subtree
from tests.engines import Engine
from tests.proxy import Call, Fault, Proxy, refused
from tests.store.dynamodb.credential_sources import EXPIRING, Sources, let_hours_pass

ITEMS: list[Item] = [{"pk": "t", "sk": f"#{name}#", "name": name} for name in ("a", "b")]
RENEWED = {**EXPIRING, "file": Sources.use_file}
"""The kinds that can give other credentials than those that were rejected."""


class CheckingProxy(Proxy):
    """Proxy that rejects the access keys in `rejected`, as DynamoDB does."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.rejected: set[str] = set()
        self.code = "ExpiredTokenException"

    def fault_for(self, call: Call) -> Fault:
        return refused(self.code) if key_of(call) in self.rejected else super().fault_for(call)


def key_of(call: Call) -> str:
    return call.headers["Authorization"].partition("Credential=")[2].partition("/")[0]


def seen(proxy: Proxy) -> list[tuple[str, bool]]:
    """Key of each call, and whether it was made directly; each with the session token of its key."""
    assert all(call.headers["X-Amz-Security-Token"] == f"token of {key_of(call)}" for call in proxy.calls)
    found = [(key_of(call), "amz-sdk-request" not in call.headers) for call in proxy.calls]
    proxy.calls.clear()
    return found


@pytest.fixture(scope="module")
def table(engine: Engine) -> str:
    """The name of a table with the items."""

    async def fill() -> None:
        async with DynamoDBStore(name, region="eu-west-1", endpoint=engine.url) as store:
            await store.create()
            await store.commit([Put(item) for item in ITEMS])

    name = f"clade-{uuid.uuid4().hex}"
    asyncio.run(fill())
    return name


@pytest.fixture
async def proxy(engine: Engine) -> AsyncIterator[CheckingProxy]:
    async with CheckingProxy(engine.url) as opened:
        yield opened


@pytest.fixture
async def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sources]:
    async with Sources(tmp_path, monkeypatch) as opened:
        yield opened


def store_at(proxy: Proxy, table: str) -> DynamoDBStore:
    """The store by an address that is not recognized as one of this machine, where roles of instances are not used."""
    return DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url.replace("127.0.0.1", "0.0.0.0"))  # noqa: S104  # nothing is bound


async def read(store: DynamoDBStore) -> None:
    assert await store.range(subtree("t", "#"), ReadUsage()) == ITEMS


@pytest.mark.parametrize("kind", EXPIRING)
async def test_credentials_are_refreshed_before_they_expire(
    kind: str, sources: Sources, proxy: CheckingProxy, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.issue("FIRST", 5)  # botocore asks for others fifteen minutes before the end, with each call
    EXPIRING[kind](sources)
    async with store_at(proxy, table) as store:
        for _ in range(2):
            await read(store)
        assert seen(proxy) == [("FIRST", False), ("FIRST", True)]
        sources.issue("SECOND", 60)
        if kind == "instance":  # whose credentials botocore uses for longer, whatever their expiry
            let_hours_pass(monkeypatch)
        for _ in range(2):
            await read(store)
        assert seen(proxy) == [("SECOND", False), ("SECOND", True)]
    if kind in ("container", "web identity"):
        assert (sources.shown[0], sources.shown[-1]) == ("proof for FIRST", "proof for SECOND")
    if kind == "sso session":
        assert sources.shown == [f"access {number + 1}" for number in range(sources.given)]


@pytest.mark.parametrize("kind", RENEWED)
async def test_rejected_credentials_are_replaced_by_newer_ones(
    kind: str, sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    sources.issue("FIRST", 600)
    RENEWED[kind](sources)
    async with store_at(proxy, table) as store:
        for _ in range(2):
            await read(store)
        given = sources.given
        proxy.calls.clear()
        proxy.rejected.add("FIRST")
        sources.issue("SECOND", 600)
        if kind == "file":
            sources.use_file()
        await asyncio.gather(*[read(store) for _ in range(10)], store.commit([Put(ITEMS[0])]))
        seen(proxy)
        await read(store)
        assert seen(proxy) == [("SECOND", True)]
    assert sources.given - given == (0 if kind in ("file", "process") else 1)


async def test_a_rejected_key_is_replaced_as_an_expired_session_is(
    sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    proxy.code = "UnrecognizedClientException"
    sources.issue("FIRST", 600)
    sources.use_file()
    async with store_at(proxy, table) as store:
        await read(store)
        proxy.rejected.add("FIRST")
        sources.issue("SECOND", 600)
        sources.use_file()
        await read(store)
        seen(proxy)
        await read(store)
        assert {key for key, _ in seen(proxy)} == {"SECOND"}


@pytest.mark.parametrize("kind", ["environment", "container"])
async def test_credentials_that_stay_rejected_are_reported_and_searched_once(
    kind: str, sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    sources.issue("FIRST", 600)
    {**EXPIRING, "environment": Sources.use_environment}[kind](sources)
    async with store_at(proxy, table) as store:
        given = sources.given
        proxy.rejected.add("FIRST")
        for _ in range(5):
            with pytest.raises(Unavailable, match="expired"):
                await store.range(subtree("t", "#"), ReadUsage())
    assert len(proxy.calls) == 5
    assert sources.given - given == (kind == "container")


async def test_a_source_that_fails_is_reported_until_it_works_again(
    sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    sources.issue("FIRST", 5)
    sources.use_process()
    async with store_at(proxy, table) as store:
        await read(store)
        proxy.calls.clear()
        (sources.folder / "issued.json").unlink()
        for _ in range(20):
            with pytest.raises(Unavailable, match="credentials cannot be obtained"):
                await store.range(subtree("t", "#"), ReadUsage())
        assert proxy.calls == []
        sources.issue("SECOND", 60)
        await read(store)
        assert {key for key, _ in seen(proxy)} == {"SECOND"}


async def test_credentials_that_come_after_the_start_are_found(
    sources: Sources, proxy: CheckingProxy, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.dynamodb.aws.credentials.SEARCH_SECONDS", 0)
    async with store_at(proxy, table) as store:
        with pytest.raises(Unavailable, match="none were found"):
            await read(store)
        sources.issue("FIRST", 600)
        sources.use_file()
        await read(store)
