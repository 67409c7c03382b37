"""Parsed and validated queries, kept by their text."""

from collections import OrderedDict

from graphql import DocumentNode, GraphQLError, parse, specified_rules
from strawberry import Schema
from strawberry.schema.schema import validate_document

from graph.errors import VALIDATION_FAILED, request_error

MAX_TOKENS = 10_000
"""In one query; the longest that tools send, the introspection query, has some 400."""

KEPT_CHARACTERS = 300_000
"""In all kept queries together. A parsed one takes up to 300 bytes a character: at most 90 MB."""


class InvalidDocument(Exception):
    """A query that does not parse, or does not fit the schema; `errors` says where."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__(f"{len(errors)} errors")
        self.errors = errors


class Documents:
    """The queries seen last, ready to run: few clients send more than some dozen texts."""

    def __init__(self, schema: Schema, *, keep: int) -> None:
        self._schema = schema
        self._max_documents = keep
        self._kept: OrderedDict[str, DocumentNode] = OrderedDict()
        self._characters = 0

    def get(self, query: str) -> DocumentNode:
        """The valid document of a query. Raises InvalidDocument."""
        document = self._kept.get(query)
        if document is not None:
            self._kept.move_to_end(query)
            return document
        document = self._prepare(query)
        self._keep(query, document)
        return document

    def _prepare(self, query: str) -> DocumentNode:
        try:
            document = parse(query, max_lexical_tokens=MAX_TOKENS, max_comments=MAX_TOKENS)
        except GraphQLError as error:
            raise InvalidDocument([error]) from None
        errors = validate_document(self._schema._schema, document, tuple(specified_rules))
        if errors:
            raise InvalidDocument([request_error(error, VALIDATION_FAILED) for error in errors])
        return document

    def _keep(self, query: str, document: DocumentNode) -> None:
        self._kept[query] = document
        self._characters += len(query)
        while len(self._kept) > self._max_documents or self._characters > KEPT_CHARACTERS:
            dropped, _ = self._kept.popitem(last=False)
            self._characters -= len(dropped)
