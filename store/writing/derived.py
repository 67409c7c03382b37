"""Derived items: what follows from a change of nodes, and is written with it.

| items | of an edit in one transaction | of a large move |
| --- | --- | --- |
| id record, former revision, tombstone, redirect | `node_created` to `node_removed` | `MoveItems` |
| counts of all ancestors, versions and logs of trees | `TreeChanges` | `TreeChanges`, in its commit |
| items of node kinds | `KindChanges` | `MoveItems`; of its top `KindChanges`, in its commit |

`TransactionBuilder` collects the changes of an edit and of the commit of a large move; `MoveJob` writes those of the
other nodes. An import writes its own (`store/transfer/batches.py`).
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import TooLarge
from store.kinds.conditional import Waiting, check_made, conditional_changes, keys_of
from store.kinds.items import item_changes, located, moved_keys, node_items, removals, removed, taken
from store.kinds.kind import Located
from store.kinds.lineage import STEP, Lineage, MovedNode, id_hash, lineage, running_key
from store.kinds.marker import Marker, Recipes, marker_key
from store.kinds.registry import is_asked
from store.metadata.history import (
    Gone,
    Removal,
    copied_id_item,
    id_item,
    redirect_of_deleted,
    redirect_of_moved,
    redirect_of_restored,
    revision_item,
    shown_key,
    shown_path,
    tombstone_item,
)
from store.metadata.moves import Move
from store.metadata.tree_version import (
    ActiveMoveRef,
    Event,
    LogEntry,
    by_level,
    changed_counts,
    level_at_depth,
    log_item,
    root_log_key,
)
from store.model.decoding import decoded
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, ancestor_keys, depth_of, parent_sort_key, path_of
from store.model.paths import format_path
from store.model.records import (
    ABSENT,
    MAX_ITEM_BYTES,
    Change,
    Condition,
    Counts,
    Delete,
    Item,
    Put,
    Record,
    SubtreeRewrite,
    canonical_item,
    key_of,
    size_of,
)
from store.writing.reads import ReadSet, WriteContext

MAX_SMALL_ENTRIES = 50  # of a log, which fit into an item whatever their paths
MAX_LOGGED_RANKS = 100  # no transaction changes more where indexes are behind the table

# -- ids, revisions and redirects --------------------------------------------------------------------------------------


def node_created(record: Record, id_when: Condition) -> list[Change]:
    """The changes for a new node; `id_when` is the condition for its id record."""
    return [Put(record.item(), ABSENT), Put(id_item(record), id_when)]


def node_restored(record: Record, gone: Gone, redirect: Item | None) -> list[Change]:
    """The changes for a deleted node that comes back; `redirect` is the one at its last path."""
    changes: list[Change] = [Put(record.item(), ABSENT), Put(id_item(record), gone.when)]
    return changes + redirect_of_restored(record, gone, redirect)


def node_updated(old: Record, new: Record) -> list[Change]:
    """The changes for the next revision of a node's content."""
    return [Put(new.item()), Put(revision_item(old))]


def node_moved(old: Record, new: Record, when: Condition, *, redirects: bool) -> list[Change]:
    """The changes for a node that gets another key; `when` is the condition for what is there."""
    changes: list[Change] = [Delete(old.key), Put(new.item(), when), Put(id_item(new))]
    return changes + redirect_of_moved(old) if redirects else changes


def node_removed(
    record: Record, at: str, by: str | None, gone: Removal, *, has_redirects: bool, redirects: bool = True
) -> list[Change]:
    """The changes for a node that is deleted; it leaves a redirect that nobody follows."""
    changes: list[Change] = [Delete(record.key), Put(revision_item(record)), Put(tombstone_item(record, at, by, gone))]
    return changes + redirect_of_deleted(record, has_redirects=has_redirects) if redirects else changes


# -- counts, versions and logs of trees --------------------------------------------------------------------------------


