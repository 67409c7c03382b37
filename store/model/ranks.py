"""A node's place among its siblings when a hand has put it there: a position between those of its neighbours.

A node's first rank is its level and its encoded key, each closed by `#`. A position that was made follows the first
rank of a neighbour, or a lone `#` at the beginning, and goes on with digits: `CITY#Omaha#` < `CITY#Omaha#V`. Digits
are read as a fraction, so there is room between any two, and no first rank begins as a made one does, since no key
holds a bare `#`.
"""

import re
from collections.abc import Collection, Sequence

from store.errors import BadInput
from store.model.keys import MAX_SORT_KEY_BYTES
from store.text import shorten

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in byte order, all above `%`

_MADE = re.compile(f"[^#]+#[^#]*#[{DIGITS}]+")


def is_manual(rank: str) -> bool:
    """Whether a hand has put the node there."""
    return not rank.endswith("#")


def is_valid(rank: str) -> bool:
    """Whether a text has the form of a rank that was made."""
    return len(rank.encode()) <= MAX_SORT_KEY_BYTES and _MADE.fullmatch(rank) is not None


def manual_part(level: str, rank: str) -> str | None:
    """A made rank without its level, as files hold it; None for a first rank."""
    return rank.removeprefix(f"{level}#") if is_manual(rank) else None


def manual_rank(level: str, part: object) -> str:
    """The made rank of a level whose other part a file holds; raises BadInput where there can be none such."""
    rank = f"{level}#{part}"
    if not isinstance(part, str) or not part.isprintable() or not is_valid(rank) or rank.endswith(DIGITS[0]):
        raise BadInput(f'"{shorten(str(part))}" is no rank; leave it out, or take it as clade export writes it.')
    return rank


def rank_after(rank: str, taken: Collection[str]) -> str | None:
    """This rank, or one close behind it where others have it; None where no key can hold such a one."""
    while rank in taken:
        rank += DIGITS[len(DIGITS) // 2]
    return rank if len(rank.encode()) <= MAX_SORT_KEY_BYTES else None


def rank_between(level: str, lower: str | None, upper: str | None) -> str | None:
    """A rank of this level above `lower` and below `upper`, its neighbours' ranks, None at either end.

    None where no rank that a key can hold lies between them; then the siblings have to be ranked anew.
    """
    beginning = f"{level}##"
    lower = beginning if lower is None else lower
    base = lower[: lower.rindex("#") + 1]
    bound = upper[len(base) :] if upper is not None and upper.startswith(base) else None
    rank = base + _middle(lower[len(base) :], bound)
    return rank if len(rank.encode()) <= MAX_SORT_KEY_BYTES else None


def evenly_spaced_ranks(level: str, count: int) -> Sequence[str]:
    """The ranks of so many siblings of a level, evenly spaced behind its beginning."""
    width = 1
    while len(DIGITS) ** width <= 2 * count:
        width += 1
    step = len(DIGITS) ** width // (count + 1)
    return [f"{level}##{_number(place * step, width)}V" for place in range(1, count + 1)]


def _middle(lower: str, upper: str | None) -> str:
    """The digits of a fraction between two others, `upper` None being one; it never ends in the least digit."""
    digits = ""
    place = 0
    while True:
        low = DIGITS.index(lower[place]) if place < len(lower) else 0
        high = DIGITS.index(upper[place]) if upper is not None and place < len(upper) else len(DIGITS)
        if high - low > 1:
            return digits + DIGITS[(low + high) // 2]
        digits += DIGITS[low]
        if high > low:
            upper = None
        place += 1


def _number(value: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        value, digit = divmod(value, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits
