"""Codes of statistics and catalogues: each that begins with another one is below it.

`11 111 1111`, `BE BE1 BE10`, `01 01.1 01.11`, `A01.111`; with zeros at their ends, as `71000000 71100000`; in ranges,
as `31-33`, which holds `311`. In an outline, where 1.10 follows 1.9, numbers are whole.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import gcd

from store.errors import shorten
from store.transfer.shapes.doubts import ENOUGH_ROWS, shape_doubt

_RANGE = re.compile(r"(\w*\d)\s*[-–—]\s*(\w*\d)")
_DIVIDER = re.compile(r"[\W_]+")
_WORD = re.compile(r"(?<=[\W_])[^\W\d_]+")
_SIGNS = " .,:;/-–—_"
_LEVELS = ((1, 1), (2, 1), (3, 1), (2, 2), (3, 3))  # characters of the first level, and of each below
MAX_GAP = 3  # between the last number of one digit and the first of two, where a section was removed
_NUMBERED = re.compile(r"(\D*)(\d+)", re.ASCII)
_SEPARATOR = re.compile(r"\s*[^\w\s'’(\[&+]|_")  # a sign, with blanks before it or not
_NUMBERS = re.compile(r"\d+-\d+")  # of codes, such as 31-33
ENOUGH = 0.8  # of the codes of a length have the one above in the table, where their levels are so long


def code_parents(codes: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The codes that are below another one, each with the nearest; and those between which and that, or the root, a
    code of a length in use has no row.
    """
    cuts, is_outline = _without_zeros(codes), _is_outline(codes)
    spans = {code: (m[1], m[2]) for code in codes if (m := _RANGE.fullmatch(code)) and len(m[1]) == len(m[2])}
    if any(low >= high for low, high in spans.values()) or any(code.count("-") > 1 for code in codes):
        spans = {}  # the sign divides the parts of codes
    ranges: defaultdict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for code, (low, high) in sorted(spans.items(), key=lambda span: span[1][1]):
        ranges[len(low)].append((low, high, code))
    for found in ranges.values():
        found.sort(key=lambda one: one[0], reverse=True)  # the narrowest that holds a code is the first
    known = {cut: code for code, cut in cuts.items()}

    def above(code: str, low: str, high: str) -> str | None:
        for end in range(len(low), 0, -1):
            is_part = end < len(low) and _is_whole(low, end, is_outline=is_outline)
            if is_part and (other := known.get(low[:end].rstrip(_SIGNS), code)) != code:
                return other
            for first, last, other in ranges.get(end, ()):
                if other != code and first <= low[:end] and high[:end] <= last:
                    return other
        return None

    def size(code: str) -> int:
        parts = _DIVIDER.split(spans[code][0] if code in spans else _WORD.sub("x", cuts[code]))
        return len(parts) if is_outline else len("".join(parts))

    parents = {code: other for code, cut in cuts.items() if (other := above(code, *spans.get(code, (cut, cut))))}
    sizes = {code: size(code) for code in codes}
    used = {sizes[code] for pair in parents.items() for code in pair}
    return parents, [
        code for code, own in sizes.items() if any(sizes.get(parents.get(code, ""), 0) < one < own for one in used)
    ]


def _is_whole(code: str, end: int, *, is_outline: bool) -> bool:
    """Whether a code may begin with another one that ends here: not in a number of an outline, nor in a word after a
    divider, as `AZ-BAB` and `AZ-BA` are siblings.
    """
    both = code[end - 1 : end + 1]
    return not (is_outline and both.isdecimal()) and not (both.isalpha() and bool(_DIVIDER.search(code, 0, end)))


def _is_outline(codes: Collection[str]) -> bool:
    """Whether most numbers of two digits follow those of one digit, as 1.10 follows 1.9, perhaps with a few gaps."""
    groups: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for code in codes:
        *parts, last = _DIVIDER.split(code)
        groups[tuple(parts)].add(last)
    counts = [0, 0]
    for found in groups.values():
        numbers = {int(one) for one in found if one.isdecimal()}
        small, large = {one for one in numbers if one < 10}, {one for one in numbers if one >= 10}
        if any(one[0] == "0" and one != "0" for one in found if one.isdecimal()):
            counts[False] += 1
        elif small and large:
            counts[min(large) - max(small) <= MAX_GAP and 2 * len(large) > max(large) - 10] += 1
    return counts[True] > counts[False]


