"""Where a node lies: paths, the keys made from them, and the ranges that hold a subtree.

A path is a tuple of segments, the root's first. Its first segment names the *tree*, which is a partition; the others
make the sort key, each closed by `#`, so the key of `("US", "NE", "Omaha")` is `#NE#Omaha#` and the root's own is `#`.

In a key every character up to and including `%` is percent-encoded, all others stay as they are. So the `#` that
closes a segment and the `$` that ends a range sort below any character of a name, and the byte order of keys is the
depth-first order of the tree.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from store.errors import BadPath

Path = tuple[str, ...]

MAX_SEGMENTS = 32
MAX_SORT_KEY_BYTES = 1024  # DynamoDB's limit, in UTF-8, for `sk` and `rank`
MAX_PARTITION_KEY_BYTES = 2048  # likewise for `pk`, `parent` and `tier`
MAX_ROOT_BYTES = 900  # so that root, sort key and a name of up to 64 bytes always fit into one partition key
MAX_PATH_CHARACTERS = 8_000  # of a path as it is written: at most four make one of a key, which has 1,924 bytes at most
MAX_SEGMENT_CHARACTERS = 4_100  # likewise of one segment
MAX_COMBINING_MARKS = 30  # in a row, as in Unicode's Stream-Safe Text Format (UAX #15): normalizing n of them takes n²

_LOW = re.compile("[\x00-%]")
_ESCAPED = re.compile("%([0-9A-F]{2})")
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TEXT_ESCAPE = re.compile("%(2F|25)?", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Span:
    """A contiguous range of one partition of one order: `lo <= key < hi`."""

    index: Index
    partition: str
    lo: str
    hi: str

    def after(self, key: str) -> "Span":
        """What of the span lies behind `key`."""
        return Span(self.index, self.partition, max(self.lo, just_after(key)), self.hi)

    def before(self, key: str) -> "Span":
        """What of the span lies in front of `key`."""
        return Span(self.index, self.partition, self.lo, min(self.hi, key))


def just_after(key: str) -> str:
    """The least bound above `key` and below everything that follows it: no key goes on with `!`."""
    return key + "!"


# -- paths as clients write them ---------------------------------------------------------------------------------------


def parse_path(text: str) -> Path:
    """`US/MO/St. Louis` as segments; a `/` or `%` inside a segment is written `%2F`, `%25`.

    Raises BadPath where the text is no path. Its length and number of segments are looked at before anything else.
    """
    if len(text) > MAX_PATH_CHARACTERS:
        raise BadPath(f"A path has {len(text):,} characters; at most {MAX_PATH_CHARACTERS:,} are possible.")
    parsed = _parsed(text)
    if isinstance(parsed, str):
        raise BadPath(parsed)
    return parsed


@lru_cache(1_000)  # the same paths are asked for again and again, also wrong ones: one for each node of a long list
def _parsed(text: str) -> Path | str:
    """The segments of a path, or the message that refuses it."""
    try:
        _check_depth(text.count("/") + 1)
        return checked_path(_unescape(segment, text) for segment in text.split("/"))
    except BadPath as error:
        return str(error)


def format_path(path: Path) -> str:
    """The inverse of `parse_path`."""
    return "/".join([segment.replace("%", "%25").replace("/", "%2F") for segment in path])


def checked_path(segments: Iterable[object]) -> Path:
    """The segments in normal form (NFC), or BadPath where they can be no path: the door for every path from outside."""
    path = tuple([checked_segment(segment) for segment in segments])
    if not path:
        raise BadPath('A path is empty; write the root\'s key at least, as in "US".')
    _check_depth(len(path))
    check_sizes(path)
    return path


def _check_depth(segments: int) -> None:
    if segments > MAX_SEGMENTS:
        raise BadPath(f"A path has {segments:,} segments; at most {MAX_SEGMENTS} are possible.")


def _unescape(segment: str, text: str) -> str:
    def one(match: re.Match[str]) -> str:
        match match[1]:
            case None:
                raise BadPath(f'"{shorten(text)}" has a lone %; inside a segment write %25 for % and %2F for /.')
            case code:
                return "/" if code.upper() == "2F" else "%"

    return _TEXT_ESCAPE.sub(one, segment) if "%" in segment else segment


def checked_segment(segment: object) -> str:
    """One segment in normal form, or BadPath where it can be none; its size is not looked at."""
    if not isinstance(segment, str):
        raise BadPath(f"A path's segments are texts, not {shorten(repr(segment))}.")
    if not segment:
        raise BadPath("A path has an empty segment; write it like US/NE/Omaha, with no / at either end.")
    if len(segment) > MAX_SEGMENT_CHARACTERS:
        raise BadPath(f"A key has {len(segment):,} characters; at most {MAX_SEGMENT_CHARACTERS:,} are possible.")
    if bad := _UNWRITABLE.search(segment):
        raise BadPath(f"A path's segment holds the character U+{ord(bad[0]):04X}, which no key may hold.")
    if segment.isascii():
        return segment
    _check_marks(segment)
    return unicodedata.normalize("NFC", segment)


def _check_marks(segment: str) -> None:
    """Raise BadPath where more combining marks follow one another than any language writes."""
    marks = 0
    for character in segment if len(segment) > MAX_COMBINING_MARKS else "":
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > MAX_COMBINING_MARKS:
            raise BadPath(f"A path's segment has more than {MAX_COMBINING_MARKS} combining marks in a row.")


def check_sizes(path: Path) -> None:
    """Raise BadPath for a path whose keys DynamoDB could not hold."""
    if (size := _bytes(path[0])) > MAX_ROOT_BYTES:
        raise BadPath(f'The root "{shorten(path[0])}" takes {size} bytes in a key; at most {MAX_ROOT_BYTES} fit.')
    if (size := len(sort_key(path).encode())) > MAX_SORT_KEY_BYTES:
        longest = max(path[1:], key=_bytes)
        raise BadPath(
            f"Below its root the path takes {size} bytes in a key; at most {MAX_SORT_KEY_BYTES} fit. "
            f'Its longest segment, "{shorten(longest)}", takes {_bytes(longest)}.'
        )


def _bytes(segment: str) -> int:
    return len(encode_segment(segment).encode())


def shorten(text: str, limit: int = 60) -> str:
    """`text` as a message may quote it: no longer than `limit` characters, nothing unprintable."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:limit])
    return clean + ("…" if len(text) > limit else "")


