"""DynamoDB store at the wire: pages, unprocessed keys, faults of calls and commits, connections, and the address."""

import asyncio
import contextlib
import re
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from store.concurrency import RetryPolicy
from store.connect import open_store
from store.dynamodb.client import CircuitBreaker
from store.dynamodb.store import DynamoDBStore
from store.engine import COMMAND_PATIENCE, REQUEST_PATIENCE, Patience, ReadTrace, ReadUsage
from store.errors import BadInput, Conflict, NoTable, Unavailable, Uncertain
from store.model.keys import Key, subtree
from store.model.records import ABSENT, Check, Item, Put, key_of
from tests import engines
from tests.ports import closed_port
from tests.proxy import (
    Call,
    Fault,
    Forward,
    Proxy,
    Silence,
    cancelled,
    dropped,
    garbled,
    miscounted,
    mute,
    no_object,
    refused,
    scrambled,
    slow,
    status,
    throttled,
    unprocessed,
)
from tests.tables import empty
from tests.time_limits import Held

ATTEMPTS = 8  # of a throttled call
MANY = REQUEST_PATIENCE.attempts  # of one that fails
EVERYTHING = subtree("t", "#")
NO_RESPONSES = [garbled, scrambled, no_object]


@pytest.fixture
def store(proxied: DynamoDBStore) -> DynamoDBStore:
    return proxied


@asynccontextmanager
async def store_at(engine: Proxy, patience: Patience | None = None) -> AsyncIterator[DynamoDBStore]:
    """A store that waits for responses longer than a test does, unless it is given another patience."""
    patience = patience or replace(REQUEST_PATIENCE, read_seconds=600.0)
    async with (
        DynamoDBStore("clade", region="eu-west-1", endpoint=engine.url, patience=patience) as store,
        asyncio.timeout(120),
    ):
        yield store


def items(count: int, size: int = 1) -> list[Item]:
    return [{"pk": "t", "sk": f"#{number:05}#", "text": "x" * size} for number in range(count)]


async def put(store: DynamoDBStore, *new: Item, together: int = 100) -> None:
    for start in range(0, len(new), together):
        await store.commit([Put(item) for item in new[start : start + together]])


# -- pages and unprocessed keys ----------------------------------------------------------------------------------------


async def test_pages_of_one_megabyte_are_followed_to_the_end_or_to_the_limit(
    store: DynamoDBStore, proxy: Proxy, engine: engines.Engine
) -> None:
    new = items(30, size=100_000)  # 3 MB
    await put(store, *new, together=10)
    assert await store.count(EVERYTHING, ReadUsage()) == 30
    for reverse in (False, True):
        reads, some = ReadUsage(), ReadUsage()
        proxy.calls.clear()
        assert await store.range(EVERYTHING, reads, reverse=reverse) == (new[::-1] if reverse else new)
        assert (reads.items, reads.requests) == (30, proxy.count("Query"))
        proxy.calls.clear()
        assert await store.range(EVERYTHING, some, limit=15, reverse=reverse) == (new[::-1] if reverse else new)[:15]
        if engine.exact:
            assert (reads.requests, some.requests) == (3, 2)
            assert reads.units == pytest.approx(30 * 100_000 / 8192, rel=0.02)
            assert [call.body["Limit"] for call in proxy.calls] == [15, 15 - 10]


