"""Candidates of a search: the search items that match, in the order of the result, and the proof that none is missing.

A node that a search should return has an item in each range that is read for the text: by text in the table, or by
weight in `by_parent`. If a range was read to its end, nothing of it is missing. If it was read up to a limit, all
further items come later in its order, which bounds the rank of missing nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resolvers.search.scope import Scope
from store.model.records import Record
from store.search.folding import SearchText
from store.search.word_items import WordItem, Words

LAST = "\U0010ffff"


class Place(NamedTuple):
    """The place of a node in the result: by match (0 to 2), weight (encoded), depth, folded name and id."""

    match: int
    weight: str
    depth: int
    name: str = ""
    id: str = ""


class Candidate(NamedTuple):
    place: Place
    item: WordItem


@dataclass
class ItemRange:
    """The items that were read of a range: those in the scope, and the last one wherever it is.

    `is_whole` where it was read to its end.
    """

    items: Sequence[WordItem]
    last: WordItem | None
    is_whole: bool


@dataclass(frozen=True)
class Matching:
    """What a node has to be like: the text, the levels and the languages of the names that are searched."""

    text: SearchText
    levels: frozenset[str] | None = None
    languages: tuple[str, ...] | None = None

    def match(self, level: str, words: Words) -> int | None:
        if self.levels is not None and level not in self.levels:
            return None
        return words.match(self.text, None if self.languages is None else list(self.languages))

    def place(self, record: Record, words: Words, weight: str) -> Place | None:
        """The place of a node of this weight as it is now, None where it does not match."""
        match = self.match(record.level, words)
        if match is None:
            return None
        return Place(match, weight, record.depth, words.names.get("", ""), record.id)


def candidates(matching: Matching, scope: Scope, ranges: Sequence[ItemRange]) -> list[Candidate]:
    """The matching items of these ranges in the order of the result, one for each node."""
    found: dict[str, Candidate] = {}
    for item in (item for one in ranges for item in one.items):
        if item.id in found:
            continue
        match = matching.match(item.level, item.words)
        if match is not None:
            depth = item.depth if scope.moves is None else scope.moves.depth(item.line)
            found[item.id] = Candidate(Place(match, item.weight, depth, item.name, item.id), item)
    return sorted(found.values(), key=lambda one: one.place)


def is_proven(
    found: Sequence[Candidate], size: int, text: SearchText, by_text: ItemRange, by_weight: ItemRange | None, rise: int
) -> bool:
    """Whether no node is missing among the first `size` candidates for a text of one word.

    Nodes may be less deep than their items say by `rise`.
    """
    if by_text.is_whole or (by_weight is not None and by_weight.is_whole):
        return True
    if by_weight is None or len(found) < size or by_text.last is None or by_weight.last is None:
        return False
    last = found[size - 1].place
    return all(last <= bound for bound in _bounds(text, by_text.last, by_weight.last, rise))


def _bounds(text: SearchText, by_text: WordItem, last: WordItem, rise: int) -> list[Place]:
    """The least places of nodes that were not read: with the text as their name, with a name that begins so, others.

    `by_text` is the last item that was read in the order of the texts, `last` that in the order of weights.
    """
    # Without a change of depths, the order of the range is that of the result.
    rest = (last.name, last.id) if rise == 0 else ("", "")
    after = Place(0, last.weight, last.depth - rise, *rest)
    if not last.begins:  # all nodes are read whose names begin with the text
        return [after._replace(match=2)]
    bounds = [after._replace(match=1), Place(2, "", 0)]
    if by_text.sort < f"{text.folded}#0{LAST}":
        bounds.append(max(after, Place(0, by_text.weight, -1)))
    return bounds
