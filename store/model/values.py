"""Kinds of values: the stored form of each, its parser, and the check of what is stored; rules of attributes.

A stored value is JSON: text, an integer, a float, a boolean, an object, or a list of one of these. Dates, times,
decimals, URLs and members of an enum are stored as text in one canonical form, which is also the one that clients see.
An amount of money is stored as `{"amount": "12.50", "currency": "EUR"}`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import StrEnum
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from store.errors import Rule, shorten

Value = str | int | float | bool | list["Value"] | dict[str, "Value"] | None

MAX_TEXT_CHARACTERS = 16_384  # of a name, and of a text unless its attribute says otherwise
MAX_DECIMAL_DIGITS = 38  # as many as a DynamoDB number can hold
MAX_URL_CHARACTERS = 2_048  # what browsers and servers take in any case
INT64_BOUND = 2**63
_INT = 2**31
_NOT_IN_URLS = re.compile(r"[\s\x00-\x20\x7f<>\"\\^`{|}]")
_WHOLE = re.compile(r"[+-]?[0-9]+")
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
EXACT_NUMBERS = NUMBERS - {Kind.FLOAT}
"""Kinds of numbers to which an amount can be added without rounding."""

ORDERED = NUMBERS | {Kind.DATE, Kind.DATETIME}
"""Kinds with a minimum and a maximum."""

TEXTS = frozenset({Kind.TEXT, Kind.URL})
"""Kinds with a pattern."""

CODES = frozenset({Kind.TEXT, Kind.INT, Kind.LONG, Kind.DATE, Kind.ENUM})
"""Kinds whose values can be unique: each has one canonical form."""

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
        numeral = _numeral(value)
        found = float(numeral)
        return found if found or Decimal(numeral) == 0 else None  # 1e-400 is no 0
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_EXACT_FLOATS = 2**53  # up to this, each whole number is a float


def _decimal(value: object) -> Value:
    """Digits without an exponent; trailing zeros are kept."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise TypeError
    if is_rounded(value):
        return None
    number = Decimal(_numeral(str(value)))
    if not number.is_finite() or abs(number.adjusted()) >= MAX_DECIMAL_DIGITS:  # 1E9999999 would be a long text
        return None
    return f"{number:f}" if len(number.as_tuple().digits) <= MAX_DECIMAL_DIGITS else None


def is_rounded(value: object) -> bool:
    """Whether a number may have lost digits before it came here, as one of JSON with more than 64 bits has."""
    return isinstance(value, float) and abs(value) >= _EXACT_FLOATS


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
    Kind.LONG: lambda value, _: type(value) is int and -INT64_BOUND <= value < INT64_BOUND,
    Kind.FLOAT: lambda value, _: type(value) is float and (1e-130 <= value < 1e126 or -1e126 < value <= -1e-130),
    Kind.BOOLEAN: lambda value, _: type(value) is bool,
}
"""Whether a value from outside is certainly valid and in canonical form, of at most so many characters. Most values of
a file are, and need no parser.
"""


_EXACT = Context(prec=MAX_DECIMAL_DIGITS, traps=[Inexact])


def added(kind: Kind, value: Value, amount: Decimal) -> Value:
    """The sum of a stored value of an exact kind and an amount, in canonical form; None where it has too many digits.

    It has as many decimal places as the one with more of them, unless only zeros would exceed the digits.
    """
    try:
        total = _EXACT.add(Decimal(str(value)), amount)
    except Inexact:
        return None
    if kind is not Kind.DECIMAL:
        return int(total)
    return _decimal(total) or _decimal(total.normalize())  # of zeros alone, with more places than a decimal may have


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
    Kind.LONG: lambda value: _is_whole(value, INT64_BOUND),
    Kind.FLOAT: _is_float,
    Kind.DECIMAL: _is_decimal,
    Kind.BOOLEAN: lambda value: isinstance(value, bool),
    Kind.DATE: _is_canonical(_date),
    Kind.DATETIME: _is_canonical(_datetime),
    Kind.URL: _is_canonical(_url),
}


