"""Slow readers: clients that hardly read large responses take bounded memory, and others are answered."""

import asyncio
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from graph.hierarchies.categories import CategoryNode
from graph.server.graphql_over_http import MAX_BYTES, PIECE_BYTES, ResponseSender
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.servers import Server

NODES, NAME = 640, "n" * 16_000
READERS = 40
QUERY = '{ category(path: "all") { children { nodes { name } } } }'
LARGE = NODES * len(NAME)  # bytes of an answer, at least


@pytest.fixture
async def server(tmp_path):
    """A server with an answer of some megabytes."""
    address = f"sqlite:///{tmp_path / 'clade.db'}"
    wanted, outcome = ImportPlan(CategoryNode.definition()), LoadResult()
    top = Part("CATEGORY", "all", None, {})
    for number in range(NODES):
        wanted.take(Row(number + 1, ["all", str(number)], [top, Part("CATEGORY", NAME, None, {})]))
    async with open_store(address) as store:
        await store.create()
        await load(store, wanted, outcome)
    server = Server(tmp_path, "server", store=address, cache_mb="0", log_level="warning")
    await server.start()
    yield server
    await server.close()


def slow_reader(url: str) -> socket.socket:
    """A connection whose answer has begun to come, and of which no more than some bytes are read."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(60)
    address = urlsplit(url)
    reader.connect((address.hostname, address.port))
    body = orjson.dumps({"query": QUERY})
    head = f"POST /graphql HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
    reader.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body)
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


def rest(reader: socket.socket) -> int:
    """How many bytes a reader still gets, at most as many as a whole answer has."""
    size = 0
    while size < LARGE and (some := reader.recv(1_000_000)):
        size += len(some)
    return size


def peak_bytes(pid: int) -> int:
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="Memory is read from /proc.")
async def test_many_slow_readers_take_bounded_memory_and_others_are_answered(server):
    assert len((await server.ask(QUERY))["data"]["category"]["children"]["nodes"]) == NODES
    before = peak_bytes(server.pid)
    with ExitStack() as readers:
        slow = [readers.enter_context(slow_reader(server.url)) for _ in range(READERS)]
        assert READERS * LARGE > 2 * MAX_BYTES
        assert len((await server.ask(QUERY))["data"]["category"]["children"]["nodes"]) == NODES
        assert (await server.ask('{ category(path: "all/7") { name } }'))["data"]["category"] == {"name": NAME}
        assert peak_bytes(server.pid) - before < 1.5 * MAX_BYTES
        assert rest(slow[0]) < LARGE
        assert rest(slow[-1]) >= LARGE


async def test_only_the_longest_waiting_client_is_disconnected():
    """Three bodies of which two may wait: the first stays where it is, and the others come to their ends."""
    sending, taken = ResponseSender(9 * PIECE_BYTES), [asyncio.Event() for _ in range(3)]
    sent: list[list[bool]] = [[], [], []]

    def client(number: int):
        async def send(message):
            sent[number].append(message["more_body"])
            await taken[number].wait()

        return send

    contents = [bytes(3 * PIECE_BYTES) for _ in range(3)]
    held = [sys.getrefcount(content) for content in contents]
    bodies = [asyncio.ensure_future(sending.send(client(n), content)) for n, content in enumerate(contents)]
    await bodies[0]
    assert sent == [[True], [True], [True]]
    for event in taken:
        event.set()
    await asyncio.gather(*bodies)
    assert sent == [[True], [True, True, False], [True, True, False]]
    assert [sys.getrefcount(content) for content in contents] == held, "what was sent is not held"


async def test_a_client_that_reads_occasionally_is_not_disconnected_first():
    sending, sent = ResponseSender(9 * PIECE_BYTES), [0, 0, 0]
    takes = [asyncio.Semaphore(0) for _ in sent]

    def begin(number: int) -> asyncio.Future[None]:
        async def send(message):
            sent[number] += not message["more_body"]
            await takes[number].acquire()

        return asyncio.ensure_future(sending.send(send, bytes(3 * PIECE_BYTES)))

    bodies = [begin(0), begin(1)]
    await asyncio.sleep(0)
    takes[0].release()
    await asyncio.sleep(0.01)
    bodies.append(begin(2))
    await asyncio.wait_for(bodies[1], 10)
    for _ in range(3):
        takes[0].release()
        takes[2].release()
    await asyncio.gather(*bodies)
    assert sent == [1, 0, 1]


async def test_one_response_to_many_clients_takes_its_memory_once():
    sending, may_go = ResponseSender(9 * PIECE_BYTES), asyncio.Event()
    sent: list[bool] = []

    async def send(message):
        sent.append(message["more_body"])
        await may_go.wait()

    content = bytes(3 * PIECE_BYTES)
    bodies = [asyncio.ensure_future(sending.send(send, content)) for _ in range(6)]
    await asyncio.sleep(0)
    may_go.set()
    await asyncio.gather(*bodies)
    assert sent.count(False) == 6
