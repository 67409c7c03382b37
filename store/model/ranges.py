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
