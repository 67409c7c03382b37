"""Key bounds: which keys of a list random conditions leave, compared with a test of each node."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.lists.arguments import MAX_SPANS, KeyBounds
from resolvers.sorting.conditions import ConditionParser
from resolvers.sorting.values import NodeValue
from store.model.attributes import Kind
from store.model.keys import Path
from store.model.paths import format_path
from store.model.records import Record
from tests.model import Model

KEYS = ["a", "a b", "a/b", "a#", "a%", "ab", "b", "Z", "é", "😀", "0"]
PATHS: list[Path] = [(root,) for root in ("r", "r2")]
PATHS += [(*path, key) for path in PATHS for key in KEYS]
PATHS += [(*path, key) for path in PATHS if len(path) == 2 for key in KEYS]
MODEL = Model("ground", dict.fromkeys(PATHS, "AREA"))
PARSER_VALUES = {"name": NodeValue("name", Kind.TEXT)}
OPERATORS = "eq in lt lte gt gte startsWith".split()


def condition(random: Random, depth: int = 3) -> dict[str, Any]:
    match random.choice(["key", "path", "path", "name", *["and", "or", "not"] * bool(depth)]):
        case "not":
            return {"not": condition(random, depth - 1)}
        case "name":
            return {"name": {"eq": "N a"}}
        case ("key" | "path") as name:
            operator = random.choice(OPERATORS)
            some = [path[-1] if name == "key" else format_path(path) for path in random.choices(PATHS, k=3)]
            return {name: {operator: some if operator == "in" else some[0]}}
        case operator:
            return {operator: [condition(random, depth - 1) for _ in range(random.randint(0, 3))]}


def left(bounds: KeyBounds, owner: Record, nodes: list[Record]) -> list[Record]:
    spans = bounds.spans(owner)
    assert len(spans) <= MAX_SPANS
    return [one for one in nodes if any(lo <= one.sk < hi for lo, hi in spans)]


@given(st.integers(0, 2**32), st.booleans())
def test_no_node_that_meets_a_condition_is_left_out_and_exact_bounds_leave_no_others(seed, are_children):
    random = Random(seed)  # noqa: S311 - no secret
    where = ConditionParser(PARSER_VALUES).parse(condition(random))
    bounds = KeyBounds.of(where, are_children=are_children)
    if bounds is None:
        return
    for owner in (MODEL.nodes["r",], MODEL.nodes["r", "a"], MODEL.nodes["r2",]):
        nodes = MODEL.families[owner.path] if are_children else MODEL.below(owner)
        found, wanted = left(bounds, owner, nodes), [one for one in nodes if where.test(one)]
        assert wanted == (found if bounds.is_exact else [one for one in found if where.test(one)])


def test_many_keys_are_one_span_that_is_tested():
    owner = MODEL.nodes["r",]
    where = ConditionParser(PARSER_VALUES).parse({"key": {"in": [*KEYS, "x"]}})
    bounds = KeyBounds.of(where, are_children=True)
    assert bounds is not None
    assert (len(bounds.spans(owner)), bounds.is_exact) == (1, False)
    assert left(bounds, owner, MODEL.families["r",]) == MODEL.families["r",]


@pytest.mark.parametrize("where", [{"name": {"eq": "x"}}, {"or": [{"key": {"eq": "a"}}, {"name": {"eq": "x"}}]}, {}])
def test_a_condition_that_leaves_all_of_a_list_has_no_bounds(where):
    parsed = ConditionParser(PARSER_VALUES).parse(where)
    assert KeyBounds.of(parsed, are_children=True) is None
