"""Group commit: requests that are committed together have results as if made one by one."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from store.connect import open_store
from store.edits.create_update import Create, Edit, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.edits.reorder import Reorder, Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError, Uncertain
from store.metadata.history import revisions
from store.metadata.tree_version import TreeVersion
from store.model.items import Change
from store.model.keys import Index, tree_version_key
from store.model.paths import parse_path
from store.model.ranges import KeyRange
from store.model.records import Record
from store.writer.request import EditOptions, EditResult
from store.writer.writer import Writer
from tests import invariants
from tests.counting_store import CountingStore
from tests.hierarchies import CATEGORY
from tests.recorded_reads import ReadRecorder

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]

TREE = "category#r"
TOO_LARGE = "x" * 500_000


@pytest.fixture
async def counted(store: Store) -> Any:
    """A store with a root, through which nothing else is written."""
    await Writer(store).write(create("r"), ReadUsage())
    return CountingStore(store)


def create(path: str, **values: Any) -> Create:
    where = parse_path(path)
    return Create(CATEGORY, where, "CATEGORY", where[-1], values)


def update(path: str, expected: int | None = None, **values: Any) -> Update:
    return Update(CATEGORY, parse_path(path), None, None, values, expected)


def move(path: str, target: str) -> Move:
    return Move(CATEGORY, parse_path(path), parse_path(target))


def delete(path: str, policy: Policy = Policy.REFUSE) -> Delete:
    return Delete(CATEGORY, parse_path(path), policy)


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


async def log(store: Store) -> list[list[Any]]:
    """The entries of the tree's log, by number and transaction."""
    items = await store.range(KeyRange(Index.TABLE, TREE, "!0", "!9"), ReadUsage(), strong=True)
    assert [int(item["sk"][1:]) for item in items] == list(range(1, len(items) + 1))
    return [[entry[:2] for entry in item["changes"]] for item in items]


# -- together ----------------------------------------------------------------------------------------------------------


async def test_creations_that_wait_together_are_few_commits_and_cost_few_reads(store: Store, counted: Any) -> None:
    writer, reads = Writer(counted), ReadUsage()
    await asyncio.gather(*[writer.write(create(f"r/n{n:02}"), reads) for n in range(60)])
    assert len(counted.commits) == 2
    assert reads.requests == 4  # for each of both the stamps, and then the rest
    assert len(await paths(store)) == 61
    assert await log(store) == [[["CREATED", "#"]], *[[["CREATED", f"#n{n:02}#"]] for n in range(60)]]
    await invariants.check(store)


async def test_a_request_that_comes_during_a_commit_is_in_the_next(store: Store, counted: Any) -> None:
    writer = Writer(counted)
    counted.open.clear()
    first = asyncio.create_task(writer.write(create("r/first"), ReadUsage()))
    await counted.begun.wait()
    others = [asyncio.create_task(writer.write(create(f"r/n{n}"), ReadUsage())) for n in range(9)]
    await asyncio.sleep(0)
    assert writer.waiting == 9
    counted.open.set()
    await asyncio.gather(first, *others)
    assert writer.waiting == 0
    assert len(counted.commits) == 2
    await invariants.check(store)


async def test_a_lone_edit_costs_what_it_costs(counted: Any) -> None:
    for edit, terms, requests in [
        (create("r/a"), EditOptions(), 2), (create("r/b"), EditOptions(key="k"), 3),
        (create("r/b"), EditOptions(key="k"), 3),
        (update("r/a", note="1"), EditOptions(), 2), (update("r/a", note="2"), EditOptions(dry_run=True), 2),
        (move("r/a", "r/c"), EditOptions(), 3), (delete("r/c"), EditOptions(), 2),
    ]:  # fmt: skip
        reads = ReadUsage()
        await Writer(counted).write(edit, reads, terms)
        assert reads.requests == requests, edit


async def test_a_rejected_request_delays_no_other(store: Store, counted: Any) -> None:
    outcomes = await told(
        Writer(counted),
        create("r/a"),
        create("r/x/y"),
        create("r/b"),
        update("r/b", 7, note="1"),
        update("r", note="2"),
    )
    assert outcomes == [("r/a", 1), "NOT_FOUND", ("r/b", 1), "CONFLICT", ("r", 2)]
    assert len(counted.commits) == 1
    assert await paths(store) == {"r", "r/a", "r/b"}
    await invariants.check(store)


async def test_one_node_is_made_and_changed_twice_in_one_commit(store: Store, counted: Any) -> None:
    writer = Writer(counted)
    assert await told(writer, create("r/a", note="1"), update("r/a", 1, note="2"), update("r/a", 2, note="3")) == [
        ("r/a", 1), ("r/a", 2), ("r/a", 3),
    ]  # fmt: skip
    assert len(counted.commits) == 1
    (record,) = [Record.of(one) for one in (await invariants.nodes(store, "category")).values() if one["revision"] == 3]
    kept = await store.range(revisions(record.id, 3), ReadUsage(), strong=True)
    assert [item["note"] for item in kept] == ["1", "2"]
    assert record.attributes == {"note": "3"}
    await invariants.check(store)


