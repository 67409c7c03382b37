"""Conditions of lists as docs/lists.md and the schema say, and what they compare."""

import random
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.outside.model import values, words
from tests.outside.model.folding import folded, kilometers
from tests.outside.model.rules import UNDER
from tests.outside.model.trees import LEVELS, Node, Trees

Arguments = dict[str, Any]
TEXTUAL = {"text", "title", "site"}
ENUMS = {"state": values.STATES, "size": values.SIZES}
FIELD_KINDS = {"name": "text", "childCount": "int", "updatedAt": "moment", **values.KINDS}
FILTERS = [*FIELD_KINDS, "name", "key", "key", "key", "path", "path", "path"]
EXACT = ("eq", "in", "lt", "lte", "gt", "gte", "startsWith")
LOCATION = ("latitude", "longitude")


class Word(str):
    """A name in GraphQL, such as a value of an enum."""


# The order of the tree

Place = tuple[bytes, ...]


def place_of(keys: list[str]) -> Place:
    """Keys as they compare in the tree: by segments, in each by bytes, and a parent before its descendants.

    "In a key, every character up to `%` is percent-encoded, and all others are unchanged … and the byte order of keys
    is the order of the tree for any script" (decisions/keys.md).
    """
    return tuple("".join(f"%{ord(c):02X}" if c <= "%" else c for c in values.normal(key)).encode() for key in keys)


def keys_of(path: str) -> list[str]:
    """The keys of a path: "Within a key, / is escaped as %2F and % as %25" (schema)."""
    return [part.replace("%2F", "/").replace("%25", "%") for part in path.split("/")]


# Values


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
    if field == "level":
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


def several(given: Any) -> list[Any]:
    """A list; GraphQL takes one value for a list of it."""
    return given if isinstance(given, list) else [given]


# Outcomes by level

Outcome = tuple[bool | None, bool]


def outcome_of(where: Arguments, level: str) -> Outcome:
    """Whether all nodes of a level meet a condition or none does (None: that depends on the node), and whether it is so
    because the level lacks attributes.
    """
    found: list[Outcome] = []
    for name, inner in where.items():
        if name in ("and", "or"):
            found.append(_joined([outcome_of(each, level) for each in inner], decisive=name == "or"))
        elif name == "not":
            outcome, is_lacking = outcome_of(inner, level)
            found.append((None if outcome is None else not outcome, is_lacking))
        elif name == "children":
            found += _outcomes_of_children(inner, level)
        elif name == "near" and not {*LOCATION} <= values.ATTRIBUTES[level].keys():
            found.append((False, True))
        elif name == "search" and not any(map(str.isalnum, inner["text"])):
            found.append((False, False))
        elif name in values.KINDS and name not in values.ATTRIBUTES[level]:
            found += [(_operator(FIELD_KINDS[name], operator, None, sent), True) for operator, sent in inner.items()]
        else:
            found.append((None, False))
    return _joined(found, decisive=False)


def _outcomes_of_children(given: Arguments, level: str) -> list[Outcome]:
    """Of children it is known that none meets a condition where their levels lack attributes, or there are none."""
    found: list[Outcome] = []
    below = [name for name in several(given.get("level") or [*LEVELS]) if level in UNDER[name]]
    for name in given.keys() & {"some", "none"}:
        outcomes = [outcome_of(given[name], each) for each in below]
        is_known = all(outcome is False for outcome, _ in outcomes)
        is_lacking = is_known and (not below or any(is_lacking for _, is_lacking in outcomes))
        found.append(((name == "none") if is_known else None, is_lacking))
    return found


def _joined(parts: list[Outcome], *, decisive: bool) -> Outcome:
    """The outcome of parts of which one that has the decisive outcome decides."""
    outcomes = [outcome for outcome, _ in parts]
    outcome = decisive if decisive in outcomes else None if None in outcomes else not decisive
    return outcome, any(is_lacking for part, is_lacking in parts if part is outcome)


# Conditions


def meets(trees: Trees, node: Node, where: Arguments) -> bool:
    """ "A node has to meet all of them; and, or and not combine conditions." """
    return all(_meets(trees, node, name, condition) for name, condition in where.items())


