"""ASGI application: routes, middleware and lifespan."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.auth.authentication import Authenticator
from graph.execution.operation import Execution
from graph.observability import log_handler
from graph.operation.persisted_documents import PersistedDocuments
from graph.server import graphiql as pages
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.server.endpoint import GraphQLEndpoint
from graph.server.graceful_shutdown import GracefulShutdown
from graph.server.graphiql import Examples, examples_page, no_examples
from graph.server.health import Readiness, alive
from graph.server.loopback_hosts import LoopbackHosts
from graph.server.request_observer import Observer, RequestObserver
from graph.server.security_headers import SecurityHeaders
from graph.settings import Settings
from resolvers.session.request import Writer
from store.engine.protocol import Store

GRAPHQL_PATH = "/graphql"
METHODS = ("GET", "HEAD", "POST")

Background = Sequence[Callable[[], Coroutine[Any, Any, None]]]
"""Coroutine functions that run while the application runs."""

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]
"""Starlette's: called with the application, the block runs from its start to its end."""


def build_app(
    store: Store,
    execution: Execution,
    *,
    writer: Writer | None = None,
    max_body_bytes: int = 262_144,
    body_seconds: float = 10.0,
    graphiql: bool = True,
    examples: Examples = no_examples,
    trusted: PersistedDocuments = PersistedDocuments({}),
    cors_origins: Sequence[str] = (),
    check_hosts: bool = False,
    limiter: ConcurrencyLimiter | None = None,
    drain: GracefulShutdown | None = None,
    observers: Sequence[Observer] = (),
    on_start: Observer | None = None,
    background: Background = (),
    authenticator: Authenticator | None = None,
) -> ASGIApp:
    """The application that serves `execution`; meanwhile `store` is open, and moves and `background` run."""
    drain = drain or GracefulShutdown()
    endpoint = GraphQLEndpoint(
        execution,
        request_response(pages.page) if graphiql else None,
        max_body_bytes=max_body_bytes,
        body_seconds=body_seconds,
        trusted=trusted,
        limiter=limiter or ConcurrencyLimiter(Settings.model_fields["max_inflight"].default),
        authenticator=authenticator,
    )
    routes = [
        Route(GRAPHQL_PATH, endpoint),
        *(graphiql_routes(examples) if graphiql else []),
        Route("/healthz", alive),
        Route("/readyz", Readiness(store, drain).ready),
        Route("/", to_graphql),
    ]
    app = by_path(endpoint, Starlette(routes=routes, lifespan=lifespan_of(store, writer, drain, background)))
    return RequestObserver(guarded(app, cors_origins, check_hosts=check_hosts), observers, drain, on_start)


def graphiql_routes(examples: Examples) -> list[Route]:
    """The files of GraphiQL's page, and the queries of its tabs."""
    return [
        Route("/graphql/static/{digest}/{name}", pages.static),
        Route("/graphql/examples.json", examples_page(examples)),
    ]


def guarded(app: ASGIApp, cors_origins: Sequence[str], *, check_hosts: bool) -> ASGIApp:
    """The application with CORS, security headers and, if `check_hosts`, the Host check."""
    if cors_origins:
        app = CORSMiddleware(
            app, allow_origins=cors_origins, allow_methods=METHODS, allow_headers=["*"], expose_headers=["etag"]
        )
    # Outside of Starlette's error handling, because its responses need the headers, too.
    return SecurityHeaders(LoopbackHosts(app) if check_hosts else app)


def lifespan_of(
    store: Store, writer: Writer | None, drain: GracefulShutdown | None, background: Background
) -> Lifespan:
    """The lifespan of an application; without `drain`, for a mounted one, SIGTERM is left to the server."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with store, writer.watching() if writer else nullcontext(), beside(background):
            with drain.on_sigterm() if drain else nullcontext():
                yield
        log_handler.flush()

    return lifespan


def by_path(endpoint: ASGIApp, others: ASGIApp) -> ASGIApp:
    """The endpoint at its path, and `others` elsewhere.

    The endpoint handles its own errors, and Starlette's routing to it costs as much as a cached response.
    """

    def choose(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        is_graphql = scope["type"] == "http" and scope["path"] == GRAPHQL_PATH
        return (endpoint if is_graphql else others)(scope, receive, send)

    return choose


@asynccontextmanager
async def beside(background: Background) -> AsyncIterator[None]:
    """Run these until the block ends."""
    tasks = [asyncio.create_task(run()) for run in background]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def to_graphql(request: Request) -> Response:
    return RedirectResponse(request.scope.get("root_path", "") + GRAPHQL_PATH)
