"""HTTP/1.1 of the server: uvicorn's protocol with limits, which answers small requests before it makes a task."""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from graph.errors import RequestRejected
from graph.observability.logs import ARRIVED
from graph.server.handler import (
    GRAPHQL_PATH,
    HEAD_TOO_LARGE,
    MAX_CONNECTIONS,
    MAX_HEAD_BYTES,
    MAX_IGNORED_BYTES,
    MAX_PIPELINED,
    NOT_HTTP,
    PIPELINED,
    REJECTED,
    TOO_MANY,
    RequestHandler,
)
from graph.server.sending import BODY, CLOSE, RECEIVED
from store.concurrency import EagerCoroutine

ABSOLUTE_FORM = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]*)")
"""A request target with an authority, which counts instead of the Host header (RFC 9112, 3.2.2)."""
PARSER = httptools_impl.httptools  # type: ignore[attr-defined]  # uvicorn's, for its errors
ENDPOINT = GRAPHQL_PATH.encode()
FORWARDED = frozenset(
    {b"x-forwarded-for", b"x-forwarded-proto"}
)  # which uvicorn's middleware around the application takes
HOLD_SECONDS = 0.1  # for a body, of which most come with the head or directly after it
MAX_HELD_BYTES = 65_536

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
ASGIApp = Callable[[Any, Receive, Send], Coroutine[Any, Any, None]]