async def test_unprocessed_keys_are_requested_again(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(10)
    await put(store, *new)
    proxy.spoil("BatchGetItem", unprocessed(4), unprocessed(0), unprocessed(3))
    reads = ReadUsage(trace=ReadTrace(lambda: 1))
    assert await store.get([key_of(item) for item in new], reads) == new
    assert reads.trace is not None
    traced = [(len(call["keys"]), call["items"]) for call in reads.trace.report()["calls"]]
    assert traced == [(10, 4), (6, 0), (6, 3), (3, 3)]
    asked = [call.body["RequestItems"][store.table]["Keys"] for call in proxy.calls if call.operation == "BatchGetItem"]
    assert [len(keys) for keys in asked] == [10, 6, 6, 3]
    assert (reads.requests, reads.items) == (4, 10)


async def test_only_attempts_without_progress_are_counted_and_bounded(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(2 * ATTEMPTS)
    await put(store, *new)
    proxy.spoil("BatchGetItem", *[unprocessed(1)] * (2 * ATTEMPTS - 1))
    assert await store.get([key_of(item) for item in new], ReadUsage()) == new
    assert proxy.count("BatchGetItem") == 2 * ATTEMPTS
    proxy.calls.clear()
    proxy.spoil("BatchGetItem", *[unprocessed(0)] * (ATTEMPTS + 1))
    with pytest.raises(Unavailable, match="overloaded"):
        await store.get([Key("t", "#")], ReadUsage())
    assert proxy.count("BatchGetItem") == ATTEMPTS


async def test_hundreds_of_keys_are_requested_concurrently(store: DynamoDBStore, proxy: Proxy) -> None:
    together = asyncio.Barrier(3)

    async def waits_for_the_others(call: Call, forward: Forward) -> web.Response:
        await asyncio.wait_for(together.wait(), 60)
        return await forward(call.body)

    proxy.spoil("BatchGetItem", *[waits_for_the_others] * 3)
    assert await store.get([key_of(item) for item in items(250)], ReadUsage()) == [None] * 250
    assert proxy.count("BatchGetItem") == 3


# -- reads that fail ---------------------------------------------------------------------------------------------------


async def test_a_call_that_fails_once_is_sent_again(store: DynamoDBStore, proxy: Proxy) -> None:
    await put(store, *items(3))
    for fault in (throttled, refused("InternalServerError", 500), status(503), dropped, miscounted) * 2:
        proxy.calls.clear()
        proxy.spoil("Query", fault)
        assert await store.range(EVERYTHING, ReadUsage()) == items(3)
        assert proxy.count("Query") == 2


LASTING: list[tuple[Fault, int, str]] = [
    (throttled, MANY, "overloaded"), (dropped, MANY, "does not respond"), (status(502), MANY, "not DynamoDB's"),
    (refused("InternalServerError", 500), MANY, "fails"), *[(fault, 1, "not DynamoDB's") for fault in NO_RESPONSES],
    *[(refused(f"{name}Exception"), 1, "credentials") for name in ("AccessDenied", "UnrecognizedClient")],
    (refused("InvalidSignatureException"), 2, "rejects the credentials"),
    (refused("ExpiredTokenException"), 1, "expired"), (refused("ValidationException"), 1, "ValidationException"),
]  # fmt: skip


async def test_a_call_that_keeps_failing_or_is_refused_ends_in_an_error_without_the_engines_own_words(
    store: DynamoDBStore, proxy: Proxy
) -> None:
    await put(store, *items(3))
    for fault, calls, sentence in LASTING:
        proxy.calls.clear()
        proxy.spoil("Query", *[fault] * 10)
        with pytest.raises(Unavailable, match=sentence) as caught:
            await store.range(EVERYTHING, ReadUsage())
        assert "spoiled by a test" not in str(caught.value)
        assert proxy.count("Query") == calls
        proxy.mend()
        assert await store.range(EVERYTHING, ReadUsage()) == items(3)


@pytest.mark.parametrize("answer", [mute, slow])
async def test_a_response_that_does_not_come_or_drips_is_waited_for_twice(answer: Fault) -> None:
    patience = Patience(connect_seconds=60.0, read_seconds=0.2, timeouts=2, attempts=5)
    async with Proxy(usual=empty) as engine, store_at(engine, patience) as store:
        found = None
        while found is None:  # a busy machine may take longer
            with contextlib.suppress(Unavailable):
                found = await store.range(EVERYTHING, ReadUsage())
        engine.usual = answer
        engine.calls.clear()
        with pytest.raises(Unavailable, match="ReadTimeoutError"):
            await store.range(EVERYTHING, ReadUsage())
        assert engine.operations == ["Query"] * 2
        with pytest.raises(Uncertain, match="ReadTimeoutError"):
            await store.commit([Put(items(1)[0])])
        assert engine.count("TransactWriteItems") == 2


async def test_a_command_is_patient_once_dynamodb_has_responded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.dynamodb.client.RETRIES", RetryPolicy(0.0, 0.0))
    async with Proxy(usual=empty) as engine, store_at(engine, COMMAND_PATIENCE) as store:
        for attempts in (REQUEST_PATIENCE.attempts, COMMAND_PATIENCE.attempts):
            engine.calls.clear()
            engine.spoil("Query", *[status(503)] * 20)
            with pytest.raises(Unavailable):
                await store.range(EVERYTHING, ReadUsage())
            assert engine.count("Query") == attempts
            engine.mend()
            assert await store.range(EVERYTHING, ReadUsage()) == []


async def test_a_call_that_was_cancelled_after_a_while_is_a_silent_one(
    store: DynamoDBStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.dynamodb.client.SILENT_SECONDS", 0.0)
    held = Held()
    proxy.spoil("Query", held)
    asked = asyncio.create_task(store.range(EVERYTHING, ReadUsage()))
    await held.arrived()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    held.may_go.set()
    assert store.calls is not None
    assert store.calls.failed == 1


# -- connections -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "is_closed"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", True), (b"", True), (b"SSH-2.0-OpenSSH_9.2\r\n", False),
        (b"HTTP/1.1 101 Upgrade\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", False),
    ],
    ids=["broken off", "nothing", "another protocol", "a wish for another protocol"],
)  # fmt: skip
async def test_what_is_no_whole_response_is_retried_over_other_connections(raw: bytes, is_closed: bool) -> None:
    async def once(call: Call, forward: Forward) -> web.Response:
        engine.usual = empty
        call.transport.write(raw)
        if is_closed:
            call.transport.close()
        return Silence()

    async with Proxy(usual=empty) as engine, store_at(engine) as store:
        assert await store.range(EVERYTHING, ReadUsage()) == []
        engine.usual = once
        assert await store.range(EVERYTHING, ReadUsage()) == []
        assert engine.operations == ["Query"] * 3


async def test_no_call_gets_the_response_to_another() -> None:
    """Not even where an informational response comes before it, or one more begins that nobody asked for."""
    count, rest = 0, dict[asyncio.Transport, bytes]()

    async def counting(call: Call, forward: Forward) -> web.Response:
        nonlocal count
        count += 1
        body = b'{"Items": [], "Count": %d}' % count
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        early = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        call.transport.write(rest.get(call.transport, b"") + early + whole + whole[:20])
        rest[call.transport] = whole[20:]
        return Silence()

    async with Proxy(usual=empty) as engine, store_at(engine) as store:
        await store.count(EVERYTHING, ReadUsage())
        engine.usual = counting
        assert [await store.count(EVERYTHING, ReadUsage()) for _ in range(3)] == [1, 2, 3]


async def test_concurrent_calls_get_their_own_responses_also_after_one_that_was_given_up(
    store: DynamoDBStore, proxy: Proxy
) -> None:
    async def one(number: int) -> None:
        item = items(3)[number % 3]
        assert await store.range(subtree("t", str(item["sk"])), ReadUsage()) == [item]

    await put(store, *items(3))
    await one(0)
    held = Held()
    proxy.spoil("Query", held)
    given_up = asyncio.create_task(store.range(EVERYTHING, ReadUsage()))
    await held.arrived()
    given_up.cancel()
    await asyncio.wait([given_up])
    held.may_go.set()
    await asyncio.gather(*map(one, range(100)))


async def test_connections_that_were_lost_while_idle_fail_one_attempt_in_all_and_none_after_a_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: set[asyncio.Transport] = set()
    lost: set[asyncio.Transport] = set()
    all_open, right = asyncio.Event(), time.time

    async def answer(call: Call, forward: Forward) -> web.Response:
        if call.transport in lost:  # forgotten by a gateway between, which resets it when it is used again
            call.transport.abort()
            return Silence()
        opened.add(call.transport)
        if len(opened) >= 20:
            all_open.set()
        await all_open.wait()
        return await empty(call, forward)

    async with Proxy(usual=answer) as engine, store_at(engine) as store:
        assert store.calls is not None
        for sleeps, retried in ((False, 1), (True, 1)):
            await asyncio.gather(*[store.range(EVERYTHING, ReadUsage()) for _ in range(20)])
            lost |= opened
            if sleeps:  # while the machine sleeps, the monotonic clock stands still
                monkeypatch.setattr(time, "time", lambda: right() + 3600)
            await store.commit([Put(items(1)[0])])
            assert await store.range(EVERYTHING, ReadUsage()) == []
            assert store.calls.retried == retried
            assert len(opened - lost) == 1


# -- circuit breaker and figures ---------------------------------------------------------------------------------------


def test_the_circuit_opens_after_failures_in_a_row_lets_a_probe_through_and_is_closed_by_a_response() -> None:
    now = [0.0]
    circuit = CircuitBreaker(lambda: now[0])
    for failures, allowed in ((circuit.FAILURES - 1, [True] * 3), (circuit.FAILURES, [False] * 3)):
        circuit.record_response()
        for _ in range(failures):
            circuit.record_timeout()
        assert [circuit.allows_call() for _ in range(3)] == allowed
    for now[0] in (1.0, 2.0):
        assert [circuit.allows_call() for _ in range(3)] == [True, False, False]
        circuit.record_timeout()
    circuit.record_response()
    assert [circuit.allows_call() for _ in range(3)] == [True] * 3


async def test_an_engine_that_is_down_is_not_asked_again_by_every_request() -> None:
    endpoint, told = f"http://127.0.0.1:{closed_port()}", list[str]()
    async with DynamoDBStore("clade", region="eu-west-1", endpoint=endpoint) as store:
        for _ in range(20):
            with pytest.raises(Unavailable) as caught:
                await store.health()
            told.append(str(caught.value))
    silent = f"DynamoDB does not respond at {endpoint} (EndpointConnectionError); try again."
    assert told == [silent] * 5 + ["DynamoDB has not responded for a while; try again."] * 15
    assert store.calls is not None
    assert (store.calls.made, store.calls.failed, store.calls.skipped, store.calls.retried) == (5, 5, 15, 20)


async def test_lost_connections_and_throttles_are_tried_again_and_counted(store: DynamoDBStore, proxy: Proxy) -> None:
    calls = store.calls
    assert calls is not None
    made = calls.made
    proxy.spoil("BatchGetItem", dropped, throttled, throttled)
    assert await store.get([Key("a", "b")], ReadUsage()) == [None]
    assert (calls.made - made, calls.retried, calls.throttled, calls.failed) == (1, 3, 2, 0)


async def test_a_scan_has_all_that_was_written_before_it(store: DynamoDBStore, proxy: Proxy) -> None:
    await store.commit([Put(item) for item in items(2)])
    assert [item async for page in store.scan(ReadUsage()) for item in page] == items(2)
    assert [call.body.get("ConsistentRead") for call in proxy.calls if call.operation == "Scan"] == [True]


# -- commits that fail -------------------------------------------------------------------------------------------------


async def test_a_commit_that_met_another_is_tried_again_as_the_same(store: DynamoDBStore, proxy: Proxy) -> None:
    met, busy = cancelled("None", "TransactionConflict"), cancelled("ThrottlingError", "None")
    proxy.spoil("TransactWriteItems", met, busy, refused("TransactionInProgressException"))
    await store.commit([Put(item, ABSENT) for item in items(2)])
    sent = [call.body for call in proxy.calls if call.operation == "TransactWriteItems"]
    assert sent == [sent[0]] * 4
    assert await store.range(EVERYTHING, ReadUsage(), strong=True) == items(2)


async def test_a_commit_that_always_meets_others_or_is_throttled_is_tried_some_times(
    store: DynamoDBStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.dynamodb.transaction.RETRIES", RetryPolicy(0.0005, 0.01, attempts=ATTEMPTS))
    for fault, error, message in (
        (cancelled("TransactionConflict"), Conflict, "came first"),
        (cancelled("ThrottlingError"), Unavailable, "overloaded"),
        (refused("TransactionInProgressException"), Unavailable, "still carrying out"),
    ):
        proxy.calls.clear()
        proxy.spoil("TransactWriteItems", *[fault] * ATTEMPTS)
        with pytest.raises(error, match=message) as caught:
            await store.commit([Put(items(1)[0])])
        assert getattr(caught.value, "failed", ()) == ()
        assert proxy.count("TransactWriteItems") == ATTEMPTS


async def test_a_commit_that_cannot_be_made_is_sent_once_and_one_past_four_megabytes_never(
    store: DynamoDBStore, proxy: Proxy
) -> None:
    with pytest.raises(BadInput, match="4 MB"):
        await store.commit([Put(item) for item in items(11, size=390_000)])
    assert proxy.count("TransactWriteItems") == 0
    with pytest.raises(Conflict) as caught:
        await store.commit([Put(items(1)[0]), Check(Key("t", "x"), {"n": 1})])
    assert caught.value.failed == (1,)
    assert proxy.count("TransactWriteItems") == 1


# -- the address -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("", "not the name of a table"), ("t/x", "not the name"), ("ab", "3 to 255"),
        ("table?zone=x", "no option zone"), ("table?region=x&y", "no option y"),
    ],
)  # fmt: skip
def test_an_invalid_url_is_rejected(address: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        open_store(f"dynamodb://{address}")


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a configuration of AWS."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "DEFAULT_REGION"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("no_credentials")
async def test_opening_needs_a_region_and_a_local_engine_alone_no_credentials(engine: engines.Engine) -> None:
    wrong = {f"table?region=eu-west-1&endpoint={endpoint}": "no address" for endpoint in ("nowhere", "ftp://a.example")}
    for address, sentence in {"table": "region=REGION, or set AWS_REGION", **wrong}.items():
        with pytest.raises(BadInput, match=sentence):
            await open_store(f"dynamodb://{address}").__aenter__()
    async with open_store(f"dynamodb://clade-{uuid.uuid4().hex}?endpoint={engine.url}") as store:
        assert await store.create()
    async with open_store("dynamodb://table?region=eu-west-1") as store:
        with pytest.raises(Unavailable, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"):
            await store.health()


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize(
    ("variables", "config"),
    [
        ({"AWS_ENDPOINT_URL_DYNAMODB": "URL", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, ""),
        ({"AWS_ENDPOINT_URL": "URL", "AWS_ENDPOINT_URL_DYNAMODB": ""}, "endpoint_url = http://127.0.0.1:9"),
        ({}, "endpoint_url = URL"),
        ({}, "services = here\n[services here]\ndynamodb =\n  endpoint_url = URL"),
    ],
)
async def test_an_endpoint_of_the_aws_configuration_has_the_defaults_of_one_in_the_url(
    variables: dict[str, str], config: str, engine: engines.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"clade-{uuid.uuid4().hex}"
    async with Proxy(engine.url) as proxy:
        (tmp_path / "config").write_text(f"[default]\n{config}\n".replace("URL", proxy.url))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        for name, value in variables.items():
            monkeypatch.setenv(name, value.replace("URL", proxy.url))
        async with open_store(f"dynamodb://{table}") as store:
            await store.create()
    (made,) = [call for call in proxy.calls if call.operation == "CreateTable"]
    assert "DeletionProtectionEnabled" not in made.body
    assert "UpdateContinuousBackups" not in {call.operation for call in proxy.calls}
    assert re.search(r"Credential=local/\d+/us-east-1/", made.headers["Authorization"])
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    with pytest.raises(BadInput, match="No AWS region"):
        await open_store(f"dynamodb://{table}").__aenter__()


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize(
    ("option", "variables", "region"),
    [
        ("&region=ap-south-1", {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "ap-south-1"),
        ("&region=", {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-1"),
        ("", {"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2"),
        ("", {"AWS_REGION": "", "AWS_DEFAULT_REGION": ""}, "eu-north-1"),
        ("", {"AWS_PROFILE": "other"}, "us-east-1"),
    ],
)
async def test_the_region_is_that_of_the_url_else_of_the_variables_else_of_the_profile(
    option: str, variables: dict[str, str], region: str, engine: engines.Engine, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "config").write_text("[default]\nregion = eu-north-1\n[profile other]\noutput = json\n")
    for name, value in {"AWS_CONFIG_FILE": str(tmp_path / "config"), **variables}.items():
        monkeypatch.setenv(name, value)
    async with Proxy(engine.url) as proxy, open_store(f"dynamodb://none?endpoint={proxy.url}{option}") as store:
        with pytest.raises(NoTable):
            await store.health()
    assert {call.headers["Authorization"].split("/")[2] for call in proxy.calls} == {region}
