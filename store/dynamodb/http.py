"""HTTP/1.1 connections: a pool for POST requests over connections that stay open.

A general HTTP client (redirects, cookies, decompression) takes some 0.3 ms for a request, this one 0.07.
"""

import asyncio
import socket
import ssl
import time
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import httptools
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import ProxyConfiguration
from botocore.utils import get_environ_proxies
from msgspec import Struct

from store.concurrency import in_task
from store.engine import Patience

CONNECTIONS = 64  # at a time
KEEP_SECONDS = 12.0  # as long as aiobotocore keeps an idle connection, so that the other side seldom closes it first
MAX_HEAD_BYTES = 16_000  # of a proxy's response
NOT_CONNECTED = (ConnectTimeoutError, EndpointConnectionError, SSLError)
"""Errors after which nothing was sent."""


class Reply(Struct):
    """A response, with the names of its headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Pool:
    """The connections to the host of a URL, for https with a TLS context, and by the HTTP proxy of the environment."""

    def __init__(self, url: SplitResult, patience: Patience, tls: ssl.SSLContext | None) -> None:
        self._url = url.geturl()
        self._host, self._port = url.hostname or "", url.port or (443 if tls else 80)
        self._patience = patience
        self._tls = tls
        self._proxy = ProxyConfiguration(get_environ_proxies(self._url)).proxy_url_for(self._url) if tls else None
        self._permits = asyncio.Semaphore(CONNECTIONS)
        self._idle: list[Connection] = []
        self._closed = False

    async def post(self, request: bytes) -> Reply:
        """The response to a serialized request.

        Raises NOT_CONNECTED, ReadTimeoutError or ConnectionClosedError, which a response that is no HTTP is as well.
        """
        async with self._permits:
            connection = self._take() or await self._open()
            try:
                reply = await connection.send(request, self._patience.read_seconds)
            except BaseException as error:
                connection.close()  # the response may still come
                if not isinstance(error, OSError | httptools.HttpParserError):
                    raise
                self._close_idle()  # each would fail an attempt if the other side, or a gateway, has forgotten all
                kind = ReadTimeoutError if isinstance(error, TimeoutError) else ConnectionClosedError
                raise kind(endpoint_url=self._url) from error
            if connection.is_open and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()
            return reply

    def close(self) -> None:
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> "Connection | None":
        """The connection that was used last, which is the least likely to have been closed by the other side.

        The monotonic clock would not do: it stands still while the machine sleeps.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and 0 <= time.time() - connection.used < KEEP_SECONDS:
                return connection
            connection.close()
        return None

    async def _open(self) -> "Connection":
        await in_task()
        loop = asyncio.get_running_loop()
        where: dict[str, Any] = {"ssl": self._tls, "server_hostname": self._host} if self._tls else {}
        try:
            async with asyncio.timeout(self._patience.connect_seconds):
                if self._proxy:
                    where["sock"] = await self._tunnel(self._proxy)
                else:
                    where |= {"host": self._host, "port": self._port}
                _, connection = await loop.create_connection(lambda: Connection(loop), **where)
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self._url) from error
        except ssl.SSLError as error:
            raise SSLError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=self._url) from error
        return connection

    async def _tunnel(self, proxy: str) -> socket.socket:
        """A connection to the host that the proxy has opened (CONNECT)."""
        loop, host, url = asyncio.get_running_loop(), f"{self._host}:{self._port}", urlsplit(proxy)
        address = url.hostname or "", url.port or 80
        tunnel = await asyncio.to_thread(socket.create_connection, address, self._patience.connect_seconds)
        try:
            tunnel.setblocking(False)
            headers = {"Host": host, **ProxyConfiguration().proxy_headers_for(proxy)}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            await loop.sock_sendall(tunnel, f"CONNECT {host} HTTP/1.1\r\n{lines}\r\n".encode())
            head = b""
            # The other side is silent until TLS begins.
            while not head.endswith(b"\r\n\r\n") and (part := await loop.sock_recv(tunnel, 4096)):
                head += part
                if len(head) > MAX_HEAD_BYTES:
                    raise ConnectionRefusedError("the proxy's response has no end")
            if head.split(maxsplit=2)[1:2] != [b"200"]:
                raise ConnectionRefusedError("the proxy does not open a connection")
        except BaseException:
            tunnel.close()
            raise
        return tunnel


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
        deadline = self._loop.call_later(seconds, self._fail, TimeoutError("no complete response in time"))
        try:
            self._transport.write(request)
            return await answer
        finally:
            deadline.cancel()
            self._answer = None
            self.used = time.time()

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
