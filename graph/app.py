"""The web application as the settings describe it: what is served, by what means, and within which limits."""

import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from graph.auth.authentication import Authenticator, tokens_of
from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.execution.response_cache import ResponseCache
from graph.federation_exposure import exposed
from graph.hierarchies.registry import served
from graph.observability.access_log import RequestLog
from graph.operation.context import Context
from graph.operation.document_limits import DocumentLimits
from graph.operation.lookahead import Types
from graph.operation.persisted_documents import PersistedDocuments, read_trusted
from graph.schema import build_schema
from graph.server.asgi_app import build_app
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.server.graceful_shutdown import GracefulShutdown
from graph.server.request_observer import Observer
from graph.settings import Settings
from resolvers.access.api_key_auth import ApiKeyAuthenticator
from resolvers.session import request as resolvers
from resolvers.session.budget import BudgetLimits
from resolvers.session.large_read_limit import LargeReadLimiter
from resolvers.session.page_cache import PageCache
from store.connect import open_store
from store.engine.protocol import Store
from store.model.hierarchy import Hierarchy

if TYPE_CHECKING:
    from graph.observability.tracing import Tracing

# The collector looks through what a request makes again and again, though next to nothing of it is in cycles.
COLLECT_AFTER = (50_000, 20, 100)


def create_app(settings: Settings | None = None) -> ASGIApp:
    """The ASGI application that these settings describe, or those of the environment; raises BadInput."""
    settings = settings or Settings()
    store = open_store(settings.store, keep_bytes=settings.keep_bytes)
    writer = resolvers.Writer(store, pace_of(settings)) if settings.writes != "off" else None
    traces = traces_of(settings, store)
    cache = ResponseCache(settings.cache_mb * 1_000_000, settle_seconds=settings.settle_seconds)
    gate, drain = ConcurrencyLimiter(settings.max_inflight), GracefulShutdown(settings.drain_seconds)
    observers: list[Observer] = [RequestLog(settings.slow_seconds)]
    callers = callers_of(settings, store)
    background = [callers.watch]
    if settings.metrics:
        from graph.observability import metrics
        from graph.server import gauges

        observers.append(metrics.count)
        background.append(gauges.vitals_of(store, drain, gate, cache, writer).watch)
    app = build_app(
        store,
        execution_of(settings, store, writer, cache, traces),
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
        check_hosts=not settings.production,
        callers=callers,
    )
    gc.freeze()  # all that was made so far stays
    gc.set_threshold(*COLLECT_AFTER)
    return traces.around(app) if traces else app


def execution_of(
    settings: Settings, store: Store, writer: resolvers.Writer | None, cache: ResponseCache, traces: "Tracing | None"
) -> Execution:
    """What runs operations over the store, on the schema of the hierarchies that are served."""
    classes = served(settings.hierarchies)
    schema, types = build_schema(classes, expose=exposed(settings.federation_expose))
    definitions = {cls.name: cls.definition() for cls in classes}
    return Execution(
        schema,
        contexts_of(settings, store, definitions, types, writer),
        span=traces.span if traces else nullcontext,
        plans=PlanCache(schema._schema, types),
        cache=cache,
        keep_documents=settings.plan_cache_documents,
        limits=limits_of(settings),
        suggestions=settings.shows("suggestions"),
    )


def contexts_of(
    settings: Settings,
    store: Store,
    definitions: dict[str, Hierarchy],
    types: Types,
    writer: resolvers.Writer | None,
) -> Callable[[], Context]:
    """Makes the context of each operation."""
    page_cache = PageCache(settings.keep_bytes)
    limits, max_entities, parallel = budget_of(settings), settings.max_entities, settings.max_parallel_reads
    settle_seconds = settings.settle_seconds
    large_reads = LargeReadLimiter()

    def make() -> Context:
        request = resolvers.Request(
            store,
            definitions,
            limits,
            parallel,
            page_cache=page_cache,
            writer=writer,
            settle_seconds=settle_seconds,
            large_reads=large_reads,
        )
        return Context(request, types, max_entities=max_entities)

    return make


def traces_of(settings: Settings, store: Store) -> "Tracing | None":
    """What makes spans, of the store's work too, if the settings ask for any."""
    if settings.traces == "off":
        return None
    from graph.observability.tracing import Tracing, exporting

    traces = Tracing(exporting())
    traces.watch(store)
    return traces


def callers_of(settings: Settings, store: Store) -> Authenticator:
    """Who may do what, as the settings say."""
    return Authenticator(
        ApiKeyAuthenticator(store),
        tokens_of(settings),
        open_reads=settings.reads == "open",
        home_writes=home_writes(settings),
    )


def home_writes(settings: Settings) -> bool:
    """Whether everybody on this machine may write; what comes by another name is then not taken for theirs."""
    return settings.writes == "on" and settings.reads == "open" and not settings.production


def pace_of(settings: Settings) -> resolvers.MoveTiming:
    """How long moves wait, by the settings of the same names."""
    return resolvers.MoveTiming.of(settings.request_seconds, settings.settle_seconds, settings.move_wait_seconds)


def budget_of(settings: Settings) -> BudgetLimits:
    """What one request may return and read: the settings of the same names."""
    return BudgetLimits(
        settings.max_nodes, settings.max_response_fields, settings.max_response_bytes, settings.max_read_units
    )


def limits_of(settings: Settings) -> DocumentLimits:
    """What one document may ask for: the settings of the same names."""
    numbers = {one.name: getattr(settings, one.name) for one in fields(DocumentLimits)}
    return DocumentLimits(**{**numbers, "introspection": settings.shows("introspection")})


def trusted_of(settings: Settings) -> PersistedDocuments:
    """The documents in the file that the settings name; without a file every other is taken too."""
    only = bool(settings.trusted_documents) and settings.trusted_mode == "only"
    return PersistedDocuments(read_trusted(settings.trusted_documents), only=only)
