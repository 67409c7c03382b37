"""Documents: GraphQL requests, the persisted (trusted) documents that clients can send by their ids, and how a document
is parsed and validated.

Where the schema has no field or argument of a name, nor one that looks alike, validation hints at the one that a client
means: fields of a node are often asked of the connection or payload around it, and arguments have other names in other
APIs.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson
from graphql import (
    DocumentNode,
    FieldsOnCorrectTypeRule,
    GraphQLError,
    GraphQLSchema,
    KnownArgumentNamesRule,
    VariableNode,
    get_named_type,
    specified_rules,
    validate,
)
from graphql.language.visitor import EnterLeaveVisitor

from graph.errors import (
    NESTED_MESSAGE,
    NO_DOCUMENTS,
    NO_SUCH_DOCUMENT,
    VALIDATION_FAILED,
    RequestRejected,
    request_error,
)
from graph.operation.limits import DocumentLimits, Inputs
from store.cache import BoundedCache
from store.errors import BadInput, Forbidden, shorten

PREFIX = "sha256:"

MAX_ERRORS = 20  # of validation, each of which takes longer to find than a field takes to answer

AROUND = ("nodes", "node")  # fields that lead from a connection, an edge or a payload to its nodes
ELSEWHERE = {
    "filter": "where", "filterBy": "where", "condition": "where",
    "sort": "orderBy", "sortBy": "orderBy", "order": "orderBy", "order_by": "orderBy",
    "limit": "first", "take": "first", "size": "first", "pageSize": "first", "count": "first",
    "cursor": "after", "offset": "after", "skip": "after",
    "depth": "maxDepth", "max_depth": "maxDepth", "query": "text", "term": "text", "search": "text", "q": "text",
    "data": "input", "slug": "path", "key": "path", "uri": "path", "url": "path",
    "language": "languages", "locale": "languages", "lang": "languages", "revision": "n", "version": "n",
    "near": "where", "radius": "where", "kilometers": "where", "latitude": "where", "longitude": "where",
}  # fmt: skip
"""What arguments are called by other APIs, and by this one."""


class GraphQLRequest(NamedTuple):
    """One operation as a client sent it. Its values are not changed: equal requests share them."""

    query: str
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    extensions: dict[str, Any] | None = None


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

    An id may be any text, since clients may send ids of their own, and compilers write hashes of other kinds. Raises
    BadInput for a file that cannot be read or is not an object of ids and documents, and for an id that is empty or
    that of two documents.
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
    documents: dict[str, str] = {}
    for key, document in content.items():
        bare = key.removeprefix(PREFIX)
        if not bare:
            reason = f'has "{key}" as the id of a document, which no client sends; write its hash.'
            raise BadInput(f"CLADE_TRUSTED_DOCUMENTS: {file} {reason}")
        if documents.setdefault(bare, document) != document:
            reason = f'has two documents with the id {shorten(bare)}, once with "{PREFIX}"; leave out one of them.'
            raise BadInput(f"CLADE_TRUSTED_DOCUMENTS: {file} {reason}")
    return documents


def id_in(sent: Mapping[str, Any]) -> str | None:
    """The id of a document in a request's parameters: `documentId`, or `extensions.persistedQuery` (Apollo)."""
    extensions = sent.get("extensions")
    persisted = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
    hashed = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    found = sent.get("documentId", hashed)
    return found if isinstance(found, str) and found else None


Key = str | tuple[str, ...]
"""The key of a document in its cache: its text, of a template what its documents have in common."""


@dataclass(eq=False)
class ParsedDocument:
    """A valid query of so many characters, with its key in the cache."""

    document: DocumentNode
    inputs: Inputs
    characters: int
    key: Key
    is_cached: bool = False
    holders: dict[Hashable, BoundedCache[Any, Any]] = field(default_factory=dict)
    """The entries of other caches that hold this document, which are dropped with it."""

    def put_into(self, cache: BoundedCache[Key, "ParsedDocument"]) -> None:
        """Cache it, if it is not too long."""
        cache.put(self.key, self)
        self.is_cached = self.key in cache

    def hold(self, cache: BoundedCache[Any, Any], key: Hashable, value: object) -> None:
        """Cache what holds this document, for as long as it is cached itself."""
        if self.is_cached:
            self.holders[key] = cache
            cache.put(key, value)

    def release(self) -> None:
        """Drop all that holds this document, which is not cached any more."""
        self.is_cached = False
        while self.holders:
            key, cache = self.holders.popitem()
            cache.drop(key)

    @cached_property
    def deciding(self) -> list[str]:
        """The variables in directives, on whose values a plan depends."""
        directives = [directive for node in nodes_in(self.document) for directive in node.directives or ()]
        values = [argument.value for directive in directives for argument in directive.arguments or ()]
        return sorted({value.name.value for value in values if isinstance(value, VariableNode)})


def nodes_in(document: DocumentNode) -> Iterator[Any]:
    """Every node of a document that can have directives, in no order; fragments once, as they are written."""
    ahead: list[Any] = list(document.definitions)
    while ahead:
        node = ahead.pop()
        yield node
        ahead += getattr(node, "variable_definitions", None) or ()
        selections = getattr(node, "selection_set", None)
        ahead += selections.selections if selections else ()


def parse_document(schema: GraphQLSchema, limits: DocumentLimits, query: str) -> ParsedDocument | list[GraphQLError]:
    """The document of a query, or its errors with their locations.

    Where the limits allow introspection, the error for an unknown name suggests similar names.
    """
    hide = not limits.introspection
    try:
        document, inputs = limits.parse(query)
        errors = validate(schema, document, RULES, max_errors=MAX_ERRORS, hide_suggestions=hide)
    except GraphQLError as error:
        return [error]
    except RecursionError:
        errors = [GraphQLError(NESTED_MESSAGE)]
    if hide:  # one rule of graphql-core cannot hide its suggestions
        for found in errors:
            found.message = found.message.partition(" Did you mean ")[0]
    return [request_error(error, VALIDATION_FAILED) for error in errors] or ParsedDocument(
        document, inputs, len(query), query
    )


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


_NO_METHODS = EnterLeaveVisitor(None, None)
HINTING: Mapping[Any, Any] = {FieldsOnCorrectTypeRule: FieldsOnCorrectType, KnownArgumentNamesRule: KnownArgumentNames}


def _quick(rule: Any) -> Any:
    """A rule that is asked for its methods for those kinds of nodes alone for which it has some: to look for others
    takes a fifth of the time of a new document.
    """
    methods = [name.partition("_") for name in dir(rule)]
    kinds = {kind for prefix, _, kind in methods if prefix in ("enter", "leave")}
    if "" in kinds:  # for all kinds
        return rule
    find = rule.get_enter_leave_for_kind
    return type(rule.__name__, (rule,), {
        "get_enter_leave_for_kind": lambda self, kind: find(self, kind) if kind in kinds else _NO_METHODS
    })  # fmt: skip


RULES = tuple([_quick(HINTING.get(rule, rule)) for rule in specified_rules])
