"""Document limits: the maximum size of one GraphQL document, checked before it is validated, compiled or executed.

Validation compares fields pairwise and plans follow every fragment, so a document that is too large is rejected before
both. A cached document has passed, and is not checked again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphql import DocumentNode, GraphQLError, GraphQLSyntaxError, parse

from graph.errors import LIMIT_EXCEEDED
from graph.operation.document_size import Size, TooManyFields
from store.errors import Forbidden


@dataclass(frozen=True, kw_only=True)
class DocumentLimits:
    """Limits of one document, each fragment counted wherever it is spread; `request_seconds` is its time limit.

    `introspection` is whether it may select the schema.
    """

    max_tokens: int = 2_000
    max_depth: int = 15
    max_fields: int = 2_000
    max_repeats: int = 100
    max_aliases: int = 30
    max_root_fields: int = 20
    max_directives: int = 50
    max_directives_at_once: int = 4
    request_seconds: float = 10.0
    introspection: bool = True

    def parse(self, query: str) -> DocumentNode:
        """The parsed document. Raises GraphQLError for a syntax error, and for one that exceeds a limit."""
        try:
            document = parse(
                query,
                max_lexical_tokens=self.max_tokens,
                max_comments=self.max_tokens,
                allow_empty_selection_sets=False,  # by default graphql-core takes them, though the grammar has none
            )
        except GraphQLSyntaxError as error:
            if "Document contains more than" not in error.message:
                raise
            raise too_much(f"more than {self.max_tokens:,}", "tokens", self.max_tokens, "MAX_TOKENS") from None
        self._check(document)
        return document

    def _check(self, document: DocumentNode) -> None:
        try:
            size = Size(document, self.max_fields)
        except TooManyFields:
            many = f"more than {self.max_fields:,}"
            raise too_much(many, "fields, each fragment written out", self.max_fields, "MAX_FIELDS") from None
        directives = [len(node.directives or ()) for node in nodes_in(document)]
        for found, unit, limit, setting in (
            (max(directives), "directives at one location", self.max_directives_at_once, "MAX_DIRECTIVES_AT_ONCE"),
            (sum(directives), "directives", self.max_directives, "MAX_DIRECTIVES"),
            (size.depth, "levels of fields", self.max_depth, "MAX_DEPTH"),
            (size.aliases, "aliases", self.max_aliases, "MAX_ALIASES"),
            (size.root_fields, "fields at its root", self.max_root_fields, "MAX_ROOT_FIELDS"),
            (size.repeats, "fields of one name in one selection set", self.max_repeats, "MAX_REPEATS"),
        ):
            if found > limit:
                raise too_much(f"{found:,}", unit, limit, setting)
        if size.introspects and not self.introspection:
            raise GraphQLError("Introspection is disabled.", extensions={"code": Forbidden.code})


def nodes_in(document: DocumentNode) -> Iterator[Any]:
    """Every node of a document that can have directives, in no order; fragments once, as they are written."""
    ahead: list[Any] = list(document.definitions)
    while ahead:
        node = ahead.pop()
        yield node
        ahead += getattr(node, "variable_definitions", None) or ()
        selections = getattr(node, "selection_set", None)
        ahead += selections.selections if selections else ()


def too_much(found: str, unit: str, limit: int, setting: str) -> GraphQLError:
    """The error for a document that exceeds a limit."""
    allowed = f"the limit is {limit:,}. Ask in several requests, or raise CLADE_{setting}."
    return GraphQLError(f"The query has {found} {unit}; {allowed}", extensions={"code": LIMIT_EXCEEDED, "limit": limit})
