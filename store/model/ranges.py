"""Key ranges: the part of one index that holds a subtree, the children of a node, or a level.

Every range is `partition key = ... AND lo <= sort key < hi`. As key conditions of DynamoDB, for the node at `pk`, `sk`:

| range | index | key condition | nodes |
| --- | --- | --- | --- |
| `subtree` | table | `pk = :pk AND begins_with(sk, :sk)` | a node and its descendants, depth-first |
| `below` | table | the same, without the node itself | its descendants |
| `children` | by_parent | `parent = :pk_sk` | its children, in sibling order |
| `children` of a level | by_parent | `parent = :pk_sk AND begins_with(rank, "CITY#")` | those of the level |
| `siblings` | by_parent | `parent = :parent` | the children of any parent, or the roots of a hierarchy |
| `level_range` | by_level | `tier = :pk@CITY@2 AND sk BETWEEN :lo AND :hi` | nodes of a level between two bounds |

DynamoDB is sent BETWEEN for all of them (`store/dynamodb/codec.py`), since a page can begin and end anywhere.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from store.model.keys import Index, level_partition

_END = "$"  # behind `#`, which closes a segment, and before every character of a name


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A contiguous range of one partition of one index: `lo <= sort key < hi`."""

    index: Index
    partition: str
    lo: str
    hi: str

    def after(self, key: str) -> "KeyRange":
        """The part of this range behind `key`."""
        return KeyRange(self.index, self.partition, max(self.lo, just_after(key)), self.hi)

    def before(self, key: str) -> "KeyRange":
        """The part of this range in front of `key`."""
        return KeyRange(self.index, self.partition, self.lo, min(self.hi, key))


def just_after(key: str) -> str:
    """The least bound above `key` and below all longer keys that begin with it, which never continue with `!`."""
    return key + "!"


def just_before(key: str) -> str:
    """The bound right below `key`, the text of a node's key, which ends with `#`; no other key lies between them."""
    return just_after(key[:-1])


def prefix_end(prefix: str) -> str:
    """The upper bound of `begins_with(sort key, prefix)`, for a prefix that ends with `#`."""
    return prefix[:-1] + _END


def subtree(pk: str, sk: str) -> KeyRange:
    """`begins_with(sk, :sk)`: a node and all its descendants, in path order."""
    return KeyRange(Index.TABLE, pk, sk, prefix_end(sk))


def below(pk: str, sk: str) -> KeyRange:
    """All descendants of a node, without it."""
    return subtree(pk, sk).after(sk)


def children(pk: str, sk: str, level: str | None = None) -> KeyRange:
    """`parent = :parent`: the children of one node in sibling order, of one level or of all."""
    return siblings(pk + sk, level)


def siblings(parent: str, level: str | None = None) -> KeyRange:
    """`parent = :parent`: a partition of `by_parent` (`location#US#NE#`, of roots `location`), or one level of it."""
    if level is None:
        return KeyRange(Index.BY_PARENT, parent, "A", just_after("["))  # levels are upper-case names
    return KeyRange(Index.BY_PARENT, parent, f"{level}#", prefix_end(f"{level}#"))


def level_range(pk: str, level: str, depth: int, lo: str, hi: str) -> KeyRange:
    """`tier = :tier`: the nodes of one level and depth of a tree whose sort keys lie between two bounds."""
    return KeyRange(Index.BY_LEVEL, level_partition(pk, level, depth), lo, hi)


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
        if found and (found[-1][1] is None or lo <= found[-1][1]):
            found[-1] = (found[-1][0], _later(found[-1][1], hi))
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


def _later(one: str | None, other: str | None) -> str | None:
    return None if one is None or other is None else max(one, other)


def _lo(span: Span) -> str:
    return span[0]
