"""User errors: the faults of a mutation's input as data, since gateways may redact the extensions of errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import strawberry

from graph.hierarchies.names import camel
from graph.types.field import attribute_of, field, object_type
from store.errors import BadInput, BudgetExceeded, CladeError, Conflict, Faults

_MEANINGS = {
    "BAD_USER_INPUT": "A value is missing or invalid, or breaks a rule of its attribute.",
    "BAD_PATH": "The path cannot exist: empty segment, forbidden character or too long.",
    "WRONG_LEVEL": "The node has another level.",
    "NOT_FOUND": "The node does not exist.",
    "ALREADY_EXISTS": "Another node has this path or id.",
    "MISPLACED": "The level of the node is not allowed under the parent.",
    "NOT_EMPTY": "The node to delete has children.",
    "TOO_LARGE": "The change exceeds the limits of one transaction.",
    "CONFLICT": "The node was changed, or is being moved, by someone else.",
}
_make: Any = Enum  # mypy follows only enums that are written out
_CODES = {code: strawberry.enum_value(code, description=text) for code, text in _MEANINGS.items()}
UserErrorCode: Any = strawberry.enum(_make("UserErrorCode", _CODES), description="The kinds of faults of an input.")


@dataclass(frozen=True)
class UserError:
    """One fault: `field` is the path to it in the input of its edit, by names as in the schema, None for the whole.

    `rule` is the rule that an attribute breaks, `edit` the place of the edit in a batch.
    """

    code: Any
    message: str
    field: Sequence[str] | None
    rule: str | None
    edit: int | None


USER_ERROR: Any = object_type(
    "UserError",
    "A fault of a mutation's input.",
    {
        "code": field(attribute_of("code"), UserErrorCode, "Kind of the fault."),
        "message": field(attribute_of("message"), str, "What is wrong, and the way out; may change in any version."),
        "field": field(
            attribute_of("field"), list[str] | None,
            'Path of the value in the input, such as ["attributes", "city", "population"]; null for the whole input.',
        ),
        "rule": field(
            attribute_of("rule"), str | None,
            "Broken rule of the attribute: required, minimum, maximum, pattern or maxLength; else null.",
        ),
        "edit": field(attribute_of("edit"), int | None, "Place of the edit among `edits`, from 0; else null."),
    },
)  # fmt: skip


def user_errors(error: CladeError, members: Sequence[str | None], *, is_batch: bool) -> list[UserError]:
    """The faults of an input. Raises the error where it is none of the input: rights, budgets and failures.

    `members` are the fields of `attributes` for the levels of the edits, which the store knows by the attributes alone.
    """
    if isinstance(error, BudgetExceeded) or not isinstance(error, BadInput | Conflict):
        raise error
    return [
        UserError(
            UserErrorCode(one.code), str(one), [camel(name) for name in _field(one, members)] or None,
            None if one.rule is None else camel(one.rule), one.edit if is_batch else None,
        )
        for one in (error.errors if isinstance(error, Faults) else [error])
    ]  # fmt: skip


def _field(error: CladeError, members: Sequence[str | None]) -> Sequence[str]:
    match error.field:
        case ("attributes", name) if (member := members[error.edit or 0]) is not None:
            return "attributes", member, name
        case found:
            return found
