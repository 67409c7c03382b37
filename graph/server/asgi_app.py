"""The ASGI application: routes, middleware and lifespan."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.auth.authentication import Authenticator
from graph.errors import BAD_REQUEST, UNAVAILABLE, error_body
from graph.execution.operation import Execution
from graph.hosts import cors_origins
from graph.observability.logs import KEY, PROBES, flush
from graph.server.endpoint import GraphQLEndpoint
from graph.server.events import EventStreams
from graph.server.lifecycle import NOT_STARTED, GracefulShutdown, alive, log, ready
from graph.server.middleware import CORS, Observer, RequestObserver, SecurityHeaders
from graph.server.pages import Examples, explorer_routes, graphiql_page, graphiql_routes
from graph.server.sending import ConcurrencyLimiter, send_error
from graph.settings import Settings
from store.engine import Store
from store.writing.writer import Writer

logger = logging.getLogger("clade")

GRAPHQL_PATH = "/graphql"

Background = Sequence[Callable[[], Coroutine[Any, Any, None]]]
"""Coroutine functions that run while the application runs."""

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]
"""Starlette's: called with the application, the block runs from its start to its end."""


def build_app(
    settings: Settings,
    store: Store,
    execution: Execution,
    *,
    writer: Writer | None = None,
    examples: Examples,
    limiter: ConcurrencyLimiter,
    drain: GracefulShutdown,
    observers: Sequence[Observer] = (),
    background: Background = (),
    authenticator: Authenticator,
    streams: EventStreams,
) -> ASGIApp:
    """The application that serves `execution`; meanwhile `store` is open, and moves and `background` run."""
    shows_page = settings.shows("graphiql")
    page = request_response(graphiql_page) if shows_page else None
    endpoint = GraphQLEndpoint(settings, execution, page, limiter, authenticator, streams)
    routes = [
        Route(GRAPHQL_PATH, endpoint),
        *(graphiql_routes(examples) if shows_page else []),
        Route("/healthz", alive),
        Route("/readyz", partial(ready, store, drain)),
        *(explorer_routes(graphiql=shows_page) if settings.shows("explorer") else [Route("/", to_graphql)]),
    ]
    others = Starlette(
        routes=routes,
        lifespan=lifespan_of(store, writer, drain, background, delay=True),
        exception_handlers={404: not_found},
    )
    others.router.redirect_slashes = False  # its redirects lead to whatever the Host header names
    app = by_path(endpoint, others, drain)
    cors = CORS(origins) if (origins := cors_origins(settings.cors_origins)) else None
    # Outside of Starlette's error handling, because its responses need the headers, too.
    secured = SecurityHeaders(app, check_hosts=not settings.production, cors=cors)
    return RequestObserver(secured, observers, drain, cors)


def lifespan_of(
    store: Store, writer: Writer | None, drain: GracefulShutdown, background: Background, *, delay: bool = False
) -> Lifespan:
    """The lifespan of an application; without `delay`, for a mounted one, SIGTERM is left to the server."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with store, writer.watching() if writer else nullcontext(), running(background):
            with drain.on_signals(delay=delay), drain.started():
                yield
        if drain.draining:
            log("The server has stopped.", cancelled=drain.cancelled)
        flush()

    return lifespan


def by_path(endpoint: ASGIApp, others: ASGIApp, drain: GracefulShutdown) -> ASGIApp:
    """The endpoint at its path, and `others` elsewhere; 503 with the way out while the lifespan does not run.

    The endpoint handles its own errors, and Starlette's routing to it costs as much as a cached response. Hosts start
    no lifespan of an application that they mount: that is logged once, and health checks are answered nevertheless.
    """
    is_logged = False

    def choose(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        nonlocal is_logged
        if scope["type"] != "http":
            return others(scope, receive, send)
        path = scope["path"]
        if drain.has_started or path.endswith(PROBES):
            return (endpoint if path == GRAPHQL_PATH else others)(scope, receive, send)
        if not is_logged:
            is_logged = True
            logger.error("%s", NOT_STARTED)
        scope[KEY].codes = (UNAVAILABLE,)
        return send_error(send, 503, NOT_STARTED, UNAVAILABLE)

    return choose


@asynccontextmanager
async def running(background: Background) -> AsyncIterator[None]:
    """Run these until the block ends."""
    tasks = [asyncio.create_task(run()) for run in background]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def to_graphql(request: Request) -> Response:
    return RedirectResponse(GRAPHQL_PATH.removeprefix("/"))  # relative, as a mount or a proxy may be above it


async def not_found(request: Request, error: Exception) -> Response:
    message = f"There is nothing at this path; GraphQL is at {request.scope.get('root_path', '')}{GRAPHQL_PATH}."
    return Response(error_body(message, BAD_REQUEST), 404, media_type="application/json")
