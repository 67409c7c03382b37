"""Tables of DynamoDB: their definition and its differences, creation for production, and descriptions."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from store.dynamodb.store import DynamoDBStore
from store.dynamodb.table import differences, table_definition, table_summary
from store.engine import Capacity, TableOptions
from store.errors import BadInput, Unavailable, WrongTable
from tests import engines
from tests.certificate_authority import Authority
from tests.loopback_server import Tunnel
from tests.proxy import Call, Fault, Forward, Proxy, refused

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
UNITS = "table 50 read and 10 write units; by_level 20 read and 5 write units; by_parent 20 read and 5 write units"


@pytest.fixture(scope="module")
def moto() -> Iterator[engines.Engine]:
    """The engine that knows point-in-time recovery."""
    try:
        found = engines.moto()
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    with found:
        yield found


@pytest.fixture
def table() -> str:
    return f"clade-{uuid.uuid4().hex}"


# -- definition --------------------------------------------------------------------------------------------------------


def test_every_difference_of_a_table_is_told() -> None:
    other = table_definition("t")
    assert differences(other) == []
    other["KeySchema"] = [{"AttributeName": "id", "KeyType": "HASH"}]
    del other["GlobalSecondaryIndexes"][0]
    other["GlobalSecondaryIndexes"][0]["Projection"] = {"ProjectionType": "KEYS_ONLY"}
    other["AttributeDefinitions"][0]["AttributeType"] = "N"
    assert differences(other) == [
        "its keys are id, not pk and sk",
        "its keys are not texts",
        "it has no index by_parent",
        "its index by_level has other keys or does not project everything",
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"capacity": Capacity(1, 1), "index_capacity": Capacity(1, 0)}, "at least 1 unit"),
        ({"tags": {str(number): "" for number in range(51)}}, "at most 50 tags, not 51"),
    ],
)
def test_options_that_no_table_can_have_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        TableOptions(**options)


def test_a_table_is_told_in_words() -> None:
    capacity = Capacity(50, 10)
    options = TableOptions(protection=True, capacity=capacity, index_capacity=Capacity(20, 5), kms_key="alias/maps")
    found = {**table_definition("t", options), "TableStatus": "ACTIVE", "ItemCount": 7}
    assert table_summary(found) == {
        "status": "ACTIVE", "items": 7, "bytes": 0, "indexes": ["by_level", "by_parent"],
        "capacity": UNITS, "deletion protection": "on", "encryption": "by a key of DynamoDB's own",
    }  # fmt: skip
    alike = table_summary({**table_definition("t", TableOptions(capacity=capacity)), "TableStatus": "ACTIVE"})
    assert alike["capacity"] == UNITS.replace("20 read and 5", "50 read and 10")
    definition = table_definition("t")
    assert definition["BillingMode"] == "PAY_PER_REQUEST"
    assert definition.keys().isdisjoint({"ProvisionedThroughput", "Tags", "SSESpecification"})
    assert "ProvisionedThroughput" not in definition["GlobalSecondaryIndexes"][0]
    shown = table_summary({
        **definition, "TableStatus": "ACTIVE", "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},  # DynamoDB says so
        "SSEDescription": {"KMSMasterKeyArn": "arn:aws:kms:eu-west-1:1:key/2"},
    })  # fmt: skip
    assert (shown["capacity"], shown["encryption"]) == ("on demand", "arn:aws:kms:eu-west-1:1:key/2")


# -- creation ----------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def as_in_aws(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> AsyncIterator[DynamoDBStore]:
    """A store without an endpoint, whose connections to AWS are led to an engine by the proxy of the environment."""
    authority, host = Authority(folder), "dynamodb.eu-west-1.amazonaws.com"
    async with Proxy(url, authority.server(host)) as proxy, Tunnel(proxy.url.removeprefix("https://")) as tunnel:
        variables = {"AWS_CA_BUNDLE": str(authority.bundle), "HTTPS_PROXY": tunnel.url, "AWS_REGION": "eu-west-1"}
        for name, value in {**CREDENTIALS, **variables}.items():
            monkeypatch.setenv(name, value)
        async with DynamoDBStore(table) as store:
            yield store
        assert {*tunnel.opened} == {f"{host}:443"}


async def test_in_aws_a_new_table_can_be_recovered_and_not_be_deleted_unless_neither_is_wanted(
    moto: engines.Engine, table: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with as_in_aws(moto.url, table, monkeypatch, tmp_path) as store:
        assert await store.create()
        found = await store.describe()
        assert found["recovery"] == "to any second of the last 35 days"
        assert (found["deletion protection"], found["ttl"]) == ("on", "expires")
    async with as_in_aws(moto.url, f"{table}-2", monkeypatch, tmp_path) as store:
        assert await store.create(TableOptions(recovery=False, protection=False))
        assert not await store.create()  # which leaves alone what is there
        found = await store.describe()
        assert (found["recovery"], found["deletion protection"]) == ("off", "off")
        assert not await store.create(TableOptions(recovery=True))
        assert (await store.describe())["recovery"] != "off"
    async with DynamoDBStore(f"{table}-3", region="eu-west-1", endpoint=moto.url) as store:  # an engine that is named
        await store.create()
        found = await store.describe()
        assert (found["recovery"], found["deletion protection"]) == ("off", "off")


async def test_an_engine_without_recovery_serves_where_recovery_was_not_asked_for(
    engine: engines.Engine, table: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with Proxy(engine.url) as proxy, as_in_aws(proxy.url, table, monkeypatch, tmp_path) as store:
        proxy.spoil("UpdateContinuousBackups", *[refused("UnknownOperationException")] * 2)
        assert await store.create()
        assert proxy.count("UpdateContinuousBackups") == 1
        with pytest.raises(Unavailable, match="UnknownOperation"):
            await store.create(TableOptions(recovery=True))


async def test_recovery_of_a_table_just_made_is_waited_for(moto: engines.Engine, table: str) -> None:
    async with Proxy(moto.url) as proxy, DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url) as store:
        proxy.spoil("UpdateContinuousBackups", *[refused("ContinuousBackupsUnavailableException")] * 2)
        assert await store.create(TableOptions(recovery=True))
        assert proxy.count("UpdateContinuousBackups") == 3


async def test_what_may_not_be_asked_is_unknown(proxied: DynamoDBStore, proxy: Proxy) -> None:
    for operation in ("DescribeTimeToLive", "DescribeContinuousBackups", "ListTagsOfResource"):
        proxy.spoil(operation, refused("AccessDeniedException"))
    found = await proxied.describe()
    assert [found[name] for name in ("ttl", "recovery", "tags")] == ["unknown"] * 3
    assert found["status"] == "ACTIVE"


def saying(old: bytes, new: bytes) -> Fault:
    """The response with other words."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        answer = await forward(call.body)
        assert isinstance(answer.body, bytes)
        answer.body = answer.body.replace(old, new)
        return answer

    return fault