def shape_of(records: Sequence[Record]) -> Counts:
    """The number of records by level and depth: `{"CITY@2": 50}`."""
    return Counter([level_at_depth(record.level, record.depth) for record in records])


@dataclass
class _CountChange:
    """The change of a node's counts of children and descendants, by level."""

    children: Counter[str] = field(default_factory=Counter)
    descendants: Counter[str] = field(default_factory=Counter)


@dataclass
class _TreeChange:
    """The changes of one partition's tree version and log; `moves` is None where the running moves stay the same."""

    shape: Counter[str] = field(default_factory=Counter)
    has_redirects: bool = False
    moves: tuple[ActiveMoveRef, ...] | None = None
    entries: list[LogEntry] = field(default_factory=list)
    ranks: dict[str, str] = field(default_factory=dict)


class TreeChanges:
    """The changes of counts, tree versions and change logs so far; `shape` has a subtree's counts (`{"CITY@2": 50}`).

    The read set has the ancestors of each node, and the versions of all trees.
    """

    def __init__(self, read_set: ReadSet, context: WriteContext) -> None:
        self._read_set = read_set
        self._context = context
        self._counts: defaultdict[Key, _CountChange] = defaultdict(_CountChange)
        self._trees: dict[str, _TreeChange] = {}
        self._ranks: dict[Key, str] = {}

    def add(self, top: Record, shape: Counts, event: Event) -> None:
        """Note that a subtree is new, or comes back."""
        self._count(top, shape, 1)
        self._tree(top.pk).shape.update(shape)
        self._log(event, top)

    def update(self, new: Record) -> None:
        self._log(Event.UPDATED, new)

    def reorder(self, record: Record) -> None:
        """Note that a node gets another rank."""
        self._log(Event.MOVED, record, record.path, record.path)

    def rank(self, ranked: Sequence[Record]) -> None:
        """Note the new ranks of nodes, which are in no entries."""
        for one in ranked:
            self._tree(one.pk)
            log, name = (one.hierarchy, root_log_key(one.pk)) if one.is_root else (one.pk, one.sk)
            self._tree(log).ranks[name] = self._ranks[one.key] = one.rank

    def remove(self, top: Record, shape: Counts, *, alone: bool = False) -> None:
        """Note the removal of a subtree; `alone` where all below its top goes elsewhere."""
        self._count(top, shape, -1)
        self._tree(top.pk).shape.subtract(shape)
        self._log(Event.DELETED, top, alone=alone)

    def move(self, old: Record, new: Record, shape: Counts, *, is_logged: bool) -> None:
        """Note the move of a subtree with the counts `shape` at its old place.

        One from where it was put aside is in the log of the tree that it had left.
        """
        self._count(old, shape, -1)
        self._count(new, shape, 1)
        self._tree(old.pk).shape.subtract(shape)
        shape_there, deeper = self._tree(new.pk).shape, new.depth - old.depth
        for name, number in shape.items():
            level, _, depth = name.rpartition("@")
            shape_there[level_at_depth(level, int(depth) + deeper)] += number
        if not is_logged:
            return
        place = shown_key(old.key)
        old = replace(old, pk=place.pk, sk=place.sk)
        self._log(Event.MOVED, old if old.pk != new.pk else new, old.path, new.path)
        if old.pk != new.pk:
            self._log(Event.MOVED, new, old.path, new.path)

    def redirect(self, partition: str) -> None:
        """Note that a node leaves a path of a tree by a move."""
        self._tree(partition).has_redirects = True

    def begin(self, move: Move) -> None:
        """Register a large move in the versions of its trees."""
        if move.target is not None and move.redirects:
            self.redirect(move.former.pk)  # the redirects are written with the copies
        for partition in move.running.partitions:
            self._tree(partition).moves = (*self._read_set.version(partition).moves, move.running)

    def changes(self, others: Container[Key]) -> dict[Key, Change]:
        """All changes by key, beside `others` of the same transaction, which have the right counts already.

        Raises TooLarge where the log entries do not fit into one item.
        """
        changes: dict[Key, Change] = {}
        for key, count in self._counts.items():
            old, rank = self._read_set.record(key), self._ranks.get(key)
            if old is None or (key in others and rank is None):
                continue  # a node that is itself removed
            new = replace(
                old,
                rank=old.rank if rank is None else rank,
                kids=changed_counts(old.kids, count.children),
                below=changed_counts(old.descendant_counts, count.descendants),
            )
            if (new.kids, new.below) != (old.kids, old.below):
                changes[key] = Put(new.item())
        for partition, tree in self._trees.items():
            for put in self._version_and_log(partition, tree):
                changes[put.key] = put
        return changes

    def _version_and_log(self, partition: str, tree: _TreeChange) -> list[Put]:
        version, now = self._read_set.version(partition), self._context.now
        raised = version.incremented(tree.shape, tree.moves, has_redirects=tree.has_redirects, now=now)
        ranks = tree.ranks if len(tree.ranks) <= MAX_LOGGED_RANKS else {}
        log = log_item(version, tree.entries, self._context.at, now, ranks)
        check_log(log, len(tree.entries))
        return [raised, log]

    def _count(self, top: Record, shape: Counts, sign: int) -> None:
        """Add a subtree to the counts of all its ancestors, or subtract it; the root's are in the tree version."""
        numbers = by_level(shape)
        for key in ancestor_keys(top.key)[1:]:
            for level, number in numbers.items():
                self._counts[key].descendants[level] += sign * number
        if top.is_root:
            self._tree(top.hierarchy).shape[level_at_depth(top.level, 0)] += sign
        else:
            self._counts[Key(top.pk, parent_sort_key(top.sk))].children[top.level] += sign

    def _log(self, event: Event, record: Record, *paths: Path, alone: bool = False) -> None:
        """Add an entry to the log of a node's tree, and of a root to that of its hierarchy; a move has two `paths`."""
        old, new = map(format_path, map(shown_path, paths)) if paths else (None, None)
        entry = LogEntry(event, shown_key(record.key).sk, record.id, record.level, record.revision, old, new, alone)
        self._tree(record.pk).entries.append(entry)
        if record.is_root and event is not Event.UPDATED:
            self._tree(record.hierarchy).entries.append(entry._replace(sk=root_log_key(record.pk)))

    def _tree(self, partition: str) -> _TreeChange:
        return self._trees.setdefault(partition, _TreeChange())


