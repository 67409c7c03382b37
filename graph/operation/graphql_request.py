"""GraphQL request: a document and the values that go with it."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

from orjson import OPT_SORT_KEYS, dumps


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
            content = dumps([self.query, self.operation_name, self.variables], option=OPT_SORT_KEYS)
        except TypeError:  # variables nested deeper than orjson serializes
            return None
        return blake2b(content, digest_size=32).digest()
