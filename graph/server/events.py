"""Event streams: subscriptions, and single responses, as server-sent events by the GraphQL over SSE protocol.

Distinct connections mode: each operation has its own connection, with `next` events and then `complete`.
https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md

The `id` of an event is its cursor: a client that reconnects sends it as Last-Event-ID, and continues after it. So a
stream that cannot continue on this server, because the server stops or the client does not read, ends without
`complete`: clients treat that as a lost connection, and reconnect.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Send

from graph.errors import (
    INTERNAL,
    INTERNAL_MESSAGE,
    OVERLOADED,
    TIMEOUT,
    UNAVAILABLE,
    Header,
    RequestRejected,
    error_body,
    log_unexpected,
)
from graph.execution.operation import Execution
from graph.execution.response import OperationResponse
from graph.observability.logs import RequestInfo, codes_of
from graph.operation.document import GraphQLRequest
from graph.server.lifecycle import GracefulShutdown
from graph.server.parsing import EVENT_STREAM
from graph.server.sending import (
    NO_STORE,
    RETRY_AFTER,
    VARY,
    ClientDisconnected,
    ConcurrencyLimiter,
    DisconnectWatcher,
    ResponseSender,
)
from resolvers.access.callers import Caller
from resolvers.changes import ChangeFollower, ChangeListener, ChangePage

HEADERS: list[Header] = [
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    NO_STORE,
    VARY,
    (b"x-accel-buffering", b"no"),  # nginx would gather events until its buffer is full
]
LAST_EVENT_ID = b"last-event-id"
HEARTBEAT = b":\n\n"
COMPLETE = b"event: complete\ndata: \n\n"  # browsers ignore an event without data

MAX_STREAMS = 1_000  # of one process: a change that all of them see takes 0.9 s of CPU
HEARTBEAT_SECONDS = 15.0  # without an event; proxies and load balancers close connections after 30 s or more
PAGE_SECONDS = 0.1  # at least between two pages of a stream that catches up
MAX_PAGES = 16  # being made at a time: a change wakes all streams of its tree, which take turns
UNREAD_SECONDS = 60.0  # for so long a client may leave an event unread
LAST_SECONDS = 1.0  # for the end of a stream when the server stops
RETRIED = frozenset({UNAVAILABLE, TIMEOUT})
RETRY_SECONDS = 5.0  # after a page that could not be read

Authenticate = Callable[[], Awaitable[Caller]]
"""Finds the caller of a request by its credential, as it is now. Raises RequestRejected."""


class EventStreams:
    """The event streams of one process. `open` is their number, `sent` that of all events of subscriptions so far."""

    def __init__(
        self,
        execution: Execution,
        follower: ChangeFollower,
        limiter: ConcurrencyLimiter,
        drain: GracefulShutdown,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        """`heartbeat_seconds` is the time without an event after which a stream sends a comment, and its credential is
        checked again.
        """
        self.open = self.sent = 0
        self.execution, self.limiter = execution, limiter
        self.heartbeat_seconds = heartbeat_seconds
        self.page_turns = asyncio.Semaphore(MAX_PAGES)
        self.follower, self.drain = follower, drain
        self._ends: set[asyncio.Timeout] = set()
        drain.on_stop.append(self.end_all)

    def end_all(self) -> None:
        """End all streams: the server stops."""
        for end in self._ends:
            if not end.expired():
                end.reschedule(0)  # in the past

    async def follow(
        self,
        request: GraphQLRequest,
        receive: Receive,
        send: Send,
        info: RequestInfo,
        authenticate: Authenticate,
        sender: ResponseSender,
    ) -> None:
        """Send the events of a subscription until it ends. Raises RequestRejected before the response begins.

        Raises ClientDisconnected, also for a client that does not read.
        """
        if info.method == "HEAD":
            raise RequestRejected(405, "HEAD opens no event stream; send POST or GET.")
        resume = info.headers.get(LAST_EVENT_ID, b"").decode("latin-1")
        with self._place(), self.follower.listening(resume or None) as listener:
            stream = _Stream(self, request, send, info, authenticate, listener, sender)
            async with DisconnectWatcher(receive):
                try:
                    async with asyncio.timeout(None) as end:
                        self._ends.add(end)
                        try:
                            await stream.run()
                        finally:
                            self._ends.discard(end)
                except TimeoutError:
                    if not end.expired():
                        raise
                    await stream.cut()

    @contextmanager
    def _place(self) -> Iterator[None]:
        """One of the streams that may be open. Raises RequestRejected if there is none."""
        if self.drain.draining:
            raise _stopping()
        if self.open >= MAX_STREAMS:
            message = f"The server has its maximum of {MAX_STREAMS:,} event streams; retry later."
            raise RequestRejected(503, message, RETRY_AFTER, code=OVERLOADED)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


@dataclass
class _Stream:
    """One subscription and its connection; it reports the reads of all pages, as a Context those of one operation."""

    how = "streamed"
    _streams: EventStreams
    _request: GraphQLRequest
    _client: Send
    _info: RequestInfo
    _authenticate: Authenticate
    _listener: ChangeListener
    _sender: ResponseSender
    _reads: Counter[str] = field(default_factory=Counter)
    _has_begun: bool = False
    _beat_at: float = 0.0  # by the loop's clock

    async def run(self) -> None:
        """Send pages until the client disconnects or an error ends the stream."""
        with self._streams.limiter:
            response = await self._page(self._info.caller)
        if (codes := codes_of(response.body.get("errors", ()))) and not RETRIED.isdisjoint(codes):
            raise RequestRejected(503, response.body["errors"][0]["message"], RETRY_AFTER, code=codes[0])
        self._has_begun = True
        self._info.events = 0
        self._delay_heartbeat()
        await self._client({"type": "http.response.start", "status": 200, "headers": HEADERS})
        try:
            while self._listener.page is not None and "errors" not in response.body:
                await self._send_page(response, self._listener.page)
                del response  # its data need not be held while the stream waits
                response = await self._next()
            self._info.codes = codes_of(response.body.get("errors", ()))
            await self._end(response.content())
        except RequestRejected as error:  # the credential is no longer valid
            self._info.codes, self._info.reason = (error.code,), error.reason
            await self._end(error_body(str(error), error.code))
        except ClientDisconnected:
            raise
        except Exception as error:  # handled here, because the response has begun
            log_unexpected(error)
            self._info.codes = (INTERNAL,)
            await self._end(error_body(INTERNAL_MESSAGE, INTERNAL))

    async def cut(self) -> None:
        """End the connection without `complete`, or answer that the server stops."""
        if not self._has_begun:
            raise _stopping()
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self._client({"type": "http.response.body", "body": b""})
        except TimeoutError:
            return  # the client does not read

    async def _page(self, caller: Caller) -> OperationResponse:
        """The response with the next page. Raises RequestRejected."""
        execution = self._streams.execution
        response = await execution.answer(
            execution.requests.prepare(self._request),  # whose document need not be held while the stream waits
            caller=caller,
            allow_mutations=False,
            observed=self._info,
            listener=self._listener,
        )
        for name, value in self._info.context.reads_report().items():
            self._reads[name] += value
        self._info.context = self
        return response

    def reads_report(self) -> dict[str, Any]:
        return self._reads

    async def _next(self) -> OperationResponse:
        """The response with a page of new changes or with an error. Raises RequestRejected for the credential."""
        due = asyncio.get_running_loop().time() + PAGE_SECONDS
        while True:
            await self._news(due)
            try:
                async with self._streams.page_turns:
                    response = await self._page(await self._authenticate())
                if RETRIED.isdisjoint(codes_of(response.body.get("errors", ()))):
                    return response
            except RequestRejected as error:
                if error.status != 503:
                    raise
            due = asyncio.get_running_loop().time() + RETRY_SECONDS

    async def _news(self, due: float) -> None:
        """Wait for news, at least until `due`, and send a heartbeat when nothing was sent for a while.

        Pages in which the caller sees nothing do not count, or the times of heartbeats would show hidden changes.
        """
        while True:
            try:
                async with asyncio.timeout_at(self._beat_at):
                    await asyncio.sleep(due - asyncio.get_running_loop().time())
                    return await self._listener.has_news()
            except TimeoutError:
                try:
                    await self._authenticate()
                except RequestRejected as error:
                    if error.status != 503:
                        raise
                await self._send(HEARTBEAT)

    async def _send_page(self, response: OperationResponse, page: ChangePage) -> None:
        """Send a page, unless it is empty for the caller; an empty page only once, if there are no more."""
        if page.changes or not (self._info.events or page.has_more):
            await self._send(event_of(response.content(), page.cursor))
            self._info.events = (self._info.events or 0) + 1
            self._streams.sent += 1
        self._listener.take()

    def _delay_heartbeat(self) -> None:
        self._beat_at = asyncio.get_running_loop().time() + self._streams.heartbeat_seconds

    async def _end(self, content: bytes) -> None:
        await self._send(event_of(content) + COMPLETE, more=False)

    async def _send(self, content: bytes, *, more: bool = True) -> None:
        """Send a part of the body. Raises ClientDisconnected if the client does not read it."""
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                if not await self._sender.send(self._client, content, more=more):
                    raise ClientDisconnected
            self._delay_heartbeat()
        except TimeoutError:
            raise ClientDisconnected from None


async def send_single(send: Send, sender: ResponseSender, info: RequestInfo, response: OperationResponse) -> None:
    """Send a whole response as a stream of one event."""
    info.tell(response.body.get("errors", ()))
    body = event_of(response.content()) + COMPLETE
    headers = [*HEADERS, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await sender.send(send, body)


def event_of(content: bytes, event_id: str = "") -> bytes:
    """A `next` event of a response as JSON, which has no line breaks."""
    numbered = f"id: {event_id}\n" if event_id else ""
    return b"event: next\n%sdata: %s\n\n" % (numbered.encode(), content)


def _stopping() -> RequestRejected:
    return RequestRejected(503, "The server is stopping; retry.", RETRY_AFTER, code=UNAVAILABLE)