def check_log(log: Put, entries: int) -> None:
    """Raise TooLarge where the entries of a log item do not fit into it."""
    if entries > MAX_SMALL_ENTRIES and size_of(canonical_item(log.item)) > MAX_ITEM_BYTES:
        raise TooLarge(
            f"{entries:,} subtrees would be moved at once, more than fit into one entry of the change feed. Move some "
            "of them first."
        )


# -- items of node kinds -----------------------------------------------------------------------------------------------


def keys_of_moves(recipes: Recipes, read_set: ReadSet, record: Record) -> list[Key]:
    """The keys at which kinds have the moves of a node's ancestors, which were read, and its own as the last ones."""
    above = [read_set.record(key) for key in ancestor_keys(record.key)]
    nodes = [one for one in (*above, record) if one is not None]
    return [key for one in nodes for key in moved_keys(recipes, one.id, id_hash(nodes[0].id))]


def item_changes_of_move(recipes: Recipes, source: Key, target: Key, records: Sequence[Record]) -> int:
    """The maximum number of changes of items of kinds for the move of a subtree, its top first."""
    whole = taken(recipes, source, target)
    others = {name: one for name, one in recipes.items() if name not in whole}
    return item_changes_of_removal(whole, 2, records) + item_changes_of_removal(others, 2, records[:1])


