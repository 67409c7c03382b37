"""Edits that give a node another position among its siblings, and leave it where it is."""

from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.writing.move_delete import Move
from store.writing.positions import Position, Side


def reorder(hierarchy: Hierarchy, path: Path, side: Side, beside: Path | None = None) -> Move:
    return Move(hierarchy, path, path, position=Position(side, beside))
