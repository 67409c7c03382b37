"""One request: its store, what it has read and what that cost, and how much more it may return."""

import asyncio
from collections.abc import Awaitable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from resolvers.kept import Kept
from resolvers.known import Known, Read
from resolvers.plan import too_many
from store.errors import BudgetExceeded
from store.hierarchy import Hierarchy
from store.items import Item
from store.keys import Key, Span, stamp_key
from store.reads import Reads
from store.records import Record
from store.stamps import Stamp
from store.stores import Store

T = TypeVar("T")


@dataclass
class Request:
    """Everything that the batch functions need, made anew for each request.

    `nodes_left` is how many nodes it may still return, `parallel` how many reads may run at a time. A *round* is a set
    of reads that were waited for together. `kept` is what earlier requests have left. `partitions` are the trees and
    hierarchies that were read from; their stamps tell whether an answer is still true, but of an id that is nowhere.
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
    partitions: set[str] = field(default_factory=set)
    met_unknown_id: bool = False

    def __post_init__(self) -> None:
        self.version = self.store.version()
        if self.kept is not None:
            self.kept.renew(self.version)
        self._running = 0
        self._budget = self.nodes_left
        self._places = asyncio.Semaphore(self.parallel)

    def begin_again(self) -> None:
        """Give back the whole budget: the answer is made anew, from what is known by now."""
        self.nodes_left = self._budget

    def spend(self, nodes: int) -> None:
        """Take nodes from the budget; raises BudgetExceeded, taking none, where so many are not left."""
        if nodes > self.nodes_left:
            raise BudgetExceeded(too_many(nodes, self.nodes_left))
        self.nodes_left -= nodes

    async def get(self, keys: Iterable[Key], *, trees: Iterable[str] = ()) -> dict[Key, Item | None]:
        """The items at these keys, and in the same read the stamps of those trees that are not known yet."""
        wanted = list(dict.fromkeys(keys))
        self.partitions.update(trees := list(trees))
        stamps = [tree for tree in dict.fromkeys(trees) if not self._knows_stamp(tree)]
        found = {key: item for key in wanted if (item := self.recall(("item", key))) is not None}
        missing = [key for key in wanted if key not in found]
        everything = [*map(stamp_key, stamps), *missing]
        if not everything:
            return found
        items = await self._round(self.store.get(everything, self.reads, strong=bool(stamps)))
        for tree, item in zip(stamps, items, strict=False):
            self.stamps[tree] = Stamp.of(tree, item)
            self.keep(tree, self.stamps[tree])
        for key, item in zip(missing, items[len(stamps) :], strict=True):
            found[key] = item
            if item is not None:
                self.keep(("item", key), item)
        return found

    async def stamps_now(self) -> dict[str, int]:
        """The numbers that the stamps of all partitions read from have by now."""
        partitions = sorted(self.partitions)
        items = await self._round(self.store.get(list(map(stamp_key, partitions)), self.reads, strong=True))
        return {one: Stamp.of(one, item).n for one, item in zip(partitions, items, strict=True)}

    async def records(self, keys: Iterable[Key]) -> dict[Key, Record | None]:
        """The nodes at these keys, each read once a request, with their trees' stamps."""
        wanted = list(dict.fromkeys(keys))
        missing = [key for key in wanted if not self._knows_node(key)]
        for key, item in (await self.get(missing, trees=[key.pk for key in wanted])).items():
            record = self.known.nodes[key] = None if item is None else Record.of(item)
            if record is not None:
                self.keep(key, record)
        return {key: self.known.nodes[key] for key in wanted}

    async def range(self, read: Read) -> None:
        """Read a range and keep what it brings in `known`."""
        items = await self._round(self.store.range(read.span, self.reads, limit=read.limit, reverse=read.reverse))
        self.known.add(read, [Record.of(item) for item in items])

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

    async def count(self, span: Span) -> int:
        return await self._round(self.store.count(span, self.reads))

    async def together(self, calls: Sequence[Awaitable[T]]) -> list[T | BaseException]:
        """The results of calls made side by side, or what went wrong in their place."""
        return await asyncio.gather(*calls, return_exceptions=True)

    async def _round(self, call: Awaitable[T]) -> T:
        self.rounds += self._running == 0
        self._running += 1
        try:
            # What starts in the same turn of the loop is one round, also where the store answers at once.
            await asyncio.sleep(0)
            async with self._places:
                return await call
        finally:
            self._running -= 1
