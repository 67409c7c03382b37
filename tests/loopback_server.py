"""Servers of raw connections on a free port, which are ended with them; one is a proxy, as at a company's edge."""

import asyncio
import contextlib
from typing import Self


class LoopbackServer:
    """Serves each connection by `serve`, which ends where the client leaves; listens as long as it is open."""

    def __init__(self) -> None:
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Close the connection; subclasses read and answer."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self.serve(reader, writer)
        finally:
            writer.close()


class Tunnel(LoopbackServer):
    """HTTP proxy with CONNECT only; `opened` are the requested hosts; with `to` it opens that one instead."""

    def __init__(self, to: str = "") -> None:
        super().__init__()
        self._to = to
        self.opened: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split(" ", 2)
        assert method == "CONNECT", head
        self.opened.append(target)
        host, _, port = (self._to or target).rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
