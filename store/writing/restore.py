"""Restoring a deleted node, and all that the same deletion removed below it: the undo of a deletion.

Its nodes are listed by the tombstones of the deletion in `by_parent`, read strongly again, and kept while they still
name this deletion, and hang on a node that comes back: what was brought back elsewhere by its id stays there, and what
is below it stays deleted. The index may be behind the table: then a tombstone has more `kids` than were found, and
nothing is restored. No index is behind for an hour, so a wrong number blocks no restore for longer.
"""

import asyncio
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.engine import Store
from store.errors import BadPath, Conflict, Fault, FaultList, IndexBehind, Misplaced, NotFound, shorten, shown
from store.metadata.history import Gone, current_key, deleted_record, former_key, gone_of, id_item, redirect_key
from store.metadata.moves import new_move
from store.model.decoding import damaged, decoded
from store.model.keys import (
    Index,
    Key,
    KeyRange,
    Path,
    ancestor_keys,
    depth_of,
    first_rank,
    id_key,
    just_after,
    last_segment,
    parent_sort_key,
    path_of,
    revision_key,
)
from store.model.records import MAX_BATCH_BYTES, Item, Record, SubtreeRewrite, is_id, size_of
from store.reading import PAGE_ITEMS, gone_items
from store.writing.create_update import existing, levels_above, taken
from store.writing.derived import item_changes_of_removal
from store.writing.edit import NOWHERE, UNUSABLE, Edit, Places, child_path, touched
from store.writing.positions import Position, Ranks, Side, ranks_at
from store.writing.reads import (
    MAX_NODES,
    MAX_READ_UNITS,
    OTHER_CHANGES,
    NotCombinable,
    Reader,
    ReadSet,
    Rights,
    WriteContext,
)
from store.writing.transaction import TransactionBuilder

CHANGES_A_NODE = 2  # of one that comes back: its item and its id record
LAG_SECONDS = 3600.0  # for so long at most an index may be behind the table


class Restored(NamedTuple):
    """A node that comes back, at its last key, with its tombstone."""

    record: Record
    gone: Gone

    @classmethod
    def of(cls, gone: Gone, revision: Item | None) -> Self:
        """The next revision of a node, with the content of its last one; raises DamagedItem where that is missing."""
        if revision is None:
            raise damaged({"pk": gone.pk, "sk": "v0"}, f"the revision {gone.revision} of the deleted node is missing")
        record = deleted_record(gone, revision)
        rank = gone.place or first_rank(gone.level, last_segment(*gone.former))
        return cls(replace(record, rank=rank, below={}, revision=gone.revision + 1), gone)


