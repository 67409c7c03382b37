"""HTTP proxy in front of an engine: it records calls and injects faults. Without an engine it stands in for one.

async with Proxy(engine.url) as proxy:
    proxy.spoil("Query", throttled, status(500))   # the next two Query calls, one after the other
    …
    assert proxy.count("Query") == 3
"""

import asyncio
import contextlib
import json
import random
import ssl
import threading
from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.engines import KEY_PAIR

THREAD_SECONDS = 60.0  # at most until a proxy is open, or closed, on a busy machine
_WRITES = {"TransactWriteItems", "BatchWriteItem", "PutItem", "DeleteItem"}


class HTTPServer:
    """Listens on the loopback, on a free port unless one is given, for as long as it is open."""

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self._tls, self.port = tls, port
        self.url = ""

    @abstractmethod
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The response to any request."""

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self.answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


@dataclass(frozen=True)
class Call:
    """One call as it came: the operation's name (`Query`), its body, its headers and its connection."""

    operation: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    transport: asyncio.Transport


Forward = Callable[[dict[str, Any]], Awaitable[web.Response]]
Fault = Callable[[Call, Forward], Awaitable[web.Response]]


async def passed(call: Call, forward: Forward) -> web.Response:
    """Forward the call."""
    return await forward(call.body)


class Proxy(HTTPServer):
    """`calls` are all that came so far, `running` is the number of those that are being answered.

    Calls for which no fault waits get the `usual` one.
    """

    def __init__(
        self, target: str = "", tls: ssl.SSLContext | None = None, port: int = 0, usual: Fault = passed
    ) -> None:
        super().__init__(tls, port)
        self.target, self.usual = target, usual
        self.calls: list[Call] = []
        self.running = 0
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)

    def spoil(self, operation: str, *faults: Fault) -> None:
        """Inject these faults into the next calls of an operation, one each."""
        self._faults[operation].extend(faults)

    def mend(self) -> None:
        """Inject no more faults."""
        self._faults.clear()

    @property
    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    def count(self, operation: str) -> int:
        """The number of calls of an operation."""
        return self.operations.count(operation)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        return await super().__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        await self._session.close()

    async def send(self, target: str, body: dict[str, Any], headers: Mapping[str, str]) -> web.Response:
        """Send a body to an engine, signed anew: the host and perhaps the body are not those that were signed."""
        content = json.dumps(body).encode()
        named = {name: headers[name] for name in ("Content-Type", "X-Amz-Target") if name in headers}
        request = AWSRequest("POST", target, named, content)
        SigV4Auth(Credentials(*KEY_PAIR.values()), "dynamodb", "eu-west-1").add_auth(request)
        async with self._session.post(target, data=content, headers=dict(request.headers)) as answer:
            return _response(answer.status, await answer.read())

    async def answer(self, request: web.Request) -> web.StreamResponse:
        operation = request.headers["X-Amz-Target"].rpartition(".")[2]
        assert request.transport is not None
        call = Call(operation, json.loads(await request.read()), request.headers, request.transport)
        self.calls.append(call)
        waiting = self._faults[operation]
        self.running += 1
        try:
            fault = waiting.popleft() if waiting else self.usual
            return await fault(call, lambda body: self.send(self.target, body, call.headers))
        except ConnectionAbortedError:
            call.transport.close()
            return Silence()
        finally:
            self.running -= 1


class Silence(web.Response):
    """A response of which nothing is written, besides what was written to the transport."""

    keep_alive = True

    async def prepare(self, request: web.BaseRequest) -> None: ...

    async def write_eof(self, data: bytes = b"") -> None: ...


