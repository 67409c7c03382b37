"""Trusted documents: the queries that the clients of a server are known to send, each with an id to send instead."""

from collections.abc import Mapping
from typing import Any

import orjson

from graph.errors import NO_DOCUMENTS, NO_SUCH_DOCUMENT
from store.errors import BadInput

PREFIX = "sha256:"


class UnknownDocument(Exception):
    """A request whose document is not known; the message goes to the client, with the code."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class PersistedDocuments:
    """Documents by their ids; `only` is whether no others are taken."""

    def __init__(self, documents: Mapping[str, str], *, only: bool = False) -> None:
        self._documents = documents
        self._texts = frozenset(documents.values()) if only else None

    def document(self, query: str | None, document_id: str | None) -> str:
        """The document that a request means by its text, its id or both; raises Untrusted where there is none."""
        if document_id is not None:
            found = self._documents.get(document_id.removeprefix(PREFIX))
            if found is not None:
                return found
        if query is None:
            message = "This server has no document with this id; send its text."
            raise UnknownDocument(message, NO_SUCH_DOCUMENT if self._documents else NO_DOCUMENTS)
        if self._texts is not None and query not in self._texts:
            raise UnknownDocument(
                "This server answers only documents that it was given, and this is none.", NO_SUCH_DOCUMENT
            )
        return query


def read_trusted(file: str) -> dict[str, str]:
    """The documents in a JSON file, by their ids without prefix; none where no file is named.

    Raises BadInput for a file that cannot be read, or is no object of ids and documents.
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
    """The id of a document in a request's parameters, as `documentId` or as Apollo's clients send it."""
    extensions = sent.get("extensions")
    persisted = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
    hashed = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    found = sent.get("documentId", hashed)
    return found if isinstance(found, str) and found else None
