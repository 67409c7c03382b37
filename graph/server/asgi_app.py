"""The ASGI application: routes, middleware and lifespan."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, request_response

from graph.auth.authentication import Authenticator
from graph.errors import BAD_REQUEST, error_body
from graph.execution.operation import Execution
from graph.hosts import cors_origins
from graph.observability.logs import flush
from graph.server.endpoint import GraphQLEndpoint
from graph.server.events import EventStreams
from graph.server.handler import CORS, GRAPHQL_PATH, Observer, RequestHandler
from graph.server.lifecycle import GracefulShutdown, alive, log, ready
from graph.server.pages import Examples, explorer_routes, graphiql_page, graphiql_routes
from graph.server.sending import ConcurrencyLimiter
from graph.settings import Settings
from store.engine import Store
from store.writing.writer import Writer

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
) -> RequestHandler:
    """The application that serves `execution`; meanwhile `store` is open, and moves and `background` run."""
    shows_page = settings.shows("graphiql")
    page = request_response(graphiql_page) if shows_page else None
    endpoint = GraphQLEndpoint(settings, execution, page, limiter, authenticator, streams)
    routes = [
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
    cors = CORS(origins) if (origins := cors_origins(settings.cors_origins)) else None
    return RequestHandler(endpoint, others, observers, drain, cors=cors, check_hosts=not settings.production)


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