@dataclass(frozen=True)
class Restore(Edit):
    """The undo of the deletion of the node with an id, as far as that is below it.

    With `names` it goes below the node of the field `to`, is made a root with `to_root`, or comes back below its former
    parent; the path then is its new key alone, UNUSABLE for one at fault, or empty for its former key. Placed, the path
    is that of its new place, and `gone` its tombstone, None where there is none; then `place` is the key of the node.
    """

    node_id: str
    to_root: bool = False
    gone: Gone | None = None
    place: Key | None = None

    @property
    def before(self) -> Path:
        return NOWHERE if self.gone is None else path_of(*self.gone.former)

    @property
    def former_parent(self) -> None:
        return None

    # -- places --------------------------------------------------------------------------------------------------------

    async def places(self, reader: Reader, rights: Rights) -> Places:
        found, keys = await super().places(reader, rights), dict[str, Key | None]()
        if self.names is None or not is_id(self.hierarchy, self.node_id):
            return found
        record = (await reader.read([], [own := id_key(self.node_id)]))[own]
        is_hidden = record is None or not self._is_visible(path_of(*former_key(record)), rights)
        gone = None if is_hidden else gone_of(record)
        has_place = self.to_root or any(one.field == "to" for one in self.names)
        if gone is not None and gone.under is not None and not has_place:
            item = (await reader.read([], [above := id_key(gone.under)]))[above]
            key = current_key(item)
            if item is not None and (key or self._is_visible(path_of(*former_key(item)), rights)):
                keys[gone.under] = key  # a hidden one that is deleted is as one that is hidden elsewhere
        return found._replace(keys={**found.keys, **keys}, gone=gone)

    def _is_visible(self, path: Path, rights: Rights) -> bool:
        with suppress(NotFound):
            rights.check_visible(self.hierarchy.name, path)
            return True
        return False

    def placed(self, places: Places, rights: Rights) -> Self:
        if self.names is None:
            return self
        faults, gone = FaultList(self.faults), places.gone
        parent: Path | None = None
        place, ids = places.keys.get(self.node_id), dict[Path, str]()
        if place is not None and not self._is_visible(path_of(*place), rights):
            place = None
        if gone is None:
            prefix = f"{self.hierarchy.name}:"
            way = "" if self.node_id.startswith(prefix) else f'; one begins with "{prefix}"'
            faults.add(NotFound(f"There is no deleted node with the id {shown(self.node_id)}{way}.").at("id"))
        else:
            rights.check_change(self.hierarchy.name, path_of(*gone.former))
        with faults.collecting("to"):
            parent = self._parent(places, rights, ids)
        key = self.path[-1] if self.path else UNUSABLE if gone is None else path_of(*gone.former)[-1]
        path: Path = NOWHERE
        found: Sequence[Fault] = [*faults.errors]
        if parent is not None:
            path, found = child_path(parent, key, found, "key" if self.path else "to")
        made = dataclasses.replace(self, path=path, gone=gone, place=place, ids=ids, names=None, faults=found)
        rights.check(made)
        return made

    def _without_parent(self) -> NotFound:
        return NotFound(f"The former parent of {self.node_id} is not to be found; give to.")

    def _parent(self, places: Places, rights: Rights, ids: dict[Path, str]) -> Path | None:
        """The path of the new parent, empty for a root; None where it follows from a node that is not found. Those of
        nodes that are known by their ids are noted. Raises NotFound.
        """
        gone, named = places.gone, next((one for one in self.names or () if one.field == "to"), None)
        if self.to_root:
            return ()
        if named is not None:
            path = named.path
            if named.id is not None or named.value is not None:
                path = self._path_of(named, places, rights)
                ids[path] = str(places.id_of(named))
            if path is not None:
                rights.check_visible(self.hierarchy.name, path)
            return path
        if gone is None or gone.key == "#":
            return None if gone is None else ()
        if gone.under is None or gone.under not in places.keys:
            raise self._without_parent()
        if (key := places.keys[gone.under]) is None:
            raise NotFound(f"The parent {gone.under} is deleted as well; restore that first, or give to.")
        path = path_of(*key)
        # A hidden one counts where it was, which those know whose grant begins at the node, and nowhere else.
        if path != path_of(*gone.former)[:-1] and not self._is_visible(path, rights):
            raise self._without_parent()
        ids[path] = gone.under
        return path

    # -- building ------------------------------------------------------------------------------------------------------

    def partitions(self) -> set[str]:
        former = {self.gone.tree} if self.gone else {self.place.pk} if self.place else set()
        return touched(self.hierarchy.name, self.path) | former

    def keys_to_read(self) -> list[Key]:
        gone = self.gone
        if gone is None:
            return super().keys_to_read()
        above = [] if gone.under is None else [id_key(gone.under)]
        return [*super().keys_to_read(), id_key(gone.id), revision_key(gone.id, gone.revision), *above]

    async def _build(self, reader: Reader, read_set: ReadSet, context: WriteContext) -> TransactionBuilder:
        faults, gone, above, hierarchy = FaultList(self.faults), self.gone, [""], self.hierarchy
        if (place := self.place) is not None:  # of a node that a large move deletes, or brings back
            for ref in read_set.version(place.pk).moves:
                if ref.holds(place) and (ref.target is None or ref.is_restore):
                    raise Conflict(ref.refusal(place)).at("id")
        if gone is not None and any(ref.id == gone.deletion for ref in read_set.version(gone.tree).moves):
            text = f"{self.node_id} is still being deleted; retry when the move {gone.deletion} has ended."
            faults.add(Conflict(text).at("id"))
        if NOWHERE not in (self.path, self.path[:-1]):
            with faults.collecting("to"):
                if gone is not None:
                    above = levels_above(read_set, hierarchy, self.path, gone.level)
                elif len(self.path) > 1:
                    existing(read_set, hierarchy, self.path[:-1])
        if self.path != NOWHERE:
            with faults.collecting():
                read_set.check_not_moving(self.key)
                if read_set[self.key] is not None:
                    raise taken(self.path).at("key")
        if gone is None or faults.errors:
            raise faults.error()
        top = Restored.of(gone, read_set[revision_key(gone.id, gone.revision)])
        rewrite = SubtreeRewrite(gone.former, self.key, above, first_rank(gone.level, last_segment(*self.key)))
        transaction = TransactionBuilder(hierarchy, read_set, context, self._moved(rewrite, top.record))
        if (ranks := await self._ranks(reader, transaction)) is not None:
            rewrite = dataclasses.replace(rewrite, rank=ranks.own)
            transaction.rank_again(ranks.others)
        found = await self._found(reader, context, top)
        if found is not None:
            left = [redirect_key(one.gone.former) for one in found] if self.key != gone.former else []
            await reader.read_into(read_set, [], left)
            records = counted([self._moved(rewrite, one.record) for one in found])
            if self._fits(reader, transaction, records, len(left)):
                self._check_unique(context.rights, records)
                records = [replace(one, updated_at=context.at, changed_by=context.by) for one in records]
                transaction.record = records[0]
                await transaction.restore(records, [one.gone for one in found])
                await transaction.take_out(gone, reader)
                return transaction
        self._check_unique(context.rights, None)
        transaction.record = replace(rewrite.moved(top.record), updated_at=context.at, changed_by=context.by)
        if gone.below < MAX_NODES:  # of others it would take seconds
            await self._check_below(reader, rewrite, top)
        start = (context.now, context.at, context.by)
        transaction.begin(new_move(transaction.record, self.key, *start, redirects=self.key != gone.former, gone=gone))
        return transaction

    async def _ranks(self, reader: Reader, transaction: TransactionBuilder) -> Ranks | None:
        """The ranks for the manual position that the node had, which it keeps with its parent and key; else None."""
        gone, record, read_set = self.gone, transaction.record, transaction.read_set
        under = next(iter(transaction.line_above(record)), None)
        if gone is None or gone.place is None or gone.under != under:
            return None
        if last_segment(*gone.former) != last_segment(*record.key):
            return None
        span = KeyRange(Index.BY_PARENT, record.siblings, gone.place, just_after(gone.place))
        found = await reader.store.nodes(span, reader.reads, limit=2)
        beside = next((one for one in found if one.id != record.id), None)
        if beside is None:
            return Ranks(gone.place)
        position = Position(Side.AFTER, beside.path)
        return await ranks_at(position, reader, read_set, transaction.context, record, beside, source=Key("", "#"))

    async def _found(self, reader: Reader, context: WriteContext, top: Restored) -> list[Restored] | None:
        """The node and all that comes back with it, in key order; None where they are surely more than fit into one
        transaction. Raises Unavailable where the index lacks some.
        """
        limit, gone = reader.store.max_commit_changes, top.gone
        most = MAX_NODES if limit is None else limit // 2
        if not (gone.kids or gone.below):
            return [top]
        if gone.below >= most:
            return None
        may_lack_some = may_lack(reader.store, gone, context.now)
        for seconds in (context.settle_seconds, 0.0):
            found = await self._listed(reader, top)
            kids = Counter([one.gone.under for one in found or ()])
            if found is None or not may_lack_some or all(kids[one.gone.id] >= one.gone.kids for one in found):
                return found
            reader.overlay.forget([id_key(one.gone.id) for one in found])
            await asyncio.sleep(seconds)
            record = (await reader.read([], [own := id_key(gone.id)]))[own]
            if gone_of(record) != gone:  # changed by another commit, after which this one is built again
                return found
        raise IndexBehind(self.node_id)

    async def _listed(self, reader: Reader, top: Restored) -> list[Restored] | None:
        """The node and all that the index lists below it; None where reading them takes more than a transaction may."""
        if reader.overlay.is_pending:
            raise NotCombinable
        gone, units = top.gone, reader.reads.units
        items = gone_items(reader.store, gone.parent or "", gone.key, reader.reads)
        listed = [decoded(item, Gone) async for item in items]
        found, parents, places = [top], set[str | None]({gone.id}), set[str | None]({gone.key})
        async for some in in_chunks(listed, PAGE_ITEMS):
            keys = [id_key(one.id) for one in some]
            await reader.read([], [*keys, *[revision_key(one.id, one.revision) for one in some]])  # in one request
            found += await restored(reader, keys, gone.deletion, parents, places)
            if reader.reads.units - units > MAX_READ_UNITS:
                return None
        return found

    async def _check_below(self, reader: Reader, rewrite: SubtreeRewrite, top: Restored) -> None:
        """Raise the faults of nodes below, by their tombstones alone."""
        gone = top.gone
        async for item in gone_items(reader.store, gone.parent or "", gone.key, reader.reads):
            key = str(item["rank"])
            above = top.record.above + [""] * (depth_of(key) - top.record.depth)
            self._moved(rewrite, replace(top.record, sk=key, above=above, level=str(item["level"])))

    def _moved(self, rewrite: SubtreeRewrite, record: Record) -> Record:
        """A node at its new place. Raises BadPath where its key does not fit there, and Misplaced for a level that the
        class has no more: the node could not be read.
        """
        if record.level not in self.hierarchy.levels:
            text = f"{shorten(record.path_text)} has the level {record.level}, which no class defines any more."
            raise Misplaced(f"{text} Define it again first.").at("id")
        try:
            return rewrite.moved(record)
        except BadPath as error:
            raise error.at("key" if self.key.sk == "#" else "to") from None

    def _fits(self, reader: Reader, transaction: TransactionBuilder, records: Sequence[Record], redirects: int) -> bool:
        """Whether the nodes fit into one transaction."""
        limit, above = reader.store.max_commit_changes, ancestor_keys(self.key)
        if limit is None:
            return True
        items = item_changes_of_removal(transaction.recipes, 1, records)
        stored = [one.item() for one in records] + [item for key in above if (item := transaction.read_set[key])]
        size = sum(map(size_of, stored)) + sum([3 * size_of(id_item(one)) for one in records])
        changes = CHANGES_A_NODE * len(records) + redirects + items + len(above) + OTHER_CHANGES
        return changes <= limit and size <= MAX_BATCH_BYTES

    def _check_unique(self, rights: Rights, records: Sequence[Record] | None) -> None:
        """Raise Forbidden where the caller may not set the unique values of these nodes, None for any."""
        unique = [(level.name, one) for level in self.hierarchy.levels.values() for one in level.unique]
        for level, attribute in unique:
            values = [attribute.value_in(one.attributes) for one in records or () if one.level == level]
            if not attribute.disclosed and (records is None or any(one is not None for one in values)):
                rights.check_unique(self.hierarchy.name, attribute.label)


