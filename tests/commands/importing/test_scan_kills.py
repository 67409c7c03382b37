"""`clade import` of a table that is killed while it scans: the same command reads the rest and nothing twice."""

import asyncio
import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from store.connect import open_store
from tests import engines
from tests.commands.importing.killing import killed
from tests.commands.importing.test_tables import fill
from tests.conftest import CLADE
from tests.proxy import Proxy

ITEMS = [{"PK": "CATEGORY#A", "SK": f"PRODUCT#{n:03}", "brand": "x" * 8_000} for n in range(60)] + [
    {"PK": f"CATEGORY#{category}", "SK": "PRODUCT#1", "brand": "x"} for category in "BCDEFG"
]
KEY = ["--key", "CATEGORY#{category} / PRODUCT#{product}"]
SECONDS = 60
PAGE_4 = "store.transfer.tables.scan_files:SegmentFile.append*4"


async def finished(folder: Path, *words: str) -> tuple[str, str]:
    environment = {**os.environ, "CLADE_STORE": f"sqlite:///{folder / 'clade.db'}"}
    process = await asyncio.create_subprocess_exec(
        CLADE, *words, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 0, errors.decode()
    return output.decode(), errors.decode()


def positions(folder: Path) -> dict[int, dict[str, Any]]:
    """The positions of the segments that were begun."""
    files = {int(file.stem.partition("-")[2]): file for file in folder.glob("*.scan/position-*.json")}
    return {number: json.loads(file.read_bytes()) for number, file in files.items()}


@pytest.mark.thorough
async def test_a_scan_that_is_killed_goes_on_where_it_stopped(
    engine: engines.Engine, tmp_path: Path, exact: None
) -> None:
    name = f"theirs-{uuid.uuid4().hex}"
    await fill(engine, name, ITEMS)
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
    async with Proxy(engine.url) as proxy:
        command = ["import", "category", f"dynamodb://{name}?region=eu-west-1&endpoint={proxy.url}", *KEY]
        store_url = f"sqlite:///{tmp_path / 'clade.db'}"
        words = (*command, "--segments", "2", "--read-units", "10")
        await asyncio.to_thread(killed, store_url, PAGE_4, *words, folder=tmp_path)
        reached = positions(tmp_path)
        before = sum(position["items"] for position in reached.values())
        assert 0 < before < len(ITEMS)
        proxy.calls.clear()
        output, errors = await finished(tmp_path, *command, "--segments", "2")
        begun: dict[int, Any] = {}
        for call in proxy.calls:
            if call.operation == "Scan":
                begun.setdefault(call.body["Segment"], call.body.get("ExclusiveStartKey"))
        assert begun == {
            number: reached.get(number, {}).get("key")
            for number in range(2)
            if not reached.get(number, {}).get("complete")
        }
    assert f"Continuing the scan in {name}.scan after {before} items" in errors
    assert f"Read {len(ITEMS) - before} items with " in errors
    assert f"added: {len(ITEMS) + 7} (7 CATEGORY, {len(ITEMS)} PRODUCT)" in output
    assert not (tmp_path / f"{name}.scan").exists()
