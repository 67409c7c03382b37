"""Lists as docs/lists.md, docs/querying.md and the schema say: which nodes, filtered, and in which order."""

import random
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.outside.model import values
from tests.outside.model.folding import folded, sort_text
from tests.outside.model.rules import UNDER
from tests.outside.model.trees import LEVELS, NEVER_ROOTS, Node, Trees

Arguments = dict[str, Any]
TEXTUAL = {"text", "title", "site"}
ENUMS = {"state": values.STATES, "size": values.SIZES}
ORDER_FIELDS = {
    "NAME": "name", "LEVEL": "level", "CHILD_COUNT": "childCount", "UPDATED_AT": "updatedAt",
    "NOTE": "note", "TEXT": "text", "REQUIRED_FLAG": "requiredFlag", "SMALL": "small", "LARGE": "large",
    "RATIO": "ratio", "EXACT": "exact", "DAY": "day", "MOMENT": "moment", "SITE": "site", "STATE": "state",
    "SIZE": "size", "LATITUDE": "latitude", "LONGITUDE": "longitude", "TITLE": "title", "GRADE": "grade",
    "MARK": "mark",
}  # fmt: skip
LAST_FIELDS = ("KEY", "PATH", "POSITION")
FIELD_KINDS = {"name": "text", "childCount": "int", "updatedAt": "moment", **values.KINDS}
FILTERS = [*FIELD_KINDS, "name", "key", "key", "key", "path", "path", "path"]
EXACT = ("eq", "in", "lt", "lte", "gt", "gte", "startsWith")
ID = {**dict.fromkeys(("roots", "children", "descendants"), "id"), "history": "id: revision"}


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


def whole_list(trees: Trees, kind: str, node: Node | None, arguments: Arguments) -> list[Node]:
    """The list before pagination; `kind` is roots, children, descendants or history."""
    if kind == "history":
        # "Revisions, newest first" (schema); their number stands for an id.
        assert node is not None
        return [{"id": kept["revision"]} for kept in reversed(node["history"])]
    found = _related(trees, kind, node, arguments)
    if arguments.get("level") is not None:
        found = [each for each in found if each["level"] in _several(arguments["level"])]
    if arguments.get("where") is not None:
        found = [each for each in found if meets(trees, each, arguments["where"])]
    for order in reversed(_several(arguments.get("orderBy") or [])):
        found = _sorted(trees, found, order)
    return found


def _several(given: Any) -> list[Any]:
    """A list; GraphQL takes one value for a list of it."""
    return given if isinstance(given, list) else [given]


def _related(trees: Trees, kind: str, node: Node | None, arguments: Arguments) -> list[Node]:
    if kind == "descendants":
        assert node is not None
        depth = len(trees.keys(node)) + arguments.get("maxDepth", 99)
        return [each for each in trees.descendants(node["id"]) if len(trees.keys(each)) <= depth]
    if kind == "roots" and spans_trees(arguments):
        # "A level that no root can have is listed in all trees, in the order of paths … roots among them" (lists.md).
        deep = {*_several(arguments["level"])} & {*NEVER_ROOTS}
        found = [each for each in trees.descendants(None) if each["level"] in deep or each["parent"] is None]
        return sorted(found, key=lambda each: place_of(trees.keys(each)))
    return trees.children(node["id"] if node else None)


def spans_trees(arguments: Arguments) -> bool:
    """Whether a list of roots is one of nodes in all trees."""
    return not {*_several(arguments.get("level") or [])}.isdisjoint(NEVER_ROOTS)


def is_refused(kind: str, node: Node | None, arguments: Arguments) -> bool:
    """ "A condition that no node in the list can meet, since its levels lack the attributes, is an error": for all
    levels that may stand in the list, below an owner of a level. "Of no level the list is empty."
    """
    if not arguments.get("where"):
        return False
    levels = levels_in(kind, node["level"] if node else None, arguments)
    outcomes = [_outcome(arguments["where"], level) for level in levels]
    return bool(outcomes) and all(outcome == (False, True) for outcome in outcomes)


