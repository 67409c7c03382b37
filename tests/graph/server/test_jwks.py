"""JWKS: files without keys, and issuers that are slow or send too much."""

import asyncio
from functools import partial

import httpx
import orjson
import pytest

from graph.auth.authentication import Authenticator
from graph.auth.tokens import (
    MAX_AGE_SECONDS,
    MAX_BYTES,
    MAX_WAITING,
    PublishedKeys,
    Tokens,
    download,
    read_file,
    tokens_of,
)
from graph.server.sending import ConcurrencyLimiter
from graph.settings import Settings
from resolvers.access.callers import ApiKeyAuthenticator
from store.connect import open_store
from store.errors import BadInput, Unavailable
from tests.abuse.test_tokens import AUDIENCE, ISSUER, JWKS, Clock, signed
from tests.graph.small_app import SmallStore, small_app
from tests.loopback_server import LoopbackServer
from tests.serving import serving
from tests.waiting import until

SECONDS = 60.0  # at most, on a busy machine
NONE = ["", "[]", "null", '"no"', "{}", '{"keys": {}}', '{"keys": []}', "{", '{"keys": [' + " " * MAX_BYTES]


async def test_a_file_without_keys_is_an_error_at_start_and_accepts_no_token(tmp_path):
    file = tmp_path / "jwks.json"
    for text in NONE:
        file.write_text(text)
        with pytest.raises(BadInput, match="not a readable JWKS"):
            tokens_of(Settings(jwt_keys=str(file), jwt_issuer=ISSUER, jwt_audience=AUDIENCE))
        with pytest.raises(Unavailable):
            await PublishedKeys(partial(asyncio.to_thread, read_file, file)).find("any", "RS256")


# -- an issuer that hangs, drips or floods -----------------------------------------------------------------------------


class Issuer(LoopbackServer):
    """An issuer at an address, which sends a good JWKS until it is told to do something else."""

    def __init__(self) -> None:
        super().__init__()
        self.manner = "good"
        self.asked = self.sent_bytes = self.gone = 0
        self._writers: list[asyncio.StreamWriter] = []

    def hang_up(self):
        """Close all connections, and new ones at once."""
        self.manner = "is away"
        for writer in self._writers:
            writer.close()

    async def serve(self, reader, writer):
        self.asked += 1
        self._writers.append(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            if self.manner == "good":
                await self._send(writer, b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + orjson.dumps(JWKS))
            elif self.manner == "floods":
                await self._send(writer, b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b'{"keys": [')
                while not writer.is_closing() and self.sent_bytes < 50_000_000:
                    await self._send(writer, b" " * 65_536)
            elif self.manner == "drips":
                await self._send(writer, b"HTTP/1.1 200 OK\r\nx: ")
                while not writer.is_closing():
                    await self._send(writer, b"y")
                    await asyncio.sleep(0.02)
            elif self.manner == "hangs":
                await reader.read()
        finally:
            self.gone += 1

    async def _send(self, writer, data):
        writer.write(data)
        await writer.drain()
        self.sent_bytes += len(data)


@pytest.fixture
async def issuer():
    async with Issuer() as issuer:
        yield issuer


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """An issuer on a busy machine has time to answer, and a proxy of this machine is not asked for it."""
    monkeypatch.setattr("graph.auth.tokens.FETCH_SECONDS", SECONDS)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def at_once(work):
    """The result of a coroutine that waits for nothing."""
    with pytest.raises(StopIteration) as returned:
        work.send(None)
    return returned.value.value


@pytest.mark.parametrize("manner", ["hangs", "drips", "floods"])
async def test_a_bad_issuer_times_out_and_delays_no_token_with_a_known_key(issuer, monkeypatch, manner):
    clock = Clock()
    keys = PublishedKeys(partial(download, issuer.url), clock=clock)
    assert await keys.find("r", "RS256") is not None
    monkeypatch.setattr("graph.auth.tokens.FETCH_SECONDS", 0.5)
    issuer.manner, issuer.sent_bytes = manner, 0
    clock.now += MAX_AGE_SECONDS + 1
    waiting = [asyncio.create_task(keys.find(f"made up {n}", "RS256")) for n in range(20)]
    await asyncio.sleep(0)
    assert all(at_once(keys.find("r", "RS256")) for _ in range(20))
    assert await asyncio.wait_for(asyncio.gather(*waiting), SECONDS) == [None] * 20
    await until(lambda: issuer.gone >= 2)  # the connection ends with the attempt
    assert issuer.asked == 2
    assert issuer.sent_bytes < 10_000_000
    assert not [one for one in asyncio.all_tasks() if "PublishedKeys" in repr(one)]


async def test_the_number_of_tokens_that_wait_for_keys_is_bounded(issuer):
    issuer.manner = "hangs"
    keys = PublishedKeys(partial(download, issuer.url))
    waiting = [asyncio.create_task(keys.find(f"made up {n}", "RS256")) for n in range(MAX_WAITING + 20)]
    await asyncio.sleep(0)  # each of them has begun, and those who may not wait have ended
    assert [one.done() for one in waiting] == [False] * MAX_WAITING + [True] * 20
    assert {type(one.exception()) for one in waiting if one.done()} == {Unavailable}
    for one in waiting:
        one.cancel()


async def test_keys_are_read_in_the_background_from_the_start(issuer):
    keys = PublishedKeys(partial(download, issuer.url))
    watch = asyncio.create_task(keys.watch())
    await until(lambda: issuer.asked)
    assert await asyncio.wait_for(keys.find("r", "RS256"), SECONDS) is not None
    assert issuer.asked == 1
    watch.cancel()


async def test_a_token_that_waits_for_an_issuer_does_not_count_for_the_limiter(issuer):
    issuer.manner = "hangs"
    named = Settings(jwt_issuer=ISSUER, jwt_audience=AUDIENCE)
    tokens = Tokens(PublishedKeys(partial(download, issuer.url)), named)
    async with open_store("sqlite://:memory:") as store:
        app = small_app(
            SmallStore(), limiter=ConcurrencyLimiter(2), authenticator=Authenticator(ApiKeyAuthenticator(store), tokens)
        )
        with serving(app) as url:
            async with httpx.AsyncClient(base_url=url, timeout=2 * SECONDS) as client:
                unproven = {"authorization": f"Bearer {signed(kid='made up')}"}
                body = {"query": "{ hello }"}
                waiting = [asyncio.create_task(client.post("/graphql", json=body, headers=unproven)) for _ in range(6)]
                await until(lambda: issuer.asked)
                answer = await client.post("/graphql", json=body)
                assert answer.json() == {"data": {"hello": "Hello world!"}}
                assert not any(one.done() for one in waiting)
                issuer.hang_up()
                assert {one.status_code for one in await asyncio.gather(*waiting)} == {503}
