"""Codes of statistics and catalogues: each that begins with another one is below it.

`11 111 1111`, `BE BE1 BE10`, `01 01.1 01.11`, `A01.111`; with zeros at their ends, as `71000000 71100000`; in ranges,
as `31-33`, which holds `311`. In an outline, where 1.10 follows 1.9, numbers are whole.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import pairwise

_RANGE = re.compile(r"(\w*\d)\s*[-–—]\s*(\w*\d)")
_DIVIDER = re.compile(r"[\W_]+")
_WORD = re.compile(r"(?<=[\W_])[^\W\d_]+")
_SIGNS = " .,:;/-–—_"
_LEVELS = ((1, 1), (2, 1), (3, 1), (2, 2), (3, 3))  # characters of the first level, and of each below
MAX_GAP = 3  # between the last number of one digit and the first of two, where a section was removed
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
