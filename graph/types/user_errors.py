"""User errors: the faults of a mutation's input as data, since gateways may redact the extensions of errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graph.errors import USER_ERROR_CODES
from graph.hierarchies.registry import camel
from graph.types.fields import attribute_of, enum_class, field, object_type
from store.errors import MAX_FAULTS, BadValue, CladeError, Fault, FaultList, Faults, Rule

_CODES = {one.name: (one.name, one.meaning) for one in USER_ERROR_CODES}
UserErrorCode: Any = enum_class("UserErrorCode", _CODES, "The kinds of faults of an input.")


@dataclass(frozen=True)
class UserError:
    """One fault: `field` is the path to it in the input, by the names of the schema, None for the whole input.

    `rule` is the rule that the input breaks, `edit` the place of an edit among several.
    """

    code: Any
    message: str
    field: Sequence[str] | None
    rule: str
    edit: int | None = None


USER_ERROR: Any = object_type(
    "UserError",
    f"A fault of a mutation's input; one after {MAX_FAULTS} says that there are more.",
    {
        "code": field(attribute_of("code"), UserErrorCode, "Kind of the fault."),
        "message": field(attribute_of("message"), str, "What is wrong, and the way out; may change in any version."),
        "field": field(
            attribute_of("field"), list[str] | None,
            'Path of the value in the input, such as ["attributes", "city", "population"] or ["names", "0", "text"]; '
            "null for the whole input.",
        ),
        "rule": field(
            attribute_of("rule"), str | None,
            "Broken rule of the documented list, such as required, type or taken.",
        ),
        "edit": field(attribute_of("edit"), int | None, "Place of the edit among several, from 0; null for one alone."),
    },
)  # fmt: skip


def user_errors(error: CladeError, members: Sequence[str | None]) -> list[UserError]:
    """The faults of an input. Raises the error where it is none of the input: rights, budgets and failures.

    `members` are for each edit the field of `attributes` for the level of the node, which the store knows by the
    attributes alone.
    """
    if not isinstance(error, Fault | Faults):
        raise error
    faults = FaultList()
    faults.add(error)
    if len(faults.errors) > MAX_FAULTS:
        text = f"The input has more faults than these {MAX_FAULTS}; mend them, and send it again to see the others."
        faults = FaultList([*faults.errors[:MAX_FAULTS], BadValue(text, Rule.MORE)])
    return [
        UserError(
            UserErrorCode(one.code), str(one), [camel(name) for name in _field(one, members)] or None, one.rule.value,
            one.edit,
        )
        for one in faults.errors
    ]  # fmt: skip


def _field(error: Fault, members: Sequence[str | None]) -> Sequence[str]:
    match error.field:
        case ("attributes", *inner) if inner and (member := members[error.edit or 0]) is not None:
            return "attributes", member, *inner
        case found:
            return found
