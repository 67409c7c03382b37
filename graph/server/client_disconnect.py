"""Whether the client of a request is still there: who hung up needs no answer, and what it asked for is ended."""

import asyncio
from types import TracebackType
from typing import Self

from starlette.types import Receive

LOOK_AFTER_SECONDS = 0.1
"""Most answers are ready sooner, and never look."""


class ClientDisconnected(Exception):
    """The client hung up."""


class DisconnectWatcher:
    """Ends the block that it is around when the client goes, and raises Gone; the request must have come whole."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._block = asyncio.timeout(None)  # it lasts until it is told that its time is over
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(LOOK_AFTER_SECONDS, self._look)
        await self._block.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
        try:
            await self._block.__aexit__(kind, error, trace)
        except TimeoutError:
            raise ClientDisconnected from None

    def _look(self) -> None:
        self._watch = asyncio.create_task(self._until_gone())

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass  # a GET's empty body
        self._block.reschedule(asyncio.get_running_loop().time())
