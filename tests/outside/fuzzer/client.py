"""Client with one connection that stays, and its documents."""

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.processes import Answer, sent_on

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


class Client:
    """GraphQL over one HTTP connection. It opens a new one if the old one was closed."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._host, timeout=SECONDS)
        self.requests = 0

    def ask(self, document: Document, *, by_get: bool = False) -> Answer:
        """The reply to a POST, or to a GET if the address is not too long for one; raises OSError if there is none."""
        self.requests += 1
        address = f"/graphql?{urlencode({'query': document.query, 'variables': json.dumps(document.variables)})}"
        body = json.dumps({"query": document.query, "variables": document.variables}).encode()
        sent = ("GET", address, None) if by_get and len(address) < MAX_ADDRESS else ("POST", "/graphql", body)
        try:
            return sent_on(self._connection, *sent, HEADERS)
        except ConnectionError:
            self.close()
            self._connection = http.client.HTTPConnection(self._host, timeout=SECONDS)
            return sent_on(self._connection, *sent, HEADERS)

    def close(self) -> None:
        self._connection.close()
