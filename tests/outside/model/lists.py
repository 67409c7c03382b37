"""Lists as docs/lists.md and docs/querying.md say: which nodes, filtered, sorted, reversed."""

import random
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.outside.model import values
from tests.outside.model.folding import has_stroke, sort_text
from tests.outside.model.trees import LEVELS, Node, Trees

Arguments = dict[str, Any]
TEXTUAL = {"text", "title", "site"}
ENUMS = {"state": values.STATES, "size": values.SIZES}
ORDER_FIELDS = {
    "NAME": "name", "KEY": "key", "LEVEL": "level", "CHILD_COUNT": "childCount", "UPDATED_AT": "updatedAt",
    "NOTE": "note", "TEXT": "text", "REQUIRED_FLAG": "requiredFlag", "SMALL": "small", "LARGE": "large",
    "RATIO": "ratio", "EXACT": "exact", "DAY": "day", "MOMENT": "moment", "SITE": "site", "STATE": "state",
    "SIZE": "size", "LATITUDE": "latitude", "LONGITUDE": "longitude", "TITLE": "title", "GRADE": "grade",
}  # fmt: skip
FIELD_KINDS = {"name": "text", "key": "text", "childCount": "int", "updatedAt": "moment", **values.KINDS}
FILTERS = [*FIELD_KINDS, "level"]


class Word(str):
    """A name in GraphQL, such as a value of an enum."""


# What is in a list


def name_in(node: Node, languages: list[str] | None) -> tuple[str, str | None]:
    """Name and its language: "Each tag is tried as it is, then shortened: de-AT, then de" (languages.md)."""
    for tag in languages or ():
        while tag:
            if tag in node["names"]:
                return node["names"][tag], tag
            tag = tag.rpartition("-")[0]
    return node["name"], None


def value_of(trees: Trees, node: Node, field: str, languages: list[str] | None = None) -> Any:
    """A value that a list can be sorted or filtered by; times as times, decimals as numbers."""
    if field == "name":
        return name_in(node, languages)[0]
    if field in ("key", "level"):
        return node[field]
    if field == "childCount":
        return len(trees.children(node["id"]))
    if field == "updatedAt":
        return values.moment(node["at"])
    found = node["values"].get(field)
    kind = FIELD_KINDS[field]
    if found is not None and kind in ("decimal", "[decimal]"):
        return Decimal(found) if kind == "decimal" else [Decimal(item) for item in found]
    return found


def whole_list(trees: Trees, kind: str, node: Node | None, arguments: Arguments) -> list[Node]:
    """The list before pagination; `kind` is roots, children, descendants or siblings."""
    # Keys are normalized wherever they are written.
    low, high = (values.normal(arguments[end]) if end in arguments else None for end in ("from", "to"))
    found = _related(trees, kind, node, arguments)
    if low is not None or high is not None:
        # "`from` (inclusive) and `to` (exclusive)"; "Orders the list by key" (schema).
        assert node is not None
        depth = len(trees.keys(node))
        keys = {each["id"]: trees.keys(each)[depth] for each in found}
        found = [
            each for each in found if (low or "") <= keys[each["id"]] and (high is None or keys[each["id"]] < high)
        ]
        if kind == "children":
            found.sort(key=lambda each: each["key"])
    levels = [arguments["level"]] if "level" in arguments else arguments.get("levels")
    found = [each for each in found if levels is None or each["level"] in levels]
    languages = arguments.get("languages")
    if "where" in arguments:
        found = [each for each in found if meets(trees, each, arguments["where"], languages)]
    for order in reversed(arguments.get("orderBy", ())):
        found = _sorted(trees, found, order, languages)
    return found[::-1] if arguments.get("reverse") else found


def _related(trees: Trees, kind: str, node: Node | None, arguments: Arguments) -> list[Node]:
    if kind == "descendants":
        assert node is not None
        depth = len(trees.keys(node)) + arguments.get("maxDepth", 99)
        return [each for each in trees.descendants(node["id"]) if len(trees.keys(each)) <= depth]
    if kind == "siblings":
        assert node is not None
        return [each for each in trees.children(node["parent"]) if each is not node]
    return trees.children(node["id"] if node else None)


