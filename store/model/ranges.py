"""Key ranges: the part of one index that holds a subtree, the children of a node or a level."""

from dataclasses import dataclass

from store.model.keys import Index, level_partition


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A contiguous range of one partition of one order: `lo <= key < hi`."""

    index: Index
    partition: str
    lo: str
    hi: str

    def after(self, key: str) -> "KeyRange":
        """What of the span lies behind `key`."""
        return KeyRange(self.index, self.partition, max(self.lo, just_after(key)), self.hi)

    def before(self, key: str) -> "KeyRange":
        """What of the span lies in front of `key`."""
        return KeyRange(self.index, self.partition, self.lo, min(self.hi, key))


def just_after(key: str) -> str:
    """The least bound above `key` and below everything that follows it: no key goes on with `!`."""
    return key + "!"


def subtree(pk: str, sk: str) -> KeyRange:
    """A node and all below it, in path order."""
    return KeyRange(Index.TABLE, pk, sk, sk[:-1] + "$")


def below(pk: str, sk: str) -> KeyRange:
    """All below a node, without it."""
    return subtree(pk, sk).after(sk)


def children(pk: str, sk: str, level: str | None = None) -> KeyRange:
    """The children of one node in sibling order, of one level or of all."""
    return siblings(pk + sk, level)


def siblings(parent: str, level: str | None = None) -> KeyRange:
    """A partition of `by_parent` (`location#US#NE#`, or `location` for the roots), of one level or of all."""
    if level is None:
        return KeyRange(Index.BY_PARENT, parent, "A", just_after("["))  # levels are upper-case names
    return KeyRange(Index.BY_PARENT, parent, f"{level}#", f"{level}$")


def level_range(pk: str, level: str, depth: int, lo: str, hi: str) -> KeyRange:
    """The nodes of one level and depth of a tree whose keys lie between two bounds, in key order."""
    return KeyRange(Index.BY_LEVEL, level_partition(pk, level, depth), lo, hi)


def level_range_below(pk: str, sk: str, level: str, depth: int) -> KeyRange:
    """The nodes of one level and depth below a node."""
    return level_range(pk, level, depth, sk, sk[:-1] + "$")


def segments_between(sk: str, start: str | None, end: str | None) -> tuple[str, str]:
    """The bounds of keys below `sk` whose next segment lies in `start <= segment < end`, in key order; both are encoded
    as segments are in keys.
    """
    lo = sk + start + "#" if start is not None else just_after(sk)
    hi = just_after(sk + end) if end is not None else sk[:-1] + "$"
    return lo, max(lo, hi)
