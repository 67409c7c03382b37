"""Search items after edits, each in a transaction or in the background, by invariants, check and repair."""

import contextlib
import shutil
import uuid
from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
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

AT = "2026-01-01T00:00:00.000Z"
NOTED = replace(CATEGORY.levels["CATEGORY"], attributes={"note": Attribute("note", Kind.TEXT, "A note.", search=True)})
SEARCHED = replace(CATEGORY, levels={**CATEGORY.levels, "CATEGORY": NOTED}, search=Search(SearchScope.HIERARCHY))
BY_TREE = replace(SEARCHED, search=Search(SearchScope.TREE))
SCOPES = {"hierarchy": SEARCHED, "tree": BY_TREE}
TINY = 18  # changes in a transaction, in which not even two nodes can move
LIMITS = {"unlimited": None, "as on DynamoDB": 100, "tiny": TINY}
SOON, LEASELESS = MoveTiming(0.0, 0.0, 5.0, 5.0), MoveTiming(0.0, 0.0, 5.0, 0.0)
SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(1, 60))  # a seed, and how many edits
at_once_or_not = pytest.mark.parametrize("limit", [None, TINY], ids=["at once", "in the background"])


def create(path: str, name: str | None = None) -> Create:
    where = parse_path(path)
    node_id = path.replace("/", ".") if len(path) < 100 else None
    return Create(SEARCHED, where, "CATEGORY", name or where[-1], {}, node_id)


def move(path: str, target: str) -> Move:
    return Move(SEARCHED, parse_path(path), parse_path(target))


async def write(store: Any, *edits: Any, hierarchy: Hierarchy = SEARCHED, timing: MoveTiming = SOON) -> None:
    writer = Writer(store, timing)
    for edit in edits:
        await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
        await writer.move_worker.finished()


async def check(store: Store, hierarchy: Hierarchy = SEARCHED) -> None:
    await invariants.check(store, {"category": hierarchy})
    assert [str(one) async for one in Check(store, {"category": hierarchy}, AT).findings()] == []


async def search_items(store: Store) -> list[Item]:
    """The items of words and of moved nodes."""
    found = [item for item in await invariants.all_items(store) if item["pk"].startswith(("words/", "search/"))]
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


@pytest.mark.both_stores
@pytest.mark.parametrize("scope", SCOPES)
async def test_items_are_right_after_random_edits_on_both_stores(store: Store, scope: str) -> None:
    await follow(store, SCOPES[scope], 1, 40)


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
    assert any(item["pk"] == "search/category" for item in await search_items(store)) == is_moved


@at_once_or_not
async def test_where_trees_are_searched_by_themselves_a_move_or_deletion_takes_the_items_to_another_tree(
    store: Store, limit: int | None
) -> None:
    most = store.max_commit_changes
    await write(store, *TREES, create("r/r"), create("r/r/d"), hierarchy=BY_TREE)
    for edit in (
        move("r/a/b", "o/b"), move("o/b/c", "c"), move("c", "o/b/c"), move("o", "r/o"), move("r/o/b", "b"),
        move("b", "r/b"), Delete(BY_TREE, ("r",), Policy.REPARENT),
    ):  # fmt: skip
        store.max_commit_changes = most if isinstance(edit, Delete) else limit or most
        await write(store, edit, hierarchy=BY_TREE)
        await check(store, BY_TREE)
        words = sum(item["pk"].startswith("words/") for item in await search_items(store))
        assert words == len(TREES) + 2 - isinstance(edit, Delete)


# -- moves that are interrupted ----------------------------------------------------------------------------------------


class Dies(BaseException):
    """Nothing that is caught on the way: the process ends here."""


async def die() -> None:
    raise Dies


@pytest.mark.parametrize("target", ["o/p/a", pytest.param("a", marks=pytest.mark.thorough)])
async def test_a_move_stopped_before_any_commit_is_finished_by_a_repair_with_its_items(
    tmp_path: Any, target: str
) -> None:
    async with open_store(f"sqlite:///{tmp_path}/planted.db") as store:
        await store.create()
        await write(store, *TREES, *[create(f"r/a/n{number}") for number in range(14)], hierarchy=BY_TREE)
    states = set[MoveState]()
    for commits in range(1, 100):
        shutil.copy(tmp_path / "planted.db", tmp_path / f"{commits}.db")
        async with open_store(f"sqlite:///{tmp_path}/{commits}.db") as store:
            store.max_commit_changes = 48
            mortal: Any = Interrupted(store, "commit", before=once(commits + 1, die))
            with contextlib.suppress(Dies):
                await write(mortal, move("r/a", target), hierarchy=BY_TREE, timing=LEASELESS)
            states.add((await recent_moves(store, ReadUsage()))[0].state)
            async for one in Repair(Check(store, {"category": BY_TREE}, AT), SOON).run():
                assert one.is_fixed
            assert (await recent_moves(store, ReadUsage()))[0].state is MoveState.DONE
            await check(store, BY_TREE)
            if mortal.calls <= commits:
                break
    assert states == {MoveState.COPYING, MoveState.SWEEPING, MoveState.DONE}


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
