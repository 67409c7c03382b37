"""Client with one connection that stays, and answers in which whole numbers keep all their digits."""

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

SECONDS = 60.0
MAX_ADDRESS = 6000
HEADERS = {"content-type": "application/json", "accept": "application/graphql-response+json"}


@dataclass(frozen=True)
class Document:
    """A document with the values of its variables."""

    query: str
    variables: dict[str, Any] = field(default_factory=dict)
    others: tuple[dict[str, Any], ...] = ()  # values with which it is asked afterwards

    @property
    def replay(self) -> str:
        """The body of a request that sends it, and of those that send it again."""
        bodies = ({"query": self.query, "variables": values} for values in (self.variables, *self.others))
        return "\n     ".join(json.dumps(body, ensure_ascii=False) for body in bodies)


@dataclass(frozen=True)
class Reply:
    """The HTTP status and the JSON body, decoded and as it came."""

    status: int
    body: Any
    bytes: bytes = b""

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

    def ask(self, document: Document, *, by_get: bool = False) -> Reply:
        """The reply to a POST, or to a GET if the address is not too long for one.

        Raises OSError or HTTPException if there is no response.
        """
        self.requests += 1
        address = f"/graphql?{urlencode({'query': document.query, 'variables': json.dumps(document.variables)})}"
        body = json.dumps({"query": document.query, "variables": document.variables}).encode()
        sent = ("GET", address, None) if by_get and len(address) < MAX_ADDRESS else ("POST", "/graphql", body)
        try:
            return self._send(*sent)
        except (http.client.HTTPException, ConnectionError):
            self.close()
            self._connection = http.client.HTTPConnection(self._host, timeout=SECONDS)
            return self._send(*sent)

    def _send(self, method: str, address: str, body: bytes | None) -> Reply:
        self._connection.request(method, address, body, HEADERS)
        response = self._connection.getresponse()
        read = response.read()
        return Reply(response.status, json.loads(read), read)

    def close(self) -> None:
        self._connection.close()
