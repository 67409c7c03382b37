"""Making and describing the table of DynamoDB: calls that a server never makes."""

import contextlib
from asyncio import sleep
from collections.abc import Iterator

from store.dynamodb import codec
from store.dynamodb.client import DynamoDBClient, Refused
from store.dynamodb.codec import Json
from store.dynamodb.table_definition import differences, table_definition, table_summary
from store.engine.table_options import TableOptions
from store.errors import BadInput, NoTable, Unavailable
from store.metadata.schema_version import (
    LAYOUT_KEY,
    check_layout,
    check_supported,
    layout_in,
    layout_item,
)
from store.model.attributes import Value
from store.retry import RetryPolicy

ACTIVE_SECONDS = 180.0  # how long a new table may take until it can be used
POLLS = RetryPolicy(0.1, 2.0, deadline_seconds=ACTIVE_SECONDS)

_UNKNOWN = frozenset({"UnknownOperationException", "NotImplemented", "InvalidAction"})  # to engines that lack a call
_BACKUPS_COME = "ContinuousBackupsUnavailableException"  # while those of a new table are being set up


class TableAdmin:
    """The table behind a connection; `in_aws` tells whether it is DynamoDB itself."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._table = client.table
        self._in_aws = client.endpoint is None

    async def create(self, options: TableOptions) -> bool:
        """Make the table if there is none, and wait until it can be used; whether it was made.

        One that is there keeps its settings, except that it expires items from now on, and `recovery` where the options
        say that it is to be on. Raises BadInput where it is another table than Clade's.
        """
        made = await self._make(options)
        found = await self._when_active()
        if wrong := differences(found):
            raise BadInput(f'There is another table "{self._table}": {", ".join(wrong)}. Name one that does not exist.')
        if made:
            await self.mark()
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
        """What DescribeTable says once the table and its indexes can be used."""
        for delay in POLLS.delays():
            await sleep(delay)
            with contextlib.suppress(NoTable):  # one just made is not known everywhere at once
                found = await self._described()
                states = {one.get("IndexStatus", "ACTIVE") for one in found.get("GlobalSecondaryIndexes", ())}
                if states | {found["TableStatus"]} == {"ACTIVE"}:
                    return found
        raise Unavailable(f'The table "{self._table}" is not active after {ACTIVE_SECONDS:.0f} seconds; try again.')

    # -- its layout ----------------------------------------------------------------------------------------------------

    async def layout(self) -> object:
        """The version of its layout."""
        answer = await self._client.call(
            "get_item", TableName=self._table, Key=codec.encode_key(LAYOUT_KEY), ConsistentRead=True
        )
        return layout_in(codec.decode(answer["Item"]) if "Item" in answer else None)

    async def check(self) -> None:
        """Raise NoTable or Unavailable unless the table can be read now, and is of this Clade's layout."""
        check_layout(self._table, await self.layout())

    async def migrate(self) -> object:
        """Bring the table to this Clade's layout; the version of the one that it had."""
        if wrong := differences(await self._described()):
            raise BadInput(f'"{self._table}" is no table of Clade: {", ".join(wrong)}.')
        found = await self.layout()
        check_supported(self._table, found)
        await self.mark()
        return found

    async def mark(self) -> None:
        """Write the version of this Clade's layout into the table."""
        await self._client.call("put_item", TableName=self._table, Item=codec.encode(layout_item()))

    # -- what it does by itself ----------------------------------------------------------------------------------------

    async def _enable_ttl(self) -> None:
        """Have DynamoDB remove what has expired. An engine that cannot may keep it: it is never shown."""
        with _unless_unknown():
            if await self._has_ttl():
                return
            setting = {"Enabled": True, "AttributeName": "expires"}
            try:
                await self._client.call("update_time_to_live", TableName=self._table, TimeToLiveSpecification=setting)
            except Refused:
                if not await self._has_ttl():  # another process may have been quicker
                    raise

    async def _has_ttl(self) -> bool:
        answer = await self._client.call("describe_time_to_live", TableName=self._table)
        return answer["TimeToLiveDescription"].get("TimeToLiveStatus") in ("ENABLING", "ENABLED")

    async def _enable_recovery(self) -> None:
        """Have DynamoDB keep every state of the last 35 days; for a new table that can take some seconds to begin."""
        setting = {"PointInTimeRecoveryEnabled": True}
        for delay in POLLS.delays():
            await sleep(delay)
            try:
                await self._client.call(
                    "update_continuous_backups", TableName=self._table, PointInTimeRecoverySpecification=setting
                )
                return
            except Refused as error:
                if error.name != _BACKUPS_COME:
                    raise
        raise Unavailable(f'The table "{self._table}" is made, but without recovery; clade table create --recovery.')

    async def _recovery(self) -> str:
        answer = await self._client.call("describe_continuous_backups", TableName=self._table)
        found = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        if found.get("PointInTimeRecoveryStatus") != "ENABLED":
            return "off"
        return f"to any second of the last {found.get('RecoveryPeriodInDays', 35)} days"

    # -- for people ----------------------------------------------------------------------------------------------------

    async def describe(self) -> dict[str, Value]:
        """What there is; what may not be asked, or what the engine does not know, is told as unknown."""
        found = await self._described()
        asked: dict[str, Value] = {}
        for name, ask in (("ttl", self._ttl), ("recovery", self._recovery), ("tags", lambda: self._tags(found))):
            try:
                asked[name] = await ask()
            except (Refused, NoTable):  # an engine may know the table and not its tags
                asked[name] = "unknown"
        return {"name": self._table, "layout": str(await self.layout()), **table_summary(found), **asked}

    async def _ttl(self) -> str:
        return "expires" if await self._has_ttl() else "off"

    async def _tags(self, found: Json) -> str:
        answer = await self._client.call("list_tags_of_resource", ResourceArn=found["TableArn"])
        return ", ".join(sorted(f"{tag['Key']}={tag['Value']}" for tag in answer.get("Tags", ()))) or "none"

    async def _described(self) -> Json:
        return (await self._client.call("describe_table", TableName=self._table))["Table"]


@contextlib.contextmanager
def _unless_unknown() -> Iterator[None]:
    """Let it be where the engine does not know a call."""
    try:
        yield
    except Refused as error:
        if error.name not in _UNKNOWN:
            raise
