"""Errors in responses: a code, a message and a location; an unexpected error becomes one general message.

`code_of` gives every error its code: errors of the store and the resolvers have one of their own (`store/errors.py`),
those of graphql-core in their extensions. `ERROR_CODES` is the documented list of codes, with HTTP status, meaning and
outcome of a mutation, `RULES` that of the rules of user errors: the source of the reference page, compared by a test
with the codes and rules that the code has. The
status of a response is decided in `graph/server/endpoint.py`.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from graphql import GraphQLError, GraphQLSyntaxError

from store.errors import (
    CHECK_HINT,
    MAX_FAULTS,
    CladeError,
    DamagedItem,
    IndexBehind,
    NotIndexed,
    Rule,
    Unavailable,
    Uncertain,
)

PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
BAD_USER_INPUT = "BAD_USER_INPUT"
BAD_REQUEST = "BAD_REQUEST"
UNAUTHENTICATED = "UNAUTHENTICATED"
NO_OPERATION = "OPERATION_RESOLUTION_FAILURE"
LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
TIMEOUT = "TIMEOUT"
OVERLOADED = "OVERLOADED"
# The codes of Apollo's persisted queries: clients send the document's text when they receive one of them.
NO_SUCH_DOCUMENT = "PERSISTED_QUERY_NOT_FOUND"
NO_DOCUMENTS = "PERSISTED_QUERY_NOT_SUPPORTED"
INTERNAL = "INTERNAL_SERVER_ERROR"
UNAVAILABLE = Unavailable.code
NOT_INDEXED = NotIndexed.code

SERVER_ERRORS = frozenset({INTERNAL, NOT_INDEXED, OVERLOADED, TIMEOUT, UNAVAILABLE})
"""The codes of errors that the client did not cause."""

UNREADABLE_MESSAGE = "Invalid value in the request; see the type of its argument or variable."
NESTED_MESSAGE = "The query is nested too deeply; request the lower part in a second request."
INTERNAL_MESSAGE = "Internal server error."
UNCERTAIN = {"uncertain": True}
"""Extensions of a mutation's error if the mutation may have been made."""
UNCERTAIN_HINT = "It is unknown whether the change was made; read the node, or retry with the same idempotencyKey."
ITEM_MESSAGE = f"A stored item is damaged; the server's log has its key. {CHECK_HINT}"
REPAIR_HINT = "Run clade repair, which writes them; all else is served."
"""The way out where search items are missing."""
STORE_MESSAGE = "The store is unavailable; retry later. The server's log has the reason."

MAX_MESSAGE_CHARACTERS = 1_000
MAX_ERRORS_PER_CODE = 100  # in one response: a list of failed lists would have one error for each

_FOUND = re.compile(r", found: .*", re.DOTALL)
_CANNOT = re.compile(r"(cannot represent [\w -]*value): .*", re.DOTALL)
_EXPECTED, _NOT_NONE = "Expected value of type", " not to be None."  # from graphql-core's messages

Header = tuple[bytes, bytes]
"""A header of HTTP: name and value."""

logger = logging.getLogger("clade")


class RequestRejected(Exception):
    """An HTTP request that is rejected; the client receives status, message, code and headers, the log `reason`."""

    reason: str | None = None

    def __init__(self, status: int, message: str, *headers: Header, code: str = BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


def code_of(error: Exception) -> str:
    """The code of an error, which is that of its cause."""
    cause = cause_of(error)
    if isinstance(cause, CladeError):
        return cause.code
    if isinstance(cause, GraphQLSyntaxError):
        return PARSE_FAILED
    if isinstance(cause, GraphQLError):
        return str((cause.extensions or {}).get("code", BAD_USER_INPUT))
    return BAD_USER_INPUT if isinstance(cause, RecursionError) else INTERNAL


def cause_of(error: Exception) -> Exception:
    """The exception that was raised first; GraphQL may wrap it more than once."""
    cause = error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    return cause


def failure_of(error: Exception) -> str | None:
    """The code of an error that the client did not cause; None for other errors."""
    code = code_of(error)
    return code if code in SERVER_ERRORS else None


def format_errors(
    errors: Iterable[GraphQLError], left_out: Mapping[str, int] = MappingProxyType({}), *, is_restricted: bool = False
) -> list[Any]:
    """The `errors` of a response: the first of each code, and one entry with the number of all others of that code.

    `left_out` counts, by code, errors that were dropped before. Unexpected errors are logged once for each cause: a
    failed batch fails many fields. Callers who are restricted to a part of the nodes receive no keys of damaged items.
    """
    errors = list(errors)
    causes = {id(cause): cause for cause in map(cause_of, errors)}
    for cause in causes.values():
        if isinstance(cause, Unavailable | DamagedItem | NotIndexed):
            log_unreadable(cause)
        elif not isinstance(cause, CladeError | GraphQLError | RecursionError):
            log_unexpected(cause)
    counts: Counter[str] = Counter()
    first = []
    for error in errors:
        without_frames(error, unexpected=True)
        entry = _format_error(error)
        if is_restricted and isinstance(cause_of(error), DamagedItem):
            entry["message"] = ITEM_MESSAGE  # the key may be of a node that the caller must not know of
        code = entry["extensions"]["code"]
        counts[code] += 1
        if counts[code] <= MAX_ERRORS_PER_CODE:
            first.append(entry)
    counts.update(left_out)
    for code, count in counts.items():
        if more := max(0, count - MAX_ERRORS_PER_CODE):
            message = f"{more:,} more fields failed with {code}; only the first {MAX_ERRORS_PER_CODE} are listed."
            first.append({"message": message, "extensions": {"code": code, "more": more}})
    return first


def _format_error(error: GraphQLError) -> dict[str, Any]:
    """The entry of an error in the `errors` of a response."""
    cause = cause_of(error)
    message = error.message  # graphql-core's repeat names of any length from the document
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[:MAX_MESSAGE_CHARACTERS]}…"
    entry: dict[str, Any] = {"message": message}
    if error.locations:
        entry["locations"] = [{"line": location.line, "column": location.column} for location in error.locations]
    if error.path is not None:
        entry["path"] = error.path
    entry["extensions"] = {"code": code_of(cause)}
    if isinstance(cause, Uncertain):
        entry["message"] = UNCERTAIN_HINT
        entry["extensions"] |= UNCERTAIN
    elif isinstance(cause, Unavailable) and not isinstance(cause, IndexBehind):
        entry["message"] = STORE_MESSAGE
    elif isinstance(cause, NotIndexed):
        entry["message"] = f"{message} {REPAIR_HINT}"
    elif isinstance(cause, RecursionError):
        entry["message"] = NESTED_MESSAGE
    elif isinstance(cause, GraphQLError):
        entry["extensions"] |= error.extensions or {}
    elif not isinstance(cause, CladeError):
        entry["message"] = INTERNAL_MESSAGE
    return entry


