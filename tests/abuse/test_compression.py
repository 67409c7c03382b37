"""Compressed requests and responses over raw connections, as routers and gateways send them."""

import asyncio
import contextlib
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from commands.protocol import HTTPProtocol
from graph.app import create_app
from graph.server.compression import MAX_THREADS, MIN_BYTES, THREAD_BYTES, Compressor
from graph.server.handler import MAX_IGNORED_BYTES
from graph.settings import Settings
from tests.connection import Connection
from tests.serving import serving

LIMIT = 40_000
BODY = orjson.dumps({"query": "{ __typename }"})
DATA = {"data": {"__typename": "Query"}}
NODES = "categories { nodes { name descendants { nodes { id key name path childCount } } } }"
LARGE = f"{{ {' '.join(f'x{number}: {NODES}' for number in range(10))} }}"


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


@pytest.fixture(scope="module")
def url(demo_store) -> Iterator[str]:
    """The URL of a server with the demo data."""
    given = Settings(store=demo_store, max_body_bytes=LIMIT)
    with serving(create_app(given).asgi, http=HTTPProtocol, ws="none") as found:
        yield found


def request(body: bytes, *headers: str, chunks: int = 0) -> bytes:
    """A POST with these headers, in chunks of this size if one is given."""
    head = ["POST /graphql HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", *headers]
    if not chunks:
        return "\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body
    pieces = [body[at : at + chunks] for at in range(0, len(body), chunks)]
    parts = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""]]
    return "\r\n".join([*head, "transfer-encoding: chunked", "", ""]).encode() + b"".join(parts)


PACKED = gzip.compress(BODY)
# Apollo's router: hyper streams what it compresses; its deflate has no header of zlib.
ROUTER = ("accept: application/json, application/graphql-response+json", "accept-encoding: gzip, br, deflate")
HIVE = ("Accept: application/graphql-response+json, application/json, multipart/mixed", "Connection: keep-alive")
SENT = {
    "router, gzip": request(gzip.compress(BODY, 1), *ROUTER, "content-encoding: gzip", chunks=10),
    "router, deflate": request(raw_deflate(BODY), *ROUTER, "content-encoding: deflate", chunks=1),
    "router, identity": request(BODY, *ROUTER, "content-encoding: identity", chunks=8_192),
    "router, none": request(BODY, *ROUTER),
    "hive, gzip": request(
        gzip.compress(BODY), *HIVE, "Accept-Encoding: gzip, deflate", "Content-Encoding: gzip", chunks=9
    ),
    "hive, none": request(BODY, *HIVE, "accept-encoding: gzip, deflate, br"),
    "go": request(BODY, "Accept-Encoding: gzip", "User-Agent: Go-http-client/1.1"),
    "deflate in zlib's format": request(zlib.compress(BODY), "Content-Encoding: DEFLATE", chunks=1),
    "an old word": request(gzip.compress(BODY), "Content-Encoding:  X-GZip "),
    "empty": request(BODY, "content-encoding:"),
    "identity beside": request(PACKED, "content-encoding: identity, GZIP ,, identity", chunks=6),
    "two headers": request(zlib.compress(BODY), "content-encoding: deflate", "content-encoding: identity"),
    "at the limit": request(gzip.compress(BODY.ljust(LIMIT)), "content-encoding: gzip"),
    "at the limit, bytewise": request(gzip.compress(BODY.ljust(LIMIT), 9), "content-encoding: gzip", chunks=1),
    "stored": request(gzip.compress(BODY.ljust(LIMIT), 0), "content-encoding: gzip", chunks=7_000),
    "h2c": request(BODY, "connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAoAAA"),
    "h2c, gzip": request(
        gzip.compress(BODY), "content-encoding: gzip", "connection: upgrade", "upgrade: h2c", chunks=5
    ),
    "websocket": request(BODY, "connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13"),
    "two upgrades": request(BODY, "connection: upgrade", "upgrade: h2c", "Upgrade: websocket, x", chunks=3),
}
BOMB = gzip.compress(bytes(5_000_000))
WRONG = {
    "br": (415, "gzip or deflate", request(BODY, *ROUTER, "content-encoding: br", chunks=8_192)),
    "zstd": (415, "gzip or deflate", request(BODY, "content-encoding: zstd")),
    "a list": (415, "gzip or deflate", request(PACKED, "content-encoding: gzip, gzip")),
    "two headers": (415, "gzip or deflate", request(PACKED, "content-encoding: gzip", "content-encoding: gzip")),
    "no coding": (415, "gzip or deflate", request(BODY, "content-encoding: utf-8")),
    "plain": (400, "The body is not gzip", request(BODY, "content-encoding: gzip")),
    "another": (400, "The body is not deflate", request(PACKED, "content-encoding: deflate")),
    "a checksum": (400, "The body is not gzip", request(PACKED[:-8] + bytes(8), "content-encoding: gzip")),
    "truncated": (400, "ends within its gzip", request(PACKED[:-1], "content-encoding: gzip")),
    "no bytes": (400, "ends within its deflate", request(b"", "content-encoding: deflate")),
    "trailing": (400, "goes on after the end of its gzip", request(PACKED + b"\0", "content-encoding: gzip")),
    "two members": (400, "goes on after the end", request(PACKED * 2, "content-encoding: gzip", chunks=len(PACKED))),
    "one byte more": (413, f"{LIMIT} bytes", request(gzip.compress(BODY.ljust(LIMIT + 1)), "content-encoding: gzip")),
    "a bomb": (413, f"{LIMIT} bytes", request(BOMB, "content-encoding: gzip", chunks=4_096)),
    "endless": (413, f"{LIMIT} bytes", request(b"\0\0\0\xff\xff" * 40_000, "content-encoding: deflate")),
}  # fmt: skip


