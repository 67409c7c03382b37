"""Several edits or none: each sees those before it, and all are one transaction with one version and one log item for
each tree.

Every edit is built as it would be alone, over the changes of those before it; what they leave is folded at the end.
"""

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from msgspec.structs import replace as with_key

from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import AlreadyExists, CladeError, Fault, FaultList, Faults, Forbidden, NotEmpty, NotFound, TooLarge
from store.kinds.conditional import Waiting, net
from store.kinds.unique import UniqueValue
from store.metadata.history import current_key, former_key
from store.metadata.tree_version import Event
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, KeyRange, Path, id_key, log_key, tree_version_key
from store.model.records import MAX_BATCH_BYTES, Change, Item, Put, Record, canonical_item, key_of
from store.writing.create_update import Create, Update
from store.writing.derived import MAX_LOGGED_RANKS, check_log
from store.writing.edit import UNUSABLE, Edit, Places, places_of
from store.writing.move_delete import Delete as Deletion
from store.writing.move_delete import Move, Policy
from store.writing.reads import MAX_NODES, MAX_READ_UNITS, Reader, Rights, WriteContext, WriteOverlay
from store.writing.taken import settled
from store.writing.transaction import EditedNode, TransactionBuilder

MAX_EDITS = 100
MAX_BYTES = MAX_READ_UNITS * 4096  # of all changes where a transaction has no limit
MAX_BUILT_BYTES = 100_000_000  # of the changes of all edits, where several change one item; a second of work


@dataclass(frozen=True)
class EditMany:
    """Several edits of one hierarchy, of which all are made or none; `faults` are those of the whole input."""

    hierarchy: Hierarchy
    edits: Sequence[Edit]
    faults: Sequence[Fault] = ()

    @property
    def named_ids(self) -> list[str]:
        """The ids that they name and that nodes can have."""
        return [one for edit in self.edits for one in edit.named_ids]

    @property
    def named_values(self) -> list[UniqueValue]:
        """The unique values that they name."""
        return [one for edit in self.edits for one in edit.named_values]

    def keyed(self, keys: Mapping[UniqueValue, Key]) -> "EditMany":
        """The edits with the keys of the items of the unique values that they name."""
        return replace(self, edits=[edit.keyed(keys) for edit in self.edits])

    async def places(self, reader: Reader, rights: Rights) -> Places:
        """Where the nodes are that they name by ids or unique values, before them."""
        return await places_of(self.hierarchy, [one for edit in self.edits for one in edit.names or ()], reader)

    def ahead(self, places: Places, rights: Rights) -> Sequence[Edit]:
        """The edits at their places if all of them are made, and their nodes are at these places before."""
        ahead, now = list[Edit](), {**places.keys}
        for edit in self.edits:
            try:
                placed = edit.placed(places._replace(keys=now), rights)
            except CladeError:  # which the build tells; where the nodes are is not sure before
                continue
            ahead.append(placed)
            match placed:
                case Move(key=source, target_key=target):
                    now |= {one: key.moved(source, target) for one, key in now.items() if key and source.holds(key)}
                case Create(node_id=str(bare)):
                    now[f"{self.hierarchy.name}:{bare}"] = placed.key
        return ahead

    def placed(self, places: Places, rights: Rights) -> "EditMany":
        """The edits at the paths of their nodes, of which the present places are given. Raises Forbidden."""
        return replace(self, edits=[edit.placed(places, rights) for edit in self.edits])

    def refusal(self, ways: Sequence[tuple[Path, Path]], rights: Rights) -> NotFound | Forbidden | None:
        """Why their stored result may not be returned, by the ways of their nodes; None where it may."""
        found = [edit.refusal([way], rights) for edit, way in zip(self.edits, ways, strict=True)]
        return next((one for one in found if one is not None), None)

    async def build(self, reader: Reader, context: WriteContext) -> "Batch":
        """Build the edits in their order. Raises all their faults, each with the place of its edit, and Forbidden."""
        FaultList(self.faults).check()
        batch, faults = Batch(reader, context, self.hierarchy), FaultList()
        failed: list[Edit] = []
        for place, edit in enumerate(self.edits):
            await asyncio.sleep(0)
            if batch.is_full:
                break
            try:
                await batch.add(place, await edit.build_part(batch.reader, batch.context))
            except (Fault, Faults) as error:
                placed = edit.placed(await edit.places(batch.reader, context.rights), context.rights)
                for one in error.errors if isinstance(error, Faults) else [error]:
                    if not _may_follow(one, placed, edit, failed):
                        one.edit = place
                        faults.add(one)
                failed.append(placed)
        if faults.errors and (too_large := batch.too_large_so_far()) is not None:
            faults.add(too_large)
            faults.errors.sort(key=lambda one: one.edit or 0)
        faults.check()
        await batch.finish()
        return batch


