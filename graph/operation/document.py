"""Documents: GraphQL requests, the persisted (trusted) documents that clients can send by their ids, and the cache of
parsed and validated documents by their text.

Where the schema has no field or argument of a name, nor one that looks alike, validation hints at the one that a client
means: fields of a node are often asked of the connection or payload around it, and arguments have other names in other
APIs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from graphql import (
    DocumentNode,
    FieldsOnCorrectTypeRule,
    GraphQLError,
    KnownArgumentNamesRule,
    OperationDefinitionNode,
    get_named_type,
    get_operation_ast,
    specified_rules,
    validate,
)
from strawberry import Schema
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule

from graph.errors import (
    NESTED_MESSAGE,
    NO_DOCUMENTS,
    NO_SUCH_DOCUMENT,
    VALIDATION_FAILED,
    RequestRejected,
    request_error,
)
from graph.operation.limits import DocumentLimits, Inputs
from graph.operation.selection import core_schema
from store.cache import BoundedCache
from store.errors import BadInput, Forbidden

PREFIX = "sha256:"

MAX_ERRORS = 20  # of validation, each of which takes longer to find than a field takes to answer
MAX_DOCUMENTS = 1_000  # cached
KEPT_CHARACTERS = 300_000  # of all cached queries together: at most 90 MB
CHARACTER_BYTES = 300  # of memory, at most, that a parsed query takes for each of its characters

AROUND = ("nodes", "node")  # fields that lead from a connection, an edge or a payload to its nodes
ELSEWHERE = {
    "filter": "where", "filterBy": "where", "condition": "where",
    "sort": "orderBy", "sortBy": "orderBy", "order": "orderBy", "order_by": "orderBy",
    "limit": "first", "take": "first", "size": "first", "pageSize": "first", "count": "first",
    "cursor": "after", "offset": "after", "skip": "after",
    "depth": "maxDepth", "max_depth": "maxDepth", "query": "text", "term": "text", "search": "text", "q": "text",
    "data": "input", "slug": "path", "key": "path", "uri": "path", "url": "path",
    "language": "languages", "locale": "languages", "lang": "languages", "revision": "n", "version": "n",
    "radius": "kilometers", "distance": "kilometers", "lat": "latitude", "lng": "longitude", "lon": "longitude",
}  # fmt: skip
"""What arguments are called by other APIs, and by this one."""


@dataclass(frozen=True, eq=False)
class GraphQLRequest:
    """One operation as a client sent it. Its values are not changed: equal requests share them."""

    query: str
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    extensions: dict[str, Any] | None = None

    @cached_property
    def digest(self) -> bytes | None:
        """Key of the response in the cache, 32 bytes; None where the variables cannot be serialized."""
        try:
            content = orjson.dumps([self.query, self.operation_name, self.variables], option=orjson.OPT_SORT_KEYS)
        except TypeError:  # variables nested deeper than orjson serializes
            return None
        return blake2b(content, digest_size=32).digest()


class UnknownDocument(Exception):
    """The document of a request is not known; the client gets the message and the code."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class PersistedDocuments:
    """Documents by their ids; with `only` all others are rejected."""

    def __init__(self, documents: Mapping[str, str], *, only: bool = False) -> None:
        self._documents = documents
        self._texts = frozenset(documents.values()) if only else None

    def document(self, query: str | None, document_id: str | None) -> str:
        """The document of a request by its text, its id or both. Raises UnknownDocument and RequestRejected.

        The text beside a known id has to be the same, else the message is that of Apollo's protocol. An unknown id
        beside a text is ignored, even if it is not its hash, since nothing is stored under it. Clients of that protocol
        compare the messages for an id alone, and then send the text. A text that is refused has another message and
        code, since to send it again would change nothing.
        """
        if document_id is not None and (found := self._documents.get(document_id.removeprefix(PREFIX))) is not None:
            if query not in (None, found):
                raise RequestRejected(400, "provided sha does not match query")
            return found
        if query is None:
            if self._documents:
                raise UnknownDocument("PersistedQueryNotFound", NO_SUCH_DOCUMENT)
            raise UnknownDocument("PersistedQueryNotSupported", NO_DOCUMENTS)
        if self._texts is not None and query not in self._texts:
            raise UnknownDocument("Unknown document; only persisted documents are accepted.", Forbidden.code)
        return query


