"""Keys: the layout of the table, and the codec between paths and keys.

A path is a tuple of segments, the root's first: `("US", "NE", "Omaha")`. Its first segment names the tree, which is a
partition (`location#US`). The others make the sort key, each closed by `#`: `#NE#Omaha#`, of the root `#`.

| item | pk | sk | made in |
| --- | --- | --- | --- |
| node | `location#US` | `#NE#Omaha#` | model/records.py |
| version of a tree, with its counts | `location#US` | `!` | metadata/tree_version.py |
| change log of a tree | `location#US` | `!000000000042` | metadata/tree_version.py |
| version, change log of a hierarchy's roots | `location` | `!`, `!000000000042` | the same |
| id of a node: its key, or a tombstone | `id#location:5074472` | `v0` | metadata/history.py |
| former revision of a node | `id#location:5074472` | `v0000000001` | metadata/history.py |
| redirect from a former place | `alias#location#US` | `#NE#Omaha#` | metadata/history.py |
| word of a node, for search | `words/location#o` | `omaha#0<weight>#5074472` | kinds/words.py |
| marker: what the search items are made of | `kinds/location` | `-` | kinds/marker.py |
| node that was moved with others below it, for search | `kinds/location` | `location:5074472` | kinds/lineage.py |
| large move | `moves` | the move's id | metadata/moves.py |
| result of a write, by idempotency key | `once#location:KEY` | `v0` | writing/edit_request.py |
| API key | `keys` | the key's id | api_keys.py |
| version of the table's schema | `!` | `layout` | metadata/tree_version.py |

| index | partition key | sort key | holds |
| --- | --- | --- | --- |
| the table | `pk` | `sk` | all items; a subtree: one range |
| `by_parent` | `parent`: `location#US#NE#`, of roots `location` | `rank`: `CITY#Omaha#` | nodes; children: one range |
| | `words/location#oma` | `0<weight><depth><name>#<id>` | word items: kinds/words.py |
| | `gone/<deletion>/2` | `#NE#Omaha#` | tombstones of one deletion: metadata/history.py |
| | `!` | `location` | versions of hierarchies' roots, so that one Query tells which hierarchies are stored |
| `by_level` | `tier`: `location#US@CITY@2` | `sk` | nodes; a level at one depth of a subtree: one range |

Only nodes have `tier`, so only they are in `by_level`. Only nodes, word items, tombstones and versions of roots have
`parent` and `rank`, in partitions of their own: no name of a hierarchy has a `/`. The indexes hold whole items.

In a key every character up to and including `%` is percent-encoded, all others stay as they are. So the `#` that
closes a segment and the `$` that ends a range sort below any character of a name, and the byte order of keys is the
depth-first order of the tree.

Key ranges: the part of one index that holds a subtree, the children of a node, or a level.

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

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

Path = tuple[str, ...]

MAX_SEGMENTS = 32
MAX_SORT_KEY_BYTES = 1024  # DynamoDB's limit, in UTF-8, for `sk` and `rank`
MAX_PARTITION_KEY_BYTES = 2048  # likewise for `pk`, `parent` and `tier`
MAX_ROOT_BYTES = 900  # so that root, sort key and a name of up to 64 bytes always fit into one partition key

_LOW = re.compile("[\x00-%]")
_ESCAPED = re.compile("%([0-9A-F]{2})")
_END = "$"  # behind `#`, which closes a segment, and before every character of a name


class Index(Enum):
    """The table and its two global secondary indexes, each by the names of its partition key and sort key."""

    TABLE = ("pk", "sk")
    BY_PARENT = ("parent", "rank")
    BY_LEVEL = ("tier", "sk")

    def __init__(self, partition: str, sort: str) -> None:
        self.partition = partition
        self.sort = sort


class Key(NamedTuple):
    """The primary key of one item."""

    pk: str
    sk: str

    def holds(self, other: "Key") -> bool:
        """Whether another key is in the subtree at this one, its top included; both are keys of nodes."""
        return self.pk == other.pk and other.sk.startswith(self.sk)

    def moved(self, source: "Key", target: "Key") -> "Key":
        """This key after the subtree at `source`, which holds it, was moved to `target`."""
        return Key(target.pk, target.sk + self.sk[len(source.sk) :])


def encode_segment(segment: str) -> str:
    """A segment as a part of a key: every character up to `%` percent-encoded."""
    return _LOW.sub(lambda match: f"%{ord(match[0]):02X}", segment)


def decode_segment(text: str) -> str:
    """The inverse of `encode_segment`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def tree_key(hierarchy: str, path: Path) -> str:
    """The partition key of the tree of a path: `location#US`."""
    return f"{hierarchy}#{encode_segment(path[0])}"


