"""Document limits: each at its limit and one above, checked before validation and reads."""

from dataclasses import replace

import pytest
from graphql import get_introspection_query

from graph.execution.operation import Execution
from graph.hierarchies.registry import served
from graph.operation import document_cache
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_request import GraphQLRequest
from graph.schema import build_schema
from graph.settings import Settings

SCHEMA, _ = build_schema(served("graph.hierarchies.locations,graph.hierarchies.categories"))
DEFAULTS = DocumentLimits()


class Passed(Exception):
    """The query would be run now."""


def run_now():
    raise Passed


async def refusal(query, limits=DEFAULTS):
    """The first error for a query that is refused, None for one that would be run."""
    try:
        answer = await Execution(SCHEMA, run_now, limits=limits).answer(GraphQLRequest(query), allow_mutations=True)
    except Passed:
        return None
    assert not answer.executed
    return answer.body["errors"][0]


def nodes(fields):
    return f"{{ locations(first: 1) {{ nodes {{ {fields} }} }} }}"


def of(field, count):
    return " ".join([field] * count)


def named(field, count):
    return " ".join(f"a{number}: {field}" for number in range(count))


def wide(count, block):
    """Names at several places, as one place may not hold them all: `block` is what 90 of them and their place count."""
    blocks, rest = divmod(count, block)
    return nodes(f"{named('parent { ' + of('name', 90) + ' }', blocks)} {of('name', rest)}")


QUOTED = '"US"'

# Written so that nothing else about them is too much.
AT_EDGE = {
    "max_tokens": lambda count: wide(count - 13, 95),
    "max_depth": lambda count: nodes("parent {" * (count - 2) + "name" + "}" * (count - 2)),
    "max_fields": lambda count: wide(count - 2, 91),
    "max_repeats": lambda count: nodes(of("name", count)),
    "max_aliases": lambda count: nodes(named("name", count)),
    "max_input_values": lambda count: f"{{ locationsByPath(paths: [{of(QUOTED, count - 1)}]) {{ id }} }}",
}


@pytest.mark.parametrize("name", AT_EDGE)
async def test_a_document_at_the_limit_is_accepted_and_one_above_is_rejected(name, monkeypatch):
    limits = replace(DEFAULTS, max_tokens=9_999) if name in ("max_fields", "max_input_values") else DEFAULTS
    limit = getattr(limits, name)
    assert await refusal(AT_EDGE[name](limit), limits) is None
    monkeypatch.setattr(document_cache, "validate", None)  # the costly rules are not reached
    error = await refusal(AT_EDGE[name](limit + 1), limits)
    assert error["extensions"] == {"code": "LIMIT_EXCEEDED", "limit": limit}
    assert f"the limit is {limit:,}." in error["message"]
    assert (f"CLADE_{name.upper()}" in error["message"]) == (name in Settings.model_fields)
    assert "locations" not in error


def test_the_default_limits():
    assert (
        DocumentLimits(
            max_tokens=2_000,
            max_depth=15,
            max_fields=2_000,
            max_repeats=100,
            max_aliases=30,
            max_input_values=2_000,
            request_seconds=10.0,
            introspection=True,
        )
        == DEFAULTS
    )


# -- what passes at the defaults ---------------------------------------------------------------------------------------


async def test_a_menu_of_seven_levels_is_accepted_also_from_a_gateway():
    menu = "name"
    for _ in range(6):
        menu = f"id name children {{ edges {{ node {{ {menu} }} }} }}"
    assert await refusal(f"{{ categories {{ edges {{ node {{ {menu} }} }} }} }}") is None
    entities = f"query($r: [_Any!]!) {{ _entities(representations: $r) {{ ... on Category {{ {menu} }} }} }}"
    assert await refusal(entities) is None


async def test_introspection_is_accepted_at_any_depth_limit():
    query = get_introspection_query(specified_by_url=True, input_value_deprecation=True)
    assert await refusal(query, replace(DEFAULTS, max_depth=2)) is None