class HTTPProtocol(HttpToolsProtocol):
    """One HTTP/1.1 connection, with limits on their number and on the bytes of a request head.

    A small request for the endpoint is held until its body is there. Then the application runs in place: if it ends
    without a wait, the whole response is written at once; otherwise uvicorn's cycle goes on with it, as it does with
    all other requests from their heads on. So does a request whose body comes late, and one that came in the same
    bytes as another, so that a connection with many requests lets others have their turns.

    The application rejects what cannot be read, in the form of an empty request. Of uvicorn's private state this uses
    `app`, `connections`, `cycle`, `expect_100_continue`, `flow`, `headers`, `parser`, `pipeline`, `scope`,
    `server_state`, `transport`, `url`, `timeout_keep_alive_task`, `_unset_keepalive_if_required`, `send_400_response`
    and `on_response_complete`, whose count of responses nothing reads without `limit_max_requests`. The versions that
    `pyproject.toml` allows have them; CI tests the oldest and the newest.
    """

    connections: set[Any]
    _handler: RequestHandler | None = None  # the application, where it may be run without a task
    _held: bytearray | None = None  # the body so far of a request that is held
    _held_until: asyncio.TimerHandle | None = None
    _has_answered = False  # in place, within the bytes that are being parsed
    _idle_since = 0.0  # by the loop's clock: a timer for each request would cost more than this
    _begun: Any = None  # the scope of the newest request whose head is complete
    _rejection: RequestRejected | None = None  # after which nothing is read
    _running: Any = None  # the cycle (request and response) that is being answered, where `cycle` is the newest one
    _unread = 0  # bytes since a head or a piece of a body ended: of the next head, or of trailers
    _largest = 0  # bytes that a head may have which ends in what is being parsed
    _ignored = 0  # bytes of bodies whose response was complete before them

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        app = self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        if isinstance(app, RequestHandler) and not self.root_path:
            self._handler = app
        self.on_response_complete()  # starts the time that a connection may be idle
        if len(self.connections) > MAX_CONNECTIONS:
            idle = [one for one in self.connections - {self} if one.timeout_keep_alive_task is not None]
            if not idle:
                return self.reject(TOO_MANY)
            idle.sort(key=lambda one: one._idle_since)
            for one in idle[: MAX_CONNECTIONS // 16 + 1]:  # several, since finding them takes a while
                self.connections.discard(one)
                one.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()  # whose timer would keep the connection in memory
        if self._held is not None:  # the application reports that its client has left
            self._begin_held()
        self.cycle = self._running  # which uvicorn then tells that its client has gone, instead of a pipelined one
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._rejection is None:
            self._unread += len(data)
            self._largest = self._unread
            self._has_answered = False
            self._parse(data)
            if self._unread > MAX_HEAD_BYTES:
                self.reject(HEAD_TOO_LARGE)
            self._idle_since = self.loop.time()
            if self._held is not None and self._held_until is None:
                self.scope[ARRIVED] = time.perf_counter()  # type: ignore[literal-required]
                self._held_until = self.loop.call_later(HOLD_SECONDS, self._begin_held)
            elif self._held is None and self._running is None and self.timeout_keep_alive_task is None:
                self.on_response_complete()

    def _parse(self, data: bytes) -> None:
        """Parse what was received. A request to upgrade the protocol, as curl sends it for h2c, is answered without.

        RFC 9110, 7.8, allows that. A parser would take the body for the new protocol, so another gets the head without.
        """
        try:
            while True:
                try:
                    return self.parser.feed_data(data)
                except PARSER.HttpParserUpgrade as upgrade:
                    method, version = self.parser.get_method(), self.parser.get_http_version().encode()
                    if method == b"CONNECT":
                        return self.send_400_response("")
                    lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
                    lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
                    data = b"\r\n".join([*lines, b"", data[upgrade.args[0] :]])
                    self.parser = type(self.parser)(self)  # the old one may wait for the end of the connection
                    with contextlib.suppress(AttributeError):  # before httptools 0.6.3; as uvicorn sets it
                        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        except PARSER.HttpParserError:
            self.send_400_response("")

    def on_message_complete(self) -> None:
        if self._held is not None:
            self._answer(self._release())
        elif not self.parser.should_upgrade():
            self.scope[RECEIVED] = time.monotonic()  # type: ignore[literal-required]
            super().on_message_complete()

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if len(self.pipeline) >= MAX_PIPELINED and self._rejection is None:
            raise OverflowError  # stops the parser, and uvicorn calls `send_400_response`
        if self._largest > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES:
            self._rejection = HEAD_TOO_LARGE
            self.url = b"/"  # uvicorn cannot parse one of 65,536 bytes or more
        self._unread = 0
        if self.url[:1] != b"/" and (absolute := ABSOLUTE_FORM.match(self.url)) is not None:
            if self.url[absolute.end() : absolute.end() + 1] != b"/":  # an empty path is that of the root
                self.url = absolute[0] + b"/" + self.url[absolute.end() :]
            self.headers[:] = [(name, absolute[1] if name == b"host" else value) for name, value in self.headers]
        self.scope[REJECTED] = self._rejection  # type: ignore[literal-required]
        if self._is_held():
            self._held = bytearray()
        else:
            self._begin(self.app)
        self._begun = self.scope
        self.headers = []  # for trailers, which are ignored; the request keeps its own list

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _is_held(self) -> bool:
        """Whether the application may be run in place when the body is there."""
        return (
            self._handler is not None
            and self.url.partition(b"?")[0] == ENDPOINT
            and b"#" not in self.url
            and not (self._has_answered or self._running or self._rejection or self.expect_100_continue)
        )

    def _release(self) -> bytes:
        """The body so far of the request that is held, which is held no longer."""
        body, self._held = bytes(self._held or b""), None
        if self._held_until is not None:
            self._held_until.cancel()
            self._held_until = None
        return body

    def _begin(self, app: ASGIApp) -> None:
        """Let uvicorn's cycle answer the request by `app`, in its turn."""
        self._unset_keepalive_if_required()
        usual, self.app = self.app, app
        super().on_headers_complete()
        self.app = usual
        self._running = self._running or self.cycle

    def _begin_held(self) -> None:
        """The same for the request that is held, whose body is not whole."""
        body = self._release()
        self._begin(self.app)
        super().on_body(body)

    def _answer(self, body: bytes) -> None:
        """Run the application in place, and write its response or let uvicorn's cycle go on with it."""
        scope: Any = self.scope
        scope["raw_path"], _, scope["query_string"] = self.url.partition(b"?")
        scope["path"], scope["method"] = scope["raw_path"].decode(), self.parser.get_method().decode()
        scope["http_version"], scope[BODY] = self.parser.get_http_version(), body
        exchange = Exchange(scope, body)
        is_direct = self._handler is not None and FORWARDED.isdisjoint(dict(scope["headers"]))
        exchange.run(self._handler if is_direct else self.app)  # type: ignore[arg-type]
        self._has_answered = True
        if exchange.is_whole and not self.flow.write_paused:
            self._write(exchange)
        else:
            self._begin(exchange.go_on)
            super().on_message_complete()

    def _write(self, exchange: "Exchange") -> None:
        """Write a whole response."""
        start, end = exchange.sent
        closes = self.scope["http_version"] == "1.0" or not self.parser.should_keep_alive()
        headers = [*self.server_state.default_headers, *start["headers"]]
        if CLOSE in headers:
            closes = True
        elif closes:
            headers.append(CLOSE)
        head = b"".join([b"%b: %b\r\n" % header for header in headers])
        body = b"" if self.scope["method"] == "HEAD" else end["body"]
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[start["status"]], head, body))
        if closes:
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if self._held is not None:
            self._held += body
            if len(self._held) > MAX_HELD_BYTES:
                self._begin_held()
            return
        if self.cycle.response_complete:
            self._ignored += len(body)
            if self._ignored > MAX_IGNORED_BYTES:
                self.transport.close()
        super().on_body(body)

    def timeout_keep_alive_handler(self) -> None:
        due = self._idle_since + self.timeout_keep_alive
        if due > self.loop.time():
            self.timeout_keep_alive_task = self.loop.call_at(due, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        self._running = self.pipeline[-1][0] if self.pipeline else None
        if self._running is not None and RECEIVED in self._running.scope:  # it waited for its own client until now
            self._running.scope[RECEIVED] = time.monotonic()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        if self._rejection is None:
            is_full = len(self.pipeline) >= MAX_PIPELINED
            self.reject(PIPELINED if is_full else NOT_HTTP)

    def reject(self, rejection: RequestRejected) -> None:
        """Answer with an error; within a body or after it, where a response may have begun, only close."""
        self._unset_keepalive_if_required()
        if self.scope is not None and self.scope is self._begun:
            if self._held is not None:
                self._begin_held()
            return self.transport.close()
        self._rejection = rejection
        self.parser = type(self.parser)(self)
        self.parser.feed_data(b"GET * HTTP/1.1\r\n\r\n")

    def shutdown(self) -> None:
        if self._held is not None:
            self._begin_held()
        super().shutdown()


class Exchange:
    """A request whose body is there, and what the application has sent so far; later a part of uvicorn's cycle."""

    __slots__ = ("_body", "_cycle", "_error", "_scope", "_work", "is_whole", "sent")

    def __init__(self, scope: Any, body: bytes) -> None:
        self._scope = scope
        self._body: bytes | None = body
        self._work: EagerCoroutine[None] | None = None
        self._error: BaseException | None = None
        self._cycle: tuple[Receive, Send] | None = None
        self.sent: list[Any] = []
        self.is_whole = False

    def run(self, app: ASGIApp) -> None:
        """Run the application until it first waits."""
        try:
            self._work = EagerCoroutine(app(self._scope, self.receive, self.send))
        except (Exception, asyncio.CancelledError) as error:
            self._error = error
        else:
            self.is_whole = self._work.is_done and len(self.sent) == 2

    async def go_on(self, scope: Any, receive: Receive, send: Send) -> None:
        """Continue the application as one of uvicorn's cycle."""
        self._cycle = receive, send
        for message in self.sent:
            await send(message)
        if self._error is not None:
            raise self._error
        if self._work is not None:
            await self._work

    async def receive(self) -> Any:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._cycle is None:
            await asyncio.sleep(0)  # `go_on` continues
        return await self._cycle[0]()  # type: ignore[index]

    async def send(self, message: Any) -> None:
        if self._cycle is not None:
            return await self._cycle[1](message)
        self.sent.append(message)
