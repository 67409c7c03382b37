"""History: the id record of a node, which holds its key; its former revisions; and redirects from the paths that it has
left.

The id record is at `v0` of the partition of the id. Revision n is at `v` and n in ten digits, from when the next one is
written or the node is deleted; a deletion replaces the id record by a tombstone. A move changes the id record alone.

Each node that leaves a path by a move, its own or that of a node above it, writes the redirect of exactly that path
over the one that is there. So a redirect names the node that was there last, wherever that is now. A node at a path
comes before the redirect, which stays.

An import that exchanges nodes puts some aside: their keys have a mark until they go on to their paths. That is not a
place of theirs: it has no redirect, and logs, revisions and tombstones have the key without the mark.

A deleted node writes a redirect that is marked as deleted, which reads do not follow. It writes none in a tree without
redirects that they follow, if its id follows from its path: then its id record tells that it was there. So redirects
and id records tell an edit that other nodes may have been at a path.

Tombstones of one deletion are in four partitions of `by_parent`, by the hashes of the ids, since one takes 1,000 writes
a second, and each is in the order of the tree: `parent` is `gone/<deletion>/2`, `rank` the key. `under` is the id of
the parent, `place` a rank that was given by hand; `kids` and `below` are the numbers of children and descendants that
were deleted with the node. A tombstone that a repair writes is of no deletion, and has none of this. Who brings a node
back by its id lowers the `kids` of its parent, if that is still of the same deletion: so a restore notices where an
index that is behind the table lacks a node.

While a large restore runs, the id record of a node that it has copied has the tombstone that it replaced in `was`, for
the case that the restore is undone.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import cast
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from store.errors import DamagedItem
from store.model.attributes import Value
from store.model.decoding import Count, Number, Partition, SortKey, Time, decoded
from store.model.keys import Index, Key, KeyRange, Path, depth_of, hierarchy_of, id_key, last_segment, revision_key
from store.model.ranks import is_manual, is_valid
from store.model.records import Change, Condition, Item, Put, Record, derived_id

REDIRECTS = "alias"  # begins their partitions
ASIDE = "~clade-aside-"  # between the key of a node that is put aside and a random text
DELETION = ("parent", "rank", "under", "place", "kids", "below")  # what a tombstone tells of its deletion
GONE_PARTS = 4  # partitions of a deletion: also of a small one, since nobody may learn how many nodes it had
_GONE = re.compile(f"gone/([0-9a-f]{{24}})/[0-{GONE_PARTS - 1}]")
_MARK = re.compile(f"{ASIDE}[0-9a-f]{{8}}(?=#|$)")
_OWN_NAMES = frozenset("pk sk tree key level name revision updated_at changed_by".split())


class _Place(Struct):
    tree: Partition
    key: SortKey


class _IdRecord(_Place):
    deleted: Time | None = None  # not in the place of a revision, whose node may have an attribute of that name


class Tombstone(_Place, kw_only=True):
    """The last key, level and revision of a deleted node, the levels above it, and when and by whom it was deleted."""

    pk: str
    deleted: Time
    level: str
    revision: Number
    above: list[str]
    deleted_by: str | None = None


class Gone(Tombstone, kw_only=True):
    """A tombstone with its place in its deletion, which has no `parent` where it is of none. `under` is empty where a
    repair could not find it.
    """

    parent: str | None = None
    under: str | None = None
    place: str | None = None
    kids: Count = 0
    below: Count = 0

    def __post_init__(self) -> None:
        if self.deletion is None:
            if self.kids or self.below or self.under is not None:
                raise ValueError("Expected a deletion in `parent`")
        elif self.key != "#" and self.under != "" and not str(self.under).startswith(f"{hierarchy_of(self.tree)}:"):
            raise ValueError("Expected the id of its parent in `under`")
        if self.place is not None and not (is_manual(self.place) and is_valid(self.place)):
            raise ValueError("Expected a rank that was given by hand in `place`")

    @property
    def id(self) -> str:
        return self.pk.removeprefix("id#")

    @property
    def former(self) -> Key:
        """The key of the node at its deletion."""
        return Key(self.tree, self.key)

    @property
    def deletion(self) -> str | None:
        """The id of its deletion."""
        return _deletion(self.parent)

    @property
    def when(self) -> Condition:
        """The condition that it still is the tombstone of its node."""
        return {"deleted": self.deleted, "parent": self.parent}


class Revision(_Place, kw_only=True):
    """A former revision of a node, but for its attributes."""

    level: str
    name: str
    revision: Number
    updated_at: Time
    changed_by: str | None = None


class Redirect(Struct):
    """The redirect from a path that a node has left, to its id; `deleted` where it left by its deletion."""

    id: str
    deleted: bool = False


def key_aside(key: Key, random: str) -> Key:
    """The key of a node that is put aside where it is; `random` are eight hexadecimal digits."""
    mark = f"{ASIDE}{random}"
    return Key(key.pk + mark, key.sk) if key.sk == "#" else Key(key.pk, f"{key.sk[:-1]}{mark}#")


def is_aside(key: Key) -> bool:
    """Whether a node at this key is put aside."""
    return _MARK.search(last_segment(*key)) is not None


def shown_key(key: Key) -> Key:
    """A key without the marks of nodes that are put aside."""
    return key if ASIDE not in key.sk and ASIDE not in key.pk else Key(_MARK.sub("", key.pk), _MARK.sub("", key.sk))


def shown_path(path: Path) -> Path:
    """A path without these marks."""
    return tuple([_MARK.sub("", segment) for segment in path])


def id_item(record: Record) -> Item:
    """The id record of a node, with the node's key."""
    return id_item_at(record.id, record.pk, record.sk)


