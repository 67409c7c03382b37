"""HTTP/1.1 connections: uvicorn's protocol with limits on heads, trailers, repeated headers and unfinished requests.

uvicorn bounds neither a head's size and time nor the number of connections, appends trailers to the headers, and reads
bodies for as many requests as come. A reverse proxy usually does this; a server without one needs it here.
"""

from asyncio import TimerHandle, Transport
from collections import OrderedDict
from typing import Any, cast
from weakref import WeakKeyDictionary

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from graph.errors import BAD_REQUEST, OVERLOADED
from graph.logs import log_rejected

MAX_HEAD_BYTES = 65_536
MAX_UNFINISHED_BYTES = 64_000_000
"""Of all requests of one process that have not come whole."""
MAX_PIPELINED = 32
"""Requests of one connection that may wait for the answers to those before them."""
SINGLE = (b"Authorization", b"Content-Type", b"Host", b"Origin")
"""Headers of one value: of two, a proxy might look at the one and Clade at the other."""
HEAD = (
    b"content-type: application/json; charset=utf-8\r\ncontent-length: %d\r\n%sx-content-type-options: nosniff\r\n"
    b"cache-control: no-store\r\nconnection: close\r\n\r\n"
)


class Rejected(Exception):
    """A request that ends its connection; the message goes to the client."""

    def __init__(self, status: int, message: str, code: str = BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        body = orjson.dumps({"errors": [{"message": message, "extensions": {"code": code}}]})
        retry = b"retry-after: 1\r\n" if code == OVERLOADED else b""
        self.response = STATUS_LINE[status] + HEAD % (len(body), retry) + body


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with two limits of its connections."""

    def __init__(self, app: str, *, max_connections: int, head_seconds: float, **options: Any) -> None:
        """`head_seconds` bounds a request's head, and what still comes of a body after the answer."""
        super().__init__(app, http=HTTPProtocol, ws="none", **options)
        self.max_connections = max_connections
        self.head_seconds = head_seconds


class Unfinished:
    """The connections whose request has not come whole, the oldest first, each with its bytes so far."""

    def __init__(self) -> None:
        self._bytes: OrderedDict[HTTPProtocol, int] = OrderedDict()
        self._total = 0

    def add(self, connection: "HTTPProtocol", count: int) -> None:
        """Count bytes of a connection. Where all take too much together, the oldest are ended."""
        self._bytes[connection] = self._bytes.get(connection, 0) + count
        self._total += count
        while self._total > MAX_UNFINISHED_BYTES:
            oldest = next(iter(self._bytes))
            self.remove(oldest)
            message = "Too many requests are being received at a time, and this one is the slowest; try again."
            oldest.reject(Rejected(503, message, OVERLOADED))

    def remove(self, connection: "HTTPProtocol") -> None:
        self._total -= self._bytes.pop(connection, 0)


_UNFINISHED: WeakKeyDictionary[ServerState, Unfinished] = WeakKeyDictionary()


class HTTPProtocol(HttpToolsProtocol):
    """One connection. A request that breaks a limit gets a JSON error, and the connection ends."""

    def __init__(self, config: ServerConfig, server_state: ServerState, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(config, server_state, app_state, **more)
        self._max_connections = config.max_connections
        self._head_seconds = config.head_seconds
        self._unfinished = _UNFINISHED.setdefault(server_state, Unfinished())
        self._deadline: TimerHandle | None = None
        self._running: Any = None  # the cycle whose answer is made; `cycle` is the newest
        self._rejected: Rejected | None = None
        self._between = True  # whether no part of a request has come that is not whole
        self._in_head = True
        self._stalled_bytes = 0  # since the parser last reported progress: of a head, of trailers, of a chunk's header
        self._waiting_since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether the client is to send something: no answer is being made."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._set_deadline()
        if len(self.connections) > self._max_connections and not self._make_room():
            message = f"The server has {self._max_connections:,} connections already; try again in a moment."
            self.reject(Rejected(503, message, OVERLOADED))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._abandon()

    def data_received(self, data: bytes) -> None:
        self._stalled_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._stalled_bytes > MAX_HEAD_BYTES:
            self.reject(_too_large())
        elif self._between and not self._stalled_bytes:
            self._cancel_deadline()
            if self.pipeline:
                self._unfinished.add(self, len(data))
        else:
            if self._deadline is None:
                self._set_deadline()
            if self._in_head or not self.cycle.response_complete:  # else nobody keeps it
                self._unfinished.add(self, len(data))

    def reject(self, rejected: Rejected) -> None:
        """End the connection; the client is told why unless that would be taken for the answer to another request."""
        is_answered = self.cycle is None or self.cycle.response_complete
        if not self.pipeline and (is_answered if self._in_head else not self.cycle.response_started):
            self.transport.write(rejected.response)
        log_rejected(self.client, rejected.status, str(rejected))
        self._close()

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._between, self._in_head = False, True

    def on_headers_complete(self) -> None:
        if self._stalled_bytes > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES:
            self._fail(_too_large())
        names = [name for name, _ in self.headers]
        if len(set(names)) < len(names):
            for single in SINGLE:
                if names.count(single.lower()) > 1:
                    self._fail(Rejected(400, f"The request has more than one header {single.decode()}; send one."))
        if len(self.pipeline) >= MAX_PIPELINED:
            message = f"More than {MAX_PIPELINED} requests wait for answers on this connection; wait for some."
            self._fail(Rejected(400, message))
        super().on_headers_complete()
        self._in_head, self._stalled_bytes = False, 0
        self.headers = []  # for trailers: the request keeps the list that it was given

    def on_body(self, body: bytes) -> None:
        self._stalled_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.headers:
            self._fail(Rejected(400, "The request has trailers, which are not supported; send headers."))
        super().on_message_complete()
        self._between, self._in_head, self._stalled_bytes = True, True, 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waiting_since = self.loop.time()
        if not self.pipeline:
            self._unfinished.remove(self)

    # -- what uvicorn calls --------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser has not taken."""
        self.reject(self._rejected or Rejected(400, "The request is not valid HTTP/1.1."))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """An offer of another protocol, as HTTP/2 by some clients, is not taken; the answer says so by HTTP/1.1."""

    # ------------------------------------------------------------------------------------------------------------------

    def _head_bytes(self) -> int:
        line = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n")
        return line + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers) + len("\r\n")

    def _fail(self, rejected: Rejected) -> None:
        """Stop the parser, which has uvicorn call `send_400_response`."""
        self._rejected = rejected
        raise rejected

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._head_seconds, self._end)

    def _end(self) -> None:
        """End a connection that waits for too long; where an answer is being made, look again later."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._set_deadline()
        elif self._in_head and not self._between:
            self.reject(Rejected(408, f"The head of the request did not come within {self._head_seconds:g} seconds."))
        else:
            self._close()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> bool:
        """End the connections that have waited longest, some at a time; whether there is room then."""
        others = [cast(HTTPProtocol, one) for one in self.connections if one is not self]
        waiting = sorted((one for one in others if one.is_waiting), key=lambda one: one._waiting_since)
        for one in waiting[: len(self.connections) - self._max_connections + self._max_connections // 16]:
            one._close()
        return len(self.connections) <= self._max_connections

    def _close(self) -> None:
        self.connections.discard(self)
        self._abandon()
        self.transport.close()

    def _abandon(self) -> None:
        """Tell all requests that their client is gone: uvicorn tells the newest alone, and others write to nobody."""
        self._cancel_deadline()
        self._unfinished.remove(self)
        for cycle in (self._running, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()


def _too_large() -> Rejected:
    message = f"The head of the request is larger than {MAX_HEAD_BYTES:,} bytes; send the query in a POST's body."
    return Rejected(431, message)
