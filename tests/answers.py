"""The answer of an execution to a query, prepared as it is for one that comes by HTTP."""

from typing import Any

from graph.execution.operation import Execution
from graph.execution.response import OperationResponse
from graph.operation.document import GraphQLRequest


async def answer_to(
    execution: Execution, query: str, variables: dict[str, Any] | None = None, **options: Any
) -> OperationResponse:
    """The response; `options` are those of `Execution.answer`."""
    return await execution.answer(execution.requests.prepare(GraphQLRequest(query, variables)), **options)
