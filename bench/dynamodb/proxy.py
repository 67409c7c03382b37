"""Proxy before a DynamoDB engine, which delays, counts and throttles: python -m bench.dynamodb.proxy --help.

Each connection has one of its own to the engine, so nothing waits but for the delay. What it does can be changed while
it runs, by the operations `Bench.Set` and `Bench.Take` of its own (`Controlled`).
"""

import argparse
import asyncio
import contextlib
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
import uvloop

from bench.dynamodb.limits import Buckets, IndexEntries, Json, Name, Schema, changes_of, item_name, strongly_read
from bench.processes import CHECKOUT, Process, ask
from tests.engines import free_port

TARGET = re.compile(rb"^(x-amz-target: *)([\w.]+)", re.IGNORECASE | re.MULTILINE)
LENGTH = re.compile(rb"^(content-length: *)(\d+)", re.IGNORECASE | re.MULTILINE)
LAST = re.compile(rb"^connection: *close", re.IGNORECASE | re.MULTILINE)
OK = b"HTTP/1.1 200"
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
BUSIEST = 3  # items of a table, and partitions of a table or index, that a count names
THROTTLED = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"


@dataclass(frozen=True)
class Policy:
    """What the proxy does: a delay of each response, the counting of reads, and limits in units a second.

    `item_reads` limits the strong reads of one item, `partition_writes` the writes of one partition of the table or an
    index, which are also attributed to partitions if `writes` is true.
    """

    delay_ms: float = 0.0
    reads: bool = False
    writes: bool = False
    item_reads: float | None = None
    partition_writes: float | None = None


@dataclass(frozen=True)
class Counts:
    """The calls since the last count.

    `rounds` is the length of the longest chain of calls of which each began after the one before had ended: with one
    client, the sum of the rounds of its requests. `items` and `partitions` are the busiest, with their units.
    """

    calls: dict[str, int]
    units: float
    rounds: int
    throttled: int
    items: list[tuple[str, str, int]]
    partitions: list[tuple[str, str, int]]
    full: list[tuple[str, str, int]]
    """The partitions that rejected most, with the number of calls."""

    @property
    def total(self) -> int:
        return sum(self.calls.values())


class Proxy:
    """The calls of all connections."""

    def __init__(self, host: str, port: int, policy: Policy) -> None:
        self._engine = host, port
        self._items, self._partitions = Buckets(), Buckets()
        self._entries: dict[str, IndexEntries] = {}
        self._calls: Counter[str] = Counter()
        self._units = 0.0
        self._rounds = self._throttled = 0
        self.set(policy)

    def set(self, policy: Policy) -> None:
        self._policy = policy
        self._items.rate, self._partitions.rate = policy.item_reads, policy.partition_writes

    def take(self) -> Counts:
        """The counts so far, which begin anew."""
        busiest = [_busiest(one) for one in (self._items.used, self._partitions.used, self._partitions.rejected)]
        counts = Counts(dict(self._calls), self._units, self._rounds, self._throttled, *busiest)
        self._calls.clear()
        self._units, self._rounds, self._throttled = 0.0, 0, 0
        self._items.clear()
        self._partitions.clear()
        return counts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            engine = Engine(*self._engine)
            try:
                while not engine.is_closed:
                    writer.write(await self._answer(*await _message(reader), engine))
                    await writer.drain()
            finally:
                engine.close()
        writer.close()

    async def _answer(self, head: bytes, body: bytes, engine: "Engine") -> bytes:
        found = TARGET.search(head)
        operation = found[2].decode().rpartition(".")[2] if found else ""
        if operation == "Take":
            return _response(200, asdict(self.take()))
        if operation == "Set":
            self.set(Policy(**orjson.loads(body)))
            return _response(200, {})
        self._calls[operation] += 1
        chain = self._rounds + 1
        answer = await self._forward(operation, head, body, engine)
        if self._policy.delay_ms:
            await asyncio.sleep(self._policy.delay_ms / 1000)
        self._rounds = max(self._rounds, chain)
        return answer

    async def _forward(self, operation: str, head: bytes, body: bytes, engine: "Engine") -> bytes:
        policy = self._policy
        if operation in READS and (policy.reads or policy.item_reads):
            return await self._read(head, orjson.loads(body), engine)
        if operation not in READS and (policy.writes or policy.partition_writes):
            return await self._write(operation, head, body, engine)
        return b"".join(await engine.send(head, body))

    async def _read(self, head: bytes, request: Json, engine: "Engine") -> bytes:
        """Forward a read without the keys that are throttled, and count its units."""
        later = [
            (table, key) for table, key in strongly_read(request) if not self._items.take({item_name(table, key): 1})
        ]
        self._throttled += bool(later)
        if later and ("Key" in request or len(later) == _key_count(request)):
            return _response(400, {"__type": THROTTLED, "message": "The reads of an item are above the limit."})
        for table, key in later:
            request["RequestItems"][table]["Keys"].remove(key)
        sent = orjson.dumps({**request, "ReturnConsumedCapacity": "TOTAL"})
        answer, content = await engine.send(_resized(head, len(sent)), sent)
        if not answer.startswith(OK):
            return answer + content
        found = orjson.loads(content)
        consumed = found.get("ConsumedCapacity") or []
        consumed = consumed if isinstance(consumed, list) else [consumed]
        self._units += sum(one["CapacityUnits"] for one in consumed)
        if not later:
            return answer + content
        for table, key in later:
            asked = {**request["RequestItems"][table], "Keys": []}
            found.setdefault("UnprocessedKeys", {}).setdefault(table, asked)["Keys"].append(key)
        return _response(200, found)

    async def _write(self, operation: str, head: bytes, body: bytes, engine: "Engine") -> bytes:
        """Forward a write unless one of its partitions is above its limit."""
        request = orjson.loads(body)
        changes = changes_of(operation, request)
        tables: dict[str, list[Json]] = {}
        for table, change in changes:
            tables.setdefault(table, []).append(change)
        units: Counter[Name] = Counter()
        for table, some in tables.items():
            if table not in self._entries:
                self._entries[table] = IndexEntries(await _schema(table, head, engine))
            units.update(self._entries[table].cost(some, is_transaction=operation.startswith("Transact")))
        if not self._partitions.take(units):
            self._throttled += 1
            return _response(400, _rejection(operation, len(changes)))
        answer, content = await engine.send(head, body)
        if answer.startswith(OK):
            for table, some in tables.items():
                self._entries[table].apply(some)
        return answer + content


