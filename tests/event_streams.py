"""Clients of event streams: by ASGI, where each event is taken as it is sent, and the events in a body."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp, Message

import graph.app
from graph.app import Application, create_app
from graph.server.events import HEARTBEAT_SECONDS, EventStreams
from graph.settings import Settings
from resolvers.changes import ChangeFollower
from store.connect import open_store
from store.engine import Store
from store.writing.writer import Writer

WAIT_SECONDS = 30.0
CHANGES = """subscription Changes($tree: Path!, $after: String, $under: Path) {
  changes(hierarchy: CATEGORY, tree: $tree, after: $after, under: $under) {
    changes { event nodeId path revision } cursor hasMore
  }
}"""
FEED = """query Feed($tree: Path!, $since: String, $under: Path) {
  changes(hierarchy: CATEGORY, tree: $tree, after: $since, under: $under) {
    changes { event nodeId path revision } cursor hasMore
  }
}"""


class Event(NamedTuple):
    """One event, or a comment, which has the name `:`."""

    name: str
    data: Any = None
    id: str | None = None

    @property
    def page(self) -> Any:
        """The page of changes in it."""
        return self.data["data"]["changes"]

    @property
    def code(self) -> str:
        """The code of its only error."""
        (error,) = self.data["errors"]
        return error["extensions"]["code"]


def event_in(text: str) -> Event:
    """The event of a block of lines without the empty line at its end."""
    if text == ":":
        return Event(":")
    parts = dict(line.split(": ", 1) for line in text.split("\n"))
    return Event(parts["event"], json.loads(parts["data"] or "null"), parts.get("id"))


class EventClient:
    """A connection whose response is read message by message: `send` waits while `is_reading` is not set."""

    def __init__(self, app: ASGIApp, query: str, method: str = "POST", headers: Any = None, **variables: Any) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self.pieces: list[bytes] = []
        self.has_ended = False
        asked = {"query": query, "variables": variables}
        in_url = urlencode({**asked, "variables": json.dumps(variables)}) if method != "POST" else ""
        sent = {"accept": "text/event-stream", "content-type": "application/json", "host": "localhost"}
        self._scope = {
            "type": "http", "method": method, "path": "/graphql", "query_string": in_url.encode(), "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in (sent | (headers or {})).items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "http_version": "1.1",
        }  # fmt: skip
        self._app = app
        self._received: asyncio.Queue[Message] = asyncio.Queue()
        self._received.put_nowait({"type": "http.request", "body": json.dumps(asked).encode(), "more_body": False})
        self._text: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = ""

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self._app(self._scope, self._received.get, self._send))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.gather(self.task, return_exceptions=True)
        self.task.result()

    def leave(self) -> None:
        """Close the connection."""
        self._received.put_nowait({"type": "http.disconnect"})
        self.is_reading.set()

    async def _send(self, message: Message) -> None:
        await self.is_reading.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.pieces.append(message["body"])
        self._text.put_nowait(message["body"].decode())
        if not message.get("more_body"):
            self.has_ended = True
            self._text.put_nowait(None)

    async def next(self, *, heartbeats: bool = False) -> Event:
        """The next event, or with `heartbeats` also the next comment; EOFError at the end of the body."""
        while True:
            while "\n\n" not in self._rest:
                async with asyncio.timeout(WAIT_SECONDS):
                    text = await self._text.get()
                if text is None:
                    raise EOFError(self._rest)
                self._rest += text
            block, self._rest = self._rest.split("\n\n", 1)
            event = event_in(block)
            if heartbeats or event.name != ":":
                return event

    async def body(self) -> Any:
        """The whole body of a response that is no stream, as JSON."""
        async with asyncio.timeout(WAIT_SECONDS):
            await self.task
        return json.loads(b"".join(self.pieces))


class Following:
    """An application with its event streams, a writer beside it as another server would be, and clients."""

    def __init__(self, app: Application, store: Store, streams: EventStreams) -> None:
        self.app, self.store, self.streams, self.writer = app, store, streams, Writer(store)

    def client(self, tree: str = "a", query: str = CHANGES, **more: Any) -> EventClient:
        return EventClient(self.app, query, tree=tree, **more)

    async def ask(self, query: str = FEED, headers: Any = None, **variables: Any) -> Any:
        """The body of the response to a query."""
        client = EventClient(self.app, query, headers={"accept": "application/json", **(headers or {})}, **variables)
        async with client:
            return await client.body()


@asynccontextmanager
async def following(
    url: str, *, heartbeat_seconds: float = HEARTBEAT_SECONDS, **settings: Any
) -> AsyncIterator[Following]:
    """An application over a new store with these settings, whose lifespan lasts for the block."""
    one = "graph.hierarchies.categories"  # its schema is built for each application
    settings = {"hierarchies": one, "log_level": "error", **settings}
    async with open_store(url) as store:
        await store.create()
        made: list[EventStreams] = []

        def event_streams(*parts: Any) -> EventStreams:
            made.append(EventStreams(*parts, heartbeat_seconds=heartbeat_seconds))
            return made[0]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graph.app, "EventStreams", event_streams)
            patch.setattr(graph.app, "ChangeFollower", partial(ChangeFollower, poll_seconds=0.02))
            app = create_app(Settings(store=url, **settings))
        async with app.lifespan(app):
            yield Following(app, store, made[0])
