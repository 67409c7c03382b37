"""A proxy between servers and a DynamoDB engine: it throttles, drops, cuts, delays and garbles, or answers late."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

THROTTLE, DROP_BEFORE, DROP_AFTER, CUT, LATE, SLOW = "throttle", "drop before", "drop after", "cut", "late", "slow"
GARBLE, ERROR_BEFORE, ERROR_AFTER, PAGE = "garble", "error before", "error after", "page of a load balancer"
FAULTS = (THROTTLE, DROP_BEFORE, DROP_AFTER, CUT, LATE, SLOW, GARBLE, ERROR_BEFORE, ERROR_AFTER, PAGE)
TYPES = "com.amazonaws.dynamodb.v20120810#"


@dataclass(frozen=True)
class Call:
    """One request to the engine."""

    operation: str
    head: bytes
    body: bytes

    @property
    def is_write(self) -> bool:
        return "Write" in self.operation or self.operation in ("PutItem", "UpdateItem", "DeleteItem")


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes

    @property
    def bytes(self) -> bytes:
        head = f"HTTP/1.1 {self.status} X\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: "
        return f"{head}{len(self.body)}\r\n\r\n".encode() + self.body


Handle = Callable[[Call, Callable[[], Awaitable[Reply]]], Awaitable[Reply | bytes | None]]


class EngineProxy:
    """Listens on a port of its own; `handle` decides about each call: a reply, raw bytes and a close, or a close."""

    def __init__(self, engine_port: int, handle: Handle) -> None:
        self._engine_port, self._handle = engine_port, handle
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0
        self.running = 0
        self.calls: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "EngineProxy":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**25))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        server.close()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (call := await _call(reader)) is not None:
                self.running += 1
                try:
                    reply = await self._handle(call, lambda call=call: self._forward(call))  # type: ignore[misc]
                finally:
                    self.running -= 1
                if reply is None:
                    return
                writer.write(reply.bytes if isinstance(reply, Reply) else reply)
                await writer.drain()
                if isinstance(reply, bytes):
                    return
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _forward(self, call: Call) -> Reply:
        self.calls[call.operation] += 1
        reader, writer = await asyncio.open_connection("127.0.0.1", self._engine_port, limit=2**25)
        try:
            writer.write(call.head + call.body)
            head, body = await _message(reader)
            return Reply(int(head.split(b" ", 2)[1]), body)
        finally:
            writer.close()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    headers = head.decode("latin-1").lower()
    assert "transfer-encoding" not in headers, headers
    length = next((int(line[15:]) for line in headers.split("\r\n") if line.startswith("content-length:")), 0)
    return head, await reader.readexactly(length)


async def _call(reader: asyncio.StreamReader) -> Call | None:
    try:
        head, body = await _message(reader)
    except asyncio.IncompleteReadError:
        return None
    named = [line for line in head.decode("latin-1").split("\r\n") if line.lower().startswith("x-amz-target:")]
    return Call(named[0].split(".")[-1].strip() if named else "", head, body)


async def fault(kind: str, call: Call, forward: Callable[[], Awaitable[Reply]], seconds: float) -> Reply | bytes | None:
    """A reply with a fault, before or after the call reached the engine."""
    if kind == THROTTLE:
        return _throttled(call)
    if kind == ERROR_BEFORE:
        return _error(500, "InternalServerError")
    if kind == DROP_BEFORE:
        return None
    if kind == SLOW:
        await asyncio.sleep(seconds)
        return await forward()
    reply = await forward()
    if kind == LATE:
        await asyncio.sleep(seconds)
        return reply
    if kind == ERROR_AFTER:
        return _error(503, "ServiceUnavailable")
    if kind == PAGE:
        return Reply(502, b"<html><body>Bad gateway</body></html>")
    if kind == GARBLE:
        return Reply(reply.status, b"\xff" + reply.body[1:])
    return reply.bytes[: len(reply.bytes) - len(reply.body) // 2 - 1] if kind == CUT else None


def _throttled(call: Call) -> Reply:
    if call.operation != "TransactWriteItems":
        return _error(400, "ProvisionedThroughputExceededException")
    reasons = [{"Code": "ThrottlingError", "Message": "Throughput exceeds the current capacity of your table."}]
    reasons += [{"Code": "None"} for _ in json.loads(call.body)["TransactItems"][1:]]
    return _error(400, "TransactionCanceledException", CancellationReasons=reasons)


def _error(status: int, code: str, **more: object) -> Reply:
    return Reply(status, json.dumps({"__type": TYPES + code, "message": "An injected fault.", **more}).encode())
