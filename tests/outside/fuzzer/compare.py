"""Comparison of a response with what the oracle says, and the one name of each kind of difference."""

import re
from dataclasses import dataclass
from typing import Any

from tests.outside.fuzzer.client import Reply

INTERNAL = "INTERNAL_SERVER_ERROR"
BUDGETS = {"BUDGET_EXCEEDED", "LIMIT_EXCEEDED", "TIMEOUT"}
REFUSALS = {"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "LIMIT_EXCEEDED", "OPERATION_RESOLUTION_FAILURE"}
LISTED_ERRORS = 100  # of one code; docs/reference/errors.md


@dataclass(frozen=True)
class Difference:
    """A broken promise: what kind, where, and the two sides."""

    kind: str
    where: str
    promise: str
    expected: Any
    got: Any


def names(path: list[Any] | None) -> str:
    """A place in a response without the indices of lists."""
    return ".".join(str(part) for part in path or () if not isinstance(part, int))


def internal(reply: Reply) -> Difference | None:
    for error in reply.errors:
        if error.get("extensions", {}).get("code") == INTERNAL or reply.status >= 500:
            promise = "docs/reference/errors.md: `INTERNAL_SERVER_ERROR` is no answer to any document"
            return Difference("internal", names(error.get("path")), promise, "no internal error", error)
        if error.get("path") and "cannot represent" in error.get("message", ""):
            promise = "docs/attributes.md: an enum has the name of a member as its value"
            message = re.sub(r"'[^']*'$", "", error["message"])
            return Difference("value", f"{names(error.get('path'))} {message}", promise, "a value of its type", error)
    return None


def within(oracle: dict[str, Any]) -> bool:
    """Whether a response is far inside of the budgets of docs/security.md, by a generous estimate."""
    weight = oracle["fields"] + 9 * oracle["nodes"]
    return not oracle["much"] and oracle["nodes"] < 4000 and weight < 50_000 and oracle["past"] < 100


def difference(reply: Reply, oracle: dict[str, Any]) -> Difference | None:
    """What differs between a response and the oracle's answer to a valid document."""
    if oracle["kind"] == "refused":
        promise = "docs/reference/errors.md: a variable that is invalid is a request error"
        if "data" in reply.body or not reply.errors:
            return Difference("accepted", "variables", promise, oracle["errors"], reply.body)
        return None
    if "data" not in reply.body:
        if oracle["data"] is None and not any(error.get("path") for error in oracle["errors"]):
            return None  # the fields of the root cannot be told
        return Difference(
            "refused", ",".join(reply.codes), "docs/querying.md: a valid query is answered", "data", reply.body
        )
    found = _values(oracle["data"], reply.body["data"], [])
    promise = "docs/querying.md, docs/lists.md: fields and lists are the same in every document that selects them"
    if found is not None:
        path, expected, got = found
        return Difference(
            "data", names(path), promise, {"at": path, "value": expected}, {"value": got, "errors": reply.errors[:3]}
        )
    return _errors(reply, oracle)


def _values(expected: Any, got: Any, path: list[Any]) -> tuple[list[Any], Any, Any] | None:
    if isinstance(expected, dict) and isinstance(got, dict):
        if list(expected) != list(got):
            return path, list(expected), list(got)
        return next((one for key in expected if (one := _values(expected[key], got[key], [*path, key]))), None)
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = enumerate(zip(expected, got, strict=True))
        return next((one for number, (a, b) in pairs if (one := _values(a, b, [*path, number]))), None)
    is_same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return None if is_same else (path, expected, got)


def _errors(reply: Reply, oracle: dict[str, Any]) -> Difference | None:
    promise = "docs/reference/errors.md: an error has the path of its field and the code of its reason"
    got = {_key(error["path"]): error.get("extensions", {}).get("code") for error in reply.errors if error.get("path")}
    expected = {_key(error["path"]): error.get("code") for error in oracle["errors"] if error.get("path")}
    for key in got:
        if key not in expected and not _is_swallowed(key, oracle["data"]):
            return Difference("error", names(list(key)), promise, "no error there", [reply.errors[:3], "at", key])
        if expected.get(key) and got[key] != expected[key]:
            return Difference("code", names(list(key)), promise, expected[key], got[key])
    if len(expected) > LISTED_ERRORS // 2:
        return None
    for key in expected:
        if key not in got and not _is_swallowed(key, oracle["data"]):
            return Difference("no error", names(list(key)), promise, oracle["errors"][:3], reply.errors[:3])
    return None


def _key(path: list[Any]) -> tuple[Any, ...]:
    return tuple(path)


def _is_swallowed(path: tuple[Any, ...], data: Any) -> bool:
    """Whether a place above this one became null, so that only one of the errors below has to be reported."""
    for number, part in enumerate(path):
        if data is None:
            return True
        data = data[part]
        if data is None and number < len(path) - 1:
            return True
    return False
