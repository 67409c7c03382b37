"""Moves of an import: nodes at another path than in the file, with all below them, before the rest is imported.

A node that has its former key as its name, where the file has no name, gets the new key as its name.
Parents come first, so the nodes below a moved node have come along when it is their turn. A node whose path another one
has waits until that has moved away. Where all wait for one another, as nodes do that swap their places, one is put
aside: it gets another key where it is, until its turn comes. One that cannot be moved stays, and the import rejects its
row.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from uuid import uuid4

from store.concurrency import in_chunks
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, NotFound, WrongLevel
from store.metadata.history import current_key, id_item
from store.metadata.tree_version import Event
from store.model.keys import Key, ancestor_keys, id_key, node_key, path_of, subtree, tree_version_key
from store.model.keys import Path as NodePath
from store.model.records import Item, Put, Record
from store.reading import PAGE_ITEMS, Pages, wait_for_moves
from store.transfer.diff import bare_id, filled_levels
from store.transfer.load import LoadResult
from store.transfer.rows import ImportPlan
from store.transfer.staging import Node, path_text
from store.writing.create_update import Create, Update
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Move
from store.writing.reads import Reader, WriteContext
from store.writing.transaction import TransactionBuilder
from store.writing.writer import Writer

ASIDE = "~clade-aside-"  # between the key of a node that is put aside and a random text


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


class ImportMoves:
    """The moves that a plan needs; the reasons against those that are not possible go to `plan.unmoved`.

    `places` are those of the nodes that have another one in the store; by default all nodes with ids are looked up.
    """

    def __init__(
        self, store: Store, writer: Writer, plan: ImportPlan, result: LoadResult, places: Collection[Key] | None = None
    ) -> None:
        self._store = store
        self._writer = writer
        self._plan = plan
        self._result = result
        self._reads = ReadUsage()
        self._blocked: dict[Key, Node] = {}  # nodes that cannot be moved yet, by their targets
        self._aside: dict[str, Key] = {}  # former places by id
        nodes = (node for tree in plan.trees.values() for node in tree.nodes.values())
        if places is not None:
            nodes = (node for pk, sk in places if (tree := plan.trees.get(pk)) and (node := tree.nodes.get(sk)))
        self._nodes = {node.id: node for node in nodes if node.id is not None}

    async def run(self, on_nodes: Callable[[int], None] = lambda nodes: None) -> None:
        """Move nodes until no more can be; `on_nodes` is called with each number of nodes that are done.

        Interrupted moves are finished first, and are in the result if the file asks for them. Raises Conflict where
        other writes do not stop.
        """
        try:
            for move in await self._writer.move_worker.finish({self._plan.hierarchy.name}):
                node = self._nodes.get(move.top_id.partition(":")[2])
                if node is not None and move.target == node.key and await self._current_keys([node]) == [move.target]:
                    self._result.note(Event.MOVED, node.level, move.source, move.target)
            waiting = sorted(self._nodes.values(), key=lambda node: node.key)
            moved = -1
            while waiting and moved < self._result.moved.total():
                moved = self._result.moved.total()
                waiting = await self._round(waiting, on_nodes)
                if waiting and moved == self._result.moved.total() and await self._put_aside(waiting):
                    moved = -1
            await self._take_back(waiting)
            on_nodes(len(waiting))
        finally:
            await self._writer.move_worker.stop()

    async def _round(self, nodes: Sequence[Node], on_nodes: Callable[[int], None]) -> list[Node]:
        """Move each of these nodes, parents first; returns those that are blocked."""
        self._blocked = {}
        async for page in in_chunks(nodes, PAGE_ITEMS):
            keys = await self._current_keys(page)
            for number, node in enumerate(page):
                source = keys[number]
                if source in (None, node.key):
                    if self._blocked and not self._blocked.keys().isdisjoint(ancestor_keys(node.key)):
                        self._blocked[node.key] = node  # it comes along with a parent that is to be elsewhere
                elif await self._try_move(node, source):
                    keys = [key.moved(source, node.key) if key and source.holds(key) else key for key in keys]
            on_nodes(len(page) - sum(node.key in self._blocked for node in page))
        return list(self._blocked.values())

    async def _put_aside(self, waiting: Sequence[Node]) -> bool:
        """Give one node another key that is where a waiting one or its parents belong; whether there was any."""
        for node in waiting:
            above = [*ancestor_keys(node.key), node.key]
            for key, item in zip(above, await self._store.get(above, self._reads, strong=True), strict=True):
                record = item and Record.of(item)
                other = record and self._nodes.get(bare_id(record))
                if not record or not other or other.key == key or other.id in self._aside:
                    continue
                if other.level == record.level and key.sk in self._plan.trees[key.pk].nodes:
                    *parents, last = path_of(*key)
                    self._aside[cast(str, other.id)] = key
                    with suppress(BadInput):
                        await self._rename_at(key, (*parents, f"{last}{ASIDE}{uuid4().hex}"))
                        return True
        return False

    async def _take_back(self, waiting: Sequence[Node]) -> None:
        """Give those that were put aside and cannot be moved their former keys."""
        nodes = [node for node in waiting if node.id in self._aside]
        for node, key in zip(nodes, await self._current_keys(nodes), strict=True):
            if key is not None:
                with suppress(BadInput):
                    await self._rename_at(key, path_of(*self._aside[cast(str, node.id)]))

    async def _rename_at(self, key: Key, path: NodePath) -> None:
        await self._write(Move(self._plan.hierarchy, path_of(*key), path), key.pk)

    async def _write(self, edit: Move, *partitions: str) -> None:
        """Write a move, and wait for its end, since the import does not compare trees with running moves."""
        for pk in {*partitions}:
            await wait_for_moves(self._store, pk, self._reads)
        edit_result = await self._writer.write(edit, self._reads)
        if edit_result.move is not None:
            job = self._writer.move_worker.job(edit_result.move.id)
            await self._writer.move_worker.finished()
            if job is not None and job.refusal is not None:
                raise job.refusal

    async def _current_keys(self, nodes: Sequence[Node]) -> list[Key | None]:
        keys = [id_key(f"{self._plan.hierarchy.name}:{node.id}") for node in nodes]
        return [current_key(item) for item in await self._store.get(keys, self._reads, strong=True)]

    async def _try_move(self, node: Node, source: Key) -> bool:
        """Move a node; whether that was possible."""
        node_id, renamed = cast(str, node.id), None
        try:
            if not self._blocked.keys().isdisjoint(ancestor_keys(node.key)):
                raise BadInput("its new parent cannot be moved there either.")
            await self._make_parents(node)
            edit = _MoveNode(self._plan.hierarchy, path_of(*source), node.path, node=node)
            renamed = await self._rename(edit)
            await self._write(edit, source.pk, node.pk)
        except BadInput as error:
            if renamed is not None:
                await self._writer.write(renamed, self._reads)
            self._blocked[node.key] = node
            self._plan.unmoved[node_id] = str(error)
            return False
        former = [key.partition(ASIDE)[0] for key in path_of(*source)]  # also below a node that is put aside
        self._result.note(Event.MOVED, node.level, node_key(self._plan.hierarchy.name, tuple(former)), node.key)
        self._plan.unmoved.pop(node_id, None)
        return True

    async def _rename(self, edit: _MoveNode) -> Update | None:
        """Give a node its new key as its name, where its name is the former key and the file has none.

        It is written before the move, since afterwards an interrupted import could not tell the former key from a name
        that somebody gave, and only where the move is possible. Returns the edit that takes it back.
        """
        former, key = edit.path[-1].partition(ASIDE)[0], edit.target[-1]
        if edit.node.name is not None or former == key:
            return None
        planned = await self._writer.write(edit, self._reads, EditOptions(dry_run=True))
        if planned.record.name != former:
            return None
        to_key, back = (Update(edit.hierarchy, edit.path, name, None, {}) for name in (key, former))
        await self._writer.write(to_key, self._reads)
        return back

    async def _make_parents(self, child: Node) -> None:
        """Create the ancestors of a target that only the file has; raises BadInput where an existing one will move."""
        nodes = self._plan.trees[child.pk].nodes
        above = ancestor_keys(child.key)
        items = await self._store.get(above, self._reads, strong=True)
        levels = [
            Record.of(item).level if item else nodes[key.sk].level if key.sk in nodes else None
            for key, item in zip(above, items, strict=True)
        ]
        if self._plan.create_parents and None in levels:
            levels = [*filled_levels(self._plan.hierarchy, [*levels, child.level])]
        for key, item, level in zip(above, items, levels, strict=False):
            if item is not None:
                other = self._nodes.get(bare_id(Record.of(item)))
                if other is not None and other is not child and other.key != key:
                    raise BadInput(f"{path_text(*key)} has to be moved first.")  # with all below it
            elif level is not None:
                node = nodes.get(key.sk) or Node(*key, level, None, None, child.number)
                name = node.path[-1] if node.name is None else node.name
                node_id = self._plan.id_of(node)
                edit = Create(self._plan.hierarchy, node.path, node.level, name, node.values, node_id)
                await wait_for_moves(self._store, key.pk, self._reads)
                await self._writer.write(edit, self._reads)
                self._result.note(Event.CREATED, node.level, key)
                if key.sk in nodes:
                    self._result.unchanged -= 1  # the import will find it, and count it as unchanged
                else:
                    self._result.parents[level] += 1


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
    for pk in trees:
        await wait_for_moves(store, pk, reads)
        yield await store.get([tree_version_key(pk)], reads, strong=True)
        async for nodes in Pages(store, subtree(pk, "#"), reads):
            yield [*nodes, *(id_item(Record.of(item)) for item in nodes)]
