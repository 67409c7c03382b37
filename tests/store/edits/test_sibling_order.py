"""Sibling order in exports and imports."""

from pathlib import Path

import pytest

from store.connect import opened
from store.edits.sibling_order import Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.ranges import siblings
from store.transfer.export import count
from tests.hierarchies import CATEGORY
from tests.reordering import reorder
from tests.store.background_moves.journaled import write
from tests.store.model.test_undefined_values import exported, taken

LINES = [{"path": path.split("/"), "level": "CATEGORY"} for path in ("a", "a/1", "a/2", "a/3", "a/4", "b", "c")]


async def reordered(store: Store, path: str, side: Side, beside: str = "") -> None:
    await write(store, reorder(CATEGORY, tuple(path.split("/")), side, tuple(beside.split("/")) if beside else None))


async def children(store: Store, partition: str = "category#a#") -> list[str]:
    """The keys of siblings in their order, by the index that lists them."""
    found = await store.nodes(siblings(partition), ReadUsage())
    return [one.path[-1] for one in found]


async def in_order(store: Store, folder: Path) -> None:
    """Siblings as hands want them: 4 1 3 2, and of the roots c first."""
    await taken(store, folder / "nodes.jsonl", LINES, CATEGORY)
    await reordered(store, "a/4", Side.FIRST)
    await reordered(store, "a/2", Side.LAST)
    await reordered(store, "c", Side.FIRST)


async def test_an_export_and_an_import_keep_the_order_of_siblings_and_of_roots(store: Store, tmp_path: Path) -> None:
    await in_order(store, tmp_path)
    lines = await exported(store, CATEGORY)
    assert ["rank" in line for line in lines] == [False, False, True, False, True, False, True]
    async with opened(f"sqlite:///{tmp_path}/other.db", make=True) as other:
        assert (await taken(other, tmp_path / "again.jsonl", lines, CATEGORY)).rejections == []
        assert await children(other) == await children(store) == ["4", "1", "3", "2"]
        assert await children(other, "category") == await children(store, "category") == ["c", "a", "b"]
        assert await exported(other, CATEGORY) == lines


async def test_nodes_that_are_there_stay_where_they_are(store: Store, tmp_path: Path) -> None:
    await in_order(store, tmp_path)
    lines = await exported(store, CATEGORY)
    await reordered(store, "a/4", Side.LAST)
    outcome = await taken(store, tmp_path / "again.jsonl", lines, CATEGORY)
    assert (outcome.written, outcome.rejections) == (0, [])
    assert await children(store) == ["1", "3", "2", "4"]


async def test_a_rank_that_a_sibling_has_is_not_given_twice(store: Store, tmp_path: Path) -> None:
    await in_order(store, tmp_path)
    taken_rank = (await exported(store, CATEGORY))[4]["rank"]
    root_rank = (await exported(store, CATEGORY))[6]["rank"]
    lines = [
        {"path": path, "level": "CATEGORY", "rank": rank}
        for path, rank in (("a/0", taken_rank), ("a/5", taken_rank), ("0", root_rank), ("d", root_rank))
    ]
    assert (await taken(store, tmp_path / "more.jsonl", lines, CATEGORY)).rejections == []  # and no rank is there twice
    assert await children(store) == ["4", "0", "5", "1", "3", "2"]
    assert (await children(store, "category"))[0] == "c"
    assert sorted((await children(store, "category"))[1:3]) == ["0", "d"]  # trees are written side by side
    assert await count(store, CATEGORY) == len(LINES) + len(lines)


BAD = ["", "1", "#", "1#", "#0", "#V0", "#V#", "a#b#V", "##V", "#v!", "#\u00e9", "#\n", 7, ["#V"], "#" + "V" * 1100]


@pytest.mark.parametrize("rank", BAD)
async def test_an_invalid_rank_is_rejected(store: Store, tmp_path: Path, rank: object) -> None:
    lines = [*LINES[:1], {"path": "a/1", "level": "CATEGORY", "rank": rank}]
    (rejection,) = (await taken(store, tmp_path / "nodes.jsonl", lines, CATEGORY)).rejections
    assert "is not a rank" in rejection.reason