def request_error(error: GraphQLError, code: str) -> GraphQLError:
    """The error with this code and without Python's representations of values; for errors before execution.

    A scalar may also fail with an exception of Python, for example on an integer of 5,000 digits.
    """
    cause = cause_of(error)
    if not isinstance(cause, CladeError | GraphQLError):
        return GraphQLError(UNREADABLE_MESSAGE, error.nodes, extensions={"code": code})
    if isinstance(cause, CladeError):  # graphql-core puts the value and the scalar's message behind its own words
        error.message = f"{error.message.partition(_EXPECTED)[0]}{cause}"
    else:  # graphql-core ends its messages with the value in Python's notation
        error.message = _CANNOT.sub(r"\1.", _FOUND.sub(".", error.message))
    error.message = error.message.replace(_NOT_NONE, " not to be null.")
    error.extensions = {**(error.extensions or {}), "code": code}
    return error


def error_body(message: str, code: str, extensions: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """The JSON body of a response with one error and no data."""
    return orjson.dumps({"errors": [{"message": message, "extensions": {"code": code, **extensions}}]})


def without_frames(error: BaseException, *, unexpected: bool = False) -> None:
    """Remove the tracebacks of an error and of its causes, whose frames hold all that the request has read.

    An unexpected error keeps its traceback, for the log, unless `unexpected` is set.
    """
    current: BaseException | None = error
    while current is not None:
        original = current.original_error if isinstance(current, GraphQLError) else None
        if not unexpected and original is None and not isinstance(current, CladeError | GraphQLError):
            return
        cause = original or current.__context__
        current.__traceback__ = current.__context__ = current.__cause__ = None
        current = cause


def log_unreadable(error: Unavailable | DamagedItem | NotIndexed) -> None:
    logger.warning("%s", error)  # the message names tables and files, so clients do not receive it


def log_unexpected(error: Exception) -> None:
    logger.error("Unexpected error in a request.", exc_info=error)


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
UNKNOWN_DOCUMENT = "200, or 400 if `application/json` is not accepted"
FIELD_ERROR = "200"
USER_ERROR = "200, in `userErrors`"  # of the payload of a mutation
BOTH = "200, of a mutation in `userErrors`"

ERROR_CODES = (
    ErrorCode("GRAPHQL_PARSE_FAILED", REQUEST_ERROR, "The document is not valid GraphQL syntax."),
    ErrorCode("GRAPHQL_VALIDATION_FAILED", REQUEST_ERROR, "The document does not match the schema."),
    ErrorCode("OPERATION_RESOLUTION_FAILURE", REQUEST_ERROR,
              "The document has several operations or none, and `operationName` selects none of them."),
    ErrorCode("LIMIT_EXCEEDED", REQUEST_ERROR,
              "The document exceeds a limit, which the message names; `extensions.limit` is its value."),
    ErrorCode("PERSISTED_QUERY_NOT_FOUND", UNKNOWN_DOCUMENT,
              "The request has only the id of a document, which is no persisted one; send the text."),
    ErrorCode("PERSISTED_QUERY_NOT_SUPPORTED", UNKNOWN_DOCUMENT,
              "The request has only the id of a document, and the server has no persisted documents; send the text."),
    ErrorCode("BAD_REQUEST", "400, 404, 405, 406, 408, 413, 414, 415, 431",
              "The HTTP request is not a GraphQL request: path, method, headers, size or JSON."),
    ErrorCode("UNAUTHENTICATED", "401", "The credential is missing, invalid or not sent as `Bearer`."),
    ErrorCode("FORBIDDEN", "200, 400, or 403 for a `Host` header",
              "The server's settings or the caller's grants do not allow it."),
    ErrorCode("BAD_USER_INPUT", BOTH, "An argument or a variable is invalid; a variable is a request error."),
    ErrorCode("BAD_PATH", BOTH, "The path cannot exist: empty segment, forbidden character or too long."),
    ErrorCode("BAD_CURSOR", FIELD_ERROR, "The cursor is invalid, or belongs to another list."),
    ErrorCode("CURSOR_EXPIRED", FIELD_ERROR, "The cursor of the change feed is older than the feed."),
    ErrorCode("WRONG_LEVEL", BOTH, "The node has another level than the field or input."),
    ErrorCode("NOT_FOUND", USER_ERROR, "A node that the input names does not exist."),
    ErrorCode("ALREADY_EXISTS", USER_ERROR, "Another node has this path or id."),
    ErrorCode("TAKEN", USER_ERROR, "Another node has this unique value."),
    ErrorCode("MISPLACED", USER_ERROR, "The level of the node is not allowed under the parent."),
    ErrorCode("NOT_EMPTY", USER_ERROR, "The node to delete has children."),
    ErrorCode("TOO_LARGE", USER_ERROR,
              "The change exceeds the limits of one transaction and is not a move or cascade."),
    ErrorCode("CONFLICT", USER_ERROR,
              "The node was changed or is being moved by someone else; read again and repeat."),
    ErrorCode("BAD_DATA", "200, or 500 for a damaged API key",
              "Stored data does not match its hierarchy; the rest of the response is valid. "
              "`clade check` finds it, and items that are damaged."),
    ErrorCode("NOT_INDEXED", FIELD_ERROR,
              "Items that the field needs were never written, as after `search=True` or `unique=True` of a further "
              "attribute, so that a search would not be complete, and a value perhaps not unique. "
              "Retrying is no use; `clade repair` writes them."),
    ErrorCode("BUDGET_EXCEEDED", FIELD_ERROR,
              "The response exceeds a budget of nodes, fields, bytes or read units; the message names the setting.",
              Outcome.UNKNOWN_IF_UNCERTAIN),
    ErrorCode("OVERLOADED", "503",
              "The server has too many requests or connections, or did not begin the request in time; retry after "
              "`Retry-After`."),
    ErrorCode("TIMEOUT", FIELD_ERROR,
              "The request took longer than `CLADE_REQUEST_SECONDS` and was ended.", Outcome.UNKNOWN_IF_UNCERTAIN),
    ErrorCode("UNAVAILABLE", "200, or 503 without `data`",
              "The store does not respond, the server is stopping, or the application runs without its lifespan.",
              Outcome.UNKNOWN_IF_UNCERTAIN),
    ErrorCode("INTERNAL_SERVER_ERROR", "200, or 500 without `data`",
              "An internal error; the server's log has the details.", Outcome.UNKNOWN),
)  # fmt: skip

USER_ERROR_CODES = tuple(one for one in ERROR_CODES if one.status in (USER_ERROR, BOTH))
"""The codes of faults of an input."""

RULES = {
    Rule.REQUIRED: "A value is missing: none is given, or null.",
    Rule.EMPTY: "A text has no character, a name only blanks, or a key none that is seen.",
    Rule.TYPE: "The value is not of its type, such as no number, date, currency or language tag, or out of its range.",
    Rule.MINIMUM: "The value is less than the attribute's `minimum`.",
    Rule.MAXIMUM: "The value is more than the attribute's `maximum`.",
    Rule.MAX_LENGTH: "The text, key, id or path is too long; of an attribute `maxLength` is the limit.",
    Rule.MAX_ITEMS: "The list has too many elements, such as languages.",
    Rule.PATTERN: "The text does not match the attribute's `pattern`.",
    Rule.CHARACTERS: "The text, key or id has a character that may not be there, or a key a blank too many.",
    Rule.DUPLICATE: "The list has something twice, such as a language.",
    Rule.PATH: "The text is no path: a key in it is empty, or a % alone.",
    Rule.DEPTH: "The node, or one below it, would be too deep.",
    Rule.MISSING: "There is no such node.",
    Rule.TAKEN: "Another node has this path or id; another change had this `idempotencyKey`.",
    Rule.LEVEL: "The node has another level.",
    Rule.MISPLACED: "The node may not stand there: its level not below this parent, or none below itself.",
    Rule.SIBLING: "The node of `before` or `after` is not a sibling of the same level.",
    Rule.NOT_EMPTY: "The node to delete has children.",
    Rule.TOO_LARGE: "The node, or the change, is larger than what can be stored at once.",
    Rule.CONFLICT: "Somebody else has changed the node, or is moving it now.",
    Rule.MORE: f"The input has more faults than the {MAX_FAULTS} that are told.",
}
"""The meanings of the rules that user errors have."""
