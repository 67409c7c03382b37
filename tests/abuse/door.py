"""Door of an application in this process: HTTP requests to any store, with any limits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import httpx

from graph.auth.authentication import Authenticator
from graph.execution.operation import Execution
from graph.hierarchies.node import Node
from graph.operation.context import Context
from graph.operation.limits import DocumentLimits
from graph.server.lifecycle import GracefulShutdown
from resolvers.access.callers import ApiKeyAuthenticator
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.engine import Store
from store.writing.writer import Writer
from tests.graph.small_app import small_app
from tests.schemas import schema_of
from tests.systems.asking import PATIENT

Ask = Callable[..., Awaitable[httpx.Response]]
"""Sends a query with its variables."""


@asynccontextmanager
async def door(
    store: Store,
    *classes: type[Node],
    limits: DocumentLimits = PATIENT,
    budget: BudgetLimits = BudgetLimits(),
    large_reads: asyncio.Semaphore | None = None,
    pages: PageCache | None = None,
    writer: Writer | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Ask]:
    """Asks hierarchies over an open store; without a cache of pages no request knows of those before it."""
    schema, types = schema_of(*classes)
    definitions = {cls.name: cls.definition() for cls in classes}

    def context() -> Context:
        request = Request(store, definitions, budget, page_cache=pages, large_reads=large_reads, writer=writer)
        return Context(request)

    drain = GracefulShutdown()
    execution = Execution(schema, types, context, limits=limits)
    anyone = Authenticator(ApiKeyAuthenticator(store), local_writes=writer is not None)
    app = small_app(store, execution=execution, drain=drain, authenticator=anyone)
    transport = httpx.ASGITransport(app=app)
    with drain.started():
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=dict(headers)) as client:

            async def ask(query: str, **variables: object) -> httpx.Response:
                return await client.post("/graphql", json={"query": query, "variables": variables})

            yield ask
