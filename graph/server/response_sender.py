"""Large answers on their way: handed over piece by piece, and only so much of them may wait for slow readers."""

import asyncio
from collections.abc import Collection, Iterator

from starlette.types import Send

PIECE_BYTES = 262_144  # handed over at once; the server waits until most of one is taken before it takes the next
MOST_BYTES = 128_000_000  # of all answers that wait together


class ResponseSender:
    """Sends bodies of responses. Where those that wait become too much together, whoever has taken nothing for the
    longest time is cut off.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._waiting: dict[asyncio.Timeout, bytes] = {}  # what is sent, in the order of the last pieces

    async def send(self, send: Send, content: bytes) -> None:
        """Send a body. One that is cut off stays incomplete, and the server closes its connection."""
        if len(content) <= PIECE_BYTES:
            await send({"type": "http.response.body", "body": content})
            return
        try:
            async with asyncio.timeout(None) as end:
                self._waiting[end] = content
                self._make_room()
                try:
                    for piece, more in pieces(content):
                        self._waiting[end] = self._waiting.pop(end)
                        await send({"type": "http.response.body", "body": piece, "more_body": more})
                finally:
                    del self._waiting[end]
        except TimeoutError:
            return

    def _make_room(self) -> None:
        """Cut off those whose last pieces are the oldest, but never the last to come."""
        waiting = dict(self._waiting)
        while len(waiting) > 1 and taken(waiting.values()) > self._most:
            end = next(iter(waiting))
            del waiting[end]
            if not end.expired():
                end.reschedule(0)  # which has passed


def taken(waiting: Collection[bytes]) -> int:
    """The bytes that bodies take while they wait; one that is kept is the same for many clients."""
    return sum({id(one): len(one) for one in waiting}.values()) + len(waiting) * PIECE_BYTES


def pieces(content: bytes) -> Iterator[tuple[bytes, bool]]:
    """The pieces of a body, each with whether there are more."""
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES], start + PIECE_BYTES < len(content)
