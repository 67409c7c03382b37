"""Trees by parent ids, imported again and again, on both stores."""

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.connect import open_store
from store.engine.protocol import Store
from store.model.records import Record
from store.transfer.created_parents import levels_between
from store.transfer.load import LoadResult, load
from store.transfer.move_existing import ImportMoves
from store.transfer.parent_ids import parent_tree
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY, LOCATION
from tests.selection import examples

Tree = Mapping[str, tuple[str, str]]


async def imported(store: Store, tree: Tree, chance: Random | None = None, *, prune: bool = False) -> LoadResult:
    """The outcome of an import of ids with their parents and names, in any order."""
    rows = [
        Row(number, [own], [Part("CATEGORY", name, own)], parent=parent, key=name)
        for number, (own, (parent, name)) in enumerate(tree.items(), start=1)
    ]
    if chance is not None:
        chance.shuffle(rows)
    plan, outcome = ImportPlan(CATEGORY), LoadResult()
    with parent_tree(CATEGORY, create=False, follows_keys=False) as found:
        for row in rows:
            found.add(row)
        await found.place(store)
        for placed in found.rows():
            plan.take(placed)
        if found.moving:
            await ImportMoves(store, Writer(store), plan, outcome, found.moving).run()
        await load(store, plan, outcome, prune=prune)
    return outcome


async def nodes(store: Store) -> dict[str, Record]:
    """The stored nodes by id."""
    records = [Record.of(item) for item in (await invariants.nodes(store, "category")).values()]
    return {record.id.partition(":")[2]: record for record in records}


async def test_nodes_that_swap_places_keep_their_keys(store: Store) -> None:
    tree = {"p": ("", "P"), "q": ("", "Q"), "1": ("p", "x"), "2": ("q", "x")}
    await imported(store, tree)
    outcome = await imported(store, {**tree, "1": ("q", "x"), "2": ("p", "x")})
    await invariants.check(store)
    assert (outcome.rejections, outcome.moved) == ([], {"CATEGORY": 2})
    assert {own: record.path for own, record in (await nodes(store)).items()} == {
        "p": ("P",), "q": ("Q",), "1": ("Q", "x"), "2": ("P", "x"),
    }  # fmt: skip
    assert (await imported(store, {**tree, "1": ("q", "x"), "2": ("p", "x")})).written == 0


async def test_a_node_whose_new_parent_has_the_path_of_the_old_one_is_moved(store: Store) -> None:
    await imported(store, {"1": ("", "A"), "4": ("1", "A"), "p": ("", "P"), "2": ("p", "A")})
    tree = {"1": ("p", "A"), "4": ("2", "A"), "p": ("", "P"), "2": ("", "A")}
    assert (await imported(store, tree)).rejections == []
    assert (await imported(store, tree)).written == 0
    assert {own: record.path for own, record in (await nodes(store)).items()} == {
        "1": ("P", "A"), "2": ("A",), "4": ("A", "A"), "p": ("P",),
    }  # fmt: skip


@st.composite
def _trees(draw: st.DrawFn) -> dict[str, tuple[str, str]]:
    """Ids with their parents and names, which many nodes share."""
    found: dict[str, tuple[str, str]] = {}
    for own in draw(st.lists(st.sampled_from("123456789"), min_size=1, max_size=9, unique=True)):
        found[own] = draw(st.sampled_from(["", *found])), draw(st.sampled_from("AB"))
    return found


@settings(max_examples=examples(15, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_trees(), min_size=2, max_size=4), st.randoms(use_true_random=False))
async def test_a_nightly_file_keeps_a_tree(trees: Sequence[Tree], chance: Random) -> None:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        before: dict[str, Record] = {}
        for tree in trees:
            outcome = await imported(store, tree, chance)
            assert outcome.rejections == []
            await invariants.check(store)
            after = await nodes(store)
            ids = {record.path: own for own, record in after.items()}
            parents = {own: ids.get(record.path[:-1], "") for own, record in after.items()}
            assert {own: (parents[own], after[own].name) for own in tree} == tree
            assert after.keys() == before.keys() | tree.keys(), "nothing is removed"
            old_ids = {record.path: own for own, record in before.items()}
            for own, record in before.items():
                if old_ids.get(record.path[:-1], "") == parents[own]:
                    assert after[own].path[-1] == record.path[-1], "keys stay"
            assert (await imported(store, tree, chance)).written == 0
            before = after


def test_levels_of_missing_parents_are_found_where_they_are_clear() -> None:
    assert levels_between(CATEGORY, None, "PRODUCT", 2) == ("CATEGORY", "CATEGORY")
    assert levels_between(CATEGORY, "CATEGORY", "VARIANT", 1) == ("PRODUCT",)
    assert levels_between(LOCATION, None, "CITY", 1) == ("COUNTRY",)
    assert levels_between(LOCATION, None, "CITY", 2) == (), "a region or a state"
    assert levels_between(LOCATION, None, "COUNTRY", 1) == (), "it is a root"
