"""The table of DynamoDB: how it is asked for, whether one that is there will do, and what it is like in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from store.attributes import Value
from store.errors import BadInput
from store.keys import Index
from store.wire import Json, index_name

MAX_TAGS = 50  # of one table


class Capacity(NamedTuple):
    """What is paid for by the hour, in DynamoDB's units a second."""

    read: int
    write: int


@dataclass(frozen=True)
class TableOptions:
    """How a new table is to be; without `capacity` it is paid by the request.

    Where `recovery` (to any second of the last 35 days) and `protection` (against deletion) are None, both are on in
    AWS, and off on an engine that an address names by its endpoint.
    """

    recovery: bool | None = None
    protection: bool | None = None
    capacity: Capacity | None = None
    index_capacity: Capacity | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    kms_key: str | None = None

    def __post_init__(self) -> None:
        if self.index_capacity and not self.capacity:
            raise BadInput("The indexes have units of their own only where the table has some.")
        if min([1, *(self.capacity or ()), *(self.index_capacity or ())]) < 1:
            raise BadInput("A table and its indexes have at least 1 unit each.")
        if len(self.tags) > MAX_TAGS:
            raise BadInput(f"A table has at most {MAX_TAGS} tags, not {len(self.tags)}.")


def table_definition(table: str, options: TableOptions = TableOptions()) -> Json:
    """What CreateTable is told: both indexes, which project everything, and what the options ask for."""
    attributes = sorted({name for index in Index for name in index.value})
    units = _throughput(options.index_capacity or options.capacity)
    definition: Json = {
        "TableName": table,
        "BillingMode": "PROVISIONED" if options.capacity else "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in attributes],
        "KeySchema": _key_schema(Index.TABLE),
        "GlobalSecondaryIndexes": [_index_definition(index) | units for index in Index if index is not Index.TABLE],
        **_throughput(options.capacity),
    }
    if options.protection:
        definition["DeletionProtectionEnabled"] = True
    if options.tags:
        definition["Tags"] = [{"Key": name, "Value": value} for name, value in options.tags.items()]
    if options.kms_key:
        definition["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": options.kms_key}
    return definition


def _index_definition(index: Index) -> Json:
    return {
        "IndexName": index_name(index),
        "KeySchema": _key_schema(index),
        "Projection": {"ProjectionType": "ALL"},
    }


def _throughput(capacity: Capacity | None) -> Json:
    if capacity is None:
        return {}
    return {"ProvisionedThroughput": {"ReadCapacityUnits": capacity.read, "WriteCapacityUnits": capacity.write}}


def differences(found: Json) -> list[str]:
    """What a table that DescribeTable tells of lacks or has otherwise than Clade needs it, in words."""
    wanted, wrong = table_definition(""), []
    if _schema_of(found) != _schema_of(wanted):
        wrong.append("its key is not (pk, sk)")
    types = {one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]}
    if any(types.get(name, "S") != "S" for index in Index for name in index.value):
        wrong.append("its keys are not texts")
    indexes = {one["IndexName"]: one for one in found.get("GlobalSecondaryIndexes", [])}
    for one in wanted["GlobalSecondaryIndexes"]:
        other = indexes.get(one["IndexName"])
        if other is None:
            wrong.append(f"it has no index {one['IndexName']}")
        elif _schema_of(other) != _schema_of(one) or other["Projection"]["ProjectionType"] != "ALL":
            wrong.append(f"its index {one['IndexName']} has other keys or does not project everything")
    return wrong


def told(found: Json) -> dict[str, Value]:
    """What DescribeTable tells that people want to know."""
    indexes = sorted(found.get("GlobalSecondaryIndexes", ()), key=lambda one: str(one["IndexName"]))
    encryption = found.get("SSEDescription", {})
    return {
        "status": found["TableStatus"],
        "items": found.get("ItemCount", 0),
        "bytes": found.get("TableSizeBytes", 0),
        "indexes": [one["IndexName"] for one in indexes],
        "capacity": "; ".join(_capacity(one) for one in (found, *indexes)) if _is_provisioned(found) else "on demand",
        "deletion protection": "on" if found.get("DeletionProtectionEnabled") else "off",
        "encryption": encryption.get("KMSMasterKeyArn", "by a key of DynamoDB's own"),
    }


def _is_provisioned(found: Json) -> bool:
    return found.get("BillingModeSummary", {}).get("BillingMode") != "PAY_PER_REQUEST" and bool(
        found.get("ProvisionedThroughput", {}).get("ReadCapacityUnits")
    )


def _capacity(found: Json) -> str:
    units, name = found["ProvisionedThroughput"], found.get("IndexName", "table")
    return f"{name} {units['ReadCapacityUnits']} read and {units['WriteCapacityUnits']} write units"


def _key_schema(index: Index) -> list[Json]:
    return [
        {"AttributeName": index.partition, "KeyType": "HASH"},
        {"AttributeName": index.sort, "KeyType": "RANGE"},
    ]


def _schema_of(table: Json) -> dict[str, str]:
    return {one["KeyType"]: one["AttributeName"] for one in table["KeySchema"]}
