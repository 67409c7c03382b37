"""A server of a small tree, asked without a socket, and what a request that was stopped may have left behind."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from starlette.types import Message, Scope

from examples.asset import AssetNode
from graph.auth.authentication import Authenticator
from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.execution.response_cache import ResponseCache
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.observability.request_info import KEY, RequestInfo
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.server.endpoint import GraphQLEndpoint
from graph.server.event_stream import EventStreams
from graph.server.graceful_shutdown import GracefulShutdown
from graph.settings import Settings
from resolvers.access.api_key_auth import ApiKeyAuthenticator
from resolvers.past.change_follower import ChangeFollower
from resolvers.session import large_read_limit as large_reads
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.api_keys import add_key, new_key
from store.engine.protocol import Store
from store.writer.writer import Writer

CLASSES = [Location, CategoryNode, AssetNode]
SCHEMA, TYPES = build_schema(CLASSES)
DEFINITIONS = {cls.name: cls.definition() for cls in CLASSES}
LARGE = 3  # nodes; here whatever reads more waits for its turn
END_SECONDS = 30.0  # for what a stopped request has begun at an engine

_CREATE = (
    "mutation($parent: Path, $key: String!, $id: ID, $attributes: LocationAttributes!) {"
    " createLocation(parent: $parent, key: $key, name: $key, id: $id, attributes: $attributes) { node { path } } }"
)
NODES = [
    (None, "US", {"country": {}}),
    ("US", "NE", {"state": {}}),
    ("US", "MO", {"state": {}}),
    ("US/NE", "Omaha", {"city": {}}),
    ("US/NE", "Lincoln", {"city": {}}),
    ("US/MO", "Joplin", {"city": {}}),
    ("US/NE/Omaha", "68118", {"postalCode": {}}),
]


@dataclass(frozen=True)
class Ask:
    """One operation as a client sends it."""

    query: str
    variables: dict[str, Any] = field(default_factory=dict)
    key: bool = False
    """Whether it brings an API key."""


class Scene:
    """The parts of a server over a store, which can be looked at; it `keeps` answers or reads each time."""

    def __init__(self, store: Store, *, keeps: bool) -> None:
        self.store = store
        self.writer = Writer(store)
        self.turns = asyncio.Semaphore(1)
        self.gate = ConcurrencyLimiter(100)
        self.keyring = ApiKeyAuthenticator(store, cache_seconds=0.0)  # each key is looked up each time
        self.kept = PageCache(1_000_000, TreeVersionCache(0.0)) if keeps else None
        self.token = ""
        self.contexts: list[weakref.ref[Context]] = []
        execution = Execution(
            SCHEMA,
            self._context,
            plans=PlanCache(core_schema(SCHEMA), TYPES),
            cache=ResponseCache(1_000_000 if keeps else 0),
        )
        callers = Authenticator(self.keyring, local_writes=True)
        drain, follower = GracefulShutdown(), ChangeFollower(store)
        streams = EventStreams(execution, follower, self.gate, drain)
        self.endpoint = GraphQLEndpoint(Settings(), execution, None, self.gate, callers, streams)
        self._tasks: set[asyncio.Task[Any]] = set()

    def _context(self) -> Context:
        request = Request(
            self.store,
            DEFINITIONS,
            page_cache=self.kept,
            writer=self.writer,
            settle_seconds=0.1,
            large_reads=self.turns,
        )
        context = Context(request, TYPES)
        self.contexts.append(weakref.ref(context))
        return context

    async def plant(self) -> None:
        for parent, key, attributes in NODES:
            variables = {"parent": parent, "key": key, "id": f"the-{key}", "attributes": attributes}
            await self.data(Ask(_CREATE, variables))
        key, self.token = new_key("stopped", ["read:location", "write:location"], None)
        await add_key(self.store, key)
        self._tasks = asyncio.all_tasks()

    async def send(self, ask: Ask) -> Any:
        """The answer of an operation, as JSON."""
        told: list[Message] = []

        async def send(message: Message) -> None:
            told.append(message)

        body = [{"type": "http.request", "body": orjson.dumps({"query": ask.query, "variables": ask.variables})}]

        async def receive() -> Message:
            if not body:
                await asyncio.get_running_loop().create_future()  # the client stays
            return body.pop()

        headers = [(b"content-type", b"application/json"), (b"accept", b"application/json")]
        if ask.key:
            headers.append((b"authorization", f"Bearer {self.token}".encode()))
        scope: Scope = {
            "type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": headers,
            "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        scope[KEY] = RequestInfo.of(scope)
        await self.endpoint(scope, receive, send)
        return orjson.loads(b"".join(message.get("body", b"") for message in told))

    async def data(self, ask: Ask) -> Any:
        """The data of an answer without errors."""
        answer = await self.send(ask)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks that requests have begun and that have not ended."""
        return {task for task in asyncio.all_tasks() - self._tasks if task is not asyncio.current_task()}

    async def quiet(self) -> None:
        """Wait until all that a stopped request has begun has ended, then look that it holds nothing."""
        async with asyncio.timeout(END_SECONDS):
            while tasks := self.tasks:
                await asyncio.wait(tasks)
        assert self.gate.running == 0
        assert not self.turns.locked()
        assert (self.writer.waiting, self.writer._tasks, self.writer._queues) == (0, set(), {})
        assert not [lock for lock in self.writer._locks._locks.values() if lock.locked()]

    def check_memory(self) -> None:
        """Look that nothing of the requests so far is held, but for what is kept on purpose."""
        gc.collect()
        held = [context for one in self.contexts if (context := one()) is not None]
        assert not held, [type(one) for one in gc.get_referrers(held[0])]
        self.contexts.clear()


@asynccontextmanager
async def scene(store: Store, patch: pytest.MonkeyPatch, *, keeps: bool) -> AsyncIterator[Scene]:
    """A server of a small tree, in which few nodes are many."""
    patch.setattr(large_reads, "LARGE_READ_NODES", LARGE)
    opened = Scene(store, keeps=keeps)
    await opened.plant()
    async with opened.writer.watching():
        opened._tasks = asyncio.all_tasks()
        yield opened
