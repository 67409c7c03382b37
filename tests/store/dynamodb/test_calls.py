"""Calls of the DynamoDB store over its own connections: whole responses, their own ones, and an engine that is down."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from store.dynamodb.circuit_breaker import FAILURES, CircuitBreaker
from store.dynamodb.client import CONNECTIONS
from store.dynamodb.store import DynamoDBStore
from store.engine.patience import REQUEST_PATIENCE
from store.engine.usage import ReadUsage
from store.errors import Unavailable
from store.model.items import Item, Put
from store.model.keys import Key
from store.model.ranges import subtree
from tests.faulty_engine import FaultyEngine, empty
from tests.ports import closed_port
from tests.proxy import Proxy, delayed, dropped, throttled

ITEMS: list[Item] = [{"pk": "t", "sk": f"#{name}#", "name": name} for name in ("a", "b", "ø")]
EVERYTHING = subtree("t", "#")


@asynccontextmanager
async def store_at(engine: FaultyEngine) -> AsyncIterator[DynamoDBStore]:
    """A store that waits for responses longer than a test does."""
    patience = replace(REQUEST_PATIENCE, read_seconds=600.0)
    async with (
        DynamoDBStore("clade", region="eu-west-1", endpoint=engine.url, patience=patience) as store,
        asyncio.timeout(60),
    ):
        yield store


@pytest.mark.parametrize(
    ("raw", "is_closed"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", True), (b"", True), (b"SSH-2.0-OpenSSH_9.2\r\n", False),
        (b"HTTP/1.1 101 Upgrade\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", False),
    ],
    ids=["broken off", "nothing", "another protocol", "a wish for another protocol"],
)  # fmt: skip
async def test_what_is_no_whole_response_is_retried_over_other_connections(raw: bytes, is_closed: bool) -> None:
    async def once(operation: str, writer: asyncio.StreamWriter) -> None:
        engine.answer = empty
        writer.write(raw)
        if is_closed:
            writer.close()

    async with FaultyEngine(empty) as engine, store_at(engine) as store:
        assert await store.range(EVERYTHING, ReadUsage()) == []
        engine.answer = once
        assert await store.range(EVERYTHING, ReadUsage()) == []
        assert engine.calls == ["query"] * 3


async def test_no_call_gets_the_response_to_another() -> None:
    """Not even where an informational response comes before it, or one more begins that nobody asked for."""
    count, rest = 0, dict[asyncio.StreamWriter, bytes]()

    async def counting(operation: str, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        body = b'{"Items": [], "Count": %d}' % count
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        early = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        writer.write(rest.get(writer, b"") + early + whole + whole[:20])
        rest[writer] = whole[20:]

    async with FaultyEngine(empty) as engine, store_at(engine) as store:
        await store.count(EVERYTHING, ReadUsage())
        engine.answer = counting
        assert [await store.count(EVERYTHING, ReadUsage()) for _ in range(3)] == [1, 2, 3]


async def test_no_more_connections_are_open_than_there_may_be() -> None:
    class Counting(FaultyEngine):
        open_now = most = 0

        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.open_now += 1
            self.most = max(self.most, self.open_now)
            try:
                await super().serve(reader, writer)
            finally:
                self.open_now -= 1

    async with Counting(empty) as engine, store_at(engine) as store:
        for calls in (1, 3 * CONNECTIONS):
            await asyncio.gather(*[store.range(EVERYTHING, ReadUsage()) for _ in range(calls)])
        assert CONNECTIONS // 2 < engine.most <= CONNECTIONS + 1  # that of the first call is botocore's


async def test_reads_get_their_own_responses_beside_others_and_after_one_that_was_given_up(
    proxied: DynamoDBStore, proxy: Proxy
) -> None:
    async def one(number: int) -> None:
        item = ITEMS[number % 3]
        assert await proxied.range(subtree("t", str(item["sk"])), ReadUsage()) == [item]

    await proxied.commit([Put(item) for item in ITEMS])
    for number in range(3):
        await one(number)
        proxy.spoil("Query", delayed(0.2))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await proxied.range(EVERYTHING, ReadUsage())
    await asyncio.gather(*map(one, range(300)))
    assert Counter("amz-sdk-request" in call.headers for call in proxy.calls if call.operation == "Query")[True] == 1


# -- circuit breaker ---------------------------------------------------------------------------------------------------


def test_the_circuit_opens_after_failures_in_a_row_lets_a_probe_through_and_is_closed_by_a_response() -> None:
    now = [0.0]
    circuit = CircuitBreaker(lambda: now[0])
    for failures, allowed in ((FAILURES - 1, [True] * 3), (FAILURES, [False] * 3)):
        circuit.record_response()
        for _ in range(failures):
            circuit.record_timeout()
        assert [circuit.allows_call() for _ in range(3)] == allowed
    for now[0] in (1.0, 2.0):
        assert [circuit.allows_call() for _ in range(3)] == [True, False, False]
        circuit.record_timeout()
    circuit.record_response()
    assert [circuit.allows_call() for _ in range(3)] == [True] * 3


async def health_of(store: DynamoDBStore) -> str:
    try:
        await store.health()
    except Unavailable as error:
        return str(error)
    return "well"


async def test_an_engine_that_is_down_is_not_asked_again_by_every_request() -> None:
    endpoint = f"http://127.0.0.1:{closed_port()}"
    async with DynamoDBStore("clade", region="eu-west-1", endpoint=endpoint) as store:
        told = [await health_of(store) for _ in range(20)]
    silent = f"DynamoDB does not respond at {endpoint} (EndpointConnectionError); try again."
    assert told == [silent] * 5 + ["DynamoDB has not responded for a while; try again."] * 15
    assert (store.calls.made, store.calls.failed, store.calls.skipped, store.calls.retried) == (5, 5, 15, 20)


async def test_lost_connections_and_throttles_are_tried_again_and_counted(proxied: DynamoDBStore, proxy: Proxy) -> None:
    made = proxied.calls.made
    proxy.spoil("BatchGetItem", dropped, throttled, throttled)
    assert await proxied.get([Key("a", "b")], ReadUsage()) == [None]
    calls = proxied.calls
    assert (calls.made - made, calls.retried, calls.throttled, calls.failed) == (1, 3, 2, 0)
