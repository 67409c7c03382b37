"""Scans: parallel segments read each item once, the limit of units is kept, and failures are retried."""

import io
import json
import time
from typing import Any

import pytest

from store.store_url import DynamoDBUrl
from store.transfer.tables.scan import TableScan
from tests import engines
from tests.commands.importing.test_tables import fill


async def scanned(url: str, segments: int, **options: Any) -> tuple[TableScan, list[dict[str, Any]], Any]:
    scan = TableScan(DynamoDBUrl.parse(url.removeprefix("dynamodb://")), **options)
    files = [io.BytesIO() for _ in range(segments)]
    async with scan.client() as client:
        info = await scan.describe(client)
        await scan.run(client, info, files)
    lines = [line for file in files for line in file.getvalue().splitlines()]
    return scan, [json.loads(line)["Item"] for line in lines], info


@pytest.mark.parametrize("segments", [1, 5])
async def test_each_item_is_read_once_with_all_its_types(engine: engines.Engine, segments: int) -> None:
    values: dict[str, Any] = {
        "list": ["a", 1, None, True], "map": {"x": {"y": 2}}, "set": {"a", "b"}, "numbers": {1, 2}, "bytes": b"\0x",
        "no": None, "empty": "", "digits": 12345678901234567890123456789012345678,
    }  # fmt: skip
    items = [{"PK": f"A#{number}", "SK": "B", **values, "text": "x" * 5_000} for number in range(600)]
    await fill(engine, "scan-" + str(segments), items)
    calls: list[int] = []
    scan, found, info = await scanned(engine.address(f"scan-{segments}"), segments=segments, on_items=calls.append)
    assert info.keys == ("PK", "SK")
    assert sorted(item["PK"]["S"] for item in found) == sorted(item["PK"] for item in items)
    assert sum(calls) == scan.items == 600
    if engine.exact:
        assert len(calls) >= 3, "there were pages"
        assert scan.units == pytest.approx(600 * 5_200 / 8_192, rel=0.2)
    one = found[0]
    assert one["list"] == {"L": [{"S": "a"}, {"N": "1"}, {"NULL": True}, {"BOOL": True}]}
    assert one["map"] == {"M": {"x": {"M": {"y": {"N": "2"}}}}}
    assert sorted(one["set"]["SS"]) == ["a", "b"]
    assert sorted(one["numbers"]["NS"]) == ["1", "2"]
    assert (one["bytes"], one["no"], one["empty"]) == ({"B": "AHg="}, {"NULL": True}, {"S": ""})
    assert one["digits"] == {"N": "12345678901234567890123456789012345678"}


async def test_a_limit_of_units_makes_small_pages_that_wait_for_one_another(
    engine: engines.Engine, exact: None
) -> None:
    items = [{"PK": f"A#{number}", "SK": "B", "text": "x" * 8_000} for number in range(60)]
    await fill(engine, "scan-limit", items)
    pages: list[int] = []
    started = time.monotonic()
    scan, found, _ = await scanned(
        engine.address("scan-limit"), units_per_second=25.0, segments=2, on_items=pages.append
    )
    assert (len(found), sum(pages)) == (60, 60)
    assert max(pages) <= 27, "no page reads much more than a second's units"
    assert time.monotonic() - started >= (scan.units - 27) / 25, "each page waits for those of all segments before it"