async def test_bodies_are_read_on_one_connection_also_after_rejected_ones(url):
    async with await Connection.to(url) as connection:
        for (case, (status, message, wrong)), (name, sent) in zip(WRONG.items(), SENT.items(), strict=False):
            connection.writer.write(wrong)
            answer = await connection.answer()
            assert (case, answer.status, answer.is_last) == (case, status, False)
            (error,) = answer.json["errors"]
            assert message in error["message"], case
            assert answer.headers.get("accept-encoding") == ("gzip, deflate" if status == 415 else None), case
            connection.writer.write(sent)
            answer = await connection.answer()
            assert (name, answer.status, answer.json) == (name, 200, DATA)


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
async def test_pipelined_bodies_are_read_however_their_bytes_are_cut(url, size):
    sent = b"".join(one for one in SENT.values() if len(one) < 2_000 or size > 100)
    async with await Connection.to(url) as connection:
        connection.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(sent), size):
            connection.writer.write(sent[at : at + size])
            await asyncio.sleep(0)
        for _ in range(sent.count(b"POST /graphql")):
            answer = await connection.answer()
            assert (answer.status, answer.json) == (200, DATA)


async def test_a_request_to_upgrade_may_be_the_last_of_its_connection(url):
    last = request(BODY, "connection: close, upgrade", "upgrade: h2c")
    for sent in (last, last.replace(b"HTTP/1.1", b"HTTP/1.0"), SENT["h2c"] + last + b"\r\n" + last):
        async with await Connection.to(url) as connection:
            connection.writer.write(sent)
            assert (await connection.reader.read()).count(b'{"data":{"__typename":"Query"}}') == 1 + sent.startswith(
                SENT["h2c"]
            )


async def test_a_bomb_is_rejected_before_its_end_and_never_in_memory(url):
    def peak() -> int:
        """The largest memory of this process since it was forgotten, in KB."""
        (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
        return int(line.split()[1])

    bombs = {"gzip": gzip.compress(bytes(30_000_000)), "deflate": raw_deflate(bytes(30_000_000))}
    await asyncio.to_thread(Path("/proc/self/clear_refs").write_text, "5")
    before = peak()
    for coding, bomb in bombs.items():
        head = request(b"", f"content-encoding: {coding}").replace(b"length: 0", b"length: 9999999")
        async with await Connection.to(url) as connection:
            connection.writer.write(head + bomb[:-1_000])
            assert (await connection.answer()).status == 413
            connection.writer.write(bomb[-1_000:])
            connection.writer.write(bytes(2 * MAX_IGNORED_BYTES))
            with contextlib.suppress(ConnectionError):
                assert await connection.reader.read() == b""
    assert peak() - before < 20_000


# -- responses ---------------------------------------------------------------------------------------------------------

ACCEPTED = [
    *("gzip", "GZIP", "x-gzip", "gzip, br, deflate", "gzip, deflate, br, zstd", "*", "gzip;q=0.001", "br, *;q=0.1"),
    *("gzip;q=1.0, identity;q=0.5", "identity, gzip", "*;q=0, gzip", "gzip;q=0.2,*;q=0", ",, gzip ; q=0.5 ,"),
]
REFUSED = [
    *("", "identity", "br", "deflate", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "gzip;q=x", "gzip;q=nan", "gzipped"),
    *("not-gzip", "gzip;q=0.5, identity", "identity, gzip;q=0.9", "gzip;q=0.5, *", "br;q=1, identity;q=0"),
    "," * 9_999 + "gzip",
]
VARY = "accept, authorization, accept-encoding"


@pytest.fixture
async def client(url) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url) as client:
        yield client


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_large_response_is_in_gzip_for_who_accepts_it(client, method):
    sent = {"json": {"query": LARGE}} if method == "POST" else {"params": {"query": LARGE}}
    plain = await client.request(method, "/graphql", **sent, headers={"accept-encoding": "identity"})
    assert len(plain.content) > 2 * THREAD_BYTES
    for accepted in ACCEPTED + REFUSED:
        answer = await client.request(method, "/graphql", **sent, headers={"accept-encoding": accepted})
        coding, length = answer.headers.get("content-encoding"), int(answer.headers["content-length"])
        assert (accepted, coding) == (accepted, "gzip" if accepted in ACCEPTED else None)
        assert answer.content == plain.content
        assert length < len(plain.content) / 4 if coding else length == len(plain.content)
        assert answer.headers["vary"] == VARY


