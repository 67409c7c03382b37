"""Connections that break HTTP's rules, are idle, or come in masses; sent by raw sockets."""

import asyncio
import contextlib
import gc
import gzip
import logging
import socket
import struct
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from commands.protocol import HTTPProtocol
from graph.app import create_app
from graph.server.handler import MAX_CONNECTIONS
from graph.settings import Settings
from store.connect import opened
from tests.graph.small_app import MAX_BODY_BYTES, SmallStore, small_app
from tests.serving import address_of
from tests.serving import listening as running
from tests.waiting import eventually, until

BODY = orjson.dumps({"query": "{ __typename }"})
ANSWER = {"data": {"__typename": "Query"}}
GET = b"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nhost: localhost\r\n"
PATIENCE = 60.0


class Listening(NamedTuple):
    """A server in a thread, and what its observer was told of each request."""

    server: uvicorn.Server
    seen: list

    def connected(self):
        connection = socket.create_connection(address_of(self.server), timeout=PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def asked(self, sent):
        """The status and the body of the response to these bytes, on a connection of their own."""
        with self.connected() as connection:
            connection.sendall(sent)
            return answer(connection)

    def refused(self, sent, status):
        """The message by which these bytes are refused, after which the connection ends."""
        with self.connected() as connection:
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


@contextmanager
def listening(app=None, idle_seconds=75) -> Iterator[Listening]:
    """A server with the protocol of `clade serve`, until the block ends."""
    seen: list = []
    app = app or small_app(SmallStore(), observers=[seen.append])
    with running(app, lifespan="auto", http=HTTPProtocol, ws="none", timeout_keep_alive=idle_seconds) as server:
        yield Listening(server, seen)


@pytest.fixture(scope="module")
def server():
    with listening() as found:
        yield found


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


def reset_at_end(connection):
    """Make the connection end by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# -- heads -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trailer", [b"", b"authorization: Bearer x\r\n", b"host: other\r\n"])
def test_a_trailer_is_no_header_of_the_request(server, trailer):
    assert server.asked(chunked(trailer + b"\r\n")) == (200, ANSWER)
    assert server.asked(post(more="authorization: Bearer x\r\n"))[0] == 401


@pytest.mark.parametrize(
    "beginning",
    [
        chunked(b"x: "), chunked(b"x: ", "GET"), chunked().partition(b"\r\n\r\n")[0] + b"\r\n\r\n1;",
        post(b"", 100_000_000_000, line="PUT /graphql"),
    ],
    ids=["trailers", "trailers of a GET", "extensions", "body"],
)  # fmt: skip
def test_endless_trailers_extensions_and_rejected_bodies_close_the_connection(server, beginning):
    with server.connected() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(beginning)
        for _ in range(1_000):
            connection.sendall(b"y" * 65_536)
        pytest.fail("the connection is still open")


@pytest.mark.parametrize("header", ["Authorization: Bearer x", "Host: localhost", "Content-Type: application/json"])
def test_a_repeated_single_header_is_rejected(server, header):
    name, _, value = header.partition(": ")
    for twice in (f"{header}\r\n{header}\r\n", f"{name.lower()}: {value}\r\n{name.upper()}: other\r\n"):
        sent = f"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\n{twice}\r\n".encode()
        assert name in server.refused(sent, 400)
    assert server.asked(post(more="accept: */*\r\naccept: application/json\r\n")) == (200, ANSWER)


@pytest.mark.parametrize(
    "host", [b"", b"host:\r\n", b"host: a b\r\n", b"host: a/b\r\n", b"host: localhost:x\r\n", b"host: [::1\r\n",
             b"host: user@localhost\r\n", b"host: a%zz\r\n", b"host: a,localhost\x80\r\n"],
)  # fmt: skip
def test_a_host_that_is_missing_or_invalid_is_rejected(server, host):
    sent = b"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\n" + host + b"\r\n"
    assert "Host header" in server.refused(sent, 400)
    absolute = sent.replace(b"/graphql", b"http://localhost/graphql", 1)
    assert ("Host header" in server.refused(absolute, 400)) if not host else server.asked(absolute)[0] == 200


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost", "evil.example", 200), ("HTTP://127.0.0.1:8000", "evil.example", 200),
        ("http://[::1]:80", "evil.example", 200), ("http://evil.example", "localhost", 403),
        ("http://localhost@evil.example", "localhost", 403), ("http://evil.example:80", "127.0.0.1", 403),
        ("http://localhost.evil.example", "localhost", 403), ("", "localhost", 200),
    ],
)  # fmt: skip
def test_the_authority_of_the_target_counts_and_not_the_host_header(server, target, host, status):
    query = "/graphql?query=%7B__typename%7D"
    assert server.asked(f"GET {target}{query} HTTP/1.1\r\nHOST: {host}\r\n\r\n".encode())[0] == status


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"no HTTP at all\r\n\r\n", post(length="x")])
def test_invalid_http_is_rejected_as_json_without_a_warning(server, sent, caplog):
    assert "HTTP" in server.refused(sent, 400)
    assert not caplog.records


def test_a_target_without_a_path_is_that_of_the_root(server):
    def status(target):
        with server.connected() as connection:
            connection.sendall(b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" % target)
            return told(connection).split(b"\r\n")[0]

    assert status(b"http://localhost") == status(b"http://localhost?a=b") == status(b"/") != b""


def test_a_request_whose_body_comes_late_begins_with_its_head(server):
    pause = 0.05
    server.seen.clear()
    with server.connected() as connection:
        connection.sendall(post(b"", len(BODY), "expect: 100-continue\r\n"))
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"  # it has the head
        time.sleep(pause)
        connection.sendall(BODY)
        assert answer(connection) == (200, ANSWER)
    eventually(lambda: server.seen)
    assert [info.seconds >= pause for info in server.seen] == [True]


@pytest.mark.parametrize("sent", [post()[:-5], chunked()[:-9] + b"zz\r\n"], ids=["left", "no chunk"])
def test_a_client_that_leaves_before_its_body_is_reported_once(server, sent):
    server.seen.clear()
    with server.connected() as connection:
        connection.sendall(sent)
    eventually(lambda: server.seen)
    assert [info.status for info in server.seen] == [499]


SLOW, UNREADABLE = post(b'{"query": "{ slow }"}'), b"GET http://localhost:x:y HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("before", "sent", "status"),
    [([SLOW], UNREADABLE, 400), ([post(), GET + b"\r\n"], b"nonsense\r\n\r\n", 400),
     ([post(), GET + b"\r\n"], b"GET /" + b"x" * 400_000, 431)],
    ids=["unreadable", "nonsense", "too long"],
)  # fmt: skip
def test_a_rejection_comes_after_the_responses_to_earlier_requests(server, before, sent, status):
    with server.connected() as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"".join(before) + sent)
        statuses = [int(text[:3]) for text in told(connection).split(b"HTTP/1.1 ")[1:]]
    expected = [200] * len(before) + [status]
    may_be_cut = sent is not UNREADABLE  # a reset may overtake the last ones
    assert statuses == (expected[: len(statuses)] if may_be_cut else expected)


@pytest.mark.parametrize("head", [GET + b"x: ", GET + b"x: y\r\n" * 11_000, b"GET /graphql?"])
def test_the_size_of_a_head_is_limited_and_the_observer_is_told(server, head):
    server.seen.clear()
    assert "65,536 bytes" in server.refused(head + b"q" * 3_000_000, 431)
    eventually(lambda: server.seen)
    (info,) = server.seen
    assert (info.status, list(info.codes), "65,536 bytes" in info.reason) == (431, ["BAD_REQUEST"], True)


def test_a_head_at_the_limit_is_accepted_and_one_byte_more_is_431(server):
    room = 65_536 - len(GET + b"x: \r\n") + len("GET  HTTP/1.1\r\n")  # address and headers count
    assert server.asked(GET + b"x: " + b"y" * room + b"\r\n\r\n") == (200, ANSWER)
    assert "65,536 bytes" in server.refused(GET + b"x: " + b"y" * (room + 1) + b"\r\n\r\n", 431)
    assert "65,536 bytes" in server.refused(b"GET /" + b"x" * 65_536 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", 431)


# -- bodies ------------------------------------------------------------------------------------------------------------


def test_a_large_body_in_the_same_packet_does_not_count_for_the_head(server):
    long_head = GET + b"connection: close\r\nx: " + b"y" * 40_000 + b"\r\n\r\n"
    with server.connected() as connection:
        connection.sendall(post(BODY.ljust(MAX_BODY_BYTES)) * 2 + long_head)
        assert told(connection).count(b"HTTP/1.1 200 ") == 3


@pytest.mark.parametrize(
    ("status", "changed"),
    [(404, {"line": "POST /nothing"}), (405, {"line": "PUT /graphql"}), (413, {}), (415, {"kind": "text/plain"})],
)
def test_a_body_that_comes_after_the_response_is_not_read_as_a_request(server, status, changed):
    first, rest = b"x" * 300_000 * (status == 413), (GET + b"\r\n") * 3
    with server.connected() as connection:
        connection.sendall(post(first, length=len(first + rest), **changed))
        assert answer(connection)[0] == status
        connection.sendall(rest + GET + b"connection: close\r\n\r\n")
        assert told(connection).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("length", [MAX_BODY_BYTES + 1, "0" * 30 + str(2**63)])
@pytest.mark.parametrize("more", ["expect: 100-continue\r\n", ""])
def test_a_body_that_is_announced_above_the_limit_is_refused_before_it_comes(server, length, more):
    if more:
        assert f"{MAX_BODY_BYTES} bytes" in server.refused(post(b"", length, more), 413)
    else:
        with server.connected() as connection:
            connection.sendall(post(b"", length))
            assert answer(connection)[0] == 413


def test_after_a_body_that_was_refused_by_its_length_the_next_request_is_answered(server):
    with server.connected() as connection:
        connection.sendall(post(b"", MAX_BODY_BYTES + 1))
        assert answer(connection)[0] == 413
        connection.sendall(b"x" * (MAX_BODY_BYTES + 1) + post())
        assert answer(connection) == (200, ANSWER)
    compressed = gzip.compress(BODY.ljust(MAX_BODY_BYTES), 0)
    assert server.asked(post(compressed, more="content-encoding: gzip\r\n")) == (200, ANSWER)


# -- idle and many -----------------------------------------------------------------------------------------------------


def test_connections_that_wait_for_their_client_are_closed_after_the_idle_time():
    with listening(idle_seconds=2) as server, ExitStack() as opened_ones:
        silent, in_head, between, in_rest = [opened_ones.enter_context(server.connected()) for _ in range(4)]
        in_head.sendall(GET)
        between.sendall(post())
        in_rest.sendall(post(BODY, 1_000, line="PUT /graphql"))
        assert answer(in_rest)[0] == 405
        in_rest.sendall(b"x")
        assert answer(between) == (200, ANSWER)
        assert [told(one) for one in (silent, in_head, between, in_rest)] == [b""] * 4


class Busy:
    """A connection that is not idle, without a socket."""

    timeout_keep_alive_task = None


@contextmanager
def busy_connections(server, count):
    """So many more connections of a server, of which none is idle."""
    busy = {Busy() for _ in range(count)}
    server.server.server_state.connections.update(busy)
    try:
        yield
    finally:
        server.server.server_state.connections.difference_update(busy)


def test_above_the_limit_the_longest_idle_connections_are_closed(server):
    evicted = MAX_CONNECTIONS // 16 + 1
    with ExitStack() as opened_ones:
        first = [opened_ones.enter_context(server.connected()) for _ in range(evicted)]
        for one in first:
            one.sendall(post())
            assert answer(one) == (200, ANSWER)
        time.sleep(0.05)  # so that these are idle longer than the next, by a clock of milliseconds
        opened_ones.enter_context(busy_connections(server, MAX_CONNECTIONS - evicted - 1))
        later = [opened_ones.enter_context(server.connected()) for _ in range(2)]
        for _ in range(2):  # none of these is closed
            for one in later:
                one.sendall(post())
                assert answer(one) == (200, ANSWER)
        for one in first:
            assert told(one) == b""


def test_where_no_connection_is_idle_a_new_one_is_503():
    with listening() as server, busy_connections(server, MAX_CONNECTIONS - 1), server.connected() as upload:
        upload.sendall(post(b"", len(BODY), "expect: 100-continue\r\n"))
        assert upload.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        with server.connected() as another:
            text = told(another)
        upload.sendall(BODY)
        assert answer(upload) == (200, ANSWER)
    assert text.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in text
    assert b'"OVERLOADED"' in text


def test_pipelined_requests_are_answered_in_their_order_up_to_a_limit(server):
    with server.connected() as connection:
        connection.sendall((post() + GET + b"\r\n") * 8 + GET + b"connection: close\r\n\r\n")
        assert told(connection).count(b"HTTP/1.1 200 ") == 17
    with server.connected() as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall((GET + b"\r\n") * 3_000)
        text = told(connection)
    assert text.count(b"HTTP/1.1 200 ") < 100
    assert text.count(b"HTTP/1.1 400 ") <= 1
    assert server.asked(post()) == (200, ANSWER)


# -- clients that go ---------------------------------------------------------------------------------------------------


async def test_a_connection_that_is_reset_within_a_head_is_freed_at_once():
    config = uvicorn.Config(lambda: None, http=HTTPProtocol)
    config.load()
    state, read = ServerState(), []

    class Protocol(HTTPProtocol):
        def data_received(self, data):
            super().data_received(data)
            read.append(weakref.ref(self))

    async with await asyncio.get_running_loop().create_server(
        lambda: Protocol(config, state, {}), "127.0.0.1", 0
    ) as server:
        for number in range(1, 21):
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(GET)
            await until(lambda: len(read) == number)  # noqa: B023
            reset_at_end(writer.get_extra_info("socket"))
            writer.close()
        await until(lambda: not state.connections)
        gc.collect()
        assert [one for one in read if one() is not None] == []


async def test_a_stream_ends_with_its_connection_also_before_a_pipelined_request(tmp_path, caplog):
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    async with opened(url, make=True):
        pass
    caplog.set_level(logging.INFO, "clade.request")
    query = orjson.dumps({"query": 'subscription { changes(hierarchy: LOCATION, tree: "US") { cursor } }'})
    with listening(create_app(Settings(store=url))) as server:
        with server.connected() as connection:
            connection.sendall(post(query, more="accept: text/event-stream\r\n") + GET + b"\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        await asyncio.to_thread(eventually, lambda: any("events" in one.fields for one in caplog.records))


def test_a_disconnect_at_any_moment_is_no_error(server, caplog):
    server.seen.clear()
    sents = [post(), GET + b"\r\n", b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n", (GET + b"\r\n") * 8]
    for number in range(400):
        connection = server.connected()
        read = post(orjson.dumps({"query": f'{{ hello(name: "{number}") }}'}))
        connection.sendall([*sents, read * 3][number % 5] + (b"nonsense\r\n\r\n" if number % 3 == 0 else b""))
        if number % 2:
            reset_at_end(connection)
        time.sleep((number % 10) * 0.0001)
        connection.close()
    assert server.asked(post()) == (200, ANSWER)
    eventually(lambda: len(server.server.server_state.connections) <= 1)
    assert not caplog.records
    assert {info.status for info in server.seen} <= {200, 400, 499}
