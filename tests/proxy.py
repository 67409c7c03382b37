"""HTTP proxy in front of an engine: it records calls and injects faults.

async with Proxy(engine.url) as proxy:
    proxy.spoil("Query", throttled, status(500))   # the next two Query calls, one after the other
    …
    assert proxy.count("Query") == 3
"""

import asyncio
import contextlib
import json
import ssl
import threading
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


@dataclass(frozen=True)
class Call:
    """One call as it came: the operation's name (`Query`), its body, and its headers."""

    operation: str
    body: dict[str, Any]
    headers: Mapping[str, str]


Forward = Callable[[dict[str, Any]], Awaitable[web.Response]]
Fault = Callable[[Call, Forward], Awaitable[web.Response]]


class Proxy:
    """Listens on the loopback, on a free port unless one is given, for as long as it is open.

    `calls` are all that came so far, `running` is the number of those that are being answered.
    """

    def __init__(self, target: str, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.target = target
        self._tls = tls
        self._port = port
        self.url = ""
        self.calls: list[Call] = []
        self.running = 0
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)

    def spoil(self, operation: str, *faults: Fault) -> None:
        """Inject these faults into the next calls of an operation, one each."""
        self._faults[operation].extend(faults)

    def mend(self) -> None:
        """Inject no more faults."""
        self._faults.clear()

    def count(self, operation: str) -> int:
        """The number of calls of an operation."""
        return sum(call.operation == operation for call in self.calls)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_post("/", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def fault_for(self, call: Call) -> Fault:
        """The fault of a call."""
        waiting = self._faults[call.operation]
        return waiting.popleft() if waiting else passed

    def target_of(self, call: Call) -> str:
        """The engine that a call is forwarded to."""
        return self.target

    def sent(self, call: Call, body: dict[str, Any], headers: dict[str, str], answer: web.Response) -> None:
        """Hook after a call was forwarded."""

    async def send(self, target: str, body: dict[str, Any], headers: dict[str, str]) -> web.Response:
        """Send a body to an engine, signed anew: the host and perhaps the body are not those that were signed."""
        content = json.dumps(body).encode()
        async with self._session.post(target, data=content, headers=_signed(target, content, headers)) as answer:
            return _response(answer.status, await answer.read())

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        operation = request.headers["X-Amz-Target"].rpartition(".")[2]
        call = Call(operation, json.loads(await request.read()), request.headers)
        self.calls.append(call)

        async def forward(body: dict[str, Any]) -> web.Response:
            names = ("Content-Type", "X-Amz-Target", "X-Amz-Date", "Authorization")
            headers = {name: request.headers[name] for name in names if name in request.headers}
            answer = await self.send(self.target_of(call), body, headers)
            self.sent(call, body, headers, answer)
            return answer

        self.running += 1
        try:
            return await self.fault_for(call)(call, forward)
        except ConnectionAbortedError:
            assert request.transport is not None
            request.transport.close()
            return web.Response(status=500)
        finally:
            self.running -= 1


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


def _signed(target: str, body: bytes, headers: dict[str, str]) -> dict[str, str]:
    named = {name: text for name, text in headers.items() if name in ("Content-Type", "X-Amz-Target")}
    request = AWSRequest("POST", target, named, body)
    SigV4Auth(Credentials(*KEY_PAIR.values()), "dynamodb", "eu-west-1").add_auth(request)
    return dict(request.headers)


def _response(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/x-amz-json-1.0")


# -- what can go wrong -------------------------------------------------------------------------------------------------


async def passed(call: Call, forward: Forward) -> web.Response:
    """Forward the call."""
    return await forward(call.body)


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


async def garbled(call: Call, forward: Forward) -> web.Response:
    """Return half of the response."""
    answer = await forward(call.body)
    assert isinstance(answer.body, bytes)
    return _response(answer.status, answer.body[: len(answer.body) // 2])


async def cut(call: Call, forward: Forward) -> web.Response:
    """Return half of the response, and close the connection where the other half is expected."""
    answer = await forward(call.body)
    assert isinstance(answer.body, bytes)
    half = answer.body[: len(answer.body) // 2]
    response = web.Response(status=answer.status, body=half, headers={"Content-Length": str(len(answer.body))})
    response.force_close()
    return response


async def scrambled(call: Call, forward: Forward) -> web.Response:
    """Return the response with a byte in a text that is not UTF-8."""
    answer = await forward(call.body)
    assert isinstance(answer.body, bytes)
    return _response(answer.status, answer.body.replace(b'":"', b'":"\xff'))


async def no_object(call: Call, forward: Forward) -> web.Response:
    """Return JSON that DynamoDB would not."""
    return _response((await forward(call.body)).status, b"[null]")


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
