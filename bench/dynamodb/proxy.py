"""Proxy before a DynamoDB engine, which delays and counts: python -m bench.dynamodb.proxy ENGINE_URL PORT.

Each connection has one of its own to the engine, so nothing waits but for the delay, which each response gets
regardless of the others. `Bench.Set` changes the delay while it runs, `Bench.Take` returns the counts (`Controlled`).
"""

import asyncio
import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import orjson
import uvloop

from bench import processes
from bench.processes import Process, ask
from tests.ports import free_port

TARGET = re.compile(rb"^(x-amz-target: *)([\w.]+)", re.IGNORECASE | re.MULTILINE)
LENGTH = re.compile(rb"^(content-length: *)(\d+)", re.IGNORECASE | re.MULTILINE)
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


@dataclass(frozen=True)
class Counts:
    """The calls and read units since the last count.

    `rounds` is the length of the longest chain of calls of which each began after the one before had ended: with one
    client, the sum of the rounds of its requests.
    """

    calls: dict[str, int]
    units: float
    rounds: int


class Proxy:
    """The calls of all connections."""

    def __init__(self, host: str, port: int) -> None:
        self._engine = host, port
        self._delay_ms = self._units = 0.0
        self._calls: Counter[str] = Counter()
        self._rounds = 0

    def _take(self) -> Counts:
        """The counts so far, which begin anew."""
        counts = Counts(dict(self._calls), self._units, self._rounds)
        self._calls.clear()
        self._units, self._rounds = 0.0, 0
        return counts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            engine_reader, engine = await asyncio.open_connection(*self._engine)
            try:
                while True:
                    head, body = await _message(reader)
                    found = TARGET.search(head)
                    operation = found[2].decode().rpartition(".")[2] if found else ""
                    if operation == "Take":
                        writer.write(_response(asdict(self._take())))
                    elif operation == "Set":
                        self._delay_ms = orjson.loads(body)["delay_ms"]
                        writer.write(_response({}))
                    else:
                        writer.write(await self._forward(operation, head, body, engine_reader, engine))
                    await writer.drain()
            finally:
                engine.close()
        writer.close()

    async def _forward(
        self, operation: str, head: bytes, body: bytes, reader: asyncio.StreamReader, engine: asyncio.StreamWriter
    ) -> bytes:
        """The response of the engine, after the delay; a read is asked for its units."""
        self._calls[operation] += 1
        chain = self._rounds + 1
        if operation in READS:
            body = orjson.dumps({**orjson.loads(body), "ReturnConsumedCapacity": "TOTAL"})
            head = LENGTH.sub(rb"\g<1>%d" % len(body), head)
        engine.write(head + body)
        answer, content = await _message(reader)
        if operation in READS and answer.startswith(b"HTTP/1.1 200"):
            consumed = orjson.loads(content).get("ConsumedCapacity") or []
            self._units += sum(one["CapacityUnits"] for one in (consumed if isinstance(consumed, list) else [consumed]))
        if self._delay_ms:
            await asyncio.sleep(self._delay_ms / 1000)
        self._rounds = max(self._rounds, chain)
        return answer + content


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    return head, await reader.readexactly(int(length[2])) if length else b""


def _response(content: Any) -> bytes:
    body = orjson.dumps(content)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


@dataclass(frozen=True)
class Controlled:
    """A running proxy, and its control."""

    engine_url: str
    url: str

    def delay(self, milliseconds: float) -> None:
        """Change the delay, and begin a new count."""
        self._call("Set", {"delay_ms": milliseconds})
        self.take()

    def take(self) -> Counts:
        """The counts since the last ones."""
        return Counts(**orjson.loads(self._call("Take", {})))

    def _call(self, operation: str, content: dict[str, float]) -> bytes:
        return ask(self.url, orjson.dumps(content), headers={"x-amz-target": f"Bench.{operation}"})


@contextmanager
def engine_and_proxy() -> Iterator[Controlled]:
    """An engine and a proxy before it, until the block ends. Raises Silent where there is no engine."""
    port = free_port()
    with processes.engine() as engine:
        command = (sys.executable, "-m", "bench.dynamodb.proxy", engine.url, str(port))
        with Process(command, f"tcp://127.0.0.1:{port}"):
            yield Controlled(engine.url, f"http://127.0.0.1:{port}")


async def _run(engine_url: str, port: int) -> None:
    host, engine_port = engine_url.removeprefix("http://").rstrip("/").split(":")
    server = await asyncio.start_server(Proxy(host, int(engine_port)).serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_run(sys.argv[1], int(sys.argv[2])))
