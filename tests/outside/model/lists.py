"""Lists as docs/lists.md, docs/querying.md and the schema say: which nodes, filtered, and in which order."""

import random
from collections.abc import Callable
from typing import Any

from tests.outside.model import values, words
from tests.outside.model.conditions import (
    ENUMS,
    FIELD_KINDS,
    TEXTUAL,
    Arguments,
    Word,
    distance,
    meets,
    outcome_of,
    place_of,
    several,
    size_of,
    some_near,
    some_where,
    value_of,
)
from tests.outside.model.folding import sort_text
from tests.outside.model.rules import UNDER
from tests.outside.model.trees import LEVELS, NEVER_ROOTS, Node, Trees

MAX_CONDITIONS = 50
ORDER_FIELDS = {
    "NAME": "name", "LEVEL": "level", "CHILD_COUNT": "childCount", "UPDATED_AT": "updatedAt",
    "NOTE": "note", "TEXT": "text", "REQUIRED_FLAG": "requiredFlag", "SMALL": "small", "LARGE": "large",
    "RATIO": "ratio", "EXACT": "exact", "DAY": "day", "MOMENT": "moment", "SITE": "site", "STATE": "state",
    "SIZE": "size", "LATITUDE": "latitude", "LONGITUDE": "longitude", "TITLE": "title", "GRADE": "grade", "SKU": "sku",
    "MARK": "mark",
}  # fmt: skip
LAST_FIELDS = ("KEY", "PATH", "POSITION")
ID = {**dict.fromkeys(("roots", "children", "descendants"), "id"), "history": "id: revision"}


# What is in a list


def whole_list(trees: Trees, kind: str, node: Node | None, arguments: Arguments) -> list[Node]:
    """The list before pagination; `kind` is roots, children, descendants or history."""
    if kind == "history":
        # "Revisions, newest first" (schema); their number stands for an id.
        assert node is not None
        return [{"id": kept["revision"]} for kept in reversed(node["history"])]
    found = _related(trees, kind, node, arguments)
    if arguments.get("level") is not None:
        found = [each for each in found if each["level"] in several(arguments["level"])]
    if arguments.get("where") is not None:
        found = [each for each in found if meets(trees, each, arguments["where"])]
    for order in reversed(several(arguments.get("orderBy") or [])):
        found = _sorted(trees, found, order, arguments.get("where") or {})
    return found


def _related(trees: Trees, kind: str, node: Node | None, arguments: Arguments) -> list[Node]:
    if kind == "descendants":
        assert node is not None
        depth = len(trees.keys(node)) + arguments.get("maxDepth", 99)
        return [each for each in trees.descendants(node["id"]) if len(trees.keys(each)) <= depth]
    if kind == "roots" and spans_trees(arguments):
        # "A level that no root can have is listed in all trees, in the order of paths … roots among them" (lists.md).
        deep = {*several(arguments["level"])} & {*NEVER_ROOTS}
        found = [each for each in trees.descendants(None) if each["level"] in deep or each["parent"] is None]
        return sorted(found, key=lambda each: place_of(trees.keys(each)))
    return trees.children(node["id"] if node else None)


def spans_trees(arguments: Arguments) -> bool:
    """Whether a list of roots is one of nodes in all trees."""
    return not {*several(arguments.get("level") or [])}.isdisjoint(NEVER_ROOTS)


def is_by_position(kind: str, arguments: Arguments) -> bool:
    """Whether the last order is that of editors at any depth."""
    orders = several(arguments.get("orderBy") or [])
    is_deep = kind == "descendants" or (kind == "roots" and spans_trees(arguments))
    return is_deep and bool(orders) and orders[-1]["field"] == "POSITION"


def is_refused(kind: str, node: Node | None, arguments: Arguments) -> bool:
    """ "A condition that no node in the list can meet, since its levels lack the attributes, is an error": for all
    levels that may stand in the list, below an owner of a level. "Of no level the list is empty."
    """
    if not arguments.get("where"):
        return False
    levels = levels_in(kind, node["level"] if node else None, arguments)
    outcomes = [outcome_of(arguments["where"], level) for level in levels]
    return bool(outcomes) and all(outcome == (False, True) for outcome in outcomes)


def levels_in(kind: str, owner: str | None, arguments: Arguments) -> set[str]:
    """The levels that may stand in a list: by what each level may stand under, `maxDepth` and `level`."""
    asked = {*several(arguments.get("level") or [*LEVELS])}
    if kind == "roots":
        return asked if spans_trees(arguments) else asked - {*NEVER_ROOTS}
    found, above = set[str](), {owner}
    for _ in range(arguments.get("maxDepth", 99) if kind == "descendants" else 1):
        above = {level for level in LEVELS if not above.isdisjoint(UNDER[level])}
        if above <= found:
            break
        found |= above
    return asked & found