def id_item_at(node_id: str, tree: str, key: str) -> Item:
    """The id record of the node with this id at this key of a tree."""
    pk, sk = id_key(node_id)
    return {"pk": pk, "sk": sk, "tree": tree, "key": key}


def revision_item(record: Record) -> Item:
    """A revision of a node, to be stored when the next one is written or the node is deleted."""
    key, place = revision_key(record.id, record.revision), shown_key(record.key)
    return {
        "pk": key.pk, "sk": key.sk, "tree": place.pk, "key": place.sk, "level": record.level, "name": record.name,
        "revision": record.revision, "updated_at": record.updated_at, "changed_by": record.changed_by,
        **record.attributes,
    }  # fmt: skip


class Removal(Struct, frozen=True):
    """The place of a node in a deletion; the ids of its parent, unless it is a root, and itself are the last of `line`.
    `kids` and `below` children and descendants are deleted with it.
    """

    deletion: str
    line: Sequence[str]
    kids: int
    below: int

    def partition(self, node_id: str) -> str:
        """The partition of `by_parent` for the tombstone of a node."""
        return f"gone/{self.deletion}/{crc32(node_id.encode()) % GONE_PARTS}"


def tombstone_item(record: Record, at: str, by: str | None, gone: Removal) -> Item:
    """The item that replaces the id record of a deleted node."""
    item = id_item_at(record.id, *shown_key(record.key))
    return {
        **item, "deleted": at, "deleted_by": by, "level": record.level, "revision": record.revision,
        "above": cast(Value, record.above), "parent": gone.partition(record.id), "rank": item["key"],
        "under": [None, *gone.line][-2] or None, "place": record.rank if is_manual(record.rank) else None,
        "kids": gone.kids, "below": gone.below,
    }  # fmt: skip


def deletion_of(item: Item) -> str | None:
    """The deletion of a tombstone, None where there is none."""
    return _deletion(item.get("parent"))


def _deletion(parent: Value) -> str | None:
    found = _GONE.fullmatch(parent) if isinstance(parent, str) else None
    return found[1] if found else None


def gone_ranges(parent: str, lo: str, hi: str) -> list[KeyRange]:
    """The ranges of tombstones between two keys, in all partitions of the deletion of one with this `parent`."""
    whole = f"gone/{_deletion(parent)}"
    return [KeyRange(Index.BY_PARENT, f"{whole}/{part}", lo, hi) for part in range(GONE_PARTS)]


def gone_of(item: Item | None) -> Gone | None:
    """The tombstone in an id record, None without one and for that of a node that exists; raises DamagedItem."""
    if item is None or (item.get("deleted") is None and deletion_of(item) is None):
        return None
    return decoded(item, Gone)


def copied_id_item(record: Record, was: Item) -> Item:
    """The id record of a node that a large restore copies, in the place of its tombstone `was`."""
    return {**id_item(record), "was": cast(Value, was)}


def was_gone(item: Item | None, deletion: str | None) -> Item | None:
    """The tombstone that a large restore of a deletion has replaced by this id record, None where it is none."""
    was = None if item is None else item.get("was")
    return was if isinstance(was, dict) and deletion is not None and deletion_of(was) == deletion else None


