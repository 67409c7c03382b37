"""Context of one operation: the state that its resolvers share."""

from functools import cached_property
from typing import Any

from resolvers.changes import ChangeListener
from resolvers.dataloaders import NodeLoader
from resolvers.session.request import Request
from store.engine import Store


class Context:
    """A request, and what its operation has besides."""

    def __init__(self, request: Request) -> None:
        self.request = request
        """Store, caller and state of the reads; `request.budget` is what the response may still have."""
        self.how: str | None = None
        """How it was answered: `cached`, `compiled`, or `executed` by graphql-core in part."""
        self.user_errors: dict[str, None] = {}
        """The codes of the user errors of mutations, which the response has in its data."""
        self.listener: ChangeListener | None = None
        """The place of the stream that a subscription continues."""

    @cached_property
    def nodes(self) -> NodeLoader:
        """The dataloader of nodes, for what graphql-core executes. Plans do without it."""
        return NodeLoader(self.request)

    def snapshot_if_torn(self) -> Store | None:
        """A snapshot to read instead where something was written between the reads; None for a consistent answer."""
        store = self.request.store
        return None if store.version() == self.request.state.store_version else store.snapshot()

    def begin_in(self, store: Store) -> None:
        """Reset everything, and read the whole answer from this store."""
        self.request.budget.reset()
        self.request.read_from(store)

    async def forget(self) -> None:
        """Reset everything, and read again, first the running moves that are known by now."""
        moves = self.request.state.moves
        self.request.budget.reset()
        self.request.discard_reads()
        if moves is not None:
            await self.request.state.versions_of(moves.trees)

    def calls_report(self) -> dict[str, Any]:
        """The members of `extensions.reads` that `Request.trace_reads` adds: `calls`, and what caches answered."""
        trace = self.request.reads.trace
        return {} if trace is None else trace.report()

    def reads_report(self) -> dict[str, Any]:
        """`extensions.reads`: requests to the store, rounds of them unless there were edits, items read, DynamoDB read
        units, and whether the answer came from the cache, so that only its versions were read.
        """
        reads, rounds = self.request.reads, self.request.rounds
        return {
            "requests": reads.requests,
            **({} if rounds is None else {"rounds": rounds}),
            "items": reads.items,
            "units": reads.units,
            "cached": self.how == "cached",
        }
