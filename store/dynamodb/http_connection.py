"""HTTP/1.1 connections: a pool for POST requests over connections that stay open.

A general HTTP client (redirects, cookies, proxies, decompression) takes some 0.3 ms for a request, this one 0.07.
"""

import asyncio
import ssl
from typing import cast
from urllib.parse import SplitResult

import httptools
from msgspec import Struct

KEEP_SECONDS = 12.0  # as long as aiobotocore keeps an idle connection, so that the other side seldom closes it first
MAX_BYTES = 64 * 1024 * 1024  # of a response; DynamoDB's have at most 16 MB of items


class NotConnected(OSError):
    """A connection that could not be opened, for the error that is its cause: nothing was sent."""


class Reply(Struct):
    """A response, with the names of its headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Pool:
    """At most `limit` connections at a time to the host of a URL.

    `connect_seconds` and `answer_seconds` are the timeouts for a connection and for a whole response. `tls` is the TLS
    context for https.
    """

    def __init__(
        self, url: SplitResult, limit: int, connect_seconds: float, answer_seconds: float, tls: ssl.SSLContext | None
    ) -> None:
        self._url = url
        self._limit = asyncio.Semaphore(limit)
        self._connect_seconds = connect_seconds
        self._answer_seconds = answer_seconds
        self._tls = tls
        self._idle: list[Connection] = []
        self._closed = False

    async def post(self, request: bytes) -> Reply:
        """The response to a serialized request.

        Raises NotConnected, another OSError (TimeoutError too) or httptools.HttpParserError.
        """
        async with self._limit:
            connection = self._take() or await self._open()
            try:
                reply = await connection.send(request, self._answer_seconds)
            except BaseException:
                connection.close()  # the response may still come
                raise
            if connection.is_open and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()
            return reply

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> "Connection | None":
        """The connection that was used last, which is the least likely to have been closed by the other side."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and asyncio.get_running_loop().time() < connection.used + KEEP_SECONDS:
                return connection
            connection.close()
        return None

    async def _open(self) -> "Connection":
        loop = asyncio.get_running_loop()
        port = self._url.port or (443 if self._tls else 80)
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: Connection(loop), self._url.hostname or "", port, ssl=self._tls
                )
        except OSError as error:
            raise NotConnected(str(error)) from error
        return connection


class Connection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_open = False
        self.used = 0.0
        self._loop = loop
        self._answer: asyncio.Future[Reply] | None = None  # while a request runs

    async def send(self, request: bytes, seconds: float) -> Reply:
        if not self.is_open:
            raise ConnectionResetError("closed by the other side")
        self._parser = httptools.HttpResponseParser(self)
        answer: asyncio.Future[Reply] = self._loop.create_future()
        self._answer = answer
        self._received = 0
        deadline = self._loop.call_later(seconds, self._fail, TimeoutError("no complete response in time"))
        try:
            self._transport.write(request)
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

    # -- callbacks of the transport ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # there is no request
            return self.close()
        self._received += len(data)
        if self._received > MAX_BYTES:
            return self._fail(ConnectionError(f"a response of more than {MAX_BYTES} bytes"))
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionError("the other side switches to another protocol"))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError("closed by the other side"))

    # -- callbacks of the parser ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        if self._is_answered:
            self.is_open = False  # else it would be taken for the next response

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._is_answered or status < 200:  # 1xx: the response is still to come
            return
        self.is_open = self._parser.should_keep_alive()
        cast("asyncio.Future[Reply]", self._answer).set_result(Reply(status, self._headers, b"".join(self._parts)))

    @property
    def _is_answered(self) -> bool:
        return self._answer is None or self._answer.done()
