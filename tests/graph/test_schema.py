"""The schema: its file is valid and described, names that could clash are known, and errors say what is meant."""

from pathlib import Path

import pytest
from graphql import (
    build_schema,
    is_enum_type,
    is_input_object_type,
    is_interface_type,
    is_introspection_type,
    is_object_type,
    is_specified_scalar_type,
    validate_schema,
)

from graph.hierarchies.registry import FIELD, LATER, OWN_FIELDS, OWN_TYPES, TYPE, names_of, served
from graph.operation.document import GraphQLRequest
from graph.operation.limits import DocumentLimits
from graph.operation.prepared import RequestCache
from graph.operation.selection import core_schema
from graph.settings import Settings
from tests.schemas import schema_of

ROOT = Path(__file__).parents[2]


def test_all_names_that_could_clash_are_known():
    classes = served("graph.hierarchies.locations,graph.hierarchies.categories,examples.asset,examples.drive")
    kinds = core_schema(schema_of(*classes)[0])
    names = {use.name for cls in classes for use in names_of(cls) if use.kind == TYPE and use.takes != LATER}
    types = {name for name in kinds.type_map if not name.startswith("__")}
    assert {name for name in names - types if not name.endswith("Attributes")} == set()  # some levels have none
    assert types - names <= OWN_TYPES
    # Where a class has them:
    values = {"Url", "Money", "MoneyInput", "Localized", "LocalizedText", "LocalizedTextInput"}
    unused = {name for name in OWN_TYPES - types if not name.endswith("Condition")}  # those of the types of attributes
    assert unused <= {"Subscription", "Decimal", "Date", "Long"} | values
    fields = {use.name for cls in classes for use in names_of(cls) if use.kind == FIELD}
    assert fields | OWN_FIELDS == set(kinds.query_type.fields)


@pytest.fixture(scope="module")
def schema():
    """What a GraphQL parser that knows nothing of federation makes of the file."""
    return build_schema((ROOT / "schema.graphql").read_text("utf-8"))


def parts(schema):
    """Every type, field, argument, input field and enum value by its coordinate."""
    for name, kind in schema.type_map.items():
        if is_introspection_type(kind) or is_specified_scalar_type(kind):
            continue
        yield name, kind
        if is_enum_type(kind):
            yield from ((f"{name}.{value}", one) for value, one in kind.values.items())
        if is_object_type(kind) or is_interface_type(kind) or is_input_object_type(kind):
            for field, one in kind.fields.items():
                yield f"{name}.{field}", one
                yield from ((f"{name}.{field}({key}:)", argument) for key, argument in getattr(one, "args", {}).items())


def test_the_file_is_a_valid_schema_for_any_parser(schema):
    assert validate_schema(schema) == []


def test_every_type_field_argument_and_enum_value_is_described(schema):
    described = dict(parts(schema))
    assert {"City.childCount(level:)", "LocationLevel.CITY", "_Service.sdl", "Path"} < described.keys()
    assert [name for name, part in described.items() if not (part.description or "").strip()] == []


# -- hints at the field or argument that a client means, where nothing looks alike -------------------------------------

CONNECTION, CHILDREN = "'CategoryNodeConnection'", "'LocationConnection'"
HINTS = {
    "{ categories { name } }": f"Cannot query field 'name' on type {CONNECTION}. Did you mean 'nodes {{ name }}'?",
    '{ location(path: "US") { children { path } } }':
        f"Cannot query field 'path' on type {CHILDREN}. Did you mean 'nodes {{ path }}'?",
    "{ locations { edges { name } } }":
        "Cannot query field 'name' on type 'LocationEdge'. Did you mean 'node { name }'?",
    'mutation { deleteLocation(input: {node: {path: "US"}}) { id } }':
        "Cannot query field 'id' on type 'DeleteLocationPayload'. Did you mean 'node { id }'?",
    "{ locations(filter: {}) { totalCount } }":
        "Unknown argument 'filter' on field 'Query.locations'. Did you mean 'where'?",
    "{ l: locations(sort: {field: NAME}) { totalCount } }":
        "Unknown argument 'sort' on field 'Query.locations'. Did you mean 'orderBy'?",
    # What looks alike, or nothing: as GraphQL's own rules say it.
    "{ locations(level: COUNTRY, orderby: {field: NAME}) { totalCount } }":
        "Unknown argument 'orderby' on field 'Query.locations'. Did you mean 'orderBy'?",
    "{ locations(filters: {}) { totalCount } }": "Unknown argument 'filters' on field 'Query.locations'.",
    "{ name }": "Cannot query field 'name' on type 'Query'. Did you mean 'node'?",
    "{ categories { colour } }": f"Cannot query field 'colour' on type {CONNECTION}.",
}  # fmt: skip


@pytest.mark.parametrize("introspection", [True, False])
def test_an_error_says_what_is_meant_where_clients_may_see_the_schema(introspection):
    schema = core_schema(schema_of(*served(Settings().hierarchies))[0])
    requests = RequestCache(schema, DocumentLimits(introspection=introspection))
    for query, hint in HINTS.items():
        expected = hint if introspection else hint.partition(" Did you mean ")[0]
        assert [error.message for error in requests.prepare(GraphQLRequest(query)).errors] == [expected]