class LateIndexes(Proxy):
    """Proxy that answers index queries from a second table, which gets every change `lag` seconds after the first, as
    indexes and weak reads of DynamoDB may trail behind a table.

    So many of a hundred weak reads of the table are answered from there as well; `late` is how many reads were.
    Where the second table falls behind, as on a busy machine, its reads wait: none is later than `lag`.
    """

    def __init__(self, table: str, indexes: str, lag: float, *, weak: int = 0) -> None:
        super().__init__(table, usual=self._late)
        self._indexes, self.lag, self._weak = indexes, lag, weak
        self.late = 0
        self._random = random.Random(0)  # noqa: S311 - no secret
        self._changes: list[tuple[float, asyncio.Task[None]]] = []  # with the times at which they are due

    async def __aexit__(self, *error: object) -> None:
        for _, change in self._changes:
            change.cancel()
        await super().__aexit__(*error)

    @property
    def is_current(self) -> bool:
        """Whether the second table has all changes."""
        return all(change.done() for _, change in self._changes)

    async def _late(self, call: Call, forward: Forward) -> web.Response:
        now = asyncio.get_running_loop().time()
        if self._random.randrange(100) < self._share(call):
            self.late += 1
            if overdue := [change for due, change in self._changes if due <= now]:
                await asyncio.shield(overdue[-1])
            return await self.send(self._indexes, call.body, call.headers)
        answer = await forward(call.body)
        is_of_table = call.operation in ("CreateTable", "UpdateTimeToLive")
        if answer.status == 200 and (is_of_table or call.operation in _WRITES):
            due = asyncio.get_running_loop().time() + (0.0 if is_of_table else self.lag)
            before = self._changes[-1][1] if self._changes else None
            self._changes = [one for one in self._changes if not one[1].done() or one[1].exception()]
            self._changes.append((due, asyncio.create_task(self._repeat(call, due, before))))
        return answer

    async def _repeat(self, call: Call, due: float, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        answer = await self.send(self._indexes, call.body, call.headers)
        assert answer.status == 200, answer.body

    def _share(self, call: Call) -> int:
        """How many of a hundred such calls are answered late: none that sees all acknowledged writes."""
        if call.operation == "BatchGetItem":
            is_strong = all(asked.get("ConsistentRead") for asked in call.body["RequestItems"].values())
        else:
            is_strong = call.operation != "Query" or bool(call.body.get("ConsistentRead"))
        return 0 if is_strong else 100 if "IndexName" in call.body else self._weak


P = TypeVar("P", bound=Proxy)


@contextlib.contextmanager
def in_thread(proxy: P) -> Iterator[P]:
    """The proxy, open in a thread of its own until the block ends, for tests that are not asynchronous."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(THREAD_SECONDS)

    run(proxy.__aenter__())
    try:
        yield proxy
    finally:
        run(proxy.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _response(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/x-amz-json-1.0")


# -- what can go wrong -------------------------------------------------------------------------------------------------


def refused(name: str, status: int = 400, **more: Any) -> Fault:
    """Return an error of DynamoDB with this name."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{name}", "message": "spoiled by a test", **more}
        return _response(status, json.dumps(body).encode())

    return fault


throttled = refused("ProvisionedThroughputExceededException")


def cancelled(*reasons: str) -> Fault:
    """Cancel a transaction for these reasons, one for each change."""
    return refused("TransactionCanceledException", CancellationReasons=[{"Code": reason} for reason in reasons])


def status(code: int) -> Fault:
    """Return a response that is not DynamoDB's, as of a load balancer."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        return web.Response(status=code, text="<html><body>out of order</body></html>", content_type="text/html")

    return fault


def changed(change: Callable[[bytes], bytes]) -> Fault:
    """Return the response with its body changed."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        answer = await forward(call.body)
        assert isinstance(answer.body, bytes)
        return _response(answer.status, change(answer.body))

    return fault


garbled = changed(lambda body: body[: len(body) // 2])  # half of it
scrambled = changed(lambda body: body.replace(b'":"', b'":"\xff'))  # with a byte in each text that is not UTF-8
no_object = changed(lambda body: b"[null]")


async def cut(call: Call, forward: Forward) -> web.Response:
    """Return half of the response, and close the connection where the other half is expected."""
    answer = await forward(call.body)
    assert isinstance(answer.body, bytes)
    half = answer.body[: len(answer.body) // 2]
    response = web.Response(status=answer.status, body=half, headers={"Content-Length": str(len(answer.body))})
    response.force_close()
    return response


async def miscounted(call: Call, forward: Forward) -> web.Response:
    """Return the response without one byte, so that its checksum is wrong."""
    answer = await forward(call.body)
    answer.headers["x-amz-crc32"] = "1"
    return answer


async def dropped(call: Call, forward: Forward) -> web.Response:
    """Close the connection before the engine gets the call."""
    raise ConnectionAbortedError


async def answer_dropped(call: Call, forward: Forward) -> web.Response:
    """Forward the call, and close the connection before the response."""
    await forward(call.body)
    raise ConnectionAbortedError


def delayed(seconds: float) -> Fault:
    async def fault(call: Call, forward: Forward) -> web.Response:
        await asyncio.sleep(seconds)
        return await forward(call.body)

    return fault


async def mute(call: Call, forward: Forward) -> web.Response:
    """Never respond."""
    await asyncio.Event().wait()
    raise AssertionError


async def slow(call: Call, forward: Forward) -> web.Response:
    """Send one byte of a response now and then."""
    call.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    while not call.transport.is_closing():
        call.transport.write(b" ")
        await asyncio.sleep(0.1)
    return Silence()


def raw(content: bytes) -> Fault:
    """Send these bytes, which may be no HTTP, in place of a response."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        call.transport.write(content)
        return Silence()

    return fault


def unprocessed(answered: int) -> Fault:
    """Return only so many keys of a BatchGetItem, the others as unprocessed."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        ((table, asked),) = call.body["RequestItems"].items()
        now, later = asked["Keys"][:answered], asked["Keys"][answered:]
        rest = {table: {**asked, "Keys": later}} if later else {}
        if not now:
            return _response(200, json.dumps({"Responses": {}, "UnprocessedKeys": rest}).encode())
        answer = await forward({**call.body, "RequestItems": {table: {**asked, "Keys": now}}})
        assert isinstance(answer.body, bytes)
        return _response(answer.status, json.dumps({**json.loads(answer.body), "UnprocessedKeys": rest}).encode())

    return fault
