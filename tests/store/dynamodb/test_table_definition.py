"""Table definition: parameters of CreateTable, accepted tables, and descriptions."""

import pytest

from store.dynamodb.table_definition import differences, table_definition, table_summary
from store.engine.table_options import Capacity, TableOptions
from store.errors import BadInput


def test_the_table_that_is_made_is_the_table_that_is_wanted() -> None:
    assert differences(table_definition("t")) == []


def test_every_difference_of_a_table_is_told() -> None:
    other = table_definition("t")
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


def test_a_table_without_options_is_on_demand_and_says_nothing_else() -> None:
    definition = table_definition("t")
    assert definition["BillingMode"] == "PAY_PER_REQUEST"
    assert definition.keys().isdisjoint({"ProvisionedThroughput", "Tags", "SSESpecification"})
    assert "ProvisionedThroughput" not in definition["GlobalSecondaryIndexes"][0]


def test_provisioned_units_are_those_of_the_indexes_too_unless_they_have_their_own() -> None:
    for options, index_units in [
        (TableOptions(capacity=Capacity(50, 10)), (50, 10)),
        (TableOptions(capacity=Capacity(50, 10), index_capacity=Capacity(20, 5)), (20, 5)),
    ]:
        definition = table_definition("t", options)
        assert definition["BillingMode"] == "PROVISIONED"
        assert tuple(definition["ProvisionedThroughput"].values()) == (50, 10)
        for index in definition["GlobalSecondaryIndexes"]:
            assert tuple(index["ProvisionedThroughput"].values()) == index_units


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"index_capacity": Capacity(1, 1)}, "needs --units"),
        ({"capacity": Capacity(0, 1)}, "at least 1 unit"),
        ({"capacity": Capacity(1, 1), "index_capacity": Capacity(1, 0)}, "at least 1 unit"),
        ({"tags": {str(number): "" for number in range(51)}}, "at most 50 tags, not 51"),
    ],
)
def test_options_that_no_table_can_have_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        TableOptions(**options)


def test_a_table_is_told_in_words() -> None:
    options = TableOptions(protection=True, capacity=Capacity(50, 10), kms_key="alias/maps")
    found = {**table_definition("t", options), "TableStatus": "ACTIVE", "ItemCount": 7}
    assert table_summary(found) == {
        "status": "ACTIVE", "items": 7, "bytes": 0, "indexes": ["by_level", "by_parent"],
        "capacity": "table 50 read and 10 write units; by_level 50 read and 10 write units; "
        "by_parent 50 read and 10 write units",
        "deletion protection": "on", "encryption": "by a key of DynamoDB's own",
    }  # fmt: skip
    as_told = {
        **table_definition("t"),
        "TableStatus": "ACTIVE",
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    }
    as_told["ProvisionedThroughput"] = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}  # DynamoDB says so
    as_told["SSEDescription"] = {"KMSMasterKeyArn": "arn:aws:kms:eu-west-1:1:key/2"}
    shown = table_summary(as_told)
    assert (shown["capacity"], shown["encryption"]) == ("on demand", "arn:aws:kms:eu-west-1:1:key/2")
