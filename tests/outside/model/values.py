"""Values of every kind at their bounds, each as it is sent; `same` says what has to come back."""

import random
import unicodedata
from datetime import UTC, datetime
from typing import Any

Values = dict[str, Any]

# Keys that any reader of the docs may expect to work: "Any character that one sees may be in a key; in paths / is
# written %2F, and % %25" (modelling.md).
KEYS = (
    "a", "b", "c", "A", "B", "10", "9", "007", "Ärger", "a\u0308rger", "łódź", "مرحبا", "שלום", "日本", "한국어", "ไทย",
    "हिन्दी", "x/y", "/", "100%", "%", "%2F", "#1", "#", "$5", "!", "&amp;", "<b>x</b>", "'", '"', "\\", "👩‍👩‍👧",
    "🏔", "SW1A 1AA", "TV-NORDLYS-48", "a b", "ab", "b~", "Ω", "ﬁ", "Å", "\u212b", "ß", "SS", "z" * 60, "Ж" * 40, "null",
)  # fmt: skip
# Keys at the ends of what can be stored: "A path, one of its keys: 8,000; 4,100 characters", "combining marks in a row
# in a key: 30" (security.md), "a sort key 1,024 bytes" (dynamodb.md). They may be refused as BAD_PATH.
ODD_KEYS = (".", "..", "k" * 500, "漢" * 250, "é" * 500, "a" + "\u0301" * 30)
# "No character that nobody sees, and no blanks at its ends or in a row" (modelling.md).
BAD_KEYS = ("", "k" * 4_101, "a\x00b", "a" + "\u0330" * 31, " a", "a ", "a  b", "a\u00a0b", "\u202eabc", "a\u200db")

NAMES = (
    "Ann", "ann", "Élan", "elan", "Zebra", "Ångström", "São Paulo", "sao tome", "Łódź", "Straße", "STRASSE", "Ο Όμηρος",
    "Новый Орёл", "שלום עולם", "مرحبا بالعالم", "東京都", "서울 특별시", "กรุงเทพ", "हिन्दी भाषा", "👩‍👩‍👧 family", "🏔",
    "<script>alert(1)</script>", "O'Brien", "a/b%c#d", "50% & more", "ﬁne", "I\u0307stanbul", "ısı", "New York City",
    "new jersey", "e\u0301clair", "n" * 500, "Ω" * 500, "{\"json\": [1]}", "null", "0", "-", "\u202eright", "x\ny",
    "OBrien", "O Brien", "Wi-Fi", "Wifi", "Coeur d’Alene", "L'Isle-d'Abeau", "Nāʻālehu", "St.-Denis, D.C.", "Þórsá-Ær",
)  # fmt: skip
LANGUAGES = ("de", "de-AT", "fr", "el", "zh-Hant", "pt-BR", "ar", "en", "sr-Latn")
ASKED: tuple[list[str], ...] = (
    ["de-AT", "en"],
    ["fr", "de"],
    ["en"],
    ["zh-Hant-TW", "pt"],
    ["xx"],
    ["de-CH", "de-AT"],
    [],
)

TEXTS = ("", " ", "x", *NAMES, "line\nline", "tab\there", "y" * 1000, "e\u0301", "é")
TITLES = tuple(text for text in ("", "x", *NAMES) if "\n" not in text)
LONGS = (0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 9_007_199_254_740_993)
INTS = (0, 1, -1, 2**31 - 1, -(2**31), 7, 42)
# Numbers that DynamoDB has, too: 1e300 is refused in both stores.
FLOATS = (0.0, 0.1, -0.5, 1e100, -1e100, 1e-100, 1.7976931348623157, 3.0, 1e21, 1 / 3)
DECIMALS = (
    "0",
    "0.10",
    "0.1",
    "1299.00",
    "-5",
    "12345678901234567890123456789012345678",
    "0." + "0" * 30 + "1",
    "3.00",
)
DAYS = ("2026-10-05", "0001-01-01", "9999-12-31", "2024-02-29", "1969-12-31")
MOMENTS = (
    "2026-10-05T12:30:00Z", "2026-10-05T14:30:00+02:00", "1969-12-31T23:59:59Z", "2026-10-05T12:30:00.123Z",
    "2024-02-29T00:00:00-11:00", "2026-10-05T12:30:00.123456Z",
)  # fmt: skip
SITES = ("https://example.com/a", "http://example.com/?q=%2F&x=1#y", "https://example.com/" + "p" * 1000)
# Values of which each belongs to one node, of whatever level.
SKUS = (
    "",
    "A",
    "a",
    "é",
    "e\u0301",
    "Å",
    "\u212b",
    "s" * 600,
    *[f"sku-{number}" for number in range(30)],
    *[f"sk{('ü', 'u' + chr(0x308))[number % 2]}-{number}" for number in range(30)],
)
STATES = ("OPEN", "CLOSED", "null_", "WAITING")
SIZES = ("SMALL", "LARGE")
MONEY = (("12.50", "EUR"), ("0", "JPY"), ("-3.99", "USD"), ("99999999999999999999.99", "CHF"))