def is_numeral(kind: Kind, value: object) -> bool:
    """Whether a value is written as the numbers of a kind are, whether or not it is in their range."""
    is_whole = kind in (Kind.INT, Kind.LONG)
    if kind not in NUMBERS or isinstance(value, bool):
        return False
    if isinstance(value, str):
        return (_WHOLE if is_whole else _NUMERAL).fullmatch(value.strip()) is not None
    if isinstance(value, float):
        return not math.isnan(value) and (not is_whole or math.isinf(value) or value.is_integer())
    return isinstance(value, int)


# -- money -------------------------------------------------------------------------------------------------------------

_CODE = re.compile(r"[A-Z]{3}")

CURRENCIES = frozenset(
    (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE "
        "CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF "
        "GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR "
        "LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN "
        "PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS "
        "TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC "
        "XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG"
    ).split()
)
"""Codes of ISO 4217, of which XXX stands for no currency. A stored value may have another one, such as that of a
currency that exists no more.
"""


def parse_money(value: object) -> Value:
    """An object with amount and currency, or a text such as `12.50 EUR`; None for anything else.

    The amount keeps its places; it is a decimal of up to 38 digits. Raises ValueError, TypeError or ArithmeticError
    for an invalid amount.
    """
    if isinstance(value, str):
        amount, _, currency = value.strip().rpartition(" ")
        value = {"amount": amount, "currency": currency}
    if not isinstance(value, dict) or value.keys() != {"amount", "currency"}:
        return None
    found = PARSE[Kind.DECIMAL](value["amount"])
    return {"amount": found, "currency": value["currency"]} if found and value["currency"] in CURRENCIES else None


def is_money(value: Value) -> bool:
    """Whether a stored value is an amount of money."""
    if not isinstance(value, dict) or value.keys() != {"amount", "currency"}:
        return False
    currency = value["currency"]
    return VALID[Kind.DECIMAL](value["amount"]) and isinstance(currency, str) and bool(_CODE.fullmatch(currency))


# -- rules -------------------------------------------------------------------------------------------------------------


class BrokenRule(NamedTuple):
    """A rule that a value breaks, and the end of a sentence about the value."""

    rule: Rule
    words: str


@dataclass(frozen=True)
class Rules:
    """The rules of an attribute, for each value of a list that is written; stored ones may break them. None and "" are
    none.

    `minimum` and `maximum` are inclusive and in canonical form. `pattern` is the text of a regular expression,
    `matches` says whether a text matches it as a whole, in time linear in the text.
    """

    required: bool = False
    minimum: Value = None
    maximum: Value = None
    pattern: str = ""
    matches: Callable[[str], bool] | None = field(default=None, compare=False)

    def broken(self, kind: Kind, value: Value) -> "BrokenRule | None":
        """The rule that a valid value breaks; None where it breaks none."""
        if self.minimum is not None and ordered(kind, value) < ordered(kind, self.minimum):  # type: ignore[operator]
            return BrokenRule(Rule.MINIMUM, f"is less than the minimum {self.minimum}")
        if self.maximum is not None and ordered(kind, value) > ordered(kind, self.maximum):  # type: ignore[operator]
            return BrokenRule(Rule.MAXIMUM, f"is more than the maximum {self.maximum}")
        if self.matches is not None and isinstance(value, str) and not self.matches(value):
            return BrokenRule(Rule.PATTERN, f"does not match the pattern {shorten(self.pattern, 200)}")
        return None

    def words(self) -> str:
        """The rules as sentences for a description, with a space before them; empty without rules."""
        least, most = _plain(self.minimum), _plain(self.maximum)
        parts = [
            " Required for a new node." if self.required else "",
            f" From {least} to {most}." if least and most else "",
            f" Minimum {least}." if least and not most else "",
            f" Maximum {most}." if most and not least else "",
            f" Matches {self.pattern}" if self.pattern else "",
        ]
        return "".join(parts)


def _plain(bound: Value) -> str:
    """A bound as people write it; empty where there is none."""
    return f"{bound:g}" if isinstance(bound, float) and bound.is_integer() else "" if bound is None else str(bound)


NO_RULES = Rules()
