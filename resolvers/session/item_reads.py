"""Item reads: items by key and tree versions, as one attempt at a response reads them.

A tree version shows which moves are running and proves what is cached of its tree. Running moves and grants are applied
by `filter`, so no caller sees what they hide.
"""

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from resolvers.access.grants import Grants
from resolvers.access.redacted_node import RedactedNode
from resolvers.access.visibility import VisibilityFilter
from resolvers.session.large_read_limit import Slot
from resolvers.session.outcomes import raise_first_error
from resolvers.session.page_cache import PageCache
from resolvers.session.proven_pages import Proofs, ProvenPages
from resolvers.session.read_concurrency import ReadScheduler
from resolvers.session.records_read import RecordsRead
from resolvers.session.running_moves import RunningMoves
from resolvers.session.shared_reads import Items, SharedReads
from store.engine.protocol import Store
from store.engine.usage import LEAST_UNITS, PAGE_UNITS, ReadUsage
from store.errors import CladeError
from store.metadata.move_record import Move
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.items import Item
from store.model.keys import Key, tree_version_key
from store.model.ranges import KeyRange
from store.model.records import Record


class ItemReads:
    """The nodes and tree versions that were read at `store_version`, and the reads that bring them.

    `store_version` is None where the store has none. `moves` are the running moves that were found, `filter` what they
    and the grants let see; both None where nothing is hidden. `pages` are the cached ones that may be used.
    `partitions_read` are the trees and hierarchies whose versions prove that the response is still current;
    `is_cacheable` is False once an unknown id was looked up, since no version proves that an id is still unknown.
    """

    def __init__(
        self,
        store: Store,
        usage: ReadUsage,
        scheduler: ReadScheduler,
        slot: Slot,
        page_cache: PageCache,
        grants: Grants | None,
        *,
        accepts_stale: bool = False,
    ) -> None:
        """With `accepts_stale` a tree version that was read a short time ago is taken for current."""
        self.store_version = store.version()
        self.records_read = RecordsRead()
        self.tree_versions: dict[str, TreeVersion] = {}
        self.moves: RunningMoves | None = None
        self.partitions_read: set[str] = set()
        self.is_cacheable = True
        self._store, self._usage, self._slot = store, usage, slot
        self._reads = SharedReads(store, usage, scheduler, page_cache.coalesced)
        self.pages = ProvenPages(page_cache, self.store_version, usage)
        self.accepts_stale = accepts_stale
        self._stale: set[str] = set()  # the trees whose version was not read by this request
        self._versions_seen, self._coalesced = page_cache.tree_versions, page_cache.coalesced
        self.restrict_to(grants)

    def restrict_to(self, grants: Grants | None) -> None:
        """Show only what is granted; to be called before anything is read."""
        self.grants = grants
        self.filter = None if grants is None else VisibilityFilter(grants)
        self.pages.has_lookups = grants is None

    def end(self) -> None:
        """Cancel all reads and drop what was read."""
        if self.moves is not None:
            self.moves.stop()
        self._reads.end()
        self.records_read, self.tree_versions = RecordsRead(), {}

    @property
    def is_outdated(self) -> bool:
        """Whether the store was written to since reading began, so that what was read may not fit together."""
        return self._store.version() != self.store_version

    async def are_moves_unchanged(self) -> bool:
        """Whether everything that was read is of one side of each running move's flip; else it has to be discarded."""
        return self.moves is None or await self.moves.are_unchanged()

    async def find_moves(self, trees: Iterable[str]) -> None:
        """Find the moves that run in these trees; to be called before anything is read."""
        if trees:
            await self.versions_of(trees)

    def show_moves(self, moves: Iterable[Move]) -> None:
        """Have the response be of those sides of running moves that their states say, since it shows them."""
        if running := {move.id: move.has_flipped for move in moves if move.ended_at is None}:
            self._running_moves().shown.update(running)

    def _running_moves(self) -> RunningMoves:
        if self.moves is None:
            self.moves = RunningMoves(self.strong_items, self._use_moves)
        return self.moves

    # -- what is cached ------------------------------------------------------------------------------------------------

    def proofs(self) -> Proofs | None:
        """What proves everything that was read, None if something has no proof."""
        return self.pages.proofs(self.partitions_read)

    def holds(self, proofs: Proofs) -> bool:
        """Whether these proofs hold, without a read."""
        return all(tree is None or self._has_version(tree) for tree in proofs) and self.pages.holds(proofs)

    async def prove(self, proofs: Proofs) -> bool:
        """Whether these proofs hold; the versions of their trees are read, unless it is clear that one does not.

        Raises the error of a failed read.
        """
        if not self.pages.may_hold(proofs):
            return False
        missing = [tree for tree in proofs if tree is not None and not self._has_version(tree)]
        if missing:
            raise_first_error((await self.versions_of(missing)).values())
        self.partitions_read.update(tree for tree in proofs if tree is not None)
        return self.pages.holds(proofs)

    async def cached_nodes(self, keys: Sequence[Hashable]) -> list[Any] | None:
        """The nodes at all of these keys, without a filter; None if one of them has to be read.

        On DynamoDB the versions of their trees are read, if it is likely that nothing else has to be.
        """
        if self.store_version is not None:
            return self.pages.lookups([(None, key) for key in keys])
        found = [self.pages.peek(key) for key in keys]
        if self.filter is not None or None in found:
            return None
        entries = cast(list[tuple[Record, object]], found)
        try:
            if not await self.prove({record.pk: proof for record, proof in entries}):
                return None
        except CladeError:  # the ordinary way meets it again
            return None
        return self.pages.lookups([(record.pk, key) for key, (record, _) in zip(keys, entries, strict=True)])

    # -- items and tree versions ---------------------------------------------------------------------------------------

    async def items(self, keys: Iterable[Key], *, current: bool = False) -> Items:
        """The items at these keys, None where there is none, or the error of a failed read.

        With `current` the items are no older than this call; of DynamoDB that takes a strongly consistent read, at
        twice the price. For callers with grants nothing is cached, so that hidden items cost as much as missing ones.
        """
        return await self._items(list(dict.fromkeys(keys)), [], cached=self.grants is None, current=current)

    async def item(self, key: Key) -> Item | None:
        """The current item at a key; raises the error of a failed read."""
        found = (await self.items([key], current=True))[key]
        if isinstance(found, Exception):
            raise found
        return found

    async def strong_items(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        """The items at these keys as of now, even if they were read before."""
        items = await self._reads.run(partial(self._store.get, keys, self._usage, strong=True))
        return dict(zip(keys, items, strict=True))

    def read_again(self, keys: Iterable[Key]) -> None:
        """Let these keys be read again, unless the store's version proves that nothing was written meanwhile."""
        if self.store_version is None:
            again = set(keys)
            self._reads.forget_items(again.__contains__)
            for key in again & self.records_read.strong_nodes.keys():
                if self.records_read.strong_nodes[key] is None:
                    del self.records_read.strong_nodes[key]

    async def versions_of(self, trees: Iterable[str]) -> dict[str, TreeVersion | Exception]:
        """The versions of these trees or hierarchies, each read once, or the error of a failed read."""
        trees = list(dict.fromkeys(trees))
        self.partitions_read.update(trees)
        failed = await self._items([], trees, cached=False, current=False)
        found: dict[str, TreeVersion | Exception] = {}
        for tree in trees:
            error = failed.get(tree_version_key(tree))
            found[tree] = error if isinstance(error, Exception) else self.tree_versions[tree]
        return found

    def clock(self) -> float:
        """The time in seconds, by the clock of the cached tree versions."""
        return self._versions_seen.clock()

    def items_once(self, span: KeyRange, limit: int, usage: ReadUsage | None = None) -> "asyncio.Future[list[Item]]":
        """The first items in a range of the table that holds no nodes, read once by this state; started at once."""
        return self._reads.once((span, limit), lambda: self.items_in(span, limit=limit, usage=usage))

    async def items_in(
        self,
        span: KeyRange,
        *,
        limit: int | None = None,
        reverse: bool = False,
        current: bool = True,
        usage: ReadUsage | None = None,
    ) -> list[Item]:
        """The items in a range that holds no nodes; with `current`, for a range of the table, as of now.

        The read is counted in `usage`, by default in that of the request.
        """
        strong = current and self.store_version is None
        price = 2 if current else 1
        units = price * (PAGE_UNITS if limit is None else min(limit * LEAST_UNITS, PAGE_UNITS))
        call = partial(self._store.range, span, usage or self._usage, limit=limit, reverse=reverse, strong=strong)
        return await self._reads.run(call, units)

    async def _items(self, keys: Sequence[Key], trees: Sequence[str], *, cached: bool, current: bool) -> Items:
        """Items by key, and in the same reads the versions of trees, with the running moves that these name.

        The versions go into `tree_versions`; the errors of those that failed are among the items.
        """
        found = await self._items_once(keys, trees, cached=cached, current=current)
        if moves := self._moves_of(trees):
            await self._running_moves().load(moves)
            # Items that came with the tree versions were read before the states of their moves.
            moving = [key for key in keys if self._is_moving(key)]
            found |= await self._items_once(moving, [], cached=cached, current=current)
        return found

    async def _items_once(self, keys: Sequence[Key], trees: Sequence[str], *, cached: bool, current: bool) -> Items:
        strong = current and self.store_version is None
        found: Items = {}
        if cached:
            found = {key: item for key in keys if (item := self.pages.get(None, ("item", key))) is not None}
        began = self._versions_seen.clock()
        # Where items are read, a stale version is read beside them: they would not fit together.
        stale = self._stale if keys else ()
        versions = [tree_version_key(tree) for tree in trees if not self._has_version(tree) or tree in stale]
        started = {key for key in versions if not self._reads.has_read(key)}
        missing = [*versions, *[key for key in keys if key not in found]]
        outcomes = await self._reads.items(
            missing, lambda key: strong or key == tree_version_key(key.pk) or self._is_moving(key)
        )
        for key in versions:
            outcome = outcomes.pop(key)
            if isinstance(outcome, Exception):
                found[key] = outcome
            else:
                version = TreeVersion.of(key.pk, outcome)
                if key in started:  # a read that this one shares began earlier
                    self._versions_seen.see(version, began)
                self._stale.discard(key.pk)
                self._use_version(version)
                self.pages.put(key.pk, key.pk, version)
        for key, outcome in outcomes.items():
            found[key] = outcome
            if cached and outcome is not None and not isinstance(outcome, Exception):
                self.pages.put(None, ("item", key), outcome)
        return found

    def _has_version(self, tree: str) -> bool:
        if tree not in self.tree_versions:
            version: TreeVersion | None = None
            if self.store_version is not None:
                version = self.pages.get(tree, tree)
            elif self.accepts_stale and self.grants is None:
                version = self._versions_seen.fresh(tree)
            if version is not None:
                self._use_version(version)
                if self.store_version is None:
                    self._stale.add(tree)
        return tree in self.tree_versions

    def _use_version(self, version: TreeVersion) -> None:
        self.tree_versions[version.partition] = version
        if self.grants is None and self.store_version is None:  # nothing is cached for callers who see a part only
            self.pages.use_version(version)

    def _moves_of(self, trees: Iterable[str]) -> list[ActiveMoveRef]:
        return [move for tree in trees if tree in self.tree_versions for move in self.tree_versions[tree].moves]

    def _is_moving(self, key: Key) -> bool:
        return self.moves is not None and key.pk in self.moves.trees

    def _use_moves(self, moves: RunningMoves) -> None:
        """Hide what running moves hide, and forget the items that were read before the states of the moves."""
        self.filter = VisibilityFilter(self.grants, moves.hidden, moves.moved)
        self.tree_versions.update({key: one for key, one in moves.tree_versions.items() if key in self.tree_versions})
        nodes = self.records_read.nodes
        moves.is_torn |= any(_has_other_counts(nodes.get(key), one) for key, one in moves.ancestors.items())
        nodes.update(moves.ancestors)
        self.records_read.strong_nodes.update(moves.ancestors)
        self._reads.forget_items(self._is_moving)
        self.pages.has_lookups = False
        self.pages.drop(moves.trees)


def _has_other_counts(read: Record | None, current: Record) -> bool:
    """Whether a node was read with other counts than it has; a root that was read in a list has those of its children
    alone.
    """
    if read is None or (read.kids == current.kids and read.below in (None, current.below)):
        return False
    return not isinstance(read, RedactedNode)
