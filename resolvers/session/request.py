"""One request: its store, what it has read and what that cost, and how much more it may return."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from resolvers.access.caller import ANYONE, Caller
from resolvers.access.grants import Grants, Visibility
from resolvers.access.redacted_node import shown
from resolvers.access.visibility import VisibilityFilter
from resolvers.session.budget import Budget, BudgetLimits
from resolvers.session.large_read_limit import LargeReadLimiter, Slot
from resolvers.session.page_cache import PageCache
from resolvers.session.read_concurrency import ReadScheduler
from resolvers.session.read_state import ReadState
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.running_moves import RunningMoves
from store.engine.protocol import Store as Store
from store.engine.usage import ReadUsage
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Key, tree_version_key
from store.model.ranges import KeyRange
from store.model.records import Record
from store.writer.writer import Writer as Writer

T = TypeVar("T")
Outcomes = dict[Key, Record | Exception | None]


class Request:
    """Everything that the batch functions need, made anew for each request.

    `budget` is what it may still return and read, `parallel` how many reads may run at a time. A *round* is a set
    of reads that were waited for together. `kept` is what earlier requests have left. `partitions` are the trees and
    hierarchies that were read from; their stamps tell whether an answer is still true, but of an id that is nowhere.
    `writer` makes its edits, None where it may make none; indexes may trail behind the table by `settle_seconds`.
    Where there are `turns`, what may be many nodes is read when its turn comes.
    `caller` is who sent it, `grants` are what that one may see, None for everything.

    What running moves and grants hide is not there for anyone who asks it for nodes: they apply here, below all else.
    What was read is in a state of its own, which `forget` replaces.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        limits: BudgetLimits = BudgetLimits(),
        parallel: int = 32,
        *,
        kept: PageCache | None = None,
        grants: Grants | None = None,
        writer: Writer | None = None,
        settle_seconds: float = 0.0,
        turns: LargeReadLimiter | None = None,
    ) -> None:
        self.store = store
        self.hierarchies = hierarchies
        self.reads = ReadUsage()
        self.budget = Budget(limits, self.reads)
        self.spend = self.budget.spend_nodes
        self.kept = kept
        self.caller = ANYONE
        self.grants = grants
        self.writer, self.settle_seconds = writer, settle_seconds
        self.partitions: set[str] = set()
        self.met_unknown_id = False
        self.turn = Slot(turns)
        self._rounds = ReadScheduler(parallel, self.turn, self.reads)
        self._state = self._begin()

    @property
    def rounds(self) -> int:
        """How many rounds of reads there were so far."""
        return self._rounds.number

    @property
    def known(self) -> RecordsRead:
        """The nodes that were read."""
        return self._state.known

    @property
    def stamps(self) -> dict[str, TreeVersion]:
        """The stamps that were read, by their trees or hierarchies."""
        return self._state.stamps

    @property
    def moves(self) -> RunningMoves | None:
        """The running moves that were met, None where there are none."""
        return self._state.moves

    @property
    def view(self) -> VisibilityFilter | None:
        """What is seen, None for everything."""
        return self._state.view

    @property
    def version(self) -> object:
        """The store's version when reading began, None where it has none."""
        return self._state.version

    def act_for(self, caller: Caller) -> None:
        """Show and change only what this caller may; before anything is read."""
        self.caller, self.grants = caller, caller.reads
        self._state.view = None if self.grants is None else VisibilityFilter(self.grants)

    def begin_again(self) -> None:
        """Give back the whole budget: the answer is made anew, from what is known by now."""
        self.budget.begin_again()

    def forget(self) -> None:
        """Forget all that was read, since something of it may have changed, and end what still reads.

        As much may be read once more.
        """
        self._state.end()
        self._state = self._begin()

    def _begin(self) -> ReadState:
        """What was read so far, which is nothing."""
        self.reads.renew(self.budget.limits.read_units)
        state = ReadState(self.store, self.reads, self._rounds, self.kept, self.grants)
        self.recall, self.keep = state.recall, state.keep
        return state

    @property
    def is_torn(self) -> bool:
        """Whether somebody has written since it began: what was read, or kept by others since, may not fit together."""
        return self.store.version() != self.version

    def read_from(self, store: Store) -> None:
        """Forget all that was read, and read from this store instead."""
        self.store, self.kept = store, None
        self.forget()

    @property
    def nodes_left(self) -> int:
        """How many nodes it may still return."""
        return self.budget.nodes_left

    async def get(self, keys: Iterable[Key], *, trees: Iterable[str] = (), now: bool = False) -> dict[Key, Item | None]:
        """The items at these keys, and in the same read the stamps of those trees that are not known yet."""
        keep = self.grants is None  # what is hidden is read again and again, as what is not there
        return _all_read(await self.outcomes(keys, trees=trees, keep=keep, now=now))

    async def outcomes(
        self, keys: Iterable[Key], *, trees: Iterable[str] = (), keep: bool = True, now: bool = False
    ) -> dict[Key, Item | Exception | None]:
        """The same, with an error in the place of what could not be read; stamps that could not are among the keys.

        `keep` is whether to keep the items for the requests to come. With `now` nothing is older than this call: a read
        of DynamoDB is then strong, at twice the price.
        """
        keys, trees = list(dict.fromkeys(keys)), list(dict.fromkeys(trees))
        self.partitions.update(trees)
        return await self._state.items(keys, trees, keep=keep, now=now)

    async def read_now(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        """What lies at these keys as of now, however often it was read before."""
        return await self._state.read_now(keys)

    def read_again(self, keys: Iterable[Key]) -> None:
        """Have these keys read once more when they are asked for: what lies there may have changed meanwhile."""
        self._state.read_again(keys)

    async def look_again(self, keys: Iterable[Key]) -> None:
        """Read nodes as of now, however often they were read before; those out of sight are left out."""
        seen = [key for key in dict.fromkeys(keys) if self.grants is None or self._sees(key)]
        for key, item in (await self.read_now(seen)).items() if seen else ():
            self._state.add_node(key, item, now=True)

    def _sees(self, key: Key) -> bool:
        return self.grants is not None and VisibilityFilter(self.grants).sight(key) is not Visibility.NOTHING

    async def is_steady(self) -> bool:
        """Whether all that was read tells of one side of each running move's flip; else it has to be forgotten."""
        return self.moves is None or await self.moves.are_as_met()

    async def stamps_now(self) -> dict[str, int]:
        """The numbers that the stamps of all partitions read from have by now."""
        items = await self.read_now([tree_version_key(partition) for partition in sorted(self.partitions)])
        return {key.pk: TreeVersion.of(key.pk, item).number for key, item in items.items()}

    async def records(self, keys: Iterable[Key]) -> dict[Key, Record | None]:
        """The nodes at these keys, each read once a request, with their trees' stamps."""
        return _all_read(await self.record_outcomes(keys))

    async def record_outcomes(self, keys: Iterable[Key], *, now: bool = False) -> Outcomes:
        """The same, with an error in the place of a node that could not be read.

        None is also in the place of what is out of sight, and a stub in that of what lies above it. With `now` none of
        them is as an index has told it.
        """
        wanted = dict.fromkeys(keys)
        if self.grants is None:
            found = await self._record_outcomes(wanted, [key.pk for key in wanted], now=now)
        else:  # what is not granted is not read, so that nothing tells whether it is there
            granted = [key for key in wanted if VisibilityFilter(self.grants).sight(key) is not Visibility.NOTHING]
            found = dict.fromkeys(wanted) | await self._record_outcomes(granted, [key.pk for key in wanted], now=now)
        view = self.view
        return found if view is None else {key: shown(outcome, view.sight(key)) for key, outcome in found.items()}

    async def _record_outcomes(self, keys: Collection[Key], trees: Iterable[str], *, now: bool) -> Outcomes:
        state = self._state
        found: Outcomes = {}
        missing = [key for key in keys if not state.knows_node(key, now=now)]
        self.turn.expect(len(missing))
        # Their records are kept, not their items. The stamps are read strongly, and the nodes no otherwise.
        for key, item in (await self.outcomes(missing, trees=trees, keep=False, now=True)).items():
            if isinstance(item, Exception):
                found[key] = item
            else:
                state.add_node(key, item, now=True)
        nodes = state.known.nodes
        return {key: nodes[key] if key in nodes else found[key] for key in keys}

    async def current_outcomes(self, keys: Iterable[Key]) -> Outcomes:
        """The nodes at these keys as of now; one that a running move has taken along is looked for at its new place."""
        found = await self.record_outcomes(keys, now=True)
        if self.view is None or not self.view.moved:
            return found
        places = {key: place for key in found if (place := self.view.now(key)) is not None}
        there = await self.record_outcomes(places.values(), now=True)
        return found | {key: there[place] for key, place in places.items()}

    def range(self, read: Read) -> Awaitable[None]:
        """Read a range and keep what it brings in `known`; begun as soon as this is called."""
        return self._state.range(read)

    async def items(self, span: KeyRange, *, limit: int | None = None, reverse: bool = False) -> list[Item]:
        """What lies in a span that is not about nodes."""
        return await self._state.all_in(span, limit, reverse=reverse)

    async def count(self, span: KeyRange) -> int:
        """How many nodes of a tier or of a subtree are in a span."""
        return await self._state.count(span)

    async def together(self, calls: Sequence[Awaitable[T]]) -> list[T | BaseException]:
        """The results of calls made side by side, or what went wrong in their place.

        Raises CancelledError where what they read was forgotten.
        """
        results = await asyncio.gather(*calls, return_exceptions=True)
        for result in results:
            if isinstance(result, asyncio.CancelledError):
                raise result
        return results

    def stop(self) -> None:
        """End the reads that run, let no other begin, and drop what was read: nobody reads for this answer any more."""
        self._rounds.stop()
        self.turn.end()
        self._state.end()


def _all_read(found: Mapping[Key, T | Exception]) -> dict[Key, T]:
    """What was found, where nothing could not be read; else raises why."""
    for outcome in found.values():
        if isinstance(outcome, Exception):
            raise outcome
    return cast(dict[Key, T], dict(found))
