"""Responses being sent: bodies in pieces, whole errors, and the ends of work that nobody gets the response to.

The work for a request ends when its client closes the connection. Requests above a limit are rejected at once, and
those that waited too long before they were begun; mutations wait for their turn.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Self

from starlette.types import Receive, Send

from graph.errors import OVERLOADED, Header, RequestRejected, error_body
from store.concurrency import in_task, yield_to_loop

CLOSE: Header = (b"connection", b"close")
NO_STORE: Header = (b"cache-control", b"no-store")
"""Without this, caches between client and server may store responses, some even those of requests with a credential."""
VARY: Header = (b"vary", b"accept, authorization, accept-encoding")
"""The response depends on the accepted media types and codings, and on what the caller may see."""
RETRY_AFTER: Header = (b"retry-after", b"1")

PIECE_BYTES = 262_144  # uvicorn waits until most of a piece is sent before it accepts the next
MAX_BYTES = 128_000_000  # of all bodies being sent
WATCH_AFTER_SECONDS = 0.1  # most responses are ready sooner, and the connection is not watched

BODY = "clade.body"
"""The key in the ASGI scope of the whole body, where the server has it before the application runs."""
RECEIVED = "clade.received"
"""The key in the ASGI scope of the time at which the server had the whole request, by `time.monotonic`; absent where
the application runs at once.
"""
MAX_WAIT_SECONDS = 5.0  # before a request is begun; its client may have given up by then, or asked again
RUNNING_MUTATIONS = 32  # one more than are committed together gain nothing
MAX_WAITING_BYTES = 8_000_000  # of all mutations that wait
WAITING_BYTES_EACH = 2_000  # in addition to the body


class ResponseSender:
    """Sends response bodies. Above the limit, the client that has read nothing for the longest time is disconnected."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[asyncio.Timeout, bytes] = {}  # bodies, in the order of their last pieces

    async def send(self, send: Send, content: bytes, *, more: bool = False) -> bool:
        """Send a body, or with `more` a part of one; returns whether all of it was sent.

        If it is cut off it stays incomplete, and the server closes the connection.
        """
        if len(content) <= PIECE_BYTES:
            await send({"type": "http.response.body", "body": content, "more_body": more})
            return True
        await in_task()
        try:
            async with asyncio.timeout(None) as end:
                self._waiting[end] = content
                self._make_room()
                try:
                    for start in range(0, len(content), PIECE_BYTES):
                        stop = start + PIECE_BYTES
                        self._waiting[end] = self._waiting.pop(end)
                        goes_on = more or stop < len(content)
                        await send({"type": "http.response.body", "body": content[start:stop], "more_body": goes_on})
                finally:
                    del self._waiting[end]
        except TimeoutError:
            return False
        return True

    def _make_room(self) -> None:
        """Cut off the bodies whose last piece is the oldest, but never the newest body."""
        waiting = dict(self._waiting)
        while len(waiting) > 1:
            sizes = {id(body): len(body) for body in waiting.values()}  # several clients may be sent one cached body
            if sum(sizes.values()) + len(waiting) * PIECE_BYTES <= self._max_bytes:
                return
            end = next(iter(waiting))
            del waiting[end]
            if not end.expired():
                end.reschedule(0)  # in the past


