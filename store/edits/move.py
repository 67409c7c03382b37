"""Nodes to other places, with all below them: renames, and moves to another parent, another tree or a root's place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.edits.create_update import existing, levels_above, touched
from store.edits.reader import Reader
from store.edits.transaction import TransactionBuilder, WriteContext
from store.errors import Misplaced
from store.metadata.move_record import new_move
from store.metadata.redirects import redirect_key
from store.model.hierarchy import Hierarchy
from store.model.key_rewrite import SubtreeRewrite
from store.model.keys import (
    Key,
    Path,
    ancestor_keys,
    node_key,
)
from store.model.paths import format_path
from store.model.records import Record
from store.text import shorten

MAX_SURVEYED = 100_000  # nodes, which take seconds; a request has ten, and a move of any size shall begin within it


@dataclass(frozen=True)
class Move:
    """A node with all below it to another path, whose last segment is its key there.

    What does not fit into one transaction is only registered by the draft, and journaled. Whether all its keys fit at
    the new place is seen before, or of a very large subtree while it is copied, which is then undone.
    """

    hierarchy: Hierarchy
    path: Path
    target: Path
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, self.target)

    def needs(self) -> list[Key]:
        place = node_key(self.hierarchy.name, self.path)
        return [place, *ancestor_keys(place)]

    def wanted(self) -> dict[str, Any]:
        return {"path": self.path, "target": self.target, "expected": self.expected}

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        seen = await reader.seen(self.partitions(), self.needs())
        top = existing(seen, self.hierarchy, self.path, self.expected)
        if self.target == self.path:
            return TransactionBuilder(seen, moment, top)
        if self.target[: len(self.path)] == self.path:
            raise Misplaced(f"{shorten(format_path(self.path))} cannot be moved to below itself.")
        draft = TransactionBuilder(seen, moment, top)
        key = node_key(self.hierarchy.name, self.target)
        await reader.add(seen, touched(self.hierarchy.name, self.target), needs_of_move(top, key))
        records = await reader.subtree(seen, top, [*ancestor_keys(top.key), *ancestor_keys(key)])
        if records is not None:
            await move_in(draft, reader, self.hierarchy, records, self.target)
            return draft
        way = await _way(draft, reader, self.hierarchy, top, self.target)
        if not draft.collisions:
            draft.record = way.moved(top)
            draft.begin(new_move(top, way.target, moment.now, moment.at, moment.by))
            if way.may_not_fit and draft.nodes <= MAX_SURVEYED:
                await reader.survey(way)
        return draft


def needs_of_move(top: Record, target: Key) -> list[Key]:
    """The keys of what is read to move a node to another place, which lies there or leads there."""
    return [target, *ancestor_keys(target), redirect_key(top.key), redirect_key(target)]


async def move_in(
    draft: TransactionBuilder,
    reader: Reader,
    hierarchy: Hierarchy,
    records: Sequence[Record],
    target: Path,
    *,
    leaving: Path = (),
) -> None:
    """Draft the move of a node and all below it to a path, and make it the node that the draft is about.

    The node at `leaving` is removed in the same draft. Raises a CladeError where the node may not lie there.
    """
    way = await _way(draft, reader, hierarchy, records[0], target, leaving=leaving)
    if not draft.collisions:
        await draft.relocate(records, way)
        draft.record = way.moved(records[0])


async def _way(
    draft: TransactionBuilder, reader: Reader, hierarchy: Hierarchy, top: Record, target: Path, *, leaving: Path = ()
) -> SubtreeRewrite:
    """Where a node would come to lie; notes a collision in the draft where another lies there that is not leaving."""
    key = node_key(hierarchy.name, target)
    await reader.add(draft.seen, touched(hierarchy.name, target), needs_of_move(top, key))
    above = levels_above(draft.seen, hierarchy, target, top.level)
    draft.keep_out(key)
    if draft.seen.item(key) is not None and target != leaving:
        draft.collisions.append(target)
    return SubtreeRewrite.of(top, key, above)
