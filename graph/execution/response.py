"""Response of one operation: its data, errors and extensions, and the JSON that clients receive."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import ExecutionResult, GraphQLError, OperationDefinitionNode, OperationType
from orjson import dumps

from graph.errors import (
    BAD_USER_INPUT,
    INTERNAL,
    INTERNAL_MESSAGE,
    NESTED_MESSAGE,
    NO_OPERATION,
    TIMEOUT,
    UNAVAILABLE,
    UNCERTAIN,
    UNCERTAIN_HINT,
    codes_of,
    format_errors,
    request_error,
)
from resolvers.session.budget import Budget
from store.errors import BudgetExceeded


@dataclass(slots=True)
class OperationResponse:
    """The response of an operation, or of a request that was rejected before its operation ran."""

    body: dict[str, Any]
    """GraphQL's response map: `errors` if there are any, `data` if it was executed, and requested `extensions`."""
    executed: bool
    """Whether the operation was executed; false for a request error, whose response has no `data`."""
    json: bytes | None = None
    """The response of a query that was executed, as JSON; `body` then has only what is added to it."""
    etag: str = ""
    """The entity tag of `json`, if it is known already."""
    partitions: Collection[str] = ()
    """The trees and hierarchies whose versions prove that `json` is current; empty if nothing proves it."""
    codes: Sequence[str] = ()
    """The codes of its errors, each once."""
    _content: bytes | None = None

    def measure(self, budget: Budget) -> None:
        """Serialize the body, once. Raises ResponseTooLarge."""
        self._content = dumps(self.body)
        budget.check_size(len(self._content))

    def content(self) -> bytes:
        """The whole response as JSON."""
        if self.json is None:
            return dumps(self.body) if self._content is None else self._content
        return self.json[:-1] + b"," + dumps(self.body)[1:] if self.body else self.json


def interpreted(result: ExecutionResult, context: Any, extensions: dict[str, Any]) -> OperationResponse:
    """The response of an interpreted operation."""
    errors = result.errors or []
    # Only errors of variables have no path. Errors of fields have one, also if `data` is null because of them.
    if result.data is None and all(error.path is None for error in errors):
        return rejected(request_error(error, BAD_USER_INPUT) for error in errors)
    formatted = format_errors(errors, context.errors_left_out)
    body: dict[str, Any] = {"errors": formatted} if errors else {}
    return OperationResponse({**body, "data": result.data, **extensions}, executed=True, codes=codes_of(formatted))


def rejected(errors: Iterable[GraphQLError]) -> OperationResponse:
    """The response of a request whose operation was not executed."""
    formatted = format_errors(errors)
    return OperationResponse({"errors": formatted}, executed=False, codes=codes_of(formatted))


def failed(message: str, code: str, *, may_be_made: bool = False, **extensions: Any) -> OperationResponse:
    """The response of an operation that was stopped; `may_be_made` is for a mutation that the store may have made."""
    if may_be_made:
        message = f"{message} {UNCERTAIN_HINT}"
    error = GraphQLError(message, extensions={"code": code, **(UNCERTAIN if may_be_made else {})})
    body = {"errors": format_errors([error]), "data": None, **extensions}
    return OperationResponse(body, executed=True, codes=[code])


def failed_unexpectedly(error: Exception, extensions: dict[str, Any]) -> OperationResponse:
    """The response of a query that met an error of the server, or that is nested too deeply for it."""
    if isinstance(error, RecursionError):
        return failed(NESTED_MESSAGE, BAD_USER_INPUT, **extensions)
    return failed(INTERNAL_MESSAGE, INTERNAL, **extensions)


def timed_out(operation: OperationDefinitionNode, seconds: float) -> OperationResponse:
    message = f"The request took longer than {seconds:g} seconds and was stopped"
    if operation.operation is OperationType.MUTATION:
        return failed(f"{message}.", TIMEOUT, may_be_made=True)
    return failed(f"{message}; request less, or raise CLADE_REQUEST_SECONDS.", TIMEOUT)


def too_large(
    error: BudgetExceeded, operation: OperationDefinitionNode, extensions: dict[str, Any]
) -> OperationResponse:
    """The response if the budget of fields, bytes or read units is exceeded."""
    is_mutation = operation.operation is OperationType.MUTATION
    return failed(str(error), error.code, may_be_made=is_mutation, **extensions)


def moved_meanwhile() -> OperationResponse:
    return failed("Concurrent moves prevented a consistent read; retry.", UNAVAILABLE)


def no_operation(name: str | None) -> OperationResponse:
    message = (
        "The document must have exactly one operation; otherwise select one with operationName."
        if name is None
        else f'The document has no operation "{name}".'
    )
    return rejected([GraphQLError(message, extensions={"code": NO_OPERATION})])
