"""Application factory: the ASGI application that the settings describe, of all its parts."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Receive, Scope, Send

from graph.auth.authentication import Authenticator, tokens_of
from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.execution.response_cache import ResponseCache
from graph.federation_exposure import exposed
from graph.hierarchies.example_queries import Example, example_queries
from graph.hierarchies.node import Node
from graph.hierarchies.registry import served
from graph.hierarchies.sample_nodes import read_samples
from graph.observability.access_log import RequestLog
from graph.operation.context import Context
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.operation.persisted_documents import PersistedDocuments, read_trusted
from graph.operation.selected_fields import Types
from graph.schema import build_schema
from graph.server.asgi_app import Lifespan, build_app, lifespan_of
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
    store = open_store(settings.store, keep_bytes=settings.keep_bytes)
    writer = resolvers.Writer(store, settings.move_timing) if settings.writes != "off" else None
    tracing = tracing_of(settings, store)
    cache = ResponseCache(settings.response_cache_mb * 1_000_000, settle_seconds=settings.settle_seconds)
    limiter, drain = ConcurrencyLimiter(settings.max_inflight), GracefulShutdown(settings.drain_seconds)
    execution = execution_of(settings, classes, store, writer, cache, tracing)
    observers: list[Observer] = [RequestLog(settings.slow_seconds)]
    authenticator = authenticator_of(settings, store)
    background = [authenticator.watch]
    if settings.metrics:
        from graph.observability import metrics
        from graph.server import gauges

        observers.append(metrics.count)
        background.append(gauges.sampler_of(store, drain, limiter, execution, writer).watch)
    app = build_app(
        store,
        execution,
        writer=writer,
        examples=partial(examples_of, settings, classes, store),
        limiter=limiter,
        drain=drain,
        observers=observers,
        on_start=tracing.mark if tracing else None,
        background=background,
        authenticator=authenticator,
        **_http_options(settings),
    )
    return Application(tracing.around(app) if tracing else app, lifespan_of(store, writer, None, background))


def _http_options(settings: Settings) -> dict[str, Any]:
    """The arguments of `build_app` that are settings alone."""
    return {
        "max_body_bytes": settings.max_body_bytes,
        "body_seconds": settings.request_seconds,
        "graphiql": settings.shows("graphiql"),
        "trusted": persisted_documents_of(settings),
        "cors_origins": settings.cors_origins.replace(",", " ").split(),
        "check_hosts": not settings.production,
    }


async def examples_of(settings: Settings, classes: Sequence[type[Node]], store: Store) -> list[Example]:
    """The example queries, with paths that the store holds where everybody may read them."""
    samples = await read_samples(store, classes) if settings.reads == "open" else {}
    return example_queries(classes, samples, writable=settings.writes != "off")


def execution_of(
    settings: Settings,
    classes: Sequence[type[Node]],
    store: Store,
    writer: resolvers.Writer | None,
    cache: ResponseCache,
    tracing: "Tracing | None",
) -> Execution:
    """The execution of operations over the store, on the schema of these hierarchies."""
    schema, types = build_schema(classes, expose=exposed(settings.federation_expose))
    definitions = {cls.name: cls.definition() for cls in classes}
    return Execution(
        schema,
        context_factory_of(settings, store, definitions, types, writer),
        span=tracing.span if tracing else nullcontext,
        plans=PlanCache(core_schema(schema), types),
        cache=cache,
        keep_documents=settings.plan_cache_documents,
        limits=limits_of(settings),
        suggestions=settings.shows("suggestions"),
    )


def context_factory_of(
    settings: Settings,
    store: Store,
    definitions: dict[str, Hierarchy],
    types: Types,
    writer: resolvers.Writer | None,
) -> Callable[[], Context]:
    """A factory of the context of each operation."""
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


def tracing_of(settings: Settings, store: Store) -> "Tracing | None":
    """OpenTelemetry spans of requests and of the store; None if the settings disable them."""
    if settings.traces == "off":
        return None
    from graph.observability.tracing import Tracing, exporting

    tracing = Tracing(exporting())
    tracing.watch(store)
    return tracing


def authenticator_of(settings: Settings, store: Store) -> Authenticator:
    """The authenticator of API keys and tokens, with the rights of anonymous callers."""
    return Authenticator(
        ApiKeyAuthenticator(store),
        tokens_of(settings),
        open_reads=settings.reads == "open",
        local_writes=local_writes(settings),
    )


def local_writes(settings: Settings) -> bool:
    """Whether every client on this machine may write without a credential."""
    return settings.writes == "on" and settings.reads == "open" and not settings.production


def budget_of(settings: Settings) -> BudgetLimits:
    """The budget of one request: the settings of the same names."""
    return BudgetLimits(
        settings.max_nodes, settings.max_response_fields, settings.max_response_bytes, settings.max_read_units
    )


def limits_of(settings: Settings) -> DocumentLimits:
    """The limits of one document: the settings of the same names."""
    numbers = {limit.name: getattr(settings, limit.name) for limit in fields(DocumentLimits)}
    return DocumentLimits(**{**numbers, "introspection": settings.shows("introspection")})


def persisted_documents_of(settings: Settings) -> PersistedDocuments:
    """The persisted documents in the file that the settings name; without a file all other documents are accepted."""
    only = bool(settings.trusted_documents) and settings.trusted_mode == "only"
    return PersistedDocuments(read_trusted(settings.trusted_documents), only=only)
