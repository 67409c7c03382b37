"""Values of the document limits, apart from the code that applies them, so that settings load without graphql-core."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class LimitValues:
    """Limits of one document, each fragment counted wherever it is spread; `request_seconds` is its time limit.

    `introspection` is whether it may select the schema.
    """

    max_tokens: int = 2_000
    max_depth: int = 15
    max_fields: int = 2_000
    max_repeats: ClassVar[int] = 100
    """Of one field in one selection set of the response; fixed, so without a setting."""
    max_aliases: int = 30
    max_root_fields: int = 20
    max_directives: int = 50
    max_input_values: int = 2_000
    request_seconds: float = 10.0
    introspection: bool = True