def item_changes_of_removal(recipes: Recipes, times: int, records: Sequence[Record]) -> int:
    """So many times the number of changes of items of kinds for the removal of these nodes."""
    if not recipes:
        return 0
    moved = len(moved_keys(recipes, "", ""))
    return times * sum([moved + len(node_items(recipes, removed(one, ""))) for one in records])


class KindChanges:
    """The `changes` of the items of all kinds so far, by key, and what is `waiting` of kinds with conditions.

    Descendants of a moved node keep their items: only those of the moved node are written, and one with its new
    lineage. Of kinds whose recipe is by tree, a move to another tree writes the items of all nodes of the subtree.

    They are made as the marker says, which is written where it does not name yet what is made; without a marker there
    are none. The read set has the marker, the ancestors of each node, and of a moved one `keys_of_moves`.
    """

    def __init__(self, name: str, hierarchy: Hierarchy | None, read_set: ReadSet, context: WriteContext) -> None:
        """`name` is that of the hierarchy, which is None where no node is created or updated."""
        self.changes: dict[Key, Change] = {}
        self.left_out = 0
        self.waiting: list[Waiting] = []
        self._name = name
        self._is_dry_run = context.is_dry_run
        self._hierarchy = hierarchy
        self._read_set = read_set
        self._marker = Marker.of(name, read_set[marker_key(name)])

    @property
    def recipes(self) -> Recipes:
        """What the items are made of."""
        return {} if self._marker is None else self._marker.recipes

    def create(self, record: Record) -> None:
        is_first = record.is_root and not self._read_set.version(record.hierarchy).number
        if is_first and self._marker is None and self._hierarchy is not None and is_asked(self._hierarchy):
            self._marker = Marker.first(self._hierarchy)
        self._write(None, record)

    def update(self, old: Record, new: Record) -> None:
        self._write(old, new)

    async def remove(self, records: Sequence[Record]) -> None:
        """Remove the items of a node and of all below it; of a dry run the nodes are only counted, in `left_out`."""
        recipes = self._written([])
        if not recipes:
            return
        if self._is_dry_run:
            self.left_out += len(records)
            return
        root = self._root(records[0])
        async for some in in_chunks(records):
            for record in some:
                self._change(removals(recipes, record, root.id))
                self.waiting += Waiting.of(recipes, removed(record, root.id), None)

    async def relocate(self, records: Sequence[Record], rewrite: SubtreeRewrite) -> None:
        """Write the items of a subtree that gets other partitions; of a dry run they are counted as those removed."""
        whole = taken(self._written({record.level for record in records}), rewrite.source, rewrite.target)
        if not whole:
            return
        if self._is_dry_run:
            self.left_out += 2 * len(records)
            return
        root, moved = self._root(records[0]), list(map(rewrite.moved, records))
        nodes = located(self._ancestors(moved[0]), moved)
        async for some in in_chunks(list(zip(records, nodes, strict=True))):
            for record, node in some:
                self._change(removals(whole, record, root.id))
                self._change(item_changes(whole, None, node))
                self.waiting += Waiting.of(whole, removed(record, root.id), node)

    async def restore(self, records: Sequence[Record], tombstones: Sequence[Gone]) -> None:
        """Write the items of nodes that come back, their top first. Raises NotIndexed."""
        recipes = self._written({record.level for record in records})
        nodes = located(self._ancestors(records[0]), records)
        async for some in in_chunks(list(zip(nodes, tombstones, strict=True))):
            for node, gone in some:
                self._check_made(None, node.record)
                self._change(item_changes(recipes, None, node))
                former = path_of(*gone.former)
                self.waiting += [one._replace(former=former) for one in Waiting.of(recipes, None, node)]

    def move(self, old: Record, new: Record) -> None:
        """Write the items of a moved node, and if there are nodes below it, what shows where these are.

        Where the subtree gets other partitions, `relocate` or the large move has written all items.
        """
        recipes = self._written([new.level])
        whole = taken(recipes, old.key, new.key)
        recipes = {name: one for name, one in recipes.items() if name not in whole}
        self._add(recipes, old, new)
        before, after = self._located(old), self._located(new)
        if before.line == after.line:
            return
        keys = keys_of_moves(recipes, self._read_set, old)
        found = {key: item for key in keys if (item := self._read_set[key]) is not None}
        moved = MovedNode.after(old.id, before.line, after.line, found.values()) if old.kids else None
        for key in moved_keys(recipes, old.id, before.line[:STEP]):
            if moved is not None:
                self._put(moved.item(key))
            elif key in found:
                self.changes[key] = Delete(key)

    def begin(self, move: Move) -> None:
        """Show that a large move is running."""
        if self._written([]):
            key = running_key(self._name, move.id)
            self._put({"pk": key.pk, "sk": key.sk})

    def _written(self, levels: Iterable[str]) -> Recipes:
        """What the items of nodes of these levels are made of, which the marker names from now on."""
        if self._marker is not None:
            named = self._marker.naming(self._hierarchy, levels)
            if named is not self._marker or not named.number:
                self._marker, put = named, named.put()
                self.changes[put.key] = put
        return self.recipes

    def _write(self, old: Record | None, new: Record) -> None:
        """Write the items of a node whose content is written. Raises NotIndexed."""
        recipes = self._written([new.level])
        self._check_made(old, new)
        self._add(recipes, old, new)

    def _check_made(self, old: Record | None, new: Record) -> None:
        if self._hierarchy is not None:
            check_made(self._hierarchy, self._marker, old, new)

    def _located(self, record: Record) -> Located:
        return Located.below(self._ancestors(record), record)

    def _ancestors(self, record: Record) -> list[Record]:
        found = [self._read_set.record(key) for key in ancestor_keys(record.key)]
        return [one for one in found if one is not None]

    def _root(self, record: Record) -> Record:
        return [*self._ancestors(record), record][0]

    def _add(self, recipes: Recipes, old: Record | None, new: Record) -> None:
        if recipes:
            before, after = None if old is None else self._located(old), self._located(new)
            self._change(item_changes(recipes, before, after))
            self.waiting += Waiting.of(recipes, before, after)

    def _change(self, changes: Iterable[Change]) -> None:
        self.changes |= {change.key: change for change in changes}

    def _put(self, item: Item) -> None:
        self.changes[key_of(item)] = Put(item)


