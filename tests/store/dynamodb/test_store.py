"""DynamoDB store: pages, capacity, unprocessed keys, throttling, lost connections."""

import asyncio
import contextlib
import uuid
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from store.connect import open_store
from store.dynamodb.store import DynamoDBStore
from store.dynamodb.transaction import RETRIES
from store.engine.patience import REQUEST_PATIENCE, Patience
from store.engine.read_trace import ReadTrace
from store.engine.usage import ReadUsage
from store.errors import BadInput, CladeError, Conflict, NoTable, Unavailable, Uncertain, WrongTable
from store.model.items import ABSENT, Check, Item, Put, key_of
from store.model.keys import Key
from store.model.ranges import below, subtree
from store.retry import RetryPolicy
from tests import engines
from tests.faulty_engine import FaultyEngine, slow
from tests.proxy import (
    Call,
    Fault,
    Forward,
    Proxy,
    answer_dropped,
    cancelled,
    delayed,
    dropped,
    garbled,
    miscounted,
    no_object,
    refused,
    scrambled,
    status,
    throttled,
    unprocessed,
)
from tests.time_limits import Held


@pytest.fixture
def store(proxied: DynamoDBStore) -> DynamoDBStore:
    return proxied


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are as random as ever, and a hundred times as short."""
    monkeypatch.setattr("store.dynamodb.transaction.RETRIES", RetryPolicy(0.0005, 0.01, attempts=8))


def items(count: int, size: int = 1) -> list[Item]:
    return [{"pk": "t", "sk": f"#{number:05}#", "text": "x" * size} for number in range(count)]


async def put(store: DynamoDBStore, *new: Item, together: int = 100) -> None:
    for start in range(0, len(new), together):
        await store.commit([Put(item) for item in new[start : start + together]])


EVERYTHING = subtree("t", "#")


# -- pages and capacities ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
async def test_pages_of_one_megabyte_are_followed_to_the_end(
    store: DynamoDBStore, proxy: Proxy, engine: engines.Engine, reverse: bool
) -> None:
    new = items(30, size=100_000)  # 3 MB
    await put(store, *new, together=10)
    reads = ReadUsage()
    found = await store.range(EVERYTHING, reads, reverse=reverse)
    assert found == (new[::-1] if reverse else new)
    assert (reads.items, reads.requests) == (30, proxy.count("Query"))
    assert await store.count(EVERYTHING, ReadUsage()) == 30
    if engine.exact:
        assert reads.requests == 3
        assert reads.units == pytest.approx(30 * 100_000 / 8192, rel=0.02)


async def test_a_limit_holds_across_pages_and_asks_only_for_what_is_missing(
    store: DynamoDBStore, proxy: Proxy, engine: engines.Engine
) -> None:
    await put(store, *items(30, size=100_000), together=10)
    reads = ReadUsage()
    assert len(await store.range(EVERYTHING, reads, limit=15)) == 15
    if engine.exact:
        limits = [call.body["Limit"] for call in proxy.calls if call.operation == "Query"]
        assert limits == [15, 15 - 10]
        assert reads.requests == 2


@pytest.mark.usefixtures("exact")
async def test_units_are_those_that_the_engine_reports(store: DynamoDBStore) -> None:
    await put(store, *items(10, size=1000))
    one, strong, many, all_of_them = ReadUsage(), ReadUsage(), ReadUsage(), ReadUsage()
    await store.get([Key("t", "#00000#")], one)
    await store.get([Key("t", "#00000#")], strong, strong=True)
    await store.get([Key("t", f"#{number:05}#") for number in range(10)], many)
    await store.range(EVERYTHING, all_of_them)
    assert (one.units, strong.units, many.units) == (0.5, 1.0, 5.0)
    assert all_of_them.units == 1.5  # 10 KB in one go


# -- unprocessed keys --------------------------------------------------------------------------------------------------


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


async def test_keys_that_stay_unprocessed_are_an_error_after_bounded_attempts(
    store: DynamoDBStore, proxy: Proxy
) -> None:
    proxy.spoil("BatchGetItem", *[unprocessed(0)] * (RETRIES.attempts + 1))
    with pytest.raises(Unavailable, match="overloaded"):
        await store.get([Key("t", "#")], ReadUsage())
    assert proxy.count("BatchGetItem") == RETRIES.attempts


async def test_attempts_with_progress_are_not_counted(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(2 * RETRIES.attempts)
    await put(store, *new)
    proxy.spoil("BatchGetItem", *[unprocessed(1)] * (2 * RETRIES.attempts - 1))
    assert await store.get([key_of(item) for item in new], ReadUsage()) == new
    assert proxy.count("BatchGetItem") == 2 * RETRIES.attempts


async def test_hundreds_of_keys_are_requested_concurrently(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(250)
    await put(store, *new)
    together = asyncio.Barrier(3)

    async def waits_for_the_others(call: Call, forward: Forward) -> web.Response:
        await asyncio.wait_for(together.wait(), 60)
        return await forward(call.body)

    proxy.spoil("BatchGetItem", *[waits_for_the_others] * 3)
    assert await store.get([key_of(item) for item in new], ReadUsage()) == new
    assert proxy.count("BatchGetItem") == 3


# -- calls that fail ---------------------------------------------------------------------------------------------------

BOTH_WAYS = pytest.mark.parametrize("is_direct", [False, True], ids=["by botocore", "directly"])


async def fill(store: DynamoDBStore, proxy: Proxy, *, is_direct: bool) -> list[Item]:
    """Put some items, and have botocore make the first read, after which the store makes them itself."""
    new = items(3)
    await put(store, *new)
    if is_direct:
        await store.range(EVERYTHING, ReadUsage())
    proxy.calls.clear()
    return new


@BOTH_WAYS
@pytest.mark.parametrize("fault", [throttled, refused("InternalServerError", 500), status(503), dropped, miscounted])
async def test_a_call_that_fails_once_is_sent_again(
    store: DynamoDBStore, proxy: Proxy, fault: Fault, *, is_direct: bool
) -> None:
    new = await fill(store, proxy, is_direct=is_direct)
    proxy.spoil("Query", fault)
    assert await store.range(EVERYTHING, ReadUsage()) == new
    assert proxy.count("Query") == 2


@BOTH_WAYS
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (throttled, "overloaded"), (refused("InternalServerError", 500), "fails"), (status(502), "not DynamoDB's"),
        (dropped, "does not respond"),
    ],
)  # fmt: skip
async def test_a_call_that_keeps_failing_ends_in_an_error(
    store: DynamoDBStore, proxy: Proxy, fault: Fault, sentence: str, *, is_direct: bool
) -> None:
    await fill(store, proxy, is_direct=is_direct)
    proxy.spoil("Query", *[fault] * 10)
    with pytest.raises(Unavailable, match=sentence):
        await store.range(EVERYTHING, ReadUsage())
    assert proxy.count("Query") == REQUEST_PATIENCE.attempts


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("AccessDeniedException", "credentials"), ("UnrecognizedClientException", "credentials"),
        ("ExpiredTokenException", "expired"), ("ValidationException", "ValidationException"),
    ],
)  # fmt: skip
async def test_a_refusal_is_told_at_once_and_without_the_engines_own_words(
    store: DynamoDBStore, proxy: Proxy, name: str, sentence: str
) -> None:
    proxy.spoil("Query", refused(name))
    with pytest.raises(Unavailable, match=sentence) as caught:
        await store.range(EVERYTHING, ReadUsage())
    assert "spoiled by a test" not in str(caught.value)
    assert proxy.count("Query") == 1


@BOTH_WAYS
@pytest.mark.parametrize("fault", [garbled, scrambled, no_object])
async def test_a_damaged_response_is_an_error(
    store: DynamoDBStore, proxy: Proxy, fault: Fault, *, is_direct: bool
) -> None:
    await fill(store, proxy, is_direct=is_direct)
    proxy.spoil("Query", fault)
    with pytest.raises(Unavailable, match="not DynamoDB's"):
        await store.range(EVERYTHING, ReadUsage())
    assert proxy.count("Query") == 1


@pytest.mark.parametrize("fault", [garbled, scrambled, no_object])
async def test_a_damaged_refusal_of_a_commit_leaves_it_unknown_whether_it_was_made(
    store: DynamoDBStore, proxy: Proxy, fault: Fault
) -> None:
    proxy.spoil("TransactWriteItems", fault)
    with pytest.raises(Uncertain, match="not DynamoDB's"):
        await store.commit([Put(items(1)[0]), Check(Key("t", "x"), {"n": 1})])


async def test_after_an_attempt_of_a_request_that_timed_out_there_is_one_more(proxy: Proxy) -> None:
    table, patience = f"clade-{uuid.uuid4().hex}", replace(REQUEST_PATIENCE, read_seconds=0.8)
    async with DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url) as store:
        await store.create()
    async with DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url, patience=patience) as store:
        found = None
        while found is None:  # a busy machine may take longer
            with contextlib.suppress(Unavailable):
                found = await store.range(EVERYTHING, ReadUsage())
        assert found == []
        proxy.calls.clear()
        proxy.spoil("TransactWriteItems", *[delayed(60)] * 9)
        with pytest.raises(Uncertain, match="ReadTimeoutError"):
            await store.commit([Put(items(1)[0])])
        assert proxy.count("TransactWriteItems") == 2
        proxy.spoil("Query", *[delayed(60)] * 9)
        with pytest.raises(Unavailable, match="ReadTimeoutError"):
            await store.range(EVERYTHING, ReadUsage())
    calls = [call for call in proxy.calls if call.operation == "Query"]
    assert ["amz-sdk-request" in call.headers for call in calls] == [False, True]  # directly, and by the library


async def test_an_answer_that_drips_is_not_waited_for() -> None:
    patience = Patience(connect_seconds=0.2, read_seconds=0.3, timeouts=2, attempts=5)
    async with (
        FaultyEngine(slow) as engine,
        DynamoDBStore("clade", region="eu-west-1", endpoint=engine.url, patience=patience) as store,
        asyncio.timeout(120),
    ):  # fmt: skip
        with pytest.raises(Uncertain, match="ReadTimeoutError"):
            await store.commit([Put(items(1)[0])])
    assert engine.calls[:2] == ["transactwriteitems"] * 2
    assert "transactwriteitems" not in engine.calls[2:]


async def test_a_call_that_was_cancelled_after_a_while_is_a_silent_one(
    store: DynamoDBStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.calls is not None
    for least, failed in ((3600.0, 0), (0.0, 1)):
        monkeypatch.setattr("store.dynamodb.client.SILENT_SECONDS", least)
        held = Held()
        proxy.spoil("Query", held)
        asked = asyncio.create_task(store.range(EVERYTHING, ReadUsage()))
        await held.arrived()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert store.calls.failed == failed
        held.may_go.set()


async def test_a_table_that_goes_away_is_told_as_no_table(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("GetItem", refused("ResourceNotFoundException"))
    with pytest.raises(NoTable, match="clade table create"):
        await store.health()
    await store.health()


# -- commits that fail -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("exact")
async def test_a_commit_whose_answer_was_lost_is_made_once(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("TransactWriteItems", answer_dropped)
    await store.commit([Put(items(1)[0], ABSENT)])  # made twice, its own condition would stop it
    assert proxy.count("TransactWriteItems") == 2
    assert await store.range(EVERYTHING, ReadUsage(), strong=True) == items(1)


async def test_a_commit_that_met_another_is_tried_again_as_the_same(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("TransactWriteItems", cancelled("None", "TransactionConflict"), cancelled("ThrottlingError", "None"))
    await store.commit([Put(item, ABSENT) for item in items(2)])
    sent = [call.body for call in proxy.calls if call.operation == "TransactWriteItems"]
    assert len(sent) == 3
    assert sent[0] == sent[1] == sent[2]
    assert await store.range(EVERYTHING, ReadUsage(), strong=True) == items(2)


@pytest.mark.parametrize(("reason", "error"), [("TransactionConflict", Conflict), ("ThrottlingError", Unavailable)])
async def test_a_commit_that_always_meets_others_or_is_throttled_is_tried_some_times(
    store: DynamoDBStore, proxy: Proxy, reason: str, error: type[CladeError]
) -> None:
    proxy.spoil("TransactWriteItems", *[cancelled(reason)] * (RETRIES.attempts + 1))
    with pytest.raises(error) as caught:
        await store.commit([Put(items(1)[0])])
    assert getattr(caught.value, "failed", ()) == ()
    assert proxy.count("TransactWriteItems") == RETRIES.attempts


async def test_a_condition_that_failed_is_not_tried_again(store: DynamoDBStore, proxy: Proxy) -> None:
    with pytest.raises(Conflict) as caught:
        await store.commit([Put(items(1)[0]), Check(Key("t", "x"), {"n": 1})])
    assert caught.value.failed == (1,)
    assert proxy.count("TransactWriteItems") == 1


async def test_a_commit_past_four_megabytes_is_refused_before_it_is_sent(store: DynamoDBStore, proxy: Proxy) -> None:
    with pytest.raises(BadInput, match="4 MB"):
        await store.commit([Put(item) for item in items(11, size=390_000)])
    assert proxy.count("TransactWriteItems") == 0


# -- the table and its address -----------------------------------------------------------------------------------------


async def test_a_table_with_other_keys_is_refused_and_left_alone(engine: engines.Engine) -> None:
    name = f"other-{uuid.uuid4().hex}"
    async with DynamoDBStore(name, region="eu-west-1", endpoint=engine.url) as store:
        await store.client.call(
            "create_table", TableName=name, BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )  # fmt: skip
        with pytest.raises(WrongTable, match=f"{name}.*key.*by_parent.*by_level"):
            await store.create()
        ttl: Any = await store.client.call("describe_time_to_live", TableName=name)
        assert ttl["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED"


def saying(old: bytes, new: bytes) -> Fault:
    """The response with other words."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        answer = await forward(call.body)
        assert isinstance(answer.body, bytes)
        answer.body = answer.body.replace(old, new)
        return answer

    return fault


