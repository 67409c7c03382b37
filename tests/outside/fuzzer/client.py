"""Client with one connection that stays, and answers in which whole numbers keep all their digits."""

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60.0
HEADERS = {"content-type": "application/json", "accept": "application/graphql-response+json"}


@dataclass(frozen=True)
class Document:
    """A document with its variables."""

    query: str
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def replay(self) -> str:
        """The body of a request that sends it."""
        return json.dumps({"query": self.query, "variables": self.variables}, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """The HTTP status and the JSON body."""

    status: int
    body: Any

    @property
    def errors(self) -> list[dict[str, Any]]:
        return list(self.body.get("errors") or ())

    @property
    def codes(self) -> list[str]:
        return [error.get("extensions", {}).get("code", "") for error in self.errors]


class Client:
    """GraphQL over one HTTP connection. It opens a new one if the old one was closed."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._host, timeout=SECONDS)
        self.requests = 0

    def ask(self, document: Document) -> Reply:
        """Raises OSError or HTTPException if there is no response."""
        self.requests += 1
        body = json.dumps({"query": document.query, "variables": document.variables}).encode()
        try:
            return self._send(body)
        except (http.client.HTTPException, ConnectionError):
            self.close()
            self._connection = http.client.HTTPConnection(self._host, timeout=SECONDS)
            return self._send(body)

    def _send(self, body: bytes) -> Reply:
        self._connection.request("POST", "/graphql", body, HEADERS)
        response = self._connection.getresponse()
        return Reply(response.status, json.loads(response.read()))

    def close(self) -> None:
        self._connection.close()
