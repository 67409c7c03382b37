"""Ranks: the sort keys of siblings, and manual ones between those of two neighbours (fractional indexing).

The first rank of a node is its level and its encoded segment, each closed by `#`: `CITY#Omaha#`. A manual rank is the
first rank of a neighbour, or a lone `#` at the beginning, followed by digits: `CITY#Omaha#` < `CITY#Omaha#V`. The
digits are a fraction, so there is room between any two. No first rank equals a manual one, since no segment holds a
bare `#`.
"""

import re
from collections.abc import Collection, Sequence

from store.errors import BadInput
from store.model.keys import MAX_SORT_KEY_BYTES
from store.text import shorten

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in byte order, all above `%`

_MANUAL = re.compile(f"[^#]+#[^#]*#[{DIGITS}]+")


def is_manual(rank: str) -> bool:
    """Whether a rank was set by reordering."""
    return not rank.endswith("#")


def is_valid(rank: str) -> bool:
    """Whether a text has the form of a manual rank."""
    return len(rank.encode()) <= MAX_SORT_KEY_BYTES and _MANUAL.fullmatch(rank) is not None


def manual_part(level: str, rank: str) -> str | None:
    """A manual rank without its level, as in files; None for a first rank."""
    return rank.removeprefix(f"{level}#") if is_manual(rank) else None


def manual_rank(level: str, part: object) -> str:
    """The manual rank of a level from its part in a file; raises BadInput for an invalid one."""
    rank = f"{level}#{part}"
    if not isinstance(part, str) or not part.isprintable() or not is_valid(rank) or rank.endswith(DIGITS[0]):
        raise BadInput(f'"{shorten(str(part))}" is not a rank; omit it, or use one that clade export wrote.')
    return rank


def rank_after(rank: str, taken: Collection[str]) -> str | None:
    """This rank, or the next free one behind it where it is taken; None where that is too long for a key."""
    while rank in taken:
        rank += DIGITS[len(DIGITS) // 2]
    return rank if len(rank.encode()) <= MAX_SORT_KEY_BYTES else None


def rank_between(level: str, lower: str | None, upper: str | None) -> str | None:
    """A rank of this level between the ranks of two neighbours, None at either end.

    None where it is too long for a key; then all siblings need new ranks.
    """
    beginning = f"{level}##"
    lower = beginning if lower is None else lower
    base = lower[: lower.rindex("#") + 1]
    bound = upper[len(base) :] if upper is not None and upper.startswith(base) else None
    rank = base + _middle(lower[len(base) :], bound)
    return rank if len(rank.encode()) <= MAX_SORT_KEY_BYTES else None


def evenly_spaced_ranks(level: str, count: int) -> Sequence[str]:
    """New ranks for so many siblings of a level, evenly spaced."""
    width = 1
    while len(DIGITS) ** width <= 2 * count:
        width += 1
    step = len(DIGITS) ** width // (count + 1)
    return [f"{level}##{_number(place * step, width)}V" for place in range(1, count + 1)]


def _middle(lower: str, upper: str | None) -> str:
    """The digits of a fraction between two others, `upper` None: 1; the last digit is never 0."""
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
