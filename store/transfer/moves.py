"""Moves of an import: nodes at another path than in the file, with all below them, before the rest is imported.

A node that has its former key as its name, where the file has no name, gets the new key as its name. `move_plan.py`
says who can be moved, and when. In a circle, as of nodes that swap their places, one is put aside: it gets another key
where it is, until its place is free. One that cannot be moved stays, and the import rejects its row.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

from store.concurrency import in_chunks
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, NotFound, WrongLevel
from store.kinds.unique import UniqueKind, unique_values
from store.metadata.history import current_key, id_item, key_aside, shown_key, shown_path
from store.metadata.tree_version import Event
from store.model.keys import Key, ancestor_keys, id_key, node_key, path_of, subtree, tree_version_key
from store.model.records import Item, Put, Record
from store.reading import PAGE_ITEMS, Pages, read_marker, wait_for_moves
from store.transfer.diff import bare_id, filled_levels
from store.transfer.load import LoadResult
from store.transfer.move_plan import MovePlan, Mover, Step
from store.transfer.rows import ImportPlan
from store.transfer.staging import Node, path_text
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.reads import Reader, WriteContext
from store.writing.transaction import TransactionBuilder
from store.writing.writer import Writer


@dataclass(frozen=True, kw_only=True)
class _MoveNode(Move):
    """A move that fails if another node is at the path by now."""

    node: Node

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        transaction = await super().build(reader, context)
        if transaction.record.id != f"{self.hierarchy.name}:{self.node.id}":
            raise NotFound(f"The node is no longer at {path_text(*node_key(self.hierarchy.name, self.path))}.")
        if transaction.record.level != self.node.level:
            raise WrongLevel(f"The node is a {transaction.record.level}, not a {self.node.level}.")
        return transaction


class _Done(NamedTuple):
    """A step that was taken, where its node was before, and what takes its new name back."""

    mover: Mover
    source: Key
    renamed: Update | None = None
    is_aside: bool = False


@dataclass
class ImportMoves:
    """The moves that a plan needs; the reasons against those that are not possible go to `plan.unmoved`.

    `places` are those of the nodes that have another one in the store; by default all nodes with ids are looked up.
    With `prune` a node that the file lacks is removed, with all below it, where another one is to be at its place.
    """

    store: Store
    writer: Writer
    plan: ImportPlan
    result: LoadResult
    places: Collection[Key] | None = None
    _: KW_ONLY
    prune: bool = False

    def __post_init__(self) -> None:
        trees, self._reads = self.plan.trees, ReadUsage()
        nodes = (node for tree in trees.values() for node in tree.nodes.values())
        if self.places is not None:
            nodes = (node for pk, sk in self.places if (tree := trees.get(pk)) and (node := tree.nodes.get(sk)))
        self._nodes = {node.id: node for node in nodes if node.id is not None}
        self._moves = MovePlan(self.store, self.plan, self._nodes, prune=self.prune)
        self._aside = set[Mover]()
        self._done: list[_Done] = []  # since the first of these was put aside

    async def are_any(self) -> bool:
        """Whether there are nodes to move, once interrupted moves are finished; nothing else is written."""
        await self._finish()
        return bool(await self._moves.steps(lambda nodes: None))

    async def run(self, on_nodes: Callable[[int], None] = lambda nodes: None) -> None:
        """Make the possible moves; `on_nodes` is called with each number of nodes that are done.

        Interrupted moves are finished first, and are in the result if the file asks for them. Raises Conflict where
        other writes do not stop.
        """
        await self._finish()
        try:
            for step in await self._moves.steps(on_nodes):
                if step.mover not in self._moves.refused:
                    await self._take(step)
                if step.mover.origin in self._moves.left and not step.is_aside:
                    on_nodes(1)
            on_nodes(self._moves.refuse_below())
        finally:
            await self.writer.move_worker.stop()

    async def _finish(self) -> None:
        try:
            for move in await self.writer.move_worker.finish({self.plan.hierarchy.name}):
                node = self._nodes.get(move.top_id.partition(":")[2])
                if node is not None and move.target == node.key and await self._key_of(str(node.id)) == move.target:
                    self.result.note(Event.MOVED, node.level, move.source, move.target)
        finally:
            await self.writer.move_worker.stop()

    async def _take(self, step: Step) -> None:
        """Take a step. Where it is not possible all since the first node was put aside is undone, else these would not
        get their places.
        """
        mover, source = step.mover, await self._key_of(step.mover.id)
        try:
            if source is None:
                raise BadInput("The node is no longer there.")
            if mover.node is None and not step.is_aside:
                await self._remove(mover, source)
            else:
                self._done.append(await (self._put_aside if step.is_aside else self._move)(mover, source))
        except BadInput as error:
            self._moves.refuse(mover, str(error))
            if self._aside:
                await self._undo()
            return
        self._aside.add(mover) if step.is_aside else self._aside.discard(mover)
        if not self._aside:
            for done in self._done:
                if not done.is_aside:
                    self.result.note(Event.MOVED, done.mover.level, shown_key(done.mover.origin), done.mover.target)
            self._done = []

    async def _put_aside(self, mover: Mover, source: Key) -> _Done:
        """Give a node another key where it is; no log tells of it."""
        target = key_aside(source, token_hex(4))
        await self._relocate(source, target, redirects=source == mover.origin, is_logged=False)
        return _Done(mover, source, is_aside=True)

    async def _move(self, mover: Mover, source: Key) -> _Done:
        """Move a node to its place. From one where it is only since an ancestor was moved there is no redirect."""
        node, renamed = cast(Node, mover.node), None
        redirects = source == mover.origin
        edit = _MoveNode(self.plan.hierarchy, path_of(*source), node.path, node=node, redirects=redirects)
        try:
            await self._make_parents(node)
            renamed = await self._rename(edit)
            await self._write(edit, source.pk, node.pk)
        except BadInput:
            if renamed is not None:
                await self.writer.write(renamed, self._reads)
            raise
        return _Done(mover, source, renamed)

    async def _remove(self, mover: Mover, source: Key) -> None:
        """Remove a node with all below it, parents first in the result."""
        records = [Record.of(item) async for page in Pages(self.store, subtree(*source), self._reads) for item in page]
        if not records or bare_id(records[0]) != mover.id:
            raise NotFound(f"The node is no longer at {path_text(*source)}.")
        redirects = source == mover.origin
        edit = Delete(self.plan.hierarchy, path_of(*source), Policy.CASCADE, redirects=redirects)
        await self._write(edit, source.pk)
        self.result.prunable += len(records)
        for record in records:
            self.result.note(Event.DELETED, record.level, shown_key(record.key))

    async def _undo(self) -> None:
        """Move the nodes back that were moved since the first of those was put aside, the last one first."""
        for done in reversed(self._done):
            self._moves.refuse(done.mover, "a node with which it changes places cannot be moved.")
            if (source := await self._key_of(done.mover.id)) is None:
                continue
            with suppress(BadInput):
                await self._relocate(source, done.source, redirects=False, is_logged=not done.is_aside)
                if done.renamed is not None:
                    await self.writer.write(done.renamed, self._reads)
        self._aside, self._done = set(), []

    async def _relocate(self, source: Key, target: Key, *, redirects: bool, is_logged: bool) -> None:
        edit = Move(self.plan.hierarchy, path_of(*source), path_of(*target), redirects=redirects, is_logged=is_logged)
        await self._write(edit, source.pk, target.pk)

    async def _write(self, edit: Edit, *partitions: str) -> None:
        """Write a move, and wait for its end, since the import does not compare trees with running moves."""
        for pk in {*partitions}:
            await wait_for_moves(self.store, pk, self._reads)
        edit_result = await self.writer.write(edit, self._reads)
        if edit_result.move is not None:
            job = self.writer.move_worker.job(edit_result.move.id)
            await self.writer.move_worker.finished()
            if job is not None and job.refusal is not None:
                raise job.refusal

    async def _key_of(self, node_id: str) -> Key | None:
        (key,) = await self._moves.current_keys([node_id])
        return key

    async def _rename(self, edit: _MoveNode) -> Update | None:
        """Give a node its new key as its name, where its name is the former key and the file has none.

        It is written before the move, since afterwards an interrupted import could not tell the former key from a name
        that somebody gave, and only where the move is possible. Returns the edit that takes it back.
        """
        former, key = shown_path(edit.path)[-1], edit.target[-1]
        if edit.node.name is not None or former == key:
            return None
        planned = await self.writer.write(edit, self._reads, EditOptions(dry_run=True))
        if planned.record.name != former:
            return None
        to_key, back = (Update(edit.hierarchy, edit.path, name, None, {}) for name in (key, former))
        await self.writer.write(to_key, self._reads)
        return back

    async def _make_parents(self, child: Node) -> None:
        """Create the ancestors of a target that only the file has."""
        nodes = self.plan.trees[child.pk].nodes
        above = ancestor_keys(child.key)
        items = await self.store.get(above, self._reads, strong=True)
        levels = [
            Record.of(item).level if item else nodes[key.sk].level if key.sk in nodes else None
            for key, item in zip(above, items, strict=True)
        ]
        if self.plan.create_parents and None in levels:
            levels = [*filled_levels(self.plan.hierarchy, [*levels, child.level])]
        for key, item, level in zip(above, items, levels, strict=False):
            if item is None and level is not None:
                node = nodes.get(key.sk) or Node(*key, level, None, None, child.number)
                name = node.path[-1] if node.name is None else node.name
                node_id = self.plan.id_of(node)
                edit = Create(self.plan.hierarchy, node.path, node.level, name, node.values, node_id)
                await wait_for_moves(self.store, key.pk, self._reads)
                await self.writer.write(edit, self._reads)
                self.result.note(Event.CREATED, node.level, key)
                if key.sk in nodes:
                    self.result.unchanged -= 1  # the import will find it, and count it as unchanged
                else:
                    self.result.parents[level] += 1


@asynccontextmanager
async def scratch_copy(store: Store, plan: ImportPlan) -> AsyncIterator[Store]:
    """A temporary store for a dry run while the block runs: the trees that the file names or moves nodes from.

    It is a file, since trees may be larger than the memory; histories and redirects are not in it.
    """
    with TemporaryDirectory(prefix="clade-") as folder:
        async with opened(f"sqlite:///{Path(folder) / 'trial.db'}", make=True) as copy:
            async for items in _scratch_items(store, plan):
                await copy.commit([Put(item) for item in items if item is not None])
            yield copy


async def _scratch_items(store: Store, plan: ImportPlan) -> AsyncIterator[Sequence[Item | None]]:
    reads, name = ReadUsage(), plan.hierarchy.name
    trees = {*plan.trees, *(key.pk for key in plan.deleted)}
    async for ids in in_chunks(list(plan.ids), PAGE_ITEMS):
        items = await store.get([id_key(f"{name}:{node_id}") for node_id in ids], reads, strong=True)
        trees |= {place.pk for item in items if (place := current_key(item))}
        yield items
    yield await store.get([tree_version_key(name)], reads, strong=True)
    if (marker := await read_marker(store, name)) and (part := marker.parts.get(UniqueKind.name)):
        yield [replace(marker, parts={UniqueKind.name: part}).put().item]
        every = [tree for one in (plan, *plan.versions.values()) for tree in one.trees.values()]
        async for page in in_chunks([node for tree in every for node in tree.nodes.values()], PAGE_ITEMS):
            keys = [key for node in page for key in unique_values(part.recipe, node.level, node.values)]
            yield await store.get(keys, reads, strong=True)
    for pk in trees:
        await wait_for_moves(store, pk, reads)
        yield await store.get([tree_version_key(pk)], reads, strong=True)
        async for nodes in Pages(store, subtree(pk, "#"), reads):
            yield [*nodes, *(id_item(Record.of(item)) for item in nodes)]
