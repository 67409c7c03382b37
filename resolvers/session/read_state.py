"""Read state: everything that one attempt at a response reads. It is replaced whole when its reads may be outdated.

Whoever waits for a read of a state that has ended is cancelled, and the result of such a read is dropped: nothing that
one attempt has read can get into the next. Running moves and grants are applied here, so no caller sees what they hide.
"""

import asyncio
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

from resolvers.access.grants import Grants, Visibility, visibility_at
from resolvers.access.redacted_node import redacted
from resolvers.access.visibility import VisibilityFilter
from resolvers.session.large_read_limit import Slot
from resolvers.session.outcomes import raise_first_error
from resolvers.session.page_cache import PageCache
from resolvers.session.read_concurrency import ReadScheduler
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.running_moves import RunningMoves
from resolvers.session.shared_reads import Items, SharedReads
from store.engine.protocol import Store
from store.engine.usage import LEAST_UNITS, PAGE_UNITS, ReadUsage
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.items import Item
from store.model.keys import Index, Key, tree_version_key
from store.model.ranges import KeyRange
from store.model.records import Record

Nodes = dict[Key, Record | Exception | None]

LIST_UNITS = 32.0  # expected of a list; few consume more, since the nodes of a response are bounded


class ReadState:
    """The nodes and tree versions that were read at `store_version`, and the reads that bring them.

    `store_version` is None where the store has none; only otherwise the page cache is used. `moves` are the running
    moves that were found, `filter` what they and the grants let see; both None where nothing is hidden.
    `partitions_read` are the trees and hierarchies whose versions prove that the response is still current;
    `is_cacheable` is False once an unknown id was looked up, since no version proves that an id is still unknown.
    """

    def __init__(
        self,
        store: Store,
        usage: ReadUsage,
        scheduler: ReadScheduler,
        slot: Slot,
        page_cache: PageCache | None,
        grants: Grants | None,
    ) -> None:
        self.store_version = store.version()
        self.records_read = RecordsRead()
        self.tree_versions: dict[str, TreeVersion] = {}
        self.moves: RunningMoves | None = None
        self.partitions_read: set[str] = set()
        self.is_cacheable = True
        self._store, self._usage, self._slot = store, usage, slot
        self._reads = SharedReads(store, usage, scheduler)
        self._page_cache = page_cache if self.store_version is not None else None
        if page_cache is not None:
            page_cache.use_version(self.store_version)
        self.restrict_to(grants)

    def restrict_to(self, grants: Grants | None) -> None:
        """Show only what is granted; to be called before anything is read."""
        self.grants = grants
        self.filter = None if grants is None else VisibilityFilter(grants)

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

    # -- the page cache ------------------------------------------------------------------------------------------------

    def cached(self, key: Hashable) -> Any:
        """The entry of the page cache at a key, if nothing was written since it was read; else None."""
        return None if self._page_cache is None else self._page_cache.page(self.store_version, key)

    def cache(self, key: Hashable, entry: Any, records: int = 1) -> None:
        """Add an entry of so many records to the page cache."""
        if self._page_cache is not None:
            self._page_cache.put_page(self.store_version, key, entry, records)

    def all_cached(self, keys: Iterable[Hashable]) -> list[Any] | None:
        """The entries at all of these keys, of lookups without a filter; None if one of them has to be read."""
        if self.filter is not None or None in (entries := [self.cached(key) for key in keys]):
            return None
        return entries

    def cache_lookup(self, key: Hashable, found: object) -> None:
        """Add the result of a lookup for `all_cached`. Its records have entries of their own."""
        if self.filter is None:
            self.cache(key, found, records=0)

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
        items = await self._reads.run(self._store.get(keys, self._usage, strong=True))
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

    async def current_version_numbers(self) -> dict[str, int]:
        """The version numbers of all partitions that were read from, as of now."""
        items = await self.strong_items([tree_version_key(partition) for partition in sorted(self.partitions_read)])
        return {key.pk: TreeVersion.of(key.pk, item).number for key, item in items.items()}

    async def items_in(self, span: KeyRange, *, limit: int | None = None, reverse: bool = False) -> list[Item]:
        """The current items in a range of the table that holds no nodes."""
        strong = self.store_version is None
        units = 2 * PAGE_UNITS if limit is None else min(2 * limit * LEAST_UNITS, 2 * PAGE_UNITS)
        call = self._store.range(span, self._usage, limit=limit, reverse=reverse, strong=strong)
        return await self._reads.run(call, units)

    async def _items(self, keys: Sequence[Key], trees: Sequence[str], *, cached: bool, current: bool) -> Items:
        """Items by key, and in the same reads the versions of trees, with the running moves that these name.

        The versions go into `tree_versions`; the errors of those that failed are among the items.
        """
        found = await self._items_once(keys, trees, cached=cached, current=current)
        if self.store_version is None and (moves := self._moves_of(trees)):
            if self.moves is None:
                self.moves = RunningMoves(self.strong_items, self._use_moves)
            await self.moves.load(moves)
            # Items that came with the tree versions were read before the states of their moves.
            moving = [key for key in keys if self._is_moving(key)]
            found |= await self._items_once(moving, [], cached=cached, current=current)
        return found

    async def _items_once(self, keys: Sequence[Key], trees: Sequence[str], *, cached: bool, current: bool) -> Items:
        strong = current and self.store_version is None
        found: Items = {}
        if cached:
            found = {key: item for key in keys if (item := self.cached(("item", key))) is not None}
        versions = [tree_version_key(tree) for tree in trees if not self._has_version(tree)]
        missing = [*versions, *[key for key in keys if key not in found]]
        outcomes = await self._reads.items(
            missing, lambda key: strong or key == tree_version_key(key.pk) or self._is_moving(key)
        )
        for key in versions:
            outcome = outcomes.pop(key)
            if isinstance(outcome, Exception):
                found[key] = outcome
            else:
                self.tree_versions[key.pk] = version = TreeVersion.of(key.pk, outcome)
                self.cache(key.pk, version)
        for key, outcome in outcomes.items():
            found[key] = outcome
            if cached and outcome is not None and not isinstance(outcome, Exception):
                self.cache(("item", key), outcome)
        return found

    def _has_version(self, tree: str) -> bool:
        if tree not in self.tree_versions and (version := self.cached(tree)) is not None:
            self.tree_versions[tree] = version
        return tree in self.tree_versions

    def _moves_of(self, trees: Iterable[str]) -> list[ActiveMoveRef]:
        return [move for tree in trees if tree in self.tree_versions for move in self.tree_versions[tree].moves]

    def _is_moving(self, key: Key) -> bool:
        return self.moves is not None and key.pk in self.moves.trees

    def _use_moves(self, moves: RunningMoves) -> None:
        """Hide what running moves hide, and forget the items that were read before the states of the moves."""
        self.filter = VisibilityFilter(self.grants, moves.hidden, moves.moved)
        self.tree_versions.update({key: one for key, one in moves.tree_versions.items() if key in self.tree_versions})
        self.records_read.nodes.update(moves.ancestors)
        self.records_read.strong_nodes.update(moves.ancestors)
        self._reads.forget_items(self._is_moving)

    # -- nodes by key --------------------------------------------------------------------------------------------------

    async def nodes(self, keys: Iterable[Key], *, current: bool = False) -> Nodes:
        """The nodes at these keys, each read once, with the versions of their trees in the same reads.

        In place of a node there is None where there is none or it is hidden, a RedactedNode above the caller's grants,
        or the error of a failed read. With `current` no record is taken from an index, where it may be outdated.
        """
        wanted, grants = dict.fromkeys(keys), self.grants
        trees = [key.pk for key in wanted]
        # Hidden keys are not read, so that neither time nor reads disclose whether there is a node.
        readable = (
            [key for key in wanted if visibility_at(grants, key) is not Visibility.HIDDEN]
            if grants is not None
            else wanted
        )
        found = await self._nodes(readable, trees, current=current)
        visible = self.filter
        if visible is None:
            return found
        return {key: redacted(found.get(key), visible.visibility(key)) for key in wanted}

    async def node(self, key: Key) -> Record | None:
        """The node at a key; raises the error of a failed read."""
        found = await self.nodes([key])
        raise_first_error(found.values())
        return found[key]  # type: ignore[return-value]  # no Exception

    async def current_nodes(self, keys: Iterable[Key]) -> Nodes:
        """The current nodes at these keys; a node that a running move has taken away is read at its new key."""
        found = await self.nodes(keys, current=True)
        if self.filter is None or not self.filter.moved:
            return found
        new_keys = {key: new for key in found if (new := self.filter.new_key(key)) is not None}
        there = await self.nodes(new_keys.values(), current=True)
        return found | {key: there[new] for key, new in new_keys.items()}

    async def reread_nodes(self, keys: Iterable[Key]) -> None:
        """Read nodes as of now, even if they were read before; hidden ones are skipped."""
        visible = [key for key in dict.fromkeys(keys) if visibility_at(self.grants, key) is not Visibility.HIDDEN]
        for key, item in (await self.strong_items(visible)).items() if visible else ():
            self._add_node(key, item)

    async def _nodes(self, keys: Collection[Key], trees: Sequence[str], *, current: bool) -> Nodes:
        found: Nodes = {}
        missing = [key for key in keys if not self._has_node(key, current=current)]
        self._slot.expect(len(missing))
        trees = list(dict.fromkeys(trees))
        self.partitions_read.update(trees)
        # The records are cached, not their items. Tree versions need strong reads, so these are strong as a whole.
        for key, item in (await self._items(missing, trees, cached=False, current=True)).items():
            if isinstance(item, Exception):
                found[key] = item
            else:
                self._add_node(key, item)
        nodes = self.records_read.nodes
        return {key: nodes[key] if key in nodes else found[key] for key in keys}

    def _has_node(self, key: Key, *, current: bool) -> bool:
        """Whether a node was read, by this request or an earlier one; if `current`, with strong consistency."""
        if current and self.store_version is None:
            return key in self.records_read.strong_nodes
        nodes = self.records_read.nodes
        if key not in nodes and (record := self.cached(key)) is not None:
            nodes[key] = record
        return key in nodes

    def _add_node(self, key: Key, item: Item | None) -> None:
        record = None if item is None else Record.of(item)
        self.records_read.nodes[key] = self.records_read.strong_nodes[key] = record
        if record is not None:
            self.cache(key, record.with_fragments())

    # -- nodes by range ------------------------------------------------------------------------------------------------

    def range(self, read: Read) -> "asyncio.Future[None]":
        """Read a range of nodes into `records_read`; started at once."""
        return self._reads.once(read, lambda: self._read_range(read))

    async def _read_range(self, read: Read) -> None:
        is_of_roots = read.span.index is Index.BY_PARENT and "#" not in read.span.partition
        records = await (self._roots(read) if self.store_version is None and is_of_roots else self._records(read))
        self.records_read.add(read, records)

    async def _roots(self, read: Read) -> list[Record]:
        """Roots, with the version of their hierarchy in the same round, since it names the moves from and to roots."""
        visible = self.filter
        records, versions = await asyncio.gather(self._records(read), self.versions_of([read.span.partition]))
        raise_first_error(versions.values())
        return records if self.filter is visible else await self._records(read)

    async def _records(self, read: Read) -> list[Record]:
        """The visible records of a range."""
        span, limit, reverse, visible = read.span, read.limit, read.reverse, self.filter
        if visible is None:
            return await self._query(span, limit, reverse=reverse)
        records: list[Record] = []
        hidden = visible.hidden_in(span)
        for part in visible.visible_parts(span)[:: -1 if reverse else 1]:
            rest = None if limit is None else limit + hidden - len(records)
            if rest != 0:
                records += await self._query(part, rest, reverse=reverse)
        if self.moves is not None:
            records = list(map(self.moves.with_current_counts, records))
        return [record for record in records if not hidden or visible.visibility(record.key) is Visibility.FULL][:limit]

    async def _query(self, span: KeyRange, limit: int | None, *, reverse: bool) -> list[Record]:
        units = LIST_UNITS if limit is None else min(limit * LEAST_UNITS, LIST_UNITS)
        return await self._reads.run(self._store.nodes(span, self._usage, limit=limit, reverse=reverse), units)

    def count(self, span: KeyRange) -> "asyncio.Future[int]":
        """The number of nodes in a range of a level or of the table; started at once."""
        return self._reads.once(span, lambda: self._count(span))

    async def _count(self, span: KeyRange) -> int:
        parts = [span] if self.filter is None else self.filter.visible_parts(span)
        # The size of a range is unknown until its pages are read; each page may be of the maximum size.
        counts = [self._reads.run(self._store.count(part, self._usage), PAGE_UNITS) for part in parts]
        return sum(await asyncio.gather(*counts))
