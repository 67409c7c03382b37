"""Ranks: the sort keys of siblings, and manual ones between those of two neighbours (fractional indexing).

The first rank of a node is its level and its encoded segment, each closed by `#`: `CITY#Omaha#`. A manual rank is the
first rank of a neighbour, or a lone `#` at the beginning, followed by digits: `CITY#Omaha#` < `CITY#Omaha#V`. The
digits are a fraction, so there is room between any two, until a rank is too long for a key. No first rank equals a
manual one, since no segment holds a bare `#`.

The last digits are random, so that writers who do not know of each other seldom give two siblings one rank. At an end
of the siblings a new rank is near its only neighbour, so that thousands of nodes can be moved there one after another
before ranks get another digit.
"""

import re
import secrets
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile, zip_longest

from store.errors import BadInput, shorten
from store.model.keys import MAX_SORT_KEY_BYTES

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in byte order, all above `%`
BASE = len(DIGITS)
ROOM = BASE**3  # at least, for a new rank
STEP = BASE**2  # to the only neighbour, at most

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
    return _fitting(rank)


def rank_between(level: str, lower: str | None, upper: str | None) -> str | None:
    """A rank of this level between the ranks of two neighbours, None at either end.

    None where it is too long for a key; then some neighbours need new ranks.
    """
    base, low, high, width = _gap(level, lower, upper, ROOM)
    if lower is None and high < BASE**width:
        place = high - _about(STEP)
    elif high == BASE**width and low:
        place = low + _about(STEP)
    else:
        place = low + _about((high - low) * 2 // 3)
    return _fitting(base + _digits(place, width))


def ranks_between(level: str, lower: str | None, upper: str | None, count: int) -> list[str] | None:
    """So many ranks of this level in their order between those of two neighbours, None at either end, about evenly
    spaced; None where one is too long for a key.
    """
    base, low, high, width = _gap(level, lower, upper, ROOM * (count + 1))
    step = (high - low) // (count + 1)
    ranks = [_fitting(base + _digits(low + step * place + _about(step // 2), width)) for place in range(count)]
    return None if None in ranks else [rank for rank in ranks if rank is not None]


def ordered_ranks(level: str, ranks: Sequence[str | None], taken: Iterable[str] = ()) -> list[str]:
    """The ranks of siblings of a level in their order, where most of those that they have stay: the longest sequence of
    ranks that ascend. None is a node without one. New ranks come after those that are `taken` in the same place.
    """
    others = sorted(rank for rank in taken if rank.startswith(f"{level}#"))
    ends: list[str] = []  # the least last rank of an ascending sequence, by its length
    lengths: list[int] = []
    for rank in ranks:
        place = bisect_left(ends, rank) if rank is not None else -1
        if rank is not None:
            ends[place : place + 1] = [rank]
        lengths.append(place)
    found: list[str | None] = [None] * len(ranks)
    wanted = len(ends) - 1
    for index in reversed(range(len(ranks))):
        if wanted >= 0 and lengths[index] == wanted:
            found[index], wanted = ranks[index], wanted - 1
    start = 0
    for index, rank in enumerate([*found, None]):
        if rank is not None or index == len(found):
            at = bisect_left(others, rank) if rank is not None else len(others)
            lower = max([*others[at - 1 : at], *filter(None, found[start - 1 : start])], default=None)
            between = ranks_between(level, lower, rank, index - start)
            if between is None:  # too long for keys
                return ranks_between(level, None, None, len(ranks)) or [*map(str, ranks)]
            found[start:index] = between
            start = index + 1
    return [*map(str, found)]


def _gap(level: str, lower: str | None, upper: str | None, room: int) -> tuple[str, int, int, int]:
    """What ranks between two neighbours begin with, and the bounds of their digits, as numbers of so many places that
    there are at least `room` between them.
    """
    lower = f"{level}##" if lower is None else lower
    base = lower[: lower.rindex("#") + 1]
    low = lower[len(base) :]
    high = upper[len(base) :] if upper is not None and upper.startswith(base) else None
    width = _least_width(low, high)
    while True:
        bounds = _value(low, width), BASE**width if high is None else _value(high, width)
        if bounds[1] - bounds[0] > room:
            return base, *bounds, width
        width += 1


def _least_width(low: str, high: str | None) -> int:
    """The least number of places with which there may be much between two fractions; `high` is None for 1."""
    if high is None:
        return 1 + _run(low, DIGITS[-1])
    both = zip_longest(low, high, fillvalue=DIGITS[0])
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
    rest = low[same:], high[same:]
    if not rest[0] or DIGITS.index(rest[1][0]) - DIGITS.index(rest[0][0]) > 1:
        return 1 + same
    return 1 + same + min(_run(rest[0][1:], DIGITS[-1]), _run(rest[1][1:].ljust(len(rest[0]), DIGITS[0]), DIGITS[0]))


def _run(digits: str, digit: str) -> int:
    """How often a digit stands at the beginning."""
    return len(digits) - len(digits.lstrip(digit))


def _about(size: int) -> int:
    """A random number from the upper half of those up to a size."""
    return size - secrets.randbelow(size // 2)


def _fitting(rank: str) -> str | None:
    return rank if len(rank.encode()) <= MAX_SORT_KEY_BYTES else None


def _value(digits: str, width: int) -> int:
    """The first digits of a fraction, as a number of so many places."""
    value = 0
    for digit in digits[:width].ljust(width, DIGITS[0]):
        value = value * BASE + DIGITS.index(digit)
    return value


def _digits(value: int, width: int) -> str:
    """The digits of a fraction from a number of so many places; the last one is never 0."""
    digits = ""
    for _ in range(width):
        value, digit = divmod(value, BASE)
        digits = DIGITS[digit] + digits
    return digits.rstrip(DIGITS[0])
