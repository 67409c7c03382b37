"""Node kinds with conditions: what their writers do where stored items are not as they should be.

The rest of what a kind meets is tried where it is tried for all: in the modules that use the fixture `probes`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store, opened
from store.engine import ReadUsage, Store
from store.errors import AlreadyExists, Faults
from store.kinds.marker import Marker, marker_key
from store.kinds.registry import KINDS
from store.metadata.moves import MoveState
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.paths import parse_path
from store.model.records import Change, Delete, Item, Put, key_of
from store.transfer.copy import Copy, new_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.create_update import Update
from store.writing.edit import Edit
from store.writing.edit_many import EditMany
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Policy
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.kinds.probe import PROBES
from tests.store.writing import journaled
from tests.store.writing.journaled import AT, OTHERS, SOON, SUBTREE, cascade, create, move
from tests.stores import Interrupted, once

pytestmark = pytest.mark.usefixtures("probes")

SEARCHED = replace(CATEGORY, search=Search(SearchScope.HIERARCHY))
BY_TREE = replace(CATEGORY, search=Search(SearchScope.TREE))
ROOMY = 400  # changes in a transaction, so that the whole subtree fits
TIGHT = 2 * journaled.SMALL  # with the items of as many nodes
STRANGE = "category:strange"


def update(path: str, **values: Any) -> Update:
    return Update(CATEGORY, parse_path(path), None, None, values)


def delete(path: str, policy: Policy) -> Edit:
    return replace(cascade(path), policy=policy)


async def probes(store: Store) -> list[Item]:
    return [one for one in await invariants.all_items(store) if any(kind.owner(one) for kind in PROBES)]


async def damage(store: Store, change: Callable[[Item], Change], *names: str) -> None:
    """Change the probes of the nodes with these names, or of all."""
    found = [one for one in await probes(store) if not names or one["named"] in names]
    for start in range(0, len(found), journaled.SMALL):
        await store.commit([*map(change, found[start : start + journaled.SMALL])])


async def imported(store: Store, hierarchy: Hierarchy, *paths: str, prune: bool = False, note: str | None) -> None:
    wanted = ImportPlan(hierarchy)
    for number, path in enumerate(paths):
        wanted.take(
            Row(number, parse_path(path), [Part("CATEGORY", attributes={} if note is None else {"note": note})])
        )
    store.max_commit_changes = store.max_changes
    await load(store, wanted, LoadResult(), prune=prune)


async def edited(store: Store, hierarchy: Hierarchy, *edits: Any) -> None:
    writer = Writer(store, SOON)
    for edit in edits:
        await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
        await writer.move_worker.finished()


async def check(store: Store, hierarchy: Hierarchy) -> None:
    """All items are right, or are after a repair, which leaves nothing to a second one."""
    store.max_commit_changes = store.max_changes
    for _ in range(2):
        results = [one async for one in Repair(Check(store, {"category": hierarchy}, AT), SOON).run()]
        assert all(one.is_fixed for one in results), results
    assert results == []
    await invariants.check(store, {"category": hierarchy})


EDITS: dict[str, list[Any]] = {
    "updates": [update("r/a/n0", note="x"), update("r", note="x")],
    "a rename": [move("r/a", "r/z")],
    "a move to another tree": [move("r/a", "o/p/a")],
    "a move to a root": [move("r/a", "a")],
    "a cascade": [cascade("r/a")],
    "a deletion": [cascade("r/a/n1"), delete("r/b/c", Policy.REFUSE)],
    "children for their parent": [delete("r/a/n0", Policy.REPARENT), delete("o", Policy.REPARENT)],
}
DAMAGE: dict[str, Callable[[Item], Change]] = {
    "missing": lambda item: Delete(key_of(item)),
    "another's": lambda item: Put({**item, "id": STRANGE}),
}


@pytest.mark.parametrize("limit", [ROOMY, TIGHT], ids=["at once", "in the background"])
@pytest.mark.parametrize("hierarchy", [SEARCHED, BY_TREE], ids=["hierarchy", "tree"])
@pytest.mark.parametrize("what", EDITS)
async def test_nodes_whose_items_are_missing_are_written_all_the_same(
    store: Store, what: str, hierarchy: Hierarchy, limit: int
) -> None:
    await journaled.plant(store, hierarchy=hierarchy)
    await damage(store, DAMAGE["missing"])
    store.max_commit_changes = min(limit, store.max_changes)
    if limit == ROOMY or what != "children for their parent":
        await edited(store, hierarchy, *EDITS[what])
    await check(store, hierarchy)


@pytest.mark.parametrize("what", DAMAGE)
async def test_an_import_removes_nodes_whatever_their_items_are(store: Store, what: str) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    await damage(store, DAMAGE[what], "n1", "z", "y", "a")
    await imported(store, BY_TREE, *OTHERS, note=None, prune=True)
    assert await journaled.paths(store) == {*OTHERS}
    await check(store, BY_TREE)


async def test_an_import_writes_items_that_are_missing(store: Store) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    await damage(store, DAMAGE["missing"])
    await imported(store, BY_TREE, *OTHERS, *SUBTREE, "r/a/new", note="x")
    await invariants.check(store, {"category": BY_TREE})


# -- items of others ---------------------------------------------------------------------------------------------------


async def strange(store: Store, *edits: Edit, hierarchy: Hierarchy = BY_TREE) -> list[Item]:
    """Put items of another node where these edits would write those of theirs; returns them."""
    async with open_store("sqlite://:memory:") as other:
        await other.create()
        await journaled.plant(other, hierarchy=hierarchy)
        other.max_commit_changes = ROOMY
        there = {key_of(one) for one in await probes(store)}
        await edited(other, hierarchy, *edits)
        found = [{**one, "id": STRANGE} for one in await probes(other) if key_of(one) not in there]
    await store.commit([*map(Put, found[:1])])
    return found[:1]


REFUSED: dict[str, list[Any]] = {
    "a creation": [create("r/new", node_id="new")],
    "a move to another tree": [move("r/a/n0", "o/p/a")],
    "several edits": [create("r/other", node_id="other"), create("r/other/new", node_id="new")],
}


@pytest.mark.parametrize("what", REFUSED)
async def test_an_edit_that_needs_an_item_of_another_node_is_refused_at_once(store: Store, what: str) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    store.max_commit_changes = min(ROOMY, store.max_changes)
    await strange(store, REFUSED[what][-1] if what != "several edits" else create("r/new", node_id="new"))
    before = await invariants.all_items(store)
    edits = [replace(edit, hierarchy=BY_TREE) for edit in REFUSED[what]]
    with pytest.raises((AlreadyExists, Faults), match="Another node has the"):
        await Writer(store, SOON).write(EditMany(BY_TREE, edits) if len(edits) > 1 else edits[0], ReadUsage())
    assert await invariants.all_items(store) == before


async def test_an_item_that_another_takes_meanwhile_is_found_by_the_next_attempt(store: Store) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    edit = replace(create("r/new", node_id="new"), hierarchy=BY_TREE)
    taking: Any = Interrupted(store, "commit", before=once(1, lambda: strange(store, edit)))
    with pytest.raises(AlreadyExists):
        await Writer(taking, SOON).write(edit, ReadUsage())
    assert taking.calls == 1


async def test_a_large_move_that_needs_an_item_of_another_node_is_undone(store: Store) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    store.max_commit_changes = TIGHT
    others = await strange(store, move("r/a", "o/p/a"))
    with pytest.raises(AlreadyExists):
        await edited(store, BY_TREE, move("r/a", "o/p/a"))
    assert (await journaled.only_move(store)).state is MoveState.UNDONE
    assert await journaled.paths(store) == {*OTHERS, *SUBTREE}
    await store.commit([Delete(key_of(one)) for one in others])
    await invariants.check(store, {"category": BY_TREE})


async def test_an_import_that_needs_an_item_of_another_node_says_so_and_writes_no_part_of_it(store: Store) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    others = await strange(store, create("r/new"))
    with pytest.raises(AlreadyExists, match="Another node has the"):
        await imported(store, BY_TREE, "r/new", note=None)
    await store.commit([Delete(key_of(one)) for one in others])
    await invariants.check(store, {"category": BY_TREE})


async def test_what_edits_of_one_commit_do_to_one_item_is_one_change_of_it(store: Store) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    store.max_commit_changes = min(ROOMY, store.max_changes)
    new, note, away = create("r/new", node_id="new"), update("r/new", note="x"), move("r/new", "o/new")
    told: list[Edit] = [new, note, away, delete("o/new", Policy.REFUSE), new, note]
    edits = [replace(one, hierarchy=BY_TREE) for one in told]
    for count in range(2, len(edits) + 1):
        await Writer(store, SOON).write(EditMany(BY_TREE, edits[:count]), ReadUsage())
        await invariants.check(store, {"category": BY_TREE})
        if count != 4:
            await edited(store, BY_TREE, delete("o/new" if count == 3 else "r/new", Policy.REFUSE))
        assert not [one for one in await probes(store) if one["id"] == "category:new"]
    results = await Writer(store, SOON).write_in_order([(one, EditOptions()) for one in edits], ReadUsage())
    assert not [one for one in results if isinstance(one, BaseException)]
    await invariants.check(store, {"category": BY_TREE})


# -- processes without the kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [ROOMY, TIGHT], ids=["at once", "in the background"])
@pytest.mark.parametrize("what", EDITS)
async def test_who_does_not_know_a_kind_takes_it_off_the_marker(store: Store, what: str, limit: int) -> None:
    await journaled.plant(store, hierarchy=SEARCHED)
    store.max_commit_changes = min(limit, store.max_changes)
    with pytest.MonkeyPatch.context() as patch:
        for kind in PROBES:
            patch.delitem(KINDS, kind.name)
        if limit == ROOMY or what != "children for their parent":
            await edited(store, SEARCHED, EDITS[what][0])
    marker = Marker.of("category", await journaled.there(store, marker_key("category")))
    assert marker is not None
    assert marker.parts.keys() == (
        {"words", "cells", "unique"} if limit == ROOMY or "child" not in what else KINDS.keys()
    )
    await check(store, SEARCHED)


# -- copies ------------------------------------------------------------------------------------------------------------


async def test_a_copy_has_the_items_of_all_kinds(store: Store, tmp_path: Path) -> None:
    await journaled.plant(store, hierarchy=BY_TREE)
    await edited(store, BY_TREE, move("r/a", "o/a"))
    url = f"sqlite:///{tmp_path}/copy.db"
    async with new_store(url) as new:
        await Copy(store, new).run()
    async with opened(url) as new:
        assert sorted(await probes(new), key=key_of) == sorted(await probes(store), key=key_of)
        await edited(new, BY_TREE, cascade("o/a"))
        await invariants.check(new, {"category": BY_TREE})
