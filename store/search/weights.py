"""Weights: numbers as text whose order is from the greatest to the least, for use in sort keys."""

from decimal import Decimal, InvalidOperation

_NINES = str.maketrans("0123456789", "9876543210")
_ZERO = "1"
WEIGHT = r"(?:1|0\d{3}\d+:|2\d{3}\d+!)"
"""The pattern of an encoded number."""


def descending(number: object) -> str:
    """A stored number as text that sorts before that of any smaller number; what is no number counts as 0.

    A positive number is `0`, its exponent and its digits, all subtracted from the greatest possible; the digits end in
    `:`, which sorts after all of them. A negative one is `2`, its exponent and its digits, which end in `!`.
    """
    if type(number) is int and 0 < number < 10**18:  # as most are
        digits = str(number)
        return f"0{501 - len(digits):03d}{digits.rstrip('0').translate(_NINES)}:"
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        return _ZERO
    value = _decimal(str(number))
    if not value:
        return _ZERO
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    if value > 0:
        return f"0{500 - value.adjusted():03d}{digits.translate(_NINES)}:"
    return f"2{500 + value.adjusted():03d}{digits}!"


def _decimal(number: str) -> Decimal:
    try:
        value = Decimal(number)
    except InvalidOperation:
        return Decimal(0)
    return value if value.is_finite() and -400 < value.adjusted() < 400 else Decimal(0)