async def test_a_node_is_made_below_one_of_the_same_commit_and_none_at_its_place(store: Store, counted: Any) -> None:
    outcomes = await told(Writer(counted), create("r/a"), create("r/a/b"), create("r/a"), create("r/a/b/c"))
    assert outcomes == [("r/a", 1), ("r/a/b", 1), "ALREADY_EXISTS", ("r/a/b/c", 1)]
    assert len(counted.commits) == 1
    await invariants.check(store)


async def test_a_node_is_made_and_deleted_and_made_again_in_one_commit(store: Store, counted: Any) -> None:
    outcomes = await told(Writer(counted), create("r/a"), delete("r/a"), create("r/a"), delete("r/a"))
    assert outcomes == [("r/a", 1)] * 4
    assert len(counted.commits) == 1
    assert await paths(store) == {"r"}
    await invariants.check(store)


async def test_an_edit_that_reads_ranges_has_a_commit_of_its_own(store: Store, counted: Any) -> None:
    edits = [
        create("r/a"), create("r/b"), Reorder(CATEGORY, ("r", "b"), Side.FIRST), create("r/a/x"), create("r/b/y"),
        move("r/a", "r/b/a"), create("r/a"), delete("r/b", Policy.CASCADE), create("r/b"),
    ]  # fmt: skip
    outcomes = await told(Writer(counted), *edits)
    assert outcomes == [
        ("r/a", 1), ("r/b", 1), ("r/b", 1), ("r/a/x", 1), ("r/b/y", 1), ("r/b/a", 1), ("r/a", 1), ("r/b", 1),
        ("r/b", 1),
    ]  # fmt: skip
    assert await paths(store) == {"r", "r/a", "r/b"}
    assert [event for ((event, _),) in await log(store)] == [
        *["CREATED"] * 3, "MOVED", *["CREATED"] * 2, "MOVED", "CREATED", "DELETED", "CREATED",
    ]  # fmt: skip
    assert len(counted.commits) == 3
    await invariants.check(store)


async def test_no_commit_holds_more_than_one_transaction(store: Store, counted: Any) -> None:
    store.max_commit_changes = 20
    writer = Writer(counted)
    outcomes = await told(writer, *[create(f"r/n{n}") for n in range(20)], delete("r", Policy.REPARENT))
    assert [outcome for outcome in outcomes if isinstance(outcome, str)] == ["TOO_LARGE"]
    assert max(counted.commits) <= 20
    assert len(counted.commits) < 10
    await invariants.check(store)


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


async def test_a_dry_run_includes_the_changes_before_it(store: Store, counted: Any) -> None:
    writer = Writer(counted)
    _, tried, collides = await asyncio.gather(
        writer.write(create("r/a"), ReadUsage()),
        writer.write(update("r/a", note="1"), ReadUsage(), EditOptions(dry_run=True)),
        writer.write(create("r/a"), ReadUsage(), EditOptions(dry_run=True)),
    )
    assert (tried.record.revision, tried.dry_run.nodes) == (2, 1)
    assert collides.dry_run.collisions == [("r", "a")]
    assert len(await log(store)) == 2
    await invariants.check(store)


# -- idempotency keys --------------------------------------------------------------------------------------------------


async def test_two_equal_edits_with_one_key_in_one_commit_are_one_change(store: Store, counted: Any) -> None:
    key, other = EditOptions(key="k"), EditOptions(key="l")
    edits = [create("r/a"), create("r/a"), create("r/b"), create("r/a")]
    outcomes = await told(Writer(counted), *edits, terms=[key, key, key, other])
    assert outcomes == [("r/a", 1), ("r/a", 1), "BAD_USER_INPUT", "ALREADY_EXISTS"]
    assert len(counted.commits) == 1
    assert await told(Writer(counted), create("r/a"), terms=[key]) == [("r/a", 1)]
    await invariants.check(store)


# -- those who go ------------------------------------------------------------------------------------------------------


async def begin(writer: Writer, counted: Any, *names: str) -> list[asyncio.Task[EditResult]]:
    """Creations of which the first is being committed and the others wait, until the store is opened."""
    counted.open.clear()
    tasks = [asyncio.create_task(writer.write(create(f"r/{names[0]}"), ReadUsage()))]
    await counted.begun.wait()
    tasks += [asyncio.create_task(writer.write(create(f"r/{name}"), ReadUsage())) for name in names[1:]]
    await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("goes", ["first", "a", "b", "c"])
