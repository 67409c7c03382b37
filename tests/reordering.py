"""Reordering as an edit: a move to another position at the same place."""

from store.edits.move import Move
from store.edits.sibling_order import Position, Side
from store.model.hierarchy import Hierarchy
from store.model.keys import Path


def reorder(
    hierarchy: Hierarchy, path: Path, side: Side, beside: Path | None = None, expected: int | None = None,
    settle_seconds: float = 0.0,
) -> Move:  # fmt: skip
    """The edit that gives a node a position among its siblings."""
    return Move(hierarchy, path, path, expected, Position(side, beside, settle_seconds))
