"""Queries and mutations of callers with grants."""

import json
from collections.abc import Sequence
from typing import Any

from graph.execution.operation import Execution
from graph.execution.response import OperationResponse, ResponseCache
from graph.hierarchies.node import Node
from graph.observability.logs import RequestInfo
from graph.operation.context import Context
from graph.operation.limits import DocumentLimits
from resolvers.access.callers import Caller, InvalidCredential
from resolvers.access.grants import Grants
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.engine import Store
from store.metadata.moves import MoveTiming
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.user_errors import take_user_errors, with_user_errors


def caller(*grants: str, name: str = "somebody", reads: bool = True) -> Caller:
    """Somebody who may do this; without `reads` everybody may read everything."""
    rights = Grants.parse(grants)
    return Caller(f"sub:{name}", name, rights if reads else None, rights)


class Server:
    """Hierarchies over one store, with all that is kept between requests."""

    def __init__(
        self, store: Store, *classes: type[Node], limits: DocumentLimits = DocumentLimits(), max_nodes: int = 10_000,
        read_units: float = 2_000, timing: MoveTiming = MoveTiming(),
    ) -> None:  # fmt: skip
        self.store = store
        self.schema, types = schema_of(*classes)
        definitions = {cls.name: cls.definition() for cls in classes}
        budgets = BudgetLimits(max_nodes, read_units=read_units)
        kept, self.writer = PageCache(10_000_000, TreeVersionCache(0.0)), Writer(store, timing)

        def context() -> Context:
            request = Request(store, definitions, budgets, page_cache=kept, writer=self.writer)
            return Context(request)

        cache = ResponseCache(10_000_000, store.version)
        self._execution = Execution(self.schema, types, context, cache=cache, limits=limits)

    async def ask(self, who: Caller, query: str, **variables: Any) -> dict[str, Any]:
        """The whole answer, `data` and `errors`, of a query."""
        return whole(await answer_to(self._execution, query, variables, caller=who, allow_mutations=False))

    async def how(self, who: Caller, query: str, variables: Any = None, **options: Any) -> tuple[str | None, bytes]:
        """How a query is answered, `cached` or not (`Context.how`), and the response."""
        observed, options = RequestInfo("", "POST", "", 0.0), {"caller": who, "allow_mutations": False, **options}
        answer = await answer_to(self._execution, query, variables, observed=observed, **options)
        return observed.how, answer.content()

    async def data(self, who: Caller, query: str, **variables: Any) -> Any:
        answer = await self.ask(who, query, **variables)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    async def write(self, who: Caller, mutation: str, **variables: Any) -> dict[str, Any]:
        """The whole answer of a mutation, whose user errors are among the errors."""
        query = with_user_errors(mutation)
        answer = whole(await answer_to(self._execution, query, variables, caller=who, allow_mutations=True))
        if faults := take_user_errors(answer["data"]):
            errors = [{"message": one["message"], "extensions": {"code": one["code"]}} for one in faults]
            answer["errors"] = [*answer.get("errors", []), *errors]
        return answer

    async def refusal(self, who: Caller, mutation: str, **variables: Any) -> tuple[str, str]:
        """The code and the sentence of a mutation's only error."""
        (error,) = (await self.write(who, mutation, **variables))["errors"]
        return error["extensions"]["code"], error["message"]


def whole(answer: OperationResponse) -> dict[str, Any]:
    """An answer as a client reads it, without the places of errors in the query; the order of errors means nothing."""
    assert answer.executed, answer.body
    told: dict[str, Any] = {"data": json.loads(answer.content())["data"]}
    if errors := answer.body.get("errors"):
        found = [{name: value for name, value in one.items() if name != "locations"} for one in errors]
        told["errors"] = sorted(found, key=lambda one: (str(one.get("path")), one["message"]))
    return told


def codes(answer: dict[str, Any]) -> Sequence[str]:
    """The codes of an answer's errors, each once."""
    return sorted({error["extensions"]["code"] for error in answer.get("errors", [])})


async def caller_of(credentials: Any, text: str) -> Caller | None:
    """The caller of an API key or a token, None for an invalid one."""
    try:
        found: Caller = await credentials.caller(text)
    except InvalidCredential:
        return None
    return found
