"""Error codes of `extensions.code`, as documented: HTTP status, outcome of a mutation and meaning of each.

The source of the reference page; a test compares it with the codes that the code raises. The status of a response is
decided in `graph/server/endpoint.py`.
"""

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """The state of a mutation after an error at its own field, or before any field."""

    NOT_MADE = "not made"
    UNKNOWN = "unknown"
    UNKNOWN_IF_UNCERTAIN = "unknown if `extensions.uncertain` is true, else not made"


class ErrorCode(NamedTuple):
    name: str
    status: str
    meaning: str
    mutation: Outcome = Outcome.NOT_MADE


REQUEST_ERROR = "400, or 200 as `application/json`"  # GraphQL over HTTP: such a response has no `data`
FIELD_ERROR = "200"

ERROR_CODES = (
    ErrorCode("GRAPHQL_PARSE_FAILED", REQUEST_ERROR, "The document is not valid GraphQL syntax."),
    ErrorCode("GRAPHQL_VALIDATION_FAILED", REQUEST_ERROR, "The document does not match the schema."),
    ErrorCode("OPERATION_RESOLUTION_FAILURE", REQUEST_ERROR,
              "The document has several operations or none, and `operationName` selects none of them."),
    ErrorCode("LIMIT_EXCEEDED", REQUEST_ERROR,
              "The document exceeds a limit, which the message names; `extensions.limit` is its value."),
    ErrorCode("PERSISTED_QUERY_NOT_FOUND", REQUEST_ERROR, "The document or its id is not a persisted document."),
    ErrorCode("PERSISTED_QUERY_NOT_SUPPORTED", REQUEST_ERROR,
              "The request has only the id of a document, and the server has no persisted documents."),
    ErrorCode("BAD_REQUEST", "400, 404, 405, 406, 408, 413, 414, 415, 431",
              "The HTTP request is not a GraphQL request: path, method, headers, size or JSON."),
    ErrorCode("UNAUTHENTICATED", "401", "The credential is missing, invalid or not sent as `Bearer`."),
    ErrorCode("FORBIDDEN", "200, 400, or 403 for a `Host` header",
              "The server's settings or the caller's grants do not allow it."),
    ErrorCode("BAD_USER_INPUT", FIELD_ERROR, "An argument or a variable is invalid; a variable is a request error."),
    ErrorCode("BAD_PATH", FIELD_ERROR, "The path cannot exist: empty segment, forbidden character or too long."),
    ErrorCode("BAD_CURSOR", FIELD_ERROR, "The cursor is invalid, or belongs to another list."),
    ErrorCode("CURSOR_EXPIRED", FIELD_ERROR, "The cursor of the change feed is older than the feed."),
    ErrorCode("WRONG_LEVEL", FIELD_ERROR, "The node at the path has another level than the field."),
    ErrorCode("NOT_FOUND", FIELD_ERROR, "The node to change does not exist."),
    ErrorCode("ALREADY_EXISTS", FIELD_ERROR, "Another node has this path or id."),
    ErrorCode("MISPLACED", FIELD_ERROR, "The level of the node is not allowed under the parent."),
    ErrorCode("NOT_EMPTY", FIELD_ERROR, "The node to delete has children."),
    ErrorCode("TOO_LARGE", FIELD_ERROR,
              "The change exceeds the limits of one transaction and is not a move or cascade."),
    ErrorCode("CONFLICT", FIELD_ERROR,
              "The node was changed or is being moved by someone else; read again and repeat."),
    ErrorCode("BAD_DATA", FIELD_ERROR, "Stored data does not match its hierarchy; the rest of the response is valid."),
    ErrorCode("BUDGET_EXCEEDED", FIELD_ERROR,
              "The response exceeds a budget of nodes, fields, bytes or read units; the message names the setting.",
              Outcome.UNKNOWN_IF_UNCERTAIN),
    ErrorCode("OVERLOADED", "503", "The server has too many requests or connections; retry after `Retry-After`."),
    ErrorCode("TIMEOUT", FIELD_ERROR,
              "The request took longer than `CLADE_REQUEST_SECONDS` and was ended.", Outcome.UNKNOWN_IF_UNCERTAIN),
    ErrorCode("UNAVAILABLE", "200, or 503 without `data`",
              "The store does not respond, the server is stopping, or the application runs without its lifespan.",
              Outcome.UNKNOWN_IF_UNCERTAIN),
    ErrorCode("INTERNAL_SERVER_ERROR", "200, or 500 without `data`",
              "An internal error; the server's log has the details.", Outcome.UNKNOWN),
)  # fmt: skip
