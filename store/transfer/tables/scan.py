"""Scan of a foreign DynamoDB table into files: parallel segments, with a limit of read units per second.

Nothing is ever written to the table: DescribeTable and Scan are the only calls.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from store.dynamodb.client import DynamoDBClient
from store.dynamodb.codec import WireItem, WireValue
from store.errors import NoTable
from store.store_url import DynamoDBUrl
from store.text import quantity

UNIT_BYTES = 8_192  # an eventually consistent read unit
MAX_LIMIT = 10_000


@dataclass(frozen=True)
class TableInfo:
    """A table: its key attributes, and its size as DynamoDB last counted it, some hours ago."""

    name: str
    keys: tuple[str, ...]
    items: int
    bytes: int

    @property
    def units(self) -> int:
        """The read units of a whole scan."""
        return -(-self.bytes // UNIT_BYTES)

    def sentence(self) -> str:
        return (
            f"The scan of {self.name} reads some {quantity(self.items, 'item')} of {self.bytes:,} bytes: "
            f"{quantity(self.units, 'read unit')}, as counted by DynamoDB within the last hours."
        )


@dataclass
class TableScan:
    """A scan of one table; `units` and `items` are those that it has read.

    With a limit of `units_per_second` no page is read before `_next`.
    """

    url: DynamoDBUrl
    units_per_second: float | None = None
    on_items: Callable[[int], None] = lambda items: None
    units: float = 0.0
    items: int = 0
    _next: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def client(self) -> DynamoDBClient:
        """A client of the table, to be used as an async context manager."""
        return DynamoDBClient(self.url.table, self.url.region, self.url.endpoint)

    async def describe(self, client: DynamoDBClient) -> TableInfo:
        """Keys and size of the table. Raises NoTable."""
        try:
            found = (await client.call("DescribeTable", TableName=client.table))["Table"]
        except NoTable:
            raise NoTable(f'There is no table "{client.table}" in this region and account.') from None
        order = sorted(found["KeySchema"], key=lambda key: key["KeyType"])  # HASH before RANGE
        keys = tuple(key["AttributeName"] for key in order)
        return TableInfo(client.table, keys, found.get("ItemCount", 0), found.get("TableSizeBytes", 0))

    async def first_page(self, client: DynamoDBClient, target: BinaryIO) -> None:
        """Write the first items to a file, each a line of DynamoDB JSON as in an export."""
        page = await _page(client)
        target.write(self._lines(page))

    async def run(self, client: DynamoDBClient, info: TableInfo, segments: Sequence[BinaryIO]) -> None:
        """Write all items to the files of the segments, each a line."""
        limit = {"Limit": _items_a_second(info, self.units_per_second)} if self.units_per_second else {}
        try:
            async with asyncio.TaskGroup() as group:
                for number, segment in enumerate(segments):
                    parts = {"Segment": number, "TotalSegments": len(segments)} if len(segments) > 1 else {}
                    group.create_task(self._read(client, segment, {**limit, **parts}))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _read(self, client: DynamoDBClient, segment: BinaryIO, parameters: dict[str, Any]) -> None:
        while True:
            if self.units_per_second:
                page = await self._limited_page(client, self.units_per_second, **parameters)
            else:
                page = await _page(client, **parameters)
            segment.write(self._lines(page))
            if not page.get("LastEvaluatedKey"):
                return
            parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _lines(self, page: Any) -> bytes:
        """The items of a page as lines; they and their units are counted."""
        self.units += page["ConsumedCapacity"]["CapacityUnits"] if page.get("ConsumedCapacity") else 0.0
        self.items += len(page["Items"])
        self.on_items(len(page["Items"]))
        return b"".join([orjson.dumps({"Item": encode_item(item)}) + b"\n" for item in page["Items"]])

    async def _limited_page(self, client: DynamoDBClient, limit: float, **parameters: Any) -> Any:
        """A page when the limit allows it; pages follow one another, since a page's units are known after it."""
        async with self._lock:
            await asyncio.sleep(self._next - time.monotonic())
            page = await _page(client, **parameters)
            units = (page.get("ConsumedCapacity") or {}).get("CapacityUnits", 0.0)
            self._next = time.monotonic() + units / limit
            return page


async def _page(client: DynamoDBClient, **parameters: Any) -> Any:
    return await client.call("Scan", TableName=client.table, ReturnConsumedCapacity="TOTAL", **parameters)


def _items_a_second(info: TableInfo, limit: float) -> int:
    """The number of items of a page that takes about the units of one second."""
    bytes_an_item = info.bytes / info.items if info.items and info.bytes else UNIT_BYTES
    return max(1, min(MAX_LIMIT, int(limit * UNIT_BYTES / bytes_an_item)))


def encode_item(item: WireItem) -> dict[str, Any]:
    """An item of a response as DynamoDB JSON."""
    return {name: _encode(value) for name, value in item.items()}


def _encode(value: WireValue) -> dict[str, Any]:
    for kind in ("S", "N", "BOOL", "B", "SS", "NS", "BS"):
        if (content := getattr(value, kind)) is not None:
            return {kind: content}
    if value.M is not None:
        return {"M": encode_item(value.M)}
    return {"NULL": True} if value.L is None else {"L": [_encode(one) for one in value.L]}
