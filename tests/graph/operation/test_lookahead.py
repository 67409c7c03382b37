"""Look-ahead: relations by type, with the arguments of one request; what is selected of a connection."""

import pytest
from graphql import parse
from graphql.execution.values import VariableValues

from graph.operation.graphql_core import core_schema
from graph.operation.lookahead import LookAhead, SelectedFields
from graph.schema import build_schema
from graph.types.field import resolver_of
from resolvers.planning.relations import RelationKind
from store.errors import BadInput
from tests.model import Ground

SCHEMA, TYPES = build_schema([Ground])
CORE = core_schema(SCHEMA)


def look_ahead(query, **variables):
    """The look-ahead of a query, and what it selects of the nodes of its first root field."""
    document = parse(query)
    coerced = VariableValues({}, variables)
    fields = SelectedFields(CORE, TYPES, document.definitions, document.definitions[0], coerced)
    found = LookAhead(fields, coerced)
    return found, found.selection(fields.position(next(iter(fields.at_root().values()))))


def test_relations_differ_by_level_and_merge_fragments():
    _, selection = look_ahead(
        '{ ground(path: "a") { ...more ... on Area { children(first: 2) { nodes { parent { id } } } } } }'
        "fragment more on Ground { key ... on Area { children(first: 2) { totalCount } } descendants { totalCount } }"
    )
    children, descendants = selection.on("ground", "AREA")
    assert (children.kind, children.window.first) == (RelationKind.CHILDREN, 2)
    assert (children.nodes, children.total) == (True, True)
    assert (descendants.kind, descendants.nodes, descendants.total) == (RelationKind.DESCENDANTS, False, True)
    assert [relation.kind for relation in selection.on("ground", "PLOT")] == [RelationKind.DESCENDANTS]
    assert [relation.kind for relation in children.selection.on("ground", "PLOT")] == [RelationKind.PARENT]


def test_a_relation_is_the_same_object_wherever_it_is_selected():
    _, selection = look_ahead('{ ground(path: "a") { children { nodes { id } } } }')
    assert selection.on("ground", "AREA") is selection.on("ground", "AREA")


def test_a_level_that_is_unknown_or_expected_otherwise_selects_nothing_of_its_own():
    _, selection = look_ahead('{ ground(path: "a") { ... on Area { children { nodes { id } } } } }')
    assert selection.on("ground", "RIVER") == ()
    assert selection.expecting("AREA").on("ground", "PLOT") == selection.on("ground", "AREA")


@pytest.mark.parametrize(("first", "count"), [(1, 1), (-1, 0)])
def test_invalid_arguments_leave_the_relation_out_and_are_an_error_of_its_own_field(first, count):
    found, selection = look_ahead(
        'query($n: Int) { ground(path: "a") { children(first: $n) { totalCount } } }', n=first
    )
    assert len(selection.on("ground", "AREA")) == count
    (field,) = selection._position.relations("ground", "AREA")
    if count:
        assert found.relation(field).window.first == first
    else:
        for _ in range(2):
            with pytest.raises(BadInput, match="first is -1"):
                found.relation(field)


def test_every_field_of_a_node_but_its_revisions_has_a_registered_resolver():
    for name in TYPES.values():
        fields = CORE.get_type(name).fields
        assert {field for field, one in fields.items() if resolver_of(one) is None} == {"history", "atRevision"}
