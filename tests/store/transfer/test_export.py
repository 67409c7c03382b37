"""Exports during a background move: each node once, at its visible place."""

import json
from typing import Any, cast

import pytest

from store.edits.sibling_order import Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Unavailable
from store.metadata.move_record import MoveState
from store.model.items import Item
from store.model.keys import Index
from store.model.paths import parse_path
from store.model.ranges import KeyRange
from store.sqlite.store import SQLiteStore
from store.transfer.export import export
from tests.hierarchies import CATEGORY
from tests.reordering import reorder
from tests.store.background_moves import journaled
from tests.store.background_moves.journaled import OTHERS, SUBTREE, create, move, write

PLACES = {"another parent": "r/b/c/a", "before it": "r/Z", "another tree": "o/p/q", "a root": "a"}


async def exported(store: Store, path: str | None = None) -> list[str]:
    lines = b"".join([page async for page in export(store, CATEGORY, parse_path(path) if path else None)])
    return ["/".join(json.loads(line)["path"]) for line in lines.splitlines()]


@pytest.mark.parametrize("what", PLACES)
async def test_an_export_has_each_node_once_before_and_after_the_flip(store: Store, what: str) -> None:
    await journaled.plant(store)
    target = PLACES[what]
    await journaled.halted(store, move("r/a", target), MoveState.COPYING)
    assert sorted(await exported(store)) == sorted([*OTHERS, *SUBTREE])
    assert sorted(await exported(store, "r/a")) == sorted(SUBTREE)
    with pytest.raises(BadInput, match="no node"):
        await exported(store, target)
    await journaled.lapse(store)
    await journaled.resume(store)
    assert sorted(await exported(store)) == sorted({*OTHERS, *journaled.at("r/a", target)})


@pytest.mark.parametrize("what", PLACES)
async def test_an_export_has_each_node_once_while_the_old_place_is_swept(store: Store, what: str) -> None:
    await journaled.plant(store)
    target = PLACES[what]
    await journaled.halted(store, move("r/a", target), MoveState.SWEEPING)
    assert sorted(await exported(store)) == sorted({*OTHERS, *journaled.at("r/a", target)})
    assert sorted(await exported(store, target)) == sorted(journaled.at("r/a", target))
    with pytest.raises(BadInput, match="no node"):
        await exported(store, "r/a")


async def test_an_export_has_no_nodes_that_a_cascade_is_removing(store: Store) -> None:
    await journaled.plant(store)
    await journaled.halted(store, journaled.cascade("r"), MoveState.SWEEPING)
    assert sorted(await exported(store)) == ["o", "o/p"]


class WithoutWeakReads:
    """A store whose table has nothing for eventually consistent reads, which may miss what was written just before."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def range(self, span: KeyRange, reads: ReadUsage, *, strong: bool = False, **options: Any) -> list[Item]:
        if span.index is Index.TABLE and not strong:
            return []
        return await self._store.range(span, reads, strong=strong, **options)


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)  # SQLite has no other reads
async def test_an_export_reads_the_table_strongly(store: Store) -> None:
    await journaled.plant(store)
    lagging = cast(Store, WithoutWeakReads(store))
    assert sorted(await exported(lagging)) == sorted([*OTHERS, *SUBTREE])
    assert sorted(await exported(lagging, "r/a")) == sorted(SUBTREE)


async def with_edits(store: Store, *edits: Any, path: str | None = None) -> list[str]:
    """What is exported while edits are made as soon as a first page is out."""
    pages = export(store, CATEGORY, parse_path(path) if path else None)
    lines = [await anext(pages)]
    for edit in edits:
        await write(store, edit)
    lines += [page async for page in pages]
    return ["/".join(json.loads(line)["path"]) for line in b"".join(lines).splitlines()]


MOVES = {
    "a small one": move("r/b", "r/Z"), "a large one": move("r/a", "o/p/q"), "a rename": move("r/b/c", "r/b/d"),
    "a root": move("o", "r/o"),
}  # fmt: skip


@pytest.mark.both_stores
@pytest.mark.parametrize("what", MOVES)
async def test_an_export_is_of_one_moment_or_fails(store: Store, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.reading.pages.PAGE_ITEMS", 4)
    await journaled.plant(store)
    if isinstance(store, SQLiteStore):
        assert sorted(await with_edits(store, MOVES[what])) == sorted([*OTHERS, *SUBTREE])
    else:
        with pytest.raises(Unavailable, match=r"was moved to .* during the export.*export again"):
            await with_edits(store, MOVES[what])
    assert len(await exported(store)) == len([*OTHERS, *SUBTREE])


@pytest.mark.both_stores
async def test_other_edits_do_not_end_an_export(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.reading.pages.PAGE_ITEMS", 4)
    monkeypatch.setattr("store.transfer.export.LOG_PAGE_ITEMS", 1)
    await journaled.plant(store)
    edits = [create("r/0/new"), create("r/c"), reorder(CATEGORY, ("r", "b"), Side.FIRST)]
    found = await with_edits(store, *edits, journaled.cascade("r/b"))
    assert {"r", *SUBTREE} <= set(found) <= {*OTHERS, *SUBTREE, "r/0/new", "r/c"}


@pytest.mark.both_stores
async def test_a_move_elsewhere_in_the_tree_does_not_end_the_export_of_a_node(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.reading.pages.PAGE_ITEMS", 4)
    await journaled.plant(store)
    elsewhere = [move("r/b/c", "r/b/d"), move("r/b/d", "o/p/d"), move("o/p", "r/p")]
    assert sorted(await with_edits(store, *elsewhere, path="r/a")) == sorted(SUBTREE)
    for edit in (move("r/b", "r/a/b"), move("r", "o/r")):
        if not isinstance(store, SQLiteStore):
            with pytest.raises(Unavailable, match="during the export"):
                await with_edits(store, edit, path="r/a")