CREATING, DISABLED = saying(b'"ACTIVE"', b'"CREATING"'), saying(b'"ENABLED"', b'"DISABLED"')


async def test_a_table_that_is_still_being_made_is_waited_for(proxied: DynamoDBStore, proxy: Proxy) -> None:
    proxy.spoil("DescribeTable", refused("ResourceNotFoundException"), CREATING, CREATING)
    assert not await proxied.create()
    assert proxy.count("DescribeTable") == 4


async def test_a_table_with_other_keys_is_refused_and_left_alone(proxied: DynamoDBStore, proxy: Proxy) -> None:
    for use in (proxied.create, proxied.describe):
        proxy.spoil("DescribeTable", saying(b'"pk"', b'"id"'))
        with pytest.raises(WrongTable, match=f"{proxied.table}.*its keys are"):
            await use()
    assert {call.operation for call in proxy.calls} == {"CreateTable", "DescribeTable"}


async def test_an_engine_that_cannot_expire_or_does_already_does_not_hinder_and_a_refusal_is_told(
    proxied: DynamoDBStore, proxy: Proxy
) -> None:
    for name in ("UnknownOperationException", "ValidationException"):
        proxy.spoil("DescribeTimeToLive", DISABLED)
        proxy.spoil("UpdateTimeToLive", refused(name))
        assert not await proxied.create()
        proxy.mend()
    assert proxy.count("UpdateTimeToLive") == 2
    proxy.spoil("DescribeTimeToLive", DISABLED, DISABLED)
    proxy.spoil("UpdateTimeToLive", refused("AccessDeniedException"))
    with pytest.raises(Unavailable, match="credentials"):
        await proxied.create()
