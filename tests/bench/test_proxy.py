"""The proxy before a real engine: it passes calls on, delays, counts and throttles them."""

import time
import urllib.error
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest

from bench.dynamodb.proxy import Controlled, Policy
from bench.processes import ask

pytestmark = pytest.mark.usefixtures("exact")


@pytest.fixture(scope="module")
def proxy(engine) -> Iterator[Controlled]:
    found = Controlled.before(engine.url)
    with found.process:
        yield found


@pytest.fixture
def table(proxy) -> Iterator[str]:
    """A new table with an index by `parent`; the proxy has no policy before and after."""
    name = f"proxy-{uuid.uuid4().hex}"
    proxy.set()
    keys = [{"AttributeName": one, "KeyType": role} for one, role in (("pk", "HASH"), ("sk", "RANGE"))]
    index = [{"AttributeName": one, "KeyType": role} for one, role in (("parent", "HASH"), ("sk", "RANGE"))]
    types = [{"AttributeName": one, "AttributeType": "S"} for one in ("pk", "sk", "parent")]
    indexes = [{"IndexName": "by_parent", "KeySchema": index, "Projection": {"ProjectionType": "ALL"}}]
    call(
        proxy, "CreateTable", TableName=name, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=types, KeySchema=keys,
        GlobalSecondaryIndexes=indexes,
    )  # fmt: skip
    yield name
    proxy.set()


def call(proxy: Controlled, operation: str, **request):
    """The response to a call; raises HTTPError for another status than 200."""
    headers = {"x-amz-target": f"DynamoDB_20120810.{operation}", "content-type": "application/x-amz-json-1.0"}
    credential = "local/20260101/eu-west-1/dynamodb/aws4_request"
    headers["x-amz-date"] = "20260101T000000Z"
    headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"
    return orjson.loads(ask(proxy.url, orjson.dumps(request), headers=headers))


def rejection(proxy: Controlled, operation: str, **request):
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(proxy, operation, **request)
    assert caught.value.code == 400
    return orjson.loads(caught.value.read())


def key(sk: str) -> dict:
    return {"pk": {"S": "T"}, "sk": {"S": sk}}


def item(sk: str, parent: str = "P") -> dict:
    return {**key(sk), "parent": {"S": parent}}


def write(table: str, *items: dict) -> dict:
    return {"TransactItems": [{"Put": {"TableName": table, "Item": one}} for one in items]}


def read(table: str, *keys: dict) -> dict:
    return {"RequestItems": {table: {"Keys": list(keys), "ConsistentRead": True}}}


def test_calls_and_units_are_counted(proxy, table):
    call(proxy, "PutItem", TableName=table, Item=item("a"))
    proxy.set(Policy(reads=True))
    for strong in (True, False):
        assert call(proxy, "GetItem", TableName=table, Key=key("a"), ConsistentRead=strong)["Item"] == item("a")
    counts = proxy.take()
    assert counts.calls == {"GetItem": 2}
    assert counts.units == 1.5
    assert counts.items == [[table, "T a", 1]]
    assert proxy.take().total == 0


def test_calls_at_once_are_one_round(proxy, table):
    proxy.set(Policy(delay_ms=200))
    rounds, end = 8, time.monotonic() + 60
    while rounds > 1 and time.monotonic() < end:  # a busy machine may begin one after the end of another
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda n: call(proxy, "GetItem", TableName=table, Key=key(str(n))), range(8)))
        rounds = proxy.take().rounds
    assert rounds == 1
    for _ in range(2):
        call(proxy, "GetItem", TableName=table, Key=key("a"))
    assert proxy.take().rounds == 2


def test_a_response_comes_after_the_delay(proxy, table):
    proxy.set(Policy(delay_ms=50))
    began = time.monotonic()
    call(proxy, "GetItem", TableName=table, Key=key("a"))
    assert time.monotonic() - began >= 0.05


def test_an_error_of_the_engine_is_passed_on(proxy, table):
    proxy.set(Policy(reads=True, writes=True))
    assert "ValidationException" in rejection(proxy, "GetItem", TableName=table, Key={})["__type"]


def test_strong_reads_of_one_item_are_limited(proxy, table):
    for name in ("a", "b"):
        call(proxy, "PutItem", TableName=table, Item=item(name))
    proxy.set(Policy(item_reads=0.001))
    call(proxy, "GetItem", TableName=table, Key=key("a"), ConsistentRead=True)
    refused = rejection(proxy, "GetItem", TableName=table, Key=key("a"), ConsistentRead=True)
    assert refused["__type"].endswith("ProvisionedThroughputExceededException")
    assert call(proxy, "GetItem", TableName=table, Key=key("a"))["Item"]
    some = call(proxy, "BatchGetItem", **read(table, key("a"), key("b")))
    assert some["Responses"] == {table: [item("b")]}
    assert some["UnprocessedKeys"][table]["Keys"] == [key("a")]
    assert rejection(proxy, "BatchGetItem", **read(table, key("a"), key("b")))
    assert proxy.take().throttled == 3


def test_writes_of_one_partition_of_an_index_are_limited(proxy, table):
    proxy.set(Policy(partition_writes=0.001))
    call(proxy, "TransactWriteItems", **write(table, item("a")))
    refused = rejection(proxy, "TransactWriteItems", **write(table, item("b"), item("c")))
    assert refused["__type"].endswith("TransactionCanceledException")
    assert [one["Code"] for one in refused["CancellationReasons"]] == ["ProvisionedThroughputExceeded", "None"]
    assert rejection(proxy, "PutItem", TableName=table, Item=item("b"))
    other = {**item("b"), "pk": {"S": "U"}}
    assert rejection(proxy, "PutItem", TableName=table, Item=other)  # the same partition of the index
    call(proxy, "PutItem", TableName=table, Item={**other, "parent": {"S": "Q"}})
    counts = proxy.take()
    assert counts.partitions == [["by_parent", "P", 1], ["by_parent", "Q", 1], [table, "T", 2], [table, "U", 1]]
    assert counts.full == [["by_parent", "P", 3], [table, "T", 2]]
