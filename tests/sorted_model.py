"""Model of sorted and filtered lists: a hierarchy with attributes of all types, random values of them, and plain Python
that sorts and filters lists of records.
"""

import unicodedata
from collections.abc import Callable
from enum import Enum
from functools import cmp_to_key
from random import Random
from typing import Any

from msgspec.structs import replace

from graph.hierarchies.attribute import Date, DateTime, Decimal, Long, attribute
from graph.hierarchies.node import Node
from store.model.attributes import Value
from store.model.keys import Path
from store.model.records import Record
from tests.model import Model, meets


class Size(Enum):
    """Its members are not in the order of their names."""

    SMALL = "s"
    MEDIUM = "m"
    LARGE = "l"


class Thing(Node, hierarchy="thing", many="things"):
    """A thing with attributes of all types."""

    label: str | None = attribute("A text.")
    pieces: int | None = attribute("A small number.")
    grams: Long | None = attribute("A large number.")
    ratio: float | None = attribute("A fraction.")
    price: Decimal | None = attribute("A decimal.")
    made_on: Date | None = attribute("A date.")
    sold_at: DateTime | None = attribute("A time.")
    is_new: bool | None = attribute("A boolean.")
    size: Size | None = attribute("An enum.")
    words: list[str] | None = attribute("Texts.")


class Box(Thing, under=[None, "self"]):
    """A box of boxes and items."""


class Item(Thing, under=[Box]):
    """An item."""


LONG_TEXT = "long " * 20  # as many characters as are sorted by
TEXTS = ["a", "A", "á", "Ä", "b", "ß", "ss", "ﬁx", "Fix", "zoë", "Zoe", "中", "Ω", "e\u0301", "é", " ", '"', "\\", "\n"]
TEXTS += [f"{LONG_TEXT}a", f"{LONG_TEXT}b", LONG_TEXT[:-1]]
VALUES: dict[str, list[Any]] = {
    "label": TEXTS,
    "pieces": [-2, 0, 1, 2, 7],
    "grams": [-(2**60), 0, 2**53, 2**53 + 1],
    "ratio": [-1.5, 0.0, 0.25, 3, 1e20],
    "price": ["-1", "0", "2", "2.0", "2.00", "10", "9.99"],
    "made_on": ["1999-12-31", "2026-01-01", "2026-11-22"],
    "sold_at": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.500000Z", "2026-01-01T00:00:01Z"],
    "is_new": [True, False],
    "size": [one.name for one in Size],
    "words": [[], ["a"], ["a", "b"], ["Á"]],
}
TIMES = ["2026-11-20T12:00:00.000Z", "2026-11-21T12:00:00.000Z", "2026-11-21T12:00:00.001Z"]
FIELDS = {name: "".join(part.title() if n else part for n, part in enumerate(name.split("_"))) for name in VALUES}
FIELDS |= {"name": "name", "level": "level", "child_count": "childCount", "updated_at": "updatedAt"}
PLACES = ("KEY", "PATH", "POSITION")
LEVELS = ["BOX", "ITEM"]
LANGUAGES = ["de-AT", "en"]


def grow(seed: int, size: int) -> Model:
    """A random forest whose nodes have some of the values."""
    random = Random(seed)  # noqa: S311 - no secret
    nodes: dict[Path, str] = {}
    for number in range(size):
        boxes = [path for path, level in nodes.items() if level == "BOX"]
        under = random.choice(boxes[:4]) if boxes and random.random() > 0.15 else ()
        key = random.choice(["k", "K", "é", "z", "2026-"]) + str(random.randrange(size))
        if len(under) < 5 and (*under, key) not in nodes:
            nodes[(*under, key)] = "BOX" if not under or number % 3 == 0 else "ITEM"
    model = Model("thing", nodes)
    changed = {path: _with_values(record, random) for path, record in model.nodes.items()}
    model.nodes = changed
    model.ids = {record.id: record for record in changed.values()}
    model.families = {parent: [changed[one.path] for one in some] for parent, some in model.families.items()}
    return model


def _with_values(record: Record, random: Random) -> Record:
    values: dict[str, Value] = {name: random.choice(some) for name, some in VALUES.items() if random.random() < 0.6}
    names: dict[str, Value] = {tag: random.choice(TEXTS) for tag in ("de", "en", "fr") if random.random() < 0.3}
    if names:
        values["names"] = names
    return replace(record, name=random.choice(TEXTS), updated_at=random.choice(TIMES), attributes=values)


# -- orders and conditions ---------------------------------------------------------------------------------------------


def random_order(random: Random) -> list[dict[str, Any]]:
    names = random.sample([name for name in FIELDS if name != "words"], random.choice([1, 1, 2, 3, 4]))
    found = [{"field": name.upper(), "direction": random.choice(["ASC", "DESC"])} for name in names]
    for one in found:
        if one["field"] == "NAME":
            one |= random.choice([{}, {"languages": LANGUAGES}])
    last = random.choice([None, None, *PLACES])
    return found if last is None else [*found, {"field": last, "direction": random.choice(["ASC", "DESC"])}]


