"""Search: the nodes of a hierarchy with words that begin like those of a text, the best matches first.

| read | index | key condition | limit |
| --- | --- | --- | --- |
| by text | table | `pk = "words/location#o" AND begins_with(sk, "oma")`, and one for each further word | some hundred |
| by weight | `by_parent` | `parent = "words/location#oma"` | some ten |
| hits | table | keys of the nodes | the hits |
| below a node | table | `begins_with(sk, :top)`, where items prove nothing and at most 2,000 nodes lie there | all |

So a text of one word takes three requests in two rounds, each further word one request more. The items are read
eventually consistent; the hits strongly, and what does not match any more is left out. A result is `complete` where it
is proven (`candidates.py`) that no other node belongs among its hits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from resolvers.planning.page import Page
from resolvers.search.candidates import Candidate, ItemRange, Matching, candidates, is_proven
from resolvers.search.hits import Hit, HitReader, Selected
from resolvers.search.index import read_index
from resolvers.search.scope import Scope, Top, paths_of, read_tops
from resolvers.session.outcomes import gather_outcomes, raise_first_error
from resolvers.session.request import Request
from store.errors import BadInput
from store.model.hierarchy import Hierarchy, SearchScope
from store.model.items import Item
from store.model.keys import Key, Path
from store.model.ranges import KeyRange
from store.search.folding import SearchText, is_group
from store.search.lineage import STEP, id_hash
from store.search.word_items import WordItem, by_text, by_weight, partition

MAX_HITS = 100
MAX_LANGUAGES = 20
MAX_SEARCHED_NODES = 2_000  # below a node that are read themselves where the items prove nothing
MAX_UNITS = 50.0  # for items, beside the units of hits
ITEMS_A_UNIT = 35  # of some 220 bytes, read eventually consistent
MAX_TREES = 4  # whose items are read for one tree, since nodes were moved from them


@dataclass(frozen=True)
class SearchArguments:
    """The arguments of a search. Raises BadInput."""

    text: SearchText
    under: Path | None = None
    levels: frozenset[str] | None = None
    first: int = 10
    languages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.first <= MAX_HITS:
            raise BadInput(f"first is {self.first}; a search returns 0 to {MAX_HITS} nodes.")
        if self.languages is not None and len(self.languages) > MAX_LANGUAGES:
            raise BadInput(f"languages has {len(self.languages)} tags; at most {MAX_LANGUAGES} are taken.")

    @property
    def matching(self) -> Matching:
        return Matching(self.text, self.levels, self.languages)


@dataclass(frozen=True)
class FoundPage(Page):
    """The hits of a search; `complete` is whether it is proven that no other node belongs among them."""

    complete: bool = True
    kilometers: dict[str, float] = field(default_factory=dict)


async def search(
    request: Request, hierarchy: Hierarchy, asked: SearchArguments, selected: Selected = Selected()
) -> FoundPage:
    """The nodes that match, at most `first`, with what is `selected` of them.

    Raises BadInput where the hierarchy is searched tree by tree and no tree is given, Unavailable where its search
    items are incomplete.
    """
    if request.state.store_version is None:
        request.state.is_cacheable = False  # no tree version proves what other trees have
    paths = paths_of(request, hierarchy.name, asked.under)
    is_by_tree = hierarchy.search is not None and hierarchy.search.scope is SearchScope.TREE
    if is_by_tree and asked.under is None and (paths is None or len({path[0] for path, _ in paths}) > 1):
        raise BadInput(f"Each tree of {hierarchy.name} is searched by itself; give the path of a node as under.")
    if asked.first == 0 or paths == []:
        return FoundPage([])
    index = await read_index(request, hierarchy, current=paths is not None)
    tops = None if paths is None else await read_tops(request, hierarchy.name, paths)
    if tops == []:
        return FoundPage([])
    reader = HitReader(request, hierarchy, index, selected)
    hits, complete = await _Search(request, hierarchy, asked, Scope.of(tops, index.moves), reader).run()
    request.budget.spend_nodes(len(hits), "The nodes that are found")
    return FoundPage([hit.record for hit in hits], complete=complete)


class _Search:
    """One search in its scope."""

    def __init__(
        self,
        request: Request,
        hierarchy: Hierarchy,
        asked: SearchArguments,
        scope: Scope,
        reader: HitReader,
    ) -> None:
        self._request, self._hierarchy, self._asked, self._scope = request, hierarchy, asked, scope
        self._reader = reader
        self._units = request.reads.units
        self._is_narrow = scope.tops is not None or asked.levels is not None

    async def run(self) -> tuple[list[Hit], bool]:
        """The hits, and whether they are proven."""
        request, asked, size = self._request, self._asked, self._scope.size
        is_small = size is not None and size <= MAX_SEARCHED_NODES
        if is_small and request.grants is not None:
            # Nothing but what the caller may see is read, so not even the time depends on anything else.
            return await self._reader.all_below(self._scope, asked.matching, asked.first), True
        bases = await self._partitions()
        if bases is None:
            found, complete = list[Candidate](), False
        else:
            found, complete = await (self._one_word if len(asked.text.words) == 1 else self._several_words)(bases)
        complete = complete and (self._scope.tops is None or self._scope.moves is not None)
        if not complete and is_small:
            return await self._reader.all_below(self._scope, asked.matching, asked.first), True
        hits, are_all = await self._reader.first_of(found, self._scope, asked.matching, asked.first)
        return hits, complete and are_all

    async def _partitions(self) -> list[str] | None:
        """What the partition keys of the items begin with; None where the items are in too many trees."""
        hierarchy, scope = self._hierarchy, self._scope
        if hierarchy.search is None or hierarchy.search.scope is SearchScope.HIERARCHY:
            return [partition(hierarchy, "")]
        tops: Sequence[Top] = scope.tops or ()
        ids = {top.record.pk: top.record.id for top in tops if top.record.is_root}
        keys = {Key(top.record.pk, "#") for top in tops if top.record.pk not in ids}
        # As items, since grants may hide the ids of roots, which the caller does not see here.
        items = await self._request.state.items(keys, current=True) if keys else {}
        raise_first_error(items.values())
        ids |= {key.pk: cast(str, item["id"]) for key, item in cast(dict[Key, Item | None], items).items() if item}
        roots = [id_hash(ids[pk]) for pk in dict.fromkeys([top.record.pk for top in tops]) if pk in ids]
        left = scope.moves.trees(scope.reached or ()) if scope.moves is not None else []
        roots = list(dict.fromkeys([*roots, *left]))
        return [partition(hierarchy, root[:STEP]) for root in roots] if len(roots) <= MAX_TREES else None

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
        state, name = self._request.state, self._hierarchy.name
        calls = [state.items_in(span, limit=limit, current=False) for span, limit in ranges]
        outcomes = await gather_outcomes(calls)
        raise_first_error(outcomes)
        read = []
        for items, (_, limit) in zip(cast(list[list[Item]], outcomes), ranges, strict=True):
            found = [item for one in items if (item := WordItem.of(name, one)) is not None]
            read.append(ItemRange(found, len(items) < limit))
        return read

    def _items_left(self) -> int:
        """The number of items that may still be read."""
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
                return cls(first + 5, 3 * first + 5)
            case 4:
                return cls(40 + first, 6 * first)
            case _:
                return cls(90 + first, 3 * first)