def with_children(parent: Item | None, gone: Gone, more: int) -> list[Change]:
    """The change of the id record of the parent of a deleted node, if that was deleted with it, for so many children
    more: one less where the node comes back alone, one more where that is undone.
    """
    for found, name in ((parent, "kids"), (was_gone(parent, gone.deletion), "was")):
        if parent is not None and found is not None and deletion_of(found) == gone.deletion is not None:
            kids = found.get("kids")
            if isinstance(kids, int) and kids + more >= 0:
                changed: Item = {**found, "kids": kids + more}
                new = changed if name == "kids" else {**parent, "was": cast(Value, changed)}
                when: Condition = {"deleted": parent.get("deleted"), "parent": parent.get("parent"), name: parent[name]}
                return [Put(new, when)]
    return []


def line_to(record: Record, line: Sequence[str], top: Key) -> list[str]:
    """The ids of the ancestors of a node in the subtree at `top`, from the parent of that on, and its own as the last.

    `line` are those to the node before it in key order, at first the id of that parent; a root has none.
    """
    return [*line[: record.depth - max(0, depth_of(top.sk) - 1)], record.id]


def current_key(item: Item | None) -> Key | None:
    """The node's key in an id record; None without one and for a tombstone. Raises DamagedItem."""
    found = None if item is None else decoded(item, _IdRecord)
    return None if found is None or found.deleted is not None else Key(found.tree, found.key)


def former_key(item: Item) -> Key:
    """The key in an id record, a revision or a tombstone; raises DamagedItem."""
    found = decoded(item, _Place)
    return Key(found.tree, found.key)


def revisions(node_id: str, before: int) -> KeyRange:
    """The range of a node's revisions from the first to the one before `before`."""
    key = revision_key(node_id, 1)
    return KeyRange(Index.TABLE, key.pk, key.sk, revision_key(node_id, before).sk)


def with_revision(record: Record, version: Item) -> Record:
    """A node with the content, and the level, of a former revision, at its present key; raises DamagedItem."""
    found = decoded(version, Revision)
    return replace(
        record, level=found.level, name=found.name, revision=found.revision, updated_at=found.updated_at,
        changed_by=found.changed_by,
        attributes={name: value for name, value in version.items() if name not in _OWN_NAMES},
    )  # fmt: skip


def deleted_record(found: Tombstone, version: Item) -> Record:
    """A deleted node with its last revision, at its last key; raises DamagedItem."""
    blank = Record(
        pk=found.tree, sk=found.key, rank="", id=found.pk.removeprefix("id#"), level=found.level, name="",
        above=found.above, kids={}, below={}, revision=0, updated_at="", attributes={},
    )  # fmt: skip
    return with_revision(blank, version)


def id_record_key(record: Item) -> Key | None:
    """The key in an id record or tombstone, None where it is damaged."""
    with suppress(DamagedItem):
        return former_key(record)
    return None


def redirect_key(former: Key) -> Key:
    """The key of the redirect from a former key."""
    return Key(f"{REDIRECTS}#{former.pk}", former.sk)


def redirect_item(record: Record) -> Item:
    """The redirect from the key that a node leaves to its id."""
    key = redirect_key(record.key)
    return {"pk": key.pk, "sk": key.sk, "id": record.id}


def redirect_of_moved(record: Record) -> list[Change]:
    """The change of the redirect at the path that a node leaves by a move."""
    return [Put(redirect_item(record))] if shown_key(record.key) == record.key else []


def redirect_of_restored(record: Record, gone: Gone, found: Item | None) -> list[Change]:
    """The change of the redirect at the last path of a deleted node that comes to another one, unless it is that of
    another node, which left the path later.
    """
    if record.key == gone.former or (found is not None and found.get("id") != record.id):
        return []
    return [Put({**redirect_key(gone.former)._asdict(), "id": record.id})]


def redirected_id(item: Item | None) -> str | None:
    """The id to which a redirect leads, None without one and for that of a deleted node; raises DamagedItem."""
    found = None if item is None else decoded(item, Redirect)
    return None if found is None or found.deleted else found.id


def redirect_of_deleted(record: Record, *, has_redirects: bool) -> list[Change]:
    """The change of the redirect at the path of a node that is deleted, in a tree that may have redirects, or not."""
    has_default_id = record.id == f"{record.hierarchy}:{derived_id(record.hierarchy, record.path)}"
    if (not has_redirects and has_default_id) or shown_key(record.key) != record.key:
        return []
    return [Put(redirect_item(record) | {"deleted": True})]
