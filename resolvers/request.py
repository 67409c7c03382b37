"""One request: its store, what it has read and what that cost, and how much more it may return."""

import asyncio
from collections.abc import Awaitable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from resolvers.budget import Budget, BudgetLimits
from resolvers.caller import ANYONE, Caller
from resolvers.grants import Grants, Sight
from resolvers.kept import Kept
from resolvers.known import Known, Read
from resolvers.moves import Moves
from resolvers.rounds import Rounds
from resolvers.sight import View
from resolvers.stub import shown
from resolvers.turns import Turn, Turns
from store.errors import CladeError
from store.hierarchy import Hierarchy
from store.items import Item
from store.keys import Key, Span, stamp_key
from store.pace import Pace as Pace
from store.reads import PAGE_UNITS, Reads
from store.records import Record
from store.stamps import Running, Stamp
from store.stores import Store as Store
from store.writes import Writer as Writer

T = TypeVar("T")
Outcomes = dict[Key, Record | Exception | None]

CHUNK = 100  # keys of one BatchGetItem, which fails as a whole


class Request:
    """Everything that the batch functions need, made anew for each request.

    `budget` is what it may still return and read, `parallel` how many reads may run at a time. A *round* is a set
    of reads that were waited for together. `kept` is what earlier requests have left. `partitions` are the trees and
    hierarchies that were read from; their stamps tell whether an answer is still true, but of an id that is nowhere.
    `writer` makes its edits, None where it may make none; indexes may trail behind the table by `settle_seconds`.
    Where there are `turns`, what may be many nodes is read when its turn comes.
    `caller` is who sent it, `grants` are what that one may see, None for everything.

    What running moves and grants hide is not there for anyone who asks it for nodes: they apply here, below all else.
    `moves` are the running ones that were met, None where there are none; `view` is what is seen, None for everything.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        limits: BudgetLimits = BudgetLimits(),
        parallel: int = 32,
        *,
        kept: Kept | None = None,
        grants: Grants | None = None,
        writer: Writer | None = None,
        settle_seconds: float = 0.0,
        turns: Turns | None = None,
    ) -> None:
        self.store = store
        self.hierarchies = hierarchies
        self.budget = Budget(limits)
        self.kept = kept
        self.caller = ANYONE
        self.grants = grants
        self.writer, self.settle_seconds = writer, settle_seconds
        self.reads = Reads()
        self.partitions: set[str] = set()
        self.met_unknown_id = False
        self.turn = Turn(turns)
        self._rounds = Rounds(parallel, self.turn, self.reads)
        self.forget()

    @property
    def rounds(self) -> int:
        """How many rounds of reads there were so far."""
        return self._rounds.number

    def _look(self) -> None:
        """See what the grants let see, and meet the running moves anew."""
        self.moves: Moves | None = None
        self.view: View | None = None if self.grants is None else View(self.grants)

    def act_for(self, caller: Caller) -> None:
        """Show and change only what this caller may; before anything is read."""
        self.caller, self.grants = caller, caller.reads
        self._look()

    def begin_again(self) -> None:
        """Give back the whole budget: the answer is made anew, from what is known by now."""
        self.budget.begin_again()

    def forget(self) -> None:
        """Forget all that was read, since something of it may have changed; it may be read once more."""
        self.reads.limit = self.reads.units + self.budget.limits.read_units
        self.known, self.stamps = Known(), dict[str, Stamp]()
        self._asked: dict[Hashable, asyncio.Future[Any]] = {}  # what was read or is being read, each once
        self._look()
        self.version = self.store.version()
        if self.kept is not None:
            self.kept.renew(self.version)

    @property
    def is_torn(self) -> bool:
        """Whether somebody has written since it began: what was read, or kept by others since, may not fit together."""
        return self.store.version() != self.version

    def read_from(self, store: Store) -> None:
        """Forget all that was read, and read from this store instead."""
        self.store, self.kept = store, None
        self.forget()

    def spend(self, nodes: int, what: str = "What is asked") -> None:
        """Take nodes from the budget; raises BudgetExceeded, taking none, where so many are not left."""
        self.budget.spend_nodes(nodes, what)

    @property
    def nodes_left(self) -> int:
        """How many nodes it may still return."""
        return self.budget.nodes_left

    async def get(self, keys: Iterable[Key], *, trees: Iterable[str] = ()) -> dict[Key, Item | None]:
        """The items at these keys, and in the same read the stamps of those trees that are not known yet."""
        return _all_read(await self.outcomes(keys, trees=trees))

    async def outcomes(
        self, keys: Iterable[Key], *, trees: Iterable[str] = (), keep: bool = True
    ) -> dict[Key, Item | Exception | None]:
        """The same, with an error in the place of what could not be read; stamps that could not are among the keys.

        `keep` is whether to keep the items for the requests to come.
        """
        keys, trees = list(dict.fromkeys(keys)), list(dict.fromkeys(trees))
        self.partitions.update(trees)
        found = await self._outcomes(keys, trees, keep=keep)
        if self.version is None and (running := self._moving(trees)):
            if self.moves is None:
                self.moves = Moves(self.read_now, self._learned)
            await self.moves.meet(running)
            # What came together with the stamps was read before the states of their moves.
            found |= await self._outcomes([key for key in keys if self._is_moving(key)], (), keep=keep)
        return found

    async def _outcomes(
        self, keys: Iterable[Key], trees: Iterable[str], *, keep: bool
    ) -> dict[Key, Item | Exception | None]:
        found: dict[Key, Item | Exception | None] = {}
        missing = [stamp_key(tree) for tree in trees if not self._knows_stamp(tree)]
        stamps = len(missing)
        for key in keys:
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
                if keep and outcome is not None and not isinstance(outcome, Exception):
                    self.keep(("item", key), outcome)
            stamps -= stamps > 0
        return found

    def _moving(self, trees: Iterable[str]) -> list[Running]:
        """The moves that the stamps of these trees tell of."""
        return [one for tree in trees if tree in self.stamps for one in self.stamps[tree].moves]

    def _is_moving(self, key: Key) -> bool:
        return self.moves is not None and key.pk in self.moves.trees

    def _learned(self, moves: Moves) -> None:
        """See the trees as the moves that were met leave them, and read again what was read before that."""
        self.view = View(self.grants, moves.hidden, moves.moved)
        self.stamps.update({partition: stamp for partition, stamp in moves.stamps.items() if partition in self.stamps})
        self.known.nodes.update(moves.above)
        self._asked = {
            asked: outcome
            for asked, outcome in self._asked.items()
            if not (isinstance(asked, Key) and self._is_moving(asked))
        }

    async def read_now(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        """What lies at these keys as of now, however often it was read before."""
        items = await self._rounds.run(self.store.get(keys, self.reads, strong=True))
        return dict(zip(keys, items, strict=True))

    async def is_steady(self) -> bool:
        """Whether all that was read tells of one side of each running move's flip; else it has to be forgotten."""
        return self.moves is None or await self.moves.are_as_met()

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
        strong = any(key == stamp_key(key.pk) or self._is_moving(key) for key in keys)
        try:
            return dict(zip(keys, await self._rounds.run(self.store.get(keys, self.reads, strong=strong)), strict=True))
        except CladeError as error:
            return dict.fromkeys(keys, error.bare())
        except Exception as error:  # whoever needs one of these keys raises it
            return dict.fromkeys(keys, error)

    async def stamps_now(self) -> dict[str, int]:
        """The numbers that the stamps of all partitions read from have by now."""
        items = await self.read_now([stamp_key(partition) for partition in sorted(self.partitions)])
        return {key.pk: Stamp.of(key.pk, item).n for key, item in items.items()}

    async def records(self, keys: Iterable[Key]) -> dict[Key, Record | None]:
        """The nodes at these keys, each read once a request, with their trees' stamps."""
        return _all_read(await self.record_outcomes(keys))

    async def record_outcomes(self, keys: Iterable[Key]) -> Outcomes:
        """The same, with an error in the place of a node that could not be read.

        None is also in the place of what is out of sight, and a stub in that of what lies above it.
        """
        wanted = dict.fromkeys(keys)
        if self.grants is None:
            found = await self._record_outcomes(wanted, [key.pk for key in wanted])
        else:  # what is not granted is not read, so that nothing tells whether it is there
            granted = [key for key in wanted if View(self.grants).sight(key) is not Sight.NOTHING]
            found = dict.fromkeys(wanted) | await self._record_outcomes(granted, [key.pk for key in wanted])
        view = self.view
        return found if view is None else {key: shown(outcome, view.sight(key)) for key, outcome in found.items()}

    async def _record_outcomes(self, keys: Collection[Key], trees: Iterable[str]) -> Outcomes:
        found: Outcomes = {}
        missing = [key for key in keys if not self._knows_node(key)]
        self.turn.expect(len(missing))
        for key, item in (await self.outcomes(missing, trees=trees, keep=False)).items():  # their records are kept
            if isinstance(item, Exception):
                found[key] = item
                continue
            record = self.known.nodes[key] = None if item is None else Record.of(item)
            if record is not None:
                self.keep(key, record.kept())
        return {key: self.known.nodes[key] if key in self.known.nodes else found[key] for key in keys}

    async def current_outcomes(self, keys: Iterable[Key]) -> Outcomes:
        """The same, where a node that a running move has taken along is looked for at its new place."""
        found = await self.record_outcomes(keys)
        if self.view is None or not self.view.moved:
            return found
        places = {key: place for key in found if (place := self.view.now(key)) is not None}
        there = await self.record_outcomes(places.values())
        return found | {key: there[place] for key, place in places.items()}

    def range(self, read: Read) -> Awaitable[None]:
        """Read a range and keep what it brings in `known`; begun as soon as this is called."""
        asked = self._asked.get(read)
        if asked is None:
            asked = self._asked[read] = asyncio.ensure_future(self._read_range(read))
        return asked

    async def _read_range(self, read: Read) -> None:
        if self.version is None and read.span.partition in self.hierarchies:
            records = await self._roots(read)
        else:
            records = await self._records(read)
        self.known.add(read, records)

    async def _roots(self, read: Read) -> list[Record]:
        """Roots, with the stamp of their hierarchy in the same round, since it tells of moves from and to them."""
        view = self.view
        records, _ = await asyncio.gather(self._records(read), self.get([], trees=[read.span.partition]))
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
        return [record for record in records if not more or view.sight(record.key) is Sight.WHOLE][:limit]

    async def _nodes(self, span: Span, limit: int | None, reverse: bool) -> list[Record]:
        return await self._rounds.run(self.store.nodes(span, self.reads, limit=limit, reverse=reverse))

    async def items(self, span: Span, *, limit: int | None = None, reverse: bool = False) -> list[Item]:
        """What lies in a span that is not about nodes."""
        return await self._rounds.run(self.store.range(span, self.reads, limit=limit, reverse=reverse))

    async def count(self, span: Span) -> int:
        """How many nodes of a tier or of a subtree are in a span."""
        if span not in self._asked:
            self._asked[span] = asyncio.ensure_future(self._count(span))
        return cast(int, await self._asked[span])

    async def _count(self, span: Span) -> int:
        parts = [span] if self.view is None else self.view.parts(span)
        return sum(await asyncio.gather(*[self._count_part(part) for part in parts]))

    async def _count_part(self, span: Span) -> int:
        # What a count reads is told by its pages alone; until then each may be of the largest.
        return await self._rounds.run(self.store.count(span, self.reads), PAGE_UNITS)

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
        """End the reads that run, let no other begin, and drop what was read: nobody reads for this answer any more."""
        self._rounds.stop()
        self.turn.end()
        if self.moves is not None:
            self.moves.stop()
        for read in self._asked.values():
            read.cancel()
        self.known, self._asked = Known(), {}


def _all_read(found: Mapping[Key, T | Exception]) -> dict[Key, T]:
    """What was found, where nothing could not be read; else raises why."""
    for outcome in found.values():
        if isinstance(outcome, Exception):
            raise outcome
    return cast(dict[Key, T], dict(found))
