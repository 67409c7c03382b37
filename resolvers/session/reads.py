"""Read state: everything that one attempt at a response reads. It is replaced whole when its reads may be outdated.

Tasks that wait for a read of a replaced state are cancelled, and the result of such a read is dropped, so nothing that
one attempt has read can get into the next. A tree version shows which moves are running and validates what is cached
of its tree. Running moves and grants are applied by `filter`, so no caller sees what they hide.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from resolvers.access.grants import Grants, VisibilityFilter, may_read
from resolvers.session.budget import raise_first_error
from resolvers.session.cache import CachedPages, PageCache, StoreValidators, TreeValidators
from resolvers.session.moves import RunningMoves
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.scheduler import Items, ReadScheduler, StartedRead, outcome_of
from store.engine import LEAST_UNITS, PAGE_UNITS, ReadUsage, Store, units_of
from store.errors import CladeError
from store.metadata.moves import Move
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Index, Key, KeyRange, hierarchy_of, path_of, subtree, tree_version_key
from store.model.records import Item, Record

T = TypeVar("T")
Nodes = dict[Key, Record | Exception | None]

BATCH_KEYS = 100  # DynamoDB's limit of one BatchGetItem, which fails as a whole
LIST_UNITS = 32.0  # expected of a list; few consume more, since the nodes of a response are bounded


class ReadState:
    """The nodes and tree versions that were read since `store_version`, and the reads that bring them: each is started
    once, and awaited by everyone who needs it.

    `moves` are the running moves that were found, `filter` what they and the grants let see; both None where nothing is
    hidden. `pages` are the cached ones that may be used, because of `validators`.
    `partitions_read` are the trees and hierarchies that were read, `is_of_trees` whether their versions show that the
    response is still current: not after a search, nor after the lookup of an unknown id, which a write to any other
    tree may change. With `accepts_stale` a tree version that was read a short time ago is taken for current.
    """

    def __init__(
        self,
        store: Store,
        usage: ReadUsage,
        scheduler: ReadScheduler,
        page_cache: PageCache,
        grants: Grants | None,
    ) -> None:
        self.store_version = version = store.version()
        self.validators = TreeValidators(page_cache.tree_versions) if version is None else StoreValidators(version)
        self.records_read = RecordsRead()
        self.tree_versions: dict[str, TreeVersion] = {}
        self.moves: RunningMoves | None = None
        self.partitions_read: set[str] = set()
        self.is_of_trees = True
        self._store, self._usage, self._scheduler = store, usage, scheduler
        self._coalesced = page_cache.coalesced
        self._started: dict[Hashable, StartedRead[Any]] = {}  # by key, or by any other value that identifies a read
        self._strong: set[Key] = set()  # the keys of `_started` that were read with strong consistency
        self._has_ended = False
        self._logs: dict[str, set[str]] = {}  # by tree, the moves that were seen committed before its log was read
        self.pages = CachedPages(page_cache, self.validators, usage)
        self.accepts_stale = False
        self._stale: set[str] = set()  # the trees whose version was not read by this request
        self.grants: Grants | None = None
        self.filter: VisibilityFilter | None = None
        if grants is not None:
            self.restrict_to(grants)

    def restrict_to(self, grants: Grants) -> None:
        """Show only what is granted; to be called before anything is read."""
        self.grants, self.filter = grants, VisibilityFilter(grants)
        self.pages.has_lookups, self.pages.scope = False, grants.digest

    def end(self) -> None:
        """Cancel all reads and drop what was read; no read that is shared begins any more."""
        if self.moves is not None:
            self.moves.stop()
        self._has_ended = True
        for read in self._started.values():
            read.cancel()
        self._started = {}
        self.records_read, self.tree_versions = RecordsRead(), {}

    async def are_moves_unchanged(self) -> bool:
        """Whether everything that was read is of one side of each running move; else it has to be discarded."""
        moves = self.moves
        if moves is None:
            return True
        are_logs_current = all(moves.committed_in(tree) <= seen for tree, seen in self._logs.items())
        return are_logs_current and await moves.are_unchanged()

    def begin_log(self, tree: str) -> None:
        """Note that the log of a tree is read from now on, and lacks the commits of moves that are seen later."""
        self._logs.setdefault(tree, set() if self.moves is None else self.moves.committed_in(tree))

    def show_moves(self, moves: Iterable[Move]) -> None:
        """Have the response be of those sides of running moves that their states say, since it shows them."""
        if running := {move.id: move.has_committed for move in moves if move.ended_at is None}:
            self._running_moves().shown.update(running)

    def _running_moves(self) -> RunningMoves:
        if self.moves is None:
            self.moves = RunningMoves(self.strong_items, self._use_moves)
        return self.moves

    # -- what is cached ------------------------------------------------------------------------------------------------

    @property
    def validating_partitions(self) -> frozenset[str]:
        """The trees and hierarchies whose versions validate the response; none if they do not validate all of it."""
        return frozenset(self.partitions_read if self.is_of_trees else ())

    async def validate(self, partitions: frozenset[str], validator: object) -> bool:
        """Whether this still is the validator of these partitions, whose versions are read, unless it clearly is not.

        Raises the error of a failed read.
        """
        if not self.validators.is_latest(partitions, validator):
            return False
        if self.validators.need_versions:
            raise_first_error((await self.versions_of(partitions)).values())
        return self.validators.of(partitions) == validator

    async def cached_nodes(self, keys: Sequence[Hashable]) -> list[Any] | None:
        """The nodes at all of these keys, without a filter; None if one of them has to be read.

        The versions of their trees are read where needed, if it is likely that nothing else has to be.
        """
        if not self.validators.need_versions:
            return self.pages.lookups([(None, key) for key in keys])
        found = [self.pages.cache.peek(key) for key in keys]
        if self.filter is not None or None in found:
            return None
        entries = cast(list[tuple[Record, object]], found)
        try:
            trees, validators = frozenset([record.pk for record, _ in entries]), frozenset([one for _, one in entries])
            if not await self.validate(trees, validators):
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
        items = await self._run(partial(self._store.get, keys, self._usage, strong=True))
        return dict(zip(keys, items, strict=True))

    def read_again(self, keys: Iterable[Key]) -> None:
        """Let these keys be read again, where their first read may have missed a write; with grants in any case, or the
        number of reads would tell which keys were read before.
        """
        if self.validators.has_lag or self.grants is not None:
            again = set(keys)
            self._forget_items(again.__contains__)
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

    async def read_versions(self, trees: Iterable[str]) -> None:
        """Read the versions of these trees where they are needed to validate what is cached; they plan what is not.
        Where that fails, whoever needs one meets it again.
        """
        if self.validators.need_versions and not (wanted := set(trees)) <= self.tree_versions.keys():
            await self.versions_of(wanted)

    def items_once(self, span: KeyRange, limit: int) -> StartedRead[list[Item]]:
        """The first items in a range of the table that holds no nodes, read once by this state."""
        return self.once((span, limit), partial(self.items_in, span, limit=limit))

    async def items_in(
        self,
        span: KeyRange,
        *,
        limit: int | None = None,
        reverse: bool = False,
        current: bool = True,
    ) -> list[Item]:
        """The items in a range that holds no nodes; with `current`, for a range of the table, as of now."""
        strong = current and self.validators.has_lag
        price = 2 if current else 1
        units = price * (PAGE_UNITS if limit is None else min(limit * LEAST_UNITS, PAGE_UNITS))
        call = partial(self._store.range, span, self._usage, limit=limit, reverse=reverse, strong=strong)
        return await self._run(call, units)

    async def _items(self, keys: Sequence[Key], trees: Sequence[str], *, cached: bool, current: bool) -> Items:
        """Items by key, and in the same reads the versions of trees, with the running moves that these name.

        The versions go into `tree_versions`; the errors of those that failed are among the items.
        """
        found: Items = {}
        if keys or not all(map(self._has_version, trees)):
            found = await self._items_once(keys, trees, cached=cached, current=current)
        if moves := self._moves_of(trees):
            await self._running_moves().load(moves)
            # Items that came with the tree versions were read before the states of their moves.
            moving = [key for key in keys if self._is_moving(key)]
            found |= await self._items_once(moving, [], cached=cached, current=current)
        return found

    async def _items_once(self, keys: Sequence[Key], trees: Sequence[str], *, cached: bool, current: bool) -> Items:
        strong = current and self.validators.has_lag
        found: Items = {}
        if cached:
            found = {key: item for key in keys if (item := self.pages.get(None, ("item", key))) is not None}
        began = self.pages.versions.clock()
        # Where items are read, a stale version is read beside them: they would not fit together.
        stale = self._stale if keys else ()
        versions = [tree_version_key(tree) for tree in trees if not self._has_version(tree) or tree in stale]
        started = {key for key in versions if key not in self._started}
        missing = [*versions, *[key for key in keys if key not in found]]
        outcomes = await self._read_items(
            missing, lambda key: strong or key == tree_version_key(key.pk) or self._is_moving(key)
        )
        for key in versions:
            version = outcome_of(outcomes.pop(key), partial(TreeVersion.of, key.pk))
            if isinstance(version, Exception):
                found[key] = version
            else:
                if key in started:  # a read that this one shares began earlier
                    self.pages.versions.see(version, began)
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
            version: TreeVersion | None = self.pages.get(tree, tree)
            if version is None and self.validators.need_versions and self.accepts_stale and self.grants is None:
                version = self.pages.versions.fresh(tree)
                self._stale.add(tree)
            if version is not None:
                self._use_version(version)
        return tree in self.tree_versions

    def _use_version(self, version: TreeVersion) -> None:
        self.tree_versions[version.partition] = self._seen(version)
        if self.grants is None:  # nothing is cached of trees for callers who see a part only
            self.validators.use(version)

    def _seen(self, version: TreeVersion) -> TreeVersion:
        """A version as the caller may use it: of a tree that is seen in part, the shape would disclose what else is
        there by the reads that are planned by it.
        """
        grants, tree = self.grants, version.partition
        is_whole = grants is None or "#" not in tree or may_read(grants, Key(tree, "#"))
        return version if is_whole else replace(version, shape={})

    def _moves_of(self, trees: Iterable[str]) -> list[ActiveMoveRef]:
        """The running moves that these trees name, without those that neither show nor hide anything to the caller."""
        named = [move for tree in trees if tree in self.tree_versions for move in self.tree_versions[tree].moves]
        if (grants := self.grants) is None:
            return named
        return [
            move
            for move in named
            if any(grants.may_read_part(hierarchy_of(end.pk), path_of(*end)) for end in move.ends)
        ]

    def _is_moving(self, key: Key) -> bool:
        return self.moves is not None and key.pk in self.moves.trees

    def _use_moves(self, moves: RunningMoves) -> None:
        """Hide what running moves hide, and forget the items that were read before the states of the moves."""
        self.filter = VisibilityFilter(self.grants, moves.hidden, moves.moved)
        current = {key: self._seen(one) for key, one in moves.tree_versions.items() if key in self.tree_versions}
        self.tree_versions.update(current)
        nodes = self.records_read.nodes
        moves.is_torn |= any(_has_other_counts(nodes.get(key), one) for key, one in moves.ancestors.items())
        nodes.update(moves.ancestors)
        self.records_read.strong_nodes.update(moves.ancestors)
        self._forget_items(self._is_moving)
        self.pages.has_lookups = False
        self.validators.drop(moves.trees)

    # -- nodes by key --------------------------------------------------------------------------------------------------

    async def nodes(self, keys: Iterable[Key], *, current: bool = False) -> Nodes:
        """The nodes at these keys, each read once, with the versions of their trees in the same reads.

        In place of a node there is None where there is none or it is hidden, or the error of a failed read. With
        `current` no record is taken from an index, where it may be outdated.
        """
        wanted, grants = dict.fromkeys(keys), self.grants
        # Neither hidden keys nor their trees are read, so that time and reads disclose nothing of what is there.
        readable = wanted if grants is None else [key for key in wanted if may_read(grants, key)]
        trees = list(dict.fromkeys([key.pk for key in readable]))
        missing = [key for key in readable if not self._has_node(key, current=current)]
        self._scheduler.expect(len(missing))
        self.partitions_read.update(trees)
        failed: Nodes = {}
        # The records are cached, not their items. Tree versions need strong reads, so these are strong as a whole.
        for key, item in (await self._items(missing, trees, cached=False, current=True)).items():
            if (error := outcome_of(item, partial(self._add_node, key))) is not None:
                failed[key] = error
        nodes = self.records_read.nodes
        found = {key: nodes[key] if key in nodes else failed[key] for key in readable}
        for key, root in found.items():
            if key.sk == "#" and isinstance(root, Record) and root.below is None:  # it was read in a list
                counted = nodes[key] = self.counted(root)
                found[key] = failed[tree_version_key(key.pk)] if counted.below is None else counted
        if (visible := self.filter) is None:
            return found
        shown = {key: found.get(key) for key in wanted}
        return {key: one if isinstance(one, Exception) or visible.shows(key) else None for key, one in shown.items()}

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

    async def weak_nodes(self, keys: Iterable[Key]) -> Nodes:
        """The nodes at these keys, eventually consistent and without the versions of their trees, so that running moves
        hide nothing; roots are without counts.
        """
        wanted = dict.fromkeys(keys)
        readable = [key for key in wanted if may_read(self.grants, key)]
        missing = [key for key in readable if not self._has_node(key, current=False)]
        self._scheduler.expect(len(missing))
        self.partitions_read.update([key.pk for key in readable])
        found: Nodes = {}
        for key, item in (await self._items(missing, [], cached=False, current=False)).items():
            record = outcome_of(item, lambda one: None if one is None else Record.of(one))
            found[key] = record
            if not isinstance(record, Exception):
                self.records_read.nodes[key] = record
        nodes = {key: self.records_read.nodes[key] if key not in found else found[key] for key in readable}
        return {key: nodes.get(key) for key in wanted}

    async def reread_nodes(self, keys: Iterable[Key]) -> None:
        """Read nodes as of now, even if they were read before; hidden ones are skipped."""
        visible = [key for key in dict.fromkeys(keys) if may_read(self.grants, key)]
        trees = [tree_version_key(key.pk) for key in visible if key.sk == "#"]
        items = await self.strong_items([*trees, *visible]) if visible else {}
        self.tree_versions |= {key.pk: TreeVersion.of(key.pk, items[key]) for key in trees}
        for key in visible:
            self._add_node(key, items[key])

    def counted(self, record: Record) -> Record:
        """A node with its current counts, if the version of its tree was read; from an index it may have none."""
        if self.moves is not None:
            record = self.moves.with_current_counts(record)
        version = self.tree_versions.get(record.pk) if record.below is None else None
        return record if version is None else version.with_counts(record)

    def _has_node(self, key: Key, *, current: bool) -> bool:
        """Whether a node was read, by this request or an earlier one; if `current`, with strong consistency."""
        nodes = self.records_read.strong_nodes if current and self.validators.has_lag else self.records_read.nodes
        if key not in nodes and (record := self.pages.get(key.pk, key)) is not None:
            nodes[key] = self.records_read.nodes[key] = record
            if self._usage.trace is not None:
                self._usage.trace.records += 1
        return key in nodes

    def _add_node(self, key: Key, item: Item | None) -> None:
        record = None if item is None else self.counted(Record.of(item))
        self.records_read.nodes[key] = self.records_read.strong_nodes[key] = record
        if record is not None:
            self.pages.put(key.pk, key, record.with_fragments())

    # -- nodes by range ------------------------------------------------------------------------------------------------

    def range(self, read: Read, beside: str | None = None) -> StartedRead[None]:
        """Read a range of nodes into `records_read`, once.

        The version of the partition `beside` is read in the same round, where it was not read before.
        """
        return self.once(read, partial(self._read_range, read, beside))

    async def _read_range(self, read: Read, partition: str | None) -> None:
        if read.span.index is Index.BY_PARENT and "#" not in read.span.partition:
            partition = read.span.partition  # of roots; its version names the moves from and to roots
        if partition is None:
            self.records_read.add(read, await self._records(read))
            return
        if self._store.is_embedded:  # nothing overlaps, so the filter is known first
            raise_first_error((await self.versions_of([partition])).values())
            self.records_read.add(read, await self._records(read))
            return
        visible = self.filter
        records, versions = await asyncio.gather(self._records(read), self.versions_of([partition]))
        raise_first_error(versions.values())
        # A version that names running moves has changed the filter.
        self.records_read.add(read, records if self.filter is visible else await self._records(read))

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
        return [record for record in records if not hidden or visible.shows(record.key)][:limit]

    async def _query(self, span: KeyRange, limit: int | None, *, reverse: bool) -> list[Record]:
        units = LIST_UNITS if limit is None else min(limit * LEAST_UNITS, LIST_UNITS)
        read = partial(self._store.nodes, span, limit=limit, reverse=reverse)
        if self._store.is_embedded:  # no other reads are running
            return await self._run(partial(read, self._usage), units)
        coalesced = partial(self._coalesced.run, (span, limit, reverse), read, self._usage)
        return await self._run(coalesced, units)

    async def subtrees(self, tops: Sequence[Record]) -> list[list[Record]]:
        """All nodes of each of these subtrees in path order: one Query for each with nodes below its top, unless it is
        cached, and nothing was written to its tree since.

        The tops were read with the versions of their trees. What is cached is shared by callers with the same grants:
        they may read all below a top, and the version of its tree shows no more than the change log does.
        """
        found: dict[Key, list[Record]] = {top.key: [top] for top in tops if not top.kids}
        missing: list[tuple[Read, Key, Hashable, object | None]] = []
        for top in tops:
            key = self.pages.scoped(("subtree", top.key))
            validator = self.validators.of_version(self.tree_versions.get(top.pk), top.key)
            cached = None if top.key in found else self.pages.cache.page(key, validator)
            if cached is not None:
                found[top.key] = cached
            elif top.key not in found:
                missing.append((Read(subtree(*top.key)), top.key, key, validator))
        self._usage.check(len(missing))
        await self._scheduler.gather_all([self.range(read) for read, *_ in missing])
        for read, top_key, key, validator in missing:
            records = found[top_key] = self.records_read.in_range(read.span) or []
            self.pages.cache.put_page(key, validator, records, len(records))
        return [found[top.key] for top in tops]

    def count(self, span: KeyRange) -> StartedRead[int]:
        """The number of nodes in a range of a level or of the table, read once."""
        return self.once(span, partial(self._count, span))

    async def _count(self, span: KeyRange) -> int:
        parts = [span] if self.filter is None else self.filter.visible_parts(span)
        # The size of a range is unknown until its pages are read; each page may be of the maximum size.
        counts = [self._run(partial(self._store.count, part, self._usage), PAGE_UNITS) for part in parts]
        return sum(await self._scheduler.gather_all(counts))

    # -- how a read begins ---------------------------------------------------------------------------------------------

    async def _run(self, read: Callable[[], Awaitable[T]], units: float = LEAST_UNITS) -> T:
        """The result of a read, as from `ReadScheduler.run`; raises CancelledError after the end."""
        result = await self._scheduler.run(read, units)
        if self._has_ended:
            raise asyncio.CancelledError
        return result

    def once(self, identity: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> StartedRead[T]:
        """The reads of this identity: those that were started before, or else new ones."""
        return self._started.get(identity) or self._start(identity, read)

    def _start(self, identity: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> StartedRead[T]:
        if self._has_ended:
            raise asyncio.CancelledError
        started = self._started[identity] = self._scheduler.start(read)
        return started

    def _forget_items(self, is_outdated: Callable[[Key], bool]) -> None:
        """Let the items at these keys be read again."""
        self._started = {
            identity: read
            for identity, read in self._started.items()
            if not (isinstance(identity, Key) and is_outdated(identity))
        }

    async def _read_items(self, keys: Sequence[Key], needs_strong: Callable[[Key], bool]) -> Items:
        """The items at these keys in their order, None where there is none, or the error of a failed read.

        Each key is read once, or twice if the first read was weak and the key now `needs_strong` consistency.
        """
        if not keys:
            return {}
        new = [key for key in keys if key not in self._started or (needs_strong(key) and key not in self._strong)]
        for start in range(0, len(new), BATCH_KEYS):
            batch = new[start : start + BATCH_KEYS]
            strong = any(map(needs_strong, batch))
            if strong:
                self._strong.update(batch)
            read = self._start(batch[0], partial(self._read_batch, batch, strong=strong))
            self._started.update(dict.fromkeys(batch, read))
        found: Items = {}
        reads = dict.fromkeys([self._started[key] for key in keys])
        for outcomes in await self._scheduler.gather_all(list(reads)):
            found.update(outcomes)
        return {key: found[key] for key in keys}

    async def _read_batch(self, keys: list[Key], *, strong: bool) -> Items:
        units = len(keys) * units_of(0, strong=strong)
        try:
            if self._store.is_embedded:
                get = partial(self._store.get, keys, self._usage, strong=strong)
                return dict(zip(keys, await self._run(get, units), strict=True))
            return await self._run(partial(self._coalesced.items, self._store, keys, self._usage, strong=strong), units)
        except CladeError as error:
            return dict.fromkeys(keys, error.bare())
        except Exception as error:  # raised by everyone who needs one of these keys
            return dict.fromkeys(keys, error)


def _has_other_counts(read: Record | None, current: Record) -> bool:
    """Whether a node was read with other counts than it has; a root that was read in a list has those of its children
    alone.
    """
    return read is not None and (read.kids != current.kids or read.below not in (None, current.below))
