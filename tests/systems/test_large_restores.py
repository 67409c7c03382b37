"""Large restores: jobs that are killed, undone or disturbed bring back a whole deletion at one place, or nothing."""

from contextlib import suppress
from typing import Any

import pytest

from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, Conflict, NotFound
from store.metadata.moves import MoveState
from store.model.keys import Path, path_of
from store.model.paths import format_path, parse_path
from store.model.records import Item, derived_id
from store.reading import recent_moves
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.edit import Named
from store.writing.move_delete import Move
from store.writing.move_worker import MoveWorker
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import OTHERS, SOON, SUBTREE
from tests.store.writing.test_move_faults import another
from tests.stores import Interrupted, once

TOP = "r/a"


def id_of(path: str) -> str:
    """The id of the first node at a path."""
    return f"category:{derived_id('category', parse_path(path))}"


def bare(path: str) -> str:
    return id_of(path).removeprefix("category:")


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


async def ends(store: Store, edit: Any) -> CladeError | None:
    """The error of an edit whose job has ended; None where it was made."""
    writer = Writer(store, SOON)
    try:
        await writer.write(edit, ReadUsage())
    except CladeError as error:
        return error
    finally:
        await writer.move_worker.finished()
    return None


async def resumed(store: Store) -> None:
    await journaled.lapse(store)
    await journaled.resume(store)


# -- jobs that are killed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("to", "key"), [(None, None), ("o/p", "z")])
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


@pytest.mark.parametrize("part", range(3))
async def test_two_restores_of_one_deletion_share_no_node(part: int) -> None:
    """While a job copies the whole deletion, another one takes a part of it elsewhere, and stops anywhere."""
    for number in range(1, 40):
        is_over = False
        for commits in (1, 2, 3, 4, 99):
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
    monkeypatch.setattr("store.writing.restore.MAX_CHECKED_NODES", 0)
    long = "m" * 500
    await journaled.plant(store, f"o/{long}", f"r/a/{long}", f"r/a/{long}/{'n' * 20}")
    await journaled.write(store, journaled.cascade("r"))
    before = await tombstones(store)
    error = await ends(store, restore("r/a", f"o/{long}"))
    assert error is not None
    assert (error.code, await last_state(store)) == ("BAD_PATH", MoveState.UNDONE)
    assert await tombstones(store) == before
    await whole(store)
