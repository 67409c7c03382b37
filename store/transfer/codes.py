"""Codes of statistics and catalogues: each that begins with another one is below it.

`11 111 1111`, `BE BE1 BE10`, `01 01.1 01.11`, `A01.111`; with zeros at their ends, as `71000000 71100000`; in ranges,
as `31-33`, which holds `311`. In an outline, where 1.10 follows 1.9, numbers are whole.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import pairwise

_RANGE = re.compile(r"(\w+)\s*[-–—]\s*(\w+)")
_DIVIDER = re.compile(r"[\W_]+")
_SIGNS = " .,:;/-–—_"
_LEVELS = ((1, 1), (2, 1), (3, 1), (2, 2), (3, 3))  # characters of the first level, and of each below
ENOUGH = 0.8  # of the codes of a length have the one above in the table, where their levels are so long


def code_parents(codes: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The codes that are below another one, each with the nearest; and those between which and that, or the root, a
    code of a length in use has no row.
    """
    cuts, is_outline = _without_zeros(codes), _is_outline(codes)
    spans = {code: (m[1], m[2]) for code in codes if (m := _RANGE.fullmatch(code)) and len(m[1]) == len(m[2])}
    if any(low >= high for low, high in spans.values()):
        spans = {}  # the sign divides the parts of codes
    ranges: defaultdict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for code, (low, high) in sorted(spans.items(), key=lambda span: span[1][1]):
        ranges[len(low)].append((low, high, code))
    for found in ranges.values():
        found.sort(key=lambda one: one[0], reverse=True)  # the narrowest that holds a code is the first
    known = {cut: code for code, cut in cuts.items()}

    def above(code: str, low: str, high: str) -> str | None:
        for end in range(len(low), 0, -1):
            is_within_number = is_outline and low[end - 1 : end + 1].isdecimal()
            if end < len(low) and not is_within_number and (other := known.get(low[:end].rstrip(_SIGNS), code)) != code:
                return other
            for first, last, other in ranges.get(end, ()):
                if other != code and first <= low[:end] and high[:end] <= last:
                    return other
        return None

    def size(code: str) -> int:
        parts = _DIVIDER.split(spans[code][0] if code in spans else cuts[code])
        return len(parts) if is_outline else len("".join(parts))

    parents = {code: other for code, cut in cuts.items() if (other := above(code, *spans.get(code, (cut, cut))))}
    sizes = {code: size(code) for code in codes}
    used = sorted({*sizes.values()})
    before = dict(zip(used, [0, *used], strict=False))
    return parents, [code for code, own in sizes.items() if sizes.get(parents.get(code, ""), 0) < before[own]]


def _is_outline(codes: Collection[str]) -> bool:
    """Whether most numbers of more than one digit follow those of one digit, as 1.10 follows 1.9."""
    groups: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for code in codes:
        *parts, last = _DIVIDER.split(code)
        groups[tuple(parts)].add(last)
    counts = [0, 0]
    for found in groups.values():
        numbers = {int(one) for one in found if one.isdecimal() and str(int(one)) == one}
        if max(map(len, found)) > 1 and numbers:
            follow = len(numbers) == len(found) and min(numbers) < 2 and max(numbers) - min(numbers) < len(numbers)
            counts[follow] += 1
    return len(groups) > 1 and counts[True] > counts[False]


def _without_zeros(codes: Collection[str]) -> Mapping[str, str]:
    """The codes, each without the zeros at its end where all are of one length and zeros stand for levels below."""
    best, most = {code: code for code in codes}, 0.5
    for first, step in _LEVELS if len({len(code) for code in codes}) == 1 else ():
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
