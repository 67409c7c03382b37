"""GraphQL request: a document with its variables, and the persisted (trusted) documents, each with an id that clients
can send instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import orjson

from graph.errors import NO_DOCUMENTS, NO_SUCH_DOCUMENT
from store.errors import BadInput

PREFIX = "sha256:"


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
        """The document of a request by its text, its id or both. Raises UnknownDocument."""
        if document_id is not None and (found := self._documents.get(document_id.removeprefix(PREFIX))) is not None:
            return found
        if query is None:
            message = "Unknown document id; send the document's text."
            raise UnknownDocument(message, NO_SUCH_DOCUMENT if self._documents else NO_DOCUMENTS)
        if self._texts is not None and query not in self._texts:
            raise UnknownDocument("Unknown document; only persisted documents are accepted.", NO_SUCH_DOCUMENT)
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
