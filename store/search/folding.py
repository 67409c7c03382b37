"""Folding: texts as words that are compared without regard to case, accents and punctuation.

Folded text is NFKD without marks, case-folded; its words, runs of letters and digits, are joined by `+`. So `+` before
a word marks its beginning. Scripts that are written without spaces (Chinese, Japanese, Korean, Thai and their like) are
runs of their own, and a word begins with each of their characters.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from store.errors import BadInput
from store.text import quantity

MAX_TEXT_CHARACTERS = 200  # of a text to search for
MAX_WORDS = 8  # of it
MAX_FOLDED_CHARACTERS = 100  # of a name; what follows is not searched
MAX_READ_CHARACTERS = 4_000  # of a text, before it is folded: more than all words that are searched

# Signs that stand for a character of Han; Thai and Lao, Myanmar, Hangul's letters, Khmer, Kana, Bopomofo and Han.
_UNSPACED = (
    "\u3005-\u3007\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"(?:(?=[^\W_])[{_UNSPACED}])+|(?:(?![{_UNSPACED}])[^\W_])+")
# A syllable of Hangul is two or three letters in NFKD, of which only the first begins it.
_BEGINNING = re.compile(rf"(?<![^+])[^+]|(?![\u1160-\u11ff])[{_UNSPACED}]")
_INNER = re.compile(rf"(?![\u1160-\u11ff])[{_UNSPACED}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_STROKES = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"})


def fold(text: str) -> str:
    """A text as its folded words: `São Paulo (SP)` becomes `sao+paulo+sp`.

    Letters with a stroke, which NFKD leaves as they are, become plain letters: `Łódź` is `lodz`. What follows after
    4,000 characters is left out.
    """
    return _folded(text) if len(text) <= MAX_FOLDED_CHARACTERS else _fold(text[:MAX_READ_CHARACTERS])


def _fold(text: str) -> str:
    plain = text.lower() if text.isascii() else _without_marks(_without_marks(text).casefold()).translate(_STROKES)
    return "+".join(_WORD.findall(plain))


_folded = lru_cache(4_096)(_fold)


def _without_marks(text: str) -> str:
    if len(text) > MAX_FOLDED_CHARACTERS:  # normalizing a run of n marks takes n²
        text = "".join([c for c in text if unicodedata.category(c)[0] != "M"])
    return "".join([c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c)[0] != "M"])


def beginnings(folded: str) -> list[str]:
    """The rest of a folded text from each beginning of a word on: `sao+paulo` and `paulo`."""
    if folded.isascii():
        found = [folded] if folded else []
        while place := folded.find("+") + 1:
            folded = folded[place:]
            found.append(folded)
        return found
    return [folded[match.start() :] for match in _BEGINNING.finditer(folded)]


def group(folded: str) -> str:
    """The first three characters of a word, or its first one of Han, by which its items are ordered."""
    word = folded[:3].partition("+")[0]
    return word[:1] if _HAN.match(word) else word


def is_group(word: str) -> bool:
    """Whether a word is as long as a group, so that all words that it begins are in its group."""
    return len(word) >= 3 or _HAN.match(word) is not None


class SearchText(NamedTuple):
    """A text to search for: folded as a whole, and its different words; each must begin a word of a node.

    `patterns` are what is searched for these words in folded texts after a `+`.
    """

    folded: str
    words: tuple[str, ...]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "SearchText":
        """Raises BadInput for a text that is too long or has too many words. One without a word matches nothing."""
        if len(text) > MAX_TEXT_CHARACTERS:
            raise BadInput(f"text has {len(text):,} characters; at most {MAX_TEXT_CHARACTERS} are allowed.")
        folded = fold(text)
        words = tuple(dict.fromkeys(folded.split("+"))) if folded else ()
        if len(words) > MAX_WORDS:
            raise BadInput(f"text has {quantity(len(words), 'word')}; at most {MAX_WORDS} are allowed.")
        # In scripts without spaces a word begins with any character inside of another one.
        return cls(folded, words, tuple([word if _INNER.match(word) else f"+{word}" for word in words]))

    @property
    def is_word(self) -> bool:
        """Whether the text is one word, and not the same one twice."""
        return self.words[:1] == (self.folded,)

    def match(self, names: "tuple[str, ...] | list[str]", words: str) -> int | None:
        """How well folded names, and further folded words, match: 0 where a name is the text, 1 where one begins with
        it, 2 where all its words match, None otherwise.
        """
        text = "+" + "+".join([*names, words])
        for pattern in self.patterns:
            if pattern not in text:
                return None
        if self.folded in names:
            return 0
        for name in names:
            if name.startswith(self.folded):
                return 1
        return 2
