"""Endpoint of GraphQL: an operation read from a request and its response, by the GraphQL over HTTP draft.

Clients that accept events get them (`graph/server/events.py`), from the same requests. A rejected request also gets a
JSON response, with `errors` and without `data`.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from graphql import GraphQLError
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.auth.authentication import Authenticator
from graph.errors import (
    INTERNAL,
    INTERNAL_MESSAGE,
    ITEM_MESSAGE,
    STORE_MESSAGE,
    UNAVAILABLE,
    Header,
    RequestRejected,
    error_body,
    log_unexpected,
    log_unreadable,
)
from graph.execution.operation import TRACED, Execution, MutationNotAllowed, SubscriptionNotAllowed
from graph.execution.response import CachePolicy, OperationResponse, rejected
from graph.observability.logs import KEY, RequestInfo
from graph.operation.document import GraphQLRequest, PersistedDocuments, UnknownDocument, read_trusted
from graph.operation.prepared import Prepared, Read
from graph.server.compression import GZIPPED, MIN_BYTES, Compressor, accepts_gzip, max_received, read_body, too_large
from graph.server.events import EventStreams, send_single
from graph.server.handler import MAX_IGNORED_BYTES, is_preflight, wrong_origin
from graph.server.pages import matches, tag_of_form
from graph.server.parsing import EVENT_STREAM, GRAPHQL, HTML, JSON, choose, is_json, read_json, read_query_string
from graph.server.sending import (
    BODY,
    CLOSE,
    NO_STORE,
    RECEIVED,
    VARY,
    ClientDisconnected,
    ConcurrencyLimiter,
    DisconnectWatcher,
    ResponseSender,
)
from graph.settings import Settings
from resolvers.access.callers import Caller
from store.concurrency import EagerCoroutine, in_task, within
from store.errors import DamagedItem, Unavailable

ALLOWED = (b"allow", b"GET, HEAD, POST")
ALLOWED_FOR_MUTATIONS = (b"allow", b"POST")
CONTENT_TYPES = {type_: (b"content-type", f"{type_}; charset=utf-8".encode()) for type_ in (GRAPHQL, JSON)}
READS_HEADER = b"clade-reads"
REPORTS = {b"1": 1, b"2": TRACED}
CACHE_TAGS_HEADER = b"clade-cache-tags"
MEDIA_TYPES = (GRAPHQL, JSON, EVENT_STREAM)
NOT_ACCEPTED = f"The Accept header allows neither {GRAPHQL} nor {JSON} nor {EVENT_STREAM}; accept one of them."
REQUEST_PARAMETERS = (b"query=", b"documentId=", b"extensions=")

MAX_LENGTH_DIGITS = 20  # more than any length has that a server parses
MAX_MEDIA_TYPE_BYTES = 1_000  # of a header with media types, because its parsed form is cached; the rest is ignored


class GraphQLEndpoint:
    """The ASGI application at `/graphql`, in RequestHandler: POST with JSON, GET for queries, a page for browsers."""

    def __init__(
        self,
        settings: Settings,
        execution: Execution,
        page: ASGIApp | None,
        limiter: ConcurrencyLimiter,
        authenticator: Authenticator,
        streams: EventStreams,
    ) -> None:
        """Without `page`, browsers get JSON."""
        self._streams = streams
        self._cache_policy = CachePolicy(settings.max_age_seconds if settings.reads == "open" else 0)
        self._limiter = limiter
        self._execution = execution
        self._authenticator = authenticator
        self._page = page
        self._max_body_bytes = settings.max_body_bytes
        self._body_seconds = settings.request_seconds
        self._sender = ResponseSender()
        self._compressor = Compressor(settings.response_cache_bytes // 7)
        only = bool(settings.trusted_documents) and settings.trusted_mode == "only"
        trusted = PersistedDocuments(read_trusted(settings.trusted_documents), only=only)
        self._read_body = partial(self._read, partial(read_json, documents=trusted))
        self._read_query_string = partial(self._read, partial(read_query_string, documents=trusted))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        info: RequestInfo = scope[KEY]
        headers = info.headers
        accept = headers.get(b"accept", b"")[:MAX_MEDIA_TYPE_BYTES].decode("latin-1")
        if self._page is not None and wants_page(scope, accept):
            await in_task()
            await self._page(scope, receive, send)
            return
        media_type = choose(accept, MEDIA_TYPES)
        extra: Sequence[Header] = (NO_STORE,)
        coding: Sequence[Header] = ()
        cached, tag = "", b""
        try:
            if media_type is None:
                raise RequestRejected(406, NOT_ACCEPTED)
            caller = info.caller = await self._caller(scope, headers)
            if media_type == EVENT_STREAM:
                return await self._send_events(scope, receive, send, info)
            try:
                response = await self._execute(await self._request(scope, receive, info), scope, receive)
            except UnknownDocument as error:
                response = unknown(error)
                # Apollo iOS accepts both types, and gives up at a 400 before it reads that the text is to be sent.
                media_type = choose(accept, (JSON,)) or media_type
            info.tell(response.body.get("errors", ()))
            content, cached = response.content(), "" if response.body else response.etag
            if scope["method"] != "POST":
                anonymous = not headers.get(b"authorization")
                if caching := self._cache_policy.headers(response, caller, anonymous=anonymous):
                    (_, tag), *extra = caching
            elif self._asks_for_tags(headers) and headers.get(READS_HEADER) not in REPORTS:
                extra = self._cache_policy.gateway_headers(response) or extra
            # A request error is 400, but 200 as `application/json`, as its clients expect.
            status = 200 if response.executed or media_type == JSON else 400
            del response  # its data need not be held while a slow client reads
        except RequestRejected as error:
            status, content, extra = error.status, error_body(str(error), error.code), [NO_STORE, *error.headers]
            info.codes, info.reason = (error.code,), error.reason
        except ClientDisconnected:
            return
        except Exception as error:
            # Handled here, because uvicorn would also close the connection.
            log_unexpected(error)
            status, content = 500, error_body(INTERNAL_MESSAGE, INTERNAL)
            info.codes = (INTERNAL,)
        if len(content) >= MIN_BYTES and accepts_gzip(headers.get(b"accept-encoding", b"")):
            compressed = await self._compressor.compressed(content, cached)
            if compressed is not None:
                content, coding = compressed, (GZIPPED,)
        if tag:
            tag = tag_of_form(tag, is_graphql=media_type == GRAPHQL, is_zipped=coding != ())
            extra = [(b"etag", tag), *extra]
            if matches(headers.get(b"if-none-match", b""), tag):
                await send({"type": "http.response.start", "status": 304, "headers": [VARY, *extra]})
                return await send({"type": "http.response.body", "body": b""})
        content_type = CONTENT_TYPES[GRAPHQL if media_type == GRAPHQL else JSON]
        start = [content_type, (b"content-length", b"%d" % len(content)), VARY, *coding, *extra]
        await send({"type": "http.response.start", "status": status, "headers": start})
        await self._sender.send(send, content)

    async def _caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """The caller. Raises RequestRejected if the credential is invalid, or is not looked up."""
        if (anonymous := self._authenticator.without_credential(scope, headers)) is not None:
            return anonymous
        try:
            return await self._authenticator.by_credential(headers, self._limiter)
        except Unavailable as error:
            log_unreadable(error)
            raise RequestRejected(503, STORE_MESSAGE, code=UNAVAILABLE) from None
        except DamagedItem as error:
            log_unreadable(error)
            raise RequestRejected(500, ITEM_MESSAGE, code=error.code) from None

    async def _send_events(self, scope: Scope, receive: Receive, send: Send, info: RequestInfo) -> None:
        """Send the events of a subscription, or the response to another operation as one event.

        Raises RequestRejected before the response begins, and ClientDisconnected.
        """
        try:
            prepared = await self._request(scope, receive, info)
        except UnknownDocument as error:
            return await send_single(send, self._sender, info, unknown(error))
        if not prepared.is_subscription:
            response = await self._execute(prepared, scope, receive)
            return await send_single(send, self._sender, info, response)
        await in_task()
        authenticate = partial(self._caller, scope, info.headers)
        await self._streams.follow(prepared.request, receive, send, info, authenticate, self._sender)

    async def _request(self, scope: Scope, receive: Receive, info: RequestInfo) -> Prepared:
        """The request in a body or a query string. Raises RequestRejected, ClientDisconnected and UnknownDocument."""
        method, query_string = scope["method"], scope["query_string"]
        sent, read = query_string, self._read_query_string
        if method == "POST":
            sent, read = await self._body(scope, receive, info.headers), self._read_body
        elif method not in ("GET", "HEAD"):
            raise not_allowed(info)
        elif len(query_string) > self._max_body_bytes:
            raise RequestRejected(414, f"The query string is longer than {self._max_body_bytes} bytes; send a POST.")
        if RECEIVED in scope:
            self._limiter.gate.check_age(scope[RECEIVED])
        return self._execution.requests.get(sent, read)

    def _read(self, read: Read, sent: bytes) -> GraphQLRequest:
        """A new request, which is prepared next. Raises RequestRejected and UnknownDocument."""
        request = read(sent)
        with self._limiter:  # a server that is overloaded parses and validates no document
            return request

    async def _body(self, scope: Scope, receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
        """The body of a POST. Raises RequestRejected and ClientDisconnected."""
        if not is_json(headers.get(b"content-type", b"")[:MAX_MEDIA_TYPE_BYTES].decode("latin-1")):
            raise RequestRejected(415, f"Unsupported Content-Type; send {JSON} in UTF-8.")
        coding = headers.get(b"content-encoding", b"")
        if coding and len(headers) < len(scope["headers"]):
            coding = b",".join([value for name, value in scope["headers"] if name == b"content-encoding"])
        whole: bytes | None = scope.get(BODY)
        if whole is not None and not coding and len(whole) <= self._max_body_bytes:
            return whole
        length = headers.get(b"content-length", b"").lstrip(b"0")[:MAX_LENGTH_DIGITS]
        if length.isdigit() and int(length) > (max_received(self._max_body_bytes) if coding else self._max_body_bytes):
            # A client that has begun to send might lose the response if the connection was closed before its end.
            is_read = int(length) <= MAX_IGNORED_BYTES and b"expect" not in headers
            raise too_large(self._max_body_bytes, *(() if is_read else (CLOSE,)))
        try:
            return await within(self._body_seconds, read_body(receive, self._max_body_bytes, coding))
        except TimeoutError:
            # The rest of the body would be read as the next request.
            message = f"The body was not received within {self._body_seconds:g} seconds."
            raise RequestRejected(408, message, CLOSE) from None

    async def _execute(self, prepared: Prepared, scope: Scope, receive: Receive) -> OperationResponse:
        """The response to a query or mutation. Raises RequestRejected and ClientDisconnected."""
        info: RequestInfo = scope[KEY]
        method, headers = info.method, info.headers
        answer = partial(
            self._execution.answer,
            prepared,
            caller=info.caller,
            allow_mutations=method == "POST",
            report_reads=REPORTS.get(headers.get(READS_HEADER, b""), 0),
            cache_tags=CACHE_TAGS_HEADER in headers and method == "POST" and self._asks_for_tags(headers),
            observed=info,
        )
        try:
            if prepared.is_mutation and method == "POST":
                gate = self._limiter.gate
                turn = gate.turn(scope.get(RECEIVED) or gate.clock(), prepared.size)
                async with DisconnectWatcher(receive, after_seconds=0), turn:
                    with self._limiter:
                        return await answer()
            with self._limiter:
                coroutine = EagerCoroutine(answer())
                if not coroutine.is_done:
                    async with DisconnectWatcher(receive):
                        await coroutine
            return coroutine.result
        except MutationNotAllowed:
            raise RequestRejected(
                405, f"{method} is for queries only; send mutations by POST.", ALLOWED_FOR_MUTATIONS
            ) from None
        except SubscriptionNotAllowed:
            raise RequestRejected(406, f'Subscriptions are sent as events; send "Accept: {EVENT_STREAM}".') from None

    def _asks_for_tags(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a gateway asks for cache tags; ignored with a credential, whose response is for nobody else."""
        if headers.get(CACHE_TAGS_HEADER) != b"1":
            return False
        return self._cache_policy.is_public and not headers.get(b"authorization")


def not_allowed(info: RequestInfo) -> RequestRejected:
    """The rejection of a method. Preflights come so far only where CLADE_CORS_ORIGINS is not set: no response that a
    page could read tells its author so, but the browser's network tab and the log do.
    """
    if not is_preflight(info):
        return RequestRejected(405, f"{info.method} is not allowed; send POST, or GET for a query.", ALLOWED)
    rejected = RequestRejected(405, wrong_origin(info, has_others=False), ALLOWED)
    rejected.reason = str(rejected)
    return rejected


def unknown(error: UnknownDocument) -> OperationResponse:
    """The response to a request whose document is not known."""
    return rejected([GraphQLError(str(error), extensions={"code": error.code})])


def wants_page(scope: Scope, accept: str) -> bool:
    """Whether a browser opens the page: HTML is preferred, and the query string has no GraphQL request."""
    if scope["method"] not in ("GET", "HEAD") or choose(accept, (HTML, GRAPHQL, JSON)) != HTML:
        return False
    return not any(part.startswith(REQUEST_PARAMETERS) for part in scope["query_string"].split(b"&"))
