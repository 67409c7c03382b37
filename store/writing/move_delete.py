"""Moving a node with its subtree to another key (rename), to another parent, to another tree, to be a root, or to
another position among its siblings; deleting one alone, with its subtree, or with its children moved to its parent.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Any, Self

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.errors import (
    AlreadyExists,
    BadPath,
    BadValue,
    Fault,
    FaultList,
    Misplaced,
    NotEmpty,
    Rule,
    TooLarge,
    quantity,
    shorten,
)
from store.metadata.history import shown_path
from store.metadata.moves import new_move
from store.model.keys import Key, Path, ancestor_keys, node_key
from store.model.paths import check_sizes, format_path
from store.model.records import Record, SubtreeRewrite
from store.writing.create_update import existing, levels_above, taken
from store.writing.derived import item_changes_of_move, item_changes_of_removal, keys_of_moves
from store.writing.edit import NOWHERE, Edit, child_path, touched
from store.writing.positions import Position, ranks_at
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.transaction import TransactionBuilder

MAX_CHECKED_NODES = 100_000  # which take seconds; a request has ten, and a move of any size has to begin within it


@dataclass(frozen=True)
class Move(Edit):
    """Move of a node with its subtree to another path, whose last segment is its new key, to a position among its
    siblings, or both.

    A subtree that does not fit into one transaction is only registered, as a large move. Whether all its keys fit at
    the new place is checked before; of a very large subtree while it is copied, which is then undone.

    Of a step of a longer way, such as that of an import, there are no `redirects` from the path that it leaves, or it
    is not told in the log (`is_logged`).

    With `names` it goes below the node of the field `to`, or is made a root with `to_root`; without either, its parent
    is that of the sibling in the field `position`, or stays. The target then is the new key alone, UNUSABLE for one at
    fault, or empty where it stays.
    """

    target: Path
    expected: int | None = None
    position: Position | None = None
    place: str = "to"
    """The field of the input that gives the parent."""
    redirects: bool = True
    is_logged: bool = True
    to_root: bool = False

    def _at(self, found: Mapping[str, Path], faults: Sequence[Fault]) -> dict[str, Any]:
        path, position, faults = found.get("node", NOWHERE), self.position, [*faults]
        named = {one.field for one in self.names or ()}
        has_parent = self.to_root or "to" in named
        parent = () if self.to_root else found.get("to", NOWHERE) if "to" in named else path[:-1]
        if position is not None and "position" in named:
            beside = found.get("position")
            if beside is None:
                parent = parent if has_parent else NOWHERE
            elif parent not in (beside[:-1], NOWHERE) and has_parent:
                text = f"{shorten(format_path(beside))} is not below the new parent; give one of its children."
                faults.append(BadValue(text, Rule.SIBLING).at("position"))
                beside = None
            elif parent != NOWHERE:
                parent = beside[:-1]
            position = dataclasses.replace(position, beside=beside)
        place = "to" if has_parent else "position"
        key = self.target[-1] if self.target else path[-1]
        if key != path[-1]:
            target, faults = child_path(parent, key, faults)
        elif parent != path[:-1]:
            target, faults = child_path(parent, key, faults, place)
        else:
            target = path
        return {"path": path, "target": target, "position": position, "place": place, "faults": faults}

    def _from_to(self, before: Path, path: Path) -> Self:
        return dataclasses.replace(self, path=before, target=path)

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, shown_path(self.path), self.target, *self._beside())

    def keys_to_read(self) -> list[Key]:
        keys = [self.key, *[node_key(self.hierarchy.name, path) for path in self._beside()]]
        if self.target_key != self.key:
            keys += [*ancestor_keys(self.key), self.target_key, *ancestor_keys(self.target_key)]
        return list(dict.fromkeys([*keys, *self.keys_of_others(self.expected)]))

    @cached_property
    def target_key(self) -> Key:
        return node_key(self.hierarchy.name, self.target)

    @property
    def _field(self) -> str:
        """The field of the input that makes the new path."""
        return self.place if self.target[:-1] != self.path[:-1] else "key"

    def _beside(self) -> list[Path]:
        return [] if self.position is None or self.position.beside is None else [self.position.beside]

    async def _build(self, reader: Reader, read_set: ReadSet, context: WriteContext) -> TransactionBuilder:
        faults, source, target = FaultList(self.faults), self.key, self.target_key
        top = self.find(reader, read_set, faults, self.expected)
        moved, rewrite, beside = top, None, None
        if self.target[:-1] == NOWHERE:
            moved = None
        elif source != target:
            moved, above = None, self._check_target(read_set, faults, top)
            with faults.collecting(self._field):
                if top is not None:
                    rewrite = SubtreeRewrite.of(top, target, above)
                    moved = rewrite.moved(top)
        if self.place != "position" or self.target[: len(self.path)] != self.path or source == target:
            with faults.collecting("position"):
                beside = self._check_sibling(read_set, moved)
        if top is None or moved is None or faults.errors:
            raise faults.error()
        transaction = TransactionBuilder(self.hierarchy, read_set, context, top)
        ranks = None
        if self.position is not None:
            with faults.collecting("position"):
                ranks = await ranks_at(self.position, reader, read_set, context, moved, beside, source=source)
            faults.check()
        if rewrite is not None:
            rewrite = rewrite if ranks is None else dataclasses.replace(rewrite, rank=ranks.own)
            try:
                await self._relocate(reader, transaction, top, rewrite)
            except BadPath as error:  # of a node below
                raise error.at(self._field) from None
        elif ranks is not None:
            transaction.reorder(ranks.own)
        if ranks is not None:
            transaction.rank_again(ranks.others)
        return transaction

    def _check_target(self, read_set: ReadSet, faults: FaultList, top: Record | None) -> list[str]:
        """The levels above the new path; all its faults are collected."""
        above = [""]
        if self.target[: len(self.path)] == self.path:
            text = f"{shorten(format_path(self.path))} cannot be moved below itself; choose another place."
            faults.add(Misplaced(text).at(self.place))
            return above
        parent = self.target[:-1]
        if self.place == "position" and parent and read_set[node_key(self.hierarchy.name, parent)] is None:
            return above  # nor is the sibling there that implies it
        with faults.collecting(self._field):
            if top is not None:
                above = levels_above(read_set, self.hierarchy, self.target, top.level)
            elif parent and parent != self.path[:-1]:  # else it may be hidden
                existing(read_set, self.hierarchy, parent)
        with faults.collecting():
            read_set.check_not_moving(self.target_key)
            if read_set[self.target_key] is not None:
                raise taken(self.target).at("key" if self.target[-1] != self.path[-1] else self.place)
        return above

    def _check_sibling(self, read_set: ReadSet, record: Record | None) -> Record | None:
        """The sibling of the position, if one is given, for the node at its new key. Raises NotFound and BadValue."""
        if self.position is None or self.position.beside is None:
            return None
        beside = existing(read_set, self.hierarchy, self.position.beside)
        other = shorten(format_path(beside.path))
        if beside.path == self.path:
            raise BadValue(f"{other} cannot be next to itself; give one of its siblings.", Rule.SIBLING)
        if record is not None and (record.siblings != beside.siblings or record.level != beside.level):
            text = f"{other} is not one of the node's siblings of its level; give one of these."
            raise BadValue(text, Rule.SIBLING)
        return beside

    async def _relocate(
        self, reader: Reader, transaction: TransactionBuilder, top: Record, rewrite: SubtreeRewrite
    ) -> None:
        """Add the move to another key. Raises TooLarge where a large move would need a position."""
        source, target, read_set, context = top.key, rewrite.target, transaction.read_set, transaction.context
        await reader.read_into(read_set, [], keys_of_moves(transaction.recipes, read_set, top))
        item_changes = partial(item_changes_of_move, transaction.recipes, source, target)
        records = await reader.subtree(read_set, top, [*ancestor_keys(source), *ancestor_keys(target)], item_changes)
        transaction.record = rewrite.moved(top)
        if records is not None:
            await transaction.relocate(records, rewrite, redirects=self.redirects, is_logged=self.is_logged)
            return
        if self.position is not None:
            raise TooLarge(
                f"{shorten(format_path(self.path))} and its descendants are {top.subtree_size:,} nodes, more or larger "
                "ones than one transaction moves. Move it without a position, then give it its position."
            ).at("position")
        start, redirects = (context.now, context.at, context.by), self.redirects
        transaction.begin(new_move(top, target, *start, redirects=redirects, is_logged=self.is_logged))
        if rewrite.may_not_fit and transaction.written <= MAX_CHECKED_NODES:
            await reader.check_fits(rewrite)


class Policy(Enum):
    """What happens to the children of a deleted node."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    REPARENT = "reparent"


