"""Texts as lists and searches compare them, and distances; from docs/lists.md, decisions/sorting.md, find-nodes.md."""

import math
import unicodedata
from functools import lru_cache

EARTH_KILOMETERS = 6371.0088


# "Letters that are no letter with an accent for Unicode count as the letters that people type for them" (lists.md).
PLAIN = {
    "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe", "ß": "ss",
}  # fmt: skip
# "Other forms of a letter count as that letter", of which lists.md has the list; "nor does a tatweel".
PLAIN |= dict(zip("ךםןףץґ", "כמנפצг", strict=True))
PLAIN |= {"ٱ": "ا", "ـ": "", **dict.fromkeys("ةھہۃە", "ه"), **dict.fromkeys("ىیے", "ي"), **dict.fromkeys("کڪ", "ك")}
# "An apostrophe, hyphen, full stop or middle dot, and letters that are written for one" (find-nodes.md).
SIGNS = "'’.-‐‑`´‘·ʻʼʹ"


@lru_cache(100_000)
def folded(text: str) -> str:
    """ "Texts are folded, not collated: NFKD, without combining marks, casefolded" (decisions/sorting.md). "What nobody
    sees … does not count, … and the digits of all scripts are those of ASCII" (lists.md).
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    again = unicodedata.normalize("NFKD", plain.casefold())
    seen = [c for c in again if not unicodedata.combining(c) and unicodedata.category(c) != "Cf"]
    return "".join(str(int(c)) if c.isdecimal() else PLAIN.get(c, c) for c in seen)


def sort_text(text: str) -> str:
    """ "Texts sort by their first 100 characters, ignoring case and accents" (lists.md)."""
    return folded(text[:100])[:100]


def squashed(text: str) -> str:
    """Letters and digits alone; a match of a search is somewhere in them."""
    return "".join(c for c in folded("".join(c for c in text if c not in SIGNS)) if c.isalnum())


def clear_words(text: str) -> list[list[str]]:
    """The words of a text that nobody could divide otherwise, as their parts: between blanks, of letters and digits
    alone but for single signs inside.
    """
    found = []
    for word in text.split(" "):
        inside = "".join("'" if c in SIGNS else c for c in word).strip("'")
        parts = [folded(part) for part in inside.split("'")]
        if all(part and all(c.isalnum() and c.isprintable() for c in part) for part in parts):
            found.append(parts)
    return found


def begins(asked: list[str], words: list[list[str]]) -> bool:
    """ "Such a word of a node is found by its parts, and by each part together with those after it; one in `text` is
    its parts or all of them together" (find-nodes.md).
    """
    known = ["".join(word[place:]) for word in words for place in range(len(word))]
    return any(all(any(one.startswith(part) for one in known) for part in way) for way in (asked, ["".join(asked)]))


def kilometers(a: tuple[float, float], b: tuple[float, float]) -> float:
    """ "The distance on a sphere with the Earth's mean radius (6,371.0088 km)" by haversine."""
    (lat1, lon1), (lat2, lon2) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_KILOMETERS * math.asin(min(1.0, math.sqrt(half)))