def levels_in(kind: str, owner: str | None, arguments: Arguments) -> set[str]:
    """The levels that may stand in a list: by what each level may stand under, `maxDepth` and `level`."""
    asked = {*_several(arguments.get("level") or [*LEVELS])}
    if kind == "roots":
        return asked if spans_trees(arguments) else asked - {*NEVER_ROOTS}
    found, above = set[str](), {owner}
    for _ in range(arguments.get("maxDepth", 99) if kind == "descendants" else 1):
        above = {level for level in LEVELS if not above.isdisjoint(UNDER[level])}
        if above <= found:
            break
        found |= above
    return asked & found


Outcome = tuple[bool | None, bool]


def _outcome(where: Arguments, level: str) -> Outcome:
    """Whether all nodes of a level meet a condition or none does (None: that depends on the node), and whether it is so
    because the level lacks attributes.
    """
    found: list[Outcome] = []
    for name, inner in where.items():
        if name in ("and", "or"):
            found.append(_joined([_outcome(each, level) for each in inner], decisive=name == "or"))
        elif name == "not":
            outcome, is_lacking = _outcome(inner, level)
            found.append((None if outcome is None else not outcome, is_lacking))
        elif name in values.KINDS and name not in values.ATTRIBUTES[level]:
            found += [(_operator(FIELD_KINDS[name], operator, None, sent), True) for operator, sent in inner.items()]
        else:
            found.append((None, False))
    return _joined(found, decisive=False)


def _joined(parts: list[Outcome], *, decisive: bool) -> Outcome:
    """The outcome of parts of which one that has the decisive outcome decides."""
    outcomes = [outcome for outcome, _ in parts]
    outcome = decisive if decisive in outcomes else None if None in outcomes else not decisive
    return outcome, any(is_lacking for part, is_lacking in parts if part is outcome)


def _sorted(trees: Trees, nodes: list[Node], order: Arguments) -> list[Node]:
    """ "Nodes without the value come last … Nodes with equal values stay in the order of the list." """
    down = order.get("direction") == "DESC"
    if order["field"] == "POSITION":
        # The own order of siblings: "Position among the siblings, after the level" (schema).
        return nodes[::-1] if down else nodes
    if order["field"] in LAST_FIELDS:
        # Each is the order of the whole list: `KEY` is "by key, then by path" (lists.md).
        paths = {node["id"]: place_of(trees.keys(node)) for node in nodes}
        first = {id: place[-1:] if order["field"] == "KEY" else () for id, place in paths.items()}
        return sorted(nodes, key=lambda node: (first[node["id"]], paths[node["id"]]), reverse=down)
    field = ORDER_FIELDS[order["field"]]
    found = {node["id"]: value_of(trees, node, field, order.get("languages")) for node in nodes}
    with_value = [node for node in nodes if found[node["id"]] is not None]
    without = [node for node in nodes if found[node["id"]] is None]
    compared = comparable(FIELD_KINDS.get(field, field))
    # `reverse` keeps the order of equal values, too.
    with_value.sort(key=lambda node: compared(found[node["id"]]), reverse=down)
    return with_value + without


def comparable(kind: str) -> Callable[[Any], Any]:
    """Values of a kind as lists sort them."""
    if kind in TEXTUAL:
        return sort_text
    if kind == "level":
        return LEVELS.index
    if kind in ENUMS:
        return ENUMS[kind].index
    return lambda value: value


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
    found = value_of(trees, node, name, condition.get("languages"))
    operators = ((operator, sent) for operator, sent in condition.items() if operator != "languages")
    return all(_operator(FIELD_KINDS[name], operator, found, sent) for operator, sent in operators)


def _one_key(text: str) -> list[str]:
    return [text]


def _exact(operator: str, keys: list[str], sent: Any, read: Callable[[str], list[str]]) -> bool:
    """Conditions on keys and paths: "exact and in the order of the tree" (schema)."""
    found, places = place_of(keys), [place_of(read(each)) for each in _several(sent)]
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


