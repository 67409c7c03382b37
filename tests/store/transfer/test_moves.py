"""Imports that move nodes to their paths in the file, on both stores."""

from itertools import permutations

import pytest

from store.engine import ReadUsage, Store
from store.metadata.history import ASIDE, current_key, redirect_key, redirected_id
from store.metadata.tree_version import Event
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS, id_key, node_key, path_of
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.moves import ImportMoves, scratch_copy
from store.writing.create_update import Create, Edit
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY, LOCATION
from tests.store.transfer.test_load import NEBRASKA, Told, imported, paths, reasons, record, wanted_of
from tests.store.writing import journaled

IOWA: list[Told] = [("US", "COUNTRY"), ("US/IA", "STATE"), ("US/IA/Omaha", "CITY", {"id": "5074472"})]


async def resettled(
    store: Store, told: list[Told], hierarchy: Hierarchy = LOCATION, *, prune: bool = False
) -> LoadResult:
    """The outcome of an import with moves, after which the table is as it must be."""
    wanted, outcome = wanted_of(told, hierarchy), LoadResult()
    await ImportMoves(store, Writer(store, journaled.SOON), wanted, outcome, prune=prune).run()
    await load(store, wanted, outcome, prune=prune)
    await invariants.check(store)
    return outcome


async def test_a_node_is_moved_with_all_below_it_to_below_one_that_only_the_file_has(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await resettled(store, IOWA)
    assert (outcome.moved, outcome.added, outcome.unchanged) == ({"CITY": 1}, {"STATE": 1}, 2)
    assert list(outcome.examples.values()) == [["US/IA"], ["US/NE/Omaha -> US/IA/Omaha"]]
    assert (await record(store, "US/IA/Omaha/68118/1")).attributes["square_feet"] == 921
    assert await paths(store) == [
        "US", "US/IA", "US/IA/Omaha", "US/IA/Omaha/68118", "US/IA/Omaha/68118/1", "US/NE", "US/NE/Lincoln",
    ]  # fmt: skip
    assert (await resettled(store, IOWA)).written == 0


async def test_rows_below_a_moved_node_are_compared_at_the_new_path(store: Store) -> None:
    await imported(store, NEBRASKA)
    more: list[Told] = [("US/IA/Omaha/68118/1", "STORE", {"square_feet": 7}), ("US/IA/Omaha/68118/2", "STORE")]
    outcome = await resettled(store, [*more, *IOWA], prune=True)
    assert (outcome.moved, outcome.changed, outcome.added) == ({"CITY": 1}, {"STORE": 1}, {"STATE": 1, "STORE": 1})
    assert outcome.removed == {"STATE": 1, "CITY": 1}
    assert (await record(store, "US/IA/Omaha/68118/1")).revision == 2


async def test_moves_go_to_other_trees_and_make_roots_that_are_missing(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await resettled(store, [("CA", "COUNTRY"), ("CA/Omaha", "CITY", {"id": "5074472", "name": "Om"})])
    assert (outcome.moved, outcome.added, outcome.changed) == ({"CITY": 1}, {"COUNTRY": 1}, {"CITY": 1})
    assert (await record(store, "CA/Omaha")).name == "Om"


def _chain(*keys: str) -> list[Told]:
    return [(f"r/{key}", "CATEGORY", {"id": str(number)}) for number, key in enumerate(keys)]


PLANS: dict[str, tuple[list[Told], list[Told], list[str], dict[int, str]]] = {
    "a path that another node leaves later": (
        _chain("a", "b", "c"), _chain("b", "c", "d"), ["r", "r/b", "r/c", "r/d"], {},
    ),
    "below a node that will be moved itself": (
        _chain("a", "n"),
        [("r/a", "CATEGORY"), ("r/a/n", "CATEGORY", {"id": "1"}), ("r/z", "CATEGORY", {"id": "0"})],
        ["r", "r/a", "r/a/n", "r/z"], {},
    ),
    "nodes that swap paths, and below them": (
        [*_chain("a", "b"), ("r/x", "CATEGORY", {"id": "x"})],
        [*_chain("b", "a"), ("r/b/x", "CATEGORY", {"id": "x"})],
        ["r", "r/a", "r/b", "r/b/x"], {},
    ),
    "nodes of two levels that would swap paths": (
        [*_chain("a"), ("r/b", "PRODUCT", {"id": "1"})],
        [("r/b", "PRODUCT", {"id": "0"}), ("r/a", "PRODUCT", {"id": "1"})],
        ["r", "r/a", "r/b"],
        {1: "r/b has the id 1 in the table, and 0 cannot be moved here: The node is a CATEGORY, not a PRODUCT.",
         2: "r/a is a CATEGORY in the table, not a PRODUCT."},
    ),
    "the place of a node without a row": (
        _chain("a", "b"), [("r", "CATEGORY"), ("r/b", "CATEGORY", {"id": "0"})], ["r", "r/a", "r/b"],
        {2: "r/b has the id 1 in the table, and 0 cannot be moved here: r/b is the place of another node, which stays; "
            "a row with its id 1 moves it, --prune removes it."},
    ),
    "the place of a root without a row": (
        [*_chain("a"), ("q", "CATEGORY", {"id": "1"})], [("q", "CATEGORY", {"id": "0"})], ["q", "r", "r/a"],
        {1: "q has the id 1 in the table, and 0 cannot be moved here: q is the place of another node, which stays; "
            "a row with its id 1 moves it, clade delete removes it."},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANS)
async def test_moves_are_made_in_an_order_in_which_their_paths_are_free(store: Store, what: str) -> None:
    before, told, after, expected = PLANS[what]
    await imported(store, [("r", "CATEGORY"), *before], CATEGORY)
    outcome = await resettled(store, told, CATEGORY)
    assert (reasons(outcome), await paths(store, "category")) == (expected, after)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (("US/NE/Omaha/x", "NEIGHBORHOOD"), "The id 5074472 belongs to US/NE/Omaha, and cannot be moved here: "
         "US/NE/Omaha cannot be moved below itself."),
        (("US/Omaha", "STATE"), "The id 5074472 belongs to US/NE/Omaha, and cannot be moved here: "
         "The node is a CITY, not a STATE."),
        (("US/KS/Omaha", "CITY"), "Parent US/KS is neither in the file nor in the table; --create-parents creates it."),
        (("US/NE/Lincoln", "CITY"), "US/NE/Lincoln has the id 4a7c in the table, and 5074472 cannot be moved here: "
         "US/NE/Lincoln is the place of another node, which stays; a row with its id 4a7c moves it, clade delete "
         "removes it."),
    ],
)  # fmt: skip
async def test_a_move_that_is_not_possible_is_rejected_with_its_reason(
    store: Store, told: tuple[str, str], reason: str
) -> None:
    await imported(store, [("US/NE/Lincoln", "CITY", {"id": "4a7c"}), *NEBRASKA])
    before = await invariants.all_items(store)
    outcome = await resettled(store, [(*told, {"id": "5074472"})])
    assert reasons(outcome) == {1: reason}
    assert (outcome.written, await invariants.all_items(store)) == (0, before)


@pytest.mark.parametrize("key", ["Boots", "Trainers", "Sale/Trainers"])
async def test_a_former_path_leads_to_its_node_whatever_comes_along_there(store: Store, key: str) -> None:
    before: list[Told] = [("Sale", "CATEGORY", {"id": "sale"}), ("Sale/Shoes", "CATEGORY", {"id": "shoes"})]
    more: list[Told] = [("New", "CATEGORY", {"id": "new"}), ("New/Shoes", "CATEGORY", {"id": "boots"})]
    await imported(store, [*before, *more], CATEGORY)
    for path, target in (("Sale/Shoes", "Shoes"), ("Sale", "Old")):
        await Writer(store).write(journaled.move(path, target), ReadUsage())
    outcome = await resettled(
        store, [("Sale", "CATEGORY", {"id": "new"}), (key, "CATEGORY", {"id": "boots"})], CATEGORY
    )
    assert outcome.moved == {"CATEGORY": 2}
    keys = [redirect_key(node_key("category", parse_path(path))) for path in ("Sale/Shoes", "New/Shoes")]
    led = [redirected_id(item) for item in await store.get(keys, ReadUsage(), strong=True)]
    assert led == ["category:shoes", "category:boots"]


@pytest.mark.parametrize("limit", [None, journaled.SMALL])
@pytest.mark.parametrize("keys", ["ab", "ba"])
async def test_followers_of_trees_whose_roots_swap_learn_who_left_and_who_came(
    store: Store, keys: str, limit: int | None
) -> None:
    one, other = keys
    below: list[Told] = [(f"{key}/{n}", "CATEGORY") for key in keys for n in range(9)]
    await imported(store, [(one, "CATEGORY", {"id": "1"}), (other, "CATEGORY", {"id": "2"}), *below], CATEGORY)
    if limit is not None:
        store.max_commit_changes = limit
    told: list[Told] = [(other, "CATEGORY", {"id": "1"}), (one, "CATEGORY", {"id": "2"})]
    outcome = await resettled(store, told, CATEGORY)
    assert (outcome.moved, outcome.rejections) == ({"CATEGORY": 2}, [])
    assert outcome.examples[Event.MOVED] in (
        [f"{one} -> {other}", f"{other} -> {one}"],
        [f"{other} -> {one}", f"{one} -> {other}"],
    )
    for partition in (f"category#{one}", f"category#{other}", "category"):
        items = [item for item in await invariants.all_items(store) if item["pk"] == partition and item["sk"] > "!0"]
        log = [entry for item in items if item["sk"][0] == "!" for entry in item.get("changes", ())]
        moved = sorted((entry[2], *entry[5:7]) for entry in log if entry[0] == "MOVED")
        found = [("category:1", one, other), ("category:2", other, one)]
        assert [*dict.fromkeys(moved)] == found


class Disturbed(Writer):
    """A writer beside which another one, when the first node is put aside, makes the tree below a node as deep as can
    be, so that the node cannot be moved further down any more.
    """

    async def write(self, edit: Edit, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        result = await super().write(edit, reads, options)
        if isinstance(edit, Move) and ASIDE in edit.target[-1]:
            (item,) = await self._store.get([id_key("category:0")], reads, strong=True)
            path = path_of(*(current_key(item) or ("", "")))
            for _ in range(MAX_SEGMENTS - len(path)):
                path = (*path, "x")
                await super().write(Create(CATEGORY, path, "CATEGORY", "x", {}), reads)
        return result


@pytest.mark.parametrize("keys", [*permutations("abc")])
async def test_a_circle_that_another_writer_interrupts_is_undone(store: Store, keys: tuple[str, str, str]) -> None:
    a, b, c = keys
    before: list[Told] = [(f"r/{a}", "CATEGORY", {"id": "0"}), (f"r/n/{b}", "CATEGORY", {"id": "1"})]
    above: list[Told] = [("r", "CATEGORY"), ("r/n", "CATEGORY")]
    await imported(store, [*above, *before, (f"r/{c}", "CATEGORY", {"id": "2"})], CATEGORY)
    led = {"0": f"r/{a}", "1": f"r/n/{b}", "2": f"r/{c}"}
    ends = zip(led, (led["1"], led["2"], led["0"]), strict=True)
    told: list[Told] = [(path, "CATEGORY", {"id": node_id}) for node_id, path in ends]
    wanted, outcome = wanted_of([*above, *told], CATEGORY), LoadResult()
    await ImportMoves(store, Disturbed(store, journaled.SOON), wanted, outcome).run()
    await invariants.check(store)
    assert {node_id: (await record(store, path, "category")).id for node_id, path in led.items()} == {
        node_id: f"category:{node_id}" for node_id in led
    }
    assert wanted.unmoved.keys() == led.keys()
    assert outcome.moved == {}
    assert not any(ASIDE in path for path in await paths(store, "category"))


async def test_a_large_move_has_ended_before_its_tree_is_compared(store: Store) -> None:
    await journaled.plant(store)
    (item,) = [item for item in (await invariants.nodes(store, "category")).values() if item["sk"] == "#a#"]
    told: list[Told] = [("o/new", "CATEGORY"), ("o/new/b", "CATEGORY", {"id": str(item["id"]).partition(":")[2]})]
    outcome = await resettled(store, told, CATEGORY)
    assert (outcome.moved, outcome.added, outcome.rejections) == ({"CATEGORY": 1}, {"CATEGORY": 1}, [])
    assert (await record(store, "o/new/b", "category")).name == "b"
    await journaled.has_ended(store)


async def test_an_interrupted_move_of_an_import_is_finished_before_its_tree_is_compared(store: Store) -> None:
    await journaled.plant(store)
    edit = Move(CATEGORY, parse_path("r/a"), parse_path("o/a"))
    assert await journaled.died(store, edit, 2)
    await journaled.lapse(store)
    told: list[Told] = [("o/a", "CATEGORY", {"id": (await journaled.only_move(store)).top_id.partition(":")[2]})]
    assert (await resettled(store, told, CATEGORY)).moved == {"CATEGORY": 1}
    assert journaled.at("r/a", "o/a") <= await journaled.paths(store)
    await journaled.has_ended(store)


async def test_a_dry_run_of_moves_leaves_the_table_alone(store: Store) -> None:
    await imported(store, NEBRASKA)
    before = await invariants.all_items(store)
    wanted, outcome = wanted_of([*IOWA, ("US/IA/Omaha/68118", "POSTAL_CODE"), ("US/IA/x", "CITY")]), LoadResult()
    async with scratch_copy(store, wanted) as copy:
        await ImportMoves(copy, Writer(copy), wanted, outcome).run()
        await load(copy, wanted, outcome, dry_run=True)
    assert (outcome.moved, outcome.added, outcome.rejections) == ({"CITY": 1}, {"STATE": 1, "CITY": 1}, [])
    assert await invariants.all_items(store) == before
