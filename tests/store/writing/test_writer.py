"""Edits as transactions: what they read, what does not fit into one, and requests that are committed together."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from store.concurrency import TreeLocks
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import BadInput, BadPath, CladeError, TooLarge, Uncertain
from store.model.keys import tree_version_key
from store.model.paths import parse_path
from store.model.records import Record
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Side
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.reordering import reorder
from tests.store.transfer.test_load import wanted_of
from tests.stores import CountingStore, ReadRecorder

pytestmark = pytest.mark.extenddb

TOO_LARGE = "x" * 500_000


@pytest.fixture
async def counted(store: Store) -> Any:
    """A store with a root, through which nothing else is written."""
    await Writer(store).write(create("r"), ReadUsage())
    return CountingStore(store)


def create(path: str, level: str = "CATEGORY", **values: Any) -> Create:
    where = parse_path(path)
    return Create(CATEGORY, where, level, where[-1], values)


def update(path: str, **values: Any) -> Update:
    return Update(CATEGORY, parse_path(path), None, None, values)


async def write(store: Store, *edits: Any) -> Record:
    for edit in edits:
        written = await Writer(store).write(edit, ReadUsage())
    return written.record


async def plant(store: Store, *paths: str) -> None:
    await load(store, wanted_of([(path, "CATEGORY") for path in paths], CATEGORY), LoadResult())


async def told(writer: Writer, *edits: Edit, terms: Sequence[EditOptions] = ()) -> list[Any]:
    """What becomes of edits that are wished for at once: the path and revision of a node, or the code of a refusal."""
    given = terms or [EditOptions()] * len(edits)
    calls = [writer.write(edit, ReadUsage(), one) for edit, one in zip(edits, given, strict=True)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    return [_told(outcome) for outcome in outcomes]


def _told(outcome: Any) -> Any:
    if isinstance(outcome, CladeError):
        return outcome.code
    assert isinstance(outcome, EditResult), outcome
    return "/".join(outcome.record.path), outcome.record.revision


async def paths(store: Store) -> set[str]:
    nodes = await invariants.nodes(store, "category")
    return {"/".join(Record.of(item).path) for item in nodes.values()}


async def test_a_node_of_a_level_that_no_class_defines_is_moved_like_any(store: Store) -> None:
    await write(store, create("r"), create("r/a"), create("r/b", level="PRODUCT"))
    without = replace(CATEGORY, levels={"CATEGORY": CATEGORY.levels["CATEGORY"]})
    moved = await write(store, Move(without, ("r", "b"), ("r", "a", "b")))
    assert (moved.level, moved.above) == ("PRODUCT", ["CATEGORY", "CATEGORY"])
    assert await paths(store) == {"r", "r/a", "r/a/b"}


@pytest.mark.both_stores
async def test_reparenting_too_many_children_is_rejected_without_reading_them(store: Store) -> None:
    await plant(store, "o", "o/r", *[f"o/r/n{n}" for n in range(60)])
    edit, witness = Delete(CATEGORY, ("o", "r"), Policy.REPARENT), ReadRecorder(store)
    if store.max_commit_changes is None:
        await write(store, edit)
        assert await paths(store) == {"o", *[f"o/n{n}" for n in range(60)]}
        return
    with pytest.raises(TooLarge, match=r"61 nodes, .* one by one, then delete it"):
        await Writer(witness).write(edit, ReadUsage())
    assert not witness.spans


async def test_a_child_whose_key_is_too_long_for_a_root_cannot_take_the_place_of_one(store: Store) -> None:
    await write(store, *[create(path) for path in ("r", "r/a", f"r/{'é' * 500}")])
    before = await invariants.all_items(store)
    with pytest.raises(BadPath, match="takes 1000 bytes; at most 900 fit"):
        await write(store, Delete(CATEGORY, ("r",), Policy.REPARENT))
    assert await invariants.all_items(store) == before


async def test_reparenting_costs_as_many_requests_for_many_children_as_for_one(store: Store) -> None:
    requests = []
    for tree, number in (("o", 1), ("p", 20)):
        await plant(store, tree, f"{tree}/r", *[f"{tree}/r/n{n}" for n in range(number)])
        reads = ReadUsage()
        await Writer(store).write(Delete(CATEGORY, (tree, "r"), Policy.REPARENT), reads)
        requests.append(reads.requests)
    assert requests[0] == requests[1]


async def test_reparenting_more_children_than_fit_into_a_log_item_is_rejected(store: Store) -> None:
    long = "n" * 900
    await plant(store, "o", "o/r", *[f"o/r/{n:03}{long}" for n in range(150)])
    store.max_commit_changes = None
    for dry_run in (True, False):
        with pytest.raises(TooLarge, match="151 subtrees would be moved at once"):
            await Writer(store).write(
                Delete(CATEGORY, ("o", "r"), Policy.REPARENT), ReadUsage(), EditOptions(dry_run=dry_run)
            )
    assert len(await paths(store)) == 152


async def test_an_idempotency_key_fits_beside_the_largest_node_and_is_kept_over_another_setting(store: Store) -> None:
    writer, large = Writer(store), {"note": "x" * 390_000}
    await write(store, create("r"), create("r/a"))
    for _ in range(2):
        made = await writer.write(create("r/b", **large), ReadUsage(), EditOptions(key="k"))
        assert (made.record.revision, made.record.attributes) == (1, large)
    for seconds in (0.0, 3.0):
        order = reorder(CATEGORY, ("r", "b"), Side.FIRST)
        await writer.write(order, ReadUsage(), EditOptions(key="l", settle_seconds=seconds))
    await invariants.check(store)


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_node_leaves_room_for_counts_and_is_named_where_it_does_not(store: Store, key: str | None) -> None:
    await write(store, create("r"))
    for edit in (create("r/b"), update("r")):
        for size in (393_500, 409_000, 500_000):
            with pytest.raises(BadInput, match=r"take \d+ bytes; at most 393216 .*") as caught:
                await Writer(store).write(replace(edit, values={"note": "x" * size}), ReadUsage(), EditOptions(key=key))
            assert "v0" not in str(caught.value)
    await write(store, create("r/b", note="x" * 393_000), create("r/b/c"))
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


# -- requests that are committed together have results as if made one by one -------------------------------------------


async def test_creations_that_wait_together_are_few_commits_and_cost_few_reads(store: Store, counted: Any) -> None:
    writer, reads = Writer(counted), ReadUsage()
    await asyncio.gather(*[writer.write(create(f"r/n{n:02}"), reads) for n in range(60)])
    assert len(counted.commits) == 2
    assert reads.requests == 4  # for each of both the stamps, and then the rest
    assert len(await paths(store)) == 61
    await invariants.check(store)


@pytest.mark.both_stores
async def test_a_lone_edit_costs_what_it_costs(counted: Any) -> None:
    for edit, terms, requests in [
        (create("r/a"), EditOptions(), 2), (create("r/b"), EditOptions(key="k"), 3),
        (create("r/b"), EditOptions(key="k"), 3),
        (update("r/a", note="1"), EditOptions(), 2), (update("r/a", note="2"), EditOptions(dry_run=True), 2),
        (Move(CATEGORY, ("r", "a"), ("r", "c")), EditOptions(), 2),
        (Delete(CATEGORY, ("r", "c"), Policy.REFUSE), EditOptions(), 2),
    ]:  # fmt: skip
        reads = ReadUsage()
        await Writer(counted).write(edit, reads, terms)
        assert reads.requests == requests, edit


async def test_versions_are_read_before_the_items_of_an_edit_and_of_a_group(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    for edits in ([create("r/a")], [create("r/b"), create("r/c"), update("r", note="1")]):
        witness: Any = ReadRecorder(store)
        await told(Writer(witness), *edits)
        assert witness.keys[0] == tree_version_key("category#r")
        assert not witness.repeated


async def test_no_commit_holds_more_than_one_transaction(store: Store, counted: Any) -> None:
    store.max_commit_changes = 20
    outcomes = await told(
        Writer(counted), *[create(f"r/n{n}") for n in range(20)], Delete(CATEGORY, ("r",), Policy.REPARENT)
    )
    assert [outcome for outcome in outcomes if isinstance(outcome, str)] == ["TOO_LARGE"]
    assert max(counted.commits) <= 20
    assert len(counted.commits) < 10
    await invariants.check(store)


@pytest.mark.both_stores
async def test_large_items_are_spread_over_commits_that_hold_them(store: Store, counted: Any) -> None:
    outcomes = await told(Writer(counted), *[create(f"r/n{n}", note="x" * 390_000) for n in range(12)])
    assert outcomes == [(f"r/n{n}", 1) for n in range(12)]
    assert len(counted.commits) == (1 if store.max_commit_changes is None else 2)
    await invariants.check(store)


async def test_a_request_that_cannot_be_stored_fails_no_other(store: Store, counted: Any) -> None:
    edits = [
        create("r/a"),
        create("r/b", note=TOO_LARGE),
        create("r/b/c"),
        create("r/d"),
        update("r/a", note=TOO_LARGE),
    ]
    outcomes = await told(Writer(counted), *edits)
    assert outcomes == [("r/a", 1), "BAD_USER_INPUT", "NOT_FOUND", ("r/d", 1), "BAD_USER_INPUT"]
    assert await paths(store) == {"r", "r/a", "r/d"}
    await invariants.check(store)


async def test_an_edit_finds_what_another_of_its_commit_writes_as_it_is_stored(counted: Any) -> None:
    writer = Writer(counted)
    edits = [create("r/a", size=3.0), update("r/a", note="1")]
    _, updated = await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in edits])
    assert len(counted.commits) == 1
    assert repr(updated.record.attributes) == repr({"size": 3, "note": "1"})


async def test_an_exception_in_one_edit_goes_to_its_client_alone(store: Store, counted: Any) -> None:
    class Broken(Create):
        async def build(self, reader: Any, context: Any) -> Any:
            raise ZeroDivisionError

    writer = Writer(counted)
    edits = [create("r/a"), Broken(CATEGORY, ("r", "x"), "CATEGORY", "x", {}), create("r/b")]
    outcomes = await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in edits], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EditResult, ZeroDivisionError, EditResult]
    assert await paths(store) == {"r", "r/a", "r/b"}


async def test_an_exception_in_what_is_stored_under_a_key_goes_to_its_client_alone(store: Store, counted: Any) -> None:
    writer, edit = Writer(counted), create("r/a")
    await writer.write(edit, ReadUsage(), EditOptions(key="k"))
    edits = [(create("r/b"), EditOptions()), (edit, EditOptions(key="k", asked={1})), (create("r/c"), EditOptions())]
    calls = [writer.write(one, ReadUsage(), options) for one, options in edits]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EditResult, TypeError, EditResult], "a set is no JSON"


async def test_a_cascade_takes_what_a_request_before_it_has_created(store: Store, counted: Any) -> None:
    await write(store, create("r/a"))
    outcomes = await told(Writer(counted), create("r/a/b"), Delete(CATEGORY, ("r", "a"), Policy.CASCADE))
    assert outcomes == [("r/a/b", 1), ("r/a", 1)]
    assert await paths(store) == {"r"}
    await invariants.check(store)


async def test_two_equal_edits_with_one_key_in_one_commit_are_one_change(store: Store, counted: Any) -> None:
    key, other = EditOptions(key="k"), EditOptions(key="l")
    edits = [create("r/a"), create("r/a"), create("r/b"), create("r/a")]
    outcomes = await told(Writer(counted), *edits, terms=[key, key, EditOptions(key="k", asked="r/b"), other])
    assert outcomes == [("r/a", 1), ("r/a", 1), "BAD_USER_INPUT", "ALREADY_EXISTS"]
    assert len(counted.commits) == 1
    assert await told(Writer(counted), create("r/a"), terms=[key]) == [("r/a", 1)]
    await invariants.check(store)


async def test_a_request_whose_client_leaves_during_the_build_is_left_out(store: Store, counted: Any) -> None:
    class Leaves(Create):
        async def build(self, reader: Any, context: Any) -> Any:
            tasks[0].cancel()
            return await super().build(reader, context)

    writer = Writer(counted)
    last = Leaves(CATEGORY, ("r", "last"), "CATEGORY", "last", {})
    tasks = [asyncio.create_task(writer.write(edit, ReadUsage())) for edit in (create("r/a"), create("r/b"), last)]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [True, False, False]
    assert await paths(store) == {"r", "r/b", "r/last"}
    await invariants.check(store)


@pytest.mark.parametrize("ends", [True, False])
async def test_a_stopping_process_waits_for_commits_for_a_while(
    store: Store, counted: Any, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """Those that do not end in time may have been made, as the clients are told."""
    monkeypatch.setattr("store.writing.writer.STOP_SECONDS", 60.0 if ends else 0.01)
    writer = Writer(counted)
    async with writer.watching():
        counted.open.clear()
        tasks = [asyncio.create_task(writer.write(create("r/first"), ReadUsage()))]
        await counted.begun.wait()
        tasks += [asyncio.create_task(writer.write(create("r/next"), ReadUsage()))]
        await asyncio.sleep(0)
        if ends:
            asyncio.get_running_loop().call_soon(counted.open.set)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EditResult if ends else Uncertain] * 2
    counted.open.set()
    assert await told(writer, create("r/b")) == [("r/b", 1)]
    await invariants.check(store)


@pytest.mark.both_stores
async def test_two_processes_that_write_in_groups_lose_nothing(store: Store, counted: Any, store_url: str) -> None:
    async with open_store(store_url) as other:
        writers = [Writer(store), Writer(other)]
        edits = [writers[n % 2].write(create(f"r/n{n}"), ReadUsage()) for n in range(40)]
        same = [
            writer.write(create("r/same"), ReadUsage(), EditOptions(key="k")) for writer in writers for _ in range(3)
        ]
        outcomes = await asyncio.gather(*edits, *same)
    assert {_told(one) for one in outcomes} == {("r/same", 1), *[(f"r/n{n}", 1) for n in range(40)]}
    assert len(await paths(store)) == 42
    await invariants.check(store)
