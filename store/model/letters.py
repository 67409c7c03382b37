"""Letters: the one folding of letters with which texts are searched, sorted and filtered."""

import re
import unicodedata

MAX_MARKED_CHARACTERS = 100  # of a text whose marks are only removed after it is normalized
UNSEEN = (
    "\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""The ignorable characters of Unicode, which nobody sees, as ranges of a regular expression."""
_STROKES = {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
# Letters that Unicode's collation (UTS #10, DUCET) takes for variants of one: the final ones of Hebrew, and U+0491.
_VARIANTS = dict(zip("\u05da\u05dd\u05df\u05e3\u05e5\u0491", "\u05db\u05de\u05e0\u05e4\u05e6\u0433", strict=True))
# One letter as the keyboards of Arabic, Persian, Urdu and Kurdish write it, as the normalizations of Arabic and Persian
# in Lucene take it: alef with wasla; teh marbuta and the forms of heh; alef maksura and the forms of yeh; those of kaf.
# Hamzas and vowel signs are marks in NFKD; the tatweel only makes a word longer.
_ARABIC = {
    "\u0671": "\u0627",
    **dict.fromkeys("\u0629\u06be\u06c1\u06c3\u06d5", "\u0647"),
    **dict.fromkeys("\u0649\u06cc\u06d2", "\u064a"),
    **dict.fromkeys("\u06a9\u06aa", "\u0643"),
    "\u0640": "",
}
_PLAIN = str.maketrans(_STROKES | _VARIANTS | _ARABIC)
_UNSEEN_OR_DIGIT = re.compile(rf"[{UNSEEN}]|(?![0-9])\d")


def plain_letters(text: str) -> str:
    """Text without case, accents and strokes: of `Łódź` that is `lodz`, of `STRAẞE` it is `strasse`.

    It is decomposed (NFKD), without combining marks, and casefolded; then letters that Unicode does not decompose, such
    as those with a stroke, become the plain letters that people type for them, and the decimal digits of all scripts
    those of ASCII. What nobody sees is removed.
    """
    if text.isascii():
        return text.lower()
    if len(text) > MAX_MARKED_CHARACTERS:  # normalizing a run of n marks takes n²
        text = _unmarked(text)
    folded = _decomposed(text).casefold()
    return folded if folded.isascii() else _UNSEEN_OR_DIGIT.sub(_seen, _decomposed(folded).translate(_PLAIN))


def _seen(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match[0], ""))


def _decomposed(text: str) -> str:
    return _unmarked(unicodedata.normalize("NFKD", text))


def _unmarked(text: str) -> str:
    return "".join([c for c in text if not unicodedata.combining(c)])
