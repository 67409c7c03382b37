"""The web application: which part answers at which address. It only puts parts together."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from graph import logs, playground
from graph.cache import Cache
from graph.callers import Callers, tokens_of
from graph.context import Context
from graph.drain import Drain
from graph.execution import Execution
from graph.exposure import exposed
from graph.gate import Gate
from graph.health import Readiness, alive
from graph.hierarchies import served
from graph.http import GraphQLEndpoint
from graph.limits import Limits
from graph.logs import RequestLog
from graph.loopback import LoopbackHosts
from graph.plans import Plans
from graph.schema import build_schema
from graph.security_headers import SecurityHeaders
from graph.settings import Settings
from graph.trusted import Trusted, read_trusted
from graph.watch import Observer, Watch
from resolvers import request as resolvers
from resolvers.kept import Kept
from resolvers.keyring import Keyring
from store.stores import Store, open_store

if TYPE_CHECKING:
    from graph.traces import Traces

# The collector looks through what a request makes again and again, though next to nothing of it is in cycles.
COLLECT_AFTER = (50_000, 20, 100)

GRAPHQL_PATH = "/graphql"
METHODS = ("GET", "HEAD", "POST")


def build_app(
    store: Store,
    execution: Execution,
    *,
    writer: resolvers.Writer | None = None,
    max_body_bytes: int = 262_144,
    body_seconds: float = 10.0,
    graphiql: bool = True,
    trusted: Trusted = Trusted({}),
    cors_origins: Sequence[str] = (),
    check_hosts: bool = False,
    gate: Gate | None = None,
    drain: Drain | None = None,
    observers: Sequence[Observer] = (),
    marking: Observer | None = None,
    background: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
    callers: Callers | None = None,
) -> ASGIApp:
    """The application that runs `execution` over `store`, which is opened when it starts and closed when it stops.

    Between the two the moves of `writer` run, and those that other processes have left half-way; so does what is in
    `background`.
    """
    drain = drain or Drain()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with store, writer.mover.watching() if writer else nullcontext(), beside(background):
            with drain.on_sigterm():
                yield
        logs.flush()

    page = request_response(playground.page) if graphiql else None
    endpoint = GraphQLEndpoint(
        execution,
        page,
        max_body_bytes=max_body_bytes,
        body_seconds=body_seconds,
        trusted=trusted,
        gate=gate or Gate(Settings.model_fields["max_inflight"].default),
        callers=callers,
    )
    starlette = Starlette(
        routes=[
            Route(GRAPHQL_PATH, endpoint),
            *([Route("/graphql/static/{digest}/{name}", playground.static)] if graphiql else []),
            Route("/healthz", alive),
            Route("/readyz", Readiness(store, drain).ready),
            Route("/", to_graphql),
        ],
        lifespan=lifespan,
    )

    async def by_path(scope: Scope, receive: Receive, send: Send) -> None:
        # The endpoint answers its own errors, and Starlette's way to it costs as much as answering from the cache.
        is_asked = scope["type"] == "http" and scope["path"] == GRAPHQL_PATH
        await (endpoint if is_asked else starlette)(scope, receive, send)

    app: ASGIApp = by_path
    if cors_origins:
        app = CORSMiddleware(
            app, allow_origins=cors_origins, allow_methods=METHODS, allow_headers=["*"], expose_headers=["etag"]
        )
    # Outside of Starlette's own error handling, whose answers need the headers too.
    app = SecurityHeaders(LoopbackHosts(app) if check_hosts else app)
    return Watch(app, observers, drain, marking)


def served_app() -> ASGIApp:
    """The application as the settings in the environment describe it; each worker process makes its own."""
    settings = Settings()
    classes = served(settings.hierarchies)
    definitions = {cls.name: cls.definition() for cls in classes}
    schema, types = build_schema(classes, expose=exposed(settings.federation_expose))
    store = open_store(settings.store)
    kept = Kept(settings.keep_mb * 1_000_000)
    writer = resolvers.Writer(store, pace_of(settings)) if settings.writes != "off" else None

    def make_context() -> Context:
        request = resolvers.Request(store, definitions, settings.max_nodes, settings.max_parallel_reads, kept=kept)
        request.writer, request.settle_seconds = writer, settings.settle_seconds
        return Context(request, types, max_entities=settings.max_entities)

    keep = settings.plan_cache_documents
    plans = Plans(schema._schema, types)
    cache = Cache(settings.cache_mb * 1_000_000, settle_seconds=settings.settle_seconds)
    traces = traces_of(settings, store)
    execution = Execution(
        schema,
        make_context,
        span=traces.span if traces else nullcontext,
        plans=plans,
        cache=cache,
        keep_documents=keep,
        limits=limits_of(settings),
        suggestions=settings.shows("suggestions"),
    )
    gate, drain = Gate(settings.max_inflight), Drain(settings.drain_seconds)
    observers: list[Observer] = [RequestLog(settings.slow_seconds)]
    background: list[Callable[[], Coroutine[Any, Any, None]]] = []
    if settings.metrics:
        from graph import metrics

        observers.append(metrics.count)
        background.append(metrics.vitals_of(store, drain, gate, cache, writer).watch)
    app = build_app(
        store,
        execution,
        writer=writer,
        max_body_bytes=settings.max_body_bytes,
        body_seconds=settings.request_seconds,
        graphiql=settings.shows("graphiql"),
        trusted=trusted_of(settings),
        cors_origins=settings.cors_origins.replace(",", " ").split(),
        gate=gate,
        drain=drain,
        observers=observers,
        marking=traces.mark if traces else None,
        background=background,
        check_hosts=home_writes(settings),
        callers=callers_of(settings, store),
    )
    gc.freeze()  # all that was made so far stays
    gc.set_threshold(*COLLECT_AFTER)
    return traces.around(app) if traces else app


def traces_of(settings: Settings, store: Store) -> "Traces | None":
    """What makes spans, of the store's work too, if the settings ask for any."""
    if settings.traces == "off":
        return None
    from graph.traces import Traces, exporting

    traces = Traces(exporting())
    traces.watch(store)
    return traces


def callers_of(settings: Settings, store: Store) -> Callers:
    """Who may do what, as the settings say."""
    return Callers(
        Keyring(store),
        tokens_of(settings),
        open_reads=settings.reads == "open",
        home_writes=home_writes(settings),
    )


def home_writes(settings: Settings) -> bool:
    """Whether everybody on this machine may write; what comes by another name is then not taken for theirs."""
    return settings.writes == "on" and settings.reads == "open" and not settings.production


def pace_of(settings: Settings) -> resolvers.Pace:
    """How long moves wait, by the settings of the same names."""
    return resolvers.Pace.of(settings.request_seconds, settings.settle_seconds, settings.move_wait_seconds)


def limits_of(settings: Settings) -> Limits:
    """What one document may ask for: the settings of the same names."""
    numbers = {one.name: getattr(settings, one.name) for one in fields(Limits)}
    return Limits(**{**numbers, "introspection": settings.shows("introspection")})


def trusted_of(settings: Settings) -> Trusted:
    """The documents in the file that the settings name; without a file every other is taken too."""
    only = bool(settings.trusted_documents) and settings.trusted_mode == "only"
    return Trusted(read_trusted(settings.trusted_documents), only=only)


@asynccontextmanager
async def beside(background: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> AsyncIterator[None]:
    """Has these run until the block ends."""
    running = [asyncio.create_task(one()) for one in background]
    try:
        yield
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def to_graphql(request: Request) -> Response:
    return RedirectResponse("/graphql")
