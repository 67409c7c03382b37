"""Plain model of search: words of texts, and beginnings of words of nodes, written without the code of search."""

import unicodedata
from typing import Any

from store.model.hierarchy import Hierarchy

UNSPACED = (
    "THAI",
    "LAO",
    "MYANMAR",
    "HANGUL",
    "KHMER",
    "HIRAGANA",
    "KATAKANA",
    "BOPOMOFO",
    "CJK UNIFIED",
    "CJK COMPAT",
    "IDEOGRAPHIC",
)
LATER_LETTERS = ("HANGUL JUNGSEONG", "HANGUL JONGSEONG")  # of a syllable
STROKES = {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}


def is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(UNSPACED)


def words(text: str) -> list[str]:
    """The words of a text: NFKD without marks, case-folded, in runs of letters and digits of either kind of script."""
    for _ in range(2):
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))
        text = text.casefold()
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))
    found: list[str] = []
    last = None
    for character in "".join(STROKES.get(c, c) for c in text):
        kind = is_unspaced(character) if character.isalnum() else None
        if kind is not None and kind == last:
            found[-1] += character
        elif kind is not None:
            found.append(character)
        last = kind
    return found


def fold(text: str) -> str:
    return "+".join(words(text))


def beginnings(folded: str) -> list[str]:
    """The text from each beginning of a word on, in order."""
    found = []
    for place, character in enumerate(folded):
        is_first = character != "+" and (place == 0 or folded[place - 1] == "+")
        is_inner = is_unspaced(character) and not unicodedata.name(character).startswith(LATER_LETTERS)
        if is_first or is_inner:
            found.append(folded[place:])
    return found


class NodeWords:
    """The words of the item of a node: its folded `names` by language, its key by "#" unless it is equal to a name,
    the `others`, and all beginnings of words.

    `found` has for each beginning whether it is a whole name, which is also a beginning of a name.
    """

    def __init__(self, hierarchy: Hierarchy, node: dict[str, Any]) -> None:
        self._left = 40
        names = {"": node["name"], **dict(sorted(node.get("names", {}).items()))}
        folded = {language: fold(name) for language, name in names.items()}
        own = node["sk"][1:-1].split("#")[-1] if node["sk"] != "#" else node["pk"].split("#")[1]
        for escaped in {own[place : place + 3] for place, c in enumerate(own) if c == "%"}:
            own = own.replace(escaped, chr(int(escaped[1:], 16)))
        if fold(own) not in folded.values():
            folded["#"] = fold(own)
        self.names = {language: cut for language, name in folded.items() if (cut := self._cut(name))}
        candidates: list[str] = []
        for attribute in hierarchy.any_level(node["level"]).attributes.values():
            value = next((node[name] for name in (attribute.name, *attribute.was) if name in node), None)
            for text in value if isinstance(value, list) else [value]:
                candidates += words(text) if attribute.search and isinstance(text, str) else []
        in_names = {word for name in folded.values() for word in name.split("+")}
        self.others: list[str] = []
        for word in dict.fromkeys(candidates):
            if word not in in_names and self._left:
                self.others.append(self._cut(word))
        self.found = {text: False for name in self.names.values() for text in beginnings(name)}
        self.found |= dict.fromkeys(self.names.values(), True)
        for word in self.others:
            self.found = {**dict.fromkeys(beginnings(word), False), **self.found}

    def _cut(self, folded: str) -> str:
        """A text of at most 100 characters with no more beginnings than are left."""
        folded = folded[:100].rstrip("+")
        found = beginnings(folded)
        if len(found) > self._left:
            folded = folded[: len(folded) - len(found[self._left])].rstrip("+")
        self._left -= min(self._left, len(found))
        return folded