def _sorted(trees: Trees, nodes: list[Node], order: Arguments, languages: list[str] | None) -> list[Node]:
    """ "Nodes without the value come last … Nodes with equal values stay in the order of the list." """
    field = ORDER_FIELDS[order["field"]]
    found = {node["id"]: value_of(trees, node, field, languages) for node in nodes}
    with_value = [node for node in nodes if found[node["id"]] is not None]
    without = [node for node in nodes if found[node["id"]] is None]
    comparable = _comparable(field)
    down = order.get("direction") == "DESC"
    if down:
        # A stable sort downwards keeps the order of equal values, too.
        with_value = with_value[::-1]
    with_value.sort(key=lambda node: comparable(found[node["id"]]))
    return (with_value[::-1] if down else with_value) + without


def _comparable(field: str) -> Callable[[Any], Any]:
    kind = FIELD_KINDS.get(field, field)
    if kind in TEXTUAL:
        return sort_text
    if kind == "level":
        return LEVELS.index
    if kind in ENUMS:
        return ENUMS[kind].index
    return lambda value: value


def is_doubtful(trees: Trees, nodes: list[Node], arguments: Arguments) -> bool:
    """Whether an order depends on letters with a stroke, which search and sort fold differently."""
    languages = arguments.get("languages")
    fields = [ORDER_FIELDS[order["field"]] for order in arguments.get("orderBy", ())] + ["name", "key", "text", "title"]
    return any(
        has_stroke(str(value_of(trees, node, field, languages) or "")) for node in nodes for field in fields
    ) or has_stroke(str(arguments.get("where", "")))


# Conditions


def meets(trees: Trees, node: Node, where: Arguments, languages: list[str] | None) -> bool:
    """ "A node has to meet all of them; and, or and not combine conditions." """
    return all(_meets(trees, node, name, condition, languages) for name, condition in where.items())


def _meets(trees: Trees, node: Node, name: str, condition: Any, languages: list[str] | None) -> bool:
    if name == "and":
        return all(meets(trees, node, each, languages) for each in condition)
    if name == "or":
        return any(meets(trees, node, each, languages) for each in condition)
    if name == "not":
        return not meets(trees, node, condition, languages)
    found = value_of(trees, node, name, languages)
    kind = FIELD_KINDS.get(name, "level")
    return all(_operator(kind, operator, found, sent) for operator, sent in condition.items())


def _operator(kind: str, operator: str, found: Any, sent: Any) -> bool:
    if operator == "isNull":
        return (found is None) is bool(sent)
    if found is None:
        # "A node without the value meets `isNull: true`, `ne`, and `not` around any other condition on the value."
        return operator == "ne"
    plain = kind.strip("[]")
    values_sent = [_read(plain, item) for item in (sent if operator == "in" else [sent])]
    if kind.startswith("["):
        return values_sent[0] in found
    if operator in ("eq", "in"):
        return found in values_sent
    if operator == "ne":
        return bool(found != values_sent[0])
    if plain in TEXTUAL:
        # "`eq`, `ne` and `in` compare texts exactly; the other operators ignore case and accents, as sorting does."
        return _compare(operator, sort_text(found), sort_text(values_sent[0]))
    return _compare(operator, found, values_sent[0])


def _read(kind: str, value: Any) -> Any:
    if kind == "moment":
        return values.moment(value)
    return Decimal(value) if kind == "decimal" else value


def _compare(operator: str, found: Any, sent: Any) -> bool:
    compared: dict[str, Callable[[], Any]] = {
        "lt": lambda: found < sent,
        "lte": lambda: found <= sent,
        "gt": lambda: found > sent,
        "gte": lambda: found >= sent,
        "startsWith": lambda: found.startswith(sent),
        "contains": lambda: sent in found,
    }
    return bool(compared[operator]())


# Random arguments


