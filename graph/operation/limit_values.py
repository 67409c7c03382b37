"""Values of the document limits, apart from the code that applies them, so that settings load without graphql-core."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LimitValues:
    """Limits of one document, each fragment counted wherever it is spread.

    `max_depth` and `request_seconds` are settings. The others are the same for all servers: they are above what written
    queries need, and below what takes long to validate.
    """

    max_tokens: int = 2_000
    """Also the maximum number of comments. A page of an application has some hundred tokens."""
    max_depth: int = 15
    """Of fields within fields; `edges`, `node`, `nodes` and introspection are not counted."""
    max_fields: int = 2_000
    """And fragment spreads, with all fragments expanded: a few short fragments can expand to billions."""
    max_repeats: int = 100
    """Of one field in one selection set of the response, since validation compares each with each."""
    max_aliases: int = 30
    """The only bound of what one node can write before its bytes are counted, since each alias repeats a value of up to
    400 KB; those of `_entities` are not counted."""
    max_input_values: int = 2_000
    """In the arguments of an operation, in literals and variables, at each place, since each is coerced there; an
    entity of a gateway counts as one."""
    request_seconds: float = 10.0
    """Time limit of the execution."""
    introspection: bool = True
    """Whether a document may select the schema."""
