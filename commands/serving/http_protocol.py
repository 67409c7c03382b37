"""HTTP/1.1 connections: uvicorn's protocol with limits on their number and on the bytes of a request head.

Of uvicorn's private state it uses `connections`, `cycle`, `headers`, `parser`, `pipeline`, `scope`, `transport`, `url`,
`timeout_keep_alive_task`, `_unset_keepalive_if_required`, `send_400_response` and `on_response_complete`, whose count
of responses nothing reads without `limit_max_requests`. The versions that `pyproject.toml` allows have them; CI tests
the oldest and the newest.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graph.errors import RequestRejected
from graph.server import middleware as security_headers
from graph.server.middleware import MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_IGNORED_BYTES, MAX_PIPELINED


class HTTPProtocol(HttpToolsProtocol):
    """One connection. The application rejects what cannot be read, in the form of an empty request."""

    connections: set[Any]
    _rejection: RequestRejected | None = None  # after which nothing is read
    _running: Any = None  # the cycle (request and response) that is being answered, where `cycle` is the newest one
    _unread = 0  # bytes since a head or a piece of a body ended: of the next head, or of trailers
    _ignored = 0  # bytes of bodies whose response was complete before them

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.on_response_complete()  # starts the time that a connection may be idle
        if len(self.connections) > MAX_CONNECTIONS:
            idle = [one for one in self.connections - {self} if one.timeout_keep_alive_task is not None]
            if not idle:
                return self.reject(security_headers.TOO_MANY)
            idle.sort(key=lambda one: one.timeout_keep_alive_task.when())
            for one in idle[: MAX_CONNECTIONS // 16 + 1]:  # several, since finding them takes a while
                self.connections.discard(one)
                one.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()  # whose timer would keep the connection in memory
        self.cycle = self._running  # which uvicorn then tells that its client has gone, instead of a pipelined one
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._rejection is None:
            self._unread += len(data)
            super().data_received(data)
            if self._unread > MAX_HEAD_BYTES:
                self.reject(security_headers.HEAD_TOO_LARGE)
            if self._running is None:
                self.on_response_complete()

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED and self._rejection is None:
            raise OverflowError  # stops the parser, and uvicorn calls `send_400_response`
        self._unread = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            self._rejection = security_headers.HEAD_TOO_LARGE
        self.scope[security_headers.REJECTED] = self._rejection  # type: ignore[literal-required]
        super().on_headers_complete()
        self._running = self._running or self.cycle
        self.headers = []  # for trailers, which are ignored; the request keeps its own list

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if self.cycle.response_complete:
            self._ignored += len(body)
            if self._ignored > MAX_IGNORED_BYTES:
                self.transport.close()
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        if self._rejection is None:
            is_full = len(self.pipeline) >= MAX_PIPELINED
            self.reject(security_headers.PIPELINED if is_full else security_headers.NOT_HTTP)

    def reject(self, rejection: RequestRejected) -> None:
        """Answer with an error; within a body or after it, where a response may have begun, only close."""
        self._unset_keepalive_if_required()
        if self.cycle is not None and self.scope is self.cycle.scope:
            return self.transport.close()
        self._rejection = rejection
        self.parser = type(self.parser)(self)
        self.parser.feed_data(b"GET * HTTP/1.1\r\n\r\n")
