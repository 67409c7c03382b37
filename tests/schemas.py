"""Schemas, checks of their names and valid documents that tests share: building a schema takes a third of a second and
validating a document some milliseconds, and nothing changes them afterwards.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from graphql import GraphQLError, GraphQLSchema

from graph.hierarchies.node import Node
from graph.hierarchies.registry import check_names
from graph.operation.document import ParsedDocument, parse_document
from graph.operation.limits import DocumentLimits
from graph.schema import build_schema

_documents: dict[tuple[GraphQLSchema, DocumentLimits, str], ParsedDocument] = {}


def schema_of(*hierarchies: type[Node]) -> Any:
    """The schema of these hierarchies and the names of their types, built once in this process."""
    return shared_schema(hierarchies)


def shared_schema(hierarchies: Sequence[type[Node]], *, expose: frozenset[str] = frozenset()) -> Any:
    """What `build_schema` returns, built once in this process."""
    return _built(tuple(hierarchies), expose)


@cache
def _built(hierarchies: tuple[type[Node], ...], expose: frozenset[str]) -> Any:
    return build_schema(hierarchies, expose=expose)


def check_names_once(hierarchies: Sequence[type[Node]]) -> None:
    """What `check_names` does; names that are valid are checked once in this process."""
    _checked(tuple(hierarchies))


@cache
def _checked(hierarchies: tuple[type[Node], ...]) -> None:
    check_names(hierarchies)


def shared_document(schema: GraphQLSchema, limits: DocumentLimits, query: str) -> ParsedDocument | list[GraphQLError]:
    """What `parse_document` returns; a valid document is parsed once in this process."""
    key = schema, limits, query
    if key not in _documents:
        parsed = parse_document(schema, limits, query)
        if isinstance(parsed, list):
            return parsed
        _documents[key] = parsed
    return replace(_documents[key], is_cached=False, holders={})
