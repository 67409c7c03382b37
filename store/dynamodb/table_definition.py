"""Table definition: the parameters of CreateTable, and their comparison with DescribeTable."""

from store.dynamodb.codec import Json
from store.engine import Capacity, TableOptions
from store.model.attributes import Value
from store.model.keys import Index, index_name

TTL: Json = {"Enabled": True, "AttributeName": "expires"}
"""The setting of the time to live."""
RECOVERY: Json = {"PointInTimeRecoveryEnabled": True}
"""The setting of point-in-time recovery."""


def table_definition(table: str, options: TableOptions = TableOptions()) -> Json:
    """The parameters of CreateTable: the table, both indexes with all attributes, and the options."""
    attributes = sorted({name for index in Index for name in index.value})
    units, everything = _throughput(options.index_capacity or options.capacity), {"ProjectionType": "ALL"}
    definition: Json = {
        "TableName": table,
        "BillingMode": "PROVISIONED" if options.capacity else "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in attributes],
        "KeySchema": _key_schema(Index.TABLE),
        "GlobalSecondaryIndexes": [
            units | {"IndexName": index_name(index), "KeySchema": _key_schema(index), "Projection": everything}
            for index in Index
            if index is not Index.TABLE
        ],
        **_throughput(options.capacity),
    }
    if options.protection:
        definition["DeletionProtectionEnabled"] = True
    if options.tags:
        definition["Tags"] = [{"Key": name, "Value": value} for name, value in options.tags.items()]
    if options.kms_key:
        definition["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": options.kms_key}
    return definition


def _throughput(capacity: Capacity | None) -> Json:
    if capacity is None:
        return {}
    return {"ProvisionedThroughput": {"ReadCapacityUnits": capacity.read, "WriteCapacityUnits": capacity.write}}


def differences(found: Json) -> list[str]:
    """The differences of a table, as DescribeTable returns it, from Clade's, as messages."""
    wanted, wrong = table_definition(""), []
    if _schema_of(found) != _schema_of(wanted):
        wrong.append(f"its keys are {' and '.join(_schema_of(found).values())}, not pk and sk")
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


def table_summary(found: Json) -> dict[str, Value]:
    """The properties for `clade table show` in a result of DescribeTable."""
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
