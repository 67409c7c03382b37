"""Edits as transactions: their reads and commits, conflicts and failures."""

import asyncio
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from store.concurrency import TreeLocks
from store.connect import open_store
from store.edits.create_update import Create, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.edits.reorder import Reorder, Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, CladeError, Conflict, TooLarge
from store.metadata.history import revisions
from store.metadata.tree_version import TreeVersion
from store.model.keys import Path as NodePath
from store.model.keys import tree_version_key
from store.model.records import Record
from store.retry import RetryPolicy
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.recorded_reads import ReadRecorder
from tests.store.sqlite import busy_writer

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]

ROOT = Path(__file__).parents[3]


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


# -- what is read and written ------------------------------------------------------------------------------------------


async def test_versions_are_read_before_items(store: Store) -> None:
    witness = ReadRecorder(store)
    await write(witness, create("r"), create("r", "a"))
    stamps = [place for place, key in enumerate(witness.keys) if key == tree_version_key("category#r")]
    others = [place for place, key in enumerate(witness.keys) if key.sk == "#a#"]
    assert stamps[-1] < others[0]


async def test_a_small_edit_is_two_reads_and_one_commit(store: Store) -> None:
    await write(store, create("r"), create("r", "a"))
    reads = ReadUsage()
    await Writer(store).write(Update(CATEGORY, ("r", "a"), "other", None, {}), reads)
    assert reads.requests == 2


async def test_revision_and_time_change_with_the_node_s_own_content_alone(store: Store) -> None:
    made = await write(store, create("r"), create("r", "a"))
    moved = await write(store, create("r", "a", "b"), Move(CATEGORY, ("r", "a"), ("r", "z")))
    assert (moved.revision, moved.updated_at) == (made.revision, made.updated_at)
    updated = await write(store, Update(CATEGORY, ("r", "z"), "other", None, {}))
    assert updated.revision == made.revision + 1


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


async def test_reparenting_more_children_than_fit_into_a_log_item_is_rejected(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.edits.transaction.MAX_ITEM_BYTES", 4_000)
    await plant(store, [("o",), ("o", "r"), *[("o", "r", f"n{n}") for n in range(60)]])
    store.max_commit_changes = None
    for dry_run in (True, False):
        with pytest.raises(TooLarge, match="61 subtrees would be moved at once"):
            await Writer(store).write(
                Delete(CATEGORY, ("o", "r"), Policy.REPARENT), ReadUsage(), EditOptions(dry_run=dry_run)
            )
    assert len(await paths(store)) == 62


async def test_a_new_node_at_the_path_of_a_deleted_one_has_a_new_id_and_history(store: Store) -> None:
    first = await write(store, create("r"))
    await write(store, Update(CATEGORY, ("r",), "two", None, {}), Delete(CATEGORY, ("r",), Policy.REFUSE))
    second = await write(store, create("r"))
    assert (second.id != first.id, second.revision) == (True, 1)
    assert not await store.range(revisions(second.id, 10), ReadUsage())
    await invariants.check(store)


async def test_an_id_of_a_deleted_node_that_is_named_goes_on_with_its_revisions(store: Store) -> None:
    first = await write(store, create("r"))
    await write(store, Update(CATEGORY, ("r",), "two", None, {}), Delete(CATEGORY, ("r",), Policy.REFUSE))
    again = await write(store, replace(create("r"), node_id=first.id.removeprefix("category:")))
    assert (again.id, again.revision) == (first.id, 3)
    assert [state["revision"] for state in await store.range(revisions(first.id, 3), ReadUsage())] == [1, 2]
    await invariants.check(store)


async def test_an_id_that_a_moved_node_has_taken_along_is_not_given_twice(store: Store) -> None:
    first = await write(store, create("r"), create("r", "a"))
    await write(store, Move(CATEGORY, ("r", "a"), ("r", "b")))
    second = await write(store, create("r", "a"))
    assert first.id != second.id
    await invariants.check(store)


async def test_children_take_the_place_of_a_node_also_one_that_is_called_like_it(store: Store) -> None:
    await plant(store, [("r",), ("r", "n"), ("r", "n", "n"), ("r", "n", "n", "x"), ("r", "n", "x")])
    await write(store, Delete(CATEGORY, ("r", "n"), Policy.REPARENT))
    assert await paths(store) == {("r",), ("r", "n"), ("r", "n", "x"), ("r", "x")}
    await invariants.check(store)


# -- others ------------------------------------------------------------------------------------------------------------


class Rival:
    """A store in which somebody else raises a tree's stamp right before each of the first so many commits."""

    def __init__(self, store: Store, times: int) -> None:
        self._store = store
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Any) -> None:
        if self.times:
            self.times -= 1
            (item,) = await self._store.get([tree_version_key("category#r")], ReadUsage(), strong=True)
            stamp = TreeVersion.of("category#r", item)
            raised = stamp.incremented({})
            await self._store.commit([raised])
        await self._store.commit(changes)