CREATING, DISABLED = saying(b'"ACTIVE"', b'"CREATING"'), saying(b'"ENABLED"', b'"DISABLED"')


async def test_a_table_that_is_still_being_made_is_waited_for(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("DescribeTable", refused("ResourceNotFoundException"), CREATING, CREATING)
    assert not await store.create()
    assert proxy.count("DescribeTable") == 4


@pytest.mark.parametrize("fault", [refused("UnknownOperationException"), refused("ValidationException")])
async def test_an_engine_that_cannot_expire_or_does_already_does_not_hinder(
    store: DynamoDBStore, proxy: Proxy, fault: Fault
) -> None:
    proxy.spoil("DescribeTimeToLive", DISABLED)
    proxy.spoil("UpdateTimeToLive", fault)
    assert not await store.create()
    assert proxy.count("UpdateTimeToLive") == 1


async def test_a_refusal_to_expire_items_is_told(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("DescribeTimeToLive", DISABLED, DISABLED)
    proxy.spoil("UpdateTimeToLive", refused("AccessDeniedException"))
    with pytest.raises(Unavailable, match="credentials"):
        await store.create()


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("", "not the name of a table"), ("a b", "not the name"), ("t/x", "not the name"), ("ab", "3 to 255"),
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
@pytest.mark.parametrize(
    ("address", "sentence"), [("table", "region=REGION"), ("table?region=eu-west-1&endpoint=nowhere", "settings")]
)
async def test_settings_that_cannot_be_meant_are_refused_on_opening(address: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        await open_store(f"dynamodb://{address}").__aenter__()


@pytest.mark.usefixtures("no_credentials")
async def test_a_local_engine_alone_needs_no_credentials(engine: engines.Engine) -> None:
    async with open_store(f"dynamodb://clade-{uuid.uuid4().hex}?endpoint={engine.url}") as store:
        assert await store.create()
    async with open_store("dynamodb://table?region=eu-west-1") as store:
        with pytest.raises(Unavailable, match="needs AWS credentials"):
            await store.health()


async def test_a_store_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        await DynamoDBStore("table").range(below("t", "#"), ReadUsage())
