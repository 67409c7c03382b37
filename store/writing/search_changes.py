"""Search changes: the search items that follow from the changes of nodes in one transaction, for the builder of
`transaction.py`, which derives all else.

Descendants of a moved node keep their search items: only the items of the moved node are written, and one with its new
lineage. With `search="tree"`, a move to another tree writes the items of all nodes of the subtree.
"""

from collections.abc import Sequence

from store.concurrency import in_chunks
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys
from store.model.records import Change, Delete, Item, Put, Record, SubtreeRewrite, key_of
from store.search.items import Located, is_indexed, located, marker, removals, search_changes, takes_items
from store.search.lineage import MovedNode, moved_key, running_key
from store.writing.reads import ReadSet, WriteContext


def changes_of_move(hierarchy: Hierarchy, source: Key, target: Key, records: Sequence[Record]) -> int:
    """The maximum number of changes of search items for the move of a subtree, its top first."""
    written = records if takes_items(hierarchy, source, target) else records[:1]
    return 2 * changes_of_removal(hierarchy, written)


def changes_of_removal(hierarchy: Hierarchy, records: Sequence[Record]) -> int:
    """The number of changes of search items for the removal of these nodes."""
    return sum([len(removals(hierarchy, record, "")) for record in records]) if is_indexed(hierarchy) else 0


def moved_keys(hierarchy: Hierarchy, read_set: ReadSet, record: Record) -> list[Key]:
    """The keys of what search has of the moves of a node's ancestors, which were read, and of its own as the last."""
    if not is_indexed(hierarchy):
        return []
    above = [read_set.record(key) for key in ancestor_keys(record.key)]
    return [moved_key(hierarchy.name, one.id) for one in (*above, record) if one is not None]


class SearchChanges:
    """The `changes` so far, by key. The read set has the ancestors of each node, and of a moved one `moved_keys`."""

    def __init__(self, hierarchy: Hierarchy, read_set: ReadSet, context: WriteContext) -> None:
        self.changes: dict[Key, Change] = {}
        self.left_out = 0
        self._is_dry_run = context.is_dry_run
        self._hierarchy = hierarchy
        self._read_set = read_set

    def create(self, record: Record) -> None:
        self._add(None, self._located(record))
        if record.is_root and not self._read_set.version(record.hierarchy).number:
            self._put(marker(self._hierarchy))  # of the first node of all, so that none lacks its items

    def update(self, old: Record, new: Record) -> None:
        self._add(self._located(old), self._located(new))

    async def remove(self, records: Sequence[Record]) -> None:
        """Remove the items of a node and of all below it; of a dry run the nodes are only counted, in `left_out`."""
        if self._is_dry_run:
            self.left_out += len(records)
            return
        root = [*self._ancestors(records[0]), records[0]][0]
        async for some in in_chunks(records):
            for record in some:
                for change in removals(self._hierarchy, record, root.id):
                    self.changes[change.key] = change

    async def relocate(self, records: Sequence[Record], rewrite: SubtreeRewrite) -> None:
        """Write the items of a subtree that gets other partitions; of a dry run they are counted as those removed."""
        if not takes_items(self._hierarchy, rewrite.source, rewrite.target):
            return
        await self.remove(records)
        if self._is_dry_run:
            self.left_out += len(records)
            return
        moved = list(map(rewrite.moved, records))
        async for some in in_chunks(list(located(self._ancestors(moved[0]), moved))):
            for node in some:
                self._add(None, node)

    def move(self, old: Record, new: Record) -> None:
        """Write the items of a moved node, and if there are nodes below it, what shows where these are.

        Where the subtree gets other partitions, `relocate` or the large move has written all items.
        """
        if takes_items(self._hierarchy, old.key, new.key):
            return
        before, after = self._located(old), self._located(new)
        self._add(before, after)
        if before.line == after.line:
            return
        *above, former = [self._read_set.item(key) for key in moved_keys(self._hierarchy, self._read_set, old)]
        if old.kids:
            items = [item for item in (*above, former) if item is not None]
            found = MovedNode.after(old.id, before.line, after.line, items)
            self._put(found.item(self._hierarchy.name))
        elif former is not None:
            self.changes[key_of(former)] = Delete(key_of(former))

    def begin(self, move_id: str) -> None:
        """Show that a large move is running."""
        key = running_key(self._hierarchy.name, move_id)
        self._put({"pk": key.pk, "sk": key.sk})

    def _located(self, record: Record) -> Located:
        return Located.below(self._ancestors(record), record)

    def _ancestors(self, record: Record) -> list[Record]:
        found = [self._read_set.record(key) for key in ancestor_keys(record.key)]
        return [one for one in found if one is not None]

    def _add(self, old: Located | None, new: Located) -> None:
        for change in search_changes(self._hierarchy, old, new):
            self.changes[change.key] = change

    def _put(self, item: Item) -> None:
        self.changes[key_of(item)] = Put(item)
