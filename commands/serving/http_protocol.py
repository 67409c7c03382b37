"""HTTP/1.1 connections: uvicorn's protocol with limits on heads, trailers, repeated headers and incomplete requests.

uvicorn limits neither the size and the time of a request head nor the number of connections, adds trailers to the
headers, and reads any number of pipelined requests. A reverse proxy usually has these limits; without one the server
needs them.
"""

import socket
import struct
import sys
import time
from asyncio import TimerHandle, Transport
from collections import OrderedDict
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from graph.errors import BAD_REQUEST, OVERLOADED, error_body
from graph.observability.log import log_rejected
from graph.observability.request_info import ARRIVED

MAX_CONNECTIONS = 4_096  # of one process, far above the requests that it can answer at a time; each takes a descriptor
MAX_HEAD_BYTES = 65_536
MAX_INCOMPLETE_BYTES = 64_000_000  # of all incomplete requests of one process
MAX_PIPELINED = 32  # requests of one connection that wait for the responses to earlier ones
GONE_SECONDS = 0.03  # after which a client that closed its side before the server read from it wants no response

HEAD_TOO_LARGE = f"The request head is larger than {MAX_HEAD_BYTES:,} bytes; send the query in the body of a POST."
HAS_TRAILERS = "The request has trailers, which are not supported; send headers."

_HEADERS = (
    b"content-type: application/json; charset=utf-8\r\ncontent-length: %d\r\n%sx-content-type-options: nosniff\r\n"
    b"cache-control: no-store\r\nconnection: close\r\n\r\n"
)
_data_received, _on_headers_complete = HttpToolsProtocol.data_received, HttpToolsProtocol.on_headers_complete


# Of Linux's `struct tcp_info`: the state, and the milliseconds since data came last.
_TCP_INFO = struct.Struct("B51xI")
_CLOSE_WAIT = 8  # the client has closed its side


def in_kernel(transport: Transport) -> tuple[float, bool]:
    """For how many seconds the last bytes of a connection have waited in the kernel, and whether its client has gone.

    Only Linux tells. A loop that is busy accepts connections late, while their requests, and their ends, have come.
    """
    if sys.platform != "linux":
        return 0.0, False
    connection = transport.get_extra_info("socket")
    try:
        state, milliseconds = _TCP_INFO.unpack(
            connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        )
    except (OSError, AttributeError, struct.error):  # no TCP
        return 0.0, False
    return milliseconds / 1000, state == _CLOSE_WAIT


class Rejection(Exception):
    """A rejected request, whose connection is closed: the message and the complete HTTP/1.1 response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        is_overload = status == 503
        body = error_body(message, OVERLOADED if is_overload else BAD_REQUEST)
        self.response = STATUS_LINE[status] + _HEADERS % (len(body), b"retry-after: 1\r\n" * is_overload) + body


class IncompleteRequests:
    """Connections whose request was not received completely, the oldest first, each with the number of its bytes."""

    def __init__(self) -> None:
        self._bytes: OrderedDict[HTTPProtocol, int] = OrderedDict()
        self._total = 0

    def add(self, connection: "HTTPProtocol", count: int) -> None:
        """Count received bytes of a connection; above the limit the oldest connections are rejected."""
        self._bytes[connection] = self._bytes.get(connection, 0) + count
        self._total += count
        while self._total > MAX_INCOMPLETE_BYTES:
            oldest = next(iter(self._bytes))
            self.remove(oldest)
            message = "The server is receiving too many requests, and this one is the slowest; retry later."
            oldest.reject(Rejection(503, message))

    def remove(self, connection: "HTTPProtocol") -> None:
        self._total -= self._bytes.pop(connection, 0)


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with limits for requests."""

    def __init__(self, app: str, *, max_body_bytes: int, head_seconds: float, **options: Any) -> None:
        """`head_seconds` limits the time for a request head, and for the rest of a body after its response."""
        super().__init__(app, http=HTTPProtocol, ws="none", **options)
        self.max_request_bytes = 2 * max_body_bytes + 1_000_000  # with chunk sizes, and bodies that the app rejects
        self.head_seconds = head_seconds
        self.incomplete = IncompleteRequests()


