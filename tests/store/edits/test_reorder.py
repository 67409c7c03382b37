"""Reorders: a rank between any two siblings, by writing as few nodes as possible."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from store.edits.sibling_order import Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Put
from store.model.keys import first_rank
from store.model.ranks import evenly_spaced_ranks, is_manual, rank_between
from store.writer.writer import EditOptions, Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.reordering import reorder
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


@given(st.integers(0, 5_000))
def test_new_ranks_are_in_order_with_room_between_them(count: int) -> None:
    ranks = list(evenly_spaced_ranks("CITY", count))
    assert len(ranks) == count
    assert ranks == sorted(set(ranks))
    assert all(map(is_manual, ranks))
    assert all(rank_between("CITY", one, other) for one, other in pairwise(ranks))


async def test_all_siblings_get_new_ranks_where_no_key_fits_between_two(store: Store) -> None:
    await plant(store, [("r",), ("r", "a"), ("r", "b"), ("r", "c")])
    nodes = await invariants.nodes(store, "category")
    for key, last in (("a", "V"), ("b", "W")):
        rank = "CATEGORY##" + "V" * 1013 + last
        await store.commit([Put({**nodes[f"category#r#{key}#"], "rank": rank})])
    await write(store, reorder(CATEGORY, ("r", "c"), Side.AFTER, ("r", "a")))
    nodes = await invariants.nodes(store, "category")
    ranked = sorted((item["rank"], item["sk"]) for item in nodes.values() if item["sk"] != "#")
    assert [sk for _, sk in ranked] == ["#a#", "#c#", "#b#"]
    assert max(len(rank) for rank, _ in ranked) < 20
    await invariants.check(store)


async def test_a_reorder_writes_the_moved_node_alone(store: Store) -> None:
    await plant(store, [("r",), *[("r", f"n{n}") for n in range(9)]])
    plan = (
        await Writer(store).write(reorder(CATEGORY, ("r", "n7"), Side.FIRST), ReadUsage(), EditOptions(dry_run=True))
    ).dry_run
    assert plan is not None
    assert plan.nodes == 1
