"""Connections of `clade serve` that break HTTP's rules, are idle, or come in masses; sent by raw sockets."""

import asyncio
import contextlib
import gc
import socket
import struct
import weakref
from contextlib import ExitStack
from functools import partial
from urllib.parse import urlsplit

import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from commands.serving import http_protocol
from commands.serving import server as serving
from graph.observability.access_log import SLOW_SECONDS
from store.connect import open_store
from tests.servers import Server

BODY = orjson.dumps({"query": "{ __typename }"})
ANSWER = {"data": {"__typename": "Query"}}
GET = b"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nhost: localhost\r\n"
PATIENCE = 60.0


def limited(**limits):
    """Give a server other limits."""
    for name, value in limits.items():
        setattr(http_protocol if hasattr(http_protocol, name) else serving, name, value)


@pytest.fixture
async def start(tmp_path):
    """Starts a server of an empty store with some settings."""
    servers = []
    address = f"sqlite:///{tmp_path / 'clade.db'}"
    async with open_store(address) as store:
        await store.create()

    async def begin(limits=None, **settings):
        server = Server(tmp_path, "server", **{"store": address, "request_seconds": "60", **settings})
        await server.start(partial(limited, **limits or {}))
        servers.append(server)
        return server

    yield begin
    for server in servers:
        await server.close()


def connected(server):
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def post(body=BODY, length=None, more="", line="POST /graphql", kind="application/json"):
    head = f"{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n{more}"
    return f"{head}content-length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def chunked(trailers=b"\r\n", method="POST"):
    head = f"{method} /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY) + trailers


def told(connection):
    """All that comes until the server closes the connection."""
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            text += part
    return text


