"""DynamoDB store: pages, capacity, unprocessed keys, throttling, lost connections."""

import asyncio
import uuid
from dataclasses import replace

import pytest
from aiobotocore.session import get_session

from store.connect import open_store
from store.dynamodb.retries import BUSY
from store.dynamodb.store import DynamoDBStore
from store.engine.protocol import REQUEST_PATIENCE, Patience
from store.engine.read_trace import ReadTrace
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict, NoTable, Unavailable, Uncertain, WrongTable
from store.model.items import ABSENT, Check, Item, Put, key_of
from store.model.keys import Key
from store.model.ranges import below, children, subtree
from store.retry import RetryPolicy
from tests import engines
from tests.faulty_engine import FaultyEngine, slow
from tests.proxy import (
    Fault,
    Proxy,
    answer_dropped,
    cancelled,
    delayed,
    dropped,
    garbled,
    no_object,
    refused,
    scrambled,
    status,
    throttled,
    unprocessed,
)


@pytest.fixture
def store(proxied: DynamoDBStore) -> DynamoDBStore:
    return proxied


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are as random as ever, and a hundred times as short."""
    monkeypatch.setattr("store.dynamodb.retries.BUSY", RetryPolicy(0.0005, 0.01, attempts=8))


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


async def test_a_thousand_small_items_are_one_request(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(1000)
    await put(store, *new)
    assert await store.range(EVERYTHING, ReadUsage()) == new
    assert proxy.count("Query") == 1


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
    proxy.spoil("BatchGetItem", *[unprocessed(0)] * (BUSY.attempts + 1))
    with pytest.raises(Unavailable, match="overloaded"):
        await store.get([Key("t", "#")], ReadUsage())
    assert proxy.count("BatchGetItem") == BUSY.attempts


async def test_attempts_with_progress_are_not_counted(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(2 * BUSY.attempts)
    await put(store, *new)
    proxy.spoil("BatchGetItem", *[unprocessed(1)] * (2 * BUSY.attempts - 1))
    assert await store.get([key_of(item) for item in new], ReadUsage()) == new
    assert proxy.count("BatchGetItem") == 2 * BUSY.attempts


async def test_hundreds_of_keys_are_requested_concurrently(store: DynamoDBStore, proxy: Proxy) -> None:
    new = items(250)
    await put(store, *new)
    arrived = 0
    together = asyncio.Event()

    async def waits_for_the_others(call: object, forward: object) -> object:
        nonlocal arrived
        arrived += 1
        if arrived == 3:
            together.set()
        await asyncio.wait_for(together.wait(), 10)
        return await forward(call.body)  # type: ignore[operator, attr-defined]

    proxy.spoil("BatchGetItem", *[waits_for_the_others] * 3)  # type: ignore[list-item]
    assert await store.get([key_of(item) for item in new], ReadUsage()) == new
    assert proxy.count("BatchGetItem") == 3


# -- calls that fail ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [throttled, refused("ThrottlingException"), refused("InternalServerError", 500), status(503), dropped],
)  # fmt: skip
async def test_a_call_that_fails_once_is_sent_again(store: DynamoDBStore, proxy: Proxy, fault: object) -> None:
    new = items(3)
    await put(store, *new)
    proxy.spoil("Query", fault)  # type: ignore[arg-type]
    assert await store.range(EVERYTHING, ReadUsage()) == new
    assert proxy.count("Query") == 2


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (throttled, "overloaded"), (refused("InternalServerError", 500), "fails"), (status(502), "not DynamoDB's"),
        (dropped, "does not respond"),
    ],
)  # fmt: skip
async def test_a_call_that_keeps_failing_ends_in_an_error(
    store: DynamoDBStore, proxy: Proxy, fault: object, sentence: str
) -> None:
    proxy.spoil("Query", *[fault] * 10)  # type: ignore[list-item]
    with pytest.raises(Unavailable, match=sentence):
        await store.range(EVERYTHING, ReadUsage())


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


@pytest.mark.parametrize("fault", [garbled, scrambled, no_object])
async def test_a_damaged_response_is_an_error(store: DynamoDBStore, proxy: Proxy, fault: Fault) -> None:
    await put(store, *items(2))
    proxy.spoil("Query", fault)
    with pytest.raises(Unavailable, match="not DynamoDB's"):
        await store.range(EVERYTHING, ReadUsage())


@pytest.mark.parametrize("fault", [garbled, scrambled, no_object])
async def test_a_damaged_refusal_of_a_commit_leaves_it_unknown_whether_it_was_made(
    store: DynamoDBStore, proxy: Proxy, fault: Fault
) -> None:
    proxy.spoil("TransactWriteItems", fault)
    with pytest.raises(Uncertain, match="not DynamoDB's"):
        await store.commit([Put(items(1)[0]), Check(Key("t", "x"), {"n": 1})])


async def test_a_response_that_never_comes_times_out(proxy: Proxy) -> None:
    patience = Patience(connect_seconds=2, read_seconds=0.2, timeouts=1, attempts=1)
    async with DynamoDBStore("clade-slow", region="eu-west-1", endpoint=proxy.url, patience=patience) as store:
        proxy.spoil("Query", delayed(60))
        with pytest.raises(Unavailable, match="does not respond"):
            await store.range(EVERYTHING, ReadUsage())


async def test_after_an_attempt_of_a_request_that_timed_out_there_is_one_more(proxy: Proxy) -> None:
    table, patience = f"clade-{uuid.uuid4().hex}", replace(REQUEST_PATIENCE, read_seconds=0.8)
    async with DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url, patience=patience) as store:
        await store.create()
        assert await store.range(EVERYTHING, ReadUsage()) == []
        proxy.calls.clear()
        proxy.spoil("TransactWriteItems", *[delayed(60)] * 9)
        with pytest.raises(Uncertain, match="TimeoutError"):
            await store.commit([Put(items(1)[0])])
        assert proxy.count("TransactWriteItems") == 2
        proxy.spoil("Query", *[delayed(60)] * 9)
        with pytest.raises(Unavailable, match="TimeoutError"):
            await store.range(EVERYTHING, ReadUsage())
    assert proxy.count("Query") == 2


async def test_an_answer_that_drips_is_not_waited_for() -> None:
    patience = Patience(connect_seconds=0.2, read_seconds=0.3, timeouts=2, attempts=5)
    async with (
        FaultyEngine(slow) as engine,
        DynamoDBStore("clade", region="eu-west-1", endpoint=engine.url, patience=patience) as store,
        asyncio.timeout(30),
    ):  # fmt: skip
        with pytest.raises(Uncertain, match="TimeoutError"):
            await store.commit([Put(items(1)[0])])
    assert engine.calls[:2] == ["transactwriteitems"] * 2
    assert "transactwriteitems" not in engine.calls[2:]


async def test_a_call_that_was_cancelled_after_a_while_is_a_silent_one(
    store: DynamoDBStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.calls is not None
    for least, failed in ((30, 0), (0.1, 1)):
        monkeypatch.setattr("store.dynamodb.client.SILENT_SECONDS", least)
        proxy.spoil("Query", delayed(60))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await store.range(EVERYTHING, ReadUsage())
        assert store.calls.failed == failed


async def test_a_table_that_goes_away_is_told_as_no_table(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("GetItem", refused("ResourceNotFoundException"))
    with pytest.raises(NoTable, match="clade table create"):
        await store.health()
    await store.health()


async def test_an_engine_that_was_down_is_used_again_without_opening_anew() -> None:
    try:
        engine = engines.find()
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    if not engine.command:
        pytest.skip("the engine that CLADE_TEST_DYNAMODB names is not ours to stop")
    async with DynamoDBStore("clade-down", endpoint=engine.url, patience=REQUEST_PATIENCE) as store:
        with pytest.raises(Unavailable, match="does not respond"):
            await store.health()
        with engine:
            assert await store.create()
            await put(store, *items(1))
            await store.health()
        for verb in (store.health, lambda: put(store, *items(1)), lambda: store.get([Key("t", "#")], ReadUsage())):
            with pytest.raises(Unavailable) as caught:
                await verb()
            assert not isinstance(caught.value, NoTable)
        with engine:
            await store.create()
            await put(store, *items(2))
            assert await store.range(EVERYTHING, ReadUsage()) == items(2)


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


async def test_a_commit_that_always_meets_others_is_a_conflict(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("TransactWriteItems", *[cancelled("TransactionConflict")] * (BUSY.attempts + 1))
    with pytest.raises(Conflict) as caught:
        await store.commit([Put(items(1)[0])])
    assert caught.value.failed == ()
    assert proxy.count("TransactWriteItems") == BUSY.attempts


async def test_a_commit_that_is_always_throttled_is_unavailable(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("TransactWriteItems", *[cancelled("ThrottlingError")] * (BUSY.attempts + 1))
    with pytest.raises(Unavailable, match="overloaded"):
        await store.commit([Put(items(1)[0])])


async def test_a_condition_that_failed_is_not_tried_again(store: DynamoDBStore, proxy: Proxy) -> None:
    with pytest.raises(Conflict) as caught:
        await store.commit([Put(items(1)[0]), Check(Key("t", "x"), {"n": 1})])
    assert caught.value.failed == (1,)
    assert proxy.count("TransactWriteItems") == 1


async def test_a_commit_past_four_megabytes_is_refused_before_it_is_sent(store: DynamoDBStore, proxy: Proxy) -> None:
    with pytest.raises(BadInput, match="4 MB"):
        await store.commit([Put(item) for item in items(11, size=390_000)])
    assert proxy.count("TransactWriteItems") == 0


async def test_values_never_stand_in_an_expression(store: DynamoDBStore, proxy: Proxy) -> None:
    nasty = "x OR attribute_exists(pk)"
    with pytest.raises(Conflict):
        await store.commit([Check(Key("t", nasty), {nasty: nasty})])
    await store.range(children("t", f"#{nasty}#"), ReadUsage())
    for call in proxy.calls:
        for name, value in _strings(call.body):
            assert nasty not in value or not name.endswith("Expression")


def _strings(body: object, name: str = "") -> list[tuple[str, str]]:
    match body:
        case dict():
            return [found for key, value in body.items() for found in _strings(value, key)]
        case list():
            return [found for value in body for found in _strings(value, name)]
        case _:
            return [(name, str(body))]


# -- the table and its address -----------------------------------------------------------------------------------------


async def test_a_table_with_other_keys_is_refused_and_left_alone(engine: engines.Engine) -> None:
    name = f"other-{uuid.uuid4().hex}"
    async with _client(engine) as client:
        await client.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )  # fmt: skip
        async with DynamoDBStore(name, region="eu-west-1", endpoint=engine.url) as store:
            with pytest.raises(WrongTable, match=f"{name}.*key.*by_parent.*by_level"):
                await store.create()
        ttl = await client.describe_time_to_live(TableName=name)
        assert ttl["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED"


async def test_a_table_that_is_still_being_made_is_waited_for(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("DescribeTable", refused("ResourceNotFoundException"), _creating, _creating)
    assert not await store.create()
    assert proxy.count("DescribeTable") == 4


async def _creating(call: object, forward: object) -> object:
    answer = await forward(call.body)  # type: ignore[operator, attr-defined]
    answer.body = answer.body.replace(b'"ACTIVE"', b'"CREATING"')
    return answer


@pytest.mark.parametrize("fault", [refused("UnknownOperationException"), refused("ValidationException")])
async def test_an_engine_that_cannot_expire_or_does_already_does_not_hinder(
    store: DynamoDBStore, proxy: Proxy, fault: object
) -> None:
    proxy.spoil("DescribeTimeToLive", _disabled)
    proxy.spoil("UpdateTimeToLive", fault)  # type: ignore[arg-type]
    assert not await store.create()
    assert proxy.count("UpdateTimeToLive") == 1


async def test_a_refusal_to_expire_items_is_told(store: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("DescribeTimeToLive", _disabled, _disabled)
    proxy.spoil("UpdateTimeToLive", refused("AccessDeniedException"))
    with pytest.raises(Unavailable, match="credentials"):
        await store.create()


async def _disabled(call: object, forward: object) -> object:
    answer = await forward(call.body)  # type: ignore[operator, attr-defined]
    answer.body = answer.body.replace(b'"ENABLED"', b'"DISABLED"')
    return answer


def _client(engine: engines.Engine) -> object:
    return get_session().create_client(
        "dynamodb", region_name="eu-west-1", endpoint_url=engine.url,
        aws_access_key_id="local", aws_secret_access_key="local",
    )  # fmt: skip


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


async def test_settings_that_cannot_be_meant_are_refused_on_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(BadInput, match="region=REGION"):
        await open_store("dynamodb://table").__aenter__()
    with pytest.raises(BadInput, match="settings"):
        await open_store("dynamodb://table?region=eu-west-1&endpoint=nowhere").__aenter__()


async def test_a_local_engine_needs_no_credentials(engine: engines.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    async with open_store(f"dynamodb://clade-{uuid.uuid4().hex}?endpoint={engine.url}") as store:
        assert await store.create()


async def test_elsewhere_missing_credentials_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with open_store("dynamodb://table?region=eu-west-1") as store:
        with pytest.raises(Unavailable, match="needs AWS credentials"):
            await store.health()


async def test_a_store_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        await DynamoDBStore("table").range(below("t", "#"), ReadUsage())