# Random arguments


def some_arguments(chance: random.Random, trees: Trees, kind: str, nodes: list[Node]) -> Arguments:
    """Arguments of a list, without those of pages."""
    found: Arguments = {}
    if kind == "history":
        return found
    if chance.random() < 0.3:
        levels = [Word(level) for level in chance.sample(LEVELS, chance.choice((1, 1, 2)))]
        found["level"] = levels[0] if len(levels) == 1 and chance.random() < 0.5 else levels
    if kind == "descendants" and chance.random() < 0.3:
        found["maxDepth"] = chance.choice((1, 1, 2, 3, 40))
    if chance.random() < 0.5:
        orders = _some_orders(chance, kind)
        found["orderBy"] = orders[0] if len(orders) == 1 and chance.random() < 0.5 else orders
    if chance.random() < 0.45:
        found["where"] = _some_where(chance, trees, nodes, 2)
    if kind == "roots":
        for order in _several(found.get("orderBy") or []) if spans_trees(found) else []:
            order["field"] = Word("PATH") if order["field"] == "POSITION" else order["field"]
    return found


def _some_orders(chance: random.Random, kind: str) -> list[Arguments]:
    """Up to four orders; KEY, PATH and POSITION "must be the last", and POSITION is "not for descendants" (schema)."""
    most = [*ORDER_FIELDS, *("NAME", "CHILD_COUNT", "NOTE", "SMALL") * 2]
    fields = [chance.choice(most) for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))]
    fields = list(dict.fromkeys(fields))
    if not fields or chance.random() < 0.3:
        fields.append(chance.choice(LAST_FIELDS[:2] if kind == "descendants" else LAST_FIELDS))
    orders: list[Arguments] = [{"field": Word(field)} for field in fields]
    for order in orders:
        if chance.random() < 0.6:
            order["direction"] = Word(chance.choice(("ASC", "DESC")))
        if order["field"] == "NAME" and chance.random() < 0.6:
            order["languages"] = chance.choice(values.ASKED)
    return orders


def refused_arguments(chance: random.Random, kind: str) -> Arguments:
    """Arguments that the schema does not allow."""
    last = chance.choice(LAST_FIELDS)
    wrong: list[Arguments] = [
        {"level": []},
        {"orderBy": [{"field": Word(last)}, {"field": Word(chance.choice([*ORDER_FIELDS, *LAST_FIELDS]))}]},
        {"orderBy": {"field": Word(chance.choice(["LEVEL", "NOTE", *LAST_FIELDS])), "languages": ["de"]}},
    ]
    if kind == "roots":
        wrong += [{"level": Word("SLIP"), "orderBy": {"field": Word("POSITION")}}]
        wrong += [{"where": {"mark": {chance.choice(("gte", "contains", "eq")): ""}}}]
        wrong += [
            {"level": [Word("SLIP")], "where": {"not": {"or": [{"title": {"isNull": True}}, {"small": {"lt": 5}}]}}}
        ]
    if kind == "descendants":
        wrong += [{"orderBy": [{"field": Word("SMALL")}, {"field": Word("POSITION")}]}] * 2
    return chance.choice(wrong)


def _some_where(chance: random.Random, trees: Trees, nodes: list[Node], deeper: int) -> Arguments:
    found: Arguments = {}
    for name in chance.sample(FILTERS, chance.choice((0, 1, 1, 1, 2))):
        if FIELD_KINDS.get(name, "").strip("[]") in ("money", "parcel", "localized"):
            continue
        some = _some_place if name in ("key", "path") else _some_condition
        found[name] = some(chance, trees, nodes, name)
    if deeper and chance.random() < 0.4:
        for name in chance.sample(("and", "or", "not"), chance.choice((1, 1, 2))):
            parts = [_some_where(chance, trees, nodes, deeper - 1) for _ in range(chance.choice((0, 1, 2, 3)))]
            found[name] = parts if name != "not" else (parts or [{"name": {"contains": "a"}}])[0]
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