def read_trusted(file: str) -> dict[str, str]:
    """The documents in a JSON file, by their ids without prefix; none without a file.

    Raises BadInput for a file that cannot be read or is not an object of ids and documents.
    """
    if not file:
        return {}
    try:
        with open(file, "rb") as opened:
            content: Any = orjson.loads(opened.read())
    except OSError as error:
        raise BadInput(f"CLADE_TRUSTED_DOCUMENTS: {file} cannot be read: {(error.strerror or '').lower()}.") from None
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict) or not all(isinstance(one, str) for one in content.values()):
        raise BadInput(f'CLADE_TRUSTED_DOCUMENTS: {file} must be JSON such as {{"HASH": "query Menu {{ … }}"}}.')
    return {key.removeprefix(PREFIX): document for key, document in content.items()}


def id_in(sent: Mapping[str, Any]) -> str | None:
    """The id of a document in a request's parameters: `documentId`, or `extensions.persistedQuery` (Apollo)."""
    extensions = sent.get("extensions")
    persisted = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
    hashed = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    found = sent.get("documentId", hashed)
    return found if isinstance(found, str) and found else None


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
        self._documents: BoundedCache[str, ParsedDocument] = BoundedCache(
            "documents",
            KEPT_CHARACTERS,
            max_entries=MAX_DOCUMENTS,
            weigh=lambda query, _: len(query),
            bytes_each=CHARACTER_BYTES,
        )

    def get(self, query: str) -> ParsedDocument:
        """The valid document of a query. Raises InvalidDocument."""
        parsed = self._documents.get(query)
        if parsed is None:
            parsed = self._parse(query)
            self._documents.put(query, parsed)
        return parsed

    def _parse(self, query: str) -> ParsedDocument:
        hide = not self._limits.introspection
        try:
            document, inputs = self._limits.parse(query)
            errors = validate(self._schema, document, RULES, max_errors=MAX_ERRORS, hide_suggestions=hide)
        except GraphQLError as error:
            raise InvalidDocument([error]) from None
        except RecursionError:
            errors = [GraphQLError(NESTED_MESSAGE)]
        if hide:  # one rule of graphql-core cannot hide its suggestions
            for found in errors:
                found.message = found.message.partition(" Did you mean ")[0]
        if errors:
            raise InvalidDocument([request_error(error, VALIDATION_FAILED) for error in errors])
        return ParsedDocument(document, inputs)


class FieldsOnCorrectType(FieldsOnCorrectTypeRule):
    """The rule of GraphQL's validation, with a hint at the nodes that have the field."""

    def enter_field(self, node: Any, *others: Any) -> None:
        parent: Any = self.context.get_parent_type()
        name = node.name.value
        if self.context.get_field_def() is None and not self.context.hide_suggestions:
            for around in AROUND:
                field = getattr(parent, "fields", {}).get(around)
                if field is not None and not field.args and name in getattr(get_named_type(field.type), "fields", {}):
                    fact = f"Cannot query field '{name}' on type '{parent}'."
                    self.report_error(GraphQLError(f"{fact} Did you mean '{around} {{ {name} }}'?", node))
                    return
        super().enter_field(node, *others)


class KnownArgumentNames(KnownArgumentNamesRule):
    """The rule of GraphQL's validation, with a hint at the argument that other APIs call so."""

    def enter_argument(self, arg_node: Any, *others: Any) -> None:
        field, name = self.context.get_field_def(), arg_node.name.value
        meant = ELSEWHERE.get(name)
        if field is not None and name not in field.args and meant in field.args and not self.context.hide_suggestions:
            asked = others[3][-1].name.value  # the field, the last of the nodes above
            fact = f"Unknown argument '{name}' on field '{self.context.get_parent_type()}.{asked}'."
            self.report_error(GraphQLError(f"{fact} Did you mean '{meant}'?", arg_node))
            return
        super().enter_argument(arg_node, *others)


HINTING = {FieldsOnCorrectTypeRule: FieldsOnCorrectType, KnownArgumentNamesRule: KnownArgumentNames}
RULES = (*[HINTING.get(rule, rule) for rule in specified_rules], MaybeNullValidationRule, OneOfInputValidationRule)
