"""Id records as a node kind, and the history of a node as an event kind: both are in the partition of the node's id.

An id record is checked with the revisions and the tombstone beside it (`store/checking/ids.py`).
"""

from collections.abc import Sequence

from store.kinds.event_kind import EventKind
from store.kinds.node_kind import Found, Located, PlainKind
from store.metadata.history import current_key, id_item, id_item_at, revision_item, tombstone, tombstone_item
from store.model.items import ABSENT, Change, Condition, Item, Put
from store.model.keys import id_key
from store.model.records import Record


class IdRecords(PlainKind):
    """The key of each node by its id."""

    partitions = ()

    def items(self, node: Located) -> list[Item]:
        return [id_item(node.record)]

    def changes(self, before: Located | None, after: Located | None, found: Found) -> list[Change]:
        if after is None:
            return []  # a tombstone takes its place
        record = after.record
        if before is None:
            return [self.created(record.id, record.pk, record.sk, found)]
        return [] if before.record.key == record.key else [Put(id_item(record), is_canonical=True)]

    def created(self, node_id: str, pk: str, sk: str, found: Found) -> Change:
        when = _condition(found.get(id_key(node_id))) if found else ABSENT
        return Put(id_item_at(node_id, pk, sk), when, is_canonical=True)

    def most(self, records: Sequence[Record], *, moved: bool) -> int:
        return 0  # it is one of the three


def _condition(record: Item | None) -> Condition:
    """The condition for the id record of a new node: what was read there, of a deleted node or left without one."""
    if record is None:
        return ABSENT
    if (gone := tombstone(record)) is not None:
        return {"deleted": gone.deleted}
    place = current_key(record)
    return ABSENT if place is None else {"tree": place.pk, "key": place.sk}


class History(EventKind):
    """Former revisions of nodes, and tombstones of deleted ones."""

    def changed(self, old: Record) -> list[Change]:
        return [Put(revision_item(old))]

    def deleted(self, node: Located, at: str, by: str | None) -> list[Change]:
        return [Put(revision_item(node.record)), Put(tombstone_item(node.record, at, by))]
