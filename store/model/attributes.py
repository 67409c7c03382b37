"""Attribute types: parsing, canonical form and validation of the values of a level's own attributes.

A stored value is JSON: text, a whole number, a float, a boolean, or a list of one of these. Dates, times, decimals and
members of an enum are stored as text in one canonical form, which is also the one that clients see.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from store.errors import BadInput
from store.text import shorten

Value = str | int | float | bool | list["Value"] | dict[str, "Value"] | None

MAX_TEXT_CHARACTERS = 16_384  # of a name, and of a text unless its attribute says otherwise
MAX_DECIMAL_DIGITS = 38  # as many as a DynamoDB number can hold
_INT = 2**31
_LONG = 2**63
_NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Kind(StrEnum):
    """Kinds by the names of their GraphQL types; an enum has a type of its own."""

    TEXT = "String"
    INT = "Int"
    LONG = "Long"
    FLOAT = "Float"
    DECIMAL = "Decimal"
    BOOLEAN = "Boolean"
    DATE = "Date"
    DATETIME = "DateTime"
    ENUM = "Enum"


NUMBERS = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DECIMAL})


@dataclass(frozen=True)
class Attribute:
    """An attribute of a level, beside those that every node has.

    `name` is snake_case, as in Python, files and the table. `many` makes it a list. `members` and `enum` are the values
    and the name of an enum. `max_length` is the maximum number of characters of a text, or of each in a list, when it
    is written; stored texts may be longer. With `search` its words are found by search.
    """

    name: str
    kind: Kind
    description: str
    many: bool = False
    members: frozenset[str] = frozenset()
    enum: str = ""
    max_length: int = MAX_TEXT_CHARACTERS
    search: bool = False

    def parse(self, value: object) -> Value:
        """A value of a file or an argument in canonical form; text is parsed as the attribute's kind.

        Raises BadInput, with the attribute and the value in its message.
        """
        if not self.many:
            return self._parse_one(value)
        if isinstance(value, str):
            value = [part.strip() for part in value.split(";") if part.strip()]
        if not isinstance(value, list):
            raise BadInput(f"{self.name}: {shorten(repr(value))} is no list.")
        return [self._parse_one(element) for element in value]

    def is_valid(self, value: Value) -> bool:
        """Whether a stored value has this attribute's type, so that it can be returned."""
        if self.many:
            return isinstance(value, list) and all(map(self._is_valid_one, value))
        return self._is_valid_one(value)

    def _parse_one(self, value: object) -> Value:
        if isinstance(value, str) and len(value) > self.max_length:
            raise BadInput(
                f"{self.name} has {len(value):,} characters; at most {self.max_length:,} are taken, unless its class "
                "says attribute(…, max_length=…)."
            )
        try:
            parsed = _PARSE[self.kind](value)
        except (ValueError, TypeError, ArithmeticError):
            parsed = None
        if parsed is None or not self._is_valid_one(parsed):
            raise BadInput(f"{self.name}: {shorten(repr(value))} is no {self._expected()}.")
        return parsed

    def _is_valid_one(self, value: Value) -> bool:
        if self.kind is Kind.ENUM:
            return isinstance(value, str) and value in self.members
        return _VALID[self.kind](value)

    def _expected(self) -> str:
        match self.kind:
            case Kind.ENUM:
                return f"{self.enum} ({', '.join(sorted(self.members))})"
            case Kind.INT:
                return "Int (a whole number of 32 bits)"
            case Kind.DATE:
                return "Date (YYYY-MM-DD)"
            case Kind.DATETIME:
                return "DateTime (YYYY-MM-DDTHH:MM:SS with Z or an offset)"
            case kind:
                return kind.value


# -- parsing: text or JSON to canonical form ---------------------------------------------------------------------------


def _text(value: object) -> Value:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate
    return value


def _whole(value: object) -> Value:
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[+-]?[0-9]{1,19}", value.strip()) else None
    return (
        int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) else None
    )


def _float(value: object) -> Value:
    if isinstance(value, str):
        return float(_numeral(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _decimal(value: object) -> Value:
    """Digits without an exponent; trailing zeros are kept."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise TypeError
    number = Decimal(_numeral(str(value)))
    if not number.is_finite() or abs(number.adjusted()) >= MAX_DECIMAL_DIGITS:  # 1E9999999 would be a long text
        return None
    return f"{number:f}" if len(number.as_tuple().digits) <= MAX_DECIMAL_DIGITS else None


def _boolean(value: object) -> Value:
    if isinstance(value, str):
        words = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
        return words.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _date(value: object) -> Value:
    return date.fromisoformat(_stripped(value)).isoformat()


def _datetime(value: object) -> Value:
    """In UTC with a Z, so that equal times are equal texts."""
    moment = datetime.fromisoformat(_stripped(value))
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment.tzinfo else None


def _numeral(text: str) -> str:
    """ASCII digits only; Python would also take `1_000` and digits of other scripts."""
    if not _NUMERAL.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _stripped(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value.strip()


_PARSE: dict[Kind, Callable[[object], Value]] = {
    Kind.TEXT: _text,
    Kind.INT: _whole,
    Kind.LONG: _whole,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.ENUM: _stripped,
}


# -- validation of stored values ---------------------------------------------------------------------------------------


def _is_whole(value: Value, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


def _is_float(value: Value) -> bool:
    """A finite number that DynamoDB can hold: with an exponent from -130 to 125."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and (value == 0 or 1e-130 <= abs(value) < 1e126)


def _is_decimal(value: Value) -> bool:
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _is_canonical(parse: Callable[[object], Value]) -> Callable[[Value], bool]:
    def check(value: Value) -> bool:
        try:
            return isinstance(value, str) and parse(value) == value
        except (ValueError, ArithmeticError):
            return False

    return check


_VALID: dict[Kind, Callable[[Value], bool]] = {
    Kind.TEXT: lambda value: isinstance(value, str),
    Kind.INT: lambda value: _is_whole(value, _INT),
    Kind.LONG: lambda value: _is_whole(value, _LONG),
    Kind.FLOAT: _is_float,
    Kind.DECIMAL: _is_decimal,
    Kind.BOOLEAN: lambda value: isinstance(value, bool),
    Kind.DATE: _is_canonical(_date),
    Kind.DATETIME: _is_canonical(_datetime),
}
