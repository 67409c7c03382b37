"""Admission: requests begin in turns under load; some are rejected, and clients that have gone are left out.

Parsing, validating and executing a request takes the event loop's time before it first waits. So requests that wait
begin in turns, and in between the loop accepts and reads connections: it sees which clients have gone. Rejecting
further ones is better than slowing down all.
"""

import asyncio
from typing import Any, Self

from starlette.types import Receive

from graph.errors import OVERLOADED, RequestRejected
from graph.observability.request_info import RequestInfo
from store.concurrency import TimeSlice

WATCH_AFTER_SECONDS = 0.1
"""Most responses are ready sooner, and the connection is not watched."""


class ClientDisconnected(Exception):
    """The client closed the connection."""


class DisconnectWatcher:
    """Context manager that ends its block and raises ClientDisconnected when the client disconnects.

    The request must have been received completely.
    """

    def __init__(self, receive: Receive, *, at_once: bool = False) -> None:
        """With `at_once` the connection is watched from the beginning."""
        self._receive = receive
        self._after = 0.0 if at_once else WATCH_AFTER_SECONDS
        self._block = asyncio.timeout(None)  # without a deadline until the client disconnects
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._after, self._start)
        await self._block.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
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


RETRY_AFTER = (b"retry-after", b"1")
PROMPT_SECONDS = 0.03
"""A request that is begun so soon after it was received did not wait for others; in each iteration the loop serves a
slice of computation, too, and commits.
"""
MAX_WAIT = 0.5
"""Of the time that a request has; with less left it would end by its time limit, after work for nothing."""


class ConcurrencyLimiter:
    """Context manager that counts the blocks running; entering one more than the limit raises RequestRejected."""

    def __init__(self, limit: int, request_seconds: float = 10.0) -> None:
        self.limit = limit
        self.running = 0
        self._max_wait = MAX_WAIT * request_seconds
        self._slice = TimeSlice(gathers=True)

    def __enter__(self) -> Self:
        if self.running >= self.limit:
            raise overloaded(f"The server is running its maximum of {self.limit} requests; retry later.")
        self.running += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.running -= 1

    def has_to_wait(self, info: RequestInfo) -> bool:
        """Whether a request, within this block, has to wait for its turn before it is parsed."""
        return info.waited > PROMPT_SECONDS or self._slice.has_waiting()

    async def turn(self, info: RequestInfo, receive: Receive) -> None:
        """Wait until the request may begin. Raises RequestRejected where it has waited for too long, and
        ClientDisconnected.
        """
        async with DisconnectWatcher(receive, at_once=True):
            try:
                async with asyncio.timeout(self._max_wait - info.waited):
                    await self._slice.next()
            except TimeoutError:
                seconds = f"{self._max_wait:g} seconds"
                raise overloaded(f"The request waited for {seconds} behind others; retry later.") from None


def overloaded(message: str) -> RequestRejected:
    """The rejection of a request because of others."""
    return RequestRejected(503, message, RETRY_AFTER, code=OVERLOADED)
