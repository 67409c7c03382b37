"""Asking a store as clients do, and what that cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from graph.execution.operation import Execution
from graph.hierarchies.node import Node
from graph.operation.context import Context
from graph.operation.limits import DocumentLimits
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.engine import Store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.stores import ReadRecorder

_MANY = 1_000_000
BOUNDLESS = BudgetLimits(10_000_000, 10**9, 10**9, 1e9)
PATIENT = DocumentLimits(request_seconds=60.0)  # the longest answers of all, on machines that are busy


WIDE = DocumentLimits(
    max_tokens=_MANY,
    max_depth=_MANY,
    max_fields=_MANY,
    max_repeats=_MANY,
    max_aliases=_MANY,
    max_input_values=_MANY,
    request_seconds=600.0,  # a long form runs beside other work
)
"""For queries that a machine has made."""


@dataclass(frozen=True)
class Reply:
    """What an operation brought: its data, its errors, `extensions.reads`, what went to the store, and the nodes and
    fields that it spent.
    """

    data: Any
    errors: list[dict[str, Any]]
    requests: int
    rounds: int
    items: int
    units: float
    witness: ReadRecorder
    nodes: int
    fields: int


class Client:
    """Asks a store in which these hierarchies lie."""

    def __init__(
        self,
        store: Store,
        *hierarchies: type[Node],
        max_nodes: int = 10_000,
        limits: DocumentLimits = PATIENT,
        budget: BudgetLimits | None = None,
        page_cache: PageCache | None = None,
    ) -> None:
        """A budget counts instead of `max_nodes`. Without `page_cache` no request knows anything of those before it."""
        self.store = store
        self._definitions = {cls.name: cls.definition() for cls in hierarchies}
        self._budget = budget or BudgetLimits(max_nodes)
        self.page_cache = page_cache
        self._execution = Execution(*schema_of(*hierarchies), lambda: Context(self._request), limits=limits)

    async def ask(self, query: str, /, **variables: Any) -> Reply:
        witness = ReadRecorder(self.store)
        self._request = request = Request(witness, self._definitions, self._budget, page_cache=self.page_cache)
        answer = await answer_to(self._execution, query, variables, allow_mutations=False, report_reads=True)
        assert answer.executed, answer.body
        reads = answer.body["extensions"]["reads"]
        data = orjson.loads(answer.content())["data"]
        return Reply(
            data,
            answer.body.get("errors", []),
            reads["requests"],
            reads["rounds"],
            reads["items"],
            reads["units"],
            witness,
            self._budget.nodes - request.budget.nodes_left,
            self._budget.fields - request.budget.fields_left,
        )


async def plant(store: Store, hierarchy: type[Node], rows: Sequence[tuple[Any, ...]]) -> None:
    """Load nodes given as path, level and perhaps name and attributes, parents before their children."""
    wanted, outcome = ImportPlan(hierarchy.definition()), LoadResult()
    for number, (path, level, *rest) in enumerate(rows, start=1):
        name, attributes = (*rest, None, None)[:2]
        wanted.take(Row(number, path, [Part(level, name, None, attributes or {})]))
    await load(store, wanted, outcome)
    assert not outcome.rejections, outcome.rejections[:3]


def count_nodes(data: Any) -> int:
    """How many nodes an answer holds: objects that tell their id."""
    if isinstance(data, dict):
        return ("id" in data) + sum(map(count_nodes, data.values()))
    return sum(map(count_nodes, data)) if isinstance(data, list) else 0