def _may_follow(fault: Fault, edit: Edit, asked: Edit, failed: Iterable[Edit]) -> bool:
    """Whether a fault may follow from edits that failed before.

    Its edit names a place at or below one of theirs, a node that they would have put there, or, as it is `asked`, an id
    or a unique value that they would have given; or it meets what they would have taken away: children, or an id.
    """
    paths = _places(edit)
    for other in failed:
        places = _places(other)
        if any(path[: len(place)] == place for path in paths for place in places):
            return True
        is_above = any(place[: len(path)] == path for path in paths for place in places)
        match other, fault:
            case Create(node_id=node_id), _ if f"{other.hierarchy.name}:{node_id}" in asked.named_ids:
                return True
            case Create() | Update(), _ if not {*other.given_values}.isdisjoint(asked.named_values):
                return True
            case Move() | Deletion(), NotEmpty() if is_above:
                return True
            case Deletion(), AlreadyExists(field=("id",)):
                return True
            case Deletion(policy=Policy.REPARENT), NotFound():
                above = other.path[:-1]
                if any(path[: len(above)] == above for path in paths):
                    return True
    return False


def _places(edit: Edit) -> list[Path]:
    """The paths that an edit is about, without those of nodes that are not found."""
    beside = edit.position.beside if isinstance(edit, Move) and edit.position is not None else None
    target = edit.target if isinstance(edit, Move) else None
    return [path for path in (edit.path, target, beside) if path and path[0] != UNUSABLE]


