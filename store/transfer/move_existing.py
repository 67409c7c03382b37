"""Nodes that a file has elsewhere than the table: each is moved with all below it, before the rest is loaded.

Parents come first, so whatever lies below a moved node has come along when it is its turn. A node whose place another
one has waits until that has moved away; one that cannot move stays where it is, and the load rejects its row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from store.edits.create_update import Create
from store.edits.move import Move
from store.edits.reader import Reader
from store.edits.transaction import TransactionBuilder, WriteContext
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, NotFound, WrongLevel
from store.metadata.change_log import Event
from store.metadata.history import current_key
from store.model.items import Item
from store.model.keys import (
    Key,
    ancestor_keys,
    id_key,
    path_of,
)
from store.model.paths import format_path
from store.reading.active_moves import wait_for_moves
from store.text import shorten
from store.transfer.load import LoadResult
from store.transfer.rows import ImportPlan, Node
from store.writer.writer import Writer

PAGE_NODES = 1000


@dataclass(frozen=True, kw_only=True)
class _Resettle(Move):
    """The move of just this node, should another one lie at its path by now."""

    node: Node

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        draft = await super().draft(reader, moment)
        if draft.record.id != f"{self.hierarchy.name}:{self.node.id}":
            raise NotFound(f"It is no longer at {shorten(format_path(self.path), 200)}.")
        if draft.record.level != self.node.level:
            raise WrongLevel(f"It is a {draft.record.level}, not a {self.node.level}.")
        return draft


class ImportMoves:
    """The moves that a file asks for; what cannot be moved is told in `wanted.unmoved`."""

    def __init__(self, store: Store, writer: Writer, wanted: ImportPlan, outcome: LoadResult) -> None:
        self._store = store
        self._writer = writer
        self._wanted = wanted
        self._outcome = outcome
        self._reads = ReadUsage()
        self._stuck: set[Key] = set()  # where nodes shall lie that cannot be moved there as yet

    async def run(self, settled: Callable[[int], None] = lambda nodes: None) -> None:
        """Move nodes until no more can be, each to its end; `settled` hears of every so many that are done with.

        Moves that an import left half-way are finished first. Raises Conflict where others never stop writing.
        """
        try:
            await self._finish()
            waiting = sorted(self._wanted.ids.values(), key=lambda node: (node.root, node.sk))
            moved = -1
            while waiting and moved < self._outcome.moved.total():
                moved = self._outcome.moved.total()
                waiting = await self._round(waiting, settled)
            settled(len(waiting))
        finally:
            await self._writer.mover.stop()

    async def _finish(self) -> None:
        """Bring moves that were left half-way to their ends, and tell of those that the file asks for."""
        for move in await self._writer.mover.finish({self._wanted.hierarchy.name}):
            node = self._wanted.ids.get(move.top_id.partition(":")[2])
            if node is not None and move.target == self._key(node) and await self._places([node]) == [move.target]:
                self._outcome.note_move(node.level, move.source, move.target)

    async def _round(self, nodes: Sequence[Node], settled: Callable[[int], None]) -> list[Node]:
        """Move each of these nodes, parents first; those that are stuck are left."""
        self._stuck.clear()
        left: list[Node] = []
        for first in range(0, len(nodes), PAGE_NODES):
            page = nodes[first : first + PAGE_NODES]
            places = await self._places(page)
            for number, node in enumerate(page):
                source, target = places[number], self._key(node)
                if source is None or source == target:
                    continue
                if not await self._bring(node, source, target):
                    left.append(node)
                    continue
                places = [one and (one.moved(source, target) if source.holds(one) else one) for one in places]
            settled(len(page) - sum(self._key(node) in self._stuck for node in page))
        return left

    async def _places(self, nodes: Sequence[Node]) -> list[Key | None]:
        keys = [id_key(f"{self._wanted.hierarchy.name}:{node.id}") for node in nodes]
        return [current_key(item) for item in await self._store.get(keys, self._reads, strong=True)]

    def _key(self, node: Node) -> Key:
        return Key(f"{self._wanted.hierarchy.name}#{node.root}", node.sk)

    async def _bring(self, node: Node, source: Key, target: Key) -> bool:
        """Move a node; whether that could be done."""
        node_id = cast(str, node.id)
        try:
            if not self._stuck.isdisjoint(ancestor_keys(target)):
                raise BadInput("what it shall lie below cannot be moved to there either.")
            await self._make_parents(node, target)
            await self._move(node, source, target)
        except BadInput as error:
            self._stuck.add(target)
            self._wanted.unmoved[node_id] = str(error)
            return False
        self._wanted.unmoved.pop(node_id, None)
        return True

    async def _make_parents(self, child: Node, target: Key) -> None:
        """Create the nodes above a place that only the file has; raises BadInput where one that is there will move."""
        nodes = self._wanted.trees[target.pk.partition("#")[2]].nodes
        above = sorted(ancestor_keys(target))
        for key, item in zip(above, await self._store.get(above, self._reads, strong=True), strict=True):
            if item is not None:
                self._check_stays(item, child)
                continue
            if (node := nodes.get(key.sk)) is None:
                continue
            name = node.path[-1] if node.name is None else node.name
            node_id = self._wanted.id_of(node)
            edit = Create(self._wanted.hierarchy, node.path, node.level, name, node.values, node_id)
            await wait_for_moves(self._store, key.pk, self._reads)
            await self._writer.write(edit, self._reads)
            self._outcome.note(Event.CREATED, node.level, *key)
            self._outcome.unchanged -= 1  # the load will find it as it wants it, and count it there

    def _check_stays(self, item: Item, child: Node) -> None:
        """Raise BadInput for a node that will move itself, and would take along what was moved to below it."""
        other = self._wanted.ids.get(cast(str, item["id"]).partition(":")[2])
        if other is not None and other is not child and self._key(other) != (item["pk"], item["sk"]):
            place = path_of(cast(str, item["pk"]), cast(str, item["sk"]))
            raise BadInput(f"{shorten(format_path(place), 200)} has to move away first.")

    async def _move(self, node: Node, source: Key, target: Key) -> None:
        """Move a node and wait for the end, as the load does not compare trees with moves under way."""
        for pk in {source.pk, target.pk}:
            await wait_for_moves(self._store, pk, self._reads)
        edit = _Resettle(self._wanted.hierarchy, path_of(*source), node.path, node=node)
        written = await self._writer.write(edit, self._reads)
        if written.move is not None:
            journey = self._writer.mover.journey(written.move.id)
            await self._writer.mover.finished()
            if journey is not None and journey.refusal is not None:
                raise journey.refusal
        self._outcome.note_move(node.level, source, target)