async def send_error(
    send: Send,
    status: int,
    message: str,
    code: str,
    headers: Sequence[Header] = (),
    extensions: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Send a whole response with one error and no data, for a request that does not reach the endpoint."""
    body = error_body(message, code, extensions)
    start = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body)), NO_STORE]
    await send({"type": "http.response.start", "status": status, "headers": [*start, *headers]})
    await send({"type": "http.response.body", "body": body})


class ClientDisconnected(Exception):
    """The client closed the connection."""


class DisconnectWatcher:
    """Context manager that ends its block and raises ClientDisconnected when the client disconnects.

    The request must have been received completely. The connection is watched after a while, with 0 at once.
    """

    def __init__(self, receive: Receive, after_seconds: float = WATCH_AFTER_SECONDS) -> None:
        self._receive = receive
        self._after_seconds = after_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._block = asyncio.timeout(None)  # without a deadline until the client disconnects
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await in_task()
        await self._block.__aenter__()
        if self._after_seconds:
            self._timer = asyncio.get_running_loop().call_later(self._after_seconds, self._start)
        else:
            self._start()
        return self

    async def __aexit__(self, *error: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
        try:
            await self._block.__aexit__(*error)
        except TimeoutError:
            raise ClientDisconnected from None

    def _start(self) -> None:
        self._watch = asyncio.create_task(self._until_disconnect())

    async def _until_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass  # a GET's empty body
        self._block.reschedule(asyncio.get_running_loop().time())


class MutationGate:
    """Mutations that wait for their turn, first come first served, so that the event loop never runs many at a time.

    Those that have waited too long by the `clock` are rejected, and those above the limit of bytes that wait. `shed`
    counts the requests that were not begun by the reason: rejected for their age or their bytes, or their client left.
    """

    def __init__(
        self,
        running: int = RUNNING_MUTATIONS,
        max_bytes: int = MAX_WAITING_BYTES,
        max_seconds: float = MAX_WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = asyncio.Semaphore(running)
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self.clock = clock
        self.waiting_bytes = 0
        self.shed = {"age": 0, "bytes": 0, "left": 0}

    def check_age(self, received: float) -> None:
        """Raise RequestRejected for a request that has waited too long."""
        if self.clock() - received > self._max_seconds:
            raise self._rejection("age")

    @asynccontextmanager
    async def turn(self, received: float, size: int) -> AsyncIterator[None]:
        """Wait for a place, and hold it while the block runs. Raises RequestRejected.

        A DisconnectWatcher around it cancels the wait.
        """
        if self.waiting_bytes + size + WAITING_BYTES_EACH > self._max_bytes:
            raise self._rejection("bytes")
        self.waiting_bytes += size + WAITING_BYTES_EACH
        try:
            async with asyncio.timeout(received + self._max_seconds - self.clock()):
                await self._place(received)
        except TimeoutError:
            raise self._rejection("age") from None
        except asyncio.CancelledError:
            self.shed["left"] += 1
            raise
        finally:
            self.waiting_bytes -= size + WAITING_BYTES_EACH
        try:
            yield
        finally:
            self._places.release()

    async def _place(self, received: float) -> None:
        for _ in range(2):  # the watcher's task sees that the client has left, and then its timeout cancels this one
            await asyncio.sleep(0)
        await self._places.acquire()
        try:
            await yield_to_loop()
            self.check_age(received)
        except BaseException:
            self._places.release()
            raise

    def _rejection(self, reason: str) -> RequestRejected:
        self.shed[reason] += 1
        message = {
            "age": f"The request was not begun within {self._max_seconds:g} seconds; retry later.",
            "bytes": f"Mutations of {self._max_bytes:,} bytes wait already; retry later.",
        }
        return RequestRejected(503, message[reason], RETRY_AFTER, code=OVERLOADED)


class ConcurrencyLimiter:
    """Context manager that counts the blocks running; entering one more than the limit raises RequestRejected.

    It bounds operations and lookups of API keys: rejecting further ones is better than slowing down all. Mutations
    that wait in its gate do not count, so reads go on beside any number of them.
    """

    def __init__(self, limit: int, gate: MutationGate | None = None) -> None:
        self.limit = limit
        self.running = 0
        self.gate = gate or MutationGate(min(limit, RUNNING_MUTATIONS))

    def __enter__(self) -> Self:
        if self.running >= self.limit:
            message = f"The server is running its maximum of {self.limit} requests; retry later."
            raise RequestRejected(503, message, RETRY_AFTER, code=OVERLOADED)
        self.running += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.running -= 1