class Engine:
    """A connection to the engine, made when it is needed; `is_closed` if the engine has ended one."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.is_closed = False

    async def send(self, head: bytes, body: bytes) -> tuple[bytes, bytes]:
        """The head and body of the response."""
        self._streams = reader, writer = self._streams or await asyncio.open_connection(*self._address)
        writer.write(head + body)
        answer, content = await _message(reader)
        if LAST.search(answer):
            self.is_closed = True
            self.close()
        return answer, content

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
        self._streams = None


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    return head, await reader.readexactly(int(length[2])) if length else b""


async def _schema(table: str, head: bytes, engine: Engine) -> Schema:
    """The schema of a table; `head` is that of a request with credentials."""
    body = orjson.dumps({"TableName": table})
    head = TARGET.sub(rb"\1DynamoDB_20120810.DescribeTable", _resized(head, len(body)))
    _, content = await engine.send(head, body)
    return Schema.of(orjson.loads(content))


def _resized(head: bytes, length: int) -> bytes:
    return LENGTH.sub(rb"\g<1>%d" % length, head)


def _busiest(counter: Counter[Name]) -> list[tuple[str, str, int]]:
    """The names with the largest counts of each table or index."""
    found: list[tuple[str, str, int]] = []
    for where in sorted({where for where, _ in counter}):
        inside = Counter({name: count for name, count in counter.items() if name[0] == where})
        found += [(*name, count) for name, count in inside.most_common(BUSIEST)]
    return found


def _key_count(request: Json) -> int:
    return sum(len(one["Keys"]) for one in request["RequestItems"].values())


def _rejection(operation: str, changes: int) -> Json:
    message = "The writes of a partition are above the limit."
    if not operation.startswith("Transact"):
        return {"__type": THROTTLED, "message": message}
    name = THROTTLED.replace("ProvisionedThroughputExceeded", "TransactionCanceled")
    reasons = [{"Code": "ProvisionedThroughputExceeded"}, *[{"Code": "None"}] * (changes - 1)]
    return {"__type": name, "message": message, "CancellationReasons": reasons}


def _response(status: int, content: Any) -> bytes:
    body = orjson.dumps(content)
    reason = b"OK" if status == 200 else b"Bad Request"
    head = b"HTTP/1.1 %d %b\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n\r\n"
    return head % (status, reason, len(body)) + body


@dataclass(frozen=True)
class Controlled:
    """A proxy as a process of its own, and its control."""

    process: Process

    @classmethod
    def before(cls, engine_url: str) -> "Controlled":
        """A proxy on a free port, which is not started."""
        port = free_port()
        command = (sys.executable, "-m", "bench.dynamodb.proxy", "--engine", engine_url, "--port", str(port))
        return cls(Process(command, f"tcp://127.0.0.1:{port}", {}, CHECKOUT))

    @property
    def url(self) -> str:
        return self.process.url.replace("tcp://", "http://")

    def set(self, policy: Policy = Policy()) -> None:
        """Change what it does, and begin a new count."""
        self._call("Set", asdict(policy))
        self.take()

    def take(self) -> Counts:
        """The counts since the last ones."""
        found: dict[str, Any] = orjson.loads(self._call("Take", {}))
        return Counts(**found)

    def _call(self, operation: str, content: Json) -> bytes:
        return ask(self.url, orjson.dumps(content), headers={"x-amz-target": f"Bench.{operation}"})


async def _run(options: argparse.Namespace) -> None:
    host, port = options.engine.removeprefix("http://").rstrip("/").split(":")
    policy = Policy(options.delay_ms, False, False, options.item_reads, options.partition_writes)
    server = await asyncio.start_server(Proxy(host, int(port), policy).serve, "127.0.0.1", options.port)
    await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.dynamodb.proxy", description=__doc__)
    parser.add_argument("--engine", required=True, metavar="URL", help="URL of the engine, http://HOST:PORT")
    parser.add_argument("--port", type=int, required=True, help="port to listen on, at 127.0.0.1")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="delay of each response, in milliseconds")
    parser.add_argument("--item-reads", type=float, help="strongly consistent reads of one item, a second")
    parser.add_argument("--partition-writes", type=float, help="write units of one partition, a second")
    uvloop.run(_run(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
