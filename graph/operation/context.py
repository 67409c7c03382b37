"""What the resolvers of one operation share."""

from collections import Counter
from functools import cached_property
from typing import Any
from weakref import WeakSet

from graphql import GraphQLResolveInfo

from graph.operation.lookahead import LookAhead, Types
from resolvers.access.caller import Caller
from resolvers.dataloaders import Loaders
from resolvers.session.budget import Budget, too_many_nodes
from resolvers.session.request import Request, Store
from store.errors import BudgetExceeded


class Context:
    """A request, its dataloaders, and what its operation asks for."""

    def __init__(self, request: Request, types: Types, *, max_entities: int = 1_000) -> None:
        self.request = request
        self._max_entities = self._entities_left = max_entities
        self._max_ids = self._ids_left = request.budget.nodes_left
        self._types = types
        self._asked: LookAhead | None = None
        self.how: str | None = None
        """How it was answered: `kept`, `planned`, `resolved`, or where a plan handed over `surprised` or `failed`."""

    @cached_property
    def errors_left_out(self) -> Counter[str]:
        """Of the interpreter's errors, how many of each code there are beyond the first."""
        return Counter()

    @cached_property
    def unfinished(self) -> WeakSet[object]:
        """What of the interpreter's work waits for its turn."""
        return WeakSet()

    def act_for(self, caller: Caller) -> None:
        """Show and change only what this caller may."""
        self.request.act_for(caller)

    @cached_property
    def loaders(self) -> Loaders:
        """Made when a resolver asks: plans go past them."""
        return Loaders(self.request, lambda: len(self.unfinished) > 0)

    @property
    def budget(self) -> Budget:
        """What the response may still hold."""
        return self.request.budget

    def asked(self, info: GraphQLResolveInfo[Any]) -> LookAhead:
        if self._asked is None:
            self._asked = LookAhead(info, self._types)
        return self._asked

    def renew(self) -> None:
        """Forget what was loaded: a mutation has changed something."""
        self.__dict__.pop("loaders", None)

    def spend_entities(self, count: int) -> None:
        """Take entities from what the request may ask for, by all aliases of `_entities` together."""
        if count > self._entities_left:
            raise BudgetExceeded(
                f"The request asks for more than {self._max_entities} entities; ask for them in several requests, "
                "or raise CLADE_MAX_ENTITIES."
            )
        self._entities_left -= count

    def spend_ids(self, count: int) -> None:
        """Take ids from what the request may look up, by all fields together: no more than nodes."""
        if count > self._ids_left:
            raise too_many_nodes("The nodes that are looked up", count, self._ids_left)
        self._ids_left -= count

    def begin_again(self) -> None:
        """Give back all budgets: the answer is made anew, from what is known by now."""
        self._entities_left = self._max_entities
        self._ids_left = self._max_ids
        self.__dict__.pop("errors_left_out", None)
        self.request.budget.reset()

    def snapshot_if_torn(self) -> Store | None:
        """What to read instead, where something was written between the reads; None where the answer may stay."""
        return self.request.store.snapshot() if self.request.state.is_outdated else None

    def begin_in(self, store: Store) -> None:
        """Make the answer anew, all of it from this store."""
        self.renew()
        self.begin_again()
        self.request.read_from(store)

    def forget(self) -> None:
        """Begin again, and read everything anew."""
        self.begin_again()
        self.request.discard_reads()
        self.renew()

    async def is_steady(self) -> bool:
        """Whether no running move that was met has flipped since."""
        return await self.request.state.are_moves_unchanged()

    def stop(self) -> None:
        """End what still reads for the operation: nobody waits for its answer."""
        self.request.stop()

    def reads_report(self) -> dict[str, Any]:
        """`extensions.reads`: requests to the store, rounds of them, items they brought, DynamoDB read units, and
        whether the answer was kept from before, so that only its proof was read.
        """
        reads = self.request.reads
        return {
            "requests": reads.requests,
            "rounds": self.request.scheduler.rounds,
            "items": reads.items,
            "units": reads.units,
            "cached": self.how == "kept",
        }
