"""Meter: sends one request at a time to a server of its own, and measures its cost."""

import asyncio
import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from bench.cost import probe
from bench.cost.measured import Measured
from bench.cost.probe import memory_mb
from tests.servers import Server

CLIENT_SECONDS = 30.0
CPU_SECONDS = 3.0  # after which a request is far past all bounds, and is ended as well
CPU_LOOK_SECONDS = 0.05
READ_BYTES = 64_000_000  # of an answer; its length is known before
HEALTH_SECONDS = 0.1  # between two looks, which cost the server as well; the first is not at once either
PROBE_SECONDS = 2.0
READY_SECONDS = 10.0
COLLECT_ABOVE_MB = 10.0
WARM = (
    '{ location(path: "C000") { name ancestors { id } children(first: 1) { totalCount nodes { id } } } }',
    '{ location(path: "C000") { descendants(first: 2) { nodes { id ancestors { id } history { totalCount } } } } }',
    '{ location(path: "nowhere") { atRevision(n: 1) { id } } }',
)
_CPU_CLOCK = 2  # of a process as a whole, in Linux's numbers for the clocks of others


@dataclass(frozen=True)
class Sent:
    """A request: a query, or the id of a persisted document, with variables."""

    query: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    document_id: str | None = None

    def body(self) -> bytes:
        named = {"query": self.query} if self.document_id is None else {"documentId": self.document_id}
        return orjson.dumps({**named, "variables": self.variables})


class NoAnswer(Exception):
    """The connection ended, or the client timed out."""


class Meter:
    """Meter with one `clade serve`, with these settings; it is restarted after it was killed."""

    def __init__(self, folder: Path, store: str, *, client_seconds: float = CLIENT_SECONDS, **settings: str) -> None:
        self.server = Server(folder, "server", **{"store": store, "writes": "on", **settings})
        self.client_seconds = client_seconds
        self.starts = 0

    @property
    def url(self) -> str:
        return f"{self.server.url}/graphql"

    async def start(self) -> None:
        """Start the server, and send requests that load all modules."""
        await self.server.start(probe.install)
        self.starts += 1
        for query in WARM:
            await self.server.ask(query)

    async def restart(self) -> None:
        """Restart the server with empty caches."""
        self.server.kill()
        await self.start()

    async def close(self) -> None:
        await self.server.close()

    async def measure(self, sent: Sent) -> Measured:
        """Send a request and measure its cost; if it takes too long, the server is killed and restarted."""
        before = await self._ready()
        pid = self.server.pid
        forget_peak(pid)
        cpu, began = cpu_seconds(pid), time.monotonic()
        self._health = 0.0
        health = asyncio.create_task(self._watch_health())
        status, length, ended = await self._send(sent)
        seconds = time.monotonic() - began
        after = None if ended else await self._after(began, seconds)
        used, peak = cpu_seconds(pid) - cpu, memory_mb(pid, "VmHWM") - before["memory_mb"]
        health.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await health
        left = 0.0
        if peak > COLLECT_ABOVE_MB and after is not None:
            left = (await self._probed(collect=True))["memory_mb"] - before["memory_mb"]
        is_lost = after is None or status is None
        if is_lost:
            await self.restart()
        return Measured(
            cpu=used,
            blocked=after["blocked"] if after else used,
            stalled=after["stalled"] if after else seconds,
            health=self._health,
            seconds=seconds,
            peak_mb=max(0.0, peak),
            left_mb=max(0.0, left),
            answer_bytes=length,
            requests=int(after["requests"] - before["requests"]) if after else 0,
            units=after["units"] - before["units"] if after else 0.0,
            status=status,
            ended=after is None,
        )

    async def _ready(self) -> dict[str, float]:
        """The probe's figures before a request, of a new server if this one no longer answers."""
        with contextlib.suppress(OSError, NoAnswer, TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                return await self._probed(collect=True)
        await self.restart()
        return await self._probed(collect=True)

    async def _send(self, sent: Sent) -> tuple[int | None, int, bool]:
        """Status and length of the response, and whether the client ended it: too much time or CPU."""
        asked = asyncio.create_task(self._ask("POST", "/graphql", sent.body()))
        pid = self.server.pid
        end, most = time.monotonic() + self.client_seconds, cpu_seconds(pid) + CPU_SECONDS
        while not asked.done() and time.monotonic() < end and cpu_seconds(pid) < most:
            await asyncio.wait([asked], timeout=CPU_LOOK_SECONDS)
        if not asked.done():
            asked.cancel()
            await asyncio.wait([asked])
            return None, 0, True
        try:
            return *asked.result(), False
        except (OSError, NoAnswer):
            return None, 0, False

    async def _ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, int]:
        async with self._connection() as (reader, writer):
            writer.write(head(method, path, body) + body)
            status, length = await read_head(reader)
            left = min(length, READ_BYTES)
            while left > 0 and (part := await reader.read(1 << 20)):
                left -= len(part)
            return status, length

    async def _probed(self, *, collect: bool = False) -> dict[str, float]:
        async with self._connection() as (reader, writer):
            writer.write(head("GET", probe.PATH + ("?collect" if collect else "")))
            _, length = await read_head(reader)
            figures: dict[str, float] = orjson.loads(await reader.readexactly(length))
            return figures

    async def _after(self, began: float, seconds: float) -> dict[str, float] | None:
        """The probe's figures, None where it does not answer within the client's time."""
        with contextlib.suppress(OSError, NoAnswer, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(max(PROBE_SECONDS, self.client_seconds - seconds)):
                return await self._probed()
        return None

    async def _watch_health(self) -> None:
        """Ask for `/healthz` again and again, and keep the longest wait."""
        while True:
            await asyncio.sleep(HEALTH_SECONDS)
            began = time.monotonic()
            try:
                async with self._connection() as (reader, writer):
                    writer.write(head("GET", "/healthz"))
                    await read_head(reader)
            except (OSError, NoAnswer):
                pass
            finally:
                self._health = max(self._health, time.monotonic() - began)

    @contextlib.asynccontextmanager
    async def _connection(self) -> Any:
        host, port = self.server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            yield reader, writer
        finally:
            writer.close()


def head(method: str, path: str, body: bytes = b"") -> bytes:
    """A request's head, for the answer as the GraphQL over HTTP draft has it, with what was read."""
    return (
        f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nclade-reads: 1\r\n"
        f"accept: application/graphql-response+json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, int]:
    """The status and the length of an answer."""
    try:
        told = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    except asyncio.IncompleteReadError as error:
        raise NoAnswer from error
    found = re.search(r"\r\ncontent-length: (\d+)", told)
    return int(told.split(" ", 2)[1]), int(found[1]) if found else 0


def forget_peak(pid: int) -> None:
    """Make the most memory that a process has had that of now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """The CPU that another process has used so far."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
