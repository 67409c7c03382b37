"""Kinds of values: the stored form of each, its parser, and the check of what is stored.

A stored value is JSON: text, an integer, a float, a boolean, an object, or a list of one of these. Dates, times,
decimals, URLs and members of an enum are stored as text in one canonical form, which is also the one that clients see.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import cast
from urllib.parse import urlsplit

Value = str | int | float | bool | list["Value"] | dict[str, "Value"] | None

MAX_TEXT_CHARACTERS = 16_384  # of a name, and of a text unless its attribute says otherwise
MAX_DECIMAL_DIGITS = 38  # as many as a DynamoDB number can hold
MAX_URL_CHARACTERS = 2_048  # what browsers and servers take in any case
_INT = 2**31
_LONG = 2**63
_NOT_IN_URLS = re.compile(r"[\s\x00-\x20\x7f<>\"\\^`{|}]")
_NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Kind(StrEnum):
    """Kinds by the names of their GraphQL types; enums and nested values have types of their own."""

    TEXT = "String"
    INT = "Int"
    LONG = "Long"
    FLOAT = "Float"
    DECIMAL = "Decimal"
    BOOLEAN = "Boolean"
    DATE = "Date"
    DATETIME = "DateTime"
    URL = "Url"
    ENUM = "Enum"
    MONEY = "Money"
    LOCALIZED = "Localized"
    NESTED = "Nested"


NUMBERS = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DECIMAL})
ORDERED = NUMBERS | {Kind.DATE, Kind.DATETIME}
"""Kinds with a minimum and a maximum."""

TEXTS = frozenset({Kind.TEXT, Kind.URL})
"""Kinds with a pattern."""

COMPOUND = frozenset({Kind.MONEY, Kind.LOCALIZED, Kind.NESTED})
"""Kinds whose values are objects."""


def ordered(kind: Kind, value: Value) -> Decimal | float | str | datetime:
    """A valid value of an ordered kind as one that compares with others of its kind."""
    match kind:
        case Kind.DECIMAL:
            return Decimal(str(value))
        case Kind.DATETIME:
            return datetime.fromisoformat(str(value))
        case Kind.DATE:
            return str(value)
        case _:
            return cast(int | float, value)


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
        int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value) else None
    )


def _float(value: object) -> Value:
    if isinstance(value, str):
        return float(_numeral(value))
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


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


def _url(value: object) -> Value:
    """An absolute URL of http or https, without white space."""
    text = _stripped(value)
    text.encode()  # raises UnicodeEncodeError for a lone surrogate
    parts = urlsplit(text)
    is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    _ = parts.port  # raises ValueError for one that is no port
    return text if is_web and len(text) <= MAX_URL_CHARACTERS and not _NOT_IN_URLS.search(text) else None


def _numeral(text: str) -> str:
    """ASCII digits only; Python would also take `1_000` and digits of other scripts."""
    if not _NUMERAL.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _stripped(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value.strip()


PARSE: dict[Kind, Callable[[object], Value]] = {
    Kind.TEXT: _text,
    Kind.INT: _whole,
    Kind.LONG: _whole,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.URL: _url,
    Kind.ENUM: _stripped,
}

IS_CANONICAL: dict[Kind, Callable[[object, int], bool]] = {
    Kind.TEXT: lambda value, characters: type(value) is str and value.isascii() and len(value) <= characters,
    Kind.INT: lambda value, _: type(value) is int and -_INT <= value < _INT,
    Kind.LONG: lambda value, _: type(value) is int and -_LONG <= value < _LONG,
    Kind.FLOAT: lambda value, _: type(value) is float and (1e-130 <= value < 1e126 or -1e126 < value <= -1e-130),
    Kind.BOOLEAN: lambda value, _: type(value) is bool,
}
"""Whether a value from outside is certainly valid and in canonical form, of at most so many characters. Most values of
a file are, and need no parser.
"""


# -- validation of stored values ---------------------------------------------------------------------------------------


def _is_whole(value: Value, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


def _is_float(value: Value) -> bool:
    """A finite number that DynamoDB can hold: with an exponent from -130 to 125."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
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


VALID: dict[Kind, Callable[[Value], bool]] = {
    Kind.TEXT: lambda value: isinstance(value, str),
    Kind.INT: lambda value: _is_whole(value, _INT),
    Kind.LONG: lambda value: _is_whole(value, _LONG),
    Kind.FLOAT: _is_float,
    Kind.DECIMAL: _is_decimal,
    Kind.BOOLEAN: lambda value: isinstance(value, bool),
    Kind.DATE: _is_canonical(_date),
    Kind.DATETIME: _is_canonical(_datetime),
    Kind.URL: _is_canonical(_url),
}
