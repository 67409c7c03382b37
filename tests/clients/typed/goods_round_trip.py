"""Creates an item and reads it again by the generated client: python goods_round_trip.py URL."""

import asyncio
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

from places import Client
from places.input_types import GoodsAttributes, ItemAttributes

GIVEN = ItemAttributes(
    weight=2**62,
    since=date(2026, 2, 28),
    counted=datetime(2026, 2, 28, 12, 30, tzinfo=UTC),
    price=Decimal("12345678901234567890.01"),
    site="https://example.com/a",
)


async def main(url: str) -> None:
    async with Client(url) as client:
        await client.add(key="box", attributes=GoodsAttributes(item=GIVEN))
        item = (await client.goods(path="box")).item
    assert item is not None
    weight: int | None = item.weight
    since: date | None = item.since
    counted: datetime | None = item.counted
    price: Decimal | None = item.price
    site: str | None = item.site
    found = (weight, since, counted, price, site)
    assert found == (GIVEN.weight, GIVEN.since, GIVEN.counted, GIVEN.price, GIVEN.site), found
    assert item.updated_at.tzinfo is not None
    print(item.path)


asyncio.run(main(sys.argv[1]))