# The kind of each attribute of the class file, in its order. A kind in brackets is a list of it.
COMMON = {"note": "text", "sku": "text"}
BOX = {
    "text": "text", "requiredFlag": "flag", "small": "int", "large": "long", "ratio": "float", "exact": "decimal",
    "day": "day", "moment": "moment", "site": "site", "state": "state", "size": "size", "price": "money",
    "parcel": "parcel", "greeting": "localized", "latitude": "latitude", "longitude": "longitude", "texts": "[text]",
    "flags": "[flag]", "smalls": "[int]", "larges": "[long]", "ratios": "[float]", "exacts": "[decimal]",
    "days": "[day]", "moments": "[moment]", "sites": "[site]", "states": "[state]", "prices": "[money]",
    "parcels": "[parcel]",
}  # fmt: skip
CARD = {"title": "title", "grade": "grade"}
SLIP = {"mark": "text"}
ATTRIBUTES = {"BOX": {**COMMON, **BOX}, "CARD": {**COMMON, **CARD}, "SLIP": {**COMMON, **SLIP}}
KINDS = {**COMMON, **BOX, **CARD, **SLIP}
DEFAULTS: dict[str, Values] = {"BOX": {"requiredFlag": True, "size": "SMALL"}, "CARD": {}, "SLIP": {}}
CHOICES: dict[str, tuple[Any, ...]] = {
    "text": TEXTS, "title": TITLES, "flag": (True, False), "int": INTS, "long": LONGS, "float": FLOATS,
    "decimal": DECIMALS, "day": DAYS, "moment": MOMENTS, "site": SITES, "state": STATES, "size": SIZES,
    "sku": SKUS, "grade": (0, 5, 9), "latitude": (-90.0, -33.9, 0.0, 41.25, 41.26, 48.2, 89.999, 90.0),
    "longitude": (-180.0, -95.94, 0.0, 16.37, 16.4, 179.99, 180.0),
}  # fmt: skip


def some_value(chance: random.Random, kind: str) -> Any:
    """A value of a kind, as it is sent."""
    if kind.startswith("["):
        return [some_value(chance, kind[1:-1]) for _ in range(chance.choice((0, 1, 2, 5)))]
    if kind == "money":
        return dict(zip(("amount", "currency"), chance.choice(MONEY), strict=True))
    if kind == "localized":
        return some_names(chance)
    if kind == "parcel":
        parcel: Values = {"code": chance.choice(("x", "ж" * 20, "")), "size": chance.choice((*SIZES, None))}
        if chance.random() < 0.5:
            parcel["corner"] = {"x": chance.choice(DECIMALS), "y": chance.choice((*LONGS, None))}
        if chance.random() < 0.5:
            parcel |= {"days": some_value(chance, "[day]"), "price": some_value(chance, "money")}
        return parcel
    return chance.choice(CHOICES[kind])


def some_names(chance: random.Random) -> list[Values]:
    """Texts by language; each language once."""
    languages = chance.sample(LANGUAGES, chance.choice((1, 1, 2, 4)))
    return [{"language": language, "text": chance.choice(NAMES)} for language in languages]


def some_values(chance: random.Random, level: str, *, clear: bool) -> Values:
    """Some attributes of a level, some of them null if `clear`."""
    kinds = ATTRIBUTES[level]
    found: Values = {}
    for name in chance.sample(sorted(kinds), min(len(kinds), chance.choice((0, 1, 2, 3, 6, 29)))):
        cleared = clear and chance.random() < 0.2 and name != "title"
        found[name] = None if cleared else some_value(chance, "sku" if name == "sku" else kinds[name])
    return found


def stored(kind: str, value: Any) -> Any:
    """The value as a response has it."""
    if value is None:
        return None
    if kind.startswith("["):
        return [stored(kind[1:-1], item) for item in value]
    if kind == "moment":
        return moment(value)
    if kind == "parcel":
        corner = value.get("corner")
        return {
            "code": value.get("code"),
            "size": value.get("size"),
            "corner": corner and {"x": corner.get("x"), "y": corner.get("y")},
            "days": value.get("days"),
            "price": value.get("price"),
        }
    return value


def moment(text: str) -> datetime:
    """A time; "Date and time in UTC in RFC 3339" says nothing of the number of its decimal places."""
    return datetime.fromisoformat(text).astimezone(UTC)


def answered(kind: str, value: Any) -> Any:
    """The value of a response, with its times as times."""
    if kind == "moment" and value is not None:
        return moment(value)
    if kind == "[moment]" and value is not None:
        return [moment(item) for item in value]
    return value


def normal(key: str) -> str:
    """A key as it is stored: "its segments and combining marks are checked before it is split and normalized"."""
    return unicodedata.normalize("NFC", key)


def segment(key: str) -> str:
    """A key in a path: "Inside a key, write / as %2F and % as %25" (querying.md)."""
    return normal(key).replace("%", "%25").replace("/", "%2F")


def sort_bytes(keys: list[str]) -> int:
    """An estimate of the sort key of a path, in bytes: characters up to % take three (decisions/keys.md)."""
    return 1 + sum(1 + sum(3 if c <= "%" else len(c.encode()) for c in key) for key in keys[1:])
