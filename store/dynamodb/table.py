"""The table: its definition, creation and description, and the IAM policies of its users."""

import contextlib
from asyncio import sleep
from collections.abc import Iterator
from enum import StrEnum

from store.concurrency import RetryPolicy
from store.dynamodb import codec
from store.dynamodb.client import UNKNOWN_OPERATION, DynamoDBClient, Refused
from store.dynamodb.codec import Json
from store.dynamodb.transaction import check_transactions
from store.engine import Capacity, TableOptions
from store.errors import NoTable, Unavailable, WrongTable
from store.metadata.tree_version import LAYOUT_KEY, check_layout, layout_in, layout_item
from store.model.attributes import Value
from store.model.keys import Index, index_name
from store.model.records import Item

ACTIVE_SECONDS = 180.0  # until a new table must be active
POLLS = RetryPolicy(0.1, 2.0, deadline_seconds=ACTIVE_SECONDS)

_BACKUPS_COME = "ContinuousBackupsUnavailableException"  # while those of a new table are set up

TTL: Json = {"Enabled": True, "AttributeName": "expires"}
"""The setting of the time to live."""
RECOVERY: Json = {"PointInTimeRecoveryEnabled": True}
"""The setting of point-in-time recovery."""

POLICY_LANGUAGE = "2012-10-17"  # the version of IAM's policy language

_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}  # all other regions are in "aws"


# -- definition --------------------------------------------------------------------------------------------------------


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


# -- creation and description ------------------------------------------------------------------------------------------


class TableAdmin:
    """The table of a client."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._table = client.table
        self._in_aws = client.in_aws

    async def create(self, options: TableOptions) -> bool:
        """Create the table unless it exists, and wait until it is active; whether it was created.

        One that exists keeps its settings, but for its time to live, and `recovery` where the options turn it on.
        Raises WrongTable where it is not Clade's, or has no transactions.
        """
        made = await self._make(options)
        self._check_definition(await self._when_active())
        await check_transactions(self._client)
        if made or await self._is_unmarked():
            await self._client.call("PutItem", TableName=self._table, Item=codec.encode(layout_item()))
        else:
            await self.check()
        await self._enable_ttl()
        if options.recovery:
            await self._enable_recovery()
        elif made and options.recovery is None and self._in_aws:
            with _unless_unknown():
                await self._enable_recovery()
        return made

    async def _make(self, options: TableOptions) -> bool:
        definition = table_definition(self._table, options)
        if options.protection is None and self._in_aws:
            definition["DeletionProtectionEnabled"] = True
        try:
            await self._client.call("CreateTable", **definition)
        except Refused as error:
            if error.name != "ResourceInUseException":
                raise
            return False
        return True

    async def _when_active(self) -> Json:
        """The description of the table once it and its indexes are active."""
        for delay in POLLS.delays():
            await sleep(delay)
            with contextlib.suppress(NoTable):  # a new table is eventually consistent
                found = await self._described()
                states = {one.get("IndexStatus", "ACTIVE") for one in found.get("GlobalSecondaryIndexes", ())}
                if states | {found["TableStatus"]} == {"ACTIVE"}:
                    return found
        raise Unavailable(f'The table "{self._table}" is not active after {ACTIVE_SECONDS:.0f} seconds; try again.')

    # -- schema version ------------------------------------------------------------------------------------------------

    async def _layout_item(self) -> Item | None:
        answer = await self._client.call(
            "GetItem", TableName=self._table, Key=codec.encode_key(LAYOUT_KEY), ConsistentRead=True
        )
        return codec.decode(answer["Item"]) if "Item" in answer else None

    async def _is_unmarked(self) -> bool:
        """Whether the table is empty: another process has made it, and is about to mark it."""
        if await self._layout_item() is not None:
            return False
        return not (await self._client.call("Scan", TableName=self._table, ConsistentRead=True, Limit=1))["Items"]

    async def check(self) -> None:
        """Raise NoTable, WrongTable or Unavailable where the table cannot be read."""
        try:
            item = await self._layout_item()
        except Refused as error:
            if error.name != "ValidationException":
                raise
            await self._check_described()
            raise self._foreign(["its keys are not pk and sk"]) from error
        if item is None:  # perhaps the table of somebody else
            await self._check_described()
        check_layout(self._table, layout_in(item))

    async def _check_described(self) -> None:
        """Raise WrongTable where the description of the table may be read, and is not that of Clade's."""
        with contextlib.suppress(Refused):
            self._check_definition(await self._described())

    def _check_definition(self, found: Json) -> None:
        if wrong := differences(found):
            raise self._foreign(wrong)

    def _foreign(self, wrong: list[str]) -> WrongTable:
        return WrongTable(
            f'"{self._table}" is not a table of Clade: {", ".join(wrong)}. Clade keeps its nodes in a table of its '
            "own, into which it can import this one; see docs/from-your-table.md."
        )

    # -- time to live and recovery -------------------------------------------------------------------------------------

    async def _enable_ttl(self) -> None:
        """Have DynamoDB delete expired items. An engine that cannot keeps them; they are never returned."""
        with _unless_unknown():
            if await self._has_ttl():
                return
            try:
                await self._client.call("UpdateTimeToLive", TableName=self._table, TimeToLiveSpecification=TTL)
            except Refused:
                if not await self._has_ttl():  # unless another process has enabled it
                    raise

    async def _has_ttl(self) -> bool:
        answer = await self._client.call("DescribeTimeToLive", TableName=self._table)
        return answer["TimeToLiveDescription"].get("TimeToLiveStatus") in ("ENABLING", "ENABLED")

    async def _enable_recovery(self) -> None:
        """Enable point-in-time recovery, retried while a new table is not ready for it."""
        for delay in POLLS.delays():
            await sleep(delay)
            try:
                await self._client.call(
                    "UpdateContinuousBackups", TableName=self._table, PointInTimeRecoverySpecification=RECOVERY
                )
                return
            except Refused as error:
                if error.name != _BACKUPS_COME:
                    raise
        raise Unavailable(f'The table "{self._table}" is created without recovery; run: clade table create --recovery')

    async def _recovery(self) -> str:
        answer = await self._client.call("DescribeContinuousBackups", TableName=self._table)
        found = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        if found.get("PointInTimeRecoveryStatus") != "ENABLED":
            return "off"
        return f"to any second of the last {found.get('RecoveryPeriodInDays', 35)} days"

    # -- description ---------------------------------------------------------------------------------------------------

    async def describe(self) -> dict[str, Value]:
        """Properties of the table by name; "unknown" where the call is forbidden or the engine lacks it."""
        found = await self._described()
        self._check_definition(found)
        answers: dict[str, Value] = {}
        for name, ask in (("ttl", self._ttl), ("recovery", self._recovery), ("tags", lambda: self._tags(found))):
            try:
                answers[name] = await ask()
            except (Refused, NoTable):  # an engine may support tables without tags
                answers[name] = "unknown"
        layout = str(layout_in(await self._layout_item()))
        return {"name": self._table, "layout": layout, **table_summary(found), **answers}

    async def _ttl(self) -> str:
        return "expires" if await self._has_ttl() else "off"

    async def _tags(self, found: Json) -> str:
        answer = await self._client.call("ListTagsOfResource", ResourceArn=found["TableArn"])
        return ", ".join(sorted(f"{tag['Key']}={tag['Value']}" for tag in answer.get("Tags", ()))) or "none"

    async def _described(self) -> Json:
        return (await self._client.call("DescribeTable", TableName=self._table))["Table"]


