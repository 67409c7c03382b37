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
running; what does not match any more is left out. A result is `complete` where it is proven (`candidates.py`) that no
other node belongs among its hits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from resolvers.search.candidates import Candidate, ItemRange, Matching, candidates, is_proven
from resolvers.search.finder import Arguments, Finder, FoundPage, Reading, are_small
from resolvers.search.hits import Place, Selected
from resolvers.search.scope import Scope
from resolvers.session.request import Request
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import MAX_SEGMENTS
from store.model.languages import lookup
from store.model.ranges import KeyRange
from store.model.records import Record
from store.search.folding import SearchText, is_group
from store.search.word_items import WordItem, Words, by_text, by_weight, weight_of

MAX_UNITS = 50.0  # for items, beside the units of hits
ITEMS_A_UNIT = 35  # of some 220 bytes, read eventually consistent
MAX_ITEMS = 1_750  # where no more are read afterwards


@dataclass(frozen=True)
class SearchArguments(Arguments):
    """The arguments of a search. Raises BadInput."""

    text: SearchText
    languages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup((), self.languages or ())  # here, since whether names are compared depends on what is found

    @property
    def matching(self) -> Matching:
        return Matching(self.text, self.levels, self.languages)


async def search(
    request: Request, hierarchy: Hierarchy, asked: SearchArguments, selected: Selected = Selected()
) -> FoundPage:
    """The nodes that match, at most `first`, with what is `selected` of them; none for a text without a word.

    Raises as `Finder.find`.
    """
    if not asked.text.words:
        return FoundPage([])
    hits, complete = await _Search(request, hierarchy, asked).find(selected)
    return FoundPage([hit.record for hit in hits], complete=complete)


class _Search(Finder[SearchArguments]):
    """One search by words."""

    kind = "words"
    items_a_unit = ITEMS_A_UNIT

    def place(self, record: Record) -> Place | None:
        return self._asked.matching.place(record, Words.of(self._hierarchy, record), weight_of(self._hierarchy, record))

    def ranges(self, base: str, reading: Reading) -> Sequence[tuple[KeyRange, int]]:
        asked, text = self._asked, self._asked.text
        self._reading, self._units = reading, self._request.reads.units
        words = [word for word in text.words if is_group(word)] or [max(text.words, key=len)]
        texts = words if text.is_word else [text.folded, *words]
        is_narrow = asked.under is not None or asked.levels is not None
        limits = Limits.of(texts, asked.first, is_narrow=is_narrow, reading=reading)
        ranges = [(by_text(base, one), limits.by_text) for one in texts]
        self._longest = max(range(len(texts)), key=lambda n: (len(texts) == 1 or n > 0, len(texts[n])))
        if text.is_word and is_group(text.folded):
            ranges.append((by_weight(base, text.folded), limits.by_weight))
        self._ranges = ranges
        return ranges

    async def candidates(self, scope: Scope, read: Sequence[Sequence[Item]]) -> tuple[Sequence[WordItem], bool]:
        ranges = [self._range(scope, items, limit) for items, (_, limit) in zip(read, self._ranges, strict=True)]
        found = candidates(self._asked.matching, scope, ranges)
        complete = self._is_proven(scope, found, ranges)
        if not complete and (more := self._items_left(scope)):
            after = str(read[self._longest][-1]["sk"])
            (items,) = await self.items([(self._ranges[self._longest][0].after(after), more)])
            ranges.append(self._range(scope, items, more))
            found, complete = candidates(self._asked.matching, scope, ranges), ranges[-1].is_whole
        return [one.item for one in found], complete

    def _is_proven(self, scope: Scope, found: Sequence[Candidate], read: Sequence[ItemRange]) -> bool:
        """Whether no node is missing among the first candidates."""
        asked = self._asked
        if not asked.text.is_word:  # each word leads to all nodes that match
            return any(one.is_whole for one in read[1:])
        rise = scope.moves.rise if scope.moves is not None else MAX_SEGMENTS - 1
        return is_proven(found, asked.first, asked.text, read[0], read[1] if len(read) > 1 else None, rise)

    def _range(self, scope: Scope, items: Sequence[Item], limit: int) -> ItemRange:
        """Items that were read up to a limit."""
        name = self._hierarchy.name
        found = [WordItem.of(name, one) for one in items if scope.may_hold(str(one.get("line")))]
        last = WordItem.of(name, items[-1]) if items else None
        return ItemRange([one for one in found if one is not None], last, len(items) < limit)

    def _items_left(self, scope: Scope) -> int:
        """The number of items that may still be read; none where all nodes can be read instead."""
        if self._reading is not Reading.FIRST or are_small(scope.tops):
            return 0
        return max(0, int((MAX_UNITS - (self._request.reads.units - self._units)) * ITEMS_A_UNIT))


@dataclass(frozen=True)
class Limits:
    """The numbers of items that are read first: enough for most texts, and few units."""

    by_text: int
    by_weight: int = 0

    @classmethod
    def of(cls, texts: Sequence[str], first: int, *, is_narrow: bool, reading: Reading) -> "Limits":
        """For the ranges of these texts, one for a text of one word."""
        if len(texts) > 1:
            return cls(200 if reading is Reading.FIRST else MAX_ITEMS // len(texts))
        if not is_group(texts[0]):
            return cls(MAX_ITEMS if reading is Reading.FIXED else 600)
        if reading is Reading.FIXED:
            return cls(MAX_ITEMS // 2, MAX_ITEMS // 2)
        if reading is Reading.ONLY:
            return cls(300, 300)
        if is_narrow:
            return cls(200, 150)
        match len(texts[0]):
            case 1 | 2 | 3:  # the items by weight are all of this word
                return cls(first + 2, 2 * first + 5)
            case 4:
                return cls(40 + first, 6 * first)
            case _:
                return cls(90 + first, 3 * first)
