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
from graph.observability.access_log import log_rejected

MAX_HEAD_BYTES = 65_536
MAX_UNFINISHED_BYTES = 64_000_000
"""Of all requests of one process that have not come whole."""
MAX_PIPELINED = 32
"""Requests of one connection that may wait for the answers to those before them."""

_data_received, _on_headers_complete = HttpToolsProtocol.data_received, HttpToolsProtocol.on_headers_complete
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
    """uvicorn's configuration with limits of its connections."""

    def __init__(
        self, app: str, *, max_connections: int, max_body_bytes: int, head_seconds: float, **options: Any
    ) -> None:
        """`head_seconds` bounds a request's head, and what still comes of a body after the answer."""
        super().__init__(app, http=HTTPProtocol, ws="none", **options)
        self.max_connections = max_connections
        self.max_request_bytes = 2 * max_body_bytes + 1_000_000  # a body in chunks, and what the application rejects
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
    """One connection. A request that breaks a limit gets a JSON error, and the connection ends.

    Of uvicorn's methods that run for every request few are overridden, and briefly.
    """

    def __init__(self, config: ServerConfig, server_state: ServerState, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(config, server_state, app_state, **more)
        self._max_connections = config.max_connections
        self._max_request_bytes = config.max_request_bytes
        self._head_seconds = config.head_seconds
        self._unfinished = _UNFINISHED.setdefault(server_state, Unfinished())
        self._deadline: TimerHandle | None = None
        self._earlier: list[Any] = []  # the cycles before `cycle` that were not answered when it began
        self._rejected: Rejected | None = None
        self._trailers: list[tuple[bytes, bytes]] = []
        self._received_bytes = 0  # of a request that has not come whole

    @property
    def is_waiting(self) -> bool:
        """Whether the client is to send something: no answer is being made."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    @property
    def is_in_head(self) -> bool:
        """Whether the request that comes next, if any, has no head yet."""
        return self.cycle is None or self.scope is not self.cycle.scope or not self.cycle.more_body

    @property
    def waits_until(self) -> float:
        timer = self.timeout_keep_alive_task or self._deadline
        return timer.when() if timer is not None else 0.0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        super().connection_made(transport)
        self._set_deadline()
        if len(self.connections) > self._max_connections and not self._make_room():
            message = f"The server has {self._max_connections:,} connections already; try again in a moment."
            self.reject(Rejected(503, message, OVERLOADED))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._abandon()

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        _data_received(self, data)
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and self.scope is cycle.scope:
            self._received_bytes = 0
            if self._deadline is None and not self.pipeline and not self._trailers:
                return
        self._look_at_rest(len(data))

    def _look_at_rest(self, count: int) -> None:
        """Bound what has come of requests that cannot be answered yet."""
        if self.transport.is_closing():
            return
        in_head = self.is_in_head
        if self._trailers:
            return self.reject(_trailers(), is_next=False)
        if not self._received_bytes:
            self._cancel_deadline()
        elif self._received_bytes > (MAX_HEAD_BYTES if in_head else self._max_request_bytes):
            message = (
                f"The request is larger than {self._max_request_bytes:,} bytes; ask in parts, each in its own request."
            )
            return self.reject(_too_large() if in_head else Rejected(413, message))
        elif self._deadline is None:
            self._set_deadline()
        is_kept = self.pipeline or (self._received_bytes and (in_head or not self.cycle.response_complete))
        if is_kept:
            self._unfinished.add(self, count)
        else:
            self._unfinished.remove(self)

    def reject(self, rejected: Rejected, *, is_next: bool | None = None) -> None:
        """End the connection; the client is told why unless that would be taken for the answer to another request.

        `is_next` is whether the request that is rejected comes after that of the newest cycle.
        """
        cycle = self.cycle
        is_next = self.is_in_head if is_next is None else is_next
        is_free = cycle is None or (cycle.response_complete if is_next else not cycle.response_started)
        if is_free and not self.pipeline:
            self.transport.write(rejected.response)
        log_rejected(self.client, rejected.status, str(rejected))
        self._close()

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        if self._received_bytes > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES:
            self._fail(_too_large())
        if self._trailers:
            self._fail(_trailers())
        if self.cycle is not None and not self.cycle.response_complete:
            self._pipeline()
        _on_headers_complete(self)
        self.headers = self._trailers = []  # the request keeps the list that it was given

    # -- what uvicorn calls --------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser has not taken."""
        self.reject(self._rejected or Rejected(400, "The request is not valid HTTP/1.1."))

    def _unsupported_upgrade_warning(self) -> None:
        """An offer of another protocol, as HTTP/2 by some clients, is not taken; the answer says so by HTTP/1.1."""

    # ------------------------------------------------------------------------------------------------------------------

    def _pipeline(self) -> None:
        """Take a request while those before it are not answered."""
        if len(self.pipeline) >= MAX_PIPELINED:
            message = f"More than {MAX_PIPELINED} requests wait for answers on this connection; wait for some."
            self._fail(Rejected(400, message))
        self._earlier = [one for one in (*self._earlier, self.cycle) if not one.response_complete]

    def _head_bytes(self) -> int:
        line = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n")
        return line + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers) + len("\r\n")

    def _fail(self, rejected: Rejected) -> None:
        """Stop the parser, which has uvicorn call `send_400_response`."""
        self._rejected = rejected
        raise rejected

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._head_seconds, self._end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        """End a connection that waits for too long; where an answer is being made, look again later."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._set_deadline()
        elif self.is_in_head and self._received_bytes:
            self.reject(Rejected(408, f"The head of the request did not come within {self._head_seconds:g} seconds."))
        else:
            self._close()

    def _make_room(self) -> bool:
        """End the connections that have waited longest, some at a time; whether there is room then."""
        others = [cast(HTTPProtocol, one) for one in self.connections if one is not self]
        waiting = sorted((one for one in others if one.is_waiting), key=lambda one: one.waits_until)
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
        for cycle in (*self._earlier, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()


def _too_large() -> Rejected:
    message = f"The head of the request is larger than {MAX_HEAD_BYTES:,} bytes; send the query in a POST's body."
    return Rejected(431, message)


def _trailers() -> Rejected:
    return Rejected(400, "The request has trailers, which are not supported; send headers.")
