"""The changes of one commit: what was read goes in, a transaction comes out.

Nothing is read or written here, so a dry run is a transaction that is not committed. What follows from the changes of
nodes is added by `store/writing/derived.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.errors import Conflict, TooLarge
from store.kinds.conditional import Waiting
from store.kinds.marker import Recipes
from store.metadata.history import Gone, Removal, line_to, redirect_key, with_children
from store.metadata.moves import Move, new_move_id
from store.metadata.tree_version import Event
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, ancestor_keys, id_key
from store.model.records import (
    ABSENT,
    MAX_BATCH_BYTES,
    UNCONDITIONAL,
    Change,
    Condition,
    Counts,
    Delete,
    Put,
    Record,
    SubtreeRewrite,
)
from store.writing.derived import (
    KindChanges,
    TreeChanges,
    node_created,
    node_moved,
    node_removed,
    node_restored,
    node_updated,
    shape_of,
)
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.taken import settled

MAX_MOVES = 20  # running in one tree: each reader of the tree reads their records


class EditedNode(NamedTuple):
    """A node as an edit left it, or as it was where it `is_gone`, and its path `before`, empty for a new one.

    `parent_before` is the id of its parent there, None for a root, a new node, and where nobody asks.
    """

    record: Record
    before: Path
    parent_before: str | None = None
    is_gone: bool = False


class TransactionBuilder:
    """The changes of one transaction so far, on nodes of a `hierarchy`, None where it needs no class.

    `record` is the node that it is about, as it will be, `is_gone` whether it is deleted, `before` its path before, and
    `parent_before` the id of its parent there. `ids` are those of the nodes that it writes; `move` is the large move
    that it begins. All methods raise Conflict for a change of a node that a running move holds.
    """

    def __init__(self, hierarchy: Hierarchy | None, read_set: ReadSet, context: WriteContext, record: Record) -> None:
        self._hierarchy = hierarchy
        self.read_set = read_set
        self.context = context
        self.record = record
        self.before: Path = ()
        self.parent_before: str | None = None
        self.is_gone = False
        self.ids: set[str] = set()
        self.move: Move | None = None
        self._changes: dict[Key, Change] = {}
        self._trees = TreeChanges(read_set, context)
        self._kinds = KindChanges(record.hierarchy, hierarchy, read_set, context)

    # -- edits ---------------------------------------------------------------------------------------------------------

    def create(self, record: Record, id_when: Condition) -> None:
        """Add a new node; `id_when` is the condition for its id record."""
        self._write(record, node_created(record, id_when))
        self._kinds.create(record)
        self._trees.add(record, shape_of([record]), Event.CREATED)

    def update(self, old: Record, new: Record) -> None:
        """Write the next revision of a node's content."""
        self._write(new, node_updated(old, new))
        self._kinds.update(old, new)
        self._trees.update(new)

    def reorder(self, rank: str) -> None:
        """Give the node another rank."""
        self._trees.reorder(self.record)
        (self.record,) = self.rank_again([(self.record, rank)])

    def rank_again(self, ranks: Iterable[tuple[Record, str]]) -> list[Record]:
        """Give nodes other ranks, of which no entry of the log tells."""
        ranked = [replace(one, rank=rank) for one, rank in ranks]
        for one in ranked:
            self._write(one, [Put(one.item())])
        self._trees.rank(ranked)
        return ranked

    async def remove(self, records: Sequence[Record], *, alone: bool = False, redirects: bool = True) -> None:
        """Remove a node and all below it, its own record first; `alone` where the subtree goes elsewhere."""
        top, context = records[0], self.context
        self.read_set.check_not_moving(top.key, with_subtrees=True)
        has_redirects = self.read_set.version(top.pk).has_redirects
        deletion, line = new_move_id(context.now), self.line_above(top)
        async for some in in_chunks(records):
            for record in some:
                line = line_to(record, line, top.key)
                counts = (0, 0) if alone else (sum(record.kids.values()), record.subtree_size - 1)
                gone = Removal(deletion, line, *counts)
                how = {"has_redirects": has_redirects, "redirects": redirects}
                self._add(node_removed(record, context.at, context.by, gone, **how))
        await self._kinds.remove(records)
        self.ids.update([record.id for record in records])
        self._trees.remove(top, shape_of(records), alone=alone)

    def line_above(self, top: Record) -> list[str]:
        """The id of the parent of a node whose ancestors were read; none for a root."""
        found = [self.read_set.record(key) for key in ancestor_keys(top.key)[-1:]]
        return ["" if one is None else one.id for one in found]  # where the table is damaged there is no parent

    async def restore(self, records: Sequence[Record], tombstones: Sequence[Gone]) -> None:
        """Bring back a deleted node and all below it, its own record first."""
        top = records[0]
        self.read_set.check_not_moving(top.key, with_subtrees=True)
        async for some in in_chunks(list(zip(records, tombstones, strict=True))):
            for record, gone in some:
                self._add(node_restored(record, gone, self.read_set.get(redirect_key(gone.former))))
        if top.key != tombstones[0].former:
            self._trees.redirect(tombstones[0].tree)
        await self._kinds.restore(records, tombstones)
        self.ids.update([record.id for record in records])
        self._trees.add(top, shape_of(records), Event.RESTORED)

    async def take_out(self, gone: Gone, reader: Reader) -> None:
        """Note in the tombstone of its parent that a node comes back, if that was deleted with it.

        A dry run does not, so that its plan tells nothing of a parent that the caller may not see.
        """
        if gone.under is not None and not self.context.is_dry_run:
            await reader.read_into(self.read_set, [], [key := id_key(gone.under)])
            self._add(with_children(self.read_set[key], gone, -1))

    async def relocate(
        self, records: Sequence[Record], rewrite: SubtreeRewrite, *, redirects: bool = True, is_logged: bool = True
    ) -> None:
        """Move a node and all below it, its own record first. Raises BadPath where a key would be too long or deep."""
        top = rewrite.moved(records[0])
        self.read_set.check_not_moving(rewrite.source, rewrite.target, with_subtrees=True)
        async for some in in_chunks(records):
            for record in some:
                moved = rewrite.moved(record)
                # At the target may be a node that the same transaction removes.
                is_free = moved.key == rewrite.target and self.read_set[rewrite.target] is None
                when = ABSENT if is_free else UNCONDITIONAL
                self._add(node_moved(record, moved, when, redirects=redirects))
        if redirects:
            self._trees.redirect(rewrite.source.pk)
        await self._kinds.relocate(records, rewrite)
        self.ids.update([record.id for record in records])
        self._note_move(records[0], top, shape_of(records), is_logged=is_logged)

    # -- large moves ---------------------------------------------------------------------------------------------------

    def begin(self, move: Move) -> None:
        """Register a large move, to whose subtrees nobody else writes until it ends.

        Raises Conflict where it overlaps another one, or where as many are running as readers can bear.
        """
        self.read_set.check_not_moving(*move.running.ends, with_subtrees=True)
        if any(len(self.read_set.version(partition).moves) >= MAX_MOVES for partition in move.running.partitions):
            raise Conflict(f"{MAX_MOVES} large moves are running in this tree; try again when some have ended.")
        self.move = move
        self._kinds.begin(move)
        self._add([Put(move.item(), ABSENT)])
        self._trees.begin(move)

    def commit(self, move: Move, rewrite: SubtreeRewrite | None) -> None:
        """Add the commit of a large move of `record`, or of its deletion or restore without a `rewrite`: counts, logs,
        node kinds.

        The nodes themselves are copied before, and swept afterwards.
        """
        if move.gone is not None:
            self._trees.add(self.record, move.shape, Event.RESTORED)
            if move.redirects:
                self._trees.redirect(move.former.pk)  # they lead to the nodes from now on
        elif rewrite is None:
            self._trees.remove(self.record, move.shape)
        else:
            self._note_move(self.record, rewrite.moved(self.record), move.shape, is_logged=move.is_logged)

    @property
    def waiting(self) -> Sequence[Waiting]:
        """What of kinds with conditions waits for what is stored."""
        return self._kinds.waiting

    async def settle(self, reader: Reader) -> None:
        """Add the changes of what is waiting. Raises a Fault, or Faults, for items that other nodes have."""
        self._kinds.changes |= await settled(self._kinds.waiting, self._hierarchy, reader, self.context)
        self._kinds.waiting = []

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def edited(self) -> list[EditedNode]:
        """The node that it is about."""
        return [EditedNode(self.record, self.before, self.parent_before, self.is_gone)]

    @property
    def hierarchy(self) -> str:
        return self.record.hierarchy

    @property
    def written(self) -> int:
        """The number of nodes that it writes."""
        return len(self.ids) if self.move is None else self.move.nodes

    def too_large(self, needed: int, limit: int) -> TooLarge:
        """The error for more changes than one transaction holds."""
        return TooLarge(
            f"This changes {self.written} nodes by {needed} writes; one transaction of DynamoDB holds {limit}. "
            "Change smaller parts."
        )

    @property
    def nodes_left_out(self) -> int:
        """The number of removed nodes whose items of kinds are not among the changes, since this is a dry run."""
        return self._kinds.left_out

    @property
    def recipes(self) -> Recipes:
        """What the items of kinds of the hierarchy are made of."""
        return self._kinds.recipes

    @property
    def is_empty(self) -> bool:
        return not self._changes

    def changes(self) -> list[Change]:
        """All changes for one commit; raises TooLarge where the log entries do not fit into one item."""
        return list((self._changes | self._trees.changes(self._changes) | self._kinds.changes).values())

    # -- single changes ------------------------------------------------------------------------------------------------

    def _write(self, record: Record, changes: Iterable[Change]) -> None:
        """Add the changes of one node, which stays where it is or is new."""
        self.read_set.check_not_moving(record.key)
        self.ids.add(record.id)
        self._add(changes)

    def _add(self, changes: Iterable[Change]) -> None:
        """Add changes. Of a Put and a Delete of one item, as where a node replaces one that leaves, the Put stays."""
        for change in changes:
            earlier = self._changes.get(change.key)
            if isinstance(earlier, Put) and isinstance(change, Delete):
                continue
            if isinstance(earlier, Delete) and isinstance(change, Put):
                change = Put(change.item)
            self._changes[change.key] = change

    def _note_move(self, old: Record, new: Record, shape: Counts, *, is_logged: bool) -> None:
        self._kinds.move(old, new)
        self._trees.move(old, new, shape, is_logged=is_logged)


T = TypeVar("T")


class Step(NamedTuple, Generic[T]):
    """Changes that have to be in one transaction, the bytes that they count, and what they are about."""

    subject: T
    changes: Sequence[Change]
    size: int


def in_transactions(steps: Iterable[Step[T]], max_changes: int) -> Iterator[tuple[list[Change], list[T]]]:
    """Many small changes, cut by count and bytes: the changes of each transaction with the subjects of its steps.

    A larger step has a transaction of its own.
    """
    changes: list[Change] = []
    subjects: list[T] = []
    size = 0
    for step in steps:
        if changes and (len(changes) + len(step.changes) > max_changes or size + step.size > MAX_BATCH_BYTES):
            yield changes, subjects
            changes, subjects, size = [], [], 0
        changes += step.changes
        subjects.append(step.subject)
        size += step.size
    if subjects:
        yield changes, subjects