class Batch:
    """What several edits change so far, as a transaction; `reader` reads it over what is pending and stored."""

    move = None
    nodes_left_out = 0

    def __init__(self, reader: Reader, context: WriteContext, hierarchy: Hierarchy) -> None:
        self.reader = _BatchReader(reader)
        self.context = replace(context, is_dry_run=False)  # with all changes, which are what is limited
        self.hierarchy = hierarchy.name
        self._hierarchy = hierarchy
        self._waiting: list[Waiting] = []
        self.edited: list[EditedNode] = []
        self.is_full = False
        self._ids: set[str] = set()
        self._changes: list[Change] = []
        self._sizes: dict[Key, int] = {}
        self._built_nodes = self._built_bytes = 0
        self._past: int | None = None  # the edit at which the limit of a transaction was passed

    @property
    def written(self) -> int:
        """The number of nodes that it writes, each once."""
        return len(self._ids)

    @property
    def is_empty(self) -> bool:
        return not self._changes

    def changes(self) -> list[Change]:
        """All changes for one commit."""
        return [*self._changes]

    def too_large(self, needed: int, limit: int) -> TooLarge:
        """The error for more changes than one transaction holds."""
        place = len(self.edited) - 1 if self._past is None else self._past
        error = TooLarge(
            f"The {len(self.edited)} edits take {needed:,} writes; one transaction of DynamoDB holds {limit}, which "
            "this edit passes. Send those from here on in another request."
        )
        error.edit = place
        return error

    def too_large_so_far(self) -> TooLarge | None:
        """The same error, None where what was added so far fits."""
        limit = self.reader.store.max_commit_changes
        if self._past is None or limit is None:
            return None
        return self.too_large(len(self._folded()) + self.context.is_stored, limit)

    async def add(self, place: int, transaction: TransactionBuilder) -> None:
        """Add the changes of the next edit; raises TooLarge where they are more than one request may hold."""
        overlay, limit = self.reader.overlay, self.reader.store.max_commit_changes
        if transaction.move is not None:
            raise TooLarge(
                f"This edit takes more than one transaction, since it moves or deletes {transaction.written:,} nodes. "
                "Send it alone."
            )
        changes = transaction.changes()
        self.reader.note(changes)
        async for some in in_chunks(changes):
            sizes = {one.key: overlay.size(one) for one in some}
            self._sizes |= sizes
            self._built_bytes += sum(sizes.values())
        self._built_nodes += transaction.written
        size, most = sum(self._sizes.values()), MAX_BYTES if limit is None else MAX_BATCH_BYTES
        self.is_full = size > most or self._built_nodes > MAX_NODES or self._built_bytes > MAX_BUILT_BYTES
        if self.is_full:
            raise TooLarge(
                f"The edits up to this one write {self._built_nodes:,} nodes and {size:,} bytes, more than one "
                "transaction holds. Send fewer edits at once."
            )
        self._ids |= transaction.ids
        self._waiting += [one._replace(edits=dict.fromkeys(one.after, place)) for one in transaction.waiting]
        overlay.promise(transaction.waiting)
        await overlay.add(changes)
        self.edited += transaction.edited
        if limit is not None and self._past is None and len(self._folded()) + self.context.is_stored > limit:
            self._past = place

    async def finish(self) -> None:
        """Fold the changes, and take the nodes as they are after all edits; a deleted one stays as it was last.

        Raises the faults of items that other nodes have after all edits.
        """
        self.reader.overlay.promised.clear()
        settled_changes = await settled(net(self._waiting), self._hierarchy, self.reader, self.context)
        self._changes = [*(self._folded() | settled_changes).values()]
        last = {one.record.id: one for one in self.edited}
        for place, one in enumerate(self.edited):
            own, latest = id_key(one.record.id), last[one.record.id]
            item = self.reader.overlay.item(own) if self.reader.overlay.changes_item(own) else None
            key, is_gone = one.record.key, latest.is_gone
            if item is not None:
                key, is_gone = former_key(item), current_key(item) is None
            record = None if is_gone else (await self.reader.read([key.pk], [key])).record(key)
            record = record or with_key(latest.record, pk=key.pk, sk=key.sk)
            self.edited[place] = one._replace(record=record, is_gone=is_gone)

    def _folded(self) -> dict[Key, Change]:
        """All changes, with one version and one log item of each tree in place of those of the single edits."""
        changes = {change.key: change for change in self.reader.overlay.changes}
        logs: dict[str, list[Put]] = {}
        for key, change in changes.items():
            if isinstance(change, Put) and key.sk.startswith("!") and key.sk[1:].isdigit():
                logs.setdefault(key.pk, []).append(change)
        for partition, puts in logs.items():
            version = cast(Put, changes[tree_version_key(partition)])
            number = cast(int, version.item["n"]) - len(puts) + 1
            entries = [entry for put in puts for entry in cast(list[Value], put.item["changes"])]
            ranks = {sk: rank for put in puts for sk, rank in cast(dict[str, str], put.item.get("ranks", {})).items()}
            key = log_key(partition, number)
            item: Item = {**puts[-1].item, "sk": key.sk, "changes": entries, "ranks": cast(Value, ranks)}
            if not 0 < len(ranks) <= MAX_LOGGED_RANKS:
                del item["ranks"]
            for put in puts:
                del changes[put.key]
            changes[key] = log = Put(item)
            check_log(log, len(entries))
            changes[version.key] = Put({**version.item, "n": number}, version.when)
        return changes


