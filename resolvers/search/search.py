"""Search: the nodes of a hierarchy with words that begin like those of a text, the best matches first.

| read | index | key condition | limit |
| --- | --- | --- | --- |
| by text | table | `pk = "words/location#o" AND begins_with(sk, "oma")`, and one for each further word | some hundred |
| by weight | `by_parent` | `parent = "words/location#oma"` | some ten |
| hits | table | keys of the nodes | the hits |
| below a node | table | `begins_with(sk, :top)`, where items prove nothing and at most 2,000 nodes lie there | all |

So a text of one word takes three requests in two rounds, each further word one request more. All is read eventually
consistent, the hits strongly while a move is running; what does not match any more is left out. A result is `complete`
where it is proven (`candidates.py`) that no other node belongs among its hits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resolvers.search.candidates import Candidate, ItemRange, Matching, candidates, is_proven
from resolvers.search.finder import Finder, FoundPage, are_small, check_first
from resolvers.search.hits import Place, Selected
from resolvers.search.scope import Scope
from resolvers.session.request import Request
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.languages import canonical_language
from store.model.ranges import KeyRange
from store.model.records import Record
from store.search.folding import SearchText, is_group
from store.search.word_items import WordItem, Words, by_text, by_weight, weight_of

MAX_LANGUAGES = 20
MAX_UNITS = 50.0  # for items, beside the units of hits
ITEMS_A_UNIT = 35  # of some 220 bytes, read eventually consistent


@dataclass(frozen=True)
class SearchArguments:
    """The arguments of a search. Raises BadInput."""

    text: SearchText
    under: Path | None = None
    levels: frozenset[str] | None = None
    first: int = 10
    languages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_first(self.first)
        if self.languages is not None and len(self.languages) > MAX_LANGUAGES:
            raise BadInput(f"languages has {len(self.languages)} tags; at most {MAX_LANGUAGES} are taken.")
        for tag in self.languages or ():
            canonical_language(tag)  # here, since whether names are compared depends on what is found

    @classmethod
    def of(cls, text: str, *rest: Any) -> "SearchArguments":
        """The arguments with a text as it is given."""
        return cls(SearchText.of(text), *rest)

    @property
    def matching(self) -> Matching:
        return Matching(self.text, self.levels, self.languages)


async def search(
    request: Request, hierarchy: Hierarchy, asked: SearchArguments, selected: Selected = Selected()
) -> FoundPage:
    """The nodes that match, at most `first`, with what is `selected` of them. Raises as `Finder.find`."""
    hits, complete = await _Search(request, hierarchy, asked).find(asked, selected)
    return FoundPage([hit.record for hit in hits], complete=complete)


class _Search(Finder):
    """One search by words."""

    kind = "words"

    def __init__(self, request: Request, hierarchy: Hierarchy, asked: SearchArguments) -> None:
        super().__init__(request, hierarchy)
        self._asked = asked

    def place(self, record: Record) -> Place | None:
        return self._asked.matching.place(record, Words.of(self._hierarchy, record), weight_of(self._hierarchy, record))

    async def candidates(self, scope: Scope, bases: Sequence[str]) -> tuple[Sequence[WordItem], bool]:
        self._scope, self._units = scope, self._request.reads.units
        self._is_narrow = scope.tops is not None or self._asked.levels is not None
        is_one = len(self._asked.text.words) == 1
        found, complete = await (self._one_word if is_one else self._several_words)(bases)
        return [one.item for one in found], complete

    async def _one_word(self, bases: Sequence[str]) -> tuple[list[Candidate], bool]:
        asked, (word,) = self._asked, self._asked.text.words
        asks_weight = is_group(word) and len(bases) == 1
        limits = _Limits.of(word, asked.first, is_narrow=self._is_narrow, by_text_alone=not asks_weight)
        ranges = [(by_text(base, word), limits.by_text) for base in bases]
        if asks_weight:
            ranges.append((by_weight(bases[0], word), limits.by_weight))
        read = await self._read(ranges)
        weighted = read.pop() if asks_weight else None
        texts = ItemRange([item for one in read for item in one.items], all(one.is_whole for one in read))
        rise = self._scope.moves.rise if self._scope.moves is not None else 31
        found = candidates(asked.matching, self._scope, [texts, *([weighted] if weighted else [])])
        if is_proven(found, asked.first, asked.text, texts, weighted, rise):
            return found, True
        if len(bases) == 1 and (more := self._items_left()):
            rest = await self._read([(by_text(bases[0], word, texts.items[-1].sort), more)])
            found = candidates(asked.matching, self._scope, [texts, *rest, *([weighted] if weighted else [])])
            return found, rest[0].is_whole
        return found, False

    async def _several_words(self, bases: Sequence[str]) -> tuple[list[Candidate], bool]:
        """Candidates for several words, each of which leads to all nodes that match."""
        text = self._asked.text
        words = [word for word in text.words if is_group(word)] or [max(text.words, key=len)]
        limit = _Limits.of("", self._asked.first, is_narrow=True).by_text
        spans = [by_text(base, text.folded) for base in bases]
        spans += [by_text(base, word) for base in bases for word in words]
        read = await self._read([(span, limit) for span in spans])
        texts = read[len(bases) :]
        if not (complete := self._is_any_whole(texts, len(words))) and len(bases) == 1 and self._items_left():
            longest = max(range(len(words)), key=lambda n: len(words[n]))
            after = texts[longest].items[-1].sort
            rest = await self._read([(by_text(bases[0], words[longest], after), self._items_left())])
            complete = rest[0].is_whole
            read += rest
        return candidates(self._asked.matching, self._scope, read), complete

    @staticmethod
    def _is_any_whole(texts: Sequence[ItemRange], words: int) -> bool:
        """Whether the items of one of the words were read to the end, in all trees."""
        return any(all(one.is_whole for one in texts[word::words]) for word in range(words))

    async def _read(self, ranges: Sequence[tuple[KeyRange, int]]) -> list[ItemRange]:
        """The items in these ranges, each up to a limit."""
        read = []
        for items, (_, limit) in zip(await self.items(ranges), ranges, strict=True):
            found = [item for one in items if (item := WordItem.of(self._hierarchy.name, one)) is not None]
            read.append(ItemRange(found, len(items) < limit))
        return read

    def _items_left(self) -> int:
        """The number of items that may still be read; none where all nodes can be read instead."""
        if are_small(self._scope.tops):
            return 0
        return max(0, int((MAX_UNITS - (self._request.reads.units - self._units)) * ITEMS_A_UNIT))


@dataclass(frozen=True)
class _Limits:
    """The numbers of items that are read first: enough for most texts, and few units."""

    by_text: int
    by_weight: int

    @classmethod
    def of(cls, word: str, first: int, *, is_narrow: bool, by_text_alone: bool = False) -> "_Limits":
        if by_text_alone:
            return cls(600, 0)
        if is_narrow:
            return cls(200, 150)
        match len(word):
            case 1 | 2 | 3:  # the items by weight are all of this word
                return cls(first + 2, 2 * first + 5)
            case 4:
                return cls(40 + first, 6 * first)
            case _:
                return cls(90 + first, 3 * first)