class HTTPProtocol(HttpToolsProtocol):
    """One connection. A request that exceeds a limit gets a JSON error, and the connection is closed.

    A "cycle" is uvicorn's word for one request and its response; `self.cycle` is the newest one. Few of uvicorn's
    methods that run for each request are overridden, and they do little.
    """

    def __init__(self, config: ServerConfig, **more: Any) -> None:
        super().__init__(config, **more)
        self._limits = config
        self._incomplete = config.incomplete
        self._deadline: TimerHandle | None = None
        self._unanswered: list[Any] = []  # the cycles before `cycle` that had no complete response when it began
        self._rejection: Rejection | None = None
        self._trailers: list[tuple[bytes, bytes]] = []
        self._received_bytes = 0  # of the incomplete request

    @property
    def is_idle(self) -> bool:
        """Whether the connection waits for its client: no response is being made."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    @property
    def is_in_head(self) -> bool:
        """Whether the next bytes belong to the head of a request."""
        return self.cycle is None or self.scope is not self.cycle.scope or not self.cycle.more_body

    @property
    def idle_until(self) -> float:
        """When the connection is closed if its client sends nothing, by the clock of the event loop."""
        timer = self.timeout_keep_alive_task or self._deadline
        return timer.when() if timer is not None else 0.0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # narrowed by uvicorn
        super().connection_made(transport)
        self._set_deadline()
        if len(self.connections) > MAX_CONNECTIONS and not self._close_idle():
            self.reject(Rejection(503, f"The server has its maximum of {MAX_CONNECTIONS:,} connections; retry later."))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._disconnect_cycles()

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        _data_received(self, data)
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and self.scope is cycle.scope:
            self._received_bytes = 0
            if self._deadline is None and not self.pipeline and not self._trailers:
                return
        self._check_limits(len(data))

    def _check_limits(self, count: int) -> None:
        """Limit time and size of requests that cannot be answered yet; `count` is the number of new bytes."""
        if self.transport.is_closing():
            return
        in_head, limit = self.is_in_head, self._limits.max_request_bytes
        if self._trailers:
            return self.reject(Rejection(400, HAS_TRAILERS), is_next=False)
        if not self._received_bytes:
            self._cancel_deadline()
        elif in_head and self._received_bytes > MAX_HEAD_BYTES:
            return self.reject(Rejection(431, HEAD_TOO_LARGE))
        elif self._received_bytes > limit:
            message = f"The request is larger than {limit:,} bytes; split it into several requests."
            return self.reject(Rejection(413, message))
        elif self._deadline is None:
            self._set_deadline()
        is_buffered = self.pipeline or (self._received_bytes and (in_head or not self.cycle.response_complete))
        if is_buffered:
            self._incomplete.add(self, count)
        else:
            self._incomplete.remove(self)

    def reject(self, rejection: Rejection, *, is_next: bool | None = None) -> None:
        """Close the connection. The rejection is sent only if the client cannot take it for another response.

        `is_next` is whether the rejected request is the one after the newest cycle.
        """
        cycle = self.cycle
        is_next = self.is_in_head if is_next is None else is_next
        is_next_response = cycle is None or (cycle.response_complete if is_next else not cycle.response_started)
        if is_next_response and not self.pipeline:
            self.transport.write(rejection.response)
        log_rejected(self.client, rejection.status, str(rejection))
        self._close()

    # -- called by the parser ------------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        if self._received_bytes > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES:
            self._stop_parser(431, HEAD_TOO_LARGE)
        if self._trailers:
            self._stop_parser(400, HAS_TRAILERS)
        if self.cycle is not None and not self.cycle.response_complete:
            if len(self.pipeline) >= MAX_PIPELINED:
                message = f"More than {MAX_PIPELINED} requests wait on this connection; wait for responses first."
                self._stop_parser(400, message)
            self._unanswered = [one for one in (*self._unanswered, self.cycle) if not one.response_complete]
            _on_headers_complete(self)
        else:  # a request that waits for responses to earlier ones of its connection arrives when it is their turn
            self._on_request()
        self.headers = self._trailers = []  # the request keeps its own list; the parser appends trailers to this one

    def _on_request(self) -> None:
        """Begin a request that arrived before the loop read it, if it is the first of its connection."""
        seconds, has_gone = in_kernel(self.transport) if self.cycle is None else (0.0, False)
        cast(dict[str, Any], self.scope)[ARRIVED] = time.perf_counter() - seconds
        _on_headers_complete(self)
        if has_gone and seconds > GONE_SECONDS:
            self._disconnect_cycles()

    # -- called by uvicorn ---------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Reject a request at which the parser stopped."""
        self.reject(self._rejection or Rejection(400, "The request is not valid HTTP/1.1."))

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore an offer of another protocol, such as HTTP/2; the response is HTTP/1.1."""

    # ------------------------------------------------------------------------------------------------------------------

    def _head_bytes(self) -> int:
        line = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n")
        return line + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers) + len("\r\n")

    def _stop_parser(self, status: int, message: str) -> None:
        """Raise within the parser, after which uvicorn calls `send_400_response`."""
        self._rejection = Rejection(status, message)
        raise self._rejection

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._limits.head_seconds, self._on_deadline)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self) -> None:
        """Close a connection that is idle for too long; while a response is being made, wait again."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._set_deadline()
        elif self.is_in_head and self._received_bytes:
            seconds = self._limits.head_seconds
            self.reject(Rejection(408, f"The request head was not received within {seconds:g} seconds."))
        else:
            self._close()

    def _close_idle(self) -> bool:
        """Close the connections that are idle longest, a sixteenth more than needed; whether there is room then."""
        others = [cast(HTTPProtocol, one) for one in self.connections if one is not self]
        idle = sorted((one for one in others if one.is_idle), key=lambda one: one.idle_until)
        for connection in idle[: len(self.connections) - MAX_CONNECTIONS + MAX_CONNECTIONS // 16]:
            connection._close()
        return len(self.connections) <= MAX_CONNECTIONS

    def _close(self) -> None:
        self.connections.discard(self)
        self._disconnect_cycles()
        self.transport.close()

    def _disconnect_cycles(self) -> None:
        """Disconnect all unanswered cycles: uvicorn disconnects the newest only, so others would write to nobody."""
        self._cancel_deadline()
        self._incomplete.remove(self)
        for cycle in (*self._unanswered, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
