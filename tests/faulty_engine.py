"""Faulty engine: a server in the place of DynamoDB that is silent, slow, or empty."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from store.dynamodb.codec import encode
from store.metadata.tree_version import layout_item
from tests.loopback_server import LoopbackServer

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


class FaultyEngine(LoopbackServer):
    """Server on a free loopback port; `calls` are the operations that it received."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.calls: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
            self.calls.append(head.partition("x-amz-target: ")[2].partition("\r\n")[0].rpartition(".")[2])
            await self.answer(self.calls[-1], writer)


async def empty(operation: str, writer: asyncio.StreamWriter) -> None:
    """Respond as an empty table that accepts every write."""
    layout = {"Item": encode(layout_item())}  # the only item that is read by GetItem
    answers = {"query": {"Items": [], "Count": 0}, "batchgetitem": {"Responses": {}}, "getitem": layout}
    body = json.dumps(answers.get(operation, {})).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def mute(operation: str, writer: asyncio.StreamWriter) -> None:
    """Never respond."""
    await asyncio.sleep(600)


async def slow(operation: str, writer: asyncio.StreamWriter) -> None:
    """Send one byte now and then."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    for _ in range(10000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.1)
