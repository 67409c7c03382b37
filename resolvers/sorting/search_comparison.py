"""Search comparison: the condition on the words of a node, and the order of the nodes that meet it.

Each word of the text begins a word of the node. Of a text of two words or more it is enough that the first one does,
and that each other one begins a word of the node or of an ancestor: `charlotte nc` finds Charlotte in NC. Such nodes
come after all others.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from resolvers.sorting.conditions import DEAR, Combination, Condition, ConditionParser, Test, direct_parts
from resolvers.sorting.values import NodeValue
from store.errors import BadInput
from store.kinds.words import SearchText, Words, weight_of
from store.model.attributes import Kind
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys
from store.model.names import lookup
from store.model.records import Record

BY_ANCESTORS = 3  # the match of a node that lacks some of the words, which its ancestors may have

Met = frozenset[int]
"""The numbers of the words of a text that begin a word of a node."""


class Relevance(NamedTuple):
    """The place of a node in the order of a search: by match (0 to 3), weight (encoded), depth, folded name and id."""

    match: int
    weight: str
    depth: int
    name: str = ""
    id: str = ""


@dataclass(frozen=True)
class SearchComparison:
    """A text that nodes of a hierarchy are searched for; with `languages` only names in these, and default names.

    `above` has the words of the text that ancestors have, by their keys, of those that the caller may see.
    """

    hierarchy: Hierarchy = field(compare=False, repr=False)
    text: SearchText
    languages: tuple[str, ...] | None = None
    above: Mapping[Key, Met] = field(default_factory=dict, compare=False, repr=False)
    is_cacheable: ClassVar[bool] = False  # each letter that is typed is another text

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal conditions."""
        return "search", self.text.folded, self.languages

    @cached_property
    def test(self) -> Test:
        """Whether a node meets it, by `above` if its own words are not enough."""

        def test(record: Record) -> bool:
            match = self.match(Words.of(self.hierarchy, record))
            return match is not None and (match != BY_ANCESTORS or self.is_met_above(record))

        return test

    def outcome(self, level: str) -> bool | None:
        return None if self.text.words else False

    def lacking(self, level: str) -> set[str]:
        return set()

    def match(self, words: Words) -> int | None:
        """How well these words of a node match: 0 to 2, BY_ANCESTORS where its ancestors decide, None not at all."""
        names, others = words.searched(self.languages)
        unmet = self.text.unmet(names, others)
        if not unmet:
            return self.text.rank(names) if self.text.words else None
        return BY_ANCESTORS if unmet[0] != 0 else None

    def place(self, record: Record) -> Relevance | None:
        """The place of a node, BY_ANCESTORS where these decide whether it matches; None where it does not match."""
        words = Words.of(self.hierarchy, record)
        match = self.match(words)
        if match is None:
            return None
        return Relevance(match, weight_of(self.hierarchy, record), record.depth, words.names.get("", ""), record.id)

    def unmet(self, words: Words) -> Met:
        """The words of the text that these words lack."""
        return frozenset(self.text.unmet(*words.searched(self.languages)))

    def met(self, record: Record | None) -> Met:
        """The words of the text that a node has; none of one that is not served, or None."""
        if record is None or record.level not in self.hierarchy.levels:
            return frozenset()
        return frozenset(range(len(self.text.words))) - self.unmet(Words.of(self.hierarchy, record))

    def are_above(self, unmet: Met, ancestors: Iterable[Key]) -> bool:
        """Whether the ancestors have all words that a node lacks."""
        return unmet.issubset([number for key in ancestors for number in self.above.get(key, ())])

    def is_met_above(self, record: Record) -> bool:
        """The same of a node that lacks some."""
        return self.are_above(self.unmet(Words.of(self.hierarchy, record)), ancestor_keys(record.key))


@dataclass(frozen=True)
class SearchValue:
    """The words of the nodes of a hierarchy, which conditions `search` are about."""

    hierarchy: Hierarchy
    cost: ClassVar[int] = DEAR

    def parse(self, given: Mapping[str, Any], parser: ConditionParser, depth: int) -> Condition:
        """The condition; raises BadInput for a text that is too long, and for what is no language tag."""
        languages = given.get("languages")
        lookup((), languages or ())
        try:
            text = SearchText.of(given["text"])
        except BadInput as error:
            raise BadInput(f"search in where: {error}") from None
        return SearchComparison(self.hierarchy, text, None if languages is None else tuple(languages))


def direct_search(where: Condition | None) -> SearchComparison | None:
    """The condition `search` that stands directly in `where`, None where there is none."""
    return next((one for one in direct_parts(where) if isinstance(one, SearchComparison)), None)


@dataclass(frozen=True, kw_only=True)
class RelevanceValue(NodeValue):
    """The place of a node in the order of a search, as a text to sort by, which also cursors have."""

    search: SearchComparison

    @cached_property
    def of(self) -> Callable[[Record], Any]:
        search = self.search

        def place(record: Record) -> str | None:
            if (found := search.place(record)) is None:
                return None
            return f"{found.match}{found.weight}{found.depth:02}{found.name} {found.id}"  # no name has a space

        return place


def relevance_of(where: Condition | None) -> NodeValue:
    """What `orderBy: {field: RELEVANCE}` sorts by. Raises BadInput where `where` has no text to search for."""
    search = direct_search(where)
    if search is None:
        raise BadInput(
            "orderBy has RELEVANCE, and where has no search whose order that is; give one directly in where, outside "
            "of and, or and not."
        )
    return RelevanceValue("relevance", Kind.DATE, search=search)  # a kind whose texts compare as they are


def searches_in(where: Condition | None) -> list[SearchComparison]:
    """All conditions `search` of several words, whose test depends on ancestors."""
    if isinstance(where, Combination):
        return [one for part in where.parts for one in searches_in(part)]
    return [where] if isinstance(where, SearchComparison) and len(where.text.words) > 1 else []


def with_searches(where: Condition, found: Mapping[int, SearchComparison]) -> Condition:
    """The same condition with others in place of its searches, by the ids of these objects."""
    if isinstance(where, Combination):
        return Combination(where.operator, tuple([with_searches(part, found) for part in where.parts]))
    return found.get(id(where), where)