def answer(connection):
    """The status and the body of one answer."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = connection.recv(65_536)
        assert part, text
        text += part
    head, _, body = text.partition(b"\r\n\r\n")
    (length,) = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    while len(body) < length:
        body += connection.recv(65_536)
    return int(head.split()[1]), orjson.loads(body) if body else None


def asked(server, sent):
    """The answer to these bytes, on a connection of their own."""
    with connected(server) as connection:
        connection.sendall(sent)
        return answer(connection)


def refused(server, sent, status):
    """The message by which these bytes are refused, after which the connection ends."""
    with connected(server) as connection:
        with contextlib.suppress(ConnectionError):  # it may end while they are sent
            connection.sendall(sent)
        text = told(connection)
    assert text.startswith(b"HTTP/1.1 %d " % status), text[:200]
    head, _, body = text.partition(b"\r\n\r\n")
    assert {b"connection: close", b"content-type: application/json; charset=utf-8", b"cache-control: no-store",
            b"x-content-type-options: nosniff"} < set(head.split(b"\r\n"))  # fmt: skip
    assert b"x-request-id: " in head
    (error,) = orjson.loads(body)["errors"]
    assert error["extensions"] == {"code": "BAD_REQUEST"}
    return error["message"]


# -- heads -------------------------------------------------------------------------------------------------------------


async def test_a_trailer_is_no_header_of_the_request(start):
    server = await start(reads="granted")
    credential = b"authorization: Bearer x\r\n"
    for trailers in (b"\r\n", credential + b"\r\n"):
        assert asked(server, chunked(trailers)) == (200, ANSWER)  # and would be 401, or 400 for a second host
    assert asked(server, chunked(b"host: other\r\n\r\n")) == (200, ANSWER)
    assert asked(server, post(more=credential.decode()))[0] == 401


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("beginning", [chunked(b"x: "), chunked().partition(b"\r\n\r\n")[0] + b"\r\n\r\n1;"])
async def test_endless_trailers_and_extensions_of_chunks_close_the_connection(start, method, beginning):
    server = await start()
    with connected(server) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(beginning.replace(b"POST", method.encode()))
        for _ in range(1_000):
            connection.sendall(b"y" * 65_536)
        pytest.fail("the connection is still open")


@pytest.mark.parametrize("header", ["Authorization: Bearer x", "Host: localhost", "Content-Type: application/json"])
async def test_a_repeated_single_header_is_rejected(start, header):
    server = await start()
    name, _, value = header.partition(": ")
    for twice in (f"{header}\r\n{header}\r\n", f"{name.lower()}: {value}\r\n{name.upper()}: other\r\n"):
        sent = f"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\n{twice}\r\n".encode()
        assert name in refused(server, sent, 400)
    assert asked(server, post(more="accept: */*\r\naccept: application/json\r\n")) == (200, ANSWER)


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"no HTTP at all\r\n\r\n", post(length="x")])
async def test_invalid_http_is_rejected_as_json_without_a_warning(start, sent):
    server = await start()
    assert "HTTP" in refused(server, sent, 400)
    await server.stop()
    assert not warnings(server)


@pytest.mark.parametrize(("sent", "status"), [(b"nonsense\r\n\r\n", 400), (b"GET /" + b"x" * 400_000, 431)])
async def test_a_rejection_comes_after_the_responses_to_earlier_requests(start, sent, status):
    server = await start()
    with connected(server) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(post() + GET + b"\r\n" + sent)
        statuses = [int(text[:3]) for text in told(connection).split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 200, status][: len(statuses)]  # a reset may overtake the last ones


@pytest.mark.parametrize("head", [GET + b"x: ", GET + b"x: y\r\n" * 11_000, b"GET /graphql?"])
async def test_the_size_of_a_head_is_limited_and_the_log_says_so(start, head):
    server = await start()
    assert "65,536 bytes" in refused(server, head + b"q" * 3_000_000, 431)
    line = await logged(server, "reason")
    assert (line["status"], line["codes"], "65,536 bytes" in line["reason"]) == (431, ["BAD_REQUEST"], True)


async def test_a_head_at_the_limit_is_accepted_and_one_byte_more_is_431(start):
    server = await start()
    room = 65_536 - len(GET + b"x: \r\n") + len("GET  HTTP/1.1\r\n")  # address and headers count
    assert asked(server, GET + b"x: " + b"y" * room + b"\r\n\r\n") == (200, ANSWER)
    assert "65,536 bytes" in refused(server, GET + b"x: " + b"y" * (room + 1) + b"\r\n\r\n", 431)


async def test_a_large_body_in_the_same_packet_does_not_count_for_the_head(start):
    server = await start()
    body = orjson.dumps({"query": "{ __typename }", "extensions": {"x": "y" * 200_000}})
    with connected(server) as connection:
        for _ in range(3):  # one after the other
            connection.sendall(post(body))
            assert answer(connection) == (200, ANSWER)


# -- bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "changed"),
    [(404, {"line": "POST /nothing"}), (405, {"line": "PUT /graphql"}), (413, {}), (415, {"kind": "text/plain"})],
)
async def test_a_body_that_comes_after_the_response_is_not_read_as_a_request(start, status, changed):
    server = await start()
    first, rest = b"x" * 300_000 * (status == 413), (GET + b"\r\n") * 3
    with connected(server) as connection:
        connection.sendall(post(first, length=len(first + rest), **changed))
        assert answer(connection)[0] == status
        connection.sendall(rest + GET + b"connection: close\r\n\r\n")
        assert told(connection).count(b"HTTP/1.1 ") == 1


async def test_a_body_is_asked_for_where_the_client_waits_for_that(start):
    server = await start()
    with connected(server) as connection:
        connection.sendall(post(b"", len(BODY), "expect: 100-continue\r\n"))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert answer(connection) == (200, ANSWER)


# -- idle and many -----------------------------------------------------------------------------------------------------


async def test_connections_that_wait_for_their_client_are_closed_after_the_idle_time(start):
    server = await start(limits={"IDLE_SECONDS": 3})
    with ExitStack() as opened:
        silent, in_head, between, in_rest = [opened.enter_context(connected(server)) for _ in range(4)]
        in_head.sendall(GET)
        between.sendall(post())
        in_rest.sendall(post(BODY, 1_000, line="PUT /graphql"))
        assert answer(in_rest)[0] == 405
        in_rest.sendall(b"x")
        assert answer(between) == (200, ANSWER)
        assert [told(one) for one in (silent, in_head, between, in_rest)] == [b""] * 4


async def test_above_the_limit_the_longest_idle_connections_are_closed(start):
    server = await start(limits={"MAX_CONNECTIONS": 8})
    with ExitStack() as opened:
        first = [opened.enter_context(connected(server)) for _ in range(4)]
        for one in first[:2]:
            one.sendall(post())
            assert answer(one) == (200, ANSWER)
        await asyncio.sleep(0.05)  # so that these are idle longer than the next, by a clock of milliseconds
        later = [opened.enter_context(connected(server)) for _ in range(8)]
        for _ in range(2):  # none of these is closed
            for one in later:
                one.sendall(post())
                assert answer(one) == (200, ANSWER)
        for one in first:
            assert told(one) == b""


async def test_a_connection_that_is_reset_within_a_head_is_freed_at_once():
    config = uvicorn.Config(lambda: None, http=http_protocol.HTTPProtocol)
    config.load()
    state, made = ServerState(), []

    def protocol():
        one = http_protocol.HTTPProtocol(config, state, {})
        made.append(weakref.ref(one))
        return one

    async with await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0) as server:
        for _ in range(20):
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(GET)
            await asyncio.sleep(0.01)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.close()
        async with asyncio.timeout(PATIENCE):
            while state.connections or len(made) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        gc.collect()
        assert [one for one in made if one() is not None] == []


async def test_a_body_that_goes_on_after_its_response_ends_the_connection(start):
    server = await start()
    with connected(server) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(post(b"", 100_000_000_000, line="PUT /graphql"))
        assert connection.recv(12) == b"HTTP/1.1 405"
        for _ in range(1_000):
            connection.sendall(b"y" * 65_536)
        pytest.fail("the connection is still open")


async def test_where_no_connection_is_idle_a_new_one_is_503(start):
    server = await start(limits={"MAX_CONNECTIONS": 1})
    await server.disconnect()
    with connected(server) as upload:
        upload.sendall(post(b"", len(BODY), "expect: 100-continue\r\n"))
        assert upload.recv(100).startswith(b"HTTP/1.1 100 ")
        with connected(server) as another:
            text = told(another)
        upload.sendall(BODY)
        assert answer(upload) == (200, ANSWER)
    assert text.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in text
    assert b'"OVERLOADED"' in text


async def test_pipelined_requests_are_answered_in_their_order_up_to_a_limit(start):
    server = await start()
    with connected(server) as connection:
        connection.sendall((post() + GET + b"\r\n") * 8 + GET + b"connection: close\r\n\r\n")
        assert told(connection).count(b"HTTP/1.1 200 ") == 17
    with connected(server) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall((GET + b"\r\n") * 3_000)
        text = told(connection)
    assert text.count(b"HTTP/1.1 200 ") < 100
    assert text.count(b"HTTP/1.1 400 ") <= 1
    assert asked(server, post()) == (200, ANSWER)


# -- clients that go ---------------------------------------------------------------------------------------------------


def lines(server):
    return [orjson.loads(line) for line in server.said.read_bytes().splitlines() if line.startswith(b"{")]


async def logged(server, field):
    """The first line of the log with this field, which another process writes."""
    async with asyncio.timeout(PATIENCE):
        while not (found := [line for line in lines(server) if field in line]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found[0]


def warnings(server):
    """The lines of faults; that a request took long is no fault on a busy machine."""
    strange = [one for one in lines(server) if one["level"] in ("warning", "error")]
    return [
        one for one in strange if "codes" in one or one.get("status", 500) >= 500 or one["ms"] < SLOW_SECONDS * 1000
    ]


async def test_a_stream_ends_with_its_connection_also_before_a_pipelined_request(start):
    server = await start()
    query = orjson.dumps({"query": 'subscription { changes(hierarchy: LOCATION, tree: "US") { cursor } }'})
    with connected(server) as connection:
        connection.sendall(post(query, more="accept: text/event-stream\r\n") + GET + b"\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert (await logged(server, "events"))["kind"] == "subscription"


async def test_a_disconnect_at_any_moment_is_no_error(start):
    server = await start()
    sents = [post(), GET + b"\r\n", b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n", (GET + b"\r\n") * 8]
    for number in range(400):
        connection = connected(server)
        read = post(orjson.dumps({"query": f'{{ location(path: "{number}") {{ name }} }}'}))
        connection.sendall([*sents, read * 3][number % 5] + (b"nonsense\r\n\r\n" if number % 3 == 0 else b""))
        if number % 2:  # by a reset instead of an end
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await asyncio.sleep((number % 10) * 0.0001)
        connection.close()
    assert asked(server, post()) == (200, ANSWER)
    await asyncio.sleep(0.3)
    await server.stop()
    assert not warnings(server)
