"""Attributes and levels that are stored and that the hierarchy's class no longer defines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from store.checking.check import Check
from store.connect import opened
from store.engine.protocol import Store
from store.model.attributes import Kind
from store.model.hierarchy import Hierarchy
from store.model.undefined_values import Undefined
from store.transfer.export import export
from store.transfer.formats.lines import read_jsonl
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
SENTENCES = [
    "location: 1 node is of the level AREA, which is not defined.",
    "location: 2 nodes have a value of mayor, which CITY does not define.",
    "location: 1 node has a value of lakes, which COUNTRY does not define.",
]


def wanted_in(file: Path, lines: Sequence[Any], kind: Hierarchy) -> ImportPlan:
    """What these lines ask for, written into a file and read again."""
    file.write_bytes(b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))
    wanted = ImportPlan(kind)
    for _, row in read_jsonl(file):
        wanted.take(row)
    return wanted


async def taken(store: Store, file: Path, lines: Sequence[Any], kind: Hierarchy) -> LoadResult:
    wanted, outcome = wanted_in(file, lines, kind), LoadResult()
    await load(store, wanted, outcome)
    await invariants.check(store)
    return outcome


async def exported(store: Store, kind: Hierarchy, undefined: Undefined | None = None) -> list[dict[str, Any]]:
    lines = b"".join([page async for page in export(store, kind, undefined=undefined)])
    return [json.loads(line) for line in lines.splitlines()]


async def test_check_names_undefined_attributes_and_levels_with_counts(store: Store, tmp_path: Path) -> None:
    await taken(store, tmp_path / "nodes.jsonl", NODES, OLD)
    check = Check(store, {"location": NEW}, "2026-01-01T00:00:00.000Z")
    findings = [str(one) async for one in check.findings()]
    assert findings == ["location US/East: attribute `level` is 'AREA', expected a level of location"]
    assert check.undefined["location"].sentences() == SENTENCES


async def test_export_writes_undefined_attributes_and_tells_their_counts(store: Store, tmp_path: Path) -> None:
    await taken(store, tmp_path / "nodes.jsonl", NODES, OLD)
    undefined = Undefined(NEW)
    lines = await exported(store, NEW, undefined)
    assert [line.get("undefined") for line in lines] == [
        {"lakes": 250}, {"note": "a level that goes"}, {"mayor": "A"}, {"mayor": "B"},
    ]  # fmt: skip
    assert lines[0]["iso3"] == "USA"
    assert undefined.sentences() == SENTENCES
    assert not any("undefined" in line for line in await exported(store, OLD))


async def test_an_export_and_an_import_lose_no_undefined_attribute_and_no_level(store: Store, tmp_path: Path) -> None:
    await taken(store, tmp_path / "nodes.jsonl", NODES, OLD)
    before = [await record(store, "/".join(node["path"])) for node in NODES]
    lines = await exported(store, NEW)
    async with opened(f"sqlite:///{tmp_path}/other.db", make=True) as other:
        assert (await taken(other, tmp_path / "again.jsonl", lines, NEW)).rejections == []
        for one in before:
            found = await record(other, "/".join(one.path))
            assert (found.attributes, found.level, found.id, found.above) == (
                one.attributes, one.level, one.id, one.above,
            )  # fmt: skip
        assert await exported(other, NEW) == lines


async def test_an_import_keeps_what_the_class_lacks_of_nodes_that_are_there(store: Store, tmp_path: Path) -> None:
    await taken(store, tmp_path / "nodes.jsonl", NODES, OLD)
    lines = [{"path": "US/Reno", "level": "CITY", "size": 2.5}, {"path": "US", "level": "COUNTRY", "iso3": "usa"}]
    assert (await taken(store, tmp_path / "more.jsonl", lines, NEW)).rejections == []
    assert (await record(store, "US/Reno")).attributes == {"mayor": "B", "size": 2.5}
    assert (await record(store, "US")).attributes == {"iso3": "usa", "lakes": 250}


async def test_undefined_values_are_attributes_again_where_the_class_defines_them(store: Store, tmp_path: Path) -> None:
    lines = [{"path": "US", "level": "COUNTRY", "undefined": {"lakes": "250", "color": [1, None]}}]
    assert (await taken(store, tmp_path / "nodes.jsonl", lines, OLD)).rejections == []
    assert (await record(store, "US")).attributes == {"lakes": 250, "color": [1, None]}


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
    ]
    outcome = await taken(store, tmp_path / "nodes.jsonl", lines, OLD)
    assert [rejection.number for rejection in outcome.rejections] == [1, 2, 3, 4, 5, 6, 7]
