"""graphql-core alone: queries that it executes whole, to compare the responses of plans with."""

from collections.abc import Callable
from typing import Any

import orjson
from strawberry import Schema

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Call, Execution, MoveCommitted
from graph.execution.response import OperationResponse
from graph.operation.graphql_core import core_schema


class GraphQLCore(Execution):
    """An execution that has no plans: each query is executed as mutations are."""

    def __init__(self, schema: Schema, make_context: Callable[[], Any], **options: Any) -> None:
        super().__init__(schema, make_context, PlanCache(core_schema(schema), {}), **options)

    async def _query(self, call: Call, context: Any) -> OperationResponse:
        context.how = "interpreted"
        result = await self._executed(call, context)
        if not await context.is_steady():
            raise MoveCommitted
        return self._interpreted(result, call, context)


def executing(
    schema: Schema, make_context: Callable[[], Any], plans: PlanCache | None = None, **options: Any
) -> Execution:
    """The execution by plans, or by graphql-core alone."""
    return (
        GraphQLCore(schema, make_context, **options)
        if plans is None
        else Execution(schema, make_context, plans, **options)
    )


def body_of(answer: OperationResponse) -> dict[str, Any]:
    """A response as a client reads it."""
    body: dict[str, Any] = orjson.loads(answer.content())
    return body
