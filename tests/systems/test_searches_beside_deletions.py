"""Searches beside the deletion of a large subtree: each response is of before or of after, its searches included."""

import asyncio
import time
from pathlib import Path

import pytest

from graph.hierarchies.locations import Location
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.servers import Server

CITIES = 60
PATIENCE_SECONDS = 60.0
ASK = """{
  found: searchLocations(text: "nebraska") { nodes { path } }
  state(path: "US/NE") { path children { totalCount } }
}"""
DELETE = """mutation { deleteLocation(input: {node: {path: "US/NE"}, policy: CASCADE}) { node { path } } }"""
BEFORE = {"found": {"nodes": [{"path": "US/NE"}]}, "state": {"path": "US/NE", "children": {"totalCount": CITIES}}}
AFTER = {"found": {"nodes": []}, "state": None}


@pytest.mark.thorough
@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
async def test_a_search_and_a_lookup_of_one_response_are_of_one_side_of_a_deletion(store_url: str, tmp_path: Path):
    wanted = ImportPlan(Location.definition())
    wanted.take(Row(1, ("US",), [Part("COUNTRY", "United States")]))
    wanted.take(Row(2, ("US", "NE"), [Part("STATE", "Nebraska")]))
    for number in range(CITIES):
        wanted.take(Row(number + 3, ("US", "NE", f"c{number}"), [Part("CITY", f"City {number}")]))
    async with open_store(store_url) as store:
        await store.create()
        await load(store, wanted, LoadResult())
    settings = {"request_seconds": "2", "settle_seconds": "0.2"}
    reading = Server(tmp_path, "reading", store=store_url, **settings)
    writing = Server(tmp_path, "writing", store=store_url, writes="on", **settings)
    seen: list[dict[str, object]] = []
    try:
        await asyncio.gather(reading.start(), writing.start())
        while (await reading.ask(ASK)).get("data") != BEFORE:  # noqa: ASYNC110 - indexes may lag
            await asyncio.sleep(0.05)
        deletion = asyncio.create_task(writing.ask(DELETE))
        end = time.monotonic() + PATIENCE_SECONDS
        while AFTER not in seen and time.monotonic() < end:
            answer = await reading.ask(ASK)
            if "errors" not in answer:
                seen.append(answer["data"])
        await deletion
    finally:
        await asyncio.gather(reading.close(), writing.close())
    assert [one for one in seen if one not in (BEFORE, AFTER)] == []
    assert AFTER in seen
