"""Comparison of a response with what the oracle says, and the one name of each kind of difference."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.processes import Answer

INTERNAL = "INTERNAL_SERVER_ERROR"
BUDGETS = {"BUDGET_EXCEEDED", "LIMIT_EXCEEDED", "TIMEOUT"}
REFUSALS = {"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "LIMIT_EXCEEDED", "OPERATION_RESOLUTION_FAILURE"}
LINE_END = re.compile(r"\r\n|[\n\r]")
SPREAD = re.compile(r"\.\.\.[\s,]*(?!on\b)(\w+)")
Place = tuple[Any, ...]
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


def internal(reply: Answer, oracle: dict[str, Any] | None = None) -> Difference | None:
    """An internal error, if the oracle has none at that path: methods of users may raise."""
    raised = [error.get("path") for error in (oracle or {}).get("errors", ()) if error.get("code") == INTERNAL]
    for error in reply.errors:
        is_internal = error.get("extensions", {}).get("code") == INTERNAL and error.get("path") not in raised
        if is_internal or reply.status >= 500:
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


def difference(reply: Answer, oracle: dict[str, Any], query: str) -> Difference | None:
    """What differs between a response and the oracle's answer to a valid document."""
    if oracle["kind"] == "refused":
        promise = "docs/reference/errors.md: a variable that is invalid is a request error"
        if "data" in reply.json or not reply.errors:
            return Difference("accepted", "variables", promise, oracle["errors"], reply.json)
        return None
    if "data" not in reply.json:
        if oracle["data"] is None and not any(error.get("path") for error in oracle["errors"]):
            return None  # the fields of the root cannot be told
        return Difference(
            "refused", ",".join(reply.codes), "docs/querying.md: a valid query is answered", "data", reply.json
        )
    found = first_difference(oracle["data"], reply.json["data"])
    promise = "docs/querying.md, docs/lists.md: fields and lists are the same in every document that selects them"
    if found is not None:
        path, expected, got = found
        right = {"at": path, "value": expected, "errors": oracle["errors"][:3]}
        return Difference("data", names(path), promise, right, {"value": got, "errors": reply.errors[:3]})
    return _errors(reply, oracle, query) or bytes_of(reply)


def first_difference(expected: Any, got: Any, path: Sequence[Any] = ()) -> tuple[list[Any], Any, Any] | None:
    """The place of the innermost parts of two answers that differ, and both; None if none do."""
    if isinstance(expected, dict) and isinstance(got, dict):
        if list(expected) != list(got):
            return [*path], list(expected), list(got)
        return next((one for key in expected if (one := first_difference(expected[key], got[key], [*path, key]))), None)
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = enumerate(zip(expected, got, strict=True))
        return next((one for number, (a, b) in pairs if (one := first_difference(a, b, [*path, number]))), None)
    is_same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return None if is_same else ([*path], expected, got)


def _errors(reply: Answer, oracle: dict[str, Any], query: str) -> Difference | None:
    """Errors by the place that each makes null: where several are possible at one place, any of them is right."""
    promise = "docs/reference/errors.md: an error has the path of its field and the code of its reason"
    expected: dict[Place, list[dict[str, Any]]] = {}
    for error in oracle["errors"]:
        if error.get("path"):
            expected.setdefault(_place(error["path"], oracle["data"])[0], []).append(error)
    places: list[Place] = []
    causes: set[Place] = set()  # the places with an error that can have made them null
    for error in reply.errors:
        if not error.get("path"):
            continue
        place, order = _place(error["path"], reply.json["data"])
        where, told = names(list(place)), [reply.errors[:3], "at", error["path"]]
        if order is None:
            return Difference("not null", where, promise, "null at the path of an error", told)
        if place not in expected:
            return Difference("error", where, promise, "no error there", told)
        if found := _one_error(error, expected[place], query):
            return Difference(found, where, promise, expected[place], told)
        places.append(place)
        same = [
            one for one in expected[place] if one["path"] == error["path"] or one.get("code") in (None, _code(error))
        ]
        if same or _is_of_directive(error):  # which is met in the first node of a list that has another fault
            causes.add(place)
    orders = [_place(list(place), reply.json["data"])[1] or () for place in places]
    if orders != sorted(orders):
        return Difference("order", "errors", "errors are in the order of the response", sorted(orders), orders)
    paths = [error["path"] for error in reply.errors if error.get("path")]
    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        return Difference("twice", "errors", promise, "one error of a field", [twice[0], reply.errors[:5]])
    if left := [place for place in places if place not in causes]:
        return Difference("code", names(list(left[0])), promise, expected[left[0]], reply.errors[:3])
    missing = [place for place in expected if place not in places]
    if missing and len(expected) <= LISTED_ERRORS // 2:
        return Difference("no error", names(list(missing[0])), promise, oracle["errors"][:3], reply.errors[:3])
    return None


