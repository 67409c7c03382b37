"""Connections of `clade serve` that break HTTP's rules, come slowly, or come in masses; sent by raw sockets."""

import asyncio
import contextlib
import select
import socket
import struct
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from commands.serving import http_protocol
from graph.observability.access_log import SLOW_SECONDS
from store.api_keys import add_key, new_key
from store.connect import open_store
from tests.servers import Server

BODY = orjson.dumps({"query": "{ __typename }"})
ANSWER = {"data": {"__typename": "Query"}}
GET = b"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nhost: localhost\r\n"
PATIENCE = 60.0


def limited(**limits):
    """Give a server other limits."""
    for name, value in limits.items():
        setattr(http_protocol, name, value)


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


def post(body=BODY, length=None, more=""):
    head = f"POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}"
    return f"{head}content-length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def chunked(more="", trailers="", path="/graphql"):
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}"
    parts = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
    return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + parts + f"{trailers}\r\n".encode()


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
    assert b"connection: close" in head.lower()
    assert b"content-type: application/json; charset=utf-8" in head.lower()
    (error,) = orjson.loads(body)["errors"]
    assert error["extensions"] == {"code": "BAD_REQUEST"}
    return error["message"]


async def key_for(server, tmp_path, *grants):
    key, text = new_key("shop", grants, None)
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await add_key(store, key)
    return text


# -- heads -------------------------------------------------------------------------------------------------------------


async def test_trailers_are_rejected(start, tmp_path):
    server = await start(reads="granted", writes="granted")
    key = await key_for(server, tmp_path, "write:location")
    assert asked(server, chunked(more=f"authorization: Bearer {key}\r\n")) == (200, ANSWER)
    for path in ("/graphql", "/healthz"):
        for trailer in (f"authorization: Bearer {key}\r\n", "x: y\r\n"):
            assert "trailer" in refused(server, chunked(trailers=trailer, path=path), 400).lower()


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
    server.kill()
    assert not warnings(server)


async def test_a_rejection_is_never_sent_as_the_response_to_an_earlier_request(start):
    server = await start()
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x" * 70_000, chunked(trailers="x: y\r\n")):
        with connected(server) as connection:
            connection.sendall(post() + sent)
            assert not [line for line in told(connection).splitlines() if line.startswith(b"HTTP/1.1 4")]


@pytest.mark.parametrize("shape", ["one header", "many headers", "an address", "a trailer", "an extension of a chunk"])
async def test_the_size_of_a_head_is_limited(start, shape):
    server = await start()
    large = 3_000_000
    before = {
        "one header": GET + b"x: " + b"y" * large,
        "many headers": GET + b"x: y\r\n" * (large // 6),
        "an address": b"GET /graphql?" + b"q" * large,
        "a trailer": chunked(trailers="x: y" + "y" * large),
        "an extension of a chunk": chunked().partition(b"\r\n\r\n")[0] + b"\r\n\r\n1;" + b"x" * large,
    }[shape]
    if shape in ("a trailer", "an extension of a chunk"):  # these belong to the body
        assert "1,524,288 bytes" in refused(server, before, 413)
    else:
        assert "65,536 bytes" in refused(server, before, 431)


async def test_a_head_at_the_limit_is_accepted_and_one_byte_more_is_431(start):
    server = await start()
    room = 65_536 - len(GET + b"x: \r\n\r\n")
    assert asked(server, GET + b"x: " + b"y" * room + b"\r\n\r\n") == (200, ANSWER)
    assert "65,536 bytes" in refused(server, GET + b"x: " + b"y" * (room + 1) + b"\r\n\r\n", 431)


async def test_a_large_body_in_the_same_packet_does_not_count_for_the_head(start):
    server = await start()
    body = orjson.dumps({"query": "{ __typename }", "extensions": {"x": "y" * 200_000}})
    assert asked(server, post(body)) == (200, ANSWER)
    with connected(server) as connection:
        for _ in range(3):  # one after the other
            connection.sendall(post(body))
            assert answer(connection) == (200, ANSWER)


# -- slow ones ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drips", [b"", GET, b"GET /"])
async def test_a_slow_head_closes_the_connection(start, drips):
    server = await start(request_seconds="1")
    with connected(server) as connection:
        connection.settimeout(0.2)
        began, text, ended = time.monotonic(), b"", False
        connection.sendall(drips)
        while not ended and time.monotonic() - began < PATIENCE:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"x" if drips else b"")
            try:
                part = connection.recv(65_536)
                text, ended = text + part, not part
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
    assert ended
    assert (b" 408 " in text) == bool(drips)


