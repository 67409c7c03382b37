"""Search: the nodes of a hierarchy with words that begin like those of a text, the best matches first.

| read | index | key condition | limit |
| --- | --- | --- | --- |
| by text | table | `pk = "words/location#o" AND begins_with(sk, "oma")`, and one for each further word | some hundred |
| by weight | `by_parent` | `parent = "words/location#oma"` | some ten |
| more by text | table | as above, after the last item, where the first items prove nothing | what is left of 50 units |
| hits | table | keys of the nodes | the hits |
| more of the first word | table | as above, of a text of several words with fewer hits | what is left of 1,750 items |
| ancestors | table | keys of the ancestors of the nodes that have the first word | 100 |
| further hits | table | keys of the nodes | the hits |
| below a node | table | `begins_with(sk, :top)`, where items prove nothing and at most 2,000 nodes lie there | all |

So a text of one word takes three requests in two rounds, each further word one request more, and where more items are
needed it is one more request in a third round. All is read eventually consistent, the hits strongly while a move is
running; what does not match any more is left out.

A result is `complete` where it is proven that no other node belongs among its hits. A node that a search should return
has an item in each range that is read for the text. If a range was read to its end, nothing of it is missing. If it was
read up to a limit, all further items come later in its order, which bounds the rank of missing nodes.

Nodes whose ancestors have some of the words come after all others, so they are looked for only where these are fewer
than asked for. Each has an item of the first word: where this range is longer, or where its nodes have more ancestors,
none is added, and the result is not complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resolvers.search.by_ancestors import ByAncestors
from resolvers.search.finder import (
    Arguments,
    Finder,
    FoundPage,
    Hit,
    Nodes,
    Reading,
    Scope,
    Selected,
    are_small,
)
from resolvers.session.request import Request
from resolvers.sorting.search_comparison import BY_ANCESTORS, Relevance, SearchComparison
from store.concurrency import in_chunks
from store.kinds.words import SearchText, WordItem, WordKind, by_text, by_weight, is_group
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS, KeyRange, ancestor_keys
from store.model.names import lookup
from store.model.records import Item, Record

MAX_UNITS = 50.0  # for items, beside the units of hits
ITEMS_A_UNIT = 35  # of some 220 bytes, read eventually consistent
MAX_ITEMS = 1_750  # where no more are read afterwards, and of a text of several words in all
MAX_ANCESTORS = 100  # of the nodes with the first word: one BatchGetItem

_LAST = "\U0010ffff"


class Candidate(NamedTuple):
    place: Relevance
    item: WordItem


@dataclass
class ItemRange:
    """The items that were read of a range: those in the scope, and the last one wherever it is.

    `rest` is what of the range was not read, None where it was read to its end; `read` is the number of all items.
    """

    items: list[WordItem]
    last: WordItem | None
    rest: KeyRange | None
    read: int = 0

    @property
    def is_whole(self) -> bool:
        return self.rest is None


@dataclass(frozen=True)
class SearchArguments(Arguments):
    """The arguments of a search. Raises BadInput."""

    text: SearchText
    languages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup((), self.languages or ())  # here, since whether names are compared depends on what is found

    def has_level(self, level: str) -> bool:
        return self.levels is None or level in self.levels


async def search(
    request: Request, hierarchy: Hierarchy, asked: SearchArguments, selected: Selected = Selected()
) -> FoundPage:
    """The nodes that match, at most `first`, with what is `selected` of them; none for a text without a word.

    Raises as `Finder.find`.
    """
    if not asked.text.words:
        return FoundPage([], total=0)
    finder = _Search(request, hierarchy, asked, selected)
    hits, complete = await finder.find()
    return FoundPage([hit.record for hit in hits], total=finder.total, complete=complete)


class _Search(Finder[SearchArguments]):
    """One search by words."""

    kind = WordKind.name

    def __init__(self, request: Request, hierarchy: Hierarchy, asked: SearchArguments, selected: Selected) -> None:
        super().__init__(request, hierarchy, asked, selected)
        where = SearchComparison(hierarchy, asked.text, asked.languages)
        self._above = ByAncestors(request, hierarchy, where, MAX_ANCESTORS)
        self._where = self._above.where

    def place(self, record: Record) -> Relevance | None:
        return self._where.place(record) if self._asked.has_level(record.level) else None

    def ranges(self, base: str, reading: Reading) -> Sequence[tuple[KeyRange, int]]:
        asked, text = self._asked, self._asked.text
        self._base, self._reading, self._units = base, reading, self._request.reads.units
        texts, self._pairs = text.ranges
        is_narrow = asked.under is not None or asked.levels is not None or self._selected.total
        of_text, of_weight = _limits(texts, asked.first, is_narrow=is_narrow, reading=reading)
        ranges = [(by_text(base, one), of_text) for one in texts]
        self._texts = texts
        if text.is_word and is_group(text.folded):
            ranges.append((by_weight(base, text.folded), of_weight))
        self._ranges = ranges
        return ranges

    async def candidates(self, scope: Scope, read: Sequence[Sequence[Item]]) -> tuple[Sequence[WordItem], bool]:
        self._read = ranges = [ItemRange([], None, span) for span, _ in self._ranges]
        for one, items, (_, limit) in zip(ranges, read, self._ranges, strict=True):
            self._add(scope, one, items, limit)
        found = self._matching(scope, ranges)
        complete = self._is_proven(scope, found, ranges)
        if not complete and (more := self._items_left(scope)):
            unread = {text for pair in self._pairs for text in pair if not self._range(text).is_whole}
            await self._read_on(scope, [self._range(max(sorted(unread), key=len))], more)
            found, complete = self._matching(scope, ranges), self._are_whole(ranges)
        self.are_known = self._are_whole(ranges) or any(one.is_whole for one in ranges[len(self._texts) :])
        return [one.item for one in found], complete

    def _range(self, text: str) -> ItemRange:
        """What was read of the items that begin with a text."""
        if text not in self._texts:
            self._texts.append(text)
            self._read.insert(len(self._texts) - 1, ItemRange([], None, by_text(self._base, text)))
        return self._read[self._texts.index(text)]

    async def _read_on(self, scope: Scope, ranges: Sequence[ItemRange], limit: int) -> None:
        """Read further items of these ranges, up to a limit of each."""
        ahead = [(one, one.rest) for one in ranges if one.rest is not None]
        found = await self.items([(rest, limit) for _, rest in ahead])
        for (one, _), items in zip(ahead, found, strict=True):
            self._add(scope, one, items, limit)

    def _add(self, scope: Scope, one: ItemRange, items: Sequence[Item], limit: int) -> None:
        """Add items that were read up to a limit."""
        name = self._hierarchy.name
        one.items += [
            WordItem.of(name, item)
            for item in items
            if not isinstance(line := item.get("line"), str) or scope.may_hold(line)
        ]
        one.last, one.read = WordItem.of(name, items[-1]) if items else None, one.read + len(items)
        is_whole = one.rest is None or len(items) < limit
        one.rest = None if is_whole or one.rest is None else one.rest.after(str(items[-1]["sk"]))

    def _matching(self, scope: Scope, ranges: Sequence[ItemRange]) -> list[Candidate]:
        """The matching items of these ranges in the order of the result, one for each node."""
        found: dict[str, Candidate] = {}
        for item in (item for one in ranges for item in one.items):
            if item.id in found or not self._asked.has_level(item.level):
                continue
            words = self._above.words(item)
            match = None if words is None else self._where.match(words)
            if match is not None:
                depth = item.depth if scope.moves is None else scope.moves.depth(item.line)
                found[item.id] = Candidate(Relevance(match, item.weight, depth, item.name, item.id), item)
        ahead = sorted(found.values(), key=lambda one: one.place)
        self._partly = [one.item for one in ahead if one.place.match == BY_ANCESTORS]
        return ahead[: len(ahead) - len(self._partly)]

    # -- nodes whose ancestors have some of the words ------------------------------------------------------------------

    async def settled(self, hits: Sequence[Hit], own: Nodes, *, is_strong: bool) -> list[Hit]:
        sure = [hit for hit in hits if hit.place[0] != BY_ANCESTORS]
        others = [hit for hit in hits if hit.place[0] == BY_ANCESTORS]
        if not others or (len(sure) >= self._asked.first and not self._selected.total):
            return sure
        above = [key for hit in others for key in ancestor_keys(hit.record.key)]
        await self._above.read(above, own, is_strong=is_strong)
        async for chunk in in_chunks(others):
            sure += [hit for hit in chunk if self._where.is_met_above(hit.record)]
        return sure

    async def further(self, scope: Scope, *, is_strong: bool) -> tuple[Sequence[WordItem], bool]:
        if len(self._asked.text.words) == 1:
            return [], True
        first_word = [self._range(text) for text in self._asked.text.first_pair]
        unread = [one for one in first_word if not one.is_whole]
        left = MAX_ITEMS - sum([one.read for one in self._read])
        if unread and left > 0:
            await self._read_on(scope, unread, left // len(unread))
            self._matching(scope, self._read)
        if not all(one.is_whole for one in first_word):
            return [], False
        found = await self._above.found(scope, self._partly, is_strong=is_strong)
        return found or [], found is not None

    # -- what is proven ------------------------------------------------------------------------------------------------

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

    def _items_left(self, scope: Scope) -> int:
        """The number of items that may still be read; none where all nodes can be read instead."""
        if self._reading is not Reading.FIRST or are_small(scope.subtrees):
            return 0
        return max(0, int((MAX_UNITS - (self._request.reads.units - self._units)) * ITEMS_A_UNIT))


def _bounds(text: SearchText, by_text: WordItem, last: WordItem, rise: int) -> list[Relevance]:
    """The least places of nodes that were not read: with the text as their name, with a name that begins so, others.

    `by_text` is the last item that was read in the order of the texts, `last` that in the order of weights. Nodes may
    be less deep than their items say by `rise`.
    """
    # Without a change of depths, the order of the range is that of the result.
    rest = (last.name, last.id) if rise == 0 else ("", "")
    after = Relevance(0, last.weight, last.depth - rise, *rest)
    if not last.begins:  # all nodes are read whose names begin with the text
        return [after._replace(match=2)]
    bounds = [after._replace(match=1), Relevance(2, "", 0)]
    if by_text.sort < f"{text.folded}#0{_LAST}":
        bounds.append(max(after, Relevance(0, by_text.weight, -1)))
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
