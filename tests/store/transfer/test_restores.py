"""Restores of deleted nodes beside copies, backups, exports and imports."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from store.connect import open_store, opened
from store.engine import Store
from store.errors import Conflict
from store.metadata.moves import MoveState
from store.model.keys import Key
from store.sqlite.store import SQLiteStore
from store.transfer.copy import put_back
from store.transfer.load import LoadResult, load
from store.writing.edit import Named
from store.writing.restore import LAG_SECONDS, Restore
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.transfer.test_copy import copied, exported, items, table
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import OTHERS, SUBTREE
from tests.systems.restore_model import Late

__all__ = ["table"]  # a fixture

COPIED = 2  # commits of a restore, after which it has copied some nodes and not all


async def deleted(store: Store) -> Restore:
    """The undo of the deletion of `r/a`, which was just made."""
    await journaled.plant(store)
    top = str((await journaled.there(store, Key("category#r", "#a#")))["id"])
    await journaled.write(store, journaled.cascade("r/a"))
    return Restore(CATEGORY, (), top, names=[Named("id", id=top)])


async def begun(store: Store) -> Restore:
    """The same, which a worker has begun that died."""
    edit = await deleted(store)
    assert await journaled.died(store, edit, COPIED)
    assert (await journaled.only_restore(store)).state is MoveState.COPYING
    assert {*OTHERS} < await journaled.paths(store) < {*OTHERS, *SUBTREE}
    return edit


async def resume(store: Store) -> None:
    await journaled.lapse(store)
    await journaled.resume(store)


async def check_restored(store: Store) -> None:
    assert await journaled.paths(store) == {*OTHERS, *SUBTREE}
    assert await journaled.findings(store) == []
    await invariants.check(store)


async def test_a_deletion_is_undone_in_a_copy_of_either_kind(store: Store, tmp_path: Path, table: str) -> None:
    edit = await deleted(store)
    for target in (table, f"sqlite:///{tmp_path}/copy.db"):
        await copied(store, target)
        async with opened(target) as copy:
            assert await items(copy) == await items(store)
            copy.max_commit_changes = journaled.SMALL
            await journaled.write(copy, edit)
            await check_restored(copy)


async def test_a_copy_is_rejected_while_a_restore_is_running(store: Store, tmp_path: Path) -> None:
    await begun(store)
    with pytest.raises(Conflict, match=r"r/a is being restored.* clade repair"):
        await copied(store, f"sqlite:///{tmp_path}/new.db")
    await resume(store)
    await copied(store, f"sqlite:///{tmp_path}/new.db")
    async with opened(f"sqlite:///{tmp_path}/new.db") as copy:
        await check_restored(copy)


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_backup_keeps_a_deletion_and_a_restore_that_is_running(tmp_path: Path, is_begun: bool) -> None:
    async with open_store(f"sqlite:///{tmp_path}/first.db") as store:
        await store.create()
        edit = await (begun if is_begun else deleted)(store)
        before = await items(store)
        assert isinstance(store, SQLiteStore)
        await store.back_up(tmp_path / "backup.db")
        await (resume(store) if is_begun else journaled.write(store, edit))
        await check_restored(store)
        await put_back(store, tmp_path / "backup.db")
        assert await items(store) == before
        await (resume(store) if is_begun else journaled.write(store, edit))
        await check_restored(store)


async def test_an_export_has_none_of_the_hidden_copies_of_a_restore(store: Store) -> None:
    await begun(store)
    assert await exported(store) == sorted(OTHERS)
    await resume(store)
    assert await exported(store) == sorted([*OTHERS, *SUBTREE])


async def test_an_import_waits_for_the_end_of_a_restore_of_its_tree(store: Store) -> None:
    await begun(store)
    rows = wanted_of([("r", "CATEGORY"), ("r/a", "CATEGORY"), ("r/a/new", "CATEGORY")], CATEGORY)
    result = LoadResult()
    importing = asyncio.create_task(load(store, rows, result))
    await asyncio.sleep(0.1)
    await resume(store)
    await importing
    assert dict(result.added) == {"CATEGORY": 1}
    assert await journaled.paths(store) == {*OTHERS, *SUBTREE, "r/a/new"}
    assert await journaled.findings(store) == []


async def test_an_import_elsewhere_takes_no_id_of_a_hidden_copy(store: Store) -> None:
    edit = await begun(store)
    rows = wanted_of([("o", "CATEGORY"), ("o/x", "CATEGORY", {"id": edit.node_id.partition(":")[2]})], CATEGORY)
    result = LoadResult()
    await load(store, rows, result)
    assert ["belongs to r/a" in one.reason for one in result.rejections] == [True]
    await resume(store)
    await check_restored(store)


async def met_an_import(store: Store) -> Restore:
    """The undo of the deletion of `r/a`, which a worker has begun that died; then an import brought back `r/a/n8`."""
    edit = await deleted(store)
    last = [one for one in await invariants.all_items(store) if one.get("key") == "#a#n8#" and "deleted" in one]
    assert await journaled.died(store, edit, 1)
    row = ("o/x", "CATEGORY", {"id": str(last[0]["pk"]).partition(":")[2]})
    await load(store, wanted_of([("o", "CATEGORY"), row], CATEGORY), LoadResult())
    return edit


async def check_all_but_the_imported(store: Store) -> None:
    left = {path for path in SUBTREE if path.startswith("r/a/n8")}
    assert await journaled.paths(store) == {*OTHERS, "o/x", *SUBTREE} - left
    assert await journaled.findings(store) == []
    await invariants.check(store)


async def test_a_node_that_an_import_brings_back_meanwhile_is_left_out_with_all_below_it(store: Store) -> None:
    await met_an_import(store)
    an_hour_later: Any = Late(store, None, ahead=LAG_SECONDS + 60)
    await resume(store if store.is_embedded else an_hour_later)
    await check_all_but_the_imported(store)


async def test_an_import_leaves_the_number_of_children_from_which_an_index_seems_behind_for_an_hour(
    store: Store,
) -> None:
    edit = await met_an_import(store)
    remote: Any = Late(store, None)
    await resume(remote)
    undone = await journaled.only_restore(store)
    assert undone.state is MoveState.UNDONE
    assert str(undone.reason).startswith("The index of the table is behind")
    assert await journaled.paths(store) == {*OTHERS, "o/x"}
    assert await journaled.findings(store) == []
    await invariants.check(store)
    an_hour_later: Any = Late(store, None, ahead=LAG_SECONDS + 60)
    await journaled.write(an_hour_later, edit)
    await check_all_but_the_imported(store)
