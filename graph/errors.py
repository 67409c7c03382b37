"""How errors are told to clients: a code, a sentence, where it happened, and never Python's words."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from graphql import GraphQLError, GraphQLSyntaxError

from store.errors import (
    UNCERTAIN_HINT,
    CladeError,
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
# Clients of persisted queries know these two, and send the whole text when they get one.
NO_SUCH_DOCUMENT = "PERSISTED_QUERY_NOT_FOUND"
NO_DOCUMENTS = "PERSISTED_QUERY_NOT_SUPPORTED"
INTERNAL = "INTERNAL_SERVER_ERROR"
UNAVAILABLE = Unavailable.code

UNREADABLE_MESSAGE = "A value in the request cannot be read; see the type of the argument or variable that it is for."
NESTED_MESSAGE = "The query is nested too deeply to be answered; ask for its lower part in a request of its own."
INTERNAL_MESSAGE = "Something went wrong inside the server."
UNCERTAIN = {"uncertain": True}
"""Stands in the extensions of an error of a mutation that may have been made all the same."""
STORE_MESSAGE = "The store cannot answer now; try again later. The server's log says what is amiss."

MAX_MESSAGE_CHARACTERS = 1_000
MAX_ALIKE = 100  # errors of one code in one answer; a list of too many lists would have one for each

_FOUND = re.compile(r", found: .*", re.DOTALL)
_CANNOT = re.compile(r"(cannot represent [\w -]*value): .*", re.DOTALL)
_EXPECTED, _NOT_NONE = "Expected value of type", " not to be None."  # graphql-core's words

logger = logging.getLogger("clade")


def format_error(error: GraphQLError) -> dict[str, Any]:
    """An error as it stands in an answer's `errors`. What Clade did not foresee is told in one general sentence."""
    cause = cause_of(error)
    told: dict[str, Any] = {"message": cut(error.message)}
    if error.locations:
        told["locations"] = [{"line": location.line, "column": location.column} for location in error.locations]
    if error.path is not None:
        told["path"] = error.path
    told["extensions"] = {"code": code_of(cause)}
    if isinstance(cause, Uncertain):
        told["message"] = UNCERTAIN_HINT
        told["extensions"] |= UNCERTAIN
    elif isinstance(cause, Unavailable):
        told["message"] = STORE_MESSAGE
    elif isinstance(cause, RecursionError):
        told["message"] = NESTED_MESSAGE
    elif isinstance(cause, GraphQLError):
        told["extensions"] |= error.extensions or {}
    elif not isinstance(cause, CladeError):
        told["message"] = INTERNAL_MESSAGE
    return told


def code_of(cause: Exception) -> str:
    """The code of an error that `cause_of` has found."""
    if isinstance(cause, CladeError):
        return cause.code
    if isinstance(cause, GraphQLSyntaxError):
        return PARSE_FAILED
    if isinstance(cause, GraphQLError):
        return str((cause.extensions or {}).get("code", BAD_USER_INPUT))
    return BAD_USER_INPUT if isinstance(cause, RecursionError) else INTERNAL


def cut(message: str) -> str:
    """A message of a length that one reads; GraphQL's own repeat whatever name they were sent."""
    return message if len(message) <= MAX_MESSAGE_CHARACTERS else f"{message[:MAX_MESSAGE_CHARACTERS]}…"


def format_errors(errors: Iterable[GraphQLError], left_out: Mapping[str, int] = MappingProxyType({})) -> list[Any]:
    """All errors of an answer, of which some have been left out already, by their codes.

    Unforeseen ones are logged, each cause once: a batch that fails, fails many fields.
    """
    errors = list(errors)
    causes = {id(cause): cause for cause in map(cause_of, errors)}
    for cause in causes.values():
        if isinstance(cause, Unavailable):
            log_unavailable(cause)
        elif not isinstance(cause, CladeError | GraphQLError | RecursionError):
            log_unforeseen(cause)
    for error in errors:
        without_frames(error, unforeseen=True)
    return without_repeats(map(format_error, errors), left_out)


def without_repeats(told: Iterable[dict[str, Any]], left_out: Mapping[str, int]) -> list[dict[str, Any]]:
    """The first errors of each code, and one at the end for all others of it, which tells how many these are."""
    counts: Counter[str] = Counter()
    kept = []
    for one in told:
        code = one["extensions"]["code"]
        counts[code] += 1
        if counts[code] <= MAX_ALIKE:
            kept.append(one)
    counts.update(left_out)
    for code, count in counts.items():
        if more := max(0, count - MAX_ALIKE):
            message = f"{more:,} more fields failed with {code}; only the first {MAX_ALIKE} are told one by one."
            kept.append({"message": message, "extensions": {"code": code, "more": more}})
    return kept


def without_frames(error: BaseException, *, unforeseen: bool = False) -> None:
    """Take the frames off an error and off those that it was made of, which hold all that the request has read.

    Those of an unforeseen error stay until it is logged, unless this says otherwise.
    """
    one: BaseException | None = error
    while one is not None:
        original = one.original_error if isinstance(one, GraphQLError) else None
        if not unforeseen and original is None and not isinstance(one, CladeError | GraphQLError):
            return
        above = original or one.__context__
        one.__traceback__ = one.__context__ = one.__cause__ = None
        one = above


def log_unavailable(error: Unavailable) -> None:
    logger.warning("%s", error)  # it names tables and files, which are not the client's to know


def log_unforeseen(error: Exception) -> None:
    logger.error("A request met an unforeseen error.", exc_info=error)


def log_fault(error: Exception) -> None:
    logger.error("A compiled plan failed by a mistake of ours; the operation is interpreted instead.", exc_info=error)


def request_error(error: GraphQLError, code: str) -> GraphQLError:
    """An error that was found before anything ran, with the code of what it failed at: it is the client's.

    Also where a scalar fails in Python's words, as at an integer of 5,000 digits.
    """
    cause = cause_of(error)
    if not isinstance(cause, CladeError | GraphQLError):
        return GraphQLError(UNREADABLE_MESSAGE, error.nodes, extensions={"code": code})
    if isinstance(cause, CladeError):  # a scalar's own sentence, within one that tells the value as Python does
        error.message = f"{error.message.partition(_EXPECTED)[0]}{cause}"
    else:  # graphql-core ends its own with the value, also as Python writes it
        error.message = _CANNOT.sub(r"\1.", _FOUND.sub(".", error.message))
    error.message = error.message.replace(_NOT_NONE, " not to be null.")
    error.extensions = {**(error.extensions or {}), "code": code}
    return error


def cause_of(error: Exception) -> Exception:
    """What was raised first: GraphQL wraps it, sometimes more than once."""
    cause = error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    return cause
