"""Search for the most expensive requests: those with the largest share of a bound are mutated and combined."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphql import GraphQLError, MaxIntrospectionDepthRule, validate

from bench.cost.generator import Generator
from bench.cost.measured import DEFAULT, Bounds, Measured
from bench.cost.meter import Sent
from bench.cost.operation import Operation
from graph.operation.document_limits import DocumentLimits

KEPT = 6  # operations for each bound
NEW = 0.3  # of all operations, once some are known
GROWTH = (0, 1, 3, 6)  # times that a new one is changed at once
REFUSED = 0.05  # of those that the limits of a document refuse are sent


@dataclass(frozen=True)
class Found:
    """A request with its name and its cost."""

    name: str
    sent: Sent
    measured: Measured


class Search:
    """Search that proposes operations and gets the cost of each; it may start from known ones."""

    def __init__(self, generator: Generator, known: Sequence[Operation] = (), bounds: Bounds = DEFAULT) -> None:
        self._generator = generator
        self._bounds = bounds
        self._limits = DocumentLimits()
        self._dearest: dict[str, list[tuple[float, Operation]]] = {}
        if known:
            self._dearest[""] = [(0.0, one) for one in known]

    def proposals(self) -> Iterator[tuple[Operation, Sent]]:
        """Infinite operations, nearly all within the limits of a document."""
        while True:
            operation = self._proposal()
            sent = operation.sent()
            if self._generator.random.random() < REFUSED or self._is_accepted(sent):
                yield operation, sent

    def learn(self, operation: Operation, measured: Measured) -> None:
        """Keep an operation that is among the most expensive by any bound, unless it was rejected or ended.

        One that was ended is a result already; mutations of it would be found again and again.
        """
        if measured.is_refused or measured.ended:
            return
        for name, share in self._bounds.shares(measured).items():
            # Times differ a little from run to run: only what costs clearly more takes another's place.
            kept = self._dearest.setdefault(name, [])
            kept.append((round(share, 1), operation))
            kept.sort(key=lambda one: -one[0])
            del kept[KEPT:]

    def _proposal(self) -> Operation:
        random = self._generator.random
        if not self._dearest or random.random() < NEW:
            operation = self._generator.operation()
            for _ in range(random.choice(GROWTH)):
                operation = self._generator.changed(operation, self._generator.operation())
            return operation
        return self._generator.changed(self._one_of_the_dearest(), self._one_of_the_dearest())

    def _one_of_the_dearest(self) -> Operation:
        random = self._generator.random
        return random.choice(self._dearest[random.choice(list(self._dearest))])[1]

    def _is_accepted(self, sent: Sent) -> bool:
        try:
            document = self._limits.parse(sent.query).document
        except (GraphQLError, RecursionError):
            return False
        return not validate(self._generator.schema, document, [MaxIntrospectionDepthRule])
