"""Document cache: parsed and validated queries by their text."""

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from graphql import (
    DocumentNode,
    FieldsOnCorrectTypeRule,
    GraphQLError,
    KnownArgumentNamesRule,
    OperationDefinitionNode,
    get_operation_ast,
    specified_rules,
    validate,
)
from strawberry import Schema
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule

from graph.errors import NESTED_MESSAGE, VALIDATION_FAILED, request_error
from graph.operation.document_limits import DocumentLimits, Inputs, Measured
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.operation.hints import FieldsOnCorrectType, KnownArgumentNames
from store.cache import BoundedCache

HINTING = {FieldsOnCorrectTypeRule: FieldsOnCorrectType, KnownArgumentNamesRule: KnownArgumentNames}
RULES = (*[HINTING.get(rule, rule) for rule in specified_rules], MaybeNullValidationRule, OneOfInputValidationRule)

MAX_ERRORS = 20  # of validation, each of which takes longer to find than a field takes to answer
MAX_DOCUMENTS = 1_000  # cached
KEPT_CHARACTERS = 300_000  # of all cached queries together: at most 90 MB
CHARACTER_BYTES = 300  # of memory, at most, that a parsed query takes for each of its characters


class InvalidDocument(Exception):
    """A syntax error or a validation error; `errors` has the locations."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__(f"{len(errors)} errors")
        self.errors = errors


@dataclass(eq=False)
class ParsedDocument:
    """A valid query, and its compiled plans, which are dropped with it."""

    document: DocumentNode
    inputs: Inputs
    plans: BoundedCache[tuple[str, ...], Any] | None = None
    """By operation, and by the values that decide what a plan is; made by the `PlanCache`."""
    bound: WeakKeyDictionary[GraphQLRequest, Any] = field(default_factory=WeakKeyDictionary)
    """The plans bound to the variables of requests, for as long as these are cached."""
    deciding: list[str] | None = None
    """The variables in directives; None until the first plan is compiled."""
    _operations: dict[str | None, OperationDefinitionNode] = field(default_factory=dict)

    def operation(self, name: str | None) -> OperationDefinitionNode | None:
        """The operation of this name, or the only one without a name; None where there is none."""
        found = self._operations.get(name) or get_operation_ast(self.document, name)
        if found is not None:
            self._operations[name] = found
        return found


class DocumentCache:
    """The last used queries: few clients send more than some dozen texts."""

    def __init__(self, schema: Schema, limits: DocumentLimits = DocumentLimits()) -> None:
        """Where the limits allow introspection, the error for an unknown name suggests similar names."""
        self._schema = core_schema(schema)
        self._limits = limits
        options = {"max_entries": MAX_DOCUMENTS, "bytes_each": CHARACTER_BYTES}
        self._documents: BoundedCache[str, ParsedDocument] = BoundedCache(
            "documents", KEPT_CHARACTERS, weigh=lambda query, _: len(query), **options
        )

    def get(self, query: str) -> ParsedDocument:
        """The valid document of a query. Raises InvalidDocument."""
        parsed = self._documents.get(query)
        if parsed is None:
            parsed = ParsedDocument(*self._parse(query))
            self._documents.put(query, parsed)
        return parsed

    def _parse(self, query: str) -> Measured:
        try:
            parsed = self._limits.parse(query)
            hide = not self._limits.introspection
            errors = validate(self._schema, parsed.document, RULES, max_errors=MAX_ERRORS, hide_suggestions=hide)
        except GraphQLError as error:
            raise InvalidDocument([error]) from None
        except RecursionError:
            errors = [GraphQLError(NESTED_MESSAGE)]
        if not self._limits.introspection:  # one rule of graphql-core cannot hide its suggestions
            for found in errors:
                found.message = found.message.partition(" Did you mean ")[0]
        if errors:
            raise InvalidDocument([request_error(error, VALIDATION_FAILED) for error in errors])
        return parsed
