"""Tracing: one span for a request, below it one for its plan and one for each store call."""

import subprocess
import sys

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graph.app import create_app
from graph.observability import tracing
from graph.observability.request_info import RequestInfo
from tests.serving import serving

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch, demo_store):
    """A server that makes spans, and what it has made."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "exporting", lambda: provider)
    for name, value in {"STORE": demo_store, "TRACES": "on", "RECORD_CACHE_MB": "0", "RESPONSE_CACHE_MB": "0"}.items():
        monkeypatch.setenv(f"CLADE_{name}", value)
    with serving(create_app()) as url:
        exporter.clear()

        def asked(query, **headers):
            httpx.post(f"{url}/graphql", json={"query": query}, headers=headers)
            httpx.get(f"{url}/readyz")
            return {span.name: span for span in exporter.get_finished_spans()}

        yield asked


def test_a_request_has_spans_for_itself_its_plan_and_its_reads(spans):
    found = spans('query Cities { country(path: "US") { children { nodes { name } } } }', traceparent=PARENT)
    assert set(found) == {"query Cities", "plan", "store get", "store nodes"}
    request = found["query Cities"]
    assert f"{request.context.trace_id:032x}" == PARENT.split("-")[1]
    assert {span.parent.span_id for name, span in found.items() if name != "query Cities"} == {request.context.span_id}
    assert request.attributes["clade.how"] == "compiled"
    assert request.attributes["clade.reads.requests"] == 2
    assert request.attributes["graphql.operation.name"] == "Cities"


def test_attributes_from_clients_are_shortened(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    provider = tracing.exporting()
    with tracing.Tracing(provider)._tracer.start_as_current_span("request") as span:
        span.set_attribute("http.target", "/" + "q" * 60_000)
        span.record_exception(ValueError("v" * 60_000))
        observed = RequestInfo("id", "POST", "/graphql", 0.0, kind="query", operation="N" * 60_000)
        tracing.Tracing(provider).mark(observed)
    assert len(span.to_json()) < 10_000
    assert span.name == f"query {'N' * 200}…"
    provider.shutdown()


def test_an_error_is_in_the_span_of_the_plan(spans):
    found = spans('{ city(path: "US") { name } }')
    assert found["plan"].status.is_ok is False
    assert found["query"].attributes["clade.how"] == "fallback"


def test_optional_libraries_are_not_imported_without_their_setting(demo_store):
    libraries = "{'opentelemetry', 'prometheus_client', 'jwt', 'cryptography'}"
    code = f"import sys, graph.app; graph.app.create_app(); print({libraries} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "set()\n"