async def test_small_responses_errors_and_events_are_sent_as_they_are(client):
    for query, is_large in (("{ categories { nodes { name } } }", False), (LARGE, True)):
        answer = await client.post("/graphql", json={"query": query}, headers={"accept-encoding": "gzip"})
        found = len(answer.content) >= MIN_BYTES, "content-encoding" in answer.headers
        assert ("errors" in answer.json(), *found) == (False, is_large, is_large)
    sent = {"accept": "text/event-stream", "accept-encoding": "gzip"}
    events = await client.post("/graphql", json={"query": LARGE}, headers=sent)
    assert len(events.content) > MIN_BYTES
    assert ("content-encoding" in events.headers, events.headers["vary"]) == (False, VARY)
    wrong = await client.post("/graphql", content=b"{", headers={"content-type": "application/json"})
    assert (wrong.status_code, wrong.headers["vary"]) == (400, VARY)


async def test_each_form_has_a_weak_tag_of_its_own_and_the_headers_of_a_head(client):
    names = ("etag", "vary", "cache-control", "content-encoding", "content-length", "content-type")
    forms = [
        {"accept-encoding": coding, "accept": f"application/{kind}json"}
        for coding in ("identity", "gzip") for kind in ("", "graphql-response+")
    ]  # fmt: skip
    tags = []
    for form in forms:
        for _ in range(3):  # the later ones are cached
            sent = {"params": {"query": LARGE}, "headers": form}
            whole, head = await client.get("/graphql", **sent), await client.head("/graphql", **sent)
            assert [whole.headers.get(name) for name in names] == [head.headers.get(name) for name in names]
            assert (head.status_code, head.content, whole.headers["vary"]) == (200, b"", VARY)
        tags.append(whole.headers["etag"])
        assert whole.headers["content-type"].startswith(form["accept"])
    assert len(set(tags)) == len(forms)
    for form, tag in zip(forms, tags, strict=True):
        strong, others = tag.removeprefix("W/"), ", ".join({*tags} - {tag})
        for known in (tag, strong, f'"x", {tag}', f'{strong},W/"y"', f"{others} , {tag}", "*"):
            again = await client.get("/graphql", params={"query": LARGE}, headers={**form, "if-none-match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), known
            assert (again.headers["vary"], "content-encoding" in again.headers) == (VARY, False)
        for known in (strong.strip('"'), others, '"a,*,b"', f'"x{strong}'):
            again = await client.get("/graphql", params={"query": LARGE}, headers={**form, "if-none-match": known})
            assert (again.status_code, again.headers["etag"]) == (200, tag), known


async def test_the_compressed_form_of_a_cached_response_is_kept_and_few_threads_compress():
    compressor, content = Compressor(1_000_000), orjson.dumps(list(range(THREAD_BYTES)))
    small = content[: THREAD_BYTES // 2]
    kept = await compressor.compressed(small, 'W/"a"')
    assert await compressor.compressed(small, 'W/"a"') is kept
    assert await compressor.compressed(small, 'W/"b"') is not kept
    assert await compressor.compressed(small, "") is not kept
    forms = await asyncio.gather(*(compressor.compressed(content, "") for _ in range(MAX_THREADS + 3)))
    assert [form is None for form in forms] == [False] * MAX_THREADS + [True] * 3
    assert {gzip.decompress(form) for form in forms if form} == {content}
    assert await compressor.compressed(content, "") is not None