def _without_zeros(codes: Collection[str]) -> Mapping[str, str]:
    """The codes, each without the zeros at its end where all are of one length and zeros stand for levels below."""
    best, most, lengths = {code: code for code in codes}, 0.0, {len(code) for code in codes}
    for first, step in _LEVELS if len(lengths) == 1 else ():
        if (max(lengths) - first) % step:
            continue
        cuts = {}
        for code in codes:
            rest = max(0, len(code.rstrip("0")) - first)
            cuts[code] = code[: first - -rest // step * step]
        known, sizes = {*cuts.values()}, sorted({len(cut) for cut in cuts.values()})
        least = 0.0 if len(sizes) < 2 else 1.0
        for shorter, size in pairwise(sizes):
            found = [cut[:shorter] in known for cut in known if len(cut) == size]
            least = min(least, sum(found) / len(found))
        if least > most:
            best, most = cuts, least
        if most >= ENOUGH:
            break
    return best


def see_codes(place: str, codes: Collection[str], options: Sequence[str] = ()) -> None:
    """Raise Doubt for codes of which most begin with another one; `options` import this tree."""
    if nested := nested_keys(codes):
        raise shape_doubt(
            f'{place} looks like a tree by codes: most begin with another one, such as "{shorten(nested[0])}" with '
            f'"{shorten(nested[1])}", and all would become siblings',
            options,
        )


def nested_keys(keys: Collection[str]) -> tuple[str, str] | None:
    """A root, and the longest other one that it begins with, where most of the roots begin with another one.

    What follows is a separator, or the keys are codes: `71`, `711` and `A01`, `A01.1`, also such as `71000000`,
    `71100000`. Numbers that follow one another without large gaps are no such codes.
    """
    if len(keys) < ENOUGH_ROWS:
        return None
    if 5 * len(ranges := [*filter(_NUMBERS.fullmatch, keys)]) <= len(keys):
        keys = {*keys} - {*ranges} | {key.partition("-")[0] for key in ranges}
    codes = {key for key in keys if any(map(str.isdecimal, key)) and not any(map(str.isspace, key))}
    are_codes = len(codes) >= 0.5 * len(keys) and not _are_consecutive(codes)
    found = _beginnings(keys, are_codes=are_codes)
    if are_codes and not found and len({len(key) for key in keys}) == 1:
        padded = {re.sub("(00)+$", "", key): key for key in keys}
        found = [(padded[key], padded[above]) for key, above in _beginnings(padded, are_codes=True)]
        found = found if len(found) >= 0.9 * sum(len(key) > 2 for key in padded) else []
    return max(found, key=lambda pair: (len(pair[1]), pair)) if len(found) * 2 >= len(keys) else None


def _beginnings(keys: Collection[str], *, are_codes: bool) -> list[tuple[str, str]]:
    """The keys that begin with other ones, each with the longest of these."""
    found: list[tuple[str, str]] = []
    stack: list[str] = []
    for key in sorted(keys):
        while stack and not key.startswith(stack[-1]):
            stack.pop()
        above = next((one for one in reversed(stack) if are_codes or _SEPARATOR.match(key, len(one))), None)
        if above:
            found.append((key, above))
        stack.append(key)
    return found


def _are_consecutive(codes: Iterable[str]) -> bool:
    """Whether codes are numbers, with the same letters before them or several, that fill at least half their range.

    Codes of two digits below those of one have no number that ends in 0.
    """
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for code in codes:
        if not (parts := _NUMBERED.fullmatch(code)):
            return False
        numbers[parts[1]].add(int(parts[2]))
    step = gcd(*(number for found in numbers.values() for number in found)) or 1
    ranges = sum((max(found) - min(found)) // step + 1 for found in numbers.values())
    has_tens = any(number % 10 == 0 for found in numbers.values() for number in found) or step > 1 or ranges < 20
    return has_tens and sum(map(len, numbers.values())) * 2 >= ranges