def random_condition(random: Random, depth: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(random.choice([0, 1, 1, 1, 2])):
        if depth < 4 and random.random() < 0.5:
            operator = random.choice(["and", "or", "or", "not"])
            parts = [random_condition(random, depth + 1) for _ in range(random.randint(0, 3))]
            found[operator] = random_condition(random, depth + 1) if operator == "not" else parts
        else:
            name = random.choice([*[name for name in FIELDS if name != "level"], "key", "key", "path"])
            found[FIELDS.get(name, name)] = _comparisons(name, random) | (
                random.choice([{}, {"languages": LANGUAGES}]) if name == "name" else {}
            )
    return found


def _comparisons(name: str, random: Random) -> dict[str, Any]:
    keys = ["k1", "K", "é", "2026-3"]
    pool = {"name": TEXTS, "key": keys, "path": [*keys, "k1/K2", "é1/é"], "child_count": [0, 1, 2, 5]}
    values = pool | {"updated_at": TIMES} | VALUES
    operators = "eq ne isNull".split()
    if name in ("key", "path"):
        operators = "eq in lt lte gt gte startsWith".split()
        return {
            one: random.choices(values[name], k=2) if one == "in" else random.choice(values[name])
            for one in random.sample(operators, random.choice([1, 1, 2]))
        }
    if name == "words":
        return random.choice([{"contains": random.choice(["a", "á", "b"])}, {"isNull": random.random() < 0.5}])
    operators += [] if name == "is_new" else ["in"]
    operators += [] if name in ("is_new", "size") else "lt lte gt gte".split()
    operators += "startsWith contains contains".split() if name in ("name", "label") else []
    found: dict[str, Any] = {}
    for operator in random.sample(operators, random.choice([1, 1, 2])):
        value = random.choice(values[name])
        if operator == "in":
            value = random.choices(values[name], k=random.randint(0, 3))
        found[operator] = random.random() < 0.5 if operator == "isNull" else value
    return found


# -- the model ---------------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn").casefold()


class SortedModel:
    """The lists that a caller sees, sorted and filtered."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def value(self, record: Record, name: str, languages: list[str]) -> Any:
        """A value as the schema shows it."""
        match name:
            case "name":
                tags = ["de-AT", "de", "en"] if languages else []
                return next((record.names[tag] for tag in tags if tag in record.names), record.name)
            case "level":
                return record.level
        match name:
            case "child_count":
                return len(self.model.families.get(record.path, []))
            case "updated_at":
                return record.updated_at
        return record.attributes.get(name)

    def sorted(self, records: list[Record], order: list[dict[str, Any]]) -> list[Record]:
        """Nodes that are in the order of their places, by their values."""

        def compare(one: Record, other: Record) -> int:
            for field in order:
                if field["field"] in PLACES:
                    continue
                name = field["field"].lower()
                mine, theirs = (self.value(record, name, field.get("languages", [])) for record in (one, other))
                if mine is None or theirs is None:
                    sign = (mine is None) - (theirs is None)
                else:
                    a, b = sort_value(name, mine), sort_value(name, theirs)
                    sign = (a > b) - (a < b)
                    sign = -sign if field["direction"] == "DESC" else sign
                if sign:
                    return sign
            return 0

        return sorted(records, key=cmp_to_key(compare))

    def meets(self, record: Record, where: dict[str, Any]) -> bool:
        return all(self._meets(record, name, inner) for name, inner in where.items())

    def _meets(self, record: Record, name: str, inner: Any) -> bool:
        match name:
            case "and":
                return all(self.meets(record, one) for one in inner)
            case "or":
                return any(self.meets(record, one) for one in inner)
            case "not":
                return not self.meets(record, inner)
            case "key" | "path":
                return meets(record, {name: inner})
        own = next(own for own, shown in FIELDS.items() if shown == name)
        value = self.value(record, own, inner.get("languages", []))
        operators = {operator: operand for operator, operand in inner.items() if operator != "languages"}
        return all(_compares(own, value, operator, operand) for operator, operand in operators.items())


def sort_value(name: str, value: Any) -> Any:
    match name:
        case "name" | "label":
            return fold(value[:100])[:100]
    return _comparable(name, value)


def _comparable(name: str, value: Any) -> Any:
    match name:
        case "name" | "label":
            return fold(value)
        case "price":
            return float(value)
        case "sold_at" | "updated_at":
            head, _, fraction = value.removesuffix("Z").partition(".")
            return head, float(f"0.{fraction or 0}")
        case "size":
            return [one.name for one in Size].index(value)
        case "level":
            return LEVELS.index(value)
    return value


def _compares(name: str, value: Any, operator: str, operand: Any) -> bool:
    if operator == "isNull":
        return (value is None) is operand
    if operator == "ne":
        return not _compares(name, value, "eq", operand)
    if value is None:
        return False
    if name == "words":
        return operand in value
    if operator == "in":
        return any(_compares(name, value, "eq", one) for one in operand)
    if operator == "eq" and name in ("name", "label"):
        return bool(value == operand)
    mine, theirs = _comparable(name, value), _comparable(name, operand)
    operators: dict[str, Callable[[], Any]] = {
        "eq": lambda: mine == theirs,
        "lt": lambda: mine < theirs,
        "lte": lambda: mine <= theirs,
        "gt": lambda: mine > theirs,
        "gte": lambda: mine >= theirs,
        "startsWith": lambda: mine.startswith(theirs),
        "contains": lambda: theirs in mine,
    }
    return bool(operators[operator]())
