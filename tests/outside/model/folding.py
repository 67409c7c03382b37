"""Texts as lists and searches compare them, and distances; from docs/lists.md, decisions/sorting.md, find-nodes.md."""

import math
import unicodedata
from functools import lru_cache

EARTH_KILOMETERS = 6371.0088


@lru_cache(100_000)
def folded(text: str) -> str:
    """ "Texts are folded, not collated: NFKD, without combining marks, casefolded" (decisions/sorting.md)."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    again = unicodedata.normalize("NFKD", plain.casefold())
    return "".join(c for c in again if not unicodedata.combining(c))


def sort_text(text: str) -> str:
    """ "Texts sort by their first 100 characters, ignoring case and accents" (lists.md)."""
    return folded(text[:100])[:100]


# Letters with a stroke or a dot are no letter with an accent for Unicode, but `lodz` finds Łódź.
STROKES = str.maketrans("łŁøØđĐħĦıŧŦ", "lLoOdDhHitT")


def has_stroke(text: str) -> bool:
    return text.translate(STROKES) != text


def squashed(text: str) -> str:
    """Letters and digits alone; a match of a search is somewhere in them."""
    return "".join(c for c in folded(text.translate(STROKES)) if c.isalnum())


def clear_words(text: str) -> list[str]:
    """The words of a text that nobody could divide otherwise: between blanks, of letters and digits alone."""
    words = (folded(word.translate(STROKES)) for word in text.split(" "))
    return [word for word in words if word and all(c.isalnum() and c.isprintable() for c in word)]


def kilometers(a: tuple[float, float], b: tuple[float, float]) -> float:
    """ "The distance on a sphere with the Earth's mean radius (6,371.0088 km)" by haversine."""
    (lat1, lon1), (lat2, lon2) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_KILOMETERS * math.asin(min(1.0, math.sqrt(half)))
