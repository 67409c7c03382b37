"""HTTP/1.1 connections: uvicorn's protocol with limits on their number and on the bytes of a request head.

Of uvicorn's private state it uses `connections`, `cycle`, `headers`, `parser`, `pipeline`, `scope`, `transport`, `url`
and `timeout_keep_alive_task`. The versions that `pyproject.toml` allows have them; CI tests the oldest and the newest.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graph.server.security_headers import MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_PIPELINED, REJECTED


class HTTPProtocol(HttpToolsProtocol):
    """One connection. The application rejects what cannot be read, in the form of an empty request."""

    connections: set[Any]
    _status: int | None = None  # of the rejection, after which nothing is read
    _running: Any = None  # the cycle (request and response) that is being answered, where `cycle` is the newest one
    _unread = 0  # bytes since a head or a piece of a body ended: of the next head, or of trailers

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.on_response_complete()  # starts the time that a connection may be idle
        if len(self.connections) > MAX_CONNECTIONS:
            idle = [one for one in self.connections if one.timeout_keep_alive_task is not None]
            min(idle, key=lambda one: one.timeout_keep_alive_task.when()).reject(503)  # itself, if no other is idle

    def connection_lost(self, exc: Exception | None) -> None:
        self.cycle = self._running  # which uvicorn then tells that its client has gone, instead of a pipelined one
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._status is None:
            self._unread += len(data)
            super().data_received(data)
            if self._unread > MAX_HEAD_BYTES:
                self.reject(431)
            if self._running is None:
                self.on_response_complete()

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED and self._status is None:
            raise OverflowError  # stops the parser, and uvicorn calls `send_400_response`
        self._unread = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            self._status = 431
        self.scope[REJECTED] = self._status  # type: ignore[literal-required]
        super().on_headers_complete()
        self._running = self._running or self.cycle
        self.headers = []  # for trailers, which are ignored; the request keeps its own list

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self.reject(429 if len(self.pipeline) >= MAX_PIPELINED else 400)

    def reject(self, status: int) -> None:
        """Answer with an error; within a body or after it, where a response may have begun, only close."""
        self._unset_keepalive_if_required()
        if self.cycle is not None and self.scope is self.cycle.scope:
            return self.transport.close()
        self._status = status
        self.parser = type(self.parser)(self)
        self.parser.feed_data(b"GET * HTTP/1.1\r\n\r\n")