def _meets(trees: Trees, node: Node, name: str, condition: Any) -> bool:
    if name == "and":
        return all(meets(trees, node, each) for each in condition)
    if name == "or":
        return any(meets(trees, node, each) for each in condition)
    if name == "not":
        return not meets(trees, node, condition)
    if name == "key":
        return all(_exact(operator, [node["key"]], sent, _one_key) for operator, sent in condition.items())
    if name == "path":
        return all(_exact(operator, trees.keys(node), sent, keys_of) for operator, sent in condition.items())
    if name == "near":
        return (distance(node, condition) or 0.0) <= condition["kilometers"] and distance(node, condition) is not None
    if name == "search":
        return words.matches(trees, node, condition)
    if name == "children":
        return _meets_below(trees, node, condition)
    found = value_of(trees, node, name, condition.get("languages"))
    operators = ((operator, sent) for operator, sent in condition.items() if operator != "languages")
    return all(_operator(FIELD_KINDS[name], operator, found, sent) for operator, sent in operators)


def distance(node: Node, near: Arguments) -> float | None:
    """Kilometers from the point of a condition; None of a node without coordinates."""
    place = tuple(node["values"].get(name) for name in LOCATION)
    if None in place:
        return None
    return kilometers(place, (near["latitude"], near["longitude"]))  # type: ignore[arg-type]


def _meets_below(trees: Trees, node: Node, given: Arguments) -> bool:
    """ "`some` is met if at least one of them meets it, `none` if no child does." """
    levels = several(given.get("level") or [*LEVELS])
    children = [each for each in trees.children(node["id"]) if each["level"] in levels]
    return all(
        any(meets(trees, each, given[name]) for each in children) is (name == "some")
        for name in given.keys() & {"some", "none"}
    )


def _one_key(text: str) -> list[str]:
    return [text]


def _exact(operator: str, keys: list[str], sent: Any, read: Callable[[str], list[str]]) -> bool:
    """Conditions on keys and paths: "exact and in the order of the tree" (schema)."""
    found, places = place_of(keys), [place_of(read(each)) for each in several(sent)]
    if operator in ("eq", "in"):
        return found in places
    if operator != "startsWith":
        return _compare(operator, found, places[0])
    if read is _one_key:
        return keys[0].startswith(values.normal(sent))
    # "This, or the path of a descendant of the node at it".
    return found[: len(places[0])] == places[0]


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
        return _compare(operator, folded(found), folded(values_sent[0]))
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


# Random conditions


def some_where(
    chance: random.Random, trees: Trees, nodes: list[Node], deeper: int, *, below: bool = False
) -> Arguments:
    """A condition with others in it, `deeper` of them in each other; `below` is one on children, without these."""
    found: Arguments = {}
    if chance.random() < 0.15:
        found["near"] = some_near(chance)
    if chance.random() < 0.15:
        found["search"] = {"text": words.some_text(chance, nodes)}
        found["search"] |= {"languages": chance.choice((["de"], ["fr", "de"]))} if chance.random() < 0.2 else {}
    if not below and chance.random() < 0.15:
        found["children"] = _some_children(chance, trees, nodes)
    for name in chance.sample(FILTERS, chance.choice((0, 1, 1, 1, 2))):
        if FIELD_KINDS.get(name, "").strip("[]") in ("money", "parcel", "localized"):
            continue
        some = _some_place if name in ("key", "path") else _some_condition
        found[name] = some(chance, trees, nodes, name)
    if deeper and chance.random() < 0.4:
        for name in chance.sample(("and", "or", "not"), chance.choice((1, 1, 2))):
            parts = [
                some_where(chance, trees, nodes, deeper - 1, below=below) for _ in range(chance.choice((0, 1, 2, 3)))
            ]
            found[name] = parts if name != "not" else (parts or [{"name": {"contains": "a"}}])[0]
    return found


def size_of(where: Arguments) -> int:
    """How many conditions it has: "each operator of a field is one, and each empty object or list; `near` and `search`
    count as five, `children` as one beside what it holds" (lists.md).
    """
    sizes = {"near": 5, "search": 5}
    total = 0
    for name, inner in where.items():
        parts = inner if isinstance(inner, list) else [inner]
        if name == "children":
            parts = [inner[one] for one in ("some", "none") if one in inner]
        if name in ("and", "or", "not", "children"):
            total += (sum(map(size_of, parts)) or 1) + (name == "children")
        else:
            total += sizes.get(name, len(inner))
    return total or 1


