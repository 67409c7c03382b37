"""HTTP connection with little overhead, for tests that open many and inspect each."""

import asyncio
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import orjson


class Lost(Exception):
    """A request was sent and the connection ended without a response."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def is_last(self) -> bool:
        """Whether the server closes the connection after this response."""
        return self.headers.get("connection") == "close"


class Connection:
    """A connection that posts GraphQL requests to a server, one after another."""

    def __init__(self, url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host = urlsplit(url).netloc
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, url: str) -> Self:
        address = urlsplit(url)
        return cls(url, *await asyncio.open_connection(address.hostname, address.port))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, query: str, **variables: Any) -> Answer:
        """The response to a query. Raises Lost if none comes."""
        body = orjson.dumps({"query": query, "variables": variables})
        self.begin(len(body))
        self.writer.write(body)
        return await self.answer()

    def begin(self, length: int, more: str = "") -> None:
        """Send the head of a request with a body of `length` bytes, and with `more` lines."""
        head = f"POST /graphql HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n{more}"
        self.writer.write(f"{head}accept: application/json\r\ncontent-length: {length}\r\n\r\n".encode())

    async def answer(self) -> Answer:
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Lost from error
        return Answer(int(head[0].split()[1]), headers, body)
