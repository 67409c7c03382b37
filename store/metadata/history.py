"""What lies in the partition of an id: where its node lies now, and every state that the node had before.

The record of the id is at `v0`; state n is at `v` and n in ten digits from when the next one is written, or the node
is deleted, which leaves a tombstone in the place of the id's record. Moves change the former only.
"""

from typing import Any, cast

from msgspec.structs import replace

from store.model.attributes import Value
from store.model.items import Item
from store.model.keys import (
    Index,
    Key,
    id_key,
    revision_key,
)
from store.model.ranges import KeyRange
from store.model.records import Record

_OF_VERSION = frozenset("pk sk tree key level name revision updated_at changed_by".split())


def id_item(record: Record) -> Item:
    """What tells where the node with an id lies."""
    key = id_key(record.id)
    return {"pk": key.pk, "sk": key.sk, "tree": record.pk, "key": record.sk}


def revision_item(record: Record) -> Item:
    """A state of a node that is kept beside its id record when the next one is written, or none is."""
    key = revision_key(record.id, record.revision)
    return {
        "pk": key.pk, "sk": key.sk, "tree": record.pk, "key": record.sk, "level": record.level, "name": record.name,
        "revision": record.revision, "updated_at": record.updated_at, "changed_by": record.changed_by,
        **record.attributes,
    }  # fmt: skip


def tombstone_item(record: Record, at: str, by: str | None = None) -> Item:
    """What takes the place of the id record of a node that is deleted."""
    return {
        **id_item(record), "deleted": at, "deleted_by": by, "level": record.level, "revision": record.revision,
        "above": cast(Value, record.above),
    }  # fmt: skip


def current_key(item: Item | None) -> Key | None:
    """Where the node of an id record lies; None for none and for a deleted one."""
    if item is None or "deleted" in item:
        return None
    return Key(cast(str, item["tree"]), cast(str, item["key"]))


def revisions(node_id: str, before: int) -> KeyRange:
    """The states of a node from its first one to the one before a revision."""
    key = revision_key(node_id, 1)
    return KeyRange(Index.TABLE, key.pk, key.sk, revision_key(node_id, before).sk)


def with_revision(record: Record, version: Item) -> Record:
    """A node with the content that it had in a former state, also of another level; it lies where it lies now."""
    found = cast(dict[str, Any], version)
    return replace(
        record, level=found["level"], name=found["name"], revision=found["revision"], updated_at=found["updated_at"],
        changed_by=found.get("changed_by"),
        attributes={name: value for name, value in found.items() if name not in _OF_VERSION},
    )  # fmt: skip


def deleted_record(tombstone: Item, version: Item) -> Record:
    """A deleted node as it was at last, at the place where it lay."""
    place = cast(dict[str, Any], tombstone)
    blank = Record(
        pk=place["tree"], sk=place["key"], rank="", id=place["pk"].removeprefix("id#"), level=place["level"], name="",
        above=place["above"], kids={}, below={}, revision=0, updated_at="", attributes={},
    )  # fmt: skip
    return with_revision(blank, version)


def id_record_key(record: Item) -> Key | None:
    """Where an id record leads, None where it does not say so in the form of a key."""
    tree, key = record.get("tree"), record.get("key")
    return Key(tree, key) if isinstance(tree, str) and isinstance(key, str) and tree and key else None
