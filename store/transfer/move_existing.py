"""Moves of an import: nodes at another path than in the file, with all below them, before the rest is imported.

Parents come first, so the nodes below a moved node have come along when it is their turn. A node whose path another one
has waits until that has moved away; one that cannot be moved stays, and the import rejects its row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from store.concurrency import in_chunks
from store.edits.create_update import Create
from store.edits.move import Move
from store.edits.read_set import WriteContext
from store.edits.reader import Reader
from store.edits.transaction import TransactionBuilder
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, NotFound, WrongLevel
from store.metadata.change_log import Event
from store.metadata.history import current_key
from store.model.items import Item
from store.model.keys import Key, ancestor_keys, id_key, path_of
from store.model.paths import format_path
from store.reading.active_moves import wait_for_moves
from store.reading.pages import PAGE_ITEMS
from store.text import shorten
from store.transfer.load import LoadResult
from store.transfer.rows import ImportPlan, Node
from store.writer.writer import Writer


@dataclass(frozen=True, kw_only=True)
class _MoveNode(Move):
    """A move that fails if another node is at the path by now."""

    node: Node

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        transaction = await super().build(reader, context)
        if transaction.record.id != f"{self.hierarchy.name}:{self.node.id}":
            raise NotFound(f"The node is no longer at {shorten(format_path(self.path), 200)}.")
        if transaction.record.level != self.node.level:
            raise WrongLevel(f"The node is a {transaction.record.level}, not a {self.node.level}.")
        return transaction


class ImportMoves:
    """The moves that a plan needs; the reasons against those that are not possible go to `plan.unmoved`."""

    def __init__(self, store: Store, writer: Writer, plan: ImportPlan, result: LoadResult) -> None:
        self._store = store
        self._writer = writer
        self._plan = plan
        self._result = result
        self._reads = ReadUsage()
        self._blocked: set[Key] = set()  # targets of nodes that cannot be moved there yet

    async def run(self, on_nodes: Callable[[int], None] = lambda nodes: None) -> None:
        """Move nodes until no more can be; `on_nodes` is called with each number of nodes that are done.

        Interrupted moves are finished first. Raises Conflict where other writes do not stop.
        """
        try:
            await self._finish()
            waiting = sorted(self._plan.ids.values(), key=lambda node: (node.root, node.sk))
            moved = -1
            while waiting and moved < self._result.moved.total():
                moved = self._result.moved.total()
                waiting = await self._round(waiting, on_nodes)
            on_nodes(len(waiting))
        finally:
            await self._writer.move_worker.stop()

    async def _finish(self) -> None:
        """Finish interrupted moves, and add those that the file asks for to the result."""
        for move in await self._writer.move_worker.finish({self._plan.hierarchy.name}):
            node = self._plan.ids.get(move.top_id.partition(":")[2])
            if (
                node is not None
                and move.target == self._target(node)
                and await self._current_keys([node]) == [move.target]
            ):
                self._result.note_move(node.level, move.source, move.target)

    async def _round(self, nodes: Sequence[Node], on_nodes: Callable[[int], None]) -> list[Node]:
        """Move each of these nodes, parents first; returns those that are blocked."""
        self._blocked.clear()
        left: list[Node] = []
        async for page in in_chunks(nodes, PAGE_ITEMS):
            keys = await self._current_keys(page)
            for number, node in enumerate(page):
                source, target = keys[number], self._target(node)
                if source is None or source == target:
                    continue
                if not await self._try_move(node, source, target):
                    left.append(node)
                    continue
                keys = [key and (key.moved(source, target) if source.holds(key) else key) for key in keys]
            on_nodes(len(page) - sum(self._target(node) in self._blocked for node in page))
        return left

    async def _current_keys(self, nodes: Sequence[Node]) -> list[Key | None]:
        keys = [id_key(f"{self._plan.hierarchy.name}:{node.id}") for node in nodes]
        return [current_key(item) for item in await self._store.get(keys, self._reads, strong=True)]

    def _target(self, node: Node) -> Key:
        return Key(f"{self._plan.hierarchy.name}#{node.root}", node.sk)

    async def _try_move(self, node: Node, source: Key, target: Key) -> bool:
        """Move a node; whether that was possible."""
        node_id = cast(str, node.id)
        try:
            if not self._blocked.isdisjoint(ancestor_keys(target)):
                raise BadInput("its new parent cannot be moved there either.")
            await self._make_parents(node, target)
            await self._move(node, source, target)
        except BadInput as error:
            self._blocked.add(target)
            self._plan.unmoved[node_id] = str(error)
            return False
        self._plan.unmoved.pop(node_id, None)
        return True

    async def _make_parents(self, child: Node, target: Key) -> None:
        """Create the ancestors of a target that only the file has; raises BadInput where an existing one will move."""
        nodes = self._plan.trees[target.pk.partition("#")[2]].nodes
        above = sorted(ancestor_keys(target))
        for key, item in zip(above, await self._store.get(above, self._reads, strong=True), strict=True):
            if item is not None:
                self._check_stays(item, child)
                continue
            if (node := nodes.get(key.sk)) is None:
                continue
            name = node.path[-1] if node.name is None else node.name
            node_id = self._plan.id_of(node)
            edit = Create(self._plan.hierarchy, node.path, node.level, name, node.values, node_id)
            await wait_for_moves(self._store, key.pk, self._reads)
            await self._writer.write(edit, self._reads)
            self._result.note(Event.CREATED, node.level, *key)
            self._result.unchanged -= 1  # the import will find it, and count it as unchanged

    def _check_stays(self, item: Item, child: Node) -> None:
        """Raise BadInput for a node that will be moved itself, with all below it."""
        other = self._plan.ids.get(cast(str, item["id"]).partition(":")[2])
        if other is not None and other is not child and self._target(other) != (item["pk"], item["sk"]):
            place = path_of(cast(str, item["pk"]), cast(str, item["sk"]))
            raise BadInput(f"{shorten(format_path(place), 200)} has to be moved first.")

    async def _move(self, node: Node, source: Key, target: Key) -> None:
        """Move a node and wait for the end, since the import does not compare trees with running moves."""
        for pk in {source.pk, target.pk}:
            await wait_for_moves(self._store, pk, self._reads)
        edit = _MoveNode(self._plan.hierarchy, path_of(*source), node.path, node=node)
        edit_result = await self._writer.write(edit, self._reads)
        if edit_result.move is not None:
            job = self._writer.move_worker.job(edit_result.move.id)
            await self._writer.move_worker.finished()
            if job is not None and job.refusal is not None:
                raise job.refusal
        self._result.note_move(node.level, source, target)
