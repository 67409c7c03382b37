"""The little of HTTP/1.1 that a hot read needs: a POST over a connection that stays open, and its answer.

An HTTP client for everything (redirects, cookies, proxies, decompression) takes some 0.3 ms for what takes 0.07 here.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import cached_property
from typing import cast
from urllib.parse import SplitResult

import httptools
from msgspec import Struct

KEEP_SECONDS = 12.0  # as long as aiobotocore keeps an idle connection, so that the other side seldom closes it first


class Reply(Struct):
    """An answer as it came, the names of its headers in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes


class Pool:
    """Connections to one host at a time, at most `limit`, for as long as it is not closed.

    One is opened within `connect_seconds`, and answers wholly within `answer_seconds`. `make_tls` is called where a
    connection is to be secure.
    """

    def __init__(
        self, limit: int, connect_seconds: float, answer_seconds: float, make_tls: Callable[[], ssl.SSLContext]
    ) -> None:
        self._places = asyncio.Semaphore(limit)
        self._connect_seconds = connect_seconds
        self._answer_seconds = answer_seconds
        self._make_tls = make_tls
        self._idle: list[Connection] = []
        self._closed = False

    async def post(self, url: SplitResult, sent: bytes) -> Reply:
        """The answer to a whole request; raises OSError, TimeoutError or httptools.HttpParserError where none comes."""
        async with self._places:
            line = self._take(url.netloc) or await self._open(url)
            try:
                reply = await line.ask(sent, self._answer_seconds)
            except BaseException:
                line.close()  # what was asked may still be answered
                raise
            if line.is_open and not self._closed:
                self._idle.append(line)
            else:
                line.close()
            return reply

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _take(self, host: str) -> "Connection | None":
        """The line that was used last, which is the least likely to have been given up."""
        while self._idle:
            line = self._idle.pop()
            if line.is_open and line.host == host and asyncio.get_running_loop().time() < line.used + KEEP_SECONDS:
                return line
            line.close()
        return None

    async def _open(self, url: SplitResult) -> "Connection":
        secure = url.scheme == "https"
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._connect_seconds):
            _, line = await loop.create_connection(
                lambda: Connection(url.netloc, loop),
                url.hostname or "",
                url.port or (443 if secure else 80),
                ssl=self._tls if secure else None,
            )
        return line

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._make_tls()


class Connection(asyncio.Protocol):
    """One connection, over which one thing is asked at a time."""

    def __init__(self, host: str, loop: asyncio.AbstractEventLoop) -> None:
        self.host = host
        self.is_open = False
        self.used = 0.0
        self._loop = loop
        self._answer: asyncio.Future[Reply] | None = None  # while one is waited for

    async def ask(self, sent: bytes, seconds: float) -> Reply:
        if not self.is_open:
            raise ConnectionResetError("closed by the other side")
        self._parser = httptools.HttpResponseParser(self)
        answer: asyncio.Future[Reply] = self._loop.create_future()
        self._answer = answer
        deadline = self._loop.call_later(seconds, self._fail, TimeoutError("no whole answer in time"))
        try:
            self._transport.write(sent)
            return await answer
        finally:
            deadline.cancel()
            self._answer = None
            self.used = self._loop.time()

    def close(self) -> None:
        self.is_open = False
        self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # -- what the transport calls --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nothing was asked
            return self.close()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionError("the other side would speak another protocol"))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError("closed by the other side"))

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        if self._is_answered:
            self.is_open = False  # what was not asked for would be taken for the next answer

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._is_answered or status < 200:  # those below tell that the answer is still to come
            return
        self.is_open = self._parser.should_keep_alive()
        cast("asyncio.Future[Reply]", self._answer).set_result(Reply(status, self._headers, b"".join(self._parts)))

    @property
    def _is_answered(self) -> bool:
        return self._answer is None or self._answer.done()
