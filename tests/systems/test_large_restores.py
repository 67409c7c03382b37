"""Large restores: jobs that are killed, undone or disturbed bring back a whole deletion at one place, or nothing."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, NotFound
from store.metadata.moves import MoveState, MoveTiming
from store.model.keys import Path, path_of
from store.model.paths import format_path, parse_path
from store.model.records import Change, Item, Put, Record, derived_id
from store.reading import recent_moves
from store.transfer.load import LoadResult, load
from store.writing.create_update import Update
from store.writing.edit import Named
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Policy
from store.writing.move_lease import MoveLease
from store.writing.move_worker import MoveWorker
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.selection import examples, thorough
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import OTHERS, SOON, SUBTREE
from tests.store.writing.test_move_faults import another
from tests.stores import Interrupted, once
from tests.systems.restore_model import CODE, CODED, LEVELS, Late

TOP = "r/a"


def id_of(path: str) -> str:
    """The id of the first node at a path."""
    return f"category:{derived_id('category', parse_path(path))}"


def bare(path: str) -> str:
    return id_of(path).removeprefix("category:")


def numbers() -> list[int]:
    """The commits before which others come, the last one later than any."""
    return [*range(1, 41)] if thorough() else [1, 2, 3, 5, 40]


def restore(path: str, to: str | None = None, key: str | None = None) -> Restore:
    """The restore of the first node at a path, perhaps below another one."""
    names = [Named("id", id=id_of(path)), *([] if to is None else [Named("to", path=parse_path(to))])]
    where: Path = () if key is None else (key,)
    return Restore(CATEGORY, where, id_of(path), names=names)


async def plant_deleted(store: Store, top: str = TOP) -> dict[str, Any]:
    """The trees of `journaled`, of which a subtree is deleted; the nodes of before by id."""
    await journaled.plant(store)
    before = {item["id"]: item for item in (await invariants.nodes(store, "category")).values()}
    await journaled.write(store, journaled.cascade(top))
    return before


async def tombstones(store: Store) -> dict[str, Item]:
    items = await invariants.all_items(store)
    return {str(item["pk"]): item for item in items if item["sk"] == "v0" and item.get("deleted")}


async def whole(store: Store) -> None:
    """Fail unless no job runs, and nothing in the table is wrong."""
    assert all(one.ended_at is not None for one in await recent_moves(store, ReadUsage()))
    await invariants.check(store)
    assert await journaled.findings(store) == []


async def last_state(store: Store) -> MoveState:
    return (await recent_moves(store, ReadUsage()))[0].state


async def ends(store: Store, edit: Any, key: str | None = None) -> CladeError | None:
    """The error of an edit with an idempotency key whose job has ended; None where it was made."""
    writer = Writer(store, SOON)
    try:
        await writer.write(edit, ReadUsage(), EditOptions(key=key))
    except CladeError as error:
        return error
    finally:
        await writer.move_worker.finished()
    return None


async def resumed(store: Store) -> None:
    await journaled.lapse(store)
    await journaled.resume(store)


async def test_indexes_have_time_for_all_that_is_copied_before_the_commit(store: Store, monkeypatch: Any) -> None:
    before, steps = await plant_deleted(store), list[str]()
    commit, wait = store.commit, MoveLease.wait

    async def noted(changes: Sequence[Change]) -> None:
        await commit(changes)
        nodes = [one for one in changes if isinstance(one, Put) and "tier" in one.item and one.item["id"] in below]
        move = next((one.item for one in changes if isinstance(one, Put) and one.item["pk"] == "moves"), {})
        steps.extend(["nodes"] * bool(nodes) + ["the commit"] * (move.get("state") == "SWEEPING"))

    async def waited(lease: MoveLease, seconds: float) -> None:
        steps.append(f"wait {seconds:g}")
        await wait(lease, 0)

    below = {one for one, item in before.items() if item["sk"].startswith("#a#")}
    monkeypatch.setattr(store, "commit", noted)
    monkeypatch.setattr(MoveLease, "wait", waited)
    written = await journaled.write(store, restore(TOP), MoveTiming(3.0, 2.0, 5.0, 5.0))
    last = len(steps) - 1 - steps[::-1].index("nodes")
    assert steps[0] == "wait 3"
    assert steps[last + 1 : last + 3] == ["wait 2", "the commit"]
    (top,) = [item for item in (await invariants.nodes(store, "category")).values() if item["id"] == id_of(TOP)]
    assert (written.record.revision, written.record.updated_at) == (top["revision"], top["updated_at"])


@pytest.mark.parametrize("number", [2, 3])
async def test_a_repetition_has_the_node_as_restored_before_the_restore_is_done(store: Store, number: int) -> None:
    await plant_deleted(store)
    again = list[Record]()

    async def repeat() -> None:
        written = await Writer(store, SOON).write(restore(TOP), ReadUsage(), EditOptions(key="once"))
        again.append(written.record)

    assert await ends(Interrupted(store, "commit", before=once(number, repeat)), restore(TOP), "once") is None
    (top,) = [one for one in (await invariants.nodes(store, "category")).values() if one["id"] == id_of(TOP)]
    (found,) = again
    assert found.key == (top["pk"], top["sk"])
    assert (found.name, found.revision, found.updated_at) == (top["name"], top["revision"], top["updated_at"])
    await whole(store)


# -- jobs that are killed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("to", "key"), [("o/p", "z"), pytest.param(None, None, marks=pytest.mark.thorough)])
async def test_a_restore_stopped_after_any_commit_is_finished_by_the_next_worker(
    store_url: str, to: str | None, key: str | None
) -> None:
    states = list[MoveState]()
    while True:
        async with open_store(another(store_url, len(states) + 1)) as store:
            await store.create()
            before = await plant_deleted(store)
            if not await journaled.died(store, restore(TOP, to, key), len(states) + 1):
                break
            states.append((await recent_moves(store, ReadUsage()))[0].state)
            assert await journaled.findings(store) == []
            await resumed(store)
            await whole(store)
            assert await journaled.paths(store) == {*OTHERS, *journaled.at(TOP, TOP if to is None else f"{to}/{key}")}
            after = {item["id"]: item for item in (await invariants.nodes(store, "category")).values()}
            assert {one: item["revision"] for one, item in after.items()} == {
                one: item["revision"] + (format_path(path_of(item["pk"], item["sk"])) in SUBTREE)
                for one, item in before.items()
            }
    assert {*states} >= {MoveState.COPYING, MoveState.SWEEPING, MoveState.DONE}


# -- two jobs and undone jobs ------------------------------------------------------------------------------------------


PARTS = [restore("r/a", "o/p"), restore("r/a", "o/p", "z"), restore("r/a/n0", "o"), restore("r/a/n8", "b", "z")]


@pytest.mark.parametrize("part", [0, *[pytest.param(part, marks=pytest.mark.thorough) for part in (1, 2, 3)]])
async def test_two_restores_of_one_deletion_share_no_node(part: int) -> None:
    """While a job copies the whole deletion, another one takes a part of it elsewhere, and stops anywhere."""
    for number in numbers():
        is_over = False
        for commits in (1, 2, 3, 4, 99) if thorough() else (2, 3, 99):
            async with open_store("sqlite://:memory:") as store:
                await store.create()
                before = await plant_deleted(store, "r")

                async def take() -> None:
                    with suppress(CladeError):
                        await journaled.died(store, PARTS[part], commits)  # noqa: B023

                disturbed: Any = Interrupted(store, "commit", before=once(number, take))
                assert await ends(disturbed, restore("r")) is None
                await resumed(store)
                await whole(store)
                ids = {item["id"] for item in (await invariants.nodes(store, "category")).values()}
                assert len(ids) + len(await tombstones(store)) == len(before)
                assert id_of("r") in ids
                is_over = disturbed.calls < number
        if is_over:
            return
    raise AssertionError("The job does not end.")


async def test_an_undone_restore_of_a_part_leaves_all_tombstones_as_they_were(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.writing.restore.MAX_NODES", 0)
    long = "m" * 500
    await journaled.plant(store, f"o/{long}", f"r/a/{long}", f"r/a/{long}/{'n' * 20}")
    await journaled.write(store, journaled.cascade("r"))
    before = await tombstones(store)
    error = await ends(store, restore("r/a", f"o/{long}"))
    assert error is not None
    assert (error.code, await last_state(store)) == ("BAD_PATH", MoveState.UNDONE)
    assert await tombstones(store) == before
    await whole(store)


CODED_ROWS = [*OTHERS, *SUBTREE]


async def plant_coded(store: Store) -> None:
    """The same trees with search and unique codes, which are the paths."""
    rows = [(path, "CATEGORY", {"code": path, "note": path}) for path in CODED_ROWS]
    await load(store, wanted_of(rows, CODED), LoadResult())
    store.max_commit_changes = 2 * journaled.SMALL


@pytest.mark.parametrize("path", ["r/a", "r/a/n0/y/z", "r/a/n8/x/y"])
async def test_a_code_that_another_node_has_meanwhile_undoes_all_copies(store: Store, path: str) -> None:
    await plant_coded(store)
    await journaled.write(store, replace(journaled.cascade("r"), hierarchy=CODED))
    before, items = await tombstones(store), await copies(store)
    taken = replace(journaled.create("o/t"), hierarchy=CODED, values={"code": path})
    await journaled.write(store, taken)
    error = await ends(store, replace(restore("r/a", "o", "z"), hierarchy=CODED), "once")
    assert error is not None
    assert (error.code, await last_state(store)) == ("TAKEN", MoveState.UNDONE)
    assert await tombstones(store) == before
    await journaled.write(store, Delete(CODED, ("o", "t"), Policy.REFUSE))
    again = await ends(store, replace(restore("r/a", "o", "z"), hierarchy=CODED), "once")
    assert again is not None
    assert again.code == "CONFLICT"
    (move,) = [one for one in await recent_moves(store, ReadUsage()) if one.state is MoveState.UNDONE]
    way = "Send the change again with another idempotencyKey."
    assert str(again) == f"The move {move.id} of this change was undone. {error} {way}"
    assert await copies(store) == items
    await invariants.check(store, {"category": CODED})
    assert await journaled.findings(store, CODED) == []
    assert await ends(store, replace(restore("r/a", "o", "z"), hierarchy=CODED)) is None
    await invariants.check(store, {"category": CODED})
    assert await journaled.findings(store, CODED) == []


UNBOUND = replace(CODE, unique=False)
LOOSE = {name: replace(one, attributes={**one.attributes, "code": UNBOUND}) for name, one in LEVELS.items()}


@pytest.mark.parametrize("limit", [2 * journaled.SMALL, 1_000])
async def test_codes_that_became_unique_since_are_not_twice_among_the_nodes_of_a_deletion(
    store: Store, limit: int
) -> None:
    loose = replace(CODED, levels=LOOSE)
    rows = [(path, "CATEGORY", {"code": "same" if path in ("r/a/n1", "r/a/n2") else path}) for path in CODED_ROWS]
    await load(store, wanted_of(rows, loose), LoadResult())
    store.max_commit_changes = limit
    await journaled.write(store, replace(journaled.cascade("r/a"), hierarchy=loose))
    told = [str(one.finding) async for one in Repair(Check(store, {"category": CODED}, journaled.AT), SOON).run()]
    assert await journaled.findings(store, CODED) == [], told
    before = await invariants.all_items(store)
    error = await ends(store, replace(restore("r/a"), hierarchy=CODED))
    assert error is not None
    if limit > 100:
        way = "restore one of them alone to another place and change it."
        assert str(error) == f"r/a/n2: same is the code of r/a/n1; {way}"
        assert await invariants.all_items(store) == before
    else:
        assert await last_state(store) is MoveState.UNDONE
        assert str(error).startswith("r/a/n2: same is the code of another node; restore one of them alone")
    assert error.code == "TAKEN"
    assert await journaled.findings(store, CODED) == []
    alone = restore("r/a/n2", "o")
    assert await ends(store, replace(alone, hierarchy=CODED)) is None
    changed = Update(CODED, parse_path("o/n2"), None, None, {"code": "another"})
    await journaled.write(store, changed)
    assert await ends(store, replace(restore("r/a"), hierarchy=CODED)) is None
    assert await journaled.findings(store, CODED) == []


@pytest.mark.parametrize("is_deletion", [True, False])
async def test_a_node_that_a_job_deletes_or_brings_back_is_busy(is_deletion: bool) -> None:
    codes = Counter[str]()
    for commits in range(1, 40):
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await journaled.plant(store)
            if not is_deletion:
                await journaled.write(store, journaled.cascade(TOP))
            edit = journaled.cascade(TOP) if is_deletion else restore(TOP)
            if not await journaled.died(store, edit, commits):
                break
            if (await recent_moves(store, ReadUsage()))[0].ended_at is None:
                error = await ends(store, restore(TOP))
                codes[error.code if error else "made"] += 1
    assert codes.keys() == {"CONFLICT"}
    assert codes.total() > 4


async def copies(store: Store) -> dict[str, int]:
    """The numbers of nodes, words and unique values in a table."""
    items = await invariants.all_items(store)
    return dict(Counter(str(item["pk"]).partition("/")[0] for item in items if "/" in str(item["pk"])))


# -- others beside a job -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["r/a", "r/a/n0", "r/a/n8/x/y"])
async def test_a_node_that_comes_back_by_its_id_before_it_is_copied_is_left_out_with_all_below_it(path: str) -> None:
    """Before each commit of the job: it is left out, or it is copied already, and its id is taken."""
    left_out = is_taken = 0
    for number in numbers():
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await plant_deleted(store)
            errors = list[CladeError | None]()

            async def create() -> None:
                errors.append(await ends(store, journaled.create("o/i", node_id=bare(path))))  # noqa: B023

            disturbed: Any = Interrupted(store, "commit", before=once(number, create))
            error = await ends(disturbed, restore(TOP))
            await whole(store)
            if not errors:
                break
            gone = {one for one in SUBTREE if f"{one}/".startswith(f"{path}/")}
            if errors[0] is None and error is None:
                left_out += 1
                assert await journaled.paths(store) == {*OTHERS, *SUBTREE, "o/i"} - gone
            elif errors[0] is None:
                left_out += 1
                assert isinstance(error, NotFound)
                assert path == TOP
                assert await journaled.paths(store) == {*OTHERS, "o/i"}
                assert len(await tombstones(store)) == len(SUBTREE) - 1
            else:
                is_taken += 1
                assert errors[0].code == "ALREADY_EXISTS"
                assert await journaled.paths(store) == {*OTHERS, *SUBTREE}
    assert left_out
    assert is_taken


MEANWHILE = [
    journaled.create("r/a"), journaled.create("r/a/new"), journaled.move("r/b", "r/a/n0/b"), journaled.cascade("r"),
    journaled.move("r", "o/r"), Update(CATEGORY, ("r", "a", "n0"), "x", None, {}), restore(TOP, key="other"),
    restore("r/a/n0", "r", "a"), journaled.cascade("r/a/n0"),
]  # fmt: skip


@pytest.mark.parametrize("edit", MEANWHILE, ids=lambda edit: f"{type(edit).__name__} {'/'.join(edit.path)}")
async def test_nobody_writes_at_below_or_above_the_place_of_a_restore_until_it_has_ended(edit: Any) -> None:
    """Of another restore of the same node one of both is made."""
    refused = Counter[str]()
    for number in numbers()[1:]:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await plant_deleted(store)
            errors = list[CladeError | None]()

            async def disturb() -> None:
                errors.append(await ends(store, edit))  # noqa: B023

            disturbed: Any = Interrupted(store, "commit", before=once(number, disturb))
            error = await ends(disturbed, restore(TOP))
            await whole(store)
            if not errors:
                break
            assert errors[0] is None if error is not None else errors[0] is not None
            refused[errors[0].code if errors[0] is not None else "made"] += 1
    assert refused
    is_other = isinstance(edit, Restore) and not edit.names[1:]
    assert refused.keys() <= ({"made", "NOT_FOUND", "CONFLICT"} if is_other else {"CONFLICT", "NOT_FOUND"}), refused
    assert is_other or refused["CONFLICT"], refused


async def test_a_node_is_not_restored_while_the_job_that_deletes_it_runs(store: Store) -> None:
    await journaled.plant(store)
    errors = list[CladeError | None]()

    async def again(_: int) -> None:
        errors.append(await ends(store, restore(TOP, "o/p")))

    await journaled.write(Interrupted(store, "commit", after=again), journaled.cascade(TOP))
    codes = [error.code if error else "made" for error in errors]
    assert {*codes[:-1]} == {"CONFLICT"}
    assert codes[-1] == "made"
    await whole(store)
    assert await journaled.paths(store) == {*OTHERS, *journaled.at(TOP, "o/p/a")}


async def disturb_each_other(store: Store, chance: Random, counts: Counter[str]) -> None:
    """Restores that are killed and resumed anywhere, deletions, moves, and nodes that come back by their ids.

    In some histories the index lacks a deleted node, so that restores are undone after they have copied all others.
    """
    before = await plant_deleted(store, "r")
    late: Any = Late(store, chance.choice([*before, *[None] * 2 * len(before)]))
    if chance.random() < 0.5:
        await ends(store, restore("r"))
        await ends(store, journaled.cascade("r/a"))
    for _ in range(12):
        gone = [pk.removeprefix("id#") for pk in sorted(await tombstones(store))]
        parents = [parse_path(path) for path in sorted(await journaled.paths(store))] or [("r",)]
        parent, number = chance.choice(parents), chance.choice([0, 1, 2, 2, 3, 3, 4, 5, 99])
        where: Path = chance.choice([(), (), (chance.choice("vwxyz"),)])
        edit: Any = journaled.cascade(format_path(parent))
        kind = chance.random()
        if kind < 0.25:
            await journaled.lapse(store)
            worker = MoveWorker(journaled.mortal(late, number), SOON)
            with suppress(journaled.Dies):
                await worker.resume()
                await asyncio.gather(*worker._tasks.values())
            continue
        if gone and kind < 0.7:
            top = max(chance.sample(gone, min(len(gone), 4)), key=lambda one: size_of_deleted(before, one))
            names = [Named("id", id=top), *([Named("to", path=parent)] if chance.random() < 0.7 else [])]
            edit = Restore(CATEGORY, where, top, names=names)
        elif gone and kind < 0.9:
            node_id = chance.choice(gone).removeprefix("category:")
            edit = journaled.create(format_path((*parent, chance.choice("vwxyz"))), node_id=node_id)
        elif kind < 0.95:
            edit = journaled.move(format_path(chance.choice(parents)), format_path((*parent, "m")))
        try:
            counts[f"{type(edit).__name__} died"] += await journaled.died(late, edit, number)
        except CladeError as error:
            counts[error.code] += 1
            assert late.times < 99 or error.code != "UNAVAILABLE"  # noqa: PT017
    counts["lacking"] += 99 - late.times
    await resumed(late)
    await whole(store)
    moves = await recent_moves(store, ReadUsage())
    counts.update(f"{one.state} {one.gone is not None}" for one in moves)
    assert late.times < 99 or not any("index" in (one.reason or "") for one in moves)
    ids = {item["id"] for item in (await invariants.nodes(store, "category")).values()}
    assert ids | {pk.removeprefix("id#") for pk in await tombstones(store)} == {*before}


def size_of_deleted(before: dict[str, Any], node_id: str) -> int:
    return sum(before[node_id].get("below", {"": 99}).values())


@pytest.mark.both_stores
async def test_whatever_jobs_and_others_do_to_each_other_no_node_is_lost_or_without_its_parent(store_url: str) -> None:
    counts, kind = Counter[str](), store_url.partition(":")[0]
    for seed in range(examples(*{"sqlite": (5, 500), "dynamodb": (1, 10)}[kind])):
        url = "sqlite://:memory:" if kind == "sqlite" else another(store_url, seed)
        async with open_store(url) as store:
            await store.create()
            try:
                await disturb_each_other(store, Random(f"{kind} {seed}"), counts)  # noqa: S311
            except BaseException as error:
                error.add_note(f"history {seed}")
                raise
    few = {"DONE True", "UNDONE True", "Restore died", "Create died", "CONFLICT"}
    assert kind == "dynamodb" or counts.keys() >= few, counts
