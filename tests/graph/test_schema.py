"""The schema as a text: what lies in the repository is what is served, and every part of it is described."""

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

from graph.hierarchies.names import FIELD, LATER, OWN_FIELDS, OWN_TYPES, TYPE, names_of
from graph.hierarchies.registry import served
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema as build

ROOT = Path(__file__).parents[2]


def test_all_names_that_could_clash_are_known():
    classes = served("graph.hierarchies.locations,graph.hierarchies.categories,examples.asset,examples.drive")
    kinds = core_schema(build(classes)[0])
    names = {use.name for cls in classes for use in names_of(cls) if use.kind == TYPE and use.takes != LATER}
    types = {name for name in kinds.type_map if not name.startswith("__")}
    assert {name for name in names - types if not name.endswith("Attributes")} == set()  # some levels have none
    assert types - names <= OWN_TYPES
    values = {
        "Url",
        "Money",
        "MoneyInput",
        "Localized",
        "LocalizedText",
        "LocalizedTextInput",
    }  # where a class has them
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
