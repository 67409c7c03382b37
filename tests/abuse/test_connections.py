"""Connections of `clade serve` that break HTTP's rules, come slowly, or come in masses; sent by raw sockets."""

import asyncio
import contextlib
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from commands.serving.http_protocol import MAX_CONNECTIONS
from store.api_keys import add_key, new_key
from store.connect import open_store
from tests.servers import Server

BODY = orjson.dumps({"query": "{ __typename }"})
ANSWER = {"data": {"__typename": "Query"}}
GET = b"GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nhost: localhost\r\n"
SECONDS = 1.0
PATIENCE = 20.0


@pytest.fixture
async def start(tmp_path):
    """Starts a server of an empty store with some settings."""
    servers = []
    address = f"sqlite:///{tmp_path / 'clade.db'}"
    async with open_store(address) as store:
        await store.create()

    async def begin(**settings):
        server = Server(tmp_path, "server", **{"store": address, "request_seconds": str(SECONDS), **settings})
        await server.start()
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
    assert not [one for one in lines(server) if one["level"] in ("warning", "error")]


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


@pytest.mark.parametrize("drips", [b"", GET, pytest.param(b"GET /", marks=pytest.mark.thorough)])
async def test_a_slow_head_closes_the_connection(start, drips):
    server = await start()
    with connected(server) as connection:
        connection.settimeout(0.2)
        began, text, ended = time.monotonic(), b"", False
        connection.sendall(drips)
        while not ended and time.monotonic() - began < 5 * SECONDS:
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
    server = await start()
    with connected(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 5 * SECONDS:
                connection.sendall(b"x")
                await asyncio.sleep(0.1)
            pytest.fail("the connection is still open")


async def test_a_connection_with_occasional_requests_stays_open(start):
    server = await start()
    with connected(server) as connection:
        for _ in range(3):
            connection.sendall(post())
            assert answer(connection) == (200, ANSWER)
            await asyncio.sleep(1.2 * SECONDS)


# -- many --------------------------------------------------------------------------------------------------------------


def resident_bytes(pid):
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="Memory is read from /proc.")
async def test_incomplete_bodies_take_bounded_memory_and_others_are_answered(start):
    server = await start(request_seconds="60")
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


@pytest.fixture
def many_files():
    """A limit of open files that lets this process, and the servers that it starts, have all connections."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * MAX_CONNECTIONS, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_above_the_limit_the_longest_idle_connections_are_closed(start, many_files):
    server = await start(request_seconds="60")
    with ExitStack() as opened:
        many = [opened.enter_context(connected(server)) for _ in range(MAX_CONNECTIONS)]
        assert asked(server, post()) == (200, ANSWER)
        assert sum(is_open(one) for one in many) <= MAX_CONNECTIONS - MAX_CONNECTIONS // 16
        assert is_open(many[-1])
        assert not is_open(many[0])


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
    assert not [one for one in lines(server) if one["level"] in ("warning", "error")]


# -- overload ----------------------------------------------------------------------------------------------------------

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
TREES = post(orjson.dumps({"query": "{ locations(first: 200) { nodes { path } } }"}))
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a connection has waited")


def creation(number):
    """A mutation of many fields, whose document is new."""
    fields = "".join(
        f'm{number}x{field}: createLocation(input: {{key: "{number}x{field}", name: "x", level: COUNTRY}}) '
        "{ node { id path name } } "
        for field in range(20)
    )
    return post(orjson.dumps({"query": f"mutation {{ {fields} }}"}))


@contextlib.contextmanager
def busy(server):
    """While the block runs, the server does nothing; the kernel accepts connections and bytes for it."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


@needs_linux
async def test_what_clients_have_left_before_it_is_read_is_not_done(start):
    server = await start(writes="on", request_seconds="60")
    with busy(server):
        for number in range(60):
            with connected(server) as connection:
                connection.sendall(creation(number))
        await asyncio.sleep(0.2)
        reader, probe = connected(server), connected(server)
        reader.sendall(TREES)
        probe.sendall(HEALTH)
    with reader, probe:
        assert answer(reader) == (200, {"data": {"locations": {"nodes": []}}})
        assert b"200 OK" in probe.recv(65_536)
    await until_lines(server, 61)
    assert asked(server, TREES) == (200, {"data": {"locations": {"nodes": []}}})
    assert sorted(line["status"] for line in requests(server)[:61]) == [200, *[499] * 60]


@needs_linux
async def test_requests_that_have_waited_too_long_are_503_with_retry_after(start):
    server = await start(writes="on", request_seconds="2")
    with contextlib.ExitStack() as open_ones:
        with busy(server):
            waiting = [open_ones.enter_context(connected(server)) for _ in range(20)]
            for number, connection in enumerate(waiting):
                connection.sendall(creation(number) if number % 2 else GET + b"\r\n")
            await asyncio.sleep(1.2)
            probe = open_ones.enter_context(connected(server))
            probe.sendall(HEALTH)
        assert b"200 OK" in probe.recv(65_536)
        for connection in waiting:
            text = connection.recv(65_536)
            assert text.startswith(b"HTTP/1.1 503 "), text
            assert b"retry-after: 1\r\n" in text.lower()
            (error,) = orjson.loads(text.partition(b"\r\n\r\n")[2])["errors"]
            assert error["extensions"] == {"code": "OVERLOADED"}
            assert "waited" in error["message"]
            connection.sendall(GET + b"\r\n")  # the connection goes on, and this request did not wait
            assert answer(connection) == (200, ANSWER)
    assert asked(server, TREES) == (200, {"data": {"locations": {"nodes": []}}})
    rejected = [line for line in requests(server) if line["status"] == 503]
    assert [line["codes"] for line in rejected] == [["OVERLOADED"]] * 20
    assert all(line["ms"] > 1_000 for line in rejected), "the time in which the server did not read counts, too"


@needs_linux
async def test_probes_are_answered_before_requests_that_wait_for_their_turn(start):
    server = await start(writes="on", request_seconds="60")
    with contextlib.ExitStack() as open_ones:
        with busy(server):
            waiting = [open_ones.enter_context(connected(server)) for _ in range(12)]
            for number, connection in enumerate(waiting):
                connection.sendall(creation(number))
            await asyncio.sleep(0.1)
            probe = open_ones.enter_context(connected(server))
            probe.sendall(HEALTH)
        assert b"200 OK" in probe.recv(65_536)
        assert not select.select([waiting[-1]], [], [], 0)[0], "the last one has its answer already"
        for connection in waiting:
            assert answer(connection)[0] == 200


def requests(server):
    return [line for line in lines(server) if line["message"] == "request"]


async def until_lines(server, count):
    """Wait until the log has the lines of so many requests."""
    async with asyncio.timeout(PATIENCE):
        while len(requests(server)) < count:  # noqa: ASYNC110  # lines of another process
            await asyncio.sleep(0.05)