async def restored(
    reader: Reader, keys: Sequence[Key], deletion: str | None, parents: set[str | None], places: set[str | None]
) -> list[Restored]:
    """The nodes of the id records at these keys that are deleted by this deletion, below one of the `parents`, and at
    none of the `places`, since an import may prune two nodes of one place. Both are extended by them.
    """
    read_set, kept = await reader.read([], keys), list[Gone]()
    for key in keys:
        one = gone_of(read_set[key])
        is_own = one is not None and one.deletion == deletion and one.under in parents
        if one is not None and is_own and one.key not in places:
            parents.add(one.id)
            places.add(one.key)
            kept.append(one)
    revisions = [revision_key(one.id, one.revision) for one in kept]
    await reader.read_into(read_set, [], revisions)
    return [Restored.of(one, read_set[key]) for one, key in zip(kept, revisions, strict=True)]


def counted(records: Sequence[Record]) -> list[Record]:
    """The nodes of a subtree in key order with the counts that follow from them."""
    kids, below = defaultdict[Key, Counter[str]](Counter), defaultdict[Key, Counter[str]](Counter)
    for one in reversed(records[1:]):
        parent = Key(one.pk, parent_sort_key(one.sk))
        kids[parent][one.level] += 1
        below[parent].update(below[one.key])
        below[parent][one.level] += 1
    return [replace(one, kids=dict(kids[one.key]), below=dict(below[one.key])) for one in records]


def may_lack(store: Store, gone: Gone, now: float) -> bool:
    """Whether an index may lack a node of the deletion of this one: those of an embedded store never do."""
    return not store.is_embedded and now - datetime.fromisoformat(gone.deleted).timestamp() <= LAG_SECONDS
