"""Limits of the proxy: token buckets, and the write units of changes by partition."""

from collections import Counter

import pytest

from bench.dynamodb.limits import Buckets, IndexEntries, Schema, changes_of, strongly_read

SCHEMA = Schema("nodes", {"nodes": ("pk", "sk"), "by_parent": ("parent", "rank")})


def item(sk: str, parent: str | None = "P", rank: str = "1", *, size: int = 1) -> dict:
    index = {"parent": {"S": parent}, "rank": {"S": rank}} if parent else {}
    return {"pk": {"S": "T"}, "sk": {"S": sk}, "text": {"S": "x" * size}, **index}


def put(*arguments, **options) -> dict:
    return {"Put": {"TableName": "nodes", "Item": item(*arguments, **options)}}


@pytest.fixture
def entries() -> IndexEntries:
    found = IndexEntries(SCHEMA)
    found.apply([put("a")])
    return found


def test_a_bucket_gives_its_rate_and_no_more():
    now = 100.0
    buckets = Buckets(100.0, clock=lambda: now)
    name = ("nodes", "T")
    assert sum(buckets.take({name: 1}) for _ in range(50)) == 10  # of a tenth of a second before
    for _ in range(1000):
        now += 0.005
        buckets.take({name: 1})
    assert 490 <= buckets.used[name] <= 510
    assert buckets.rejected[name] > 400


def test_a_bucket_may_give_more_than_it_has_and_is_then_empty_for_longer():
    now = 0.0
    buckets = Buckets(10.0, clock=lambda: now)
    assert buckets.take({("nodes", "T"): 30})
    now = 2.5
    assert not buckets.take({("nodes", "T"): 1})
    now = 3.5
    assert buckets.take({("nodes", "T"): 1})


def test_nothing_is_taken_if_one_bucket_is_empty():
    buckets = Buckets(1.0, clock=lambda: 0.0)
    assert buckets.take({("nodes", "full"): 1})
    assert not buckets.take({("nodes", "full"): 1, ("nodes", "other"): 1})
    assert buckets.used == {("nodes", "full"): 1}
    assert buckets.rejected == {("nodes", "full"): 1}


def test_without_a_rate_units_are_only_counted():
    buckets = Buckets()
    assert all(buckets.take({("nodes", "T"): 5}) for _ in range(100))
    assert buckets.used == {("nodes", "T"): 500}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (put("b"), {("nodes", "T"): 2, ("by_parent", "P"): 1}),
        (put("b", None), {("nodes", "T"): 2}),
        (put("b", size=3000), {("nodes", "T"): 6, ("by_parent", "P"): 3}),
        (put("a"), {("nodes", "T"): 2}),
        (put("a", size=2), {("nodes", "T"): 2, ("by_parent", "P"): 1}),
        (put("a", rank="2"), {("nodes", "T"): 2, ("by_parent", "P"): 2}),
        (put("a", "Q"), {("nodes", "T"): 2, ("by_parent", "P"): 1, ("by_parent", "Q"): 1}),
        ({"Delete": {"Key": item("a", None)}}, {("nodes", "T"): 2, ("by_parent", "P"): 1}),
        ({"Delete": {"Key": item("unknown", None)}}, {("nodes", "T"): 2}),
        ({"ConditionCheck": {"Key": item("a", None)}}, {("nodes", "T"): 2}),
    ],
    ids=["new", "not in the index", "large", "same", "changed", "rank", "parent", "deleted", "unknown", "check"],
)
def test_the_units_of_a_change_are_those_of_its_partitions(entries, change, expected):
    assert entries.cost([change], is_transaction=True) == Counter(expected)


def test_a_deleted_item_has_no_entries_to_delete(entries):
    delete = {"Delete": {"Key": item("a", None)}}
    entries.apply([delete])
    assert entries.cost([delete], is_transaction=False) == {("nodes", "T"): 1}


def test_the_writes_of_all_operations_are_found():
    one = {"TableName": "nodes", "Item": item("a")}
    assert changes_of("TransactWriteItems", {"TransactItems": [{"Put": one}]}) == [("nodes", {"Put": one})]
    batch = {"RequestItems": {"nodes": [{"PutRequest": {"Item": item("a")}}]}}
    assert changes_of("BatchWriteItem", batch) == [("nodes", {"Put": {"Item": item("a")}})]
    assert changes_of("PutItem", one) == [("nodes", {"Put": one})]
    assert changes_of("DescribeTable", {"TableName": "nodes"}) == []


def test_only_strong_reads_of_items_are_limited():
    key = {"pk": {"S": "T"}, "sk": {"S": "!"}}
    strong = {"nodes": {"Keys": [key], "ConsistentRead": True}, "others": {"Keys": [key]}}
    assert strongly_read({"RequestItems": strong}) == [("nodes", key)]
    assert strongly_read({"TableName": "nodes", "Key": key, "ConsistentRead": True}) == [("nodes", key)]
    assert strongly_read({"TableName": "nodes", "Key": key}) == []
    assert strongly_read({"TableName": "nodes", "KeyConditionExpression": "pk = :pk"}) == []


def test_the_schema_is_that_of_the_table_and_its_indexes():
    keys = [{"AttributeName": "rank", "KeyType": "RANGE"}, {"AttributeName": "parent", "KeyType": "HASH"}]
    table = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    index = {"IndexName": "by_parent", "KeySchema": keys}
    found = {"TableName": "nodes", "KeySchema": table, "GlobalSecondaryIndexes": [index]}
    assert Schema.of({"Table": found}) == SCHEMA
