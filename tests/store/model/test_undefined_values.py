"""Attributes and levels that are stored and that the hierarchy's class no longer defines."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from commands.importing.files import FileOptions, shape_of_file
from store.engine import Store
from store.model.attributes import Kind
from store.model.hierarchy import Hierarchy
from store.transfer.export import export
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from tests import invariants
from tests.hierarchies import hierarchy, level
from tests.store.transfer.test_load import record

OLD = hierarchy(
    "location",
    level("COUNTRY", "-", iso3=Kind.TEXT, lakes=Kind.LONG),
    level("AREA", "COUNTRY", note=Kind.TEXT),
    level("CITY", "COUNTRY AREA", mayor=Kind.TEXT, size=Kind.FLOAT),
)
NEW = hierarchy(
    "location",
    level("COUNTRY", "-", iso3=Kind.TEXT),
    level("CITY", "COUNTRY", size=Kind.FLOAT),
)
NODES: list[dict[str, Any]] = [
    {"path": ["US"], "level": "COUNTRY", "iso3": "USA", "lakes": 250},
    {"path": ["US", "East"], "level": "AREA", "note": "a level that goes"},
    {"path": ["US", "East", "Omaha"], "level": "CITY", "mayor": "A", "size": 1.5},
    {"path": ["US", "Reno"], "level": "CITY", "mayor": "B"},
]


async def taken(store: Store, file: Path, lines: Sequence[Any], kind: Hierarchy) -> LoadResult:
    """What is loaded of these lines, written into a file and read again."""
    wanted, outcome = ImportPlan(kind), LoadResult()
    await asyncio.to_thread(file.write_bytes, b"\n".join(map(orjson.dumps, lines)))
    for row in shape_of_file(kind, file, None, FileOptions()).rows():
        wanted.take(row)
    await load(store, wanted, outcome)
    await invariants.check(store)
    return outcome


async def exported(store: Store, kind: Hierarchy) -> list[dict[str, Any]]:
    lines = b"".join([page async for page in export(store, kind)])
    return [json.loads(line) for line in lines.splitlines()]


async def test_an_import_keeps_what_the_class_lacks_and_takes_again_what_it_defines(
    store: Store, tmp_path: Path
) -> None:
    await taken(store, tmp_path / "nodes.jsonl", NODES, OLD)
    lines = [{"path": "US/Reno", "level": "CITY", "size": 2.5}, {"path": "US", "level": "COUNTRY", "iso3": "usa"}]
    assert (await taken(store, tmp_path / "more.jsonl", lines, NEW)).rejections == []
    assert (await record(store, "US/Reno")).attributes == {"mayor": "B", "size": 2.5}
    assert (await record(store, "US")).attributes == {"iso3": "usa", "lakes": 250}
    again = [{"path": "AT", "level": "COUNTRY", "undefined": {"lakes": "250", "color": [1, None]}}]
    assert (await taken(store, tmp_path / "again.jsonl", again, OLD)).rejections == []
    assert (await record(store, "AT")).attributes == {"lakes": 250, "color": [1, None]}


async def test_a_misspelt_attribute_is_still_rejected_and_so_is_what_no_item_can_hold(
    store: Store, tmp_path: Path
) -> None:
    lines = [
        {"path": "US", "level": "COUNTRY", "lake": 1},
        {"path": "AT", "level": "COUNTRY", "undefined": {"kids": {}}},
        {"path": "CH", "level": "COUNTRY", "undefined": [1]},
        {"path": "DE", "level": "COUNTRY", "undefined": {"lakes": "many"}},
        {"path": "FR", "level": "COUNTRY", "undefined": {"": 1}},
        {"path": "IT", "level": "no level", "undefined": {}},
        {"path": "ES", "level": "AREA"},
        {"path": "PT//Faro", "level": "COUNTRY", "undefined": [1]},
    ]
    outcome = await taken(store, tmp_path / "nodes.jsonl", lines, OLD)
    assert [rejection.number for rejection in outcome.rejections] == [1, 2, 3, 4, 5, 6, 7, 8]
