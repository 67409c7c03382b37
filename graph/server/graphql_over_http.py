"""GraphQL over HTTP: what a request asks for, in which media type it is answered, and how the response is sent.

Source: the specification GraphQL over HTTP, https://graphql.github.io/graphql-over-http/draft/.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.types import Send

from graph.errors import Header, RequestRejected, error_body
from graph.operation.graphql_request import GraphQLRequest, PersistedDocuments, id_in
from store.bounded_cache import cached_function

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"

EXACT, SUBTYPES, ANYTHING = 2, 1, 0


@cached_function("media_types", 256, entry_bytes=1_500)
def choose(accept: str, offers: Sequence[str]) -> str | None:
    """The offer with the highest quality in the Accept header; None if it accepts none.

    Of offers with the same quality, the first one that the client names is chosen, otherwise JSON: a client that sends
    `*/*` may not know GraphQL's own media type.
    """
    ranges = [parse(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return JSON
    ranks = {offer: rank_of(offer, ranges) for offer in offers}
    best = max(offers, key=ranks.__getitem__)
    return best if ranks[best][0] > 0 else None


@cached_function("media_types", 256, entry_bytes=1_500)
def is_json(content_type: str) -> bool:
    """Whether this Content-Type is JSON in UTF-8, the default charset."""
    media_type, parameters = parse(content_type)
    return media_type == JSON and parameters.get("charset", "utf-8").lower() in ("utf-8", "utf8")


def rank_of(offer: str, ranges: Sequence[tuple[str, dict[str, str]]]) -> tuple[float, int, bool]:
    """Quality and specificity of the most specific media range that includes the offer, and whether it is JSON by a
    wildcard.
    """
    specificities = {offer: EXACT, offer.split("/")[0] + "/*": SUBTYPES, "*/*": ANYTHING}
    specificity, quality = max(
        [(specificities[name], quality_of(parameters)) for name, parameters in ranges if name in specificities],
        default=(ANYTHING, 0.0),
    )
    return quality, specificity, specificity < EXACT and offer == JSON


def quality_of(parameters: dict[str, str]) -> float:
    try:
        return min(max(float(parameters.get("q", "1")), 0.0), 1.0)
    except ValueError:
        return 0.0


def parse(value: str) -> tuple[str, dict[str, str]]:
    """A media type or range with its parameters; names in lower case, values without quotes."""
    media_type, *rest = value.split(";")
    pairs = (parameter.partition("=") for parameter in rest)
    return media_type.strip().lower(), {name.strip().lower(): text.strip().strip('"') for name, _, text in pairs}


def read_json(body: bytes, documents: PersistedDocuments) -> GraphQLRequest:
    """The request in a POST's body. Raises RequestRejected and UnknownDocument."""
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise RequestRejected(400, "The body is not JSON in UTF-8.") from None
    if isinstance(sent, list):
        raise RequestRejected(400, "Batches are not supported; send each operation in a separate request.")
    if not isinstance(sent, dict):
        raise RequestRejected(400, 'The body must be a JSON object such as {"query": "{ __typename }"}.')
    return request_of(sent, documents)


def read_query_string(query_string: bytes, documents: PersistedDocuments) -> GraphQLRequest:
    """The request in a GET's query string, where `variables` and `extensions` are JSON. Raises as `read_json` does."""
    try:
        sent: dict[str, Any] = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise RequestRejected(400, "The query string is not percent-encoded UTF-8.") from None
    for name in ("variables", "extensions"):
        if name in sent:
            try:
                sent[name] = orjson.loads(sent[name] or b"null")
            except orjson.JSONDecodeError:
                raise RequestRejected(400, f'"{name}" is not JSON.') from None
    return request_of(sent, documents)


def request_of(sent: Mapping[str, Any], documents: PersistedDocuments) -> GraphQLRequest:
    """The request in these parameters, once each has its type and the document is found. Raises as `read_json` does."""
    query, document_id = sent.get("query"), id_in(sent)
    if not isinstance(query, str | None) or (query is None and document_id is None):
        raise RequestRejected(400, '"query" is missing; send a GraphQL document as a string.')
    operation_name = sent.get("operationName")
    if not isinstance(operation_name, str | None):
        raise RequestRejected(400, '"operationName" must be a string or null.')
    variables, extensions = (object_of(sent, name) for name in ("variables", "extensions"))
    if query == "" and document_id is not None:
        query = None  # as some clients send it beside an id
    document = documents.document(query, document_id)
    return GraphQLRequest(document, variables, operation_name or None, extensions)


def object_of(sent: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = sent.get(name)
    if not isinstance(value, dict | None):
        raise RequestRejected(400, f'"{name}" must be a JSON object or null.')
    return value


CLOSE: Header = (b"connection", b"close")

PIECE_BYTES = 262_144  # uvicorn waits until most of a piece is sent before it accepts the next
MAX_BYTES = 128_000_000  # of all bodies being sent


class ResponseSender:
    """Sends response bodies. Above the limit, the client that has read nothing for the longest time is disconnected."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[asyncio.Timeout, bytes] = {}  # bodies, in the order of their last pieces

    async def send(self, send: Send, content: bytes, *, more: bool = False) -> bool:
        """Send a body, or with `more` a part of one; returns whether all of it was sent.

        If it is cut off it stays incomplete, and the server closes the connection.
        """
        if len(content) <= PIECE_BYTES:
            await send({"type": "http.response.body", "body": content, "more_body": more})
            return True
        try:
            async with asyncio.timeout(None) as end:
                self._waiting[end] = content
                self._make_room()
                try:
                    for start in range(0, len(content), PIECE_BYTES):
                        stop = start + PIECE_BYTES
                        self._waiting[end] = self._waiting.pop(end)
                        goes_on = more or stop < len(content)
                        await send({"type": "http.response.body", "body": content[start:stop], "more_body": goes_on})
                finally:
                    del self._waiting[end]
        except TimeoutError:
            return False
        return True

    def _make_room(self) -> None:
        """Cut off the bodies whose last piece is the oldest, but never the newest body."""
        waiting = dict(self._waiting)
        while len(waiting) > 1 and memory_of(waiting.values()) > self._max_bytes:
            end = next(iter(waiting))
            del waiting[end]
            if not end.expired():
                end.reschedule(0)  # in the past


def memory_of(waiting: Collection[bytes]) -> int:
    """The bytes that bodies take; several clients may be sent the same cached body."""
    return sum({id(body): len(body) for body in waiting}.values()) + len(waiting) * PIECE_BYTES


async def send_error(
    send: Send,
    status: int,
    message: str,
    code: str,
    headers: Sequence[Header] = (),
    extensions: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Send a whole response with one error and no data, for a request that does not reach the endpoint."""
    body = error_body(message, code, extensions)
    start = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})
