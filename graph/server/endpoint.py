"""GraphQL over HTTP: reads an operation from a request and writes its answer, as the draft of that name asks.

A refused request gets JSON as well: `errors` that say what to write instead, and no `data`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import orjson
from graphql import GraphQLError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.auth.authentication import Authenticator, Unauthenticated
from graph.errors import (
    INTERNAL,
    INTERNAL_MESSAGE,
    OVERLOADED,
    STORE_MESSAGE,
    UNAUTHENTICATED,
    UNAVAILABLE,
    log_unavailable,
    log_unexpected,
)
from graph.execution.eager import EagerCoroutine, within
from graph.execution.operation import (
    Answer,
    Execution,
    QueriesOnly,
    refused,
)
from graph.execution.response_cache import etag_of
from graph.observability.request_info import KEY, RequestInfo, codes_of
from graph.operation.graphql_request import GraphQLRequest
from graph.operation.persisted_documents import PersistedDocuments, UnknownDocument
from graph.server.client_disconnect import ClientDisconnected, DisconnectWatcher
from graph.server.concurrency_limit import ConcurrencyLimiter, TooManyRequests
from graph.server.content_negotiation import (
    GRAPHQL,
    HTML,
    JSON,
    choose,
    is_json,
)
from graph.server.request_parser import (
    Header,
    RequestRejected,
    read_json,
    read_query_string,
)
from graph.server.response_sender import ResponseSender
from resolvers.access.caller import ANYONE, Caller
from store.errors import Unavailable

ALLOWED = (b"allow", b"GET, HEAD, POST")
ALLOWED_FOR_MUTATIONS = (b"allow", b"POST")
# The same address answers a browser with a page and a client with JSON, and each caller with what it may see.
VARY = (b"vary", b"accept, authorization")
# Caches on the way may keep what does not forbid it, some of them also what was asked for with a credential.
NO_STORE = (b"cache-control", b"no-store")
RETRY_AFTER = (b"retry-after", b"1")
CONTENT_TYPES = {one: (b"content-type", f"{one}; charset=utf-8".encode()) for one in (GRAPHQL, JSON)}
ASKS_FOR_READS = b"clade-reads"
ASKS = (b"query=", b"documentId=", b"extensions=")

# Clients ask few questions again and again. Of a longer one reading is a small part of the work.
REMEMBERED = 1_000
REMEMBERED_BYTES = 2_000
MEDIA_TYPE_BYTES = 1_000  # of a header that names media types, since what it means is remembered; more says nothing


class GraphQLEndpoint:
    """The ASGI application at `/graphql`: POST with JSON, GET for queries, and a page for browsers that only look."""

    def __init__(
        self,
        execution: Execution,
        page: ASGIApp | None,
        *,
        max_body_bytes: int,
        body_seconds: float,
        gate: ConcurrencyLimiter,
        trusted: PersistedDocuments = PersistedDocuments({}),
        callers: Authenticator | None = None,
    ) -> None:
        """Without a page browsers are clients as all others, without trusted documents every text is taken, and without
        callers nobody is asked who it is.
        """
        self._gate = gate
        self._execution = execution
        self._callers = callers
        self._page = page
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds
        self._sending = ResponseSender()
        self._question_in_body = self._remembering(partial(read_json, documents=trusted))
        self._question_in_address = self._remembering(partial(read_query_string, documents=trusted))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        observed: RequestInfo | None = scope.get(KEY)
        headers = dict(scope["headers"]) if observed is None else observed.headers
        accept = headers.get(b"accept", b"")[:MEDIA_TYPE_BYTES].decode("latin-1")
        if self._page is not None and wants_page(scope, accept):
            await self._page(scope, receive, send)
            return
        media_type = choose(accept, (GRAPHQL, JSON))
        extra: Sequence[Header] = (NO_STORE,)
        try:
            if media_type is None:
                raise RequestRejected(
                    406, f"The answer can be {GRAPHQL} or {JSON}, and the header Accept takes neither."
                )
            caller = await self._caller(scope, headers)
            if observed is not None:
                observed.caller = caller
            answer = await self._answer(scope, receive, headers, caller, observed)
            if observed is not None and "errors" in answer.body:
                observed.codes = codes_of(answer.body["errors"])
            if scope["method"] != "POST":
                tag = tag_of(answer, caller)
                if tag and names(headers.get(b"if-none-match", b""), tag[0][1]):
                    return await write_unchanged(send, tag)
                extra = tag or extra
            status, content = status_of(answer, media_type), answer.content()
            del answer  # what it was told from need not wait for a client that reads slowly
        except RequestRejected as no:
            status, content, extra = no.status, only_error(str(no), no.code), [NO_STORE, *no.headers]
            tell(observed, no.code)
        except ClientDisconnected:
            return
        except Exception as error:
            # Answered here and not further out: there the server would cut the connection as well.
            log_unexpected(error)
            status, content = 500, only_error(INTERNAL_MESSAGE, INTERNAL)
            tell(observed, INTERNAL)
        await send(start_of(status, media_type or JSON, content, extra))
        await self._sending.send(send, content)

    async def _caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Who asks. Raises Refused where the credential is not valid, or cannot be looked up now."""
        if self._callers is None:
            return ANYONE
        if (without := self._callers.at_once(scope, headers)) is not None:
            return without
        try:
            return await self._callers.of(headers, self._gate)
        except TooManyRequests as full:
            raise overloaded(full) from None
        except Unauthenticated as no:
            raise unauthenticated(no) from None
        except Unavailable as error:
            log_unavailable(error)
            raise RequestRejected(503, STORE_MESSAGE, code=UNAVAILABLE) from None

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        headers: Mapping[bytes, bytes],
        caller: Caller,
        observed: RequestInfo | None,
    ) -> Answer:
        method = scope["method"]
        try:
            if method == "POST":
                question = self._question_in_body(await self._body(receive, headers))
            else:
                question = self._question_of(method, scope["query_string"])
            allow_mutations, tell_reads = method == "POST", headers.get(ASKS_FOR_READS) == b"1"
            with self._gate:
                call = self._execution.answer(
                    question, caller=caller, allow_mutations=allow_mutations, tell_reads=tell_reads, observed=observed
                )
                started = EagerCoroutine(call)
                if not started.is_done:
                    async with DisconnectWatcher(receive):
                        await started
            return started.result
        except TooManyRequests as full:
            raise overloaded(full) from None
        except Unauthenticated as no:
            raise unauthenticated(no) from None
        except UnknownDocument as untrusted:
            return refused([GraphQLError(str(untrusted), extensions={"code": untrusted.code})])
        except QueriesOnly:
            raise RequestRejected(
                405, f"{method} is for queries; send anything else by POST.", ALLOWED_FOR_MUTATIONS
            ) from None

    def _question_of(self, method: str, query_string: bytes) -> GraphQLRequest:
        """What is asked without a body. Raises Refused, Untrusted."""
        if method not in ("GET", "HEAD"):
            raise RequestRejected(405, f"{method} is not taken here; send POST, or GET for a query.", ALLOWED)
        if len(query_string) > self._max_body_bytes:
            raise RequestRejected(414, f"The address is longer than {self._max_body_bytes} bytes; send a POST.")
        return self._question_in_address(query_string)

    def _remembering(self, read: Callable[[bytes], GraphQLRequest]) -> Callable[[bytes], GraphQLRequest]:
        """A parser that parses short requests once. Raises RequestRejected and UnknownDocument."""
        remembered = lru_cache(REMEMBERED)(read)
        return lambda sent: read(sent) if len(sent) > REMEMBERED_BYTES else remembered(sent)

    async def _body(self, receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
        """The body of a POST. Raises Refused for one that is not taken or comes too slowly, Gone."""
        if not is_json(headers.get(b"content-type", b"")[:MEDIA_TYPE_BYTES].decode("latin-1")):
            raise RequestRejected(415, f"The body must be {JSON} in UTF-8, and the header Content-Type must say so.")
        try:
            return await within(self._body_seconds, read_body(receive, self._max_body_bytes))
        except TimeoutError:
            # What is still to come would be taken for the next request.
            message = f"The body did not come within {self._body_seconds:g} seconds."
            raise RequestRejected(408, message, (b"connection", b"close")) from None


async def read_body(receive: Receive, limit: int) -> bytes:
    """The bytes of a body. Raises Refused where they are more than the limit, Gone where they break off."""
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            raise RequestRejected(413, f"The body is larger than {limit} bytes; ask in parts, each in its own request.")
    return body


def wants_page(scope: Scope, accept: str) -> bool:
    """Whether this is a browser that opens the address, and no client that asks something."""
    if scope["method"] not in ("GET", "HEAD") or choose(accept, (HTML, GRAPHQL, JSON)) != HTML:
        return False
    return not any(part.startswith(ASKS) for part in scope["query_string"].split(b"&"))


def overloaded(full: TooManyRequests) -> RequestRejected:
    return RequestRejected(503, str(full), RETRY_AFTER, code=OVERLOADED)


def unauthenticated(no: Unauthenticated) -> RequestRejected:
    return RequestRejected(401, str(no), no.challenge, code=UNAUTHENTICATED)


def tell(observed: RequestInfo | None, code: str) -> None:
    if observed is not None:
        observed.codes = (code,)


def only_error(message: str, code: str) -> bytes:
    """The body of an answer that is one error and no data."""
    return orjson.dumps({"errors": [{"message": message, "extensions": {"code": code}}]})


def status_of(answer: Answer, media_type: str) -> int:
    """200 for what was executed. A request error is 400, except in plain JSON, whose clients look for 200."""
    return 200 if answer.executed or media_type == JSON else 400


def tag_of(answer: Answer, caller: Caller) -> list[Header]:
    """The headers that let a client ask whether a whole answer has changed; none for one with errors or reads."""
    if answer.told is None or answer.body:
        return []
    tag = answer.etag or etag_of(answer.told, caller.reads)
    return [(b"etag", tag.encode()), (b"cache-control", b"private, no-cache")]


def names(tags: bytes, tag: bytes) -> bool:
    """Whether a header's list of entity tags names one, also where a proxy that has compressed the answer has made it
    a weak one; `*` names all.
    """
    return any(one.strip().removeprefix(b"W/") in (tag, b"*") for one in tags.split(b","))


async def write_unchanged(send: Send, headers: Sequence[Header]) -> None:
    """Tell a client that the answer that it has is the answer."""
    await send({"type": "http.response.start", "status": 304, "headers": [VARY, *headers]})
    await send({"type": "http.response.body", "body": b""})


def start_of(status: int, media_type: str, content: bytes, headers: Sequence[Header] = ()) -> Message:
    """What a response begins with."""
    start = [CONTENT_TYPES[media_type], (b"content-length", b"%d" % len(content)), VARY, *headers]
    return {"type": "http.response.start", "status": status, "headers": start}