async def test_a_client_that_leaves_stops_no_other(store: Store, counted: Any, goes: str) -> None:
    writer, names = Writer(counted), ["first", "a", "b", "c"]
    tasks = await begin(writer, counted, *names)
    tasks[names.index(goes)].cancel()
    await asyncio.wait([tasks[names.index(goes)]])
    assert writer.waiting == (3 if goes == "first" else 2)
    counted.open.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [name == goes for name in names]
    written = {f"r/{name}" for name in names if name != goes or name == "first"}  # whose commit had begun
    assert await paths(store) == {"r", *written}
    assert not writer._tasks
    await invariants.check(store)


async def test_requests_of_clients_that_left_take_no_place_in_a_group(store: Store, counted: Any) -> None:
    writer, names = Writer(counted), ["first", *[f"n{n}" for n in range(60)]]
    tasks = await begin(writer, counted, *names)
    gone = tasks[1::2]
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    assert writer.waiting == 30
    counted.open.set()
    await asyncio.gather(*set(tasks) - set(gone))
    assert len(counted.commits) == 2
    assert await paths(store) == {"r", *[f"r/{name}" for name in ("first", *names[2::2])]}


async def test_the_last_request_is_committed_however_many_clients_leave(store: Store, counted: Any) -> None:
    class Drives(Create):
        async def build(self, reader: Any, context: Any) -> Any:
            next(staying).cancel()
            return await super().build(reader, context)

    writer = Writer(counted)
    last = Drives(CATEGORY, ("r", "last"), "CATEGORY", "last", {})
    edits = [*[create(f"r/n{n}") for n in range(25)], last]
    tasks = [asyncio.create_task(writer.write(edit, ReadUsage())) for edit in edits]
    staying = iter([*tasks[:25], asyncio.create_task(asyncio.sleep(60))])
    assert _told(await tasks[-1]) == ("r/last", 1)
    assert len(counted.commits) == 1
    assert await paths(store) == {"r", "r/last"}


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


async def test_an_exception_in_one_edit_goes_to_its_client_alone(store: Store, counted: Any) -> None:
    class Broken(Create):
        async def build(self, reader: Any, context: Any) -> Any:
            raise ZeroDivisionError

    writer = Writer(counted)
    broken = Broken(CATEGORY, ("r", "x"), "CATEGORY", "x", {})
    edits = [create("r/a"), broken, create("r/b")]
    outcomes = await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in edits], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EditResult, ZeroDivisionError, EditResult]
    assert await paths(store) == {"r", "r/a", "r/b"}


async def test_a_stopping_process_waits_for_running_commits(store: Store, counted: Any) -> None:
    writer = Writer(counted)
    async with writer.watching():
        tasks = await begin(writer, counted, "first", "a")
        asyncio.get_running_loop().call_later(0.02, counted.open.set)
    assert [_told(await task) for task in tasks] == [("r/first", 1), ("r/a", 1)]
    assert not writer._tasks
    await invariants.check(store)


async def test_waiting_clients_get_an_error_when_the_process_ends(counted: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("store.writer.writer.STOP_SECONDS", 0.01)
    writer = Writer(counted)
    async with writer.watching():
        tasks = await begin(writer, counted, "first", "a")
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Uncertain, Uncertain]
    assert not writer._tasks
    assert writer.waiting == 0
    counted.open.set()
    assert await told(writer, create("r/b")) == [("r/b", 1)]


# -- other processes ---------------------------------------------------------------------------------------------------


class Overtaken(CountingStore):
    """Somebody else raises the tree's stamp right before each of the first so many commits."""

    times = 2

    async def commit(self, changes: Sequence[Change]) -> None:
        if self.times:
            self.times -= 1
            (item,) = await self._store.get([tree_version_key(TREE)], ReadUsage(), strong=True)
            await self._store.commit([TreeVersion.of(TREE, item).incremented({})])
        await super().commit(changes)


async def test_edits_are_built_again_after_a_conflict(store: Store, counted: Any) -> None:
    overtaken: Any = Overtaken(store)
    edits = [create("r/a"), update("r/a", note="1"), create("r/a"), delete("r/a")]
    assert await told(Writer(overtaken), *edits) == [("r/a", 1), ("r/a", 2), "ALREADY_EXISTS", ("r/a", 2)]
    assert len(overtaken.commits) == 3
    assert await paths(store) == {"r"}


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
    assert len(await log(store)) == 42
    await invariants.check(store)


async def test_versions_are_read_before_the_items_of_a_group(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    witness: Any = ReadRecorder(store)
    await told(Writer(witness), create("r/a"), create("r/b"), update("r", note="1"))
    assert witness.keys[0] == tree_version_key(TREE)
    assert not witness.repeated