# -- keys --------------------------------------------------------------------------------------------------------------


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


def tier_partition(pk: str, level: str, depth: int) -> str:
    """The partition of `by_level` with all nodes of one level at one depth of a tree: `location#US@CITY@2`."""
    return f"{pk}@{level}@{depth}"


def id_key(node_id: str) -> Key:
    """Where the record lies that tells where the node with this id lies now."""
    return Key(f"id#{node_id}", "v0")


def version_key(node_id: str, revision: int) -> Key:
    """Where an old state of a node lies, beside its id record."""
    return Key(f"id#{node_id}", f"v{revision:010d}")


def stamp_key(partition: str) -> Key:
    """The stamp of a tree (`location#US`) or of a hierarchy's roots (`location`)."""
    return Key(partition, "!")


def log_key(pk: str, number: int) -> Key:
    """The log item of the transaction that raised a stamp to `number`."""
    return Key(pk, f"!{number:012d}")


# -- ranges ------------------------------------------------------------------------------------------------------------


def subtree(pk: str, sk: str) -> Span:
    """A node and all below it, in path order."""
    return Span(Index.TABLE, pk, sk, sk[:-1] + "$")


def below(pk: str, sk: str) -> Span:
    """All below a node, without it."""
    return subtree(pk, sk).after(sk)


def children(pk: str, sk: str, level: str | None = None) -> Span:
    """The children of one node in sibling order, of one level or of all."""
    return siblings(pk + sk, level)


def siblings(parent: str, level: str | None = None) -> Span:
    """A partition of `by_parent` (`location#US#NE#`, or `location` for the roots), of one level or of all."""
    if level is None:
        return Span(Index.BY_PARENT, parent, "A", just_after("["))  # levels are upper-case names
    return Span(Index.BY_PARENT, parent, f"{level}#", f"{level}$")


def tier(pk: str, level: str, depth: int, lo: str, hi: str) -> Span:
    """The nodes of one level and depth of a tree whose keys lie between two bounds, in key order."""
    return Span(Index.BY_LEVEL, tier_partition(pk, level, depth), lo, hi)


def tier_below(pk: str, sk: str, level: str, depth: int) -> Span:
    """The nodes of one level and depth below a node."""
    return tier(pk, level, depth, sk, sk[:-1] + "$")


def segments_between(sk: str, start: str | None, end: str | None) -> tuple[str, str]:
    """The bounds of keys below `sk` whose next segment lies in `start <= segment < end`, in key order; both are encoded
    as segments are in keys.
    """
    lo = sk + start + "#" if start is not None else just_after(sk)
    hi = just_after(sk + end) if end is not None else sk[:-1] + "$"
    return lo, max(lo, hi)
