"""The same bytes sent to Clade's server and to an application that is mounted behind a stock uvicorn: what reaches the
application gets the same response but for `Server` and `Date`, whether the protocol runs it in place or a task does.
"""

import asyncio
import random
import re
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager
from gzip import compress
from itertools import chain

import orjson
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from commands.protocol import HTTPProtocol
from graph.app import create_app
from graph.hierarchies.locations import Location
from graph.settings import Settings
from store.api_keys import add_key, new_key
from store.connect import open_store
from tests.serving import serving
from tests.systems.asking import plant

PATIENCE = 30
CLADES = {"http": HTTPProtocol, "ws": "none", "server_header": False}  # options of uvicorn in `clade serve`
NODES = [("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("FR", "COUNTRY")]
SHOP = "https://shop.example"
READ = b'{"query": "{ location(path: \\"US/NE\\") { path childCount children { nodes { name } } } }"}'
FIELDS = " ".join(f"n{i}: name p{i}: path" for i in range(120))
LONG = orjson.dumps({"query": f"{{ countries {{ nodes {{ {FIELDS} }} }} }}"})
BODIES = {
    "read": READ, "long": LONG, "empty": b"", "no JSON": b"{", "a list": b"[]", "no query": b"{}",
    "not UTF-8": b'"\xff"',
    "no such field": b'{"query": "{ nothing }"}', "no document": b'{"documentId": "sha256:00"}',
    "subscription": b'{"query": "subscription { changes { path } }"}', "large": b" " * 40_001,
    "introspection": b'{"query": "{ hierarchies { name } __typename }"}',
    "missing": b'{"query": "{ city(path: \\"US\\") { path } }"}',
    "mutation": b'{"query": "mutation { deleteLocation(input: {node: {path: \\"XX\\"}}) { userErrors { code } } }"}',
    "variables": b'{"query": "query($p: Path!) { location(path: $p) { name } }", "variables": {"p": "US"}}',
    "named": b'{"query": "query A { __typename } query B { __schema { queryType { name } } }", "operationName": "B"}',
}  # fmt: skip
CODINGS = {"": bytes, "gzip": compress, "deflate": zlib.compress, "br": bytes, "gzip, gzip": bytes, "identity": bytes}
ONES = {
    "line": [
        "POST /graphql", "GET /graphql", "HEAD /graphql", "PUT /graphql", "OPTIONS /graphql", "POST /nothing",
        "GET /graphql?query=%7B__typename%7D", "GET /graphql?query=%7Bcountries%7Bnodes%7Bname%7D%7D%7D",
        "HEAD /graphql?query=%7B__typename%7D", "GET /graphql?query=%FF", "GET /graphql?variables=%7B&query=a",
        "GET /graphql/", "GET /healthz", "GET /readyz", "GET /", "POST /%67raphql", "POST http://localhost/graphql",
        "POST /graphql?query=ignored",
    ],
    "version": ["HTTP/1.1", "HTTP/1.0"],
    "host": ["localhost", "127.0.0.1:8000", "shop.example", "a b", None],
    "content-type": [
        "application/json", "application/json; charset=utf-8", "application/json; charset=latin-1", "text/plain", None,
    ],
    "accept": [
        None, "*/*", "application/json", "application/graphql-response+json", "text/html", "image/png",
        "text/event-stream", "application/json;q=0.1, application/graphql-response+json", "application/*;q=0",
    ],
    "accept-encoding": [None, "gzip", "gzip;q=0", "br, *;q=0.5", "identity, gzip;q=0.5"],
    "origin": [None, SHOP, "https://other.example", "null"],
    "access-control-request-method": [None, "POST"],
    "authorization": [None, "", "Basic abc", "Bearer abc", "Bearer KEY"],
    "if-none-match": [None, "*", 'W/"0"'],
    "clade-reads": [None, "1", "3"],
    "clade-cache-tags": [None, "1"],
    "x-forwarded-for": [None, "203.0.113.9"],
    "x-forwarded-proto": [None, "https"],
    "x-request-id": ["one", "", "a b", "x" * 129],
    "connection": [None, "close", "keep-alive", "upgrade"],
    "upgrade": [None, "h2c"],
    "expect": [None, "100-continue"],
}  # fmt: skip
"""What a request may have, the usual first."""

TWICE = ("host", "content-type", "authorization", "origin", "accept", "content-encoding")


def requests(key: str) -> Iterator[bytes]:
    """Raw requests: each one thing apart from the usual, and many at once; each twice, since responses are cached."""
    rng = random.Random(68)  # noqa: S311
    usual = {name: values[0] for name, values in ONES.items()} | {"body": "read", "coding": ""}
    all_of = {**ONES, "body": list(BODIES), "coding": list(CODINGS)}
    apart = [usual | {name: value} for name, values in all_of.items() for value in values]
    mixed = [
        usual | {name: rng.choice(all_of[name]) for name in rng.sample(list(all_of), rng.randint(2, 6))}
        for _ in range(150)
    ]
    for number, one in enumerate(chain(apart, mixed)):
        doubled = rng.choice(TWICE) if number % 17 == 16 else None
        for _ in range(2):
            yield raw(one, key, doubled)


def raw(one: dict, key: str, doubled: str | None) -> bytes:
    line, version = one["line"], one["version"]
    body = CODINGS[one["coding"]](BODIES[one["body"]]) if line.startswith(("POST", "PUT")) else b""
    headers = {name: value for name, value in one.items() if name in list(ONES)[2:] and value is not None}
    headers |= {"content-encoding": one["coding"]} if one["coding"] else {}
    headers |= {"content-length": str(len(body))} if body else {}
    if one["connection"] is None and version == "HTTP/1.1":
        headers["connection"] = "close"
    listed = [*headers.items(), *([(doubled, headers.get(doubled, "gzip"))] if doubled else [])]
    head = "".join(f"{name}: {value.replace('KEY', key)}\r\n" for name, value in listed)
    return f"{line} {version}\r\n{head}\r\n".encode() + body


def told(url: str, sent: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Status line, headers and body of the response, all that comes until the connection ends or nothing follows."""
    host, port = url.removeprefix("http://").split(":")
    text = b""
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        while not is_whole(text, sent) and (part := connection.recv(65_536)):
            text += part
    head, _, body = text.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    kept = [re.sub(rb"(x-request-id: )[0-9a-f]{32}$", rb"\1", one) for one in headers]
    return status, sorted(one for one in kept if not one.startswith((b"date:", b"server:"))), body


def is_whole(text: bytes, sent: bytes) -> bool:
    head, end, body = text.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    if not end or b"connection: close" in head.lower():
        return False
    return sent.startswith(b"HEAD") or b" 304 " in head or (length is not None and len(body) >= int(length[1]))


def mounted(app) -> Starlette:
    @asynccontextmanager
    async def lifespan(_):
        async with app.lifespan(app):
            yield

    return Starlette(routes=[Mount("/", app)], lifespan=lifespan)


@pytest.mark.parametrize(
    "settings",
    [
        {"cors_origins": SHOP, "max_age_seconds": 60},
        {"reads": "granted", "writes": "granted", "production": True, "max_body_bytes": 40_000},
        {"writes": "off", "cache_mb": 0, "cors_origins": "*"},
    ],
    ids=["open", "granted", "without caches"],
)
def test_both_servers_give_the_same_responses(tmp_path, settings):
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    key, text = new_key("shop", ["read:location/US"], None)

    async def fill():
        async with open_store(url) as store:
            await store.create()
            await plant(store, Location, [(tuple(path.split("/")), level) for path, level in NODES])
            await add_key(store, key)

    asyncio.run(fill())
    given = Settings(store=url, **settings)
    with ExitStack() as stack:
        ours = stack.enter_context(serving(create_app(given).asgi, **CLADES))
        stock = stack.enter_context(serving(mounted(create_app(given))))
        statuses = set()
        for sent in requests(text):
            found = told(ours, sent)
            assert found == told(stock, sent), sent[:2_000]
            statuses.add(found[0][:12])
    assert len(statuses) >= 5
