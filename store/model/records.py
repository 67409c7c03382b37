"""Record: one node as stored, and its item."""

import hashlib
from base64 import b32encode
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from msgspec import Struct

from store.bounded_cache import cached_function
from store.errors import BadInput, BadPath
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import Item, damaged, decoded
from store.model.keys import (
    MAX_SORT_KEY_BYTES,
    Key,
    Path,
    depth_of,
    first_rank,
    hierarchy_of,
    last_segment,
    level_partition,
    node_key,
    parent_partition,
    path_of,
)
from store.model.names import names_of
from store.model.paths import format_path
from store.text import shorten, shown

MAX_ID_CHARACTERS = 128

Counts = dict[str, int]

NODE = 1
"""Begins a record in an SQLite row, so that another form can be told from it."""

_OWN = frozenset("pk sk parent rank tier id level name above kids below revision updated_at changed_by came_by".split())


class _StoredNode(Struct, gc=False):
    """The attributes of a node's item that Clade defines, but for those that follow from others."""

    pk: str
    sk: str
    rank: str
    id: str
    level: str
    name: str
    above: list[str]
    kids: Counts
    revision: int
    updated_at: str
    below: Counts | None = None
    changed_by: str | None = None
    came_by: str = ""


if TYPE_CHECKING:
    Attributes = dict[str, Value]
else:
    Attributes = dict[str, Any]  # decoded as they are stored; where they are served, their kinds are checked


class Record(Struct, frozen=True, kw_only=True, dict=True, array_like=True, tag=NODE):
    """One node, with the attributes of its item.

    `id` is as clients see it (`location:5074472`), `above` are the levels of its ancestors, the root's first, `kids`
    and `below` the numbers of its children and descendants by level, `rank` is its sort key among its siblings,
    `updated_at` a time in UTC (RFC 3339), `changed_by` the caller who wrote it, if known, `came_by` the moves that
    changed its key since it was created (`store/model/key_rewrite.py`), and `attributes` those of its level and
    `names`, as stored. The item of a root has no `below`: it is None until `TreeVersion.with_counts` adds it.
    Requests share records, so lists and dictionaries must not be changed. Of two records of one node the one with the
    higher `revision` is newer; a change of counts or rank does not increment it.

    The order of the attributes is that in rows of SQLite, which have the keys in columns of their own.
    """

    id: str
    level: str
    name: str
    above: list[str]
    kids: Counts
    below: Counts | None = None
    revision: int
    updated_at: str
    attributes: Attributes
    changed_by: str | None = None
    came_by: str = ""
    pk: str = ""
    sk: str = ""
    rank: str = ""

    fragments: ClassVar[dict[int, bytes] | None] = None
    """Serialized parts of this record by the numbers of their writers; None where the record is not cached."""

    @classmethod
    def new(
        cls,
        hierarchy: str,
        path: Path,
        level: str,
        name: str,
        node_id: str,
        at: str,
        attributes: dict[str, Value],
        *,
        above: list[str],
    ) -> "Record":
        """The first revision of a node without children; raises BadPath where its rank is too long for a key.

        `above` are the levels of its ancestors, the root's first: as many as the path has segments before its last.
        """
        key = node_key(hierarchy, path)
        rank = first_rank(level, last_segment(key.pk, key.sk))
        if (size := len(rank.encode())) > MAX_SORT_KEY_BYTES:
            raise BadPath(
                f'"{shorten(path[-1])}" and its level {level} take {size} bytes in a key; '
                f"at most {MAX_SORT_KEY_BYTES} fit."
            )
        return cls(
            pk=key.pk, sk=key.sk, rank=rank, id=f"{hierarchy}:{node_id}", level=level, name=name, above=above,
            kids={}, below={}, revision=1, updated_at=at, attributes=attributes,
        )  # fmt: skip

    @classmethod
    def of(cls, item: Item) -> "Record":
        """The record in an item; raises BadData where it is damaged."""
        found = decoded(item, _StoredNode)
        below = None if found.sk == "#" else found.below
        if below is None and found.sk != "#":
            raise damaged(item, "Object missing required field `below`")
        return cls(
            pk=found.pk, sk=found.sk, rank=found.rank, id=found.id, level=found.level, name=found.name,
            above=found.above, kids=found.kids, below=below, revision=found.revision, updated_at=found.updated_at,
            changed_by=found.changed_by, came_by=found.came_by,
            attributes={name: value for name, value in item.items() if name not in _OWN},
        )  # fmt: skip

    def item(self) -> Item:
        """The item of this record, with the keys of the table and of both indexes."""
        item: Item = {
            "pk": self.pk, "sk": self.sk, "parent": self.siblings, "rank": self.rank, "tier": self.tier,
            "id": self.id, "level": self.level, "name": self.name, "above": cast(Value, self.above),
            "kids": cast(Value, self.kids), "revision": self.revision, "updated_at": self.updated_at, **self.attributes,
        }  # fmt: skip
        if not self.is_root:
            item["below"] = cast(Value, self.descendant_counts)
        if self.changed_by is not None:
            item["changed_by"] = self.changed_by
        if self.came_by:
            item["came_by"] = self.came_by
        return item

    @property
    def key(self) -> Key:
        return Key(self.pk, self.sk)

    @cached_property
    def path(self) -> Path:
        return path_of(self.pk, self.sk)

    def with_fragments(self) -> Self:
        """This record, to be cached: from now on its serialized fragments are cached with it."""
        self.__dict__.setdefault("fragments", {})
        return self

    @property
    def names(self) -> Mapping[str, str]:
        """Its names in other languages, by canonical language tag; raises BadData where they are damaged."""
        return names_of(self.attributes)

    @property
    def hierarchy(self) -> str:
        return hierarchy_of(self.pk)

    @property
    def depth(self) -> int:
        return depth_of(self.sk)

    @property
    def is_root(self) -> bool:
        return self.sk == "#"

    @property
    def descendant_counts(self) -> Counts:
        """`below`; raises LookupError for a root whose counts were not added."""
        if self.below is None:
            raise LookupError(f"The counts of {self.pk} are in its tree version, which was not read.")
        return self.below

    @property
    def subtree_size(self) -> int:
        """The number of its descendants and itself."""
        return 1 + sum(self.descendant_counts.values())

    @property
    def siblings(self) -> str:
        """The partition key in `by_parent` of the node and its siblings."""
        return parent_partition(self.pk, self.sk)

    @property
    def tier(self) -> str:
        """The partition key in `by_level` of the node."""
        return level_partition(self.pk, self.level, self.depth)


