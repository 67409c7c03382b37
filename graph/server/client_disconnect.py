"""Client disconnects: the work for a request ends when its client closes the connection."""

import asyncio
from typing import Any, Self

from starlette.types import Receive

WATCH_AFTER_SECONDS = 0.1
"""Most responses are ready sooner, and the connection is not watched."""


class ClientDisconnected(Exception):
    """The client closed the connection."""


class DisconnectWatcher:
    """Context manager that ends its block and raises ClientDisconnected when the client disconnects.

    The request must have been received completely.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._block = asyncio.timeout(None)  # without a deadline until the client disconnects
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, self._start)
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
