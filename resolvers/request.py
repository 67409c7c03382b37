"""One request: its store, what it has read and what that cost, and how much more it may return."""

import asyncio
from collections.abc import Awaitable, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from resolvers.budget import refusal
from resolvers.caller import ANYONE, Caller
from resolvers.grants import Grants
from resolvers.kept import Kept
from resolvers.known import Known, Read
from store.hierarchy import Hierarchy
from store.items import Item
from store.keys import Key, Span, stamp_key
from store.pace import Pace as Pace
from store.reads import Reads
from store.records import Record
from store.stamps import Stamp
from store.stores import Store as Store
from store.writes import Writer as Writer

T = TypeVar("T")

CHUNK = 100  # keys of one BatchGetItem, which fails as a whole


@dataclass
class Request:
    """Everything that the batch functions need, made anew for each request.

    `nodes_left` is how many nodes it may still return, `parallel` how many reads may run at a time. A *round* is a set
    of reads that were waited for together. `kept` is what earlier requests have left. `partitions` are the trees and
    hierarchies that were read from; their stamps tell whether an answer is still true, but of an id that is nowhere.
    `writer` makes its edits, None where it may make none; indexes may trail behind the table by `settle_seconds`.
    `caller` is who sent it, `grants` are what that one may see, None for everything.
    """

    store: Store
    hierarchies: Mapping[str, Hierarchy]
    nodes_left: int = 10_000
    parallel: int = 32
    reads: Reads = field(default_factory=Reads)
    rounds: int = 0
    known: Known = field(default_factory=Known)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    kept: Kept | None = None
    caller: Caller = ANYONE
    grants: Grants | None = None
    partitions: set[str] = field(default_factory=set)
    met_unknown_id: bool = False
    writer: Writer | None = None
    settle_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.version = self.store.version()
        if self.kept is not None:
            self.kept.renew(self.version)
        self._running = 0
        self._stopped = False
        self._budget = self.nodes_left
        self._places = asyncio.Semaphore(self.parallel)
        self._asked: dict[Hashable, asyncio.Future[Any]] = {}  # what was read or is being read, each once

    def begin_again(self) -> None:
        """Give back the whole budget: the answer is made anew, from what is known by now."""
        self.nodes_left = self._budget

    def forget(self) -> None:
        """Forget all that was read, since something of it may have changed."""
        self.known, self.stamps, self._asked = Known(), {}, {}
        self.version = self.store.version()
        if self.kept is not None:
            self.kept.renew(self.version)

    @property
    def is_torn(self) -> bool:
        """Whether somebody has written since its first read, so that what it has read may not fit together."""
        return self.reads.requests > 0 and self.store.version() != self.version

    def read_from(self, store: Store) -> None:
        """Forget all that was read, and read from this store instead."""
        self.store, self.kept = store, None
        self.forget()

    def spend(self, nodes: int, what: str = "What is asked") -> None:
        """Take nodes from the budget; raises BudgetExceeded, taking none, where so many are not left."""
        if nodes > self.nodes_left:
            raise refusal(what, nodes, self.nodes_left)
        self.nodes_left -= nodes

    async def get(self, keys: Iterable[Key], *, trees: Iterable[str] = ()) -> dict[Key, Item | None]:
        """The items at these keys, and in the same read the stamps of those trees that are not known yet."""
        return _all_read(await self.outcomes(keys, trees=trees))

    async def outcomes(self, keys: Iterable[Key], *, trees: Iterable[str] = ()) -> dict[Key, Item | Exception | None]:
        """The same, with an error in the place of what could not be read; stamps that could not are among the keys."""
        trees = list(dict.fromkeys(trees))
        self.partitions.update(trees)
        found: dict[Key, Item | Exception | None] = {}
        missing = [stamp_key(tree) for tree in trees if not self._knows_stamp(tree)]
        stamps = len(missing)
        for key in dict.fromkeys(keys):
            item = self.recall(("item", key))
            if item is None:
                missing.append(key)
            else:
                found[key] = item
        for key, outcome in (await self._read(missing)).items():
            if stamps and not isinstance(outcome, Exception):
                self.stamps[key.pk] = Stamp.of(key.pk, outcome)
                self.keep(key.pk, self.stamps[key.pk])
            else:
                found[key] = outcome
                if outcome is not None and not isinstance(outcome, Exception):
                    self.keep(("item", key), outcome)
            stamps -= stamps > 0
        return found

    async def _read(self, keys: Sequence[Key]) -> dict[Key, Item | Exception | None]:
        """What lies at these keys or why it could not be read, in their order; each key is read once a request."""
        new = [key for key in keys if key not in self._asked]
        for start in range(0, len(new), CHUNK):
            chunk = new[start : start + CHUNK]
            self._asked.update(dict.fromkeys(chunk, asyncio.ensure_future(self._read_chunk(chunk))))
        if not keys:
            return {}
        chunks = dict.fromkeys([self._asked[key] for key in keys])
        outcomes: dict[Key, Item | Exception | None] = {}
        for chunk_outcomes in await asyncio.gather(*chunks):
            outcomes.update(chunk_outcomes)
        return {key: outcomes[key] for key in keys}

    async def _read_chunk(self, keys: list[Key]) -> dict[Key, Item | Exception | None]:
        strong = any(key == stamp_key(key.pk) for key in keys)
        try:
            return dict(zip(keys, await self._round(self.store.get(keys, self.reads, strong=strong)), strict=True))
        except Exception as error:  # whoever needs one of these keys raises it
            return dict.fromkeys(keys, error)

    async def stamps_now(self) -> dict[str, int]:
        """The numbers that the stamps of all partitions read from have by now."""
        partitions = sorted(self.partitions)
        items = await self._round(self.store.get(list(map(stamp_key, partitions)), self.reads, strong=True))
        return {one: Stamp.of(one, item).n for one, item in zip(partitions, items, strict=True)}

    async def records(self, keys: Iterable[Key]) -> dict[Key, Record | None]:
        """The nodes at these keys, each read once a request, with their trees' stamps."""
        return _all_read(await self.record_outcomes(keys))

    async def record_outcomes(self, keys: Iterable[Key]) -> dict[Key, Record | Exception | None]:
        """The same, with an error in the place of a node that could not be read."""
        wanted = dict.fromkeys(keys)
        missing = [key for key in wanted if not self._knows_node(key)]
        found: dict[Key, Record | Exception | None] = {}
        for key, item in (await self.outcomes(missing, trees=[key.pk for key in wanted])).items():
            if isinstance(item, Exception):
                found[key] = item
                continue
            record = self.known.nodes[key] = None if item is None else Record.of(item)
            if record is not None:
                self.keep(key, record)
        return {key: self.known.nodes[key] if key in self.known.nodes else found[key] for key in wanted}

    async def range(self, read: Read) -> None:
        """Read a range and keep what it brings in `known`."""
        if read not in self._asked:
            self._asked[read] = asyncio.ensure_future(self._read_range(read))
        await self._asked[read]

    async def _read_range(self, read: Read) -> None:
        items = await self._round(self.store.range(read.span, self.reads, limit=read.limit, reverse=read.reverse))
        self.known.add(read, list(map(Record.of, items)))

    async def items(self, span: Span, *, limit: int | None = None, reverse: bool = False) -> list[Item]:
        """What lies in a span that is not about nodes."""
        return await self._round(self.store.range(span, self.reads, limit=limit, reverse=reverse))

    async def count(self, span: Span) -> int:
        """How many items a span holds."""
        if span not in self._asked:
            self._asked[span] = asyncio.ensure_future(self._round(self.store.count(span, self.reads)))
        return cast(int, await self._asked[span])

    def recall(self, question: Hashable) -> Any:
        """What an earlier request kept for a question, where nothing has changed since; else None."""
        return None if self.version is None or self.kept is None else self.kept.get(self.version, question)

    def keep(self, question: Hashable, answer: Any, records: int = 1) -> None:
        """Keep an answer of so many records for the requests to come."""
        if self.version is not None and self.kept is not None:
            self.kept.put(self.version, question, answer, records)

    def _knows_stamp(self, tree: str) -> bool:
        if tree not in self.stamps and (stamp := self.recall(tree)) is not None:
            self.stamps[tree] = stamp
        return tree in self.stamps

    def _knows_node(self, key: Key) -> bool:
        if key not in self.known.nodes and (record := self.recall(key)) is not None:
            self.known.nodes[key] = record
        return key in self.known.nodes

    async def together(self, calls: Sequence[Awaitable[T]]) -> list[T | BaseException]:
        """The results of calls made side by side, or what went wrong in their place."""
        return await asyncio.gather(*calls, return_exceptions=True)

    def stop(self) -> None:
        """End the reads that run, and let no other begin."""
        self._stopped = True
        for read in self._asked.values():
            read.cancel()

    async def _round(self, call: Coroutine[Any, Any, T]) -> T:
        self.rounds += self._running == 0
        self._running += 1
        try:
            # What starts in the same turn of the loop is one round, also where the store answers at once.
            await asyncio.sleep(0)
            async with self._places:
                if self._stopped:
                    raise asyncio.CancelledError
                return await call
        finally:
            self._running -= 1
            call.close()  # one that never began would warn of it


def _all_read(found: Mapping[Key, T | Exception]) -> dict[Key, T]:
    """What was found, where nothing could not be read; else raises why."""
    for outcome in found.values():
        if isinstance(outcome, Exception):
            raise outcome
    return cast(dict[Key, T], dict(found))
