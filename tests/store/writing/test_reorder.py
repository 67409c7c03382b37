"""Order of siblings: ranks, reorders that write as few nodes as possible, exports and imports."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import TooLarge
from store.model.keys import children, first_rank, siblings
from store.model.ranks import is_manual, is_valid, rank_between, ranks_between
from store.model.records import Put
from store.transfer.export import count
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position, Side
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.reordering import reorder
from tests.selection import examples
from tests.store.model.test_undefined_values import exported, taken
from tests.store.writing.test_writer import plant, write


@given(
    st.lists(st.integers(0, 1_000_000), max_size=60), st.lists(st.sampled_from(["a", "ab", "b", "V", "~"]), unique=True)
)
def test_there_is_a_rank_between_any_two_siblings(places: list[int], keys: list[str]) -> None:
    ranks = sorted(first_rank("CITY", key) for key in keys)
    for number in places:
        at = number % (len(ranks) + 1)
        lower, upper = (ranks[at - 1] if at else None), (ranks[at] if at < len(ranks) else None)
        made = rank_between("CITY", lower, upper)
        assert made is not None
        assert is_manual(made)
        assert (lower or "CITY#") < made < (upper or "CITY$")
        ranks.insert(at, made)
    assert ranks == sorted(set(ranks))


@given(
    st.integers(0, 300),
    st.sampled_from([None, "CITY##V", "CITY#a#", "CITY##0001"]),
    st.sampled_from([None, "CITY#b#", "CITY#a#01"]),
)
def test_ranks_between_two_are_in_order_with_room_between_them(
    count: int, lower: str | None, upper: str | None
) -> None:
    ranks = ranks_between("CITY", lower, upper, count)
    assert ranks is not None
    assert len(ranks) == count
    assert all(map(is_valid, ranks))
    ordered = [*([lower] if lower else []), *ranks, *([upper] if upper else [])]
    assert ordered == sorted(set(ordered))
    assert all(rank_between("CITY", one, other) for one, other in pairwise(ordered))


@pytest.mark.parametrize("first", [True, False])
def test_thousands_of_ranks_at_an_end_stay_short(first: bool) -> None:
    rank = "CITY#Omaha#"
    for _ in range(5_000):
        made = rank_between("CITY", None, rank) if first else rank_between("CITY", rank, None)
        assert made is not None
        assert (made < rank) if first else (made > rank)
        rank = made
    assert len(rank) < len("CITY#Omaha#") + 10


def test_two_ranks_at_one_place_differ() -> None:
    assert len({rank_between("CITY", "CITY#a#", "CITY#b#") for _ in range(100)}) > 90


async def test_a_reorder_reads_as_much_of_a_deep_node_and_writes_the_moved_node_alone(store: Store) -> None:
    await plant(store, *["/".join("rabcde"[:depth]) for depth in range(1, 7)], "r/n", "r/a/b/c/d/n")
    units = []
    for path in (("r", "n"), ("r", "a", "b", "c", "d", "n")):
        edit, reads = reorder(CATEGORY, path, Side.FIRST), ReadUsage()
        plan = (await Writer(store).write(edit, ReadUsage(), EditOptions(dry_run=True))).dry_run
        await Writer(store).write(edit, reads)
        units.append(reads.units)
        assert plan is not None
        assert plan.nodes == 1
    assert units[0] == units[1]


async def in_order(store: Store, count: int) -> list[str]:
    """The keys of the children of `r`, as the index lists them."""
    found = await store.nodes(children("category#r", "#"), ReadUsage())
    assert len(found) == count
    return [one.path[-1] for one in found]


async def cramped(store: Store, parent: str, keys: list[str]) -> None:
    """Plant siblings whose ranks are nested, as halving one gap again and again leaves them."""
    await plant(store, *([parent] if parent else []), *[f"{parent}/{key}".strip("/") for key in keys])
    nodes = await invariants.nodes(store, "category")
    for start in range(0, len(keys), 50):
        changes = []
        for number, key in enumerate(keys[start : start + 50], start):
            rank = "CATEGORY##" + "0" * (1013 - number // 6) + "17EMUc"[number % 6]
            node = nodes[f"category#{parent}#{key}#" if parent else f"category#{key}#"]
            changes.append(Put({**node, "rank": rank}))
        await store.commit(changes)


BOTH = [pytest.param(one, marks=pytest.mark.both_stores if one is Side.AFTER else ()) for one in Side]


@pytest.mark.parametrize("side", BOTH)
async def test_there_is_always_room_among_siblings_whose_ranks_are_all_nearly_full(store: Store, side: Side) -> None:
    keys = [f"n{n:03}" for n in range(150)]
    await cramped(store, "r", keys)
    assert await in_order(store, 150) == keys
    beside = ("r", "n001") if side in (Side.BEFORE, Side.AFTER) else None
    for number in range(149, 149 - examples(10, 100), -1):
        await write(store, reorder(CATEGORY, ("r", key := f"n{number:03}"), side, beside))
        keys.remove(key)
        where = {Side.FIRST: 0, Side.LAST: len(keys)}.get(side)
        where = keys.index("n001") + (side is Side.AFTER) if where is None else where
        keys.insert(where, key)
    assert await in_order(store, 150) == keys
    await invariants.check(store)


async def test_there_is_room_among_many_roots(store: Store) -> None:
    keys = [f"n{n:02}" for n in range(60)]
    await cramped(store, "", keys)
    await write(store, reorder(CATEGORY, ("n59",), Side.BEFORE, ("n20",)))
    assert await keys_of(store, "category") == [*keys[:20], "n59", *keys[20:59]]
    await invariants.check(store)


async def test_neighbours_with_keys_as_long_as_they_may_be_are_ranked_or_it_is_said(store: Store) -> None:
    keys = [f"{n:02}" + "k" * 1011 for n in range(90)]
    await plant(store, "r", *[f"r/{key}" for key in keys])
    edit = reorder(CATEGORY, ("r", keys[80]), Side.BEFORE, ("r", keys[45]))
    if store.max_commit_changes is None:
        await write(store, edit)
        assert await in_order(store, 90) == [*keys[:45], keys[80], *keys[45:80], *keys[81:]]
        await invariants.check(store)
    else:
        with pytest.raises(TooLarge, match="the keys or ranks of its siblings are too long and too close"):
            await write(store, edit)


async def test_a_move_beside_the_former_parent_ranks_that_anew_and_counts_it(store: Store) -> None:
    await cramped(store, "r", [f"n{n}" for n in range(6)])
    await plant(store, "r/n3/x", "r/n3/x/y")
    place = Position(Side.AFTER, ("r", "n3"))
    made = await Writer(store).write(Move(CATEGORY, ("r", "n3", "x"), ("r", "z"), position=place), ReadUsage())
    assert made.record.path == ("r", "z")
    assert await in_order(store, 7) == ["n0", "n1", "n2", "n3", "z", "n4", "n5"]
    await invariants.check(store)


async def test_what_one_transaction_does_not_move_gets_no_position_by_the_way(store: Store) -> None:
    await plant(store, "r", "r/a", *[f"r/a/{n}" for n in range(20)], "r/b")
    store.max_commit_changes = 50
    with pytest.raises(TooLarge, match="Move it without a position") as refused:
        await write(store, Move(CATEGORY, ("r", "a"), ("r", "c"), position=Position(Side.LAST)))
    assert refused.value.field == ("position",)
    await write(store, reorder(CATEGORY, ("r", "a"), Side.LAST))
    assert await in_order(store, 2) == ["b", "a"]


async def test_a_node_that_is_the_last_after_a_deletion_of_the_same_commit_is_not_ranked_anew(store: Store) -> None:
    await plant(store, "r", "r/a", "r/b")
    writer = Writer(store)
    edits = [Delete(CATEGORY, ("r", "b"), Policy.REFUSE), reorder(CATEGORY, ("r", "a"), Side.LAST)]
    _, last = await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in edits])
    assert not is_manual(last.record.rank)


# -- exports and imports -----------------------------------------------------------------------------------------------

LINES = [{"path": path.split("/"), "level": "CATEGORY"} for path in ("a", "a/1", "a/2", "a/3", "a/4", "b", "c")]


async def reordered(store: Store, path: str, side: Side, beside: str = "") -> None:
    await write(store, reorder(CATEGORY, tuple(path.split("/")), side, tuple(beside.split("/")) if beside else None))


async def keys_of(store: Store, partition: str = "category#a#") -> list[str]:
    """The keys of siblings in their order, by the index that lists them."""
    found = await store.nodes(siblings(partition), ReadUsage())
    return [one.path[-1] for one in found]


async def arranged(store: Store, folder: Path) -> None:
    """Siblings in another order than that of their keys: 4 1 3 2, and of the roots c first."""
    await taken(store, folder / "nodes.jsonl", LINES, CATEGORY)
    await reordered(store, "a/4", Side.FIRST)
    await reordered(store, "a/2", Side.LAST)
    await reordered(store, "c", Side.FIRST)


async def test_an_export_and_an_import_keep_the_order_of_siblings_and_of_roots(store: Store, tmp_path: Path) -> None:
    await arranged(store, tmp_path)
    lines = await exported(store, CATEGORY)
    assert ["rank" in line for line in lines] == [False, False, True, False, True, False, True]
    async with opened(f"sqlite:///{tmp_path}/other.db", make=True) as other:
        assert (await taken(other, tmp_path / "again.jsonl", lines, CATEGORY)).rejections == []
        assert await keys_of(other) == await keys_of(store) == ["4", "1", "3", "2"]
        assert await keys_of(other, "category") == await keys_of(store, "category") == ["c", "a", "b"]
        assert await exported(other, CATEGORY) == lines
    await reordered(store, "a/4", Side.LAST)
    outcome = await taken(store, tmp_path / "again.jsonl", lines, CATEGORY)
    assert (outcome.written, outcome.rejections) == (0, [])
    assert await keys_of(store) == ["1", "3", "2", "4"], "nodes that are there stay where they are"


async def test_a_rank_that_a_sibling_has_is_not_given_twice(store: Store, tmp_path: Path) -> None:
    await arranged(store, tmp_path)
    taken_rank = (await exported(store, CATEGORY))[4]["rank"]
    root_rank = (await exported(store, CATEGORY))[6]["rank"]
    lines = [
        {"path": path, "level": "CATEGORY", "rank": rank}
        for path, rank in (("a/0", taken_rank), ("a/5", taken_rank), ("0", root_rank), ("d", root_rank))
    ]
    assert (await taken(store, tmp_path / "more.jsonl", lines, CATEGORY)).rejections == []  # and no rank is there twice
    assert await keys_of(store) == ["4", "0", "5", "1", "3", "2"]
    assert (await keys_of(store, "category"))[0] == "c"
    assert sorted((await keys_of(store, "category"))[1:3]) == ["0", "d"]  # trees are written side by side
    assert await count(store, CATEGORY) == len(LINES) + len(lines)


async def test_an_invalid_rank_is_rejected(store: Store, tmp_path: Path) -> None:
    ranks = ["", "1#", "#V0", "a#b#V", "#v!", "#\u00e9", 7, "#" + "V" * 1100]
    lines = [{"path": f"a/{number}", "level": "CATEGORY", "rank": rank} for number, rank in enumerate(ranks)]
    rejections = (await taken(store, tmp_path / "nodes.jsonl", [*LINES[:1], *lines], CATEGORY)).rejections
    assert [one.number for one in rejections if "is not a rank" in one.reason] == [*range(2, 2 + len(ranks))]