async def test_edges_nodes_and_entities_do_not_count_for_depth():
    query = nodes("children { edges { node { children { nodes { name } } } } }")
    assert await refusal(query, replace(DEFAULTS, max_depth=4)) is None
    assert (await refusal(query, replace(DEFAULTS, max_depth=3)))["extensions"]["limit"] == 3


async def test_gateways_may_repeat_entities():
    query = f"query($r: [_Any!]!) {{ {named('_entities(representations: $r) { __typename }', 100)} }}"
    assert await refusal(query) is None


# -- what is hidden in fragments ---------------------------------------------------------------------------------------

FRAGMENT = "fragment F{0} on Location {{ {1} }}"
EXPANDED, REPEATS = "fields, with fragments expanded", "fields of one name in one selection set"


def chain(length, step, last="name"):
    fragments = [FRAGMENT.format(number, step.format(number + 1)) for number in range(length)]
    return " ".join([*fragments, FRAGMENT.format(length, last)])


@pytest.mark.parametrize(
    ("query", "limited"),
    [
        (nodes("...F0") + chain(12, "ancestors {{ ...F{0} }} parent {{ ...F{0} }}"), EXPANDED),
        (nodes("...F0") + chain(60, "...F{0} ...F{0}"), EXPANDED),
        (nodes("name") + chain(60, "...F{0} ...F{0}"), EXPANDED),
        (nodes("...F0") + chain(14, "parent {{ ...F{0} }}"), "levels of fields"),
        (nodes("...F0 x: parent { ...F0 }") + FRAGMENT.format(0, named("name", 16)), "aliases"),
        (nodes("...F0 ...F0 ...F0") + FRAGMENT.format(0, of("name", 34)), REPEATS),
        (nodes(of("... { name }", 101)), REPEATS),
        (nodes("parent { " + of("name", 51) + " } parent { " + of("name", 50) + " }"), REPEATS),
        ("{ ...Q } fragment Q on Query { " + of("__typename", 101) + " }", REPEATS),
        ("query A { __typename } query B { " + named("__typename", 31) + " }", "aliases"),
        ("mutation { " + named('deleteLocation(path: "US") { node { id } }', 31) + " }", "aliases"),
        ("query(" + of("$v: Int @a", 1_000) + ") { __typename }", "tokens"),
        (nodes("name " + of("@skip(if: false)", 1_000)), "tokens"),
        ("{ __schema { types { " + named("name", 31) + " } } }", "aliases"),
        (nodes(of("parent { name id }", 390)), REPEATS),
    ],
)
async def test_fragments_are_expanded_and_rejected_before_validation(query, limited, monkeypatch):
    monkeypatch.setattr(document_cache, "validate", None)
    error = await refusal(query)
    assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert f" {limited}; the limit is " in error["message"]


@pytest.mark.parametrize(
    "query",
    [
        nodes("...F0") + FRAGMENT.format(0, "...F0"),
        nodes("...F0") + FRAGMENT.format(0, "parent { ...F1 }") + FRAGMENT.format(1, "parent { ...F0 }"),
        nodes("name") + FRAGMENT.format(0, "...F1") + FRAGMENT.format(1, "...F0"),
        nodes("...F0"),
        nodes("...F0") + chain(240, "...F{0}"),
    ],
)
async def test_cyclic_unknown_and_long_fragment_chains_are_validation_errors(query):
    assert (await refusal(query))["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"


async def test_a_cached_document_is_not_measured_again(monkeypatch):
    execution = Execution(SCHEMA, run_now)
    with pytest.raises(Passed):
        await execution.answer(GraphQLRequest("{ __typename }"), allow_mutations=False)
    monkeypatch.setattr(DocumentLimits, "parse", None)
    with pytest.raises(Passed):
        await execution.answer(GraphQLRequest("{ __typename }"), allow_mutations=False)


async def test_without_introspection_no_field_returns_the_schema():
    limits = replace(DEFAULTS, introspection=False)
    for query in (
        "{ __schema { queryType { name } } }",
        '{ a: __type(name: "City") { name } }',
        "{ _service { sdl } }",
    ):
        assert (await refusal(query, limits))["extensions"]["code"] == "FORBIDDEN"
    assert await refusal("{ __typename locations { nodes { __typename } } }", limits) is None
