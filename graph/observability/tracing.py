"""Spans of requests, plans and the store's work for OpenTelemetry; imported only where `CLADE_TRACES` is on.

Where they go is said by OpenTelemetry's own variables, as `OTEL_EXPORTER_OTLP_ENDPOINT`. The store's verbs have spans
of our own: its hot reads pass no library that could make them.
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
MAX_ATTRIBUTE_CHARACTERS = 1_000  # addresses, agents and tracebacks; 2,048 spans may wait for the exporter
MAX_EVENTS = 4
VERBS = ("get", "range", "nodes", "count", "commit")


def exporting() -> TracerProvider:
    """Sends spans in batches, by a thread, to where the environment says."""
    os.environ.setdefault("OTEL_SERVICE_NAME", "clade")
    limits = SpanLimits(max_attribute_length=MAX_ATTRIBUTE_CHARACTERS, max_events=MAX_EVENTS)
    provider = TracerProvider(span_limits=limits)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Tracing:
    """What makes the spans of one application; they go to the provider."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("clade")

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application with a span for each request, below that of its caller where the headers name one."""
        made: ASGIApp = OpenTelemetryMiddleware(
            app, tracer_provider=self._provider, excluded_urls=EXCLUDED, exclude_spans=["receive", "send"]
        )
        return made

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A span below the request's. It is not made the current one, since what is in it may go on in another task."""
        span = self._tracer.start_span(name)
        try:
            yield
        except BaseException as error:
            span.record_exception(error)
            span.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            span.end()

    def mark(self, observed: RequestInfo) -> None:
        """Tell the request's span what the log will be told, and the log the trace; the span ends with the answer."""
        span = trace.get_current_span()
        if not span.is_recording():
            return
        observed.trace_id = f"{span.get_span_context().trace_id:032x}"
        if observed.kind is not None:
            span.update_name(" ".join(filter(None, (observed.kind, observed.name))))
            told = {"graphql.operation.type": observed.kind, "graphql.operation.name": observed.name or ""}
            reads = {f"clade.reads.{name}": value for name, value in observed.reads.items()}
            span.set_attributes({**told, "clade.how": observed.how or "", **reads})

    def watch(self, store: Store) -> None:
        """Have the verbs of a store make spans."""
        for verb in VERBS:
            setattr(store, verb, self._traced(f"store {verb}", getattr(store, verb)))

    def _traced(self, name: str, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **options: Any) -> Any:
            with self.span(name):
                return await verb(*arguments, **options)

        return call
