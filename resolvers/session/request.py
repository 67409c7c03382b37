"""Request: the store, caller and budgets of one GraphQL request, and the state of what it has read."""

import asyncio
from collections.abc import Mapping

from resolvers.access.callers import ANYONE, Caller
from resolvers.access.grants import Grants
from resolvers.session.budget import Budget, BudgetLimits
from resolvers.session.cache import PageCache
from resolvers.session.reads import ReadState
from resolvers.session.scheduler import ReadScheduler
from store.engine import ReadTrace, ReadUsage, Store
from store.model.hierarchy import Hierarchy
from store.writing.writer import Writer


class Request:
    """Everything that the batch functions need, made for each request.

    `state` has and makes the reads, `scheduler` lets them begin; `reads` is their consumption and `budget` what may
    still be returned. `grants` is what the caller may read, None for everything. `writer` makes its edits, None where
    writing is disabled; indexes may lag behind the table by `settle_seconds`. `large_reads` are the permits for large
    reads, for which these wait. `depends_on_caller` is whether anything has asked for the `caller`: then the response
    is for nobody else.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        limits: BudgetLimits = BudgetLimits(),
        *,
        page_cache: PageCache | None = None,
        grants: Grants | None = None,
        writer: Writer | None = None,
        settle_seconds: float = 0.0,
        large_reads: asyncio.Semaphore | None = None,
    ) -> None:
        self.store = store
        self.hierarchies = hierarchies
        self.reads = ReadUsage(limit=limits.read_units)
        self.budget = Budget(limits, self.reads)
        self._caller, self.depends_on_caller = ANYONE, False
        self.grants = grants
        self.writer, self.settle_seconds = writer, settle_seconds
        self.may_have_written = False
        """Whether an edit has begun, other than a dry run."""
        self.has_edits = False
        """Whether an edit or a dry run has begun."""
        self.scheduler = ReadScheduler(self.reads, large_reads, is_embedded=store.is_embedded)
        self._page_cache = PageCache(0) if page_cache is None else page_cache
        self.state = self._new_state()
        self.state.accepts_stale = True

    @property
    def caller(self) -> Caller:
        """The sender. What depends on nothing but `grants` must not ask for it, or the response is not cached."""
        self.depends_on_caller = True
        return self._caller

    def act_for(self, caller: Caller) -> None:
        """Show and change only what this caller may; to be called before anything is read."""
        self._caller, self.grants = caller, caller.reads
        if self.grants is not None:
            self.state.restrict_to(self.grants)

    def trace_reads(self) -> None:
        """List the calls of the store in `reads.trace`; to be called before anything is read."""
        self.reads.trace = ReadTrace(lambda: self.rounds)

    @property
    def rounds(self) -> int | None:
        """The number of rounds of reads; None once there are edits, whose own reads are made outside of `scheduler`."""
        return None if self.has_edits else self.scheduler.rounds

    def forget_reads(self) -> None:
        """Cancel running reads and begin a new state, since what was read is outdated. What it cost stays spent."""
        self.state.end()
        self.state = self._new_state()

    def discard_reads(self) -> None:
        """The same for another attempt at the whole response: the limit of read units begins anew."""
        self.reads.renew()
        self.forget_reads()

    def _new_state(self) -> ReadState:
        return ReadState(self.store, self.reads, self.scheduler, self._page_cache, self.grants)

    def read_from(self, store: Store) -> None:
        """Discard what was read, and read from this store instead, without the page cache."""
        self.store, self._page_cache = store, PageCache(0)
        self.discard_reads()

    def stop(self) -> None:
        """Cancel running reads and let no other begin: the response is no longer needed."""
        self.scheduler.stop()
        self.state.end()
