"""Nodes of a plan: those of trees without new rows are packed, and a plan with packed trees is like any other."""

import random

import pytest

from store.transfer import planned_nodes
from store.transfer.rows import ImportPlan, Part, Row
from tests.hierarchies import CATEGORY

TREES, CHILDREN = 12, 30


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_nodes, "LEAST_PACKED", 5)
    monkeypatch.setattr(planned_nodes, "PART_NODES", 7)
    monkeypatch.setattr(planned_nodes, "MAX_UNPACKED", 2 * CHILDREN)


def rows_of(tree: int) -> list[tuple[list[str], Part]]:
    above = ([f"t{tree}"], Part("CATEGORY", f"Tree {tree}"))
    notes = [{"note": f"note {child}" if child % 3 else None} for child in range(CHILDREN)]
    ids = [f"id-{tree}-{child}" if child % 2 else None for child in range(CHILDREN)]
    below = [
        ([f"t{tree}", f"c{child}"], Part("CATEGORY", None, node_id, note))
        for child, (node_id, note) in enumerate(zip(ids, notes, strict=True))
    ]
    return [above, *below]


def planned(rows: list[tuple[list[str], Part]]) -> ImportPlan:
    plan = ImportPlan(CATEGORY)
    for number, (path, part) in enumerate(rows, start=1):
        plan.take(Row(number, path, [part]))
    return plan


def packed(plan: ImportPlan) -> int:
    return sum(bool(tree.packed) for tree in plan.trees.values())


def contents(plan: ImportPlan) -> dict[str, list[tuple[object, ...]]]:
    return {
        pk: [(node.key, node.level, node.name, node.id, node.values, node.rank) for node in tree.nodes.values()]
        for pk, tree in plan.trees.items()
    }


def test_trees_without_new_rows_are_packed_and_have_the_same_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for tree in range(TREES) for row in rows_of(tree)]
    plan = planned(rows)
    assert packed(plan) == TREES - 2  # one is current, and one more is within the limit
    assert [tree.size for tree in plan.trees.values()] == [CHILDREN + 1] * TREES
    monkeypatch.setattr(planned_nodes, "MAX_UNPACKED", 10**9)
    whole = planned(rows)
    assert packed(whole) == 0
    assert contents(plan) == contents(whole)
    assert plan.nodes == whole.nodes == TREES * (CHILDREN + 1)


def test_rows_that_come_back_to_packed_trees_are_merged_and_checked() -> None:
    rows = [row for tree in range(TREES) for row in rows_of(tree)]
    plan = planned(
        [
            *rows,
            (["t0", "c4"], Part("CATEGORY", None, None, {"note": "another"})),
            (["t1", "c0", "d"], Part("CATEGORY")),
        ]
    )
    assert [(one.number, "has the note" in one.reason) for one in plan.rejections] == [(len(rows) + 1, True)]
    assert plan.trees["category#t0"].rejected == {"#c4#": len(rows) + 1}
    assert plan.trees["category#t1"].nodes["#c0#d#"].number == len(rows) + 2
    assert plan.nodes == TREES * (CHILDREN + 1) + 1


def test_rows_that_jump_between_trees_end_the_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_nodes, "MAX_REPACKED", 20 * CHILDREN)
    rows = [row for tree in range(TREES) for row in rows_of(tree)]
    random.Random(7).shuffle(rows)  # noqa: S311 - no secret
    plan = planned(rows)
    assert packed(plan) <= 2  # trees that had their last row before
    assert plan.nodes == TREES * (CHILDREN + 1)


def test_an_id_of_a_packed_node_is_refused_for_another_one_and_accepted_for_the_same() -> None:
    rows = [row for tree in range(TREES) for row in rows_of(tree)]
    again = [(["t0", "c1"], Part("CATEGORY", None, "id-0-1")), (["t0", "c2"], Part("CATEGORY", None, "id-0-1"))]
    plan = planned([*rows, *again])
    reason = "The id id-0-1 is that of another node already, in row 3."
    assert plan.rejections == [(len(rows) + 2, reason, False)]
