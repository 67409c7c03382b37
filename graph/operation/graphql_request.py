"""What a client asks: a document and the values that go with it."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

from orjson import OPT_SORT_KEYS, dumps


@dataclass(frozen=True, eq=False)
class GraphQLRequest:
    """One operation as a client asks for it; nobody changes its values, since they may be asked again."""

    query: str
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    extensions: dict[str, Any] | None = None

    @cached_property
    def digest(self) -> bytes | None:
        """What an answer is kept under, since texts and variables may be long; None where there is none."""
        try:
            asked = dumps([self.query, self.operation_name, self.variables], option=OPT_SORT_KEYS)
        except TypeError:  # variables that are nested deeper than JSON is written
            return None
        return blake2b(asked, digest_size=32).digest()
