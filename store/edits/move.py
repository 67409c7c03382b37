"""Moving a node with its subtree: to another key, to another parent, to another tree, to be a root, or to another
position among its siblings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from store.edits.create_update import check_ids, existing, levels_above, taken, touched
from store.edits.reader import Reader, ReadSet, WriteContext
from store.edits.sibling_order import Position, Ranks, SiblingOrder
from store.edits.transaction import TransactionBuilder, Way
from store.errors import BadInput, CladeError, FaultList, Misplaced
from store.metadata.move_record import new_move
from store.metadata.redirects import redirect_key
from store.model.hierarchy import Hierarchy
from store.model.key_rewrite import SubtreeRewrite, new_token
from store.model.keys import Key, Path, ancestor_keys, node_key
from store.model.paths import format_path
from store.model.records import Record
from store.text import shorten

MAX_CHECKED_NODES = 100_000  # which take seconds; a request has ten, and a move of any size has to begin within it


@dataclass(frozen=True)
class Move:
    """Move of a node with its subtree to another path, whose last segment is its new key, to a position among its
    siblings, or both.

    A subtree that does not fit into one transaction is only registered, and moved by a background move. Whether all
    its keys fit at the new place is checked before; of a very large subtree while it is copied, which is then undone.
    `ids` are those that the nodes at some of its paths have to have. `way` is for a part of a move in a batch. `faults`
    are those of an input whose key is unusable: then no node is, or comes, to `target`.
    """

    hierarchy: Hierarchy
    path: Path
    target: Path
    expected: int | None = None
    position: Position | None = None
    ids: Mapping[Path, str] = field(default_factory=dict)
    way: Way | None = None
    faults: Sequence[CladeError] = ()

    def partitions(self) -> set[str]:
        beside = self.position.beside if self.position else None
        former = {self.way.former.pk} if self.way and self.way.former else set()
        return touched(self.hierarchy.name, self.path, self.target, beside or self.target) | former

    def keys_to_read(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        beside = [self.position.beside] if self.position and self.position.beside else []
        named = [node_key(self.hierarchy.name, path) for path in (*self.ids, *beside)]
        former = [redirect_key(self.way.former)] if self.way and self.way.former else []
        return list(dict.fromkeys([key, *ancestor_keys(key), *named, *former]))

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        check_ids(read_set, self.hierarchy, self.ids)
        faults = FaultList(self.faults)
        top: Record | None = None
        with faults.collecting():
            top = existing(read_set, self.hierarchy, self.path, reader, self.expected)
        if top is None:
            raise faults.error()
        transaction = TransactionBuilder(self.hierarchy, reader, read_set, context, top)
        if self.target == self.path:
            await self._reorder(reader, transaction, top)
            return transaction
        if self.target[: len(self.path)] == self.path:
            faults.add(Misplaced(f"{shorten(format_path(self.path))} cannot be moved below itself.").at("to"))
            raise faults.error()
        key = node_key(self.hierarchy.name, self.target)
        with faults.collecting():
            rewrite = await _rewrite(transaction, reader, self.hierarchy, top, self.target)
        with faults.collecting():
            self._check_sibling(read_set, reader, structs.replace(top, pk=key.pk, sk=key.sk))
        faults.check()
        ranks = await self._ranks(reader, transaction, rewrite.moved(top))
        token = "" if self.way is not None and self.way.former is None else rewrite.token
        rewrite = replace(rewrite, rank=ranks.own or rewrite.rank, token=token)
        most = partial(transaction.kinds.most_of_move, top.key, key)
        records = await reader.subtree(read_set, top, [*ancestor_keys(top.key), *ancestor_keys(key)], most)
        transaction.record = rewrite.moved(top)
        if records is not None:
            await transaction.relocate(records, rewrite, self.way)
        else:
            rank = rewrite.rank if ranks.own else None
            transaction.begin(new_move(top, rewrite.target, context.now, context.at, context.by, rank))
            if rewrite.may_not_fit and transaction.nodes <= MAX_CHECKED_NODES:
                await reader.check_fits(rewrite)
        transaction.rank_again(ranks.others)
        return transaction

    async def _reorder(self, reader: Reader, transaction: TransactionBuilder, record: Record) -> None:
        """Give the node another position at its place; does nothing where it has that."""
        self._check_sibling(transaction.read_set, reader, record)
        ranks = await self._ranks(reader, transaction, record)
        if ranks.own is not None:
            transaction.record = transaction.reorder(record, ranks.own)
            transaction.rank_again(ranks.others)

    async def _ranks(self, reader: Reader, transaction: TransactionBuilder, record: Record) -> Ranks:
        """The ranks for the position that is asked for; `record` is the node as it will be at its place."""
        if self.position is None:
            return Ranks(None)
        read_set, source = transaction.read_set, node_key(self.hierarchy.name, self.path)
        beside = None
        if self.position.beside is not None:
            beside = existing(read_set, self.hierarchy, self.position.beside, reader, field="position")
            read_set.check_not_moving(beside.key)
        read_set.check_not_moving(record.key)
        moves = await reader.active_moves(read_set, record.hierarchy if record.is_root else record.pk)
        siblings = SiblingOrder(reader, read_set, record, moves.hidden | {source})
        return await siblings.ranks(transaction.context, self.position, beside, stays=source == record.key)

    def _check_sibling(self, read_set: ReadSet, reader: Reader, record: Record) -> None:
        """Raise NotFound or BadInput where the position is not next to a sibling of `record`, the node at its place."""
        if self.position is None or self.position.beside is None:
            return
        beside = existing(read_set, self.hierarchy, self.position.beside, reader, field="position")
        one = shorten(format_path(self.path if self.faults else self.target))
        other = shorten(format_path(beside.path))
        if beside.path == self.path:
            raise BadInput(f"{one} cannot be next to itself; give one of its siblings.").at("position")
        if record.siblings != beside.siblings or record.level != beside.level:
            text = f"{other} is not a sibling of {one} of the same level; only those have an order."
            raise BadInput(text).at("position")


def keys_of_move(transaction: TransactionBuilder, top: Record, target: Key) -> list[Key]:
    """The keys to read for the move of a node, whose ancestors were read, to another key: nodes, the redirect, and what
    is stored of such moves.
    """
    nodes = [*transaction.read_set.ancestors(top.key), top]
    return [target, *ancestor_keys(target), redirect_key(top.key), *transaction.kinds.events.keys_of_move(nodes)]


async def move_subtree(
    transaction: TransactionBuilder,
    reader: Reader,
    hierarchy: Hierarchy,
    records: Sequence[Record],
    target: Path,
    *,
    leaving: Path = (),
) -> None:
    """Add the move of a node and all below it, `records` in key order, to a transaction, as the node it is about.

    The node at `leaving` is removed in the same transaction. Raises a CladeError where the move is not allowed.
    """
    rewrite = await _rewrite(transaction, reader, hierarchy, records[0], target, leaving=leaving)
    await transaction.relocate(records, rewrite)
    transaction.record = rewrite.moved(records[0])


async def _rewrite(
    transaction: TransactionBuilder,
    reader: Reader,
    hierarchy: Hierarchy,
    top: Record,
    target: Path,
    *,
    leaving: Path = (),
) -> SubtreeRewrite:
    """The rewrite of keys. Raises AlreadyExists where another node is at the target and not leaving, and as
    `levels_above` does.
    """
    key, faults = node_key(hierarchy.name, target), FaultList()
    keys = keys_of_move(transaction, top, key)
    await reader.read_into(transaction.read_set, touched(hierarchy.name, target), keys)
    above: list[str] = []
    with faults.collecting("to"):
        above = levels_above(transaction.read_set, hierarchy, target, top.level, reader)
    transaction.read_set.check_not_moving(key)
    if transaction.read_set.item(key) is not None and target != leaving:
        faults.add(taken(target, "key" if target[-1] != top.path[-1] else "to"))
    faults.check()
    return SubtreeRewrite.of(top, key, above, new_token())
