"""Codes of statistics and catalogues, numbers of outlines, and paths of ids: each that begins with another one is below
it.

Codes by position are cut at any character, as `11 111 1111`, `BE BE1 BE10`, `01 01.1 01.11`, `A01.111`; with zeros at
their ends, as `71000000 71100000`, and a check character behind, as `71000000-8`; in ranges, as `31-33`, which holds
`311`; with signs for any characters, as `12-XX` above `12Axx` and that above `12A05`. In others the parts between signs
are whole: `1.1` is no part of `1.10`, nor `1/2/3` of `1/2/30`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import gcd

from store.errors import shorten
from store.transfer.shapes.doubts import ENOUGH_ROWS, shape_doubt

BY_POSITION = "none"  # as split=none says it
_WHOLE = "whole"  # parts between any signs
_RANGE = re.compile(r"(\w*\d)\s*[-–—]\s*(\w*\d)")
_PLACES = re.compile(r"(\w[\w.-]*?)[\W_]?(?:X{2,}|(?<![a-z])x+|(?<=[\d\W])X|\*+)")  # ends with signs for any characters
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
_CHECKED = re.compile(r"([^\W_]+)[^\w\s][^\W_]")
_DIVIDER = re.compile(r"[\W_]+")
_END = re.compile(r"[\W_]+\Z")
_NUMBER_AT_END = re.compile(r"(?<!\d)\d{1,9}\Z")
_PADDED = re.compile(r"(?<!\d)0\d+\Z")
_WORD = re.compile(r"(?<=[\W_])[^\W\d_]+")
_LEVELS = ((1, 1), (2, 1), (3, 1), (2, 2), (3, 3))  # characters of the first level, and of each below
MAX_GAP = 3  # between the last number of one digit and the first of two, where a section was removed
_NUMBERED = re.compile(r"(\D*)(\d{1,18})")
_SEPARATOR = re.compile(r"\s*[^\w\s'’(\[&+]|_")  # a sign, with blanks before it or not
_NUMBERS = re.compile(r"\d+-\d+")  # of codes, such as 31-33
MAX_CODE = 200  # characters: longer texts, such as images, are no codes
ENOUGH = 0.8  # of the codes of a length have the one above in the table, where their levels are so long


def code_parents(codes: Collection[str], split: str = "") -> tuple[dict[str, str], list[str]]:
    """The codes that are below another one, each with the nearest; and those between which and that, or the root, a
    code of a length in use has no row. Parts between the signs of `split` are whole.
    """
    groups, by_groups = _without_places(codes)
    spans = {} if groups else _spans(codes)
    is_plain = bool(groups) or split not in ("", BY_POSITION)
    cuts = {code: code for code in codes} | groups if is_plain else _without_zeros(_without_check(codes))
    split = split or by_groups or _reading([cut for code, cut in cuts.items() if code not in spans])[0]
    ranges: defaultdict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for code, (low, high) in sorted(spans.items(), key=lambda span: span[1][1]):
        ranges[len(low)].append((low, high, code))
    for found in ranges.values():
        found.sort(key=lambda one: one[0], reverse=True)  # the narrowest that holds a code is the first
    known = {cut: code for code, cut in cuts.items()}
    known = {_END.sub("", cut): code for cut, code in known.items()} | known  # as in 1. and 1.1.

    def above(code: str, low: str, high: str) -> str | None:
        for end in range(len(low), 0, -1):
            if end < len(low) and (other := known.get(low[:end], code)) != code and _may_end(low, end, split):
                return other
            for first, last, other in ranges.get(end, ()):
                if other != code and first <= low[:end] and high[:end] <= last:
                    return other
        return None

    def size(code: str) -> int:
        cut = _END.sub("", spans[code][0] if code in spans else cuts[code])
        if split != BY_POSITION:
            return len((_DIVIDER if split == _WHOLE else re.compile(f"[{re.escape(split)}]+")).split(cut))
        return len(_DIVIDER.sub("", _WORD.sub("x", cut)))

    parents = {code: other for code, cut in cuts.items() if (other := above(code, *spans.get(code, (cut, cut))))}
    if groups:  # a code is below a group as narrow as those of others that look like it
        forms = {code: _DIGIT.sub("9", _LETTER.sub("A", code)) for code in codes}
        levels: defaultdict[str, int] = defaultdict(int)
        for code, form in forms.items():
            levels[form] = max(levels[form], len(cuts.get(parents.get(code, ""), "")))
        return parents, [code for code in codes if len(cuts.get(parents.get(code, ""), "")) < levels[forms[code]]]
    sizes = {code: size(code) for code in codes}
    used = {sizes[code] for pair in parents.items() for code in pair}
    return parents, [
        code for code, own in sizes.items() if any(sizes.get(parents.get(code, ""), 0) < one < own for one in used)
    ]


def section_parents(codes: Sequence[str], parents: Mapping[str, str]) -> dict[str, str]:
    """The roots that follow a single letter, each with this: in statistics the divisions of a section, as `01` of `A`.

    None where letters have codes below them, or do not stand before their divisions in the order of the file.
    """
    letters = {code for code in codes if len(code) == 1 and code.isalpha()} - {*parents}
    found: dict[str, str] = {}
    above = ""
    for code in codes if codes and codes[0] in letters and letters.isdisjoint(parents.values()) else ():
        if code in letters:
            above = code
        elif code not in parents:
            if not code[0].isdecimal():
                return {}
            found[code] = above
    return found if len({*found.values()}) > 1 and 2 * len({*found.values()}) >= len(letters) else {}


def _without_places(codes: Collection[str]) -> tuple[dict[str, str], str]:
    """The codes that stand for all that begin like them, such as `12-XX` and `1xx`, each without signs for any
    character, and how codes are split below them; none where not nearly all others are below them.
    """
    found = {code: match[1] for code in codes if (match := _PLACES.fullmatch(code)) and match[1] not in codes}
    starts, others = {*found.values()}, [code for code in codes if code not in found]
    ends = [[end for end in range(1, len(code)) if code[:end] in starts] for code in others]
    used = {code[:end] for code, own in zip(others, ends, strict=True) for end in own}
    whole = sum(any(_may_end(code, end, _WHOLE) for end in own) for code, own in zip(others, ends, strict=True))
    are_groups = len(starts) == len(found) > 1 and 2 * len(used) >= len(starts)
    if not are_groups or sum(map(bool, ends)) < 0.9 * len(others):
        return {}, ""
    return found, _WHOLE if whole >= 0.9 * len(others) else BY_POSITION


def _spans(codes: Collection[str]) -> Mapping[str, tuple[str, str]]:
    """The first and the last code of each range; none where the sign divides the parts of codes."""
    found = {code: (m[1], m[2]) for code in codes if (m := _RANGE.fullmatch(code))}
    spans = {code: ends for code, ends in found.items() if len(ends[0]) == len(ends[1])}
    others = spans if len(spans) * 2 >= len(codes) else found.keys() - spans.keys()
    are_ranges = {*codes}.isdisjoint(found[code][0] for code in others) and not any(a >= b for a, b in spans.values())
    return spans if are_ranges and not any(code.count("-") > 1 for code in codes) else {}


def _may_end(code: str, end: int, split: str) -> bool:
    """Whether another code may end here in a code: not in a whole part, nor in a word after a divider, as `AZ-BAB` and
    `AZ-BA` are siblings.
    """
    both = code[end - 1 : end + 1]
    if split not in (BY_POSITION, _WHOLE):
        return not {code[end - 1], code[end], code[end:].lstrip()[:1]}.isdisjoint(split)
    if split == _WHOLE:
        return not both.isdecimal() and not both.isalpha()
    return not (both.isalpha() and bool(_DIVIDER.search(code, 0, end)))


def _reading(codes: Iterable[str]) -> tuple[str, str]:
    """How codes are split, and how else they may be meant, empty where that is clear.

    Signs of codes by position are at the same places in all, so that `x.x.x` beside `x.xx` has whole parts.
    """
    known = {_END.sub("", code) for code in codes}
    for sign in "/\\|":
        above = [code.rpartition(sign)[0] for code in known if sign in code[1:]]
        are_paths = sum(one in known for one in above) * 2 >= len(above)
        if above and are_paths and len(above) * 2 >= sum(bool(_DIVIDER.search(code, 1)) for code in known):
            return sign, ""
    cut = [
        (code, end) for code in known for end in range(1, len(code))
        if code[:end] in known and _may_end(code, end, BY_POSITION) and not _may_end(code, end, _WHOLE)
    ]  # fmt: skip
    if sum(bool(_PADDED.search(code[: end + 1])) for code, end in cut) * 5 >= len(cut):  # also if none is cut
        return BY_POSITION, ""
    signs = {sign: "" for code in known for sign in code if not sign.isalnum()}
    if not signs:
        return (_WHOLE if _are_consecutive(known) else BY_POSITION), ""
    sizes = Counter(place for code in known for place in range(len(code)))
    signed = Counter(place for code in known for place, sign in enumerate(code) if not sign.isalnum())
    others = [
        code for code in known
        if any(sign.isalnum() == (signed[place] * 2 > sizes[place]) for place, sign in enumerate(code))
        and any(code[: found.start()] in known for found in _DIVIDER.finditer(code))
    ]  # fmt: skip
    is_outline, is_clear = _is_outline(known)
    is_outline = is_outline or (not is_clear and len(others) * 10 >= len({code for code, _ in cut}))
    split, other = (_WHOLE, BY_POSITION) if is_outline else (BY_POSITION, "".join(signs).strip())
    return split, "" if is_clear else other


def _is_outline(codes: Collection[str]) -> tuple[bool, bool]:
    """Whether most numbers of two digits follow those of one digit, as 1.10 follows 1.9, perhaps with gaps, or are not
    those of one digit with another one behind; and whether that is clear.
    """
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for code in codes:
        if number := _NUMBER_AT_END.search(code):
            groups[code[: number.start()]].add(number[0])
    counts, sure = [0, 0], 0
    for found in groups.values():
        small, large = {int(one) for one in found if len(one) == 1}, {int(one) for one in found if len(one) > 1}
        if not small or not large or (len(small) == 1 and large == {10 * max(small)}):
            continue
        lengths = {*map(len, found)}
        above = [one[: max(size for size in lengths if size < len(one))] for one in found if len(one) > 1]
        follows = min(large) - max(small) <= MAX_GAP and 2 * len(large) > max(large) - 10
        is_first = len(small) > 1 and min(large) == 10 and max(large) < 20
        is_lost = sum(one not in found for one in above) * 5 >= len(large)
        is_outline = (follows or is_first or is_lost) and not any(map(_PADDED.search, found))
        counts[is_outline] += 1
        sure += not is_outline and len(found & {*above}) * 2 > len(small) > 1
    is_outline = counts[True] > counts[False]
    return is_outline, not counts[False] if is_outline else 0 < counts[False] <= 2 * sure


def _without_check(codes: Collection[str]) -> Mapping[str, str]:
    """The codes, each without the check character behind a sign at the end, where all of one length have one."""
    found = {code: match[1] for code in codes if (match := _CHECKED.fullmatch(code))}
    is_one_form = len({*map(len, codes)}) == 1 and len({code[-1] for code in codes}) > 1
    return found if is_one_form and len({*found.values()}) == len(codes) else {code: code for code in codes}


def _without_zeros(codes: Mapping[str, str]) -> Mapping[str, str]:
    """The codes, each without the zeros at its end where all are of one length and zeros stand for levels below."""
    best, most, lengths = codes, 0.0, {*map(len, codes.values())}
    for first, step in _LEVELS if len(lengths) == 1 else ():
        if (max(lengths) - first) % step:
            continue
        cuts = {}
        for code, body in codes.items():
            rest = max(0, len(body.rstrip("0")) - first)
            cuts[code] = body[: first - -rest // step * step]
        known, sizes = {*cuts.values()}, sorted({len(cut) for cut in cuts.values()})
        pairs = [[cut[:shorter] in known for cut in known if len(cut) == size] for shorter, size in pairwise(sizes)]
        shares = [sum(found) / len(found) for found in pairs] or [0.0]
        if min(shares) > most:
            best, most = cuts, min(shares)
        if shares[0] >= ENOUGH and min(shares) >= 0.5 and sum(map(sum, pairs)) >= ENOUGH * sum(map(len, pairs)):
            return cuts
    return best


def see_codes(place: str, codes: Collection[str], tree_by: Callable[..., list[str]] | None = None) -> None:
    """Raise Doubt for codes of which most begin with another one; `tree_by` makes the options that import this tree."""
    if nested := nested_keys(codes):
        other = "" if _without_places(codes)[0] else _reading({*codes} - _spans(codes).keys())[1]
        readings = [tree_by(**parts) for parts in ({}, {"split": other})[: 1 + bool(other)]] if tree_by else []
        raise shape_doubt(
            f'{place} looks like a tree by codes: most are below another one, such as "{shorten(nested[0])}" '
            f'below "{shorten(nested[1])}", and all would become siblings',
            *readings,
        )


def is_one_word(key: str) -> bool:
    """Whether a key has no blanks, or, as `01 05`, no letters."""
    return not any(map(str.isspace, key)) or not any(map(str.isalpha, key))


def nested_keys(keys: Collection[str]) -> tuple[str, str] | None:
    """A root, and the longest other one that it begins with, where most of the roots begin with another one.

    What follows is a separator, or the keys are codes: `71`, `711` and `A01`, `A01.1`, also such as `71000000`,
    `71100000`. Numbers that follow one another without large gaps are no such codes.
    """
    if len(keys) < ENOUGH_ROWS or max(map(len, keys)) > MAX_CODE:
        return None
    codes = {key for key in keys if any(map(str.isdecimal, key)) and is_one_word(key)}
    sections = {_NUMBER_AT_END.sub("", code) for code in codes}
    are_numbers = _are_consecutive([*_without_check(codes).values()]) and sections.isdisjoint(keys)
    are_codes = len(codes) >= 0.5 * len(keys) and not are_numbers
    if not are_codes:
        ends = ((key, end) for key in keys for end in range(1, len(key)) if _SEPARATOR.match(key, end))
        known = {*keys}
        found = [*{key: key[:end] for key, end in ends if key[:end] in known}.items()]
    else:
        (parents, jumps), are_alike = code_parents(keys), len({*map(len, keys)}) == 1
        may_have_ranges = are_alike or sum(bool(_NUMBERS.fullmatch(key)) for key in keys) * 5 <= len(keys)
        found = [pair for pair in parents.items() if may_have_ranges or not _NUMBERS.fullmatch(pair[1])]
        if are_alike and sum(code not in parents for code in jumps) * 10 > len(keys):
            found = []  # numbers such as years, of which some end with zeros
    return max(found, key=lambda pair: (len(pair[1]), pair)) if len(found) * 2 >= len(keys) else None


def _are_consecutive(codes: Collection[str]) -> bool:
    """Whether codes are numbers, with the same letters before them or several, that fill at least half their range.

    Codes of two digits below those of one have no number that ends in 0.
    """
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    are_houses = sum(code[-1:].isalpha() for code in codes) * 3 <= len(codes)  # 7, 7a and 8 of a street
    for code in codes:
        if not (parts := _NUMBERED.fullmatch(code[:-1] if are_houses and code[-1:].isalpha() else code)):
            return False
        numbers[parts[1]].add(int(parts[2]))
    step = gcd(*(number for found in numbers.values() for number in found)) or 1
    ranges = sum((max(found) - min(found)) // step + 1 for found in numbers.values())
    has_tens = any(number % 10 == 0 for found in numbers.values() for number in found) or step > 1 or ranges < 20
    return has_tens and sum(map(len, numbers.values())) * 2 >= ranges