@contextlib.contextmanager
def _unless_unknown() -> Iterator[None]:
    """Ignore the error of an engine that lacks an operation."""
    try:
        yield
    except Refused as error:
        if error.name not in UNKNOWN_OPERATION:
            raise


# -- IAM policies ------------------------------------------------------------------------------------------------------


class Use(StrEnum):
    """The uses of a table; each has the permissions of those before it too."""

    READING = "reading"  # a server that does not write, `clade tree`, `clade export`
    WRITING = "writing"  # a server that writes, `clade import`, `clade demo`
    ADMIN = "admin"  # `clade table`, `clade check`, `clade repair`, `clade copy`


_READS = ("BatchGetItem", "GetItem", "Query")
_WRITES = ("DeleteItem", "PutItem")
_ADMINISTERS = (
    "ConditionCheckItem", "CreateTable", "DescribeContinuousBackups", "DescribeTable", "DescribeTimeToLive",
    "ListTagsOfResource", "Scan", "TagResource", "UpdateContinuousBackups", "UpdateTimeToLive",
)  # fmt: skip

ACTIONS: dict[Use, frozenset[str]] = {
    Use.READING: frozenset(_READS),
    Use.WRITING: frozenset((*_READS, *_WRITES)),
    Use.ADMIN: frozenset((*_READS, *_WRITES, *_ADMINISTERS)),
}


def policy(use: Use, table: str, *, region: str | None = None, account: str | None = None) -> Json:
    """A policy document that allows one use of a table; None: any region, any account."""
    arn = f"arn:{_partition(region)}:dynamodb:{region or '*'}:{account or '*'}:table/{table}"
    indexes = [f"{arn}/index/{index_name(index)}" for index in Index if index is not Index.TABLE]
    return {
        "Version": POLICY_LANGUAGE,
        "Statement": [
            {"Sid": "Table", "Effect": "Allow", "Action": _named(ACTIONS[use]), "Resource": arn},
            {"Sid": "Indexes", "Effect": "Allow", "Action": _named({"Query"}), "Resource": indexes},
        ],
    }


def _named(actions: frozenset[str] | set[str]) -> list[str]:
    return [f"dynamodb:{action}" for action in sorted(actions)]


def _partition(region: str | None) -> str:
    return next((name for start, name in _PARTITIONS.items() if (region or "").startswith(start)), "aws")