# -- large moves -------------------------------------------------------------------------------------------------------


class MoveItems:
    """All changes for the single nodes of one large move; `recipes` are those of the hierarchy.

    A cascade removes the items of all kinds of its nodes, and a restore writes them with the copies. A move writes
    those of the kinds of which it takes the whole subtree to other partitions: at the new place with the copies, and
    those at the old one are removed with the old nodes. It leaves all others unchanged.
    """

    def __init__(self, store: Store, move: Move, recipes: Recipes) -> None:
        self._store = store
        self._move = move
        self._recipes = recipes if move.target is None or move.gone else taken(recipes, move.source, move.target)
        self._found: dict[Key, Item | None] = {}
        self._written: set[str] = set()  # the ids of these nodes whose changes are made

    async def lineages(self, records: Sequence[Record]) -> Mapping[Key, Lineage]:
        """The lineages that nodes of the source, in key order, have at the target; none where no items are written."""
        source, target = self._move.source, self._move.target
        if not self._recipes or target is None:
            return {}
        inner = [key for key in ancestor_keys(records[0].key) if source.holds(key)]
        line = lineage([Record.of(item).id for item in await self._read([*ancestor_keys(target), *inner])])
        found, deeper = {}, depth_of(target.sk) - depth_of(source.sk)
        for record in records:
            line = line[: (depth_of(record.sk) + deeper) * STEP] + id_hash(record.id)
            found[record.key] = line
        return found

    async def root_id(self, top: Key) -> str:
        """The id of the root above the source or the target; empty where no items of kinds are written."""
        if not self._recipes or top.sk == "#":
            return self._move.top_id
        return str((await self._read([Key(top.pk, "#")]))[0]["id"])

    async def read(self, nodes: Iterable[Located]) -> None:
        """Read what is stored of kinds with conditions for these nodes, before their changes are made."""
        self._written.clear()
        if keys := keys_of([one for node in nodes for one in Waiting.of(self._recipes, node, None)]):
            self._found = dict(zip(keys, await self._store.get(keys, ReadUsage(), strong=True), strict=True))

    def copied(self, record: Record, copy: Record, line: Lineage | None) -> list[Change]:
        """The changes for the copy of a node, which has this lineage at the target."""
        changes: list[Change] = [Put(copy.item()), *(redirect_of_moved(record) if self._move.redirects else ())]
        return changes if line is None else [*changes, *self._changes(None, Located(copy, line))]

    def restored(self, copy: Record, was: Item, redirect: Item | None, line: Lineage | None) -> list[Change]:
        """The changes for the copy of a deleted node with the tombstone `was`; `redirect` is the one at its last path.

        Their conditions fail where the node was brought back meanwhile.
        """
        gone = decoded(was, Gone)
        when = {**gone.when, "kids": was.get("kids")}
        changes: list[Change] = [Put(copy.item()), Put(copied_id_item(copy, was), when)]
        changes += redirect_of_restored(copy, gone, redirect)
        return changes if line is None else [*changes, *self._changes(None, Located(copy, line))]

    def swept(self, record: Record, root_id: str, line: Sequence[str]) -> list[Change]:
        """The changes for a node that is left at the source, below this root; `line` leads to it (`line_to`)."""
        move = self._move
        if move.gone is not None:
            return [Put(id_item(record))]
        if move.target is None:  # the redirects of the tree were marked before the commit
            at, by = move.started_at, move.changed_by
            below = move.nodes - 1 if record.below is None else sum(record.below.values())
            gone = Removal(move.id, line, sum(record.kids.values()), below)
            changes = node_removed(record, at, by, gone, has_redirects=False, redirects=move.redirects)
        else:
            key = record.key.moved(move.source, move.target)
            changes = [Delete(record.key), Put(id_item(replace(record, pk=key.pk, sk=key.sk)))]
        changes += removals(self._recipes, record, root_id)
        return [*changes, *self._conditional(removed(record, root_id), None)]

    def undone(self, copy: Record, root_id: str, back: Mapping[str, Sequence[Change]]) -> list[Change]:
        """The changes for the copy of a node at the target, below this root, which is removed; `back` are those that
        put back tombstones, by id.
        """
        return [Delete(copy.key), *back.get(copy.id, ()), *self._changes(removed(copy, root_id), None)]

    def _changes(self, old: Located | None, new: Located | None) -> list[Change]:
        return [*item_changes(self._recipes, old, new), *self._conditional(old, new)]

    def _conditional(self, old: Located | None, new: Located | None) -> Iterable[Change]:
        changes, taken = conditional_changes(Waiting.of(self._recipes, old, new), self._found)
        for one in taken:
            record, gone = one.waiting.record, self._move.gone
            former = None if gone is None else path_of(*record.key.moved(self._move.source, gone.former))
            is_beside = one.holder in self._written
            raise one.waiting.kind.taken(None, record, one.item, None, former, is_beside=is_beside)
        self._written.update([new.record.id] if new else [])
        for key, change in changes.items():  # for the next node, which may be in the same transaction
            self._found[key] = change.item if isinstance(change, Put) else None
        return changes.values()

    async def _read(self, keys: Sequence[Key]) -> list[Item]:
        """The items of nodes that cannot be removed while the move runs."""
        found = await self._store.get(keys, ReadUsage(), strong=True)
        return [item for item in found if item is not None]
