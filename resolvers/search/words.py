"""Search: the nodes of a hierarchy with words that begin like those of a text, the best matches first.

| read | index | key condition | limit |
| --- | --- | --- | --- |
| by text | table | `pk = "words/location#o" AND begins_with(sk, "oma")`, and one for each further word | some hundred |
| by weight | `by_parent` | `parent = "words/location#oma"` | some ten |
| more by text | table | as above, after the last item, where the first items prove nothing | what is left of 50 units |
| hits | table | keys of the nodes | the hits |
| below a node | table | `begins_with(sk, :top)`, where items prove nothing and at most 2,000 nodes lie there | all |

So a text of one word takes three requests in two rounds, each further word one request more, and where more items are
needed it is one more request in a third round. All is read eventually consistent, the hits strongly while a move is
running; what does not match any more is left out.

A result is `complete` where it is proven that no other node belongs among its hits. A node that a search should return
has an item in each range that is read for the text. If a range was read to its end, nothing of it is missing. If it was
read up to a limit, all further items come later in its order, which bounds the rank of missing nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resolvers.search.finder import Arguments, Finder, FoundPage, Reading, Scope, Selected, are_small
from resolvers.session.request import Request
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS, KeyRange
from store.model.names import lookup
from store.model.records import Item, Record
from store.search.marker import Kind, asked
from store.search.words import SearchText, WordItem, Words, by_text, by_weight, is_group, weight_of

MAX_UNITS = 50.0  # for items, beside the units of hits
ITEMS_A_UNIT = 35  # of some 220 bytes, read eventually consistent
MAX_ITEMS = 1_750  # where no more are read afterwards

_LAST = "\U0010ffff"


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
class SearchArguments(Arguments):
    """The arguments of a search. Raises BadInput."""

    text: SearchText
    languages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup((), self.languages or ())  # here, since whether names are compared depends on what is found

    def match(self, level: str, words: Words) -> int | None:
        if self.levels is not None and level not in self.levels:
            return None
        return words.match(self.text, None if self.languages is None else list(self.languages))


async def search(
    request: Request, hierarchy: Hierarchy, asked: SearchArguments, selected: Selected = Selected()
) -> FoundPage:
    """The nodes that match, at most `first`, with what is `selected` of them; none for a text without a word.

    Raises as `Finder.find`.
    """
    if not asked.text.words:
        return FoundPage([])
    hits, complete = await _Search(request, hierarchy, asked, selected).find()
    return FoundPage([hit.record for hit in hits], complete=complete)


class _Search(Finder[SearchArguments]):
    """One search by words."""

    kind, prefix = Kind.WORDS, "words"

    def place(self, record: Record) -> Place | None:
        words = Words.of(self._hierarchy, record)
        match = self._asked.match(record.level, words)
        if match is None:
            return None
        return Place(match, weight_of(self._hierarchy, record), record.depth, words.names.get("", ""), record.id)

    def ranges(self, base: str, reading: Reading) -> Sequence[tuple[KeyRange, int]]:
        asked, text = self._asked, self._asked.text
        self._reading, self._units = reading, self._request.reads.units
        texts, self._pairs = text.ranges
        is_narrow = asked.under is not None or asked.levels is not None
        of_text, of_weight = _limits(texts, asked.first, is_narrow=is_narrow, reading=reading)
        ranges = [(by_text(base, one), of_text) for one in texts]
        self._texts = texts
        if text.is_word and is_group(text.folded):
            ranges.append((by_weight(base, text.folded), of_weight))
        self._ranges = ranges
        return ranges

    async def candidates(self, scope: Scope, read: Sequence[Sequence[Item]]) -> tuple[Sequence[WordItem], bool]:
        ranges = [self._range(scope, items, limit) for items, (_, limit) in zip(read, self._ranges, strict=True)]
        found = self._matching(scope, ranges)
        complete = self._is_proven(scope, found, ranges)
        if not complete and (more := self._items_left(scope)):
            unread = {text for pair in self._pairs for text in pair if not ranges[self._texts.index(text)].is_whole}
            place = self._texts.index(max(sorted(unread), key=len))
            (items,) = await self.items([(self._ranges[place][0].after(str(read[place][-1]["sk"])), more)])
            ranges.append(self._range(scope, items, more))
            ranges[place].is_whole = ranges[-1].is_whole
            found, complete = self._matching(scope, ranges), self._are_whole(ranges)
        return [one.item for one in found], complete

    def _matching(self, scope: Scope, ranges: Sequence[ItemRange]) -> list[Candidate]:
        """The matching items of these ranges in the order of the result, one for each node."""
        found: dict[str, Candidate] = {}
        own = {name: asked(self._hierarchy, name).words or () for name in self._hierarchy.levels}
        for item in (item for one in ranges for item in one.items):
            if item.id in found or item.level not in own:
                continue
            match = self._asked.match(item.level, item.words(own[item.level]))
            if match is not None:
                depth = item.depth if scope.moves is None else scope.moves.depth(item.line)
                found[item.id] = Candidate(Place(match, item.weight, depth, item.name, item.id), item)
        return sorted(found.values(), key=lambda one: one.place)

    def _is_proven(self, scope: Scope, found: Sequence[Candidate], read: Sequence[ItemRange]) -> bool:
        """Whether no node is missing among the first candidates."""
        asked = self._asked
        if self._are_whole(read) or any(one.is_whole for one in read[len(self._texts) :]):
            return True
        if not asked.text.is_word:
            return False
        lasts = [one.last for one in read if one.last is not None]
        if len(lasts) != 2 or len(found) < asked.first:
            return False
        rise = scope.moves.rise if scope.moves is not None else MAX_SEGMENTS - 1
        last = found[asked.first - 1].place
        return all(last <= bound for bound in _bounds(asked.text, lasts[0], lasts[1], rise))

    def _are_whole(self, read: Sequence[ItemRange]) -> bool:
        """Whether ranges were read to their ends that lead to all nodes that match."""
        whole = {text for text, one in zip(self._texts, read, strict=False) if one.is_whole}
        return any(whole.issuperset(pair) for pair in self._pairs)

    def _range(self, scope: Scope, items: Sequence[Item], limit: int) -> ItemRange:
        """Items that were read up to a limit."""
        name = self._hierarchy.name
        found = [
            WordItem.of(name, one)
            for one in items
            if not isinstance(line := one.get("line"), str) or scope.may_hold(line)
        ]
        return ItemRange(found, WordItem.of(name, items[-1]) if items else None, len(items) < limit)

    def _items_left(self, scope: Scope) -> int:
        """The number of items that may still be read; none where all nodes can be read instead."""
        if self._reading is not Reading.FIRST or are_small(scope.subtrees):
            return 0
        return max(0, int((MAX_UNITS - (self._request.reads.units - self._units)) * ITEMS_A_UNIT))


def _bounds(text: SearchText, by_text: WordItem, last: WordItem, rise: int) -> list[Place]:
    """The least places of nodes that were not read: with the text as their name, with a name that begins so, others.

    `by_text` is the last item that was read in the order of the texts, `last` that in the order of weights. Nodes may
    be less deep than their items say by `rise`.
    """
    # Without a change of depths, the order of the range is that of the result.
    rest = (last.name, last.id) if rise == 0 else ("", "")
    after = Place(0, last.weight, last.depth - rise, *rest)
    if not last.begins:  # all nodes are read whose names begin with the text
        return [after._replace(match=2)]
    bounds = [after._replace(match=1), Place(2, "", 0)]
    if by_text.sort < f"{text.folded}#0{_LAST}":
        bounds.append(max(after, Place(0, by_text.weight, -1)))
    return bounds


def _limits(texts: Sequence[str], first: int, *, is_narrow: bool, reading: Reading) -> tuple[int, int]:
    """The numbers of items that are read first, by text and by weight: enough for most texts, and few units."""
    if len(texts) > 1:
        return min(200 if reading is Reading.FIRST else MAX_ITEMS, MAX_ITEMS // len(texts)), 0
    if not is_group(texts[0]):
        return 600, 0
    if reading is Reading.ONLY:
        return 300, 300
    if is_narrow:
        return 200, 150
    match len(texts[0]):
        case 1 | 2 | 3:  # the items by weight are all of this word
            return first + 2, 2 * first + 5
        case 4:
            return 40 + first, 6 * first
    return 90 + first, 3 * first
