"""Application factory: builds the ASGI application from the settings."""

import asyncio
from collections.abc import Sequence
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from graph.auth.authentication import Authenticator, tokens_of
from graph.execution.operation import Execution
from graph.execution.response import ResponseCache
from graph.hierarchies.examples import Example, example_queries, read_samples
from graph.hierarchies.node import Node
from graph.hierarchies.registry import served
from graph.observability.logs import RequestLog
from graph.operation.context import Context
from graph.operation.limits import DocumentLimits
from graph.schema import build_schema
from graph.server.asgi_app import Lifespan, build_app, lifespan_of
from graph.server.events import EventStreams
from graph.server.handler import Observer
from graph.server.lifecycle import GracefulShutdown, log_missing_items, log_undefined
from graph.server.sending import ConcurrencyLimiter
from graph.settings import Settings, exposed
from resolvers.access.callers import ApiKeyAuthenticator
from resolvers.changes import ChangeFollower
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from resolvers.session.scheduler import MAX_LARGE_READS
from store.connect import open_store
from store.engine import REQUEST_PATIENCE, Store
from store.writing.writer import Writer


class Application:
    """An ASGI application over a store, by itself or mounted in another.

    A server calls its lifespan; where it is mounted in another application that one's lifespan must enter `lifespan`,
    since Starlette and FastAPI start no mounted ones.
    """

    def __init__(self, asgi: ASGIApp, lifespan: Lifespan) -> None:
        self.asgi = asgi
        """The application itself, without this object around it."""
        self.lifespan = lifespan
        """Called with any application, a context manager: the store is open and moves run until it ends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.asgi(scope, receive, send)


def create_app(settings: Settings | None = None) -> Application:
    """The application that these settings describe, or those of the environment. Raises BadInput.

    It changes nothing else in the process, so there may be several.
    """
    settings = settings or Settings()
    classes = served(settings.hierarchies)
    store = open_store(settings.store, keep_bytes=settings.keep_bytes, patience=REQUEST_PATIENCE)
    definitions = {cls.name: cls.definition() for cls in classes}
    writer = Writer(store, settings.move_timing) if settings.writes != "off" else None
    tracing = None
    if settings.traces == "on":
        from graph.observability.tracing import Tracing

        tracing = Tracing(store, settings.store)
    limiter, drain = ConcurrencyLimiter(settings.max_inflight), GracefulShutdown(settings.drain_seconds)
    execution = execution_of(settings, classes, store, writer)
    # The span comes first, since the log has the id of its trace.
    observers: list[Observer] = [*([tracing.observe] if tracing else []), RequestLog()]
    tokens, is_open = tokens_of(settings), settings.reads == "open"
    authenticator = Authenticator(
        ApiKeyAuthenticator(store),
        tokens,
        open_reads=is_open,
        local_writes=settings.writes == "on" and is_open and not settings.production,
        hierarchies=definitions,
    )
    follower = ChangeFollower(store)
    streams = EventStreams(execution, follower, limiter, drain)
    background = [*([tokens.watch] if tokens else []), follower.watch]
    background.append(partial(log_missing_items, store, [*definitions.values()]))
    background.append(partial(log_undefined, store, definitions))
    if settings.metrics:
        from graph.server import metrics

        observers.append(metrics.count)
        background.append(metrics.GaugeSampler(store, drain, limiter, writer, streams).watch)
    app = build_app(
        settings,
        store,
        execution,
        writer=writer,
        examples=partial(examples_of, settings, classes, store),
        limiter=limiter,
        drain=drain,
        observers=observers,
        background=background,
        authenticator=authenticator,
        streams=streams,
    )
    return Application(tracing.around(app) if tracing else app, lifespan_of(store, writer, drain, background))


async def examples_of(settings: Settings, classes: Sequence[type[Node]], store: Store) -> list[Example]:
    """The example queries, with paths that the store holds where everybody may read them."""
    samples = await read_samples(store, classes) if settings.reads == "open" else {}
    return example_queries(classes, samples, writable=settings.writes != "off")


def execution_of(settings: Settings, classes: Sequence[type[Node]], store: Store, writer: Writer | None) -> Execution:
    """The execution of operations over the store, on the schema of these hierarchies."""
    schema, types = build_schema(classes, expose=exposed(settings.federation_expose))
    versions = TreeVersionCache(settings.settle_seconds, settings.max_stale_seconds)
    new_request = partial(
        Request,
        store,
        {cls.name: cls.definition() for cls in classes},
        BudgetLimits(nodes=settings.max_nodes, bytes=settings.max_response_bytes, read_units=settings.max_read_units),
        page_cache=PageCache(settings.keep_bytes, versions),
        writer=writer,
        settle_seconds=settings.settle_seconds,
        large_reads=asyncio.Semaphore(MAX_LARGE_READS),
    )
    return Execution(
        schema,
        types,
        lambda: Context(new_request()),
        cache=ResponseCache(settings.response_cache_bytes, store.version),
        limits=DocumentLimits(
            max_depth=settings.max_depth,
            request_seconds=settings.request_seconds,
            introspection=settings.shows("introspection"),
        ),
    )