def _sorted(trees: Trees, nodes: list[Node], order: Arguments, where: Arguments) -> list[Node]:
    """ "Nodes without the value come last … Nodes with equal values stay in the order of the list." """
    down = order.get("direction") == "DESC"
    if order["field"] == "POSITION":
        # "As editors put them: by level, then by position; of descendants depth-first" (schema).
        shown = {each["id"]: number for number, each in enumerate(_as_shown(trees, None))}
        return sorted(nodes, key=lambda node: shown[node["id"]], reverse=down)
    if order["field"] == "RELEVANCE":
        found = words.by_relevance(trees, nodes, where["search"])
        return found[::-1] if down else found
    if order["field"] in LAST_FIELDS:
        # Each is the order of the whole list: `KEY` is "by key, then by path" (lists.md).
        paths = {node["id"]: place_of(trees.keys(node)) for node in nodes}
        first = {id: place[-1:] if order["field"] == "KEY" else () for id, place in paths.items()}
        return sorted(nodes, key=lambda node: (first[node["id"]], paths[node["id"]]), reverse=down)
    if order["field"] == "DISTANCE":
        return sorted(nodes, key=lambda node: distance(node, where["near"]) or 0.0, reverse=down)
    field = ORDER_FIELDS[order["field"]]
    values_of = {node["id"]: value_of(trees, node, field, order.get("languages")) for node in nodes}
    with_value = [node for node in nodes if values_of[node["id"]] is not None]
    without = [node for node in nodes if values_of[node["id"]] is None]
    compared = comparable(FIELD_KINDS.get(field, field))
    # `reverse` keeps the order of equal values, too.
    with_value.sort(key=lambda node: compared(values_of[node["id"]]), reverse=down)
    return with_value + without


def _as_shown(trees: Trees, parent: str | None) -> list[Node]:
    return [each for child in trees.children(parent) for each in (child, *_as_shown(trees, child["id"]))]


def comparable(kind: str) -> Callable[[Any], Any]:
    """Values of a kind as lists sort them."""
    if kind in TEXTUAL:
        return sort_text
    if kind == "level":
        return LEVELS.index
    if kind in ENUMS:
        return ENUMS[kind].index
    return lambda value: value


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
    if chance.random() < 0.45:
        where = some_where(chance, trees, nodes, 2)
        found["where"] = where if size_of(where) <= MAX_CONDITIONS else {}
    if chance.random() < 0.5:
        orders = _some_orders(chance, found.get("where", {}))
        found["orderBy"] = orders[0] if len(orders) == 1 and chance.random() < 0.5 else orders
    return found


def _some_orders(chance: random.Random, where: Arguments) -> list[Arguments]:
    """Up to four orders; KEY, PATH and POSITION "must be the last" (schema). For an order by distance the point is one
    from which no two places are equally far.
    """
    most = [*ORDER_FIELDS, *("NAME", "CHILD_COUNT", "NOTE", "SMALL") * 2]
    fields = [chance.choice(most) for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))]
    if "near" in where and chance.random() < 0.6:
        fields.insert(0, "DISTANCE")
        where["near"] |= {"latitude": chance.choice((0.0, 41.25, 48.2)), "longitude": chance.choice((-95.94, 16.37))}
    if "search" in where and chance.random() < 0.6:
        fields.insert(chance.choice((0, 0, 1)), "RELEVANCE")
    fields = list(dict.fromkeys(fields))[:4]
    if not fields or chance.random() < 0.3:
        fields.append(chance.choice(LAST_FIELDS))
    orders: list[Arguments] = [{"field": Word(field)} for field in fields]
    for order in orders:
        if chance.random() < 0.6:
            order["direction"] = Word(chance.choice(("ASC", "DESC")))
        if order["field"] == "NAME" and chance.random() < 0.6:
            order["languages"] = chance.choice(values.ASKED)
    return orders


def refused_arguments(chance: random.Random, kind: str) -> Arguments:
    """Arguments that are errors."""
    last = chance.choice(LAST_FIELDS)
    wrong: list[Arguments] = [
        {"level": []},
        {"orderBy": [{"field": Word(last)}, {"field": Word(chance.choice([*ORDER_FIELDS, *LAST_FIELDS]))}]},
        {"orderBy": {"field": Word(chance.choice(["LEVEL", "NOTE", *LAST_FIELDS])), "languages": ["de"]}},
    ]
    if kind == "roots":
        wrong += [{"where": {"mark": {chance.choice(("gte", "contains", "eq")): ""}}}]
        wrong += [
            {"level": [Word("SLIP")], "where": {"not": {"or": [{"title": {"isNull": True}}, {"small": {"lt": 5}}]}}}
        ]
    near, inner = some_near(chance), {"some": {"name": {"eq": "a"}}}
    wrong += [
        {"where": {"near": {**near, **chance.choice(_BAD_CIRCLES)}}},
        {"where": {"not": {"near": near}}, "orderBy": {"field": Word("DISTANCE")}},
        {"where": {"search": {"text": chance.choice(("x" * 201, "a b c d e f g h i"))}}},
        {"where": {"or": [{"search": {"text": "a"}}]}, "orderBy": {"field": Word("RELEVANCE")}},
        {"where": {"children": {}}},
        {"where": {"children": {**inner, "level": []}}},
        {"where": {"children": {"none": {"or": [{"children": inner}]}}}},
    ]
    return chance.choice(wrong)


_BAD_CIRCLES: tuple[Arguments, ...] = (
    {"latitude": 90.01},
    {"latitude": -91},
    {"longitude": 360.5},
    {"kilometers": 2000.1},
    {"kilometers": -1},
)
