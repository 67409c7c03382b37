"""Tracing: OpenTelemetry spans of requests, compiled queries and store calls; imported only if `CLADE_TRACES` is on.

OpenTelemetry's own variables configure the export, such as `OTEL_EXPORTER_OTLP_ENDPOINT`. Store calls are traced here,
because fast reads bypass the instrumented libraries.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.types import ASGIApp

from graph.observability.request_info import RequestInfo
from store.engine.protocol import Store

EXCLUDED = "healthz,readyz"
MAX_ATTRIBUTE_CHARACTERS = 1_000  # URLs, user agents and tracebacks; up to 2,048 spans wait for the exporter
MAX_EVENTS = 4
METHODS = ("get", "range", "nodes", "count", "commit")


def exporting() -> TracerProvider:
    """A provider whose thread exports spans in batches, as the environment configures it."""
    os.environ.setdefault("OTEL_SERVICE_NAME", "clade")
    limits = SpanLimits(max_attribute_length=MAX_ATTRIBUTE_CHARACTERS, max_events=MAX_EVENTS)
    provider = TracerProvider(span_limits=limits)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Tracing:
    """The spans of one application, which go to the provider."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("clade")

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application with a span for each request, below the span in its `traceparent` header."""
        traced: ASGIApp = OpenTelemetryMiddleware(
            app, tracer_provider=self._provider, excluded_urls=EXCLUDED, exclude_spans=["receive", "send"]
        )
        return traced

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A span below the request's. It is not the current span, because its block may continue in another task."""
        span = self._tracer.start_span(name)
        try:
            yield
        except BaseException as error:
            span.record_exception(error)
            span.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            span.end()

    def mark(self, info: RequestInfo) -> None:
        """Set attributes of the request's span, as in the log, and the trace id for the log."""
        span = trace.get_current_span()
        if not span.is_recording():
            return
        info.trace_id = f"{span.get_span_context().trace_id:032x}"
        if info.kind is not None:
            span.update_name(" ".join(filter(None, (info.kind, info.name))))
            attributes = {"graphql.operation.type": info.kind, "graphql.operation.name": info.name or ""}
            reads = {f"clade.reads.{name}": value for name, value in info.reads.items()}
            span.set_attributes({**attributes, "clade.how": info.how or "", **reads})

    def watch(self, store: Store) -> None:
        """Trace the methods of a store."""
        for name in METHODS:
            setattr(store, name, self._traced(f"store {name}", getattr(store, name)))

    def _traced(self, name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **options: Any) -> Any:
            with self.span(name):
                return await method(*arguments, **options)

        return call
