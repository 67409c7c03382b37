"""Search items after edits, each in a transaction or in the background, by invariants, check and repair."""

from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import BadPath, CladeError
from store.metadata.moves import MoveState, MoveTiming
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.paths import parse_path
from store.model.records import Item, canonical_item, key_of, size_of
from store.reading import recent_moves
from store.writing.create_update import Create
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused
from tests.selection import examples
from tests.stores import Interrupted, once

pytestmark = pytest.mark.usefixtures("probes")

AT = "2026-01-01T00:00:00.000Z"
NOTED = replace(CATEGORY.levels["CATEGORY"], attributes={"note": Attribute("note", Kind.TEXT, "A note.", search=True)})
SEARCHED = replace(CATEGORY, levels={**CATEGORY.levels, "CATEGORY": NOTED}, search=Search(SearchScope.HIERARCHY))
BY_TREE = replace(SEARCHED, search=Search(SearchScope.TREE))
SCOPES = [SEARCHED, BY_TREE]
TINY = 18  # changes in a transaction, in which not even two nodes can move
SOON = MoveTiming(0.0, 0.0, 5.0, 5.0)
SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(1, 60))  # a seed, and how many edits
at_once_or_not = pytest.mark.parametrize("limit", [None, TINY], ids=["at once", "in the background"])


def create(path: str, name: str | None = None) -> Create:
    where = parse_path(path)
    node_id = path.replace("/", ".") if len(path) < 100 else None
    return Create(SEARCHED, where, "CATEGORY", name or where[-1], {}, node_id)


def move(path: str, target: str) -> Move:
    return Move(SEARCHED, parse_path(path), parse_path(target))


async def write(store: Any, *edits: Any, hierarchy: Hierarchy = SEARCHED) -> None:
    writer = Writer(store, SOON)
    for edit in edits:
        await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
        await writer.move_worker.finished()


async def check(store: Store, hierarchy: Hierarchy = SEARCHED) -> None:
    await invariants.check(store, {"category": hierarchy})
    assert [str(one) async for one in Check(store, {"category": hierarchy}, AT).findings()] == []


async def search_items(store: Store) -> list[Item]:
    """The items of words and of moved nodes."""
    found = [item for item in await invariants.all_items(store) if item["pk"].startswith(("words/", "kinds/"))]
    return [item for item in found if item["sk"] != "-" and not item["sk"].startswith("~")]


# -- random edits ------------------------------------------------------------------------------------------------------


async def follow(store: Store, hierarchy: Hierarchy, seed: int, length: int) -> None:
    writer, model = Writer(store, SOON), Model()
    edits = RandomEdits(seed, model)
    for _ in range(length):
        edit: Any = edits.one()
        if store.max_commit_changes == TINY and isinstance(edit, Delete) and edit.policy is Policy.REPARENT:
            continue  # which is refused where it is no transaction
        if store.max_commit_changes == TINY and isinstance(edit, Move) and edit.position and edit.path != edit.target:
            continue  # likewise
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
    items = await invariants.all_items(store)
    trees = {key_of(item).pk for item in items if item["sk"] == "#" and "tier" in item}
    words = [item for item in items if item["pk"].startswith("words/")]
    assert {f"category#{item['at'].partition('#')[0]}" for item in words} <= trees


@settings(max_examples=examples(9, 90))
@given(SEQUENCES, st.sampled_from(SCOPES), st.sampled_from([None, 100, TINY]))
async def test_items_are_right_after_random_edits(
    sequence: tuple[int, int], hierarchy: Hierarchy, limit: int | None
) -> None:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        store.max_commit_changes = limit
        await follow(store, hierarchy, *sequence)


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
async def test_items_are_right_after_random_edits_on_dynamodb(store: Store) -> None:
    await follow(store, BY_TREE, 1, 40)


# -- single edits ------------------------------------------------------------------------------------------------------

TREES = [create(path) for path in ("r", "r/a", "r/a/b", "r/a/b/c", "o", "o/p")]


@at_once_or_not
@pytest.mark.parametrize(
    ("edit", "hierarchy", "written"),
    [
        (create("r/garden-chairs", "Garden Chairs"), SEARCHED,
         ["chairs#11#r.garden-chairs", "garden+chairs#01#r.garden-chairs"]),
        (create("r/s", "Garden Chairs"), CATEGORY, []),
        (move("r/a", "r/z"), SEARCHED, ["a#01#r.a", "z#01#r.a"]),
        (move("r/a", "o/p/a"), SEARCHED, ["a#01#r.a", "category:r.a"]),
        (move("r/a/b/c", "o/c"), SEARCHED, ["c#01#r.a.b.c"]),
    ],
    ids=["a creation", "a creation without search", "a rename", "a move", "a move of a leaf"],
)  # fmt: skip
async def test_an_edit_writes_the_items_of_its_node_and_none_of_its_descendants(
    store: Store, edit: Any, hierarchy: Hierarchy, written: list[str], limit: int | None
) -> None:
    await write(store, *TREES, hierarchy=hierarchy)
    before = await search_items(store)
    store.max_commit_changes = limit or store.max_commit_changes
    await write(store, edit, hierarchy=hierarchy)
    after = await search_items(store)
    changed = [item for item in (*before, *after) if (item in before) != (item in after)]
    assert sorted({item["sk"] for item in changed}) == written
    for item in after:  # write units: in a transaction 2 a KB, and in each index with the item 1 a KB
        assert ceil(size_of(canonical_item(item)) / 1024) * (2 + ("rank" in item)) <= 3


DEEP = [create("/".join("rabcdefgh"[: length + 1])) for length in range(9)]


@pytest.mark.parametrize(
    ("edits", "is_moved"),
    [
        ([*TREES, move("r/a/b", "o/b"), move("o/b/c", "o/c"), move("o/b", "r/a/b"), create("r/a/b/d")], False),
        ([*TREES, move("r/a/b", "o/b"), move("o/b/c", "o/c"), Delete(SEARCHED, ("o", "b"), Policy.REFUSE)], False),
        ([*DEEP, create("o"), move("r/a/b/c/d/e", "o/e"), move("o/e/f", "o/f"), move("o/e", "r/a/b/c/d/e")], True),
    ],
    ids=["the next move after children left", "deleted after children left", "a child leaves, of a former depth"],
)
async def test_of_a_moved_node_is_kept_what_its_descendants_need(
    store: Store, edits: list[Any], is_moved: bool
) -> None:
    await write(store, *edits)
    await check(store)
    assert any(item["pk"] == "kinds/category" for item in await search_items(store)) == is_moved


# -- a move that comes to nothing --------------------------------------------------------------------------------------


async def test_a_move_that_is_undone_leaves_the_items_as_they_were(store: Store) -> None:
    long = "m" * 500
    await write(store, *TREES, create("r/b"), create(f"o/{long}"), create(f"r/a/{long}"), hierarchy=BY_TREE)
    await write(store, move("r/b", "r/a/d"), hierarchy=BY_TREE)  # so that there are items of moves in the subtree
    edit = create(f"r/a/{long}/{'n' * 20}")
    edited: Any = Interrupted(store, "commit", before=once(1, lambda: write(store, edit, hierarchy=BY_TREE)))
    store.max_commit_changes = 24
    with pytest.raises(BadPath):
        await write(edited, move("r/a", f"o/{long}/a"), hierarchy=BY_TREE)
    (found,) = await recent_moves(store, ReadUsage())
    assert found.state is MoveState.UNDONE
    await check(store, BY_TREE)
