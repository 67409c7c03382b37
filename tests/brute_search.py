"""Brute force: a second implementation of searches, which compares a text with the names of all nodes."""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.records import Record
from store.search.folding import MAX_FOLDED_CHARACTERS
from store.search.word_items import MAX_ITEMS

_PLAIN = {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
_UNSPACED = (
    "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "THAI",
    "LAO", "MYANMAR", "KHMER",
)  # fmt: skip
_HAN = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH")
_LATER_LETTERS = ("HANGUL JUNGSEONG", "HANGUL JONGSEONG")  # of a syllable
Words = tuple[str, ...]
KEY = "#"  # under which a key is among the names


def folded(text: str) -> Words:
    """The words of a text: runs of letters and digits, those of scripts with spaces and of others apart."""
    plain = _unmarked(_unmarked(text).casefold())
    found: list[str] = []
    last: bool | None = None  # whether the last character is of a script without spaces; None where it is in no word
    for character in (one for written in plain for one in _PLAIN.get(written, written)):
        kind = is_unspaced(character) if character.isalnum() else None
        if kind is not None:
            found[len(found) if kind is not last else -1 :] = [character if kind is not last else found[-1] + character]
        last = kind
    return tuple(found)


def _unmarked(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))


@cache
def is_unspaced(character: str) -> bool:
    return not character.isascii() and unicodedata.name(character, "").startswith(_UNSPACED)


def begins_inside(character: str) -> bool:
    """Whether a word begins with this character inside of a run."""
    return is_unspaced(character) and not unicodedata.name(character).startswith(_LATER_LETTERS)


def is_long(words: Words) -> bool:
    """Whether one of the words has three letters, or one of Han."""
    return any(len(word) > 2 or unicodedata.name(word[0], "").startswith(_HAN) for word in words)


def _places(word: str) -> list[int]:
    """The places in a word at which a word begins."""
    return [place for place, character in enumerate(word) if place == 0 or begins_inside(character)]


def _cut(words: Iterable[str], count: int) -> tuple[Words, int]:
    """The words as far as they are searched where so many beginnings of words are left, and how many are left then."""
    text = " ".join(words)[:MAX_FOLDED_CHARACTERS]
    found: list[str] = []
    for word in text.split():
        places = _places(word)
        if len(places) > count:
            found += [word[: places[count]]] if count else []
            return tuple(found), 0
        found.append(word)
        count -= len(places)
    return tuple(found), count


class Named(NamedTuple):
    """A node with the words by which it is found."""

    record: Record
    names: dict[str, Words]
    others: Words
    weight: Decimal
    all: str


class Brute:
    """The nodes of a hierarchy."""

    def __init__(self, hierarchy: Hierarchy, records: Iterable[Record]) -> None:
        self.hierarchy = hierarchy
        self.nodes = [self._named(record) for record in records]

    def _named(self, record: Record) -> Named:
        names, left = {}, MAX_ITEMS
        named = {language: folded(text) for language, text in {"": record.name, **record.names}.items()}
        if (key := folded(record.path[-1])) not in named.values():
            named[KEY] = key
        for language, words in named.items():
            names[language], left = _cut(words, left)
        others: list[str] = []
        for word in self._others(record):
            if not any(word in name for name in names.values()) and word not in others:
                cut, left = _cut([word], left)
                others += cut
        weight = record.attributes.get(self.hierarchy.search.weight or "") if self.hierarchy.search else None
        every = [word for name in names.values() for word in name] + others
        return Named(record, names, tuple(others), Decimal(str(weight or 0)), " " + " ".join(every))

    def _others(self, record: Record) -> Iterator[str]:
        for attribute in self.hierarchy.levels[record.level].attributes.values():
            if attribute.search:
                value = record.attributes.get(attribute.name)
                for text in value if isinstance(value, list) else [value]:
                    yield from folded(str(text)) if text is not None else ()

    def find(
        self,
        text: str,
        *,
        shown: Callable[[Path], bool] = lambda path: True,
        levels: Collection[str] | None = None,
        languages: Sequence[str] | None = None,
        first: int = 10,
    ) -> list[Record]:
        """The first nodes that match, of those with such paths."""
        words = folded(text)
        found = []
        for node in self.nodes:
            if not all(word in node.all for word in words):
                continue
            if levels is not None and node.record.level not in levels:
                continue
            if not shown(node.record.path):
                continue
            match = _match(node, words, languages)
            if match is not None:
                name = "+".join(node.names[""])
                found.append(((match, -node.weight, node.record.depth, name, node.record.id), node.record))
        return [record for _, record in sorted(found, key=lambda one: one[0])[:first]]


def _match(node: Named, words: Words, languages: Sequence[str] | None) -> int | None:
    taken = set(node.names) if languages is None else {"", KEY, *[_best(node.names, tag) for tag in languages]}
    names = [name for language, name in node.names.items() if language in taken and name]
    searched = [word for name in names for word in name] + [*node.others]
    if not all(any(_begins(word, text) for word in searched) for text in words):
        return None
    if words in names:
        return 0
    return 1 if any(" ".join(name).startswith(" ".join(words)) for name in names) else 2


def _best(names: Collection[str], tag: str) -> str | None:
    """The language among these that a tag leads to, None where there is none."""
    by_lower = {language.lower(): language for language in names if language}
    parts = tag.lower().split("-")
    while parts:
        if "-".join(parts) in by_lower:
            return by_lower["-".join(parts)]
        parts.pop()
    return None


def _begins(word: str, text: str) -> bool:
    """Whether a text begins a word, or a later one in a run without spaces."""
    return any(word.startswith(text, place) for place in _places(word))
