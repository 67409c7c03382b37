"""Keys: where a node's item, and what belongs to it, lies in the table.

A path is a tuple of segments, the root's first. Its first segment names the *tree*, which is a partition; the others
make the sort key, each closed by `#`, so the key of `("US", "NE", "Omaha")` is `#NE#Omaha#` and the root's own is `#`.

In a key every character up to and including `%` is percent-encoded, all others stay as they are. So the `#` that
closes a segment and the `$` that ends a range sort below any character of a name, and the byte order of keys is the
depth-first order of the tree.
"""

import re
from enum import Enum
from typing import NamedTuple

Path = tuple[str, ...]

MAX_SEGMENTS = 32
MAX_SORT_KEY_BYTES = 1024  # DynamoDB's limit, in UTF-8, for `sk` and `rank`
MAX_PARTITION_KEY_BYTES = 2048  # likewise for `pk`, `parent` and `tier`
MAX_ROOT_BYTES = 900  # so that root, sort key and a name of up to 64 bytes always fit into one partition key

_LOW = re.compile("[\x00-%]")
_ESCAPED = re.compile("%([0-9A-F]{2})")


class Index(Enum):
    """The three orders in which a table can be read, each with its partition and sort attribute."""

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
        """Whether another key is that of the same node or of one below it; both are nodes'."""
        return self.pk == other.pk and other.sk.startswith(self.sk)

    def moved(self, source: "Key", target: "Key") -> "Key":
        """This key as it becomes when the subtree at `source`, which holds it, lies at `target`."""
        return Key(target.pk, target.sk + self.sk[len(source.sk) :])


def encode_segment(segment: str) -> str:
    """A segment as it stands in a key: every character up to `%` percent-encoded."""
    return _LOW.sub(lambda match: f"%{ord(match[0]):02X}", segment)


def decode_segment(text: str) -> str:
    """The inverse of `encode_segment`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def tree_key(hierarchy: str, path: Path) -> str:
    """The partition (`pk`) of the tree that a path lies in: `location#US`."""
    return f"{hierarchy}#{encode_segment(path[0])}"


def sort_key(path: Path) -> str:
    """The sort key (`sk`) of a path: `#NE#Omaha#`, of a root `#`."""
    return "#" + "".join([encode_segment(segment) + "#" for segment in path[1:]])


def node_key(hierarchy: str, path: Path) -> Key:
    return Key(tree_key(hierarchy, path), sort_key(path))


def path_of(pk: str, sk: str) -> Path:
    """The path that lies at a key; the inverse of `node_key`."""
    root = decode_segment(pk[pk.index("#") + 1 :])
    return (root, *[decode_segment(segment) for segment in sk[1:-1].split("#")]) if len(sk) > 1 else (root,)


def hierarchy_of(pk: str) -> str:
    return pk[: pk.index("#")]


def depth_of(sk: str) -> int:
    """How far below its root a node lies; a root has 0."""
    return sk.count("#") - 1


def parent_sort_key(sk: str) -> str:
    """The sort key of the parent; not for a root, whose parent is the hierarchy itself."""
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
    """The partition of `by_parent` that a node's siblings and itself share: `location#US#NE#`, of a root `location`."""
    return pk + parent_sort_key(sk) if len(sk) > 1 else hierarchy_of(pk)


def last_segment(pk: str, sk: str) -> str:
    """The node's own segment as it stands in its key."""
    return sk[sk.rindex("#", 0, -1) + 1 : -1] if len(sk) > 1 else pk[pk.index("#") + 1 :]


def first_rank(level: str, segment: str) -> str:
    """Where a node stands among its siblings until it is moved: by level, then by its encoded key."""
    return f"{level}#{segment}#"


def level_partition(pk: str, level: str, depth: int) -> str:
    """The partition of `by_level` with all nodes of one level at one depth of a tree: `location#US@CITY@2`."""
    return f"{pk}@{level}@{depth}"


def id_key(node_id: str) -> Key:
    """Where the record lies that tells where the node with this id lies now."""
    return Key(f"id#{node_id}", "v0")


def revision_key(node_id: str, revision: int) -> Key:
    """Where an old state of a node lies, beside its id record."""
    return Key(f"id#{node_id}", f"v{revision:010d}")


def tree_version_key(partition: str) -> Key:
    """The stamp of a tree (`location#US`) or of a hierarchy's roots (`location`)."""
    return Key(partition, "!")


def log_key(pk: str, number: int) -> Key:
    """The log item of the transaction that raised a stamp to `number`."""
    return Key(pk, f"!{number:012d}")


def index_name(index: Index) -> str:
    return index.name.lower()
