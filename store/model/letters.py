"""Letters: the one folding of letters with which texts are searched, sorted and filtered."""

import unicodedata

MAX_MARKED_CHARACTERS = 100  # of a text whose marks are only removed after it is normalized
_PLAIN = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
)


def plain_letters(text: str) -> str:
    """Text without case, accents and strokes: of `Łódź` that is `lodz`, of `STRAẞE` it is `strasse`.

    It is decomposed (NFKD), without combining marks, and casefolded; then letters that Unicode does not decompose, such
    as those with a stroke, become the plain letters that people type for them.
    """
    if text.isascii():
        return text.lower()
    if len(text) > MAX_MARKED_CHARACTERS:  # normalizing a run of n marks takes n²
        text = _unmarked(text)
    folded = _decomposed(text).casefold()
    return folded if folded.isascii() else _decomposed(folded).translate(_PLAIN)


def _decomposed(text: str) -> str:
    return _unmarked(unicodedata.normalize("NFKD", text))


def _unmarked(text: str) -> str:
    return "".join([c for c in text if not unicodedata.combining(c)])
