"""Client: calls are sent again by the rules of AWS's SDKs, on an engine behind a proxy and on a bad server."""

import asyncio
import json
import logging
import socket
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from email.utils import formatdate

import pytest

from store.dynamodb.client import DynamoDBClient
from store.dynamodb.retries import RetryQuota
from store.dynamodb.store import DynamoDBStore
from store.engine.protocol import REQUEST_PATIENCE, Patience
from store.engine.usage import ReadUsage
from store.errors import NoTable, Unavailable, Uncertain
from store.model.items import Item, Put
from store.model.keys import Key
from store.model.ranges import subtree
from store.retry import RetryPolicy
from tests.loopback_server import LoopbackServer
from tests.proxy import Call, Proxy, delayed, dropped, miscounted, refused, status, throttled

ITEMS: list[Item] = [{"pk": "t", "sk": f"#{name}#", "name": name} for name in ("a", "b", "ø")]
EVERYTHING = subtree("t", "#")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are as random as ever, and a hundred times as short."""
    monkeypatch.setattr("store.dynamodb.retries.FAILURES", RetryPolicy(0.0005, 0.2))
    monkeypatch.setattr("store.dynamodb.retries.BUSY", RetryPolicy(0.0005, 0.01, attempts=8))


# -- an engine behind a proxy ------------------------------------------------------------------------------------------


@pytest.fixture
async def store(proxied: DynamoDBStore, proxy: Proxy) -> DynamoDBStore:
    """A small table behind the proxy."""
    await proxied.commit([Put(item) for item in ITEMS])
    proxy.calls.clear()
    return proxied


async def read(store: DynamoDBStore) -> None:
    assert await store.range(EVERYTHING, ReadUsage()) == ITEMS
    assert await store.get([Key("t", "#b#")], ReadUsage()) == [ITEMS[1]]


def by_the_library(call: Call) -> bool:
    return "amz-sdk-invocation-id" in call.headers


async def test_data_is_read_and_written_past_the_library_and_tables_are_made_by_it(
    store: DynamoDBStore, proxy: Proxy
) -> None:
    await read(store)
    assert await store.count(EVERYTHING, ReadUsage()) == len(ITEMS)
    await store.commit([Put(ITEMS[0])])
    await store.health()
    assert len([page async for page in store.scan(ReadUsage())]) == 1
    assert {call.operation for call in proxy.calls if not by_the_library(call)} == {
        "BatchGetItem", "GetItem", "Query", "Scan", "TransactWriteItems",
    }  # fmt: skip
    proxy.calls.clear()
    await store.create()
    assert {call.operation for call in proxy.calls if by_the_library(call)} == {
        "CreateTable", "DescribeTable", "DescribeTimeToLive",
    }  # fmt: skip


@pytest.mark.parametrize(
    "fault",
    [throttled, refused("InternalServerError", 500), refused("ThrottlingException"), status(503), dropped, miscounted],
    ids=["throttled", "failed", "too many", "a balancer's", "dropped", "miscounted"],
)
async def test_a_call_that_fails_once_is_sent_again_whatever_it_does(
    store: DynamoDBStore, proxy: Proxy, fault: object
) -> None:
    for operation in ("Query", "BatchGetItem", "TransactWriteItems", "GetItem", "Scan"):
        proxy.spoil(operation, fault)  # type: ignore[arg-type]
    await read(store)
    await store.commit([Put(ITEMS[0])])
    await store.health()
    assert len([page async for page in store.scan(ReadUsage())]) == 1
    assert len(proxy.calls) == 10
    assert store.calls is not None
    assert store.calls.retried == 5


@pytest.mark.parametrize("operation", ["CreateTable", "DescribeTable", "DescribeTimeToLive"])
async def test_administration_is_sent_again_as_reads_are(store: DynamoDBStore, proxy: Proxy, operation: str) -> None:
    proxy.spoil(operation, throttled, status(503), dropped)
    await store.create()
    assert proxy.count(operation) == 4
    proxy.spoil(operation, *[throttled] * 9)
    with pytest.raises(Unavailable, match="overloaded"):
        await store.create()
    assert proxy.count(operation) == 4 + REQUEST_PATIENCE.attempts


async def test_a_call_has_as_many_attempts_as_patience_allows(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("Query", *[throttled] * 9)
    with pytest.raises(Unavailable, match="overloaded"):
        await store.range(EVERYTHING, ReadUsage())
    assert proxy.count("Query") == REQUEST_PATIENCE.attempts


async def test_the_answer_to_a_read_that_was_given_up_is_never_anothers(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("Query", delayed(0.2))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await store.range(EVERYTHING, ReadUsage())
    assert await store.range(subtree("t", "#a#"), ReadUsage()) == ITEMS[:1]


async def test_many_reads_at_a_time_get_their_own_answers(store: DynamoDBStore) -> None:
    async def one(number: int) -> None:
        item = ITEMS[number % 3]
        assert await store.range(subtree("t", str(item["sk"])), ReadUsage()) == [item]

    await asyncio.gather(*map(one, range(300)))


# -- a bad server ------------------------------------------------------------------------------------------------------

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
PAGE = json.dumps({"Items": [{"pk": {"S": "t"}, "sk": {"S": "#a#"}, "name": {"S": "a"}}], "Count": 1}).encode()


class BadServer(LoopbackServer):
    """A server that does with each call what it is told next, and then answers all others."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers: Iterator[Answer] = iter(answers)
        self.calls: list[dict[str, str]] = []
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, *lines, _, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            self.bodies.append(await reader.readexactly(int(headers["content-length"])))
            self.calls.append(headers)
            await self.answer(headers, writer)

    async def answer(self, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        await next(self.answers, good)(writer)


def responding(body: bytes, code: int = 200, checksum: int | None = None) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        crc = zlib.crc32(body) if checksum is None else checksum
        head = f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\nx-amz-crc32: {crc}\r\nDate: {formatdate()}\r\n\r\n"
        writer.write(head.encode() + body)

    return answer


def failing(name: str, code: int = 400, **more: object) -> Answer:
    return responding(json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{name}", **more}).encode(), code)


good = responding(PAGE)


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise ConnectionResetError


async def half(writer: asyncio.StreamWriter) -> None:
    """Half of a response, and the end of the connection."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE[:40]))
    await writer.drain()
    raise ConnectionAbortedError


async def no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n")


async def dripping(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, so that no single wait is long."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


HASTY = Patience(connect_seconds=2.0, read_seconds=0.3, timeouts=2, attempts=5)


def store_at(server: BadServer, patience: Patience = REQUEST_PATIENCE) -> DynamoDBStore:
    return DynamoDBStore("clade", region="eu-west-1", endpoint=server.url, patience=patience)


async def names_in(store: DynamoDBStore) -> list[object]:
    return [item["name"] for item in await store.range(EVERYTHING, ReadUsage())]


TRANSIENT: dict[str, Answer] = {
    "reset": reset, "half a response": half, "no HTTP": no_http, "wrong checksum": responding(PAGE, checksum=1),
    "500": failing("InternalServerError", 500), "500 of a balancer": responding(b"<html>", 500),
    "502": responding(b"", 502), "504": responding(b"<html>", 504), "throttled": failing("ThrottlingException"),
    "capacity": failing("ProvisionedThroughputExceededException"), "limit": failing("RequestLimitExceeded"),
}  # fmt: skip
FINAL: dict[str, tuple[Answer, str]] = {
    "validation": (failing("ValidationException"), "ValidationException"),
    "forbidden": (failing("AccessDeniedException"), "credentials"),
    "no JSON": (responding(b"<html>sign in</html>"), "not DynamoDB's"),
    "no response of a Query": (responding(b"{}"), "Query without Count or Items"),
    "403 of a proxy": (responding(b"<html>", 403), "HTTP status 403"),
    "a redirect": (responding(b"", 302), "HTTP status 302"),
}


@pytest.mark.parametrize("name", TRANSIENT)
async def test_what_may_pass_is_retried_until_it_has(name: str) -> None:
    async with BadServer(*[TRANSIENT[name]] * 4) as server, store_at(server) as store:
        assert await names_in(store) == ["a"]
        assert len(server.calls) == 5
    async with BadServer(*[TRANSIENT[name]] * 9) as server, store_at(server) as store:
        with pytest.raises(Unavailable):
            await names_in(store)
        assert len(server.calls) == REQUEST_PATIENCE.attempts


@pytest.mark.parametrize("name", FINAL)
async def test_what_does_not_pass_is_told_at_once(name: str) -> None:
    answer, sentence = FINAL[name]
    async with BadServer(answer) as server, store_at(server) as store:
        with pytest.raises(Unavailable, match=sentence):
            await names_in(store)
        assert len(server.calls) == 1


async def test_a_table_that_does_not_exist_is_told_at_once() -> None:
    async with BadServer(failing("ResourceNotFoundException")) as server, store_at(server) as store:
        with pytest.raises(NoTable, match="clade table create"):
            await names_in(store)
        assert len(server.calls) == 1


async def test_a_slow_response_is_retried_once() -> None:
    async with BadServer(dripping) as server, store_at(server, HASTY) as store:
        assert await names_in(store) == ["a"]
    async with BadServer(*[dripping] * 9) as server, store_at(server, HASTY) as store:
        with pytest.raises(Unavailable, match="TimeoutError"):
            await names_in(store)
        assert len(server.calls) == 2


@pytest.mark.parametrize("name", TRANSIENT)
async def test_a_transaction_is_repeated_with_its_token(name: str) -> None:
    in_between = [failing("TransactionInProgressException"), cancelled("TransactionConflict", "None")]
    async with BadServer(TRANSIENT[name], *in_between) as server, store_at(server) as store:
        await store.commit([Put(item) for item in ITEMS])
        assert len(server.calls) == 4
        assert len(set(server.bodies)) == 1
        assert len(json.loads(server.bodies[0])["ClientRequestToken"]) == 32
        await store.commit([Put(item) for item in ITEMS])
        assert json.loads(server.bodies[-1])["ClientRequestToken"] != json.loads(server.bodies[0])["ClientRequestToken"]


def cancelled(*reasons: str) -> Answer:
    return failing("TransactionCanceledException", CancellationReasons=[{"Code": reason} for reason in reasons])


async def test_of_a_transaction_without_a_response_nothing_is_claimed() -> None:
    async with BadServer(*[half] * 99) as server, store_at(server) as store:
        with pytest.raises(Uncertain):
            await store.commit([Put(item) for item in ITEMS])


async def test_a_transaction_that_was_never_sent_is_not_made() -> None:
    async with BadServer() as server:
        url = server.url
    async with DynamoDBStore("clade", region="eu-west-1", endpoint=url, patience=REQUEST_PATIENCE) as store:
        with pytest.raises(Unavailable, match="ConnectionRefusedError") as caught:
            await store.commit([Put(item) for item in ITEMS])
    assert not isinstance(caught.value, Uncertain)


async def test_administration_that_is_slow_is_retried_once() -> None:
    async with BadServer(*[dripping] * 9) as server, store_at(server, HASTY) as store:
        with pytest.raises(Unavailable, match="TimeoutError"):
            async with asyncio.timeout(30):
                await store.create()
        assert len(server.calls) == 2


# -- the quota of retries ----------------------------------------------------------------------------------------------


async def test_while_all_calls_fail_most_are_made_once_and_a_success_allows_retries_again() -> None:
    down = failing("InternalServerError", 500)
    async with BadServer(*[down] * 199, good, down, good) as server, store_at(server) as store:
        while len(server.calls) < 199:
            with pytest.raises(Unavailable):
                await names_in(store)
        assert store.calls is not None
        assert store.calls.retried == RetryQuota.CAPACITY // RetryQuota.COST
        assert await names_in(store) == ["a"]
        with pytest.raises(Unavailable):  # one success gives too little back
            await names_in(store)
        for _ in range(RetryQuota.COST):
            assert await names_in(store) == ["a"]
        server.answers = iter([down])
        assert await names_in(store) == ["a"]


# -- clocks ------------------------------------------------------------------------------------------------------------


class StrictServer(BadServer):
    """A server with a clock of its own, which rejects signatures of other times, from five minutes on."""

    def __init__(self, ahead: float) -> None:
        super().__init__()
        self.ahead = ahead

    async def answer(self, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        now = time.time() + self.ahead
        signed = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        body, code = PAGE, 200
        if abs(signed - now) > 300:
            name = "com.amazon.coral.service#InvalidSignatureException"
            body, code = json.dumps({"__type": name, "message": "Signature expired"}).encode(), 400
        head = f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\nDate: {formatdate(now)}\r\n\r\n"
        writer.write(head.encode() + body)


@pytest.mark.parametrize("ahead", [3600.0, -86_400.0])
async def test_a_wrong_clock_costs_one_call(ahead: float, caplog: pytest.LogCaptureFixture) -> None:
    async with StrictServer(ahead) as server, store_at(server) as store:
        with caplog.at_level(logging.WARNING, "clade"):
            for _ in range(3):
                assert await names_in(store) == ["a"]
        assert len(server.calls) == 4
        assert [record.levelname for record in caplog.records if record.name == "clade"] == ["WARNING"]
        server.ahead = 0.0  # somebody has set the clock
        assert await names_in(store) == ["a"]
        assert len(server.calls) == 6


async def test_all_calls_that_meet_a_wrong_clock_together_are_signed_anew(caplog: pytest.LogCaptureFixture) -> None:
    async with StrictServer(3600.0) as server, store_at(server) as store:
        assert await asyncio.gather(*[names_in(store) for _ in range(10)]) == [["a"]] * 10
        assert len(server.calls) == 20
    assert [record.name for record in caplog.records].count("clade") == 1


async def test_a_signature_that_is_wrong_at_any_time_is_told_at_once() -> None:
    async with BadServer(*[failing("InvalidSignatureException")] * 2) as server, store_at(server) as store:
        with pytest.raises(Unavailable, match="rejects the credentials"):
            await names_in(store)
        assert len(server.calls) == 1


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "https://dynamodb.eu-west-1.amazonaws.com"),
        ({"AWS_USE_FIPS_ENDPOINT": "true"}, "https://dynamodb-fips.eu-west-1.amazonaws.com"),
        ({"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "https://dynamodb.eu-west-1.api.aws"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "http://127.0.0.1:9"),
        ({"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8"}, "http://127.0.0.1:8"),
    ],
)
async def test_the_endpoint_is_that_of_the_aws_configuration(
    variables: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", **variables}.items():
        monkeypatch.setenv(name, value)
    async with DynamoDBClient("clade", "eu-west-1", None) as client:
        assert client.url == url


async def test_data_is_read_past_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # where nobody listens
    monkeypatch.setenv("NO_PROXY", "")
    async with BadServer() as server, store_at(server) as store:
        assert await names_in(store) == ["a"]
