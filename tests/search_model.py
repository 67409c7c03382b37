"""Plain model of search: words of texts, and beginnings of words of nodes, written without the code of search."""

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
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
STROKES = dict(zip("łøđħŧıæœðþ", "l o d h t i ae oe d th".split(), strict=True))
SAME_LETTERS = {
    "ALEF": ["ALEF WASLA"], "KAF": ["KEHEH", "SWASH KAF"], "YEH": ["ALEF MAKSURA", "FARSI YEH", "YEH BARREE"],
    "HEH": ["TEH MARBUTA", "HEH DOACHASHMEE", "HEH GOAL", "TEH MARBUTA GOAL", "AE"],
}  # fmt: skip
"""By the name of an Arabic letter, those that are other signs for it."""
OTHER_LETTERS = [
    *[(f"ARABIC LETTER {one}", f"ARABIC LETTER {name}") for name, all_ in SAME_LETTERS.items() for one in all_],
    *[(f"HEBREW LETTER FINAL {name}", f"HEBREW LETTER {name}") for name in ("KAF", "MEM", "NUN", "PE", "TSADI")],
    ("CYRILLIC SMALL LETTER GHE WITH UPTURN", "CYRILLIC SMALL LETTER GHE"),
]
LETTERS = {unicodedata.lookup(one): unicodedata.lookup(name) for one, name in OTHER_LETTERS}
LETTERS |= {**STROKES, unicodedata.lookup("ARABIC TATWEEL"): ""}
VISIBLE_FORMATS = ("ARABIC ", "SYRIAC ", "KAITHI ", "EGYPTIAN ")  # format characters that are signs around others
SIGN_NAMES = (
    "APOSTROPHE", "FULL STOP", "HYPHEN-MINUS", "GRAVE ACCENT", "ACUTE ACCENT", "SOFT HYPHEN", "MIDDLE DOT",
    "ZERO WIDTH SPACE", "ZERO WIDTH NON-JOINER",
    "HEBREW PUNCTUATION GERESH", "HEBREW PUNCTUATION MAQAF", "HYPHEN", "NON-BREAKING HYPHEN", "PRIME",
    "LEFT SINGLE QUOTATION MARK", "RIGHT SINGLE QUOTATION MARK", "SINGLE HIGH-REVERSED-9 QUOTATION MARK",
    "MODIFIER LETTER PRIME", "MODIFIER LETTER DOUBLE PRIME", "MODIFIER LETTER TURNED COMMA",
    "MODIFIER LETTER APOSTROPHE", "MODIFIER LETTER REVERSED COMMA", "MODIFIER LETTER RIGHT HALF RING",
    "MODIFIER LETTER LEFT HALF RING", "LATIN SMALL LETTER SALTILLO",
)  # fmt: skip
SIGNS = "".join(map(unicodedata.lookup, SIGN_NAMES))


def is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(UNSPACED)


def plain(character: str) -> str:
    """A letter or digit of a decomposed text as the plainest one that is written for it, and no format character."""
    name = unicodedata.name(character, "")
    if unicodedata.category(character) == "Cf" and character not in SIGNS:
        return character if name.startswith(VISIBLE_FORMATS) and name != "ARABIC LETTER MARK" else ""
    return str(int(character)) if character.isdecimal() else LETTERS.get(character, character)


def words(text: str) -> list[str]:
    """The words of a text: NFKD without marks, case-folded, in runs of letters and digits of either kind of script.

    A sign between two characters of one kind does not end a word, but divides it into parts, as `-`.
    """
    text = text.replace("´", "'")
    for _ in range(2):
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))
        text = text.casefold()
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))
    found: list[str] = []
    last, sign = None, False
    for character in "".join(map(plain, text)):
        if character in SIGNS and last is not None and not sign:
            sign = True
            continue
        kind = is_unspaced(character) if character.isalnum() and character not in SIGNS else None
        if kind is not None and kind == last:
            found[-1] += "-" * sign + character
        elif kind is not None:
            found.append(character)
        last, sign = kind, False
    return found


def parts(text: str) -> list[str]:
    """All words of a text with their parts as words."""
    return [part for word in words(text) for part in word.split("-")]


@lru_cache(10_000)
def fold(text: str) -> str:
    return "+".join(words(text))


def begin(folded: str) -> dict[int, str]:
    """By the places of the beginnings of words, the text from there on, with the parts of words together."""
    found = {}
    for place, character in enumerate(folded):
        is_first = character not in "+-" and (place == 0 or folded[place - 1] in "+-")
        is_inner = is_unspaced(character) and not unicodedata.name(character).startswith(LATER_LETTERS)
        if is_first or is_inner:
            found[place] = "".join(folded[place:].split("-"))
    return found


def beginnings(folded: str) -> list[str]:
    """The text from each beginning of a word on, in order."""
    return list(begin(folded).values())


@lru_cache(10_000)
def readings(folded: str) -> set[str]:
    """All that a folded text may be, where each sign stands for a space or for nothing."""
    found = {""}
    for character in folded:
        found = {one + end for one in found for end in ({"+", ""} if character == "-" else {character})}
    return found


def match(text: str, names: Collection[str], found: Iterable[str]) -> int | None:
    """How well a node of these folded names and beginnings of words matches: 0 by a whole name, 1 by the beginning of
    one, 2 by words, None not at all.
    """
    known = list(found)
    for word in filter(None, fold(text).split("+")):
        apart = all(any(one.startswith(part) for one in known) for part in word.split("-"))
        if not apart and not any(one.startswith("".join(word.split("-"))) for one in known):
            return None
    own, of_names = readings(fold(text)), [one for name in names for one in readings(name)]
    if not own.isdisjoint(of_names):
        return 0
    return 1 if any(name.startswith(one) for name in of_names for one in own) else 2


def meets_with_ancestors(text: str, found: Sequence[str], above: Iterable[Sequence[str]]) -> bool:
    """Whether a node with these beginnings of words has the first word, and it or one of its ancestors each other."""
    first, *others = dict.fromkeys(words(text))
    each = [found, *above]
    is_first = match(first, [], found) is not None
    return is_first and all(any(match(word, [], one) is not None for one in each) for word in others)


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
        if parts(own) != parts(names[""]):
            folded["#"] = fold(own)
        self.names = {language: cut for language, name in folded.items() if (cut := self._cut(name))}
        candidates: list[str] = []
        for attribute in hierarchy.any_level(node["level"]).attributes.values():
            value = next((node[name] for name in (attribute.name, *attribute.was) if name in node), None)
            for text in value if isinstance(value, list) else [value]:
                candidates += words(text) if attribute.search and isinstance(text, str) else []
        in_names = {word for always in ("", "#") for word in folded.get(always, "").split("+")}
        self.others: list[str] = []
        for word in dict.fromkeys(candidates):
            if word not in in_names and self._left:
                self.others.append(self._cut(word))
        self.found = {text: False for name in self.names.values() for text in beginnings(name)}
        self.found |= {"".join(name.split("-")): True for name in self.names.values()}
        for word in self.others:
            self.found = {**dict.fromkeys(beginnings(word), False), **self.found}

    def _cut(self, folded: str) -> str:
        """A text of at most 100 characters with no more beginnings than are left."""
        folded = folded[:100].rstrip("+-")
        places = list(begin(folded))
        if len(places) > self._left:
            folded = folded[: places[self._left]].rstrip("+-")
        self._left -= min(self._left, len(places))
        return folded
