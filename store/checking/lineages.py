"""Lineages of search items: which of them, and what else items have from before moves of ancestors, are still right."""

from typing import cast

from store.model.items import Item
from store.model.keys import MAX_SEGMENTS
from store.search.cell_items import CellItem
from store.search.lineage import STEP, Moves, id_hash, steps
from store.search.word_items import WordItem


class PresentLineages:
    """What moves make of lineages that were written before them."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self._below: dict[str, set[str]] = {}

    def lead(self, former: str, present: str) -> bool:
        """Whether a node with a lineage that was written before is found by its present one, and at its depth."""
        if former == present:
            return True
        own, written = steps(present), set(steps(former[:-STEP]))
        if former[-STEP:] != present[-STEP:] or self.moves.depth(former) != len(own) - 1:
            return False
        return all(not written.isdisjoint(self._hashes_below(above)) for above in own[:-1])

    def _hashes_below(self, above: str) -> set[str]:
        if above not in self._below:
            self._below[above] = self.moves.below({above})
        return self._below[above]


def is_only_outdated(found: Item, item: Item, lineages: PresentLineages | None) -> bool:
    """Whether an item is right but for what moves of its node's ancestors leave as it was."""
    if found.keys() != item.keys() or found.get("parent") != item.get("parent"):
        return False
    line, present = found["line"], item["line"]
    if not (isinstance(line, str) and isinstance(present, str)):
        return False
    if not (_same_words(found, item) if "rank" in item else _same_place(found, item)):
        return False
    return line == present or (lineages is not None and lineages.lead(line, present))


def _same_words(found: Item, item: Item) -> bool:
    one, other = WordItem.of("", found), WordItem.of("", item)
    if one is None or other is None:
        return False
    return one._replace(key=other.key, line=other.line, depth=other.depth, rank=other.rank) == other


def _same_place(found: Item, item: Item) -> bool:
    one, other = CellItem.of("", found), CellItem.of("", item)
    return one is not None and other is not None and one._replace(key=other.key, line=other.line) == other


def is_moved_node(item: Item) -> bool:
    """Whether the item of a moved node has valid attributes."""
    line, deepest, left = item.get("line"), item.get("deepest"), item.get("left")
    return (
        isinstance(line, str)
        and line[-STEP:] == id_hash(cast(str, item["sk"]))
        and len(line) % STEP == 0
        and isinstance(deepest, int)
        and 0 <= deepest < MAX_SEGMENTS
        and isinstance(left, list)
        and all(isinstance(root, str) and len(root) == STEP for root in left)
    )
