"""Context of one operation: the state that its resolvers share."""

from collections import Counter
from functools import cached_property
from typing import Any
from weakref import WeakSet

from graphql import GraphQLResolveInfo
from graphql.execution.values import VariableValues

from graph.operation.selection import LookAhead, SelectedFields, Types
from resolvers.changes import ChangeListener
from resolvers.dataloaders import Loaders
from resolvers.session.request import Request
from store.engine import Store


class Context:
    """A request, its dataloaders, and the look-ahead of its operation."""

    def __init__(self, request: Request, types: Types) -> None:
        self.request = request
        """Store, caller and state of the reads; `request.budget` is what the response may still have."""
        self._types = types
        self._look_ahead: LookAhead | None = None
        self.fields: SelectedFields | None = None
        """The operation's selected fields, where a plan has them."""
        self.how: str | None = None
        """How it was answered: `cached`, `compiled`, `interpreted` in whole or part, or `fallback`: interpreted
        because of an error.
        """
        self.user_errors: dict[str, None] = {}
        """The codes of the user errors of mutations, which the response has in its data."""
        self.listener: ChangeListener | None = None
        """The place of the stream that a subscription continues."""

    @cached_property
    def errors_left_out(self) -> Counter[str]:
        """The number of the interpreter's errors of each code that are left out of the response."""
        return Counter()

    @cached_property
    def unfinished(self) -> WeakSet[object]:
        """Parts of the interpreter's work that wait for the event loop; dataloaders gather more keys meanwhile."""
        return WeakSet()

    @cached_property
    def loaders(self) -> Loaders:
        """The dataloaders. Plans do without them."""
        return Loaders(self.request, lambda: len(self.unfinished) > 0)

    def look_ahead(self, info: GraphQLResolveInfo[Any]) -> LookAhead:
        """That of the interpreted operation."""
        if self._look_ahead is None:
            coerced: Any = info.variable_values  # values alone: Strawberry unpacks them
            variables, fragments = VariableValues({}, coerced), info.fragments.values()
            fields = self.fields or SelectedFields(info.schema, self._types, fragments, info.operation, variables)
            self._look_ahead = LookAhead(fields, variables)
        return self._look_ahead

    def renew(self) -> None:
        """Drop the dataloaders: a mutation has changed something."""
        self.__dict__.pop("loaders", None)

    def begin_again(self) -> None:
        """Reset all budgets: the response is made again, from what was read so far."""
        self.__dict__.pop("errors_left_out", None)
        self.request.budget.reset()

    def snapshot_if_torn(self) -> Store | None:
        """A snapshot to read instead where something was written between the reads; None for a consistent answer."""
        return self.request.store.snapshot() if self.request.state.is_outdated else None

    def begin_in(self, store: Store) -> None:
        """Reset everything, and read the whole answer from this store."""
        self.renew()
        self.begin_again()
        self.request.read_from(store)

    async def forget(self) -> None:
        """Reset everything, and read again, first the running moves that are known by now."""
        moves = self.request.state.moves
        self.renew()
        self.begin_again()
        self.request.discard_reads()
        if moves is not None:
            await self.request.state.versions_of(moves.trees)

    def calls_report(self) -> dict[str, Any]:
        """The members of `extensions.reads` that `Request.trace_reads` adds: `calls`, and what caches answered."""
        trace = self.request.reads.trace
        return {} if trace is None else trace.report()

    def reads_report(self) -> dict[str, Any]:
        """`extensions.reads`: requests to the store, rounds of them, items read, DynamoDB read units, and whether the
        answer came from the cache, so that only its versions were read.
        """
        reads = self.request.reads
        return {
            "requests": reads.requests,
            "rounds": self.request.scheduler.rounds,
            "items": reads.items,
            "units": reads.units,
            "cached": self.how == "cached",
        }
