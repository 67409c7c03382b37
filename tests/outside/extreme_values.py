"""Extreme values of every kind of attribute, as variables of GraphQL; what a server refuses is not stored."""

import random
from collections.abc import Callable, Iterator
from typing import Any

PIECES = (
    "", " ", "  ", "\t", "\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1f", "\x7f", "\x85", "\u2028",
    "\u00a0", "\u200b", "\ufeff", "\u202e", "\u200d", ";", ",", "|", "'", '"', '""', "\\", "\\n", "/", "%",
    "%2F", "#", "# x", "!", "=1+1", "@x", "+1", "-1", "null", "NULL", "N/A", "true", "[]", "{}", '["a"]',
    '{"a": 1}', "0123", "1e5", "1,5", "12.50 EUR", "2020-01-01", "<b>&amp;</b>", "<script>", "A > B", "a",
    "Z", "e\u0301", "\u00e9", "\u1e9b\u0323", "ﬁ", "ß", "İ", "ı", "Å", "\u212b", "שלום", "مرحبا", "हिन्दी",
    "ไทย", "漢字", "かな", "한국어", "\u1112\u1161\u11ab", "Ελληνικά", "Кириллица", "👩‍👩‍👧", "\U0001f3f4",
    "𝒜", "\ue000", "\uffff", "\U0010ffff", "Ł",
)  # fmt: skip
LONGS = (0, -1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
DECIMALS = (
    "0",
    "-0",
    "0.10",
    "1E+10",
    "1e-30",
    "9" * 38,
    "-" + "9" * 38,
    "0." + "0" * 36 + "1",
    "12345678901234567890.5",
)
FLOATS = (0.0, -0.0, 0.1, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, -123456789.12345679, 2.0**53 + 2, 1e100)
DAYS = ("0001-01-01", "1582-10-15", "1900-02-28", "2024-02-29", "9999-12-31")
MOMENTS = (
    "0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2024-02-29T12:30:00.5+02:00", "2016-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999Z", "2020-01-01T00:00:00.1Z", "2020-01-01T00:00:00-11:59",
)  # fmt: skip
SITES = (
    "http://a",
    "https://ex.org/a;b?c=d&e=%22#f",
    "https://ex.org/" + "x" * 2033,
    "http://[::1]:8080/",
    "https://münchen.de/ü",
)
LISTED = "text requiredFlag small large ratio exact day moment site state price parcel".split()  # as well
TAGS = ("de", "pt-BR", "zh-Hant", "sr-Latn-RS", "x-private")


class Values:
    """A source of extreme values with a seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def text(self, most: int = 1000) -> str:
        """Nothing, some pieces in a row, or one of them very often."""
        if self._chance.random() < 0.05:
            return ""
        if self._chance.random() < 0.08:
            piece = self._chance.choice([piece for piece in PIECES if piece])
            return (piece * 500)[: min(most, 500)]
        return "".join(self._chance.choice(PIECES) for _ in range(self._chance.choice((1, 1, 2, 3, 5))))[:most]

    def key(self, number: int) -> str:
        """A key that no sibling has, perhaps with something before and after its number."""
        return self._chance.choice((f"{number}", f"{self.text(100)}{number}", f"{number}{self.text(100)}"))

    def names(self) -> list[dict[str, Any]]:
        return [{"language": tag, "text": self.text(500)} for tag in self._some(TAGS)]

    def attributes(self) -> dict[str, Any]:
        """Some attributes of a box, each with a value at a bound."""
        kinds = list(self._kinds().items())
        chosen = [pair for pair in kinds if self._chance.random() < 0.4]
        return {name: value() for name, value in chosen} | self._lists()

    def _lists(self) -> dict[str, Any]:
        kinds = self._kinds()
        named = {f"{one}s".replace("requiredF", "f"): one for one in LISTED}
        lists = {
            name: [kinds[one]() for _ in range(self._chance.choice((0, 1, 1, 2, 3)))] for name, one in named.items()
        }
        return {name: values for name, values in lists.items() if self._chance.random() < 0.4}

    def _kinds(self) -> dict[str, Callable[[], Any]]:
        one = self._chance.choice
        return {
            "note": lambda: self.text(16_384),
            "text": self.text,
            "requiredFlag": lambda: one((True, False)),
            "small": lambda: one((0, -1, 2**31 - 1, -(2**31))),
            "large": lambda: one(LONGS),
            "ratio": lambda: one(FLOATS),
            "exact": lambda: one(DECIMALS),
            "day": lambda: one(DAYS),
            "moment": lambda: one(MOMENTS),
            "site": lambda: one(SITES),
            "state": lambda: one(("OPEN", "CLOSED", "null_", "WAITING")),
            "size": lambda: one(("SMALL", "LARGE")),
            "price": self._money,
            "parcel": self._parcel,
            "greeting": lambda: [{"language": tag, "text": self.text()} for tag in self._some(TAGS)],
            "latitude": lambda: one((-90.0, 90.0, 0.0, 1e-300)),
            "longitude": lambda: one((-180.0, 180.0, -0.0, 0.1)),
        }

    def _money(self) -> dict[str, str]:
        return {"amount": self._chance.choice(DECIMALS), "currency": self._chance.choice(("EUR", "JPY", "BHD"))}

    def _parcel(self) -> dict[str, Any]:
        point = {"x": self._chance.choice(DECIMALS), "y": self._chance.choice(LONGS)}
        more = {"size": "LARGE", "corner": point, "days": list(self._some(DAYS)), "price": self._money()}
        return {"code": self.text(20)} | {name: more[name] for name in self._some(tuple(more))}

    def _some(self, values: tuple[str, ...]) -> Iterator[str]:
        return iter(self._chance.sample(values, self._chance.randrange(len(values))))
