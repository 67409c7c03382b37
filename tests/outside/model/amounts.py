"""Amounts that updates add: which are possible, and what comes of them."""

import random
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from typing import Any

from tests.outside.model.values import ATTRIBUTES

Step = dict[str, Any]
FIELDS = {"SMALL": "small", "LARGE": "large", "EXACT": "exact", "GRADE": "grade"}
RANGES = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1), "grade": (0, 9)}
AMOUNTS = ("1", "-1", "2.0", "-3.00", "7", "0", "-0", str(2**31 - 1), str(-(2**31)), str(2**63 - 1), "1" + "0" * 30)
FRACTIONS = ("0.5", "-0.10", "0." + "0" * 30 + "1", "99999999999999999999999999999999999999")
MAX_DIGITS = 38  # "a decimal of 38 digits"
EXACTLY = Context(prec=200)


class Amount(str):
    """A decimal of which only the number is said, not how many zeros are behind the point."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and Decimal(self) == Decimal(other)

    def __hash__(self) -> int:
        return hash(Decimal(self))


def some_additions(chance: random.Random, level: str) -> list[Step]:
    """Amounts for some attributes, mostly for ones of the level and possible ones."""
    own = [field for field, name in FIELDS.items() if name in ATTRIBUTES[level]]
    fields = list(FIELDS) if not own or chance.random() < 0.05 else own
    found = []
    for field in chance.choices(fields, k=chance.choice((1, 1, 2, 3))):
        is_small = chance.random() < 0.7
        amount = chance.choice(AMOUNTS[:7] if is_small else AMOUNTS)
        if chance.random() < (0.5 if field == "EXACT" else 0.04):
            amount = chance.choice(FRACTIONS)
        if field not in [one["field"] for one in found] or chance.random() < 0.1:
            found.append({"field": field, "amount": amount})
    return found


def with_sums(node: Step, step: Step) -> Step:
    """The values of an update, with the sums of what it adds: a missing value counts as 0, and 0 changes nothing."""
    values = dict(step["values"])
    for one in step.get("add") or ():
        if Decimal(one["amount"]):
            name = FIELDS[one["field"]]
            values[name] = _stored(ATTRIBUTES[node["level"]][name], _sum(node, one))
    return values


def faults(node: Step, step: Step) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    """The faults of what an update adds to a node: their codes, whether they have to come, and their place."""
    seen: set[str] = set()
    for place, one in enumerate(step.get("add") or ()):
        name, where = FIELDS[one["field"]], ("add", str(place))
        kind = ATTRIBUTES[node["level"]].get(name)
        if kind is None:
            yield "WRONG_LEVEL BAD_USER_INPUT", True, where
        elif name in seen or name in step["values"]:
            yield "BAD_USER_INPUT", True, where
        elif not _fits(kind, one["amount"], _sum(node, one)):
            digits = len(_sum(node, one).normalize(EXACTLY).as_tuple().digits)
            yield "BAD_USER_INPUT", kind != "decimal" or digits > MAX_DIGITS, where
        seen.add(name)


def _sum(node: Step, one: Step) -> Decimal:
    with localcontext(EXACTLY):
        return Decimal(str(node["values"].get(FIELDS[one["field"]], 0))) + Decimal(one["amount"])


def _fits(kind: str, amount: str, total: Decimal) -> bool:
    if kind == "decimal":
        return len(total.as_tuple().digits) <= MAX_DIGITS
    least, most = RANGES[kind]
    return Decimal(amount) == int(Decimal(amount)) and least <= total <= most


def _stored(kind: str, total: Decimal) -> Any:
    return Amount(format(total, "f")) if kind == "decimal" else int(total)
