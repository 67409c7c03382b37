"""Reads of a check, on both stores: each tree is read once, whatever is stored because of its nodes."""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from store.checking.check import Check
from store.engine import ReadUsage, Store
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.keys import Index, KeyRange
from store.model.records import Item
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.store.transfer.test_load import wanted_of
from tests.stores import Interrupted, StoreProxy, once

SEARCHED = replace(CATEGORY, search=Search(SearchScope.HIERARCHY))
PATHS = ["A", *[f"A/{number}" for number in range(450)], "B", "B/C"]  # A has several pages


class NodesRead(StoreProxy):
    """Store that counts how often each node is read by a range."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.counts: Counter[tuple[str, str]] = Counter()

    async def range(self, key_range: KeyRange, *arguments: Any, **options: Any) -> list[Item]:
        found = await self._store.range(key_range, *arguments, **options)
        if key_range.index is Index.TABLE:
            self.counts.update([(str(item["pk"]), str(item["sk"])) for item in found if "tier" in item])
        return found


@pytest.mark.parametrize(
    "hierarchy",
    [CATEGORY, pytest.param(SEARCHED, marks=pytest.mark.both_stores)],
    ids=["nodes", "nodes and their items"],
)
async def test_each_tree_is_read_once(store: Store, hierarchy: Hierarchy) -> None:
    await load(store, wanted_of([(path, "CATEGORY") for path in PATHS], hierarchy), LoadResult())
    read = NodesRead(store)
    assert [one async for one in Check(cast(Store, read), {"category": hierarchy}, "").findings()] == []
    assert len(read.counts) == len(PATHS)
    assert set(read.counts.values()) == {1}


async def test_a_tree_that_is_written_to_meanwhile_is_read_again_and_has_no_findings(store: Store) -> None:
    await load(store, wanted_of([(path, "CATEGORY") for path in PATHS], SEARCHED), LoadResult())
    counted: list[int] = []

    async def write() -> None:
        await load(
            store, wanted_of([("A/499", "CATEGORY"), ("A/0", "CATEGORY", {"name": "Zero"})], SEARCHED), LoadResult()
        )

    interrupted = Interrupted(store, "range", before=once(3, write))  # between two pages of A
    read = NodesRead(cast(Store, interrupted))
    check = Check(cast(Store, read), {"category": SEARCHED}, "", counted.append)
    assert [str(one) async for one in check.findings()] == []
    assert max(read.counts.values()) == 2
    assert sum(counted) == len(PATHS) + 1


@pytest.mark.parametrize("method", ["get", "range"])
async def test_an_edit_between_any_two_reads_leads_to_no_finding(store: Store, method: str) -> None:
    await load(store, wanted_of([(path, "CATEGORY") for path in ("A", "A/B", "A/B/C", "D")], SEARCHED), LoadResult())
    writer, place = Writer(store), ("A", "B")
    for number in itertools.count(1):
        target = ("D", f"B{number}") if place[0] == "A" else ("A", f"B{number}")
        edits = [
            Update(SEARCHED, place, f"Name {number}", None, {}),
            Move(SEARCHED, place, target),
            Create(SEARCHED, (*target, "E"), "CATEGORY", f"Other {number}", {}),
            Delete(SEARCHED, (*target, "E"), Policy.REFUSE),
        ]

        async def write(edits: list[Any] = edits) -> None:
            for edit in edits:
                await writer.write(edit, ReadUsage())

        interrupted = Interrupted(store, method, before=once(number, write))
        check = Check(cast(Store, interrupted), {"category": SEARCHED}, "2026-01-01T00:00:00.000Z")
        assert [str(one) async for one in check.findings()] == []
        if interrupted.calls < number:
            break
        place = target
    assert number > 5
