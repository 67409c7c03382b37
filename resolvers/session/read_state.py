"""Read state: what one attempt at an answer reads. It ends, and another takes its place, when that may have changed.

Whoever waits for a read of a state that has ended is cancelled, and what such a read still brings is dropped: nothing
that an attempt has read can come into the next one.
"""

import asyncio
from collections.abc import Coroutine, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from resolvers.access.grants import Grants, Visibility
from resolvers.access.visibility import VisibilityFilter
from resolvers.session.page_cache import PageCache
from resolvers.session.read_concurrency import ReadScheduler
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.running_moves import RunningMoves
from store.engine.protocol import Store
from store.engine.usage import (
    LEAST_UNITS,
    PAGE_UNITS,
    ReadUsage,
    units_of,
)
from store.errors import CladeError
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.items import Item
from store.model.keys import Index, Key, tree_version_key
from store.model.ranges import KeyRange
from store.model.records import Record

T = TypeVar("T")
Items = dict[Key, Item | Exception | None]

LIST_UNITS = 32.0  # which few lists pass; what they bring is bounded by the nodes of the response
CHUNK = 100  # keys of one BatchGetItem, which fails as a whole


class ReadState:
    """The nodes and stamps that were read, at this `version` of the store, and the reads that bring them.

    `version` is None where the store has none. `moves` are the running ones that were met, None where there are none;
    `view` is what is seen, None for everything.
    """

    def __init__(
        self, store: Store, reads: ReadUsage, rounds: ReadScheduler, kept: PageCache | None, grants: Grants | None
    ) -> None:
        self.version = store.version()
        self.view = None if grants is None else VisibilityFilter(grants)
        self.moves: RunningMoves | None = None
        self.known = RecordsRead()
        self.stamps: dict[str, TreeVersion] = {}
        self._store, self._usage, self._rounds, self._kept = store, reads, rounds, kept
        self._reads: dict[Hashable, asyncio.Future[Any]] = {}  # by what they read
        self._strong: set[Key] = set()
        self._has_ended = False
        if kept is not None:
            kept.renew(self.version)

    def end(self) -> None:
        """Cancel its reads and drop what they brought."""
        self._has_ended = True
        if self.moves is not None:
            self.moves.stop()
        for read in self._reads.values():
            read.cancel()
        self.known, self.stamps, self._reads = RecordsRead(), {}, {}

    async def _run(self, call: Coroutine[Any, Any, T], units: float = LEAST_UNITS) -> T:
        """What a read brings, which may take so many units at a time; raises CancelledError where the state has ended
        meanwhile.
        """
        result = await self._rounds.run(call, units)
        if self._has_ended:
            raise asyncio.CancelledError
        return result

    def _begin(self, question: Hashable, read: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Start a read, which answers a question. Raises CancelledError after the end."""
        if self._has_ended:
            read.close()
            raise asyncio.CancelledError
        started = self._reads[question] = asyncio.ensure_future(read)
        return started

    # -- what earlier requests have kept -------------------------------------------------------------------------------

    def recall(self, question: Hashable) -> Any:
        """What an earlier request kept for a question, where nothing has changed since; else None."""
        return None if self.version is None or self._kept is None else self._kept.page(self.version, question)

    def keep(self, question: Hashable, answer: Any, records: int = 1) -> None:
        """Keep an answer of so many records for the requests to come."""
        if self.version is not None and self._kept is not None:
            self._kept.put_page(self.version, question, answer, records)

    def knows_node(self, key: Key, *, now: bool) -> bool:
        """Whether a node was read, by this request or by one before; for `now` strongly, where there is no version."""
        if now and self.version is None:
            return key in self.known.current
        nodes = self.known.nodes
        if key not in nodes and (record := self.recall(key)) is not None:
            nodes[key] = record
        return key in nodes

    def add_node(self, key: Key, item: Item | None, *, now: bool) -> None:
        """Note what lies at a node's key."""
        record = self.known.nodes[key] = None if item is None else Record.of(item)
        if now:
            self.known.current[key] = record
        if record is not None:
            self.keep(key, record.with_fragments())

    def _knows_stamp(self, tree: str) -> bool:
        if tree not in self.stamps and (stamp := self.recall(tree)) is not None:
            self.stamps[tree] = stamp
        return tree in self.stamps

    # -- items by their keys -------------------------------------------------------------------------------------------

    async def read_now(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        """What lies at these keys as of now, however often it was read before."""
        items = await self._run(self._store.get(keys, self._usage, strong=True))
        return dict(zip(keys, items, strict=True))

    def read_again(self, keys: Iterable[Key]) -> None:
        """Have these keys read once more when they are asked for, unless the store proves that nothing has changed."""
        if self.version is None:
            for key in keys:
                self._reads.pop(key, None)
                self._strong.discard(key)
                if self.known.current.get(key, key) is None:
                    del self.known.current[key]

    async def items(self, keys: Sequence[Key], trees: Sequence[str], *, keep: bool, now: bool = False) -> Items:
        """What lies at these keys, or why it could not be read; with the stamps of these trees come running moves.

        With `now` a read is strong, so that it brings what was acknowledged before it began.
        """
        now = now and self.version is None
        found = await self._items(keys, trees, keep=keep, now=now)
        if self.version is None and (running := self._moving(trees)):
            if self.moves is None:
                self.moves = RunningMoves(self.read_now, self._learned)
            await self.moves.meet(running)
            # What came together with the stamps was read before the states of their moves.
            found |= await self._items([key for key in keys if self._is_moving(key)], (), keep=keep, now=now)
        return found

    async def _items(self, keys: Iterable[Key], trees: Iterable[str], *, keep: bool, now: bool) -> Items:
        found: Items = {}
        missing = [tree_version_key(tree) for tree in trees if not self._knows_stamp(tree)]
        stamps = len(missing)
        for key in keys:
            item = self.recall(("item", key)) if keep else None
            if item is None:
                missing.append(key)
            else:
                found[key] = item
        for key, outcome in (await self._read(missing, now=now)).items():
            if stamps and not isinstance(outcome, Exception):
                self.stamps[key.pk] = TreeVersion.of(key.pk, outcome)
                self.keep(key.pk, self.stamps[key.pk])
            else:
                found[key] = outcome
                if keep and outcome is not None and not isinstance(outcome, Exception):
                    self.keep(("item", key), outcome)
            stamps -= stamps > 0
        return found

    async def _read(self, keys: Sequence[Key], *, now: bool) -> Items:
        """What lies at these keys or why it could not be read, in their order; each key is read once, or twice with
        `now` where it was read weakly before.
        """
        new = [key for key in keys if key not in self._reads or (now and key not in self._strong)]
        for start in range(0, len(new), CHUNK):
            chunk = new[start : start + CHUNK]
            strong = now or any(key == tree_version_key(key.pk) or self._is_moving(key) for key in chunk)
            if strong:
                self._strong.update(chunk)
            self._reads.update(dict.fromkeys(chunk, self._begin(chunk[0], self._read_chunk(chunk, strong=strong))))
        if not keys:
            return {}
        chunks = dict.fromkeys([self._reads[key] for key in keys])
        outcomes: Items = {}
        for chunk_outcomes in await asyncio.gather(*chunks):
            outcomes.update(chunk_outcomes)
        return {key: outcomes[key] for key in keys}

    async def _read_chunk(self, keys: list[Key], *, strong: bool) -> Items:
        try:
            units = len(keys) * units_of(0, strong=strong)
            items = await self._run(self._store.get(keys, self._usage, strong=strong), units)
            return dict(zip(keys, items, strict=True))
        except CladeError as error:
            return dict.fromkeys(keys, error.bare())
        except Exception as error:  # whoever needs one of these keys raises it
            return dict.fromkeys(keys, error)

    def _moving(self, trees: Iterable[str]) -> list[ActiveMoveRef]:
        """The moves that the stamps of these trees tell of."""
        return [one for tree in trees if tree in self.stamps for one in self.stamps[tree].moves]

    def _is_moving(self, key: Key) -> bool:
        return self.moves is not None and key.pk in self.moves.trees

    def _learned(self, moves: RunningMoves) -> None:
        """See the trees as the moves that were met leave them, and read again what was read before that."""
        self.view = VisibilityFilter(self.view.grants if self.view else None, moves.hidden, moves.moved)
        self.stamps.update({partition: stamp for partition, stamp in moves.stamps.items() if partition in self.stamps})
        self.known.nodes.update(moves.above)
        self.known.current.update(moves.above)
        self._reads = {
            asked: outcome
            for asked, outcome in self._reads.items()
            if not (isinstance(asked, Key) and self._is_moving(asked))
        }

    # -- ranges --------------------------------------------------------------------------------------------------------

    def range(self, read: Read) -> asyncio.Future[None]:
        """Read a range and keep what it brings in `known`; begun as soon as this is called."""
        return self._reads.get(read) or self._begin(read, self._read_range(read))

    async def _read_range(self, read: Read) -> None:
        lists_roots = read.span.index is Index.BY_PARENT and "#" not in read.span.partition
        records = await (self._roots(read) if self.version is None and lists_roots else self._records(read))
        self.known.add(read, records)

    async def _roots(self, read: Read) -> list[Record]:
        """Roots, with the stamp of their hierarchy in the same round, since it tells of moves from and to them."""
        view, hierarchy = self.view, read.span.partition
        records, stamps = await asyncio.gather(self._records(read), self.items([], [hierarchy], keep=False))
        for error in stamps.values():
            assert isinstance(error, Exception)  # what is no stamp is why there is none  # noqa: S101
            raise error
        return records if self.view is view else await self._records(read)

    async def _records(self, read: Read) -> list[Record]:
        """What is seen of the records of a range."""
        span, limit, reverse = read.span, read.limit, read.reverse
        view = self.view
        if view is None:
            return await self._nodes(span, limit, reverse)
        records: list[Record] = []
        more = view.tops_in(span)
        for part in view.parts(span)[:: -1 if reverse else 1]:
            rest = None if limit is None else limit + more - len(records)
            if rest != 0:
                records += await self._nodes(part, rest, reverse)
        if self.moves is not None:
            records = list(map(self.moves.renewed, records))
        return [record for record in records if not more or view.sight(record.key) is Visibility.WHOLE][:limit]

    async def _nodes(self, span: KeyRange, limit: int | None, reverse: bool) -> list[Record]:
        units = LIST_UNITS if limit is None else min(limit * LEAST_UNITS, LIST_UNITS)
        return await self._run(self._store.nodes(span, self._usage, limit=limit, reverse=reverse), units)

    async def all_in(self, span: KeyRange, limit: int | None, *, reverse: bool) -> list[Item]:
        """What lies in a span of the table that is not about nodes, as of now."""
        strong = self.version is None
        units = 2 * PAGE_UNITS if limit is None else min(2 * limit * LEAST_UNITS, 2 * PAGE_UNITS)
        call = self._store.range(span, self._usage, limit=limit, reverse=reverse, strong=strong)
        return await self._run(call, units)

    def count(self, span: KeyRange) -> asyncio.Future[int]:
        """How many nodes of a tier or of a subtree are in a span; begun as soon as this is called."""
        return self._reads.get(span) or self._begin(span, self._count(span))

    async def _count(self, span: KeyRange) -> int:
        parts = [span] if self.view is None else self.view.parts(span)
        return sum(await asyncio.gather(*map(self._count_part, parts)))

    async def _count_part(self, part: KeyRange) -> int:
        # What a count reads is told by its pages alone; until then each may be of the largest.
        return await self._run(self._store.count(part, self._usage), PAGE_UNITS)
