"""Fast reads: direct calls return what botocore returns, and every failure is handled by botocore."""

import asyncio

import pytest

from store.dynamodb.store import DynamoDBStore
from store.engine.patience import REQUEST_PATIENCE
from store.engine.usage import ReadUsage
from store.errors import Unavailable
from store.model.items import Item, Put
from store.model.keys import Key
from store.model.ranges import subtree
from tests import engines
from tests.ports import closed_port
from tests.proxy import Call, Proxy, delayed, dropped, garbled, miscounted, refused, status, throttled

ITEMS: list[Item] = [{"pk": "t", "sk": f"#{name}#", "name": name} for name in ("a", "b", "ø")]
EVERYTHING = subtree("t", "#")


@pytest.fixture
async def store(proxied: DynamoDBStore, proxy: Proxy) -> DynamoDBStore:
    """A small table behind the proxy, whose reads are known by now."""
    await fill(proxied)
    proxy.calls.clear()
    return proxied


async def fill(store: DynamoDBStore) -> None:
    await store.create()
    await store.commit([Put(item) for item in ITEMS])
    await read(store)


async def read(store: DynamoDBStore) -> None:
    assert await store.range(EVERYTHING, ReadUsage()) == ITEMS
    assert await store.get([Key("t", "#b#")], ReadUsage()) == [ITEMS[1]]


def by_the_library(call: Call) -> bool:
    return "amz-sdk-request" in call.headers


async def test_reads_are_direct_once_one_has_gone_by_the_library(store: DynamoDBStore, proxy: Proxy) -> None:
    await read(store)
    assert await store.count(EVERYTHING, ReadUsage()) == len(ITEMS)
    assert [by_the_library(call) for call in proxy.calls] == [False] * 3


async def test_writes_are_always_made_by_botocore(store: DynamoDBStore, proxy: Proxy) -> None:
    for _ in range(2):
        await store.commit([Put(ITEMS[0])])
        await store.health()
    assert all(map(by_the_library, proxy.calls))


@pytest.mark.parametrize(
    "fault",
    [throttled, refused("InternalServerError", 500), status(503), dropped, miscounted],
    ids=["throttled", "failed", "a balancer's", "dropped", "miscounted"],
)
async def test_a_direct_call_that_fails_is_the_first_attempt_of_botocore(
    store: DynamoDBStore, proxy: Proxy, fault: object
) -> None:
    proxy.spoil("Query", fault)  # type: ignore[arg-type]
    proxy.spoil("BatchGetItem", fault)  # type: ignore[arg-type]
    await read(store)
    assert [by_the_library(call) for call in proxy.calls] == [False, True] * 2
    assert all("attempt=2" in call.headers["amz-sdk-request"] for call in proxy.calls if by_the_library(call))


async def test_direct_calls_count_among_the_attempts_of_botocore(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("Query", *[throttled] * 9)
    with pytest.raises(Unavailable, match="overloaded"):
        await store.range(EVERYTHING, ReadUsage())
    assert [by_the_library(call) for call in proxy.calls] == [False] + [True] * (REQUEST_PATIENCE.attempts - 1)


async def test_a_body_that_breaks_off_is_no_answer(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("Query", garbled)
    with pytest.raises(Unavailable, match="not DynamoDB's"):
        await store.range(EVERYTHING, ReadUsage())
    assert proxy.count("Query") == 1


async def test_the_answer_to_a_read_that_was_given_up_is_never_anothers(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("Query", delayed(0.2))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await store.range(EVERYTHING, ReadUsage())
    assert await store.range(subtree("t", "#a#"), ReadUsage()) == ITEMS[:1]
    assert [by_the_library(call) for call in proxy.calls] == [False, False]


async def test_many_reads_at_a_time_get_their_own_answers(store: DynamoDBStore, proxy: Proxy) -> None:
    async def one(number: int) -> None:
        item = ITEMS[number % 3]
        assert await store.range(subtree("t", str(item["sk"])), ReadUsage()) == [item]

    await asyncio.gather(*map(one, range(300)))
    assert not any(map(by_the_library, proxy.calls))


async def test_behind_a_proxy_every_call_goes_by_the_library(
    engine: engines.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy(engine.url) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
        monkeypatch.setenv("NO_PROXY", "")
        async with DynamoDBStore("clade", region="eu-west-1", endpoint=proxy.url) as store:
            with pytest.raises(Unavailable):
                await store.range(EVERYTHING, ReadUsage())
        assert proxy.calls == []
