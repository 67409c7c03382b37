"""Traces: OpenTelemetry spans of requests and store calls; imported only if `CLADE_TRACES` is on.

OpenTelemetry's own variables configure the export, such as `OTEL_EXPORTER_OTLP_ENDPOINT`. Names and attributes are
those of its stable semantic conventions for HTTP servers and databases. `url.query` is left out, since a query string
may have secrets in variables, and so is the operation's name in the names of spans, since clients invent it.

`opentelemetry-instrumentation-asgi` 0.66 is not used: it ends a span with the last byte of the response, before its
reads and outcome are set, it records query strings, and it fails requests whose query string is not UTF-8.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.semconv.attributes import client_attributes as client
from opentelemetry.semconv.attributes import db_attributes as db
from opentelemetry.semconv.attributes import http_attributes as http
from opentelemetry.semconv.attributes import network_attributes as network
from opentelemetry.semconv.attributes import server_attributes as server
from opentelemetry.semconv.attributes import url_attributes as url
from opentelemetry.semconv.attributes import user_agent_attributes as user_agent
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import Span, SpanKind, StatusCode
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.errors import INTERNAL, failure_of
from graph.observability.logs import PROBES, STATUS_CLIENT_CLOSED, RequestInfo
from store.connect import DynamoDBUrl, parse_store_url
from store.engine import Store

ENDPOINT = "/graphql"
METHODS = frozenset("CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE".split())  # others would be names of spans
MAX_ATTRIBUTE_CHARACTERS = 1_000  # paths, user agents and tracebacks; up to 2,048 spans wait for the exporter
MAX_EVENTS = 4

SQLITE_TABLE = "items"
READS = ("get", "range", "nodes", "count")
OPERATIONS = {
    "aws.dynamodb": {**dict.fromkeys(READS, "Query"), "get": "BatchGetItem", "commit": "TransactWriteItems"},
    "sqlite": {**dict.fromkeys(READS, "SELECT"), "commit": "COMMIT"},
}
"""The operation of an engine for each method of a store, by the engine's name."""


class Tracing:
    """The spans of one application, which a thread exports in batches, as the environment configures it."""

    def __init__(self, store: Store, address: str) -> None:
        """The store is at this URL; its calls are traced here, because fast reads bypass the libraries that
        OpenTelemetry instruments.
        """
        os.environ.setdefault("OTEL_SERVICE_NAME", "clade")
        limits = SpanLimits(max_attribute_length=MAX_ATTRIBUTE_CHARACTERS, max_events=MAX_EVENTS)
        provider = TracerProvider(span_limits=limits)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = provider.get_tracer("clade")
        parsed = parse_store_url(address)
        system, table = ("aws.dynamodb", parsed.table) if isinstance(parsed, DynamoDBUrl) else ("sqlite", SQLITE_TABLE)
        for method, operation in OPERATIONS[system].items():
            attributes = {
                db.DB_SYSTEM_NAME: system,
                db.DB_OPERATION_NAME: operation,
                db.DB_COLLECTION_NAME: table,
                "clade.store.method": method,
            }
            setattr(store, method, self._traced(f"{operation} {table}", attributes, getattr(store, method)))

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application with a span for each request but probes, below the span in its `traceparent` header."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"].endswith(PROBES):
                return await app(scope, receive, send)
            headers = Headers(scope=scope)
            attributes = attributes_of(scope, headers)
            method, route = scope["method"], attributes.get(http.HTTP_ROUTE)
            name = method if method in METHODS else "HTTP"
            if route is not None:
                name = f"{name} {route}"
            span = self._tracer.start_span(name, propagate.extract(headers), SpanKind.SERVER, attributes)
            with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
                await app(scope, receive, send)

        return traced

    def observe(self, info: RequestInfo) -> None:
        """Give the span of a finished request its outcome and its reads, and the log the id of its trace."""
        span = trace.get_current_span()
        if not span.is_recording():
            return
        info.trace_id = f"{span.get_span_context().trace_id:032x}"
        if info.status != STATUS_CLIENT_CLOSED:
            span.set_attribute(http.HTTP_RESPONSE_STATUS_CODE, info.status)
        if info.kind is not None:
            attributes = {"graphql.operation.type": info.kind, "graphql.operation.name": info.name or ""}
            reads = {f"clade.reads.{name}": value for name, value in info.reads.items()}
            span.set_attributes({**attributes, "clade.how": info.how or "", **reads})
        if info.codes:
            span.set_attribute("clade.error.codes", list(info.codes))
        finish(span, info.failure)

    def _traced(
        self, name: str, attributes: Mapping[str, str], method: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **options: Any) -> Any:
            span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
            try:
                return await method(*arguments, **options)
            except Exception as error:
                if (failure := failure_of(error)) == INTERNAL:
                    span.record_exception(error)
                finish(span, failure)
                raise
            finally:
                span.end()

        return call


def attributes_of(scope: Scope, headers: Mapping[str, str]) -> dict[str, str | int]:
    """What a request says of itself, without its query string."""
    method = scope["method"]
    found: dict[str, str | int | None] = {
        http.HTTP_REQUEST_METHOD: method if method in METHODS else "_OTHER",
        http.HTTP_REQUEST_METHOD_ORIGINAL: None if method in METHODS else method,
        http.HTTP_ROUTE: scope["path"] if scope["path"] == scope.get("root_path", "") + ENDPOINT else None,
        url.URL_PATH: scope["path"],
        url.URL_SCHEME: scope["scheme"],
        network.NETWORK_PROTOCOL_VERSION: scope.get("http_version"),
        user_agent.USER_AGENT_ORIGINAL: headers.get("user-agent"),
    }
    for peer, address, port in (
        ("client", client.CLIENT_ADDRESS, client.CLIENT_PORT),
        ("server", server.SERVER_ADDRESS, server.SERVER_PORT),
    ):
        found[address], found[port] = scope.get(peer) or (None, None)
    return {name: value for name, value in found.items() if value is not None}


def finish(span: Span, failure: str | None) -> None:
    """Give a span its outcome: an error only for what the client did not cause, which `failure` names."""
    if failure is not None:
        span.set_attribute(ERROR_TYPE, failure)
        span.set_status(StatusCode.ERROR)