def some_near(chance: random.Random) -> Arguments:
    """A circle around a place that nodes have, or one beside it."""
    latitude, longitude = [chance.choice(values.CHOICES[name]) for name in LOCATION]
    return {"latitude": latitude, "longitude": longitude, "kilometers": chance.choice((1, 50.5, 2000))}


def _some_children(chance: random.Random, trees: Trees, nodes: list[Node]) -> Arguments:
    found: Arguments = {
        name: some_where(chance, trees, nodes, 1, below=True)
        for name in chance.choice((["some"], ["none"], ["some", "none"]))
    }
    if chance.random() < 0.3:
        found["level"] = [Word(level) for level in chance.sample(LEVELS, chance.choice((1, 2)))]
    return found


def _some_place(chance: random.Random, trees: Trees, nodes: list[Node], name: str) -> Arguments:
    """A condition on keys or paths: of nodes, beside them, and of nobody, in any form of Unicode."""
    found: Arguments = {}
    for operator in chance.sample(EXACT, chance.choice((1, 1, 1, 2, 3))):
        sent = [_some_key(chance, trees, nodes, name) for _ in range(chance.choice((0, 1, 2, 4)))]
        one = (sent or ["a"])[0]
        if name == "key" and operator == "startsWith":
            one = unicodedata.normalize("NFC", one)[: chance.choice((0, 1, 1, 2, 9))]
        found[operator] = sent if operator == "in" else one
    return found


def _some_key(chance: random.Random, trees: Trees, nodes: list[Node], name: str) -> str:
    other = chance.choice(values.KEYS)
    keys = trees.keys(chance.choice(nodes)) if nodes else [other]
    if name == "key":
        keys = keys[-1:]
    dice = chance.random()
    if dice < 0.3:
        keys = [*keys[:-1], other]
    elif dice < 0.4:
        keys = [*keys[:-1], chance.choice((keys[-1] + "!", keys[-1] + "~", keys[-1][:1], "-"))]
    elif name == "path" and dice < 0.7:
        keys = chance.choice((keys[:-1] or keys, [*keys, other], keys[:1]))
    keys = [key if len(key) <= 60 else "x" for key in keys][:6]
    form = unicodedata.normalize(chance.choice(("NFC", "NFC", "NFD")), keys[0] if name == "key" else "\0".join(keys))
    return (
        form if name == "key" else "/".join(part.replace("%", "%25").replace("/", "%2F") for part in form.split("\0"))
    )


def _some_condition(chance: random.Random, trees: Trees, nodes: list[Node], name: str) -> Arguments:
    kind = FIELD_KINDS[name]
    if chance.random() < 0.15:
        return {"isNull": chance.random() < 0.5}
    if kind.startswith("["):
        return {"contains": _sent(kind[1:-1], values.some_value(chance, kind[1:-1]))}
    operators = ["eq", "ne", "in"]
    if kind == "flag":
        operators = ["eq", "ne"]
    elif kind not in ENUMS:
        operators += ["lt", "lte", "gt", "gte", *(("startsWith", "contains") if kind in TEXTUAL else ())]
    operator = chance.choice(operators)
    sent = [_some_sent(chance, trees, nodes, name, kind) for _ in range(2)]
    found = {operator: sent if operator == "in" else sent[0]}
    if operator in ("startsWith", "contains"):
        found = {operator: sent[0][: chance.choice((0, 1, 2, 3, 9))]}
    if name == "name" and chance.random() < 0.5:
        found["languages"] = chance.choice(values.ASKED)
    return found


def _some_sent(chance: random.Random, trees: Trees, nodes: list[Node], name: str, kind: str) -> Any:
    """A value, half of the time one that a node has."""
    node = chance.choice(nodes) if nodes else None
    if name == "updatedAt":
        return node["at"] if node else "2026-10-05T12:30:00Z"
    languages = chance.choice(values.ASKED) if name == "name" else None
    found = value_of(trees, node, name, languages) if node else None
    if found is None or kind in ("moment", "decimal") or chance.random() < 0.5:
        found = values.some_value(chance, kind)
    return _sent(kind, found[:300] if isinstance(found, str) else found)


def _sent(kind: str, value: Any) -> Any:
    return Word(value) if kind in ENUMS else value
