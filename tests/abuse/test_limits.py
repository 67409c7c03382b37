"""Limits of a document over HTTP: each at its limit and one above, checked before validation and reads."""

from dataclasses import replace

import pytest
from graphql import get_introspection_query

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.settings import Settings
from store.connect import open_store
from tests.abuse.door import door
from tests.systems.asking import PATIENT

HEADERS = {"accept": "application/graphql-response+json", "clade-reads": "1"}


@pytest.fixture
async def error_of():
    """The first error of a query to an empty store, None for a response; with other limits than the usual ones."""
    async with open_store("sqlite://:memory:") as store:
        await store.create()

        async def first_error(query, **limits):
            async with door(store, Location, CategoryNode, limits=replace(PATIENT, **limits), headers=HEADERS) as ask:
                answer = await ask(query, r=[])
            body = answer.json()
            if "errors" not in body:
                return None
            assert answer.status_code == 400
            assert body.keys() == {"errors"}, "nothing is read"
            return body["errors"][0]

        yield first_error


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


QUOTED, UNKNOWN = '"US"', "fragment Unused on Query { unknown }"
MANY_TOKENS = {"max_tokens": 9_999}

# Written so that nothing else about them is too much.
AT_EDGE = {
    "max_tokens": (2_000, {}, lambda count: wide(count - 13, 95)),
    "max_depth": (15, {}, lambda count: nodes("parent {" * (count - 2) + "name" + "}" * (count - 2))),
    "max_fields": (2_000, MANY_TOKENS, lambda count: wide(count - 2, 91)),
    "max_repeats": (100, {}, lambda count: nodes(of("name", count))),
    "max_aliases": (30, {}, lambda count: nodes(named("name", count))),
    "max_input_values": (
        2_000, MANY_TOKENS, lambda count: f"{{ locationsByPath(paths: [{of(QUOTED, count - 1)}]) {{ id }} }}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_EDGE)
async def test_a_document_at_the_limit_is_accepted_and_one_above_is_rejected(error_of, name):
    limit, others, query = AT_EDGE[name]
    error = await error_of(query(limit), **others)
    assert error is None or error["extensions"]["code"] == "BUDGET_EXCEEDED", "so many paths are nodes, too"
    error = await error_of(query(limit + 1), **others)
    assert error["extensions"] == {"code": "LIMIT_EXCEEDED", "limit": limit}
    assert f"the limit is {limit:,}." in error["message"]
    assert (f"CLADE_{name.upper()}" in error["message"]) == (name in Settings.model_fields)
    assert "locations" not in error


MENU = "name"
for _ in range(6):
    MENU = f"id name children {{ edges {{ node {{ {MENU} }} }} }}"
NESTED_LISTS = nodes("children { edges { node { children { nodes { name } } } } }")
ENTITIES = "query($r: [_Any!]!) {{ {} }}".format


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        (f"{{ categories {{ edges {{ node {{ {MENU} }} }} }} }}", {}),
        (ENTITIES(f"_entities(representations: $r) {{ ... on Category {{ {MENU} }} }}"), {}),
        (ENTITIES(named("_entities(representations: $r) { __typename }", 100)), {}),
        (get_introspection_query(specified_by_url=True, input_value_deprecation=True), {"max_depth": 2}),
        (NESTED_LISTS, {"max_depth": 4}),
        ("{ __typename locations { nodes { __typename } } }", {"introspection": False}),
    ],
)
async def test_menus_introspection_and_the_aliases_of_gateways_are_accepted(error_of, query, limits):
    assert await error_of(query, **limits) is None


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
        ("mutation { " + named('deleteLocation(input: {node: {path: "US"}}) { node { id } }', 31) + " }", "aliases"),
        ("query(" + of("$v: Int @a", 1_000) + ") { __typename }", "tokens"),
        (nodes("name " + of("@skip(if: false)", 1_000)), "tokens"),
        ("{ __schema { types { " + named("name", 31) + " } } }", "aliases"),
        (nodes(of("parent { name id }", 390)), REPEATS),
    ],
)
async def test_fragments_are_expanded_and_rejected_before_validation(error_of, query, limited):
    error = await error_of(query + UNKNOWN)
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
async def test_cyclic_unknown_and_long_fragment_chains_are_validation_errors(error_of, query):
    assert (await error_of(query))["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"


@pytest.mark.parametrize(
    ("query", "limits", "code"),
    [
        (NESTED_LISTS, {"max_depth": 3}, "LIMIT_EXCEEDED"),
        ("{ __schema { queryType { name } } }", {"introspection": False}, "FORBIDDEN"),
        ('{ a: __type(name: "City") { name } }', {"introspection": False}, "FORBIDDEN"),
        ("{ _service { sdl } }", {"introspection": False}, "FORBIDDEN"),
    ],
)
async def test_other_limits_reject_more(error_of, query, limits, code):
    assert (await error_of(query, **limits))["extensions"]["code"] == code
