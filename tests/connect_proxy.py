"""HTTP proxy with CONNECT only, as at the edge of a company network."""

import asyncio

from tests.loopback_server import LoopbackServer


class Tunnel(LoopbackServer):
    """Proxy on a free loopback port; `opened` are the requested hosts; with `to` it opens that one instead."""

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
