"""Hints at the field or argument that a client means, where nothing looks alike."""

import pytest

from graph.hierarchies.registry import served
from graph.operation.document_cache import DocumentCache, InvalidDocument
from graph.operation.document_limits import DocumentLimits
from graph.schema import build_schema
from graph.settings import Settings

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
    'mutation { moveLocation(path: "US/NE", to: "CA") { userErrors { code } } }': [
        "Unknown argument 'path' on field 'Mutation.moveLocation'. Did you mean 'input'?",
        "Unknown argument 'to' on field 'Mutation.moveLocation'. Did you mean 'input'?",
        "Argument 'Mutation.moveLocation(input:)' of type 'MoveLocationInput!' is required, but it was not provided.",
    ],
    # What looks alike, or nothing: as GraphQL's own rules say it.
    "{ locations(level: COUNTRY, orderby: {field: NAME}) { totalCount } }":
        "Unknown argument 'orderby' on field 'Query.locations'. Did you mean 'orderBy'?",
    "{ locations(filters: {}) { totalCount } }": "Unknown argument 'filters' on field 'Query.locations'.",
    "{ name }": "Cannot query field 'name' on type 'Query'. Did you mean 'node'?",
    "{ categories { colour } }": f"Cannot query field 'colour' on type {CONNECTION}.",
}  # fmt: skip


@pytest.mark.parametrize("introspection", [True, False])
@pytest.mark.parametrize("query", HINTS)
def test_an_error_says_what_is_meant_where_clients_may_see_the_schema(query, introspection):
    schema = build_schema(served(Settings().hierarchies))[0]
    with pytest.raises(InvalidDocument) as caught:
        DocumentCache(schema, DocumentLimits(introspection=introspection)).get(query)
    hints = HINTS[query] if isinstance(HINTS[query], list) else [HINTS[query]]
    expected = hints if introspection else [hint.partition(" Did you mean ")[0] for hint in hints]
    assert [error.message for error in caught.value.errors] == expected
