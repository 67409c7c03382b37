"""Long work in the coroutine that asks for it, cut so that others have their turns in between."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

T = TypeVar("T")

PIECE = 500  # of nodes or rows, with which most things take some milliseconds


async def in_turns(things: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """All of some things, piece by piece; between two of them others have their turn."""
    for start in range(0, len(things), PIECE):
        if start:
            await asyncio.sleep(0)
        yield things[start : start + PIECE]