class _BatchOverlay(WriteOverlay):
    """The changes of a batch over those of its group, which it does not change."""

    def __init__(self, store: Store, group: WriteOverlay) -> None:
        super().__init__(store)
        self._group = group
        self._keys: list[Key] = []  # of the changes, in order when they are asked for
        self.promised: dict[Key, dict[str, Item | None]] = {}  # by ids of nodes, the last ones at the end

    def __contains__(self, key: Key) -> bool:
        return key in self._pending or key in self._group

    def promise(self, waiting: Iterable[Waiting]) -> None:
        """Show the items of kinds with conditions that nodes would have if no others had them, so that the nodes are
        found by unique values; None for those that they have given up.
        """
        for one in waiting:
            for key, item in (dict.fromkeys(one.before) | dict(one.after)).items():
                promised = self.promised.setdefault(key, {})
                promised.pop(one.record.id, None)
                promised[one.record.id] = item

    def item(self, key: Key) -> Item | None:
        item, promised = self._item(key), self.promised.get(key, {})
        last = next((one for one in reversed(promised.values()) if one is not None), None)
        return last or (None if item is not None and item.get("id") in promised else item)

    def _item(self, key: Key) -> Item | None:
        change = self._pending.get(key)
        if change is None:
            return self._group.item(key)
        return canonical_item(change.item) if isinstance(change, Put) else None

    def changes_item(self, key: Key) -> bool:
        """Whether the batch changes the item at a key."""
        return key in self._pending

    async def read(self, keys: Iterable[Key], reads: ReadUsage) -> None:
        await self._group.read([key for key in keys if key not in self._pending], reads)

    def add_read(self, items: Mapping[Key, Item | None]) -> None:
        self._group.add_read({key: item for key, item in items.items() if key not in self._pending})

    def forget(self, keys: Iterable[Key]) -> None:
        self._group.forget(keys)

    @property
    def is_pending(self) -> bool:
        return self._group.is_pending  # ranges have the changes of the batch, but not those of its group

    def pending_ranks(self, parent: str) -> dict[Key, str | None]:
        return self._group.pending_ranks(parent) | super().pending_ranks(parent)

    async def add(self, changes: Sequence[Change]) -> None:
        self._keys += {change.key for change in changes} - self._pending.keys()
        self._pending |= await self._merged(changes)

    def within(self, key_range: KeyRange) -> dict[Key, Item | None]:
        """The changed items of a range of the table in key order, None for those that are removed."""
        self._keys.sort()
        ends = [bisect_left(self._keys, (key_range.partition, bound)) for bound in (key_range.lo, key_range.hi)]
        return {key: self.item(key) for key in self._keys[slice(*ends)]}


class _BatchReader(Reader):
    """The reads of the edits of a batch: ranges have its changes, and revisions are those before it."""

    overlay: _BatchOverlay

    def __init__(self, reader: Reader) -> None:
        overlay = _BatchOverlay(reader.store, reader.overlay)
        super().__init__(reader.store, reader.reads, overlay, reader.recent)
        self._revisions: dict[str, int] = {}

    def revision(self, record: Record) -> int:
        return self._revisions.get(record.id, record.revision)

    def note(self, changes: Iterable[Change]) -> None:
        """Keep the revisions that nodes had before these changes, as the logs tell; of a new node its first one."""
        for change in changes:
            if isinstance(change, Put) and change.key.sk.startswith("!"):
                for event, _, node_id, _, revision, *_ in cast(list[list[Any]], change.item.get("changes", [])):
                    self._revisions.setdefault(node_id, revision - (event == Event.UPDATED))

    async def pages(self, key_range: KeyRange) -> AsyncIterator[list[Item]]:
        changed = self.overlay.within(key_range)
        added = deque([item for item in changed.values() if item is not None])
        async for page in super().pages(key_range):
            items = [item for item in page if key_of(item) not in changed]
            while added and page and key_of(added[0]) <= key_of(page[-1]):
                insort(items, added.popleft(), key=key_of)
            yield items
        if added:
            yield [*added]