def checked_id(text: object) -> str:
    """An id of a file, without its hierarchy's prefix; raises BadInput for an invalid one."""
    if not isinstance(text, str) or not text:
        raise BadInput(f"An id must be a non-empty string, not {shown(text)}.")
    if len(text) > MAX_ID_CHARACTERS:
        raise BadInput(f'The id "{shorten(text)}" has {len(text)} characters; at most {MAX_ID_CHARACTERS} fit.')
    if not text.isprintable() or " " in text or "#" in text or ":" in text:
        raise BadInput(f'The id "{shorten(text)}" has white space, a control character, # or :, which ids may not.')
    return text


def derived_id(hierarchy: str, path: Path) -> str:
    """The id of a node without one of its own: hashes of its path, so that a second import creates nothing new.

    Two characters each of the hashes of its root, of the second node of its path and of its parent come first, then
    fourteen of its own: 70 bits, with which a million siblings share none. So what is imported together has ids that
    lie together, and a transaction of an import writes a few pages of id records; with one hash of the whole path it
    wrote a page for each node.
    """
    above = [_hash_above(hierarchy, part) for part in (path[:1], path[:2], path[:-1] or path)]
    return "".join(above) + _hash_of(hierarchy, path)[:14]


def _hash_of(hierarchy: str, path: Path) -> str:
    digest = hashlib.blake2b(f"{hierarchy}:{format_path(path)}".encode(), digest_size=10).digest()
    return b32encode(digest).decode().lower()


@cached_function("id_parts", 256, entry_bytes=4_000)
def _hash_above(hierarchy: str, path: Path) -> str:
    return _hash_of(hierarchy, path)[:2]


MAX_REVISION = 10**10 - 1  # the greatest that fits into the key of a former revision


def is_id(hierarchy: Hierarchy, value: object) -> bool:
    """Whether a value is a valid id of the hierarchy, prefix included; the rules of `checked_id`, but faster."""
    if not isinstance(value, str) or not value.startswith(f"{hierarchy.name}:"):
        return False
    bare = value[len(hierarchy.name) + 1 :]
    return 0 < len(bare) <= MAX_ID_CHARACTERS and bare.isprintable() and not any(c in bare for c in " #:")


def is_revision(value: object) -> bool:
    """Whether a value is a valid revision."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_REVISION


def nonzero_counts(value: object) -> Counts | None:
    """Counts without those that are 0, which equal absent ones; None where the value is no mapping of counts."""
    if not isinstance(value, dict) or not all(type(count) is int for count in value.values()):
        return None
    return {name: count for name, count in value.items() if count}
