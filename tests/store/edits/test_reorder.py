"""Reorders: a rank between any two siblings, by writing as few nodes as possible."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.edits.reorder import Reorder, Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import TooLarge
from store.model.items import Put
from store.model.keys import first_rank
from store.model.ranges import children, siblings
from store.model.ranks import is_manual, is_valid, rank_between, ranks_between
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.selection import examples
from tests.store.writer.test_writer import plant, write


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
    for _ in range(20_000):
        made = rank_between("CITY", None, rank) if first else rank_between("CITY", rank, None)
        assert made is not None
        assert (made < rank) if first else (made > rank)
        rank = made
    assert len(rank) < len("CITY#Omaha#") + 10


def test_two_ranks_at_one_place_differ() -> None:
    assert len({rank_between("CITY", "CITY#a#", "CITY#b#") for _ in range(100)}) > 90


async def test_a_reorder_writes_the_moved_node_alone(store: Store) -> None:
    await plant(store, [("r",), *[("r", f"n{n}") for n in range(9)]])
    plan = (
        await Writer(store).write(Reorder(CATEGORY, ("r", "n7"), Side.FIRST), ReadUsage(), EditOptions(dry_run=True))
    ).dry_run
    assert plan is not None
    assert plan.nodes == 1


async def in_order(store: Store, count: int) -> list[str]:
    """The keys of the children of `r`, as the index lists them."""
    found = await store.nodes(children("category#r", "#"), ReadUsage())
    assert len(found) == count
    return [one.path[-1] for one in found]


@pytest.mark.both_stores
@pytest.mark.parametrize("side", Side)
async def test_there_is_always_room_among_siblings_whose_ranks_are_all_nearly_full(store: Store, side: Side) -> None:
    keys = [f"n{n:03}" for n in range(150)]
    await plant(store, [("r",), *[("r", key) for key in keys]])
    nodes = await invariants.nodes(store, "category")
    for number, key in enumerate(keys):  # nested, as halving one gap again and again leaves them
        rank = "CATEGORY##" + "0" * (1013 - number // 6) + "17EMUc"[number % 6]
        await store.commit([Put({**nodes[f"category#r#{key}#"], "rank": rank})])
    assert await in_order(store, 150) == keys
    beside = ("r", "n001") if side in (Side.BEFORE, Side.AFTER) else None
    for number in range(149, 149 - examples(20, 100), -1):
        await write(store, Reorder(CATEGORY, ("r", key := f"n{number:03}"), side, beside))
        keys.remove(key)
        where = {Side.FIRST: 0, Side.LAST: len(keys)}.get(side)
        where = keys.index("n001") + (side is Side.AFTER) if where is None else where
        keys.insert(where, key)
    assert await in_order(store, 150) == keys
    await invariants.check(store)


@pytest.mark.both_stores
async def test_there_is_room_among_many_roots(store: Store) -> None:
    keys = [f"n{n:02}" for n in range(60)]
    await plant(store, [(key,) for key in keys])
    nodes = await invariants.nodes(store, "category")
    for number, key in enumerate(keys):
        rank = "CATEGORY##" + "0" * (1013 - number // 6) + "17EMUc"[number % 6]
        await store.commit([Put({**nodes[f"category#{key}#"], "rank": rank})])
    await write(store, Reorder(CATEGORY, ("n59",), Side.BEFORE, ("n20",)))
    found = await store.nodes(siblings("category"), ReadUsage())
    assert [one.path[-1] for one in found] == [*keys[:20], "n59", *keys[20:59]]
    await invariants.check(store)


async def test_neighbours_with_keys_as_long_as_they_may_be_are_ranked_or_it_is_said(store: Store) -> None:
    keys = [f"{n:02}" + "k" * 1011 for n in range(90)]
    await plant(store, [("r",), *[("r", key) for key in keys]])
    edit = Reorder(CATEGORY, ("r", keys[80]), Side.BEFORE, ("r", keys[45]))
    if store.max_commit_changes is None:
        await write(store, edit)
        assert await in_order(store, 90) == [*keys[:45], keys[80], *keys[45:80], *keys[81:]]
        await invariants.check(store)
    else:
        with pytest.raises(TooLarge, match="the keys or ranks of its siblings are too long and too close"):
            await write(store, edit)
