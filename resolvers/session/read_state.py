"""Read state: everything that one attempt at a response reads. It is replaced whole when its reads may be outdated.

Tasks that wait for a read of a replaced state are cancelled, and the result of such a read is dropped, so nothing that
one attempt has read can get into the next. Running moves and grants are applied here, so no caller sees what they hide.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from resolvers.access.grants import Visibility, visibility_at
from resolvers.access.redacted_node import redacted
from resolvers.session.item_reads import ItemReads
from resolvers.session.outcomes import raise_first_error
from resolvers.session.records_read import Read
from store.engine.usage import LEAST_UNITS, PAGE_UNITS
from store.metadata.tree_version import TreeVersion
from store.model.items import Item
from store.model.keys import Index, Key, tree_version_key
from store.model.ranges import KeyRange
from store.model.records import Record

Nodes = dict[Key, Record | Exception | None]

LIST_UNITS = 32.0  # expected of a list; few consume more, since the nodes of a response are bounded


class ReadState(ItemReads):
    """The nodes that were read, by key and by range."""

    # -- nodes by key --------------------------------------------------------------------------------------------------

    async def nodes(self, keys: Iterable[Key], *, current: bool = False) -> Nodes:
        """The nodes at these keys, each read once, with the versions of their trees in the same reads.

        In place of a node there is None where there is none or it is hidden, a RedactedNode above the caller's grants,
        or the error of a failed read. With `current` no record is taken from an index, where it may be outdated.
        """
        wanted, grants = dict.fromkeys(keys), self.grants
        trees = list(dict.fromkeys([key.pk for key in wanted]))
        # Hidden keys are not read, so that neither time nor reads disclose whether there is a node.
        readable = (
            [key for key in wanted if visibility_at(grants, key) is not Visibility.HIDDEN]
            if grants is not None
            else wanted
        )
        found = await self._nodes(readable, trees, current=current)
        if (visible := self.filter) is None:
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

    async def weak_nodes(self, keys: Iterable[Key]) -> Nodes:
        """The nodes at these keys, eventually consistent and without the versions of their trees, so that running moves
        hide nothing; roots are without counts.
        """
        wanted = dict.fromkeys(keys)
        readable = [key for key in wanted if visibility_at(self.grants, key) is not Visibility.HIDDEN]
        missing = [key for key in readable if not self._has_node(key, current=False)]
        self._slot.expect(len(missing))
        self.partitions_read.update([key.pk for key in readable])
        found: Nodes = {}
        for key, item in (await self._items(missing, [], cached=False, current=False)).items():
            record = item if isinstance(item, Exception) or item is None else Record.of(item)
            found[key] = record
            if not isinstance(record, Exception):
                self.records_read.nodes[key] = record
        nodes = {key: self.records_read.nodes[key] if key not in found else found[key] for key in readable}
        return {key: redacted(nodes.get(key), visibility_at(self.grants, key)) for key in wanted}

    async def reread_nodes(self, keys: Iterable[Key]) -> None:
        """Read nodes as of now, even if they were read before; hidden ones are skipped."""
        visible = [key for key in dict.fromkeys(keys) if visibility_at(self.grants, key) is not Visibility.HIDDEN]
        trees = [tree_version_key(key.pk) for key in visible if key.sk == "#"]
        items = await self.strong_items([*trees, *visible]) if visible else {}
        self.tree_versions |= {key.pk: TreeVersion.of(key.pk, items[key]) for key in trees}
        for key in visible:
            self._add_node(key, items[key])

    async def _nodes(self, keys: Collection[Key], trees: Sequence[str], *, current: bool) -> Nodes:
        found: Nodes = {}
        missing = [key for key in keys if not self._has_node(key, current=current)]
        self._slot.expect(len(missing))
        self.partitions_read.update(trees)
        # The records are cached, not their items. Tree versions need strong reads, so these are strong as a whole.
        for key, item in (await self._items(missing, trees, cached=False, current=True)).items():
            if isinstance(item, Exception):
                found[key] = item
            else:
                self._add_node(key, item)
        nodes = self.records_read.nodes
        outcomes = {key: nodes[key] if key in nodes else found[key] for key in keys}
        for key, root in outcomes.items():
            if key.sk == "#" and isinstance(root, Record) and root.below is None:  # it was read in a list
                counted = nodes[key] = self.counted(root)
                outcomes[key] = found[tree_version_key(key.pk)] if counted.below is None else counted
        return outcomes

    def counted(self, record: Record) -> Record:
        """A node with its current counts, if the version of its tree was read; from an index it may have none."""
        if self.moves is not None:
            record = self.moves.with_current_counts(record)
        version = self.tree_versions.get(record.pk) if record.below is None else None
        return record if version is None else version.with_counts(record)

    def _has_node(self, key: Key, *, current: bool) -> bool:
        """Whether a node was read, by this request or an earlier one; if `current`, with strong consistency."""
        nodes = self.records_read.strong_nodes if current and self.store_version is None else self.records_read.nodes
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

    def range(self, read: Read) -> "asyncio.Future[None]":
        """Read a range of nodes into `records_read`; started at once."""
        return self._reads.once(read, lambda: self._read_range(read))

    def range_beside(self, read: Read, partition: str) -> "asyncio.Future[None]":
        """The same, where the version of its partition was not read before: that is read in the same round."""
        return self._reads.once(read, lambda: self._read_range_beside(read, partition))

    async def _read_range(self, read: Read) -> None:
        partition = read.span.partition
        if read.span.index is Index.BY_PARENT and "#" not in partition:
            await self._read_range_beside(read, partition)  # roots; the version names the moves from and to roots
        else:
            self.records_read.add(read, await self._records(read))

    async def _read_range_beside(self, read: Read, partition: str) -> None:
        if self.store_version is not None:  # reads of SQLite never wait, so the filter is known first
            raise_first_error((await self.versions_of([partition])).values())
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
        return [record for record in records if not hidden or visible.visibility(record.key) is Visibility.FULL][:limit]

    async def _query(self, span: KeyRange, limit: int | None, *, reverse: bool) -> list[Record]:
        units = LIST_UNITS if limit is None else min(limit * LEAST_UNITS, LIST_UNITS)
        read = partial(self._store.nodes, span, limit=limit, reverse=reverse)
        if self.store_version is not None:  # the reads of SQLite never wait, so none are alike
            return await self._reads.run(partial(read, self._usage), units)
        coalesced = partial(self._coalesced.run, (span, limit, reverse), read, self._usage)
        return await self._reads.run(coalesced, units)

    def count(self, span: KeyRange) -> "asyncio.Future[int]":
        """The number of nodes in a range of a level or of the table; started at once."""
        return self._reads.once(span, lambda: self._count(span))

    async def _count(self, span: KeyRange) -> int:
        parts = [span] if self.filter is None else self.filter.visible_parts(span)
        # The size of a range is unknown until its pages are read; each page may be of the maximum size.
        counts = [self._reads.run(partial(self._store.count, part, self._usage), PAGE_UNITS) for part in parts]
        return sum(await asyncio.gather(*counts))