async def test_a_body_that_continues_after_the_response_closes_the_connection(start):
    server = await start(request_seconds="1")
    with connected(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < PATIENCE:
                connection.sendall(b"x")
                await asyncio.sleep(0.1)
            pytest.fail("the connection is still open")


async def test_a_connection_with_occasional_requests_stays_open(start):
    server = await start(request_seconds="1")
    with connected(server) as connection:
        for seconds in (0, 1.2):
            await asyncio.sleep(seconds)
            connection.sendall(post())
            assert answer(connection) == (200, ANSWER)


# -- many --------------------------------------------------------------------------------------------------------------


def resident_bytes(pid):
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


async def test_above_the_limit_of_incomplete_bytes_the_oldest_requests_are_refused(start):
    server = await start(limits={"MAX_INCOMPLETE_BYTES": 500_000})
    sent = post(b'{"query": "{ __typename }"' + b" " * 220_000 + b"}")
    with ExitStack() as uploads:
        waiting = [uploads.enter_context(connected(server)) for _ in range(6)]
        for upload in waiting:
            upload.sendall(sent[:200_000])
        while len(waiting) > 2:
            refusals, _, _ = select.select(waiting, [], [], PATIENCE)
            assert refusals
            assert all(told(one).startswith(b"HTTP/1.1 503 ") for one in refusals)
            waiting = [one for one in waiting if one not in refusals]
        assert waiting
        for upload in waiting:
            upload.sendall(sent[200_000:])
            assert answer(upload) == (200, ANSWER)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="Memory is read from /proc.")
async def test_incomplete_bodies_take_bounded_memory_and_others_are_answered(start):
    server = await start()
    assert asked(server, post()) == (200, ANSWER)
    before, part = resident_bytes(server.pid), b'{"query": "' + b" " * 240_000
    with ExitStack() as uploads:
        for _ in range(700):
            upload = uploads.enter_context(connected(server))
            upload.sendall(post(part, length=250_000))
        assert asked(server, post()) == (200, ANSWER)
        taken = resident_bytes(server.pid) - before
        assert taken < 110_000_000
        whole = orjson.dumps({"query": "{ __typename }", "extensions": {"x": "y" * 200_000}})
        with connected(server) as late:
            sent = post(whole)
            late.sendall(sent[:150_000])
            await asyncio.sleep(0.3)
            late.sendall(sent[150_000:])
            assert answer(late) == (200, ANSWER)


async def test_above_the_limit_the_longest_idle_connections_are_closed(start):
    server = await start(limits={"MAX_CONNECTIONS": 64})
    with ExitStack() as opened:
        first = [opened.enter_context(connected(server)) for _ in range(32)]
        assert asked(server, post()) == (200, ANSWER)  # so these are idle longer than the next
        later = [opened.enter_context(connected(server)) for _ in range(32)]
        assert asked(server, post()) == (200, ANSWER)
        end = time.monotonic() + PATIENCE
        while sum(map(is_open, first)) > 32 - 64 // 16:  # they are closed one after the other
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        assert all(map(is_open, later))


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


async def test_pipelined_requests_are_limited(start):
    server = await start()
    few = GET + b"\r\n"
    with connected(server) as connection:
        connection.sendall(few * 15 + GET + b"connection: close\r\n\r\n")
        assert told(connection).count(b"HTTP/1.1 200 ") == 16
    with connected(server) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(few * 3_000 + GET + b"connection: close\r\n\r\n")
        assert told(connection).count(b"HTTP/1.1 200 ") < 3_000
    assert asked(server, post()) == (200, ANSWER)


# -- clients that go ---------------------------------------------------------------------------------------------------


def lines(server):
    return [orjson.loads(line) for line in server.said.read_bytes().splitlines() if line.startswith(b"{")]


def warnings(server):
    """The lines of faults; that a request took long is no fault on a busy machine."""
    strange = [one for one in lines(server) if one["level"] in ("warning", "error")]
    return [
        one for one in strange if "codes" in one or one.get("status", 500) >= 500 or one["ms"] < SLOW_SECONDS * 1000
    ]


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
    server.kill()
    assert not warnings(server)
