"""History: the id record of a node, which holds its key, and its former revisions, in the partition of its id.

The id record is at `v0`. Revision n is at `v` and n in ten digits, from when the next one is written or the node is
deleted; a deletion replaces the id record by a tombstone. A move changes the id record alone.
"""

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from store.model.attributes import Value
from store.model.items import Item, Number, Partition, SortKey, Time, decoded
from store.model.keys import Index, Key, id_key, revision_key
from store.model.ranges import KeyRange
from store.model.records import Record

_OWN_NAMES = frozenset("pk sk tree key level name revision updated_at changed_by".split())


class _StoredPlace(Struct, gc=False):
    tree: Partition
    key: SortKey
    deleted: Time | None = None


class Tombstone(Struct):
    """The item in the place of the id record of a deleted node: its last key, its level and its last revision, when it
    was deleted and by whom, and the levels above it.
    """

    pk: str
    tree: Partition
    key: SortKey
    deleted: Time
    level: str
    revision: Number
    above: list[str]
    deleted_by: str | None = None


class _StoredRevision(Struct):
    tree: Partition
    key: SortKey
    level: str
    name: str
    revision: Number
    updated_at: Time
    changed_by: str | None = None


def id_item(record: Record) -> Item:
    """The id record of a node, with the node's key."""
    return id_item_at(record.id, record.pk, record.sk)


def id_item_at(node_id: str, tree: str, key: str) -> Item:
    """The id record of the node with this id at this key of a tree."""
    pk, sk = id_key(node_id)
    return {"pk": pk, "sk": sk, "tree": tree, "key": key}


def revision_item(record: Record) -> Item:
    """A revision of a node, to be stored when the next one is written or the node is deleted."""
    key = revision_key(record.id, record.revision)
    return {
        "pk": key.pk, "sk": key.sk, "tree": record.pk, "key": record.sk, "level": record.level, "name": record.name,
        "revision": record.revision, "updated_at": record.updated_at, "changed_by": record.changed_by,
        **record.attributes,
    }  # fmt: skip


def tombstone_item(record: Record, at: str, by: str | None = None) -> Item:
    """The item that replaces the id record of a deleted node."""
    return {
        **id_item(record), "deleted": at, "deleted_by": by, "level": record.level, "revision": record.revision,
        "above": cast(Value, record.above),
    }  # fmt: skip


def current_key(item: Item | None) -> Key | None:
    """The node's key in an id record; None without one and for a tombstone. Raises BadData where it is damaged."""
    if item is None:
        return None
    found = decoded(item, _StoredPlace)
    return None if found.deleted is not None else Key(found.tree, found.key)


def former_key(item: Item) -> Key:
    """The key in a revision or tombstone; raises BadData where it is damaged."""
    found = decoded(item, _StoredPlace)
    return Key(found.tree, found.key)


def tombstone(item: Item | None) -> Tombstone | None:
    """The tombstone in the place of an id record, None where there is none; raises BadData where it is damaged."""
    return None if item is None or "deleted" not in item else decoded(item, Tombstone)


def revisions(node_id: str, before: int, first: int = 1) -> KeyRange:
    """The range of a node's revisions from `first` to the one before `before`."""
    key = revision_key(node_id, first)
    return KeyRange(Index.TABLE, key.pk, key.sk, revision_key(node_id, before).sk)


def with_revision(record: Record, version: Item) -> Record:
    """A node with the content, and the level, of a former revision, at its present key; raises BadData where that is
    damaged.
    """
    found = decoded(version, _StoredRevision)
    return replace(
        record, level=found.level, name=found.name, revision=found.revision, updated_at=found.updated_at,
        changed_by=found.changed_by,
        attributes={name: value for name, value in version.items() if name not in _OWN_NAMES},
    )  # fmt: skip


def deleted_record(gone: Tombstone, version: Item) -> Record:
    """A deleted node with its last revision, at its last key; raises BadData where that is damaged."""
    blank = Record(
        pk=gone.tree, sk=gone.key, rank="", id=gone.pk.removeprefix("id#"), level=gone.level, name="",
        above=gone.above, kids={}, below={}, revision=0, updated_at="", attributes={},
    )  # fmt: skip
    return with_revision(blank, version)


def id_record_key(record: Item) -> Key | None:
    """The key in an id record or tombstone, None where it is damaged."""
    tree, key = record.get("tree"), record.get("key")
    return Key(tree, key) if isinstance(tree, str) and isinstance(key, str) and tree and key else None