async def test_an_edit_that_somebody_came_before_is_drafted_again(store: Store) -> None:
    await write(store, create("r"))
    rival = Rival(store, 3)
    await write(rival, create("r", "a"))
    assert await paths(store) == {("r",), ("r", "a")}


async def test_an_edit_with_too_many_conflicts_is_rejected(store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr("store.writer.group_commit.RETRIES", RetryPolicy(0.001, 0.001, attempts=20))
    await write(store, create("r"))
    with pytest.raises(Conflict, match="Retry later"):
        await write(Rival(store, 1000), create("r", "a"))
    assert await paths(store) == {("r",)}


async def test_a_retried_edit_whose_answer_was_lost_is_made_once(store: Store) -> None:
    class Lost(Exception):
        pass

    class Deaf(Rival):
        async def commit(self, changes: Any) -> None:
            await self._store.commit(changes)
            raise Lost

    terms = EditOptions(key="k")
    with pytest.raises(Lost):
        await Writer(Deaf(store, 0)).write(create("r"), ReadUsage(), terms)
    again = await Writer(store).write(create("r"), ReadUsage(), terms)
    assert again.record.path == ("r",)
    with pytest.raises(BadInput, match="another change"):
        await Writer(store).write(create("s"), ReadUsage(), terms)
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


async def test_two_with_the_same_key_at_once_change_one_thing(store: Store) -> None:
    edits = [Writer(store).write(create("r"), ReadUsage(), EditOptions(key="k")) for _ in range(4)]
    records = {written.record.id for written in await asyncio.gather(*edits)}
    assert len(records) == 1
    await invariants.check(store)


async def test_who_waits_for_one_tree_keeps_nobody_from_another() -> None:
    queue, told = TreeLocks(), []

    async def turn(name: str, *trees: str) -> None:
        async with queue.turn(trees):
            told.append(name)
            await asyncio.sleep(0.001 if name != "slow" else 0.05)

    await asyncio.gather(turn("slow", "a"), turn("second", "a", "b"), turn("third", "b"), turn("free", "c"))
    assert told == ["slow", "third", "free", "second"]


class Client:
    """One of many who write at once; it knows where its own nodes are and what they are called."""

    def __init__(self, number: int, writer: Writer) -> None:
        self.random = Random(number)  # noqa: S311
        self.number = number
        self.writer = writer
        self.nodes: dict[NodePath, str] = {}
        self.made = 0

    async def act(self) -> None:
        known = list(self.nodes)
        what = self.random.choice(["create", "update", "move", "rename", "delete", "order"]) if known else "create"
        path = self.random.choice(known) if known else ()
        target = (f"t{self.random.randint(0, 1)}", f"p{self.random.randint(0, 1)}")
        self.made += 1
        key = f"c{self.number}-{self.made}"
        match what:
            case "create":
                await self.write(create(*target, key))
                self.nodes[*target, key] = key
            case "update":
                await self.write(Update(CATEGORY, path, key, None, {}))
                self.nodes[path] = key
            case "move" | "rename":
                moved = (*target, path[-1]) if what == "move" else (*path[:-1], key)
                await self.write(Move(CATEGORY, path, moved))
                self.nodes[moved] = self.nodes.pop(path)
            case "delete":
                await self.write(Delete(CATEGORY, path, Policy.REFUSE))
                del self.nodes[path]
            case "order":
                await self.write(Reorder(CATEGORY, path, self.random.choice([Side.FIRST, Side.LAST])))

    async def write(self, edit: Any) -> None:
        while True:
            try:
                await self.writer.write(edit, ReadUsage())
                return
            except Conflict:
                continue


async def test_no_acknowledged_write_of_many_clients_is_lost(store: Store, store_url: str) -> None:
    await plant(store, [("t0",), ("t1",), *[(f"t{t}", f"p{p}") for t in (0, 1) for p in (0, 1)]])
    before = await paths(store)
    async with open_store(store_url) as other:
        writers = [Writer(store), Writer(other)]
        clients = [Client(number, writers[number % 2]) for number in range(32)]

        async def work(client: Client) -> None:
            for _ in range(6):
                await client.act()

        await asyncio.gather(*map(work, clients))
    expected = {path: name for client in clients for path, name in client.nodes.items()}
    nodes = (await invariants.nodes(store, "category")).values()
    records = {record.path: record.name for record in map(Record.of, nodes)}
    assert {path: name for path, name in records.items() if path not in before} == expected
    await invariants.check(store)


async def test_of_two_who_move_one_subtree_one_wins(store: Store, store_url: str) -> None:
    await plant(store, [("r",), ("r", "a"), ("r", "b"), ("r", "x"), ("r", "x", "y")])
    async with open_store(store_url) as other:
        moves = [
            Writer(one).write(Move(CATEGORY, ("r", "x"), ("r", to, "x")), ReadUsage())
            for one, to in ((store, "a"), (other, "b"))
        ]
        outcomes = await asyncio.gather(*moves, return_exceptions=True)
    (refused,) = [one for one in outcomes if isinstance(one, BaseException)]
    assert isinstance(refused, CladeError)
    assert refused.code == "NOT_FOUND"
    await invariants.check(store)


@pytest.mark.both_stores(False)
@pytest.mark.parametrize("times", [0, 1, 3, 10])
async def test_a_writer_that_is_killed_leaves_all_or_nothing_of_each_edit(
    store: Store, store_url: str, times: int
) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220 - it starts at once
        [sys.executable, "-m", "tests.store.sqlite.busy_writer", store_url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        acknowledged = await asyncio.wait_for(asyncio.to_thread(_lines, process, times), 60)
    finally:
        process.kill()
        process.wait(10)
    await _quiet(store)
    await invariants.check(store)
    found = await paths(store)
    numbers = {int(path[1][1:]) for path in found if len(path) == 2 and path[1].startswith("n")}
    assert set(range(acknowledged)) <= numbers <= set(range(acknowledged + 2 + len(numbers)))
    places = [place for place in (busy_writer.HERE, busy_writer.THERE) if place in found]
    if acknowledged:
        (place,) = places
        assert {(*place, f"{n}") for n in range(busy_writer.PARTS)} == {path for path in found if len(path) == 3}


def _lines(process: subprocess.Popen[str], times: int) -> int:
    """Read so many lines, or none and wait a moment; how many nodes were told."""
    assert process.stdout is not None
    for _ in range(times):
        assert process.stdout.readline()
    if not times:
        time.sleep(0.7)
    return times


async def _quiet(store: Store) -> None:
    """Wait until a request that the killed process had sent has ended."""
    before = None
    while before != (before := await invariants.all_items(store)):  # noqa: ASYNC110 - another process ends
        await asyncio.sleep(0.1)
