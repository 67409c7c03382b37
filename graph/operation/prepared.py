"""Prepared requests: all that depends on nothing but a request is found out once, and cached by its bytes.

A `Prepared` leads to its document, which most requests share with others, and to the plan that is bound to its
variables. Neither cache can be emptied by requests that are sent once.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import orjson
from graphql import FieldNode, GraphQLError, GraphQLSchema, OperationDefinitionNode, OperationType, get_operation_ast

from graph.errors import NO_OPERATION
from graph.operation.document import GraphQLRequest, Key, ParsedDocument, parse_document
from graph.operation.limits import DocumentLimits
from graph.operation.literals import Templates, Values, relocate, scan
from store.cache import SieveCache

MAX_DOCUMENTS = 1_000  # cached
KEPT_CHARACTERS = 300_000  # of all cached queries together: at most 90 MB
CHARACTER_BYTES = 300  # of memory, at most, that a parsed query takes for each of its characters

# Clients repeat few requests; preparing a longer one is a small part of its work.
MAX_PREPARED_BYTES = 2_000  # of a request that is cached
MAX_PREPARED_REQUEST_BYTES = 8_000_000  # of memory for all of them
PREPARED_BYTES_EACH = 50  # of memory for each byte that is sent: lists in lists, and the plan that is bound to them

MAX_BOUND_CHARACTERS = 500
"""Maximum characters of a document with variables in its lists, for its bound plan to be cached: such a plan takes 25
bytes a character for each request, of which there may be a thousand.
"""

PUBLIC_FIELDS = frozenset({"__typename", "__schema", "__type", "_service"})
"""The fields that need no credential: gateways and code generators request the schema without one."""

Read = Callable[[bytes], GraphQLRequest]


class Prepared:
    """A request with the operation of its document, or with the `errors` for which it is rejected.

    `digest` is the key of its response in the cache, 32 bytes; None unless it is a query with variables that can be
    serialized. A request without an operation counts as a query of public fields.
    """

    document: ParsedDocument
    operation: OperationDefinitionNode
    kind = "query"
    name: str | None = None
    is_query = is_public = True
    is_mutation = is_subscription = False
    digest: bytes | None = None
    size = 0  # in bytes as sent
    lifted: Values | None = None
    """The literals that are variables of its document, which is a template."""
    bound: Any = None
    """The plan bound to the variables, where the `PlanCache` keeps it."""

    def __init__(self, request: GraphQLRequest, errors: list[GraphQLError]) -> None:
        self.request, self.errors = request, errors

    def choose(self, document: ParsedDocument, operation: OperationDefinitionNode) -> None:
        """Take the operation of a document that is requested."""
        kind, fields = operation.operation, operation.selection_set.selections
        self.document, self.operation, self.kind = document, operation, kind.value
        self.name = operation.name.value if operation.name else None
        self.is_query, self.is_mutation = kind is OperationType.QUERY, kind is OperationType.MUTATION
        self.is_subscription = kind is OperationType.SUBSCRIPTION
        self.is_public = all(isinstance(one, FieldNode) and one.name.value in PUBLIC_FIELDS for one in fields)
        self.digest = _digest(self.request) if self.is_query else None

    def located(self, errors: Sequence[GraphQLError]) -> Sequence[GraphQLError]:
        """Errors of its document with their places in its text."""
        if errors and self.lifted is not None:
            relocate(errors, self.document, self.request.query)
        return errors


class RequestCache:
    """Prepares requests on a schema, each of the same bytes once, and each document once."""

    def __init__(self, schema: GraphQLSchema, limits: DocumentLimits = DocumentLimits()) -> None:
        self._schema, self._limits = schema, limits
        self._documents: SieveCache[Key, ParsedDocument] = SieveCache(
            "documents",
            KEPT_CHARACTERS,
            max_entries=MAX_DOCUMENTS,
            weigh=lambda _, document: document.characters,
            bytes_each=CHARACTER_BYTES,
            evicted=lambda _, document: document.release(),
        )
        self._templates = Templates(schema, self._documents)
        self._requests: SieveCache[tuple[bytes, Read], Prepared] = SieveCache(
            "requests",
            MAX_PREPARED_REQUEST_BYTES,
            weigh=lambda key, _: len(key[0]) * PREPARED_BYTES_EACH,
            evicted=lambda key, prepared: prepared.document.holders.pop(key),
        )

    def get(self, sent: bytes, read: Read) -> Prepared:
        """The request in these bytes, which `read` reads: from a body or a query string. Raises what `read` raises."""
        key = sent, read
        found = self._requests.get(key)
        if found is not None:
            self._documents.used.add(found.document.key)
            return found
        found = self.prepare(read(sent))
        found.size = len(sent)
        is_short = found.lifted is None or len(found.request.query) <= MAX_BOUND_CHARACTERS
        if len(sent) <= MAX_PREPARED_BYTES and not found.errors and is_short:
            found.document.hold(self._requests, key, found)
        return found

    def prepare(self, request: GraphQLRequest) -> Prepared:
        """A request that is not cached itself."""
        lifted = None
        document: ParsedDocument | list[GraphQLError] | None = self._documents.get(request.query)
        if document is None:
            document, lifted = self._new(request.query)
        if isinstance(document, list):
            return Prepared(request, document)
        operation = get_operation_ast(document.document, request.operation_name)
        if operation is None:
            return Prepared(request, [_no_operation(request.operation_name)])
        prepared = Prepared(request, [])
        prepared.choose(document, operation)
        prepared.lifted = lifted
        inputs = document.inputs[prepared.name or ""]
        try:  # they are counted before any is coerced
            self._limits.check_inputs(self._schema, operation, inputs, request.variables or {})
        except GraphQLError as error:
            prepared.errors = [error.with_traceback(None)]  # whose frames hold the request
        return prepared

    def _new(self, query: str) -> tuple[ParsedDocument | list[GraphQLError], Values | None]:
        """A document that is not cached, or a template with the document's literals."""
        scanned = scan(query)
        if scanned is not None and (found := self._templates.find(query, scanned)) is not None:
            return found
        parsed = parse_document(self._schema, self._limits, query)
        if isinstance(parsed, ParsedDocument):
            parsed.put_into(self._documents)
            if scanned is not None:
                self._templates.remember(scanned, parsed)
        return parsed, None


def _digest(request: GraphQLRequest) -> bytes | None:
    try:
        content = orjson.dumps([request.query, request.operation_name, request.variables], option=orjson.OPT_SORT_KEYS)
    except TypeError:  # variables nested deeper than orjson serializes
        return None
    return blake2b(content, digest_size=32).digest()


def _no_operation(name: str | None) -> GraphQLError:
    message = (
        "The document must have exactly one operation; otherwise select one with operationName."
        if name is None
        else f'The document has no operation "{name}".'
    )
    return GraphQLError(message, extensions={"code": NO_OPERATION})
