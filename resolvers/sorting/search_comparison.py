"""Search comparison: the condition on the words of a node, and the order of the nodes that meet it.

Each word of the text begins a word of the node. Of a text of two words or more it is enough that the first one does,
and that each other one begins a word of the node or of an ancestor: `charlotte nc` finds Charlotte in NC. Such nodes
come after all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys
from store.model.records import Record
from store.search.words import SearchText, Words, weight_of

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

    hierarchy: Hierarchy
    text: SearchText
    languages: tuple[str, ...] | None = None
    above: Mapping[Key, Met] = field(default_factory=dict, compare=False)

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


def keys_above(keys: Iterable[Key], most: int) -> Sequence[Key] | None:
    """The keys of all ancestors of nodes, each once; None where they are more than `most`."""
    found: dict[Key, None] = {}
    for key in keys:
        found.update(dict.fromkeys(ancestor_keys(key)))
        if len(found) > most:
            return None
    return list(found)
