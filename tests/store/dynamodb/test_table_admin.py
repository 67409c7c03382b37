"""Table creation for production: recovery, protection, capacity, tags and encryption, where the engine has them."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from store.dynamodb import table_admin
from store.dynamodb.store import DynamoDBStore
from store.engine.table_options import Capacity, TableOptions
from store.errors import Unavailable
from store.retry import RetryPolicy
from tests import engines
from tests.proxy import Proxy, refused

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


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


@contextlib.asynccontextmanager
async def as_in_aws(url: str, table: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DynamoDBStore]:
    """A store whose address names no endpoint, as in AWS."""
    for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL_DYNAMODB": url}.items():
        monkeypatch.setenv(name, value)
    async with DynamoDBStore(table, region="eu-west-1") as store:
        yield store


async def test_in_aws_a_new_table_can_be_recovered_and_not_be_deleted_unless_neither_is_wanted(
    moto: engines.Engine, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with as_in_aws(moto.url, table, monkeypatch) as store:
        assert await store.create()
        found = await store.describe()
        assert found["recovery"] == "to any second of the last 35 days"
        assert (found["deletion protection"], found["ttl"]) == ("on", "expires")
    async with as_in_aws(moto.url, f"{table}-2", monkeypatch) as store:
        assert await store.create(TableOptions(recovery=False, protection=False))
        assert not await store.create()  # which leaves alone what is there
        found = await store.describe()
        assert (found["recovery"], found["deletion protection"]) == ("off", "off")
        assert not await store.create(TableOptions(recovery=True))
        assert (await store.describe())["recovery"] != "off"


async def test_an_engine_that_is_named_has_neither_unless_asked(moto: engines.Engine, table: str) -> None:
    async with DynamoDBStore(table, region="eu-west-1", endpoint=moto.url) as store:
        await store.create()
        found = await store.describe()
        assert (found["recovery"], found["deletion protection"]) == ("off", "off")


async def test_everything_that_was_asked_for_is_described(engine: engines.Engine, table: str) -> None:
    options = TableOptions(
        protection=True, capacity=Capacity(50, 10), index_capacity=Capacity(20, 5), tags={"team": "maps", "stage": "x"},
        kms_key="alias/maps",
    )  # fmt: skip
    async with DynamoDBStore(table, region="eu-west-1", endpoint=engine.url) as store:
        assert await store.create(options)
        found = await store.describe()
    assert found["capacity"] == (
        "table 50 read and 10 write units; by_level 20 read and 5 write units; by_parent 20 read and 5 write units"
    )
    assert found["deletion protection"] == "on"
    if engine.name == "dynoxide":  # moto knows tags of its own region's tables alone
        assert found["tags"] == "stage=x, team=maps"
        assert str(found["encryption"]).endswith("alias/maps")


async def test_an_engine_without_recovery_serves_where_recovery_was_not_asked_for(
    engine: engines.Engine, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy(engine.url) as proxy, as_in_aws(proxy.url, table, monkeypatch) as store:
        proxy.spoil("UpdateContinuousBackups", refused("UnknownOperationException"))
        assert await store.create()
        assert proxy.count("UpdateContinuousBackups") == 1
        proxy.spoil("DescribeContinuousBackups", refused("UnknownOperationException"))
        assert (await store.describe())["recovery"] == "unknown"
        proxy.spoil("UpdateContinuousBackups", refused("UnknownOperationException"))
        with pytest.raises(Unavailable, match="UnknownOperation"):
            await store.create(TableOptions(recovery=True))


async def test_recovery_of_a_table_just_made_is_waited_for(moto: engines.Engine, table: str) -> None:
    async with Proxy(moto.url) as proxy, DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url) as store:
        proxy.spoil("UpdateContinuousBackups", *[refused("ContinuousBackupsUnavailableException")] * 2)
        assert await store.create(TableOptions(recovery=True))
        assert proxy.count("UpdateContinuousBackups") == 3


async def test_what_never_comes_to_be_is_told(
    engine: engines.Engine, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_admin, "POLLS", RetryPolicy(0.05, 0.05, deadline_seconds=0.2))
    async with Proxy(engine.url) as proxy, DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url) as store:
        proxy.spoil("UpdateContinuousBackups", *[refused("ContinuousBackupsUnavailableException")] * 1_000)
        with pytest.raises(Unavailable, match="without recovery"):
            await store.create(TableOptions(recovery=True))
        proxy.spoil("DescribeTable", *[refused("ResourceNotFoundException")] * 1_000)
        with pytest.raises(Unavailable, match="not active after"):
            await store.create()


async def test_what_may_not_be_asked_is_unknown(engine: engines.Engine, table: str) -> None:
    async with Proxy(engine.url) as proxy, DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url) as store:
        await store.create()
        for operation in ("DescribeTimeToLive", "DescribeContinuousBackups", "ListTagsOfResource"):
            proxy.spoil(operation, refused("AccessDeniedException"))
        found = await store.describe()
    assert [found[name] for name in ("ttl", "recovery", "tags")] == ["unknown"] * 3
    assert found["status"] == "ACTIVE"
