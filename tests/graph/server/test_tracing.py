"""Tracing: the spans of a real server, as a collector of OpenTelemetry receives them by OTLP over HTTP."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from secrets import token_hex

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from store.connect import open_store
from tests.servers import served
from tests.serving import handling
from tests.waiting import eventually

HIERARCHY = '''
from clade import Node, computed


class Shelf(Node, hierarchy="shelf", many="shelves"):
    """A shelf."""


class Books(Shelf, under=None):
    """A shelf for books."""

    @computed("Fails.")
    def broken(self) -> str | None:
        raise RuntimeError("a detail of the server")
'''
CREATE = 'mutation Create { createShelf(input: {key: "A", name: "A", attributes: { books: {} }}) { node { path } } }'
BY_PATH = '{ shelf(path: "A") { path } }'
BROKEN = '{ shelf(path: "A") { ... on Books { broken } } }'
SECRET = "a-secret-of-the-client"
WAIT_SECONDS = 30


def value_of(value):
    kind = value.WhichOneof("value")
    return [value_of(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


class Collected:
    """A span with its attributes as a dictionary."""

    def __init__(self, span):
        self.name, self.kind, self.status = span.name, span.kind, span.status.code
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id, span.parent_span_id
        self.attributes = {one.key: value_of(one.value) for one in span.attributes}
        self.events = [event.name for event in span.events]
        self.text = str(span)

    @property
    def outcome(self):
        return self.status, self.attributes.get("error.type")


@contextmanager
def collecting():
    """A collector: its address, and the spans that it has received."""
    spans = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            for resource in sent.resource_spans:
                spans.extend(Collected(span) for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

    with handling(Collector) as url:
        yield url, spans


class Traced:
    """A server whose spans are collected, and its requests."""

    def __init__(self, url, spans):
        self.url = url
        self._spans = spans

    def request(self, method="POST", path="/graphql", **options):
        """The server span of a request, and the spans below it by name."""
        trace, parent = token_hex(16), token_hex(8)
        headers = {"traceparent": f"00-{trace}-{parent}-01", **options.pop("headers", {})}
        httpx.request(method, f"{self.url}{path}", headers=headers, timeout=WAIT_SECONDS, **options)
        (server,) = eventually(lambda: [one for one in self._spans if (one.trace, one.parent.hex()) == (trace, parent)])
        return server, {span.name: span for span in self._spans if span.parent == server.id}

    def ask(self, query, **options):
        return self.request(json={"query": query}, **options)


@contextmanager
def tracing(folder, store, **settings):
    """A server that sends its spans to a collector, and all spans so far."""
    with collecting() as (collector, spans):
        exports = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        with served(folder, store, CLADE_CACHE_MB="0", CLADE_TRACES="on", **exports, **settings) as (url, _):
            yield Traced(url, spans), spans


@pytest.fixture(scope="module", params=["sqlite", "dynamodb"])
def traced(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    (folder / "shelves.py").write_text(HIERARCHY)
    store, table = f"sqlite:///{folder}/clade.db", "items"
    if request.param == "dynamodb":
        table = f"clade-{token_hex(8)}"
        store = request.getfixturevalue("engine").address(table)

    async def create() -> None:
        async with open_store(store) as one:
            await one.create()

    asyncio.run(create())
    with tracing(folder, store, CLADE_WRITES="on", CLADE_HIERARCHIES=f"{folder}/shelves.py") as (server, _):
        server.system, server.table = request.param, table
        server.created = server.ask(CREATE)
        yield server


def test_a_request_is_a_server_span_by_the_conventions_of_http(traced):
    server, _ = traced.ask("query Named " + BY_PATH, headers={"user-agent": "tests/1"})
    host, port = traced.url.removeprefix("http://").split(":")
    kind, status = Span.SPAN_KIND_SERVER, Status.STATUS_CODE_UNSET
    assert (server.name, server.kind, server.status) == ("POST /graphql", kind, status)
    assert isinstance(server.attributes["client.port"], int)
    assert server.attributes["clade.reads.requests"] == 1
    reads = {name for name in server.attributes if name.startswith("clade.reads.")}
    assert len(reads) > 1
    others = server.attributes.keys() - reads - {"client.port"}
    assert {name: server.attributes[name] for name in others} == {
        "http.request.method": "POST",
        "http.route": "/graphql",
        "http.response.status_code": 200,
        "url.path": "/graphql",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "server.address": host,
        "server.port": int(port),
        "client.address": "127.0.0.1",
        "user_agent.original": "tests/1",
        "graphql.operation.type": "query",
        "graphql.operation.name": "Named",
        "clade.how": "compiled",
    }


def test_calls_of_the_store_are_client_spans_by_the_conventions_of_databases(traced):
    _, read = traced.ask(BY_PATH)
    names = {"sqlite": ("SELECT", "COMMIT"), "dynamodb": ("BatchGetItem", "TransactWriteItems")}[traced.system]
    assert set(read) == {f"{names[0]} {traced.table}"}
    for operation, spans in zip(names, (read, traced.created[1]), strict=True):
        span = spans[f"{operation} {traced.table}"]
        assert (span.kind, span.status) == (Span.SPAN_KIND_CLIENT, Status.STATUS_CODE_UNSET)
        assert {name: value for name, value in span.attributes.items() if name.startswith("db.")} == {
            "db.system.name": {"sqlite": "sqlite", "dynamodb": "aws.dynamodb"}[traced.system],
            "db.operation.name": operation,
            "db.collection.name": traced.table,
        }


def test_a_fault_of_the_client_is_no_error_of_any_span_and_an_internal_error_is_one(traced):
    for sent, codes in (
        ("{ shelff { path } }", ["GRAPHQL_VALIDATION_FAILED"]),
        ("{ shelf(path:", ["GRAPHQL_PARSE_FAILED"]),
        ('{ shelf(path: "A//B") { path } }', ["BAD_PATH"]),
        ("{ shelves(first: 2000000) { nodes { path } } }", None),
        (CREATE, None),
    ):
        server, below = traced.ask(sent)
        assert {span.outcome for span in (server, *below.values())} == {(Status.STATUS_CODE_UNSET, None)}
        assert [event for span in (server, *below.values()) for event in span.events] == []
        assert codes is None or server.attributes["clade.error.codes"] == codes
    server, _ = traced.ask(BROKEN)
    assert server.attributes["http.response.status_code"] == 200
    assert server.outcome == (Status.STATUS_CODE_ERROR, "INTERNAL_SERVER_ERROR")


def test_what_clients_invent_is_in_no_name_of_a_span_and_shortened_and_a_query_string_in_no_span(traced):
    invented = f"N{token_hex(8)}"
    asked = [
        traced.ask(f"query {invented} {BY_PATH}"),
        traced.request("GET", f"/{invented}"),
        traced.request("GET", f"/{invented}/graphql"),
        traced.request("PROPFIND"),
    ]
    assert [server.name for server, _ in asked] == ["POST /graphql", "GET", "GET", "HTTP /graphql"]
    assert asked[0][0].attributes["graphql.operation.name"] == invented
    assert asked[3][0].attributes["http.request.method"] == "_OTHER"
    assert [name for _, below in asked for name in below if invented in name] == []

    params = {"query": BY_PATH, "variables": f'{{"token": "{SECRET}"}}', "access_token": SECRET}
    server, below = traced.request("GET", params=params, headers={"authorization": "", "cookie": SECRET})
    assert server.attributes["url.path"] == "/graphql"
    assert [span.name for span in (server, *below.values()) if SECRET in span.text or "access_token" in span.text] == []

    long, _ = traced.ask(f"query {'N' * 5_000} {BY_PATH}", headers={"user-agent": "u" * 20_000})
    missing, _ = traced.request("GET", "/" + "p" * 20_000)
    assert max(len(long.text), len(missing.text)) < 5_000


@pytest.mark.thorough
def test_probes_have_no_spans_and_the_log_has_the_trace(tmp_path):
    with tracing(tmp_path, f"sqlite:///{tmp_path}/none.db") as (traced, spans):
        httpx.get(f"{traced.url}/readyz")
        server, _ = traced.ask("{ locations { nodes { path } } }")
        assert server.outcome == (Status.STATUS_CODE_ERROR, "UNAVAILABLE")
        eventually(lambda: f'"trace":"{server.trace}"' in (tmp_path / "said.txt").read_text())
        assert [span.name for span in spans if span.kind == Span.SPAN_KIND_SERVER] == ["POST /graphql"]


def test_optional_libraries_are_not_imported_without_their_setting():
    libraries = "{'opentelemetry', 'prometheus_client', 'jwt', 'cryptography'}"
    code = f"import sys, graph.app; graph.app.create_app(); print({libraries} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "set()\n"
