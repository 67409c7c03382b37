"""Table administration of DynamoDB: creation, schema version and description."""

import contextlib
from asyncio import sleep
from collections.abc import Iterator

from store.concurrency import RetryPolicy
from store.dynamodb import codec
from store.dynamodb.client import UNKNOWN_OPERATION, DynamoDBClient, Refused
from store.dynamodb.codec import Json
from store.dynamodb.table_definition import RECOVERY, TTL, differences, table_definition, table_summary
from store.dynamodb.transaction import check_transactions
from store.engine import TableOptions
from store.errors import NoTable, Unavailable, WrongTable
from store.metadata.tree_version import LAYOUT_KEY, check_layout, layout_in, layout_item
from store.model.attributes import Value
from store.model.records import Item

ACTIVE_SECONDS = 180.0  # until a new table must be active
POLLS = RetryPolicy(0.1, 2.0, deadline_seconds=ACTIVE_SECONDS)

_BACKUPS_COME = "ContinuousBackupsUnavailableException"  # while those of a new table are set up


class TableAdmin:
    """The table of a client."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._table = client.table
        self._in_aws = client.endpoint is None

    async def create(self, options: TableOptions) -> bool:
        """Create the table unless it exists, and wait until it is active; whether it was created.

        One that exists keeps its settings, but for its time to live, and `recovery` where the options turn it on.
        Raises WrongTable where it is not Clade's, or has no transactions.
        """
        made = await self._make(options)
        self._check_definition(await self._when_active())
        await check_transactions(self._client)
        if made or await self._is_unmarked():
            await self._client.call("put_item", TableName=self._table, Item=codec.encode(layout_item()))
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
            await self._client.call("create_table", **definition)
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
            "get_item", TableName=self._table, Key=codec.encode_key(LAYOUT_KEY), ConsistentRead=True
        )
        return codec.decode(answer["Item"]) if "Item" in answer else None

    async def _is_unmarked(self) -> bool:
        """Whether the table is empty: another process has made it, and is about to mark it."""
        if await self._layout_item() is not None:
            return False
        return not (await self._client.call("scan", TableName=self._table, ConsistentRead=True, Limit=1))["Items"]

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
                await self._client.call("update_time_to_live", TableName=self._table, TimeToLiveSpecification=TTL)
            except Refused:
                if not await self._has_ttl():  # unless another process has enabled it
                    raise

    async def _has_ttl(self) -> bool:
        answer = await self._client.call("describe_time_to_live", TableName=self._table)
        return answer["TimeToLiveDescription"].get("TimeToLiveStatus") in ("ENABLING", "ENABLED")

    async def _enable_recovery(self) -> None:
        """Enable point-in-time recovery, retried while a new table is not ready for it."""
        for delay in POLLS.delays():
            await sleep(delay)
            try:
                await self._client.call(
                    "update_continuous_backups", TableName=self._table, PointInTimeRecoverySpecification=RECOVERY
                )
                return
            except Refused as error:
                if error.name != _BACKUPS_COME:
                    raise
        raise Unavailable(f'The table "{self._table}" is created without recovery; run: clade table create --recovery')

    async def _recovery(self) -> str:
        answer = await self._client.call("describe_continuous_backups", TableName=self._table)
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
        answer = await self._client.call("list_tags_of_resource", ResourceArn=found["TableArn"])
        return ", ".join(sorted(f"{tag['Key']}={tag['Value']}" for tag in answer.get("Tags", ()))) or "none"

    async def _described(self) -> Json:
        return (await self._client.call("describe_table", TableName=self._table))["Table"]


@contextlib.contextmanager
def _unless_unknown() -> Iterator[None]:
    """Ignore the error of an engine that lacks an operation."""
    try:
        yield
    except Refused as error:
        if error.name not in UNKNOWN_OPERATION:
            raise
