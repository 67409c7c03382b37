"""Search items after random edits, each in a transaction or in the background, by invariants, check and repair."""

import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from store.background_moves.timing import MoveTiming
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.edits.delete import Delete, Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.items import key_of
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused
from tests.selection import examples
from tests.store.background_moves.journaled import AT, create, move
from tests.store.writer.test_writer_model import SEQUENCES
from tests.store.writer.test_writer_model import TINY as TINY_WITHOUT_SEARCH

NOTED = replace(CATEGORY.levels["CATEGORY"], attributes={"note": Attribute("note", Kind.TEXT, "A note.", search=True)})
SEARCHED = replace(CATEGORY, levels={**CATEGORY.levels, "CATEGORY": NOTED}, search=Search(SearchScope.HIERARCHY))
BY_TREE = replace(SEARCHED, search=Search(SearchScope.TREE))
SCOPES = {"hierarchy": SEARCHED, "tree": BY_TREE}
TINY = TINY_WITHOUT_SEARCH + 4  # the changes of search in the transaction that ends the copying of a move
LIMITS = {"unlimited": None, "as on DynamoDB": 100, "tiny": TINY}


async def check(store: Store, hierarchy: Hierarchy = SEARCHED) -> None:
    await invariants.check(store, {"category": hierarchy})
    assert [str(one) async for one in Check(store, {"category": hierarchy}, AT).findings()] == []


async def follow(store: Store, hierarchy: Hierarchy, seed: int, length: int) -> None:
    writer, model = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0), {"category": hierarchy}), Model()
    edits = RandomEdits(seed, model)
    for _ in range(length):
        edit: Any = edits.one()
        if store.max_commit_changes == TINY and isinstance(edit, Delete) and edit.policy is Policy.REPARENT:
            continue  # which is refused where it is no transaction
        try:
            made = model.apply(edit)
        except Refused:
            with pytest.raises(CladeError):
                await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
        else:
            made((await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())).record)
            await writer.move_worker.finished()
    await check(store, hierarchy)
    assert [one async for one in Repair(Check(store, {"category": hierarchy}, AT)).run()] == []
    await check(store, hierarchy)
    for item in await invariants.all_items(store):
        if item["pk"].startswith("words/category#"):
            assert f"category#{item['at'].partition('#')[0]}" in {key_of(one).pk for one in await roots(store)}


async def roots(store: Store) -> list[dict[str, Any]]:
    return [item for item in await invariants.all_items(store) if item["sk"] == "#" and "tier" in item]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("limit", LIMITS)
@settings(max_examples=examples(5, 15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SEQUENCES)
async def test_items_are_right_after_random_edits(
    tmp_path: Any, limit: str, scope: str, sequence: tuple[int, int]
) -> None:
    async with open_store(f"sqlite:///{tmp_path / uuid.uuid4().hex}.db") as store:
        await store.create()
        store.max_commit_changes = LIMITS[limit]
        await follow(store, SCOPES[scope], *sequence)


@pytest.mark.parametrize("scope", SCOPES)
async def test_items_are_right_after_random_edits_on_both_stores(store: Store, scope: str) -> None:
    await follow(store, SCOPES[scope], 1, 40)


async def write(store: Store, *edits: Any, hierarchy: Hierarchy = SEARCHED) -> None:
    writer = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0), {"category": hierarchy})
    for edit in edits:
        await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
        await writer.move_worker.finished()


async def test_a_moved_node_whose_children_left_is_right_after_its_next_move(store: Store) -> None:
    await write(store, create("r"), create("r/a"), create("r/a/b"), create("r/a/b/c"), create("o"))
    await write(store, move("r/a/b", "o/b"), move("o/b/c", "o/c"), move("o/b", "r/a/b"), create("r/a/b/d"))
    await check(store)


async def test_a_deleted_node_leaves_nothing_of_its_moves(store: Store) -> None:
    await write(store, create("r"), create("r/a"), create("r/a/b"), create("r/a/b/c", node_id="c"), create("o"))
    await write(store, move("r/a/b", "o/b"), move("o/b/c", "o/c"))
    await write(store, Delete(SEARCHED, ("o", "b"), Policy.REFUSE))
    await check(store)
    assert not [
        item for item in await invariants.all_items(store) if item["pk"] == "search/category" and item["sk"] != "-"
    ]


async def test_a_node_that_leaves_a_moved_one_takes_its_former_depth_along(store: Store) -> None:
    await write(store, *[create("/".join("rabcdefgh"[: length + 1])) for length in range(9)], create("o"))
    await write(store, move("r/a/b/c/d/e", "o/e"), move("o/e/f", "o/f"), move("o/e", "r/a/b/c/d/e"))
    await check(store)
    items = await invariants.all_items(store)
    assert [item for item in items if item["pk"] == "search/category" and item["sk"] != "-"]


ACROSS = [
    move("r/a/b", "o/b"), move("o/b/c", "c"), move("c", "o/b/c"), move("o", "r/o"), move("r/o/b", "b"),
    move("b", "r/b"),
]  # fmt: skip


@pytest.mark.parametrize("limit", [None, 24], ids=["at once", "in the background"])
async def test_a_move_to_another_tree_takes_the_items_along_where_trees_are_searched_by_themselves(
    store: Store, limit: int | None
) -> None:
    named = [create("r"), create("r/a"), create("r/a/b"), create("r/a/b/c"), create("r/a/b/c/d"), create("o")]
    await write(store, *named, hierarchy=BY_TREE)
    store.max_commit_changes = limit or store.max_commit_changes
    for edit in ACROSS:
        await write(store, edit, hierarchy=BY_TREE)
        await check(store, BY_TREE)
        words = [item for item in await invariants.all_items(store) if item["pk"].startswith("words/")]
        assert len(words) == len(named)


async def test_the_children_of_a_deleted_root_take_their_items_along(store: Store) -> None:
    await write(store, create("r"), create("r/r"), create("r/r/a"), create("r/o"), create("r/o/b"), hierarchy=BY_TREE)
    await write(store, Delete(BY_TREE, ("r",), Policy.REPARENT), hierarchy=BY_TREE)
    await check(store, BY_TREE)
