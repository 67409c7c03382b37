"""Edits as transactions: what they read, and what does not fit into one."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from store.concurrency import TreeLocks
from store.edits.create_update import Create, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.edits.reorder import Reorder, Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, TooLarge
from store.model.keys import Path as NodePath
from store.model.records import Record
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.recorded_reads import ReadRecorder

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]


def create(*path: str, level: str = "CATEGORY") -> Create:
    return Create(CATEGORY, path, level, path[-1], {})


async def write(store: Store, *edits: Any) -> Record:
    for edit in edits:
        written = await Writer(store).write(edit, ReadUsage())
    return written.record


async def plant(store: Store, paths: list[NodePath]) -> None:
    wanted = ImportPlan(CATEGORY)
    for number, path in enumerate(paths):
        wanted.take(Row(number, path, [Part("CATEGORY")]))
    await load(store, wanted, LoadResult())


async def paths(store: Store) -> set[NodePath]:
    return {Record.of(item).path for item in (await invariants.nodes(store, "category")).values()}


async def test_a_node_of_a_level_that_no_class_defines_is_moved_like_any(store: Store) -> None:
    await write(store, create("r"), create("r", "a"), create("r", "b", level="PRODUCT"))
    without = replace(CATEGORY, levels={"CATEGORY": CATEGORY.levels["CATEGORY"]})
    moved = await write(store, Move(without, ("r", "b"), ("r", "a", "b")))
    assert (moved.level, moved.above) == ("PRODUCT", ["CATEGORY", "CATEGORY"])
    assert await paths(store) == {("r",), ("r", "a"), ("r", "a", "b")}


async def test_reparenting_too_many_children_is_rejected_without_reading_them(store: Store) -> None:
    await plant(store, [("o",), ("o", "r"), *[("o", "r", f"n{n}") for n in range(60)]])
    edit, witness = Delete(CATEGORY, ("o", "r"), Policy.REPARENT), ReadRecorder(store)
    if store.max_commit_changes is None:
        await write(store, edit)
        assert await paths(store) == {("o",), *[("o", f"n{n}") for n in range(60)]}
        return
    with pytest.raises(TooLarge, match=r"61 nodes, .* one by one, then delete it"):
        await Writer(witness).write(edit, ReadUsage())
    assert not witness.spans


async def test_reparenting_costs_as_many_requests_for_many_children_as_for_one(store: Store) -> None:
    requests = []
    for tree, number in (("o", 1), ("p", 20)):
        await plant(store, [(tree,), (tree, "r"), *[(tree, "r", f"n{n}") for n in range(number)]])
        reads = ReadUsage()
        await Writer(store).write(Delete(CATEGORY, (tree, "r"), Policy.REPARENT), reads)
        requests.append(reads.requests)
    assert requests[0] == requests[1]


async def test_reparenting_more_children_than_fit_into_a_log_item_is_rejected(store: Store) -> None:
    long = "n" * 900
    await plant(store, [("o",), ("o", "r"), *[("o", "r", f"{n:03}{long}") for n in range(150)]])
    store.max_commit_changes = None
    for dry_run in (True, False):
        with pytest.raises(TooLarge, match="151 subtrees would be moved at once"):
            await Writer(store).write(
                Delete(CATEGORY, ("o", "r"), Policy.REPARENT), ReadUsage(), EditOptions(dry_run=dry_run)
            )
    assert len(await paths(store)) == 152


async def test_children_take_the_place_of_a_node_also_one_that_is_called_like_it(store: Store) -> None:
    await plant(store, [("r",), ("r", "n"), ("r", "n", "n"), ("r", "n", "n", "x"), ("r", "n", "x")])
    await write(store, Delete(CATEGORY, ("r", "n"), Policy.REPARENT))
    assert await paths(store) == {("r",), ("r", "n"), ("r", "n", "x"), ("r", "x")}
    await invariants.check(store)


async def test_an_idempotency_key_fits_beside_the_largest_node_and_is_kept_over_another_setting(store: Store) -> None:
    writer, large = Writer(store), {"note": "x" * 390_000}
    await write(store, create("r"), create("r", "a"))
    for _ in range(2):
        made = await writer.write(replace(create("r", "b"), values=large), ReadUsage(), EditOptions(key="k"))
        assert (made.record.revision, made.record.attributes) == (1, large)
    for seconds in (0.0, 3.0):
        order = Reorder(CATEGORY, ("r", "b"), Side.FIRST, settle_seconds=seconds)
        await writer.write(order, ReadUsage(), EditOptions(key="l"))
    await invariants.check(store)


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_node_leaves_room_for_counts_and_is_named_where_it_does_not(store: Store, key: str | None) -> None:
    await write(store, create("r"))
    for edit in (create("r", "b"), Update(CATEGORY, ("r",), None, None, {})):
        for size in (393_500, 409_000, 500_000):
            with pytest.raises(BadInput, match=r"takes \d+ bytes; at most 393216 .*") as caught:
                await Writer(store).write(replace(edit, values={"note": "x" * size}), ReadUsage(), EditOptions(key=key))
            assert "v0" not in str(caught.value)
    await write(store, replace(create("r", "b"), values={"note": "x" * 393_000}), create("r", "b", "c"))
    await invariants.check(store)


async def test_who_waits_for_one_tree_keeps_nobody_from_another() -> None:
    queue, told, goes_on = TreeLocks(), list[str](), asyncio.Event()

    async def turn(name: str, *trees: str) -> None:
        async with queue.turn(trees):
            told.append(name)
            if name == "slow":
                await goes_on.wait()

    waiting = asyncio.gather(turn("slow", "a"), turn("second", "a", "b"))
    await asyncio.gather(turn("third", "b"), turn("free", "c"))
    goes_on.set()
    await waiting
    assert told == ["slow", "third", "free", "second"]