def some_arguments(chance: random.Random, trees: Trees, kind: str, nodes: list[Node]) -> Arguments:
    """Arguments of a list, without those of pages."""
    found: Arguments = {}
    if chance.random() < 0.2:
        found["level"] = Word(chance.choice(LEVELS))
    elif chance.random() < 0.1:
        found["levels"] = [Word(level) for level in chance.sample(LEVELS, chance.choice((1, 2)))]
    if chance.random() < 0.25:
        found["reverse"] = chance.random() < 0.8
    if kind == "descendants" and chance.random() < 0.3:
        found["maxDepth"] = chance.choice((1, 2, 3, 40))
    if kind in ("children", "descendants") and chance.random() < 0.15:
        # A key is the same in every form of Unicode.
        forms = values.KEYS + tuple(key for key in values.KEYS if unicodedata.normalize("NFD", key) != key) * 5
        ends = chance.choice((("from",), ("to",), ("from", "to")))
        found |= {end: unicodedata.normalize(chance.choice(("NFC", "NFD")), chance.choice(forms)) for end in ends}
        if kind == "descendants":
            # "`descendants` rejects `from` and `to` together with a level that may be deeper than the children."
            found = {name: value for name, value in found.items() if name not in ("level", "levels")}
    if chance.random() < 0.35:
        found["orderBy"] = [_some_order(chance) for _ in range(chance.choice((1, 1, 2, 4)))]
        fields = [order["field"] for order in found["orderBy"]]
        found["orderBy"] = [order for n, order in enumerate(found["orderBy"]) if order["field"] not in fields[:n]]
    if chance.random() < 0.3:
        found["where"] = _some_where(chance, trees, nodes, 2)
    if ("where" in found or "orderBy" in found) and chance.random() < 0.4:
        found["languages"] = chance.choice([asked for asked in values.ASKED if asked])
    return found


def _some_order(chance: random.Random) -> Arguments:
    field = chance.choice([*ORDER_FIELDS, "NAME", "NAME", "KEY", "CHILD_COUNT", "NOTE", "SMALL"])
    return {
        "field": Word(field),
        **({"direction": Word(chance.choice(("ASC", "DESC")))} if chance.random() < 0.6 else {}),
    }


def _some_where(chance: random.Random, trees: Trees, nodes: list[Node], deeper: int) -> Arguments:
    found: Arguments = {}
    for name in chance.sample(FILTERS, chance.choice((0, 1, 1, 1, 2))):
        if FIELD_KINDS.get(name, "").strip("[]") in ("money", "parcel", "localized"):
            continue
        found[name] = _some_condition(chance, trees, nodes, name)
    if deeper and chance.random() < 0.35:
        for name in chance.sample(("and", "or", "not"), chance.choice((1, 1, 2))):
            parts = [_some_where(chance, trees, nodes, deeper - 1) for _ in range(chance.choice((0, 1, 2)))]
            found[name] = parts if name != "not" else (parts or [{"name": {"contains": "a"}}])[0]
    return found


def _some_condition(chance: random.Random, trees: Trees, nodes: list[Node], name: str) -> Arguments:
    kind = FIELD_KINDS.get(name, "level")
    if chance.random() < 0.15:
        return {"isNull": chance.random() < 0.5}
    if kind.startswith("["):
        return {"contains": _sent(kind[1:-1], values.some_value(chance, kind[1:-1]))}
    operators = ["eq", "ne", "in"]
    if kind == "flag":
        operators = ["eq", "ne"]
    elif kind not in (*ENUMS, "level"):
        operators += ["lt", "lte", "gt", "gte", *(("startsWith", "contains") if kind in TEXTUAL else ())]
    operator = chance.choice(operators)
    sent = [_some_sent(chance, trees, nodes, name, kind) for _ in range(2)]
    if operator in ("startsWith", "contains"):
        return {operator: sent[0][: chance.choice((0, 1, 2, 3, 9))]}
    return {operator: sent if operator == "in" else sent[0]}


def _some_sent(chance: random.Random, trees: Trees, nodes: list[Node], name: str, kind: str) -> Any:
    """A value, half of the time one that a node has."""
    if kind == "level":
        return Word(chance.choice(LEVELS))
    node = chance.choice(nodes) if nodes else None
    if name == "updatedAt":
        return node["at"] if node else "2026-10-05T12:30:00Z"
    found = value_of(trees, node, name) if node else None
    if found is None or kind in ("moment", "decimal") or chance.random() < 0.5:
        found = values.some_value(chance, kind)
    return _sent(kind, found[:300] if isinstance(found, str) else found)


def _sent(kind: str, value: Any) -> Any:
    return Word(value) if kind in ENUMS else value
