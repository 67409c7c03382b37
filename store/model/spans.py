"""Spans: sets of texts as parts of their order, such as the parts of a key range that a condition leaves."""

from bisect import bisect_left, bisect_right

Span = tuple[str, str | None]  # from the first text up to the second, which is not in it; None: to the end
Spans = tuple[Span, ...]  # in order, without a common text

EVERYTHING: Spans = (("", None),)


def contains(spans: Spans, text: str) -> bool:
    place = bisect_right(spans, text, key=_lo)
    if place == 0:
        return False
    hi = spans[place - 1][1]
    return hi is None or text < hi


def union(*sets: Spans) -> Spans:
    """The texts that are in one of these sets; none for none."""
    found: list[Span] = []
    for lo, hi in sorted([span for spans in sets for span in spans], key=_lo):
        if hi is not None and hi <= lo:
            continue
        start, end = found[-1] if found else (lo, "")
        if found and (end is None or lo <= end):
            found[-1] = (start, None if end is None or hi is None else max(end, hi))
        else:
            found.append((lo, hi))
    return tuple(found)


def complement(spans: Spans) -> Spans:
    """All other texts."""
    found: list[Span] = []
    start: str | None = ""
    for lo, hi in spans:
        if start is not None and start < lo:
            found.append((start, lo))
        start = hi
    return tuple(found) if start is None else (*found, (start, None))


def intersection(*sets: Spans) -> Spans:
    """The texts that are in each of these sets; all for none."""
    return complement(union(*[complement(spans) for spans in sets]))


def clipped(spans: Spans, lo: str, hi: str) -> Spans:
    """The texts of a set from one text up to another."""
    first = max(bisect_right(spans, lo, key=_lo) - 1, 0)
    last = bisect_left(spans, hi, key=_lo)
    parts = [(max(lo, start), hi if end is None else min(hi, end)) for start, end in spans[first:last]]
    return tuple([(start, end) for start, end in parts if start < end])


def prefix_span(prefix: str) -> Span:
    """The texts that begin with a prefix."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return (prefix, None)
    following = ord(kept[-1]) + 1
    return (prefix, kept[:-1] + chr(0xE000 if following == 0xD800 else following))  # no text has surrogates


def _lo(span: Span) -> str:
    return span[0]
