"""Moved items: the search items that a background move writes and removes, in the transactions of their nodes.

A cascade removes the items of its nodes. A move writes them only if their partitions change: to another tree, with
`search="tree"`. The items at the new place are written with the copies, those at the old one are removed with the old
nodes. Any other move leaves them unchanged.
"""

from collections.abc import Mapping, Sequence

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.move_record import Move
from store.model.hierarchy import Hierarchy
from store.model.items import Change, Delete, Item, Put
from store.model.keys import Key, ancestor_keys, depth_of
from store.model.records import Record
from store.search.lineage import STEP, Lineage, id_hash, lineage
from store.search.node_items import Located, is_indexed, item_keys, removals, search_items, takes_items


class MovedItems:
    """The changes of search items for the nodes of one move; `hierarchy` is None where its class is not loaded."""

    def __init__(self, store: Store, move: Move, hierarchy: Hierarchy | None) -> None:
        self._store = store
        self._move = move
        self._hierarchy: Hierarchy | None = None  # where items are written
        if hierarchy is not None and is_indexed(hierarchy):
            is_written = move.target is None or takes_items(hierarchy, move.source, move.target)
            self._hierarchy = hierarchy if is_written else None

    async def lineages(self, records: Sequence[Record]) -> Mapping[Key, Lineage]:
        """The lineages that nodes of the source, in key order, have at the target; none where no items are written."""
        source, target = self._move.source, self._move.target
        if self._hierarchy is None or target is None:
            return {}
        inner = [key for key in ancestor_keys(records[0].key) if source.holds(key)]
        line = lineage([str(item["id"]) for item in await self._read([*ancestor_keys(target), *inner])])
        found, deeper = {}, depth_of(target.sk) - depth_of(source.sk)
        for record in records:
            line = line[: (depth_of(record.sk) + deeper) * STEP] + id_hash(record.id)
            found[record.key] = line
        return found

    def copied(self, record: Record, line: Lineage | None) -> list[Change]:
        """The changes for a node at the target with this lineage."""
        if self._hierarchy is None or line is None:
            return []
        return [Put(item) for item in search_items(self._hierarchy, Located(record, line))]

    async def root_id(self, top: Key) -> str:
        """The id of the root above the source or the target; empty where no items are written."""
        if self._hierarchy is None or top.sk == "#":
            return self._move.top_id
        return str((await self._read([Key(top.pk, "#")]))[0]["id"])

    def swept(self, record: Record, root_id: str) -> list[Change]:
        """The changes for a node at the source, below this root."""
        return [] if self._hierarchy is None else removals(self._hierarchy, record, root_id)

    def undone(self, record: Record, root_id: str) -> list[Change]:
        """The changes for the copy of a node at the target, below this root, which is removed."""
        return [] if self._hierarchy is None else list(map(Delete, item_keys(self._hierarchy, record, root_id)))

    async def _read(self, keys: Sequence[Key]) -> list[Item]:
        """The items of nodes that cannot be removed while the move runs."""
        found = await self._store.get(keys, ReadUsage(), strong=True)
        return [item for item in found if item is not None]
