"""What one document may ask for, found from its syntax alone: before it is validated, planned or run.

Validation compares fields pairwise and plans follow every fragment, so what is too much is refused before both. A
document that is kept has passed, and is not looked at again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import DirectiveNode, DocumentNode, GraphQLError, GraphQLSyntaxError, parse

from graph.errors import LIMIT_EXCEEDED
from graph.operation.document_size import Size, TooManyFields
from store.errors import Forbidden


@dataclass(frozen=True, kw_only=True)
class DocumentLimits:
    """Of one document, fragments counted wherever they are spread; `request_seconds` is how long it may run.

    `introspection` is whether it may ask for the schema.
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
        """The document of a query that keeps all limits; raises GraphQLError for one that does not, or is none."""
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
        directives = [len(place) for place in directives_in(document)]
        for found, what, limit, setting in (
            (max(directives), "directives at one place", self.max_directives_at_once, "MAX_DIRECTIVES_AT_ONCE"),
            (sum(directives), "directives", self.max_directives, "MAX_DIRECTIVES"),
            (size.depth, "levels of fields", self.max_depth, "MAX_DEPTH"),
            (size.aliases, "aliases", self.max_aliases, "MAX_ALIASES"),
            (size.root_fields, "fields at its root", self.max_root_fields, "MAX_ROOT_FIELDS"),
            (size.repeats, "times the same field at one place", self.max_repeats, "MAX_REPEATS"),
        ):
            if found > limit:
                raise too_much(f"{found:,}", what, limit, setting)
        if size.introspects and not self.introspection:
            raise GraphQLError("This server does not tell its schema.", extensions={"code": Forbidden.code})


def directives_in(document: DocumentNode) -> Iterator[Sequence[DirectiveNode]]:
    """The directives at each place of a document, in no order; fragments once, as they are written."""
    ahead: list[Any] = list(document.definitions)
    while ahead:
        node = ahead.pop()
        yield node.directives or ()
        ahead += getattr(node, "variable_definitions", None) or ()
        selections = getattr(node, "selection_set", None)
        ahead += selections.selections if selections else ()


def too_much(found: str, what: str, limit: int, setting: str) -> GraphQLError:
    """The refusal of a document, with what it has and what it may have."""
    allowed = f"the limit is {limit:,}. Ask in several requests, or raise CLADE_{setting}."
    return GraphQLError(f"The query has {found} {what}; {allowed}", extensions={"code": LIMIT_EXCEEDED, "limit": limit})
