"""The schema as a text: what lies in the repository is what is served, and every part of it is described."""

import re
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
from tests.readme import DOCS, table

ROOT = Path(__file__).parents[2]


def test_all_names_that_could_clash_are_known():
    classes = served(
        "graph.hierarchies.locations,graph.hierarchies.categories,clade.examples.asset,clade.examples.drive"
    )
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


def told_elsewhere(schema):
    """Where what a part does not describe is described: an interface, the look-up of any level, and the attribute."""
    for name, kind in schema.type_map.items():
        for interface in kind.interfaces if is_object_type(kind) else ():
            for field, one in interface.fields.items():
                yield f"{name}.{field}", f"{interface.name}.{field}"
                yield from ((f"{name}.{field}({key}:)", f"{interface.name}.{field}({key}:)") for key in one.args)
        for one in (schema.type_map["Location"], schema.type_map["CategoryNode"]):
            if is_object_type(kind) and one in kind.interfaces:
                look_up = f"Query.{name[0].lower()}{name[1:]}", f"Query.{one.name[0].lower()}{one.name[1:]}"
                yield from (tuple(f"{field}({key}:)" for field in look_up) for key in ("path", "id"))
        if name in ("LocationCondition", "CategoryNodeCondition"):
            order = f"{name.removesuffix('Condition')}OrderField"
            yield from ((f"{name}.{field}", f"{order}.{constant(field)}") for field in kind.fields)


def constant(name):
    return re.sub("([A-Z])", r"_\1", name).upper()


def test_every_type_field_argument_and_enum_value_is_described_once(schema):
    described = {name for name, part in parts(schema) if (part.description or "").strip()}
    assert {"Location.childCount(level:)", "LocationLevel.CITY", "_Service.sdl", "Path"} < described
    told = {one for one, there in told_elsewhere(schema) if there in described}
    assert [name for name, _ in parts(schema) if name not in described | told] == []


def test_arguments_are_as_many_as_the_decision_about_them_says(schema):
    kinds = {name: kind for name, kind in schema.type_map.items() if not name.startswith("__")}
    counts = {
        name: sum([len(field.args) for field in kind.fields.values()])
        for name, kind in kinds.items()
        if is_object_type(kind) or is_interface_type(kind)
    }
    levels = [name for name in counts if is_object_type(kinds[name]) and kinds["TreeNode"] in kinds[name].interfaces]
    interfaces = [name for name in counts if is_interface_type(kinds[name])]
    roots = [name for name in ("Query", "Mutation", "Subscription") if name in counts]
    others = counts.keys() - {*levels, *interfaces, *roots}
    found = [sum([counts[name] for name in some]) for some in (levels, interfaces, others, roots)]
    rows = table((DOCS / "decisions" / "arguments.md").read_text("utf-8"))
    assert found == [int(number) for _, number, *_ in rows]


def test_the_file_is_short_enough_to_be_read():
    assert len((ROOT / "schema.graphql").read_bytes()) <= 95_000
