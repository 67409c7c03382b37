"""Lineages of search items: whether the lineage, key and depth in an item are still valid after moves of ancestors."""

from typing import cast

from store.model.items import Item
from store.model.keys import MAX_SEGMENTS
from store.search.cell_items import CellItem
from store.search.lineage import STEP, Moves, id_hash
from store.search.word_items import WordItem


def is_only_outdated(found: Item, item: Item, moves: Moves | None) -> bool:
    """Whether an item is right but for what moves of its node's ancestors leave as it was."""
    if found.keys() != item.keys() or found.get("parent") != item.get("parent"):
        return False
    line, present = found["line"], item["line"]
    if not (isinstance(line, str) and isinstance(present, str)):
        return False
    if not (_same_words(found, item) if "rank" in item else _same_place(found, item)):
        return False
    return line == present or (moves is not None and moves.present(line) == present)


def _same_words(found: Item, item: Item) -> bool:
    one, other = WordItem.of("", found), WordItem.of("", item)
    if one is None or other is None:
        return False
    return one._replace(at=other.at, line=other.line, depth=other.depth, rank=other.rank) == other


def _same_place(found: Item, item: Item) -> bool:
    one, other = CellItem.of("", found), CellItem.of("", item)
    return one is not None and other is not None and one._replace(key=other.key, line=other.line) == other


def is_moved_node(item: Item) -> bool:
    """Whether the item of a moved node has valid attributes."""
    line, deepest = item.get("line"), item.get("deepest")
    return (
        isinstance(line, str)
        and line[-STEP:] == id_hash(cast(str, item["sk"]))
        and len(line) % STEP == 0
        and isinstance(deepest, int)
        and 0 <= deepest < MAX_SEGMENTS
    )