@dataclass(frozen=True)
class Delete(Edit):
    """Deletion of a node. Its last state and its history stay with its id.

    A cascade that does not fit into one transaction is only registered, as a large move without a target. Without
    `redirects` its paths do not tell that nodes were there, as where an import has brought them.
    """

    policy: Policy
    expected: int | None = None
    redirects: bool = True

    def keys_to_read(self) -> list[Key]:
        return [*super().keys_to_read(), *self.keys_of_others(self.expected)]

    async def _build(self, reader: Reader, read_set: ReadSet, context: WriteContext) -> TransactionBuilder:
        faults = FaultList(self.faults)
        record = self.find(reader, read_set, faults, self.expected)
        if record is not None and self.policy is Policy.REFUSE and (children := sum(record.kids.values())):
            text = f"{shorten(format_path(self.path))} has {quantity(children, 'child', 'children')}; delete them too "
            faults.add(NotEmpty(f"{text}(CASCADE) or move them to its parent (REPARENT).").at("policy"))
        if record is None or faults.errors:
            raise faults.error()
        transaction = TransactionBuilder(self.hierarchy, read_set, context, record)
        # Children that are moved lose their items of kinds and get new ones.
        times = 2 if self.policy is Policy.REPARENT else 1
        item_changes = partial(item_changes_of_removal, transaction.recipes, times)
        records = await reader.subtree(read_set, record, ancestor_keys(record.key), item_changes)
        if self.policy is Policy.REPARENT:
            await self._reparent(transaction, reader, record, records)
        elif records is not None:
            await transaction.remove(records, redirects=self.redirects)
        else:
            move = new_move(record, None, context.now, context.at, context.by, redirects=self.redirects)
            transaction.begin(replace(move, line=transaction.line_above(record)))
        transaction.record = replace(record, kids={}, below={})
        transaction.is_gone = transaction.move is None
        return transaction

    async def _reparent(
        self, transaction: TransactionBuilder, reader: Reader, record: Record, records: Sequence[Record] | None
    ) -> None:
        """Remove the node and move the subtree of each child to the node's parent; raises TooLarge where that does not
        fit into one transaction.

        The child that gets the node's own path is moved last, so that the change log never has two nodes at one path.
        """
        if records is None:
            raise TooLarge(
                f"{shorten(format_path(self.path))} and its descendants are {record.subtree_size:,} nodes, "
                "more or larger ones than fit into one transaction. Move its children one by one, then delete it."
            ).at("policy")
        subtrees: dict[str, list[Record]] = {}
        for below in records[1:]:
            subtrees.setdefault(below.sk[: below.sk.index("#", len(record.sk)) + 1], []).append(below)
        moves, faults = list[tuple[Sequence[Record], SubtreeRewrite]](), FaultList()
        async for some in in_chunks([*subtrees.values()]):
            children = [subtree[0] for subtree in some]
            moves += zip(some, await self._rewrites(transaction, reader, children, faults), strict=True)
        faults.check()
        own = node_key(self.hierarchy.name, self.path)
        async for some_moves in in_chunks([move for move in moves if move[1].target != own]):
            for subtree, rewrite in some_moves:
                await transaction.relocate(subtree, rewrite)
        await transaction.remove([record], alone=True)
        for subtree, rewrite in moves:
            if rewrite.target == own:
                await transaction.relocate(subtree, rewrite)

    async def _rewrites(
        self, transaction: TransactionBuilder, reader: Reader, children: Sequence[Record], faults: FaultList
    ) -> list[SubtreeRewrite]:
        """The rewrites of the children's keys; all their faults are collected, with the child."""
        read_set, name, targets = (
            transaction.read_set,
            self.hierarchy.name,
            [(*self.path[:-1], child.path[-1]) for child in children],
        )
        keys = []
        for child, target in zip(children, targets, strict=True):
            key = node_key(name, target)
            keys += [key, *ancestor_keys(key), *keys_of_moves(transaction.recipes, read_set, child)]
        await reader.read_into(read_set, touched(name, *targets), keys)
        rewrites = []
        for child, target in zip(children, targets, strict=True):
            found = FaultList()
            rewrites.append(self._rewrite(read_set, child, target, found))
            for fault in found.errors:
                faults.add(fault.of(shorten(format_path(child.path))).at("policy"))
        return rewrites

    def _rewrite(self, read_set: ReadSet, child: Record, target: Path, faults: FaultList) -> SubtreeRewrite:
        """The rewrite of a child's keys. Its faults are BadPath where they do not fit, since a child that takes the
        place of a root may be too long for one, Misplaced, Conflict, and AlreadyExists where another node is that does
        not leave.
        """
        key, above = node_key(self.hierarchy.name, target), [""]
        with faults.collecting():
            check_sizes(target)
        with faults.collecting():
            above = levels_above(read_set, self.hierarchy, target, child.level)
        with faults.collecting():
            read_set.check_not_moving(key)
            if read_set[key] is not None and target != self.path:
                there = shorten(format_path(target))
                raise AlreadyExists(f"There is another node at {there}; move one of them first.")
        return SubtreeRewrite.of(child, key, above)
