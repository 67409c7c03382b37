"""Imports that move nodes to their paths in the file, on both stores."""

from itertools import permutations

import pytest

from store.engine import ReadUsage, Store
from store.metadata.history import ASIDE, current_key
from store.metadata.tree_version import Event
from store.model.keys import MAX_SEGMENTS, id_key, path_of
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.moves import ImportMoves
from store.writing.create_update import Create
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.transfer.test_load import Told, imported, paths, reasons, record, wanted_of
from tests.store.writing import journaled


async def resettled(store: Store, told: list[Told]) -> LoadResult:
    """The outcome of an import with moves, after which the table is as it must be."""
    wanted, outcome = wanted_of(told, CATEGORY), LoadResult()
    await ImportMoves(store, Writer(store, journaled.SOON), wanted, outcome).run()
    await load(store, wanted, outcome)
    await invariants.check(store)
    return outcome


STORED: list[Told] = [
    ("r", "CATEGORY"), ("r/a", "CATEGORY", {"id": "0"}), ("r/b", "CATEGORY", {"id": "1"}),
    ("r/p", "PRODUCT", {"id": "2"}), ("q", "CATEGORY", {"id": "3"}),
]  # fmt: skip
HELD = "which stays; a row with its id"
IMPOSSIBLE: dict[str, tuple[list[Told], dict[int, str]]] = {
    "nodes of two levels would swap": (
        [("r/p", "PRODUCT", {"id": "0"}), ("r/a", "PRODUCT", {"id": "2"})],
        {1: "r/p has the id 2 in the table, and 0 cannot be moved here: The node is a CATEGORY, not a PRODUCT.",
         2: "r/a is a CATEGORY in the table, not a PRODUCT."},
    ),
    "a node without a row, which a pruning would remove": (
        [("r", "CATEGORY"), ("r/b", "CATEGORY", {"id": "0"})],
        {2: "r/b has the id 1 in the table, and 0 cannot be moved here: r/b is the place of another node, "
            f"{HELD} 1 moves it, --prune removes it."},
    ),
    "a node without a row": (
        [("r/b", "CATEGORY", {"id": "0"})],
        {1: "r/b has the id 1 in the table, and 0 cannot be moved here: r/b is the place of another node, "
            f"{HELD} 1 moves it, clade delete removes it."},
    ),
    "a root without a row": (
        [("q", "CATEGORY", {"id": "0"})],
        {1: "q has the id 3 in the table, and 0 cannot be moved here: q is the place of another node, "
            f"{HELD} 3 moves it, clade delete removes it."},
    ),
    "below itself": (
        [("r/a/x", "CATEGORY", {"id": "0"})],
        {1: "The id 0 belongs to r/a, and cannot be moved here: r/a cannot be moved below itself."},
    ),
    "another level": (
        [("r/x", "PRODUCT", {"id": "0"})],
        {1: "The id 0 belongs to r/a, and cannot be moved here: The node is a CATEGORY, not a PRODUCT."},
    ),
    "no parent": (
        [("r/x/y", "CATEGORY", {"id": "0"})],
        {1: "Parent r/x is neither in the file nor in the table; --create-parents creates it."},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", IMPOSSIBLE)
async def test_a_move_that_is_not_possible_is_rejected_with_its_reason(store: Store, what: str) -> None:
    told, expected = IMPOSSIBLE[what]
    await imported(store, STORED, CATEGORY)
    before = await invariants.all_items(store)
    outcome = await resettled(store, told)
    assert (reasons(outcome), outcome.written, await invariants.all_items(store)) == (expected, 0, before)


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
    outcome = await resettled(store, told)
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


async def test_an_interrupted_move_of_an_import_is_finished_before_its_tree_is_compared(store: Store) -> None:
    await journaled.plant(store)
    edit = Move(CATEGORY, parse_path("r/a"), parse_path("o/a"))
    assert await journaled.died(store, edit, 2)
    await journaled.lapse(store)
    told: list[Told] = [("o/a", "CATEGORY", {"id": (await journaled.only_move(store)).top_id.partition(":")[2]})]
    assert (await resettled(store, told)).moved == {"CATEGORY": 1}
    assert journaled.at("r/a", "o/a") <= await journaled.paths(store)
    await journaled.has_ended(store)