def log_partition(hierarchy: str, root: Path) -> str:
    """The partition with the version and log of a tree, or of the hierarchy's list of roots where `root` is empty."""
    return tree_key(hierarchy, root) if root else hierarchy


def sort_key(path: Path) -> str:
    """The sort key (`sk`) of a path: `#NE#Omaha#`, of a root `#`."""
    return "#" + "".join([encode_segment(segment) + "#" for segment in path[1:]])


def node_key(hierarchy: str, path: Path) -> Key:
    """The key of the node at a path; the inverse of `path_of`."""
    return Key(tree_key(hierarchy, path), sort_key(path))


def path_of(pk: str, sk: str) -> Path:
    """The path of the node at a key; the inverse of `node_key`."""
    root = decode_segment(pk[pk.index("#") + 1 :])
    return (root, *[decode_segment(segment) for segment in sk[1:-1].split("#")]) if len(sk) > 1 else (root,)


def hierarchy_of(pk: str) -> str:
    """The hierarchy of a tree's partition key."""
    return pk[: pk.index("#")]


def depth_of(sk: str) -> int:
    """The number of edges between a node and its root; a root has 0."""
    return sk.count("#") - 1


def parent_sort_key(sk: str) -> str:
    """The sort key of the parent; raises ValueError for a root."""
    return sk[: sk.rindex("#", 0, -1) + 1]


def ancestor_keys(key: Key) -> list[Key]:
    """The keys of all ancestors, the root first."""
    keys: list[Key] = []
    sk = key.sk
    while len(sk) > 1:
        sk = parent_sort_key(sk)
        keys.append(Key(key.pk, sk))
    return keys[::-1]


def parent_partition(pk: str, sk: str) -> str:
    """The partition key in `by_parent` of a node and its siblings: `location#US#NE#`, of a root `location`."""
    return pk + parent_sort_key(sk) if len(sk) > 1 else hierarchy_of(pk)


def last_segment(pk: str, sk: str) -> str:
    """The last segment of a node's path, encoded."""
    return sk[sk.rindex("#", 0, -1) + 1 : -1] if len(sk) > 1 else pk[pk.index("#") + 1 :]


def first_rank(level: str, segment: str) -> str:
    """The sort key in `by_parent` of a node that was not reordered: `CITY#Omaha#`, by level, then by segment."""
    return f"{level}#{segment}#"


def level_partition(pk: str, level: str, depth: int) -> str:
    """The partition key in `by_level` of the nodes of one level at one depth of a tree: `location#US@CITY@2`."""
    return f"{pk}@{level}@{depth}"


def id_key(node_id: str) -> Key:
    """The key of the id record of a node, which holds the node's key."""
    return Key(f"id#{node_id}", "v0")


def revision_key(node_id: str, revision: int) -> Key:
    """The key of a former revision of a node, in the partition of its id record."""
    return Key(f"id#{node_id}", f"v{revision:010d}")


def tree_version_key(partition: str) -> Key:
    """The key of the version of a tree (`location#US`) or of a hierarchy's roots (`location`)."""
    return Key(partition, "!")


def log_key(pk: str, number: int) -> Key:
    """The key of the log item of the transaction that incremented a version to `number`."""
    return Key(pk, f"!{number:012d}")


def index_name(index: Index) -> str:
    """The name of an index in both engines: `by_parent`, `by_level`."""
    return index.name.lower()


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


HIERARCHIES = KeyRange(Index.BY_PARENT, "!", "a", "{")  # which comes after z
"""The versions of the roots of all hierarchies, whose names begin with these letters."""


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


def listed(hierarchy: str) -> dict[str, str]:
    """The attributes by which `HIERARCHIES` has a hierarchy."""
    return {"parent": HIERARCHIES.partition, "rank": hierarchy}


def level_range(pk: str, level: str, depth: int, lo: str, hi: str) -> KeyRange:
    """`tier = :tier`: the nodes of one level and depth of a tree whose sort keys lie between two bounds."""
    return KeyRange(Index.BY_LEVEL, level_partition(pk, level, depth), lo, hi)