def met_damage(found: Difference, reply: Answer, oracle: dict[str, Any]) -> bool:
    """Whether only one side has a null because of an item that is no node: one read may serve several lists."""
    if found.kind != "data" or (found.expected["value"] is None) == (found.got["value"] is None):
        return False
    at = found.expected["at"]
    errors = oracle["errors"] if found.expected["value"] is None else reply.errors
    return any(error["path"][: len(at)] == at and error["message"].startswith("The item") for error in errors)


def met_directive(found: Difference, reply: Answer, query: str) -> bool:
    """Whether only the response has a null, because of the condition of a spread that comes again: the specification
    looks at it before it leaves out the repetition, graphql-js afterwards.
    """
    spreads = SPREAD.findall(query)
    if found.kind != "data" or found.got["value"] is not None or len(spreads) == len({*spreads}):
        return False
    at = found.expected["at"]
    return any(_is_of_directive(error) and error.get("path", [])[: len(at)] == at for error in reply.errors)


def left_out(reply: Answer) -> bool:
    """Whether there are more errors of a code than are listed. The docs do not say which ones these are."""
    return any("more" in error.get("extensions", {}) for error in reply.errors)


def further_errors(reply: Answer) -> int:
    """How many errors are below a null that has another one already: GraphQL allows them, and none is of use."""
    places = [_place(error["path"], reply.json["data"])[0] for error in reply.errors if error.get("path")]
    return len(places) - len({*places})


def _one_error(error: dict[str, Any], expected: list[dict[str, Any]], query: str) -> str | None:
    """What is wrong with an error at a place, of which the oracle has these."""
    same = [one for one in expected if one["path"] == error["path"]]
    found = error.get("locations")
    if same:
        if all(one.get("code") not in (None, _code(error)) for one in same):
            return "code"
        return None if _is_of_directive(error) or any(_is_located(found, one) for one in same) else "locations"
    names_of_keys = [part for part in error["path"] if isinstance(part, str)]
    starts = [LINE_END.split(query)[at["line"] - 1][at["column"] - 1 :] for at in found or ()]
    if error["message"].startswith("Argument "):  # which is located at the value of the argument
        return None if starts else "locations"
    return None if starts and all(start.startswith(names_of_keys[-1]) for start in starts) else "locations"


def _is_of_directive(error: dict[str, Any]) -> bool:
    """Whether it is of the argument of a directive, which may be of a field below, a fault beside another one."""
    return str(error["message"]).startswith("Argument 'if'")


def _code(error: dict[str, Any]) -> Any:
    return error.get("extensions", {}).get("code")


def _is_located(found: Any, expected: dict[str, Any]) -> bool:
    """Whether an error is where graphql-js has it; of an argument it may be at an inner value."""
    if found == expected["locations"] or not expected["message"].startswith("Argument"):
        return bool(found == expected["locations"])
    (at,), (start,) = found, expected["locations"]
    return bool((at["line"], at["column"]) >= (start["line"], start["column"]))


def _place(path: list[Any], data: Any) -> tuple[Place, tuple[int, ...] | None]:
    """The path to the null in which a path ends, and its position in the response; None if it ends in no null."""
    order: list[int] = []
    for number, part in enumerate(path):
        if data is None:
            return tuple(path[:number]), tuple(order)
        try:
            order.append(list(data).index(part) if isinstance(part, str) else part)
            data = data[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return tuple(path), None
    return tuple(path), tuple(order) if data is None else None


def bytes_of(reply: Answer) -> Difference | None:
    """What is wrong with how a body is written: without blanks, needless escapes, or a name twice."""
    body = json.loads(reply.bytes, parse_float=lambda text: f"\0{text}")
    compact = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    written = re.sub(r'"\\u0000([^"]*)"', r"\1", compact).encode()
    if written == reply.bytes:
        return None
    return Difference("bytes", "body", "responses are compact JSON", written[:2000], reply.bytes[:2000])
