"""Requests in bodies and query strings, as GraphQLRequest; and their media types, by the rules of RFC 9110."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import orjson

from graph.errors import RequestRejected
from graph.operation.document import GraphQLRequest, PersistedDocuments, id_in

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"

READABLE = "JSON in UTF-8 whose numbers are less than 1.8e308"
OBJECTS = ("variables", "extensions")
"""The parameters of a request that are JSON objects."""


def read_json(body: bytes, documents: PersistedDocuments) -> GraphQLRequest:
    """The request in a POST's body. Raises RequestRejected and UnknownDocument."""
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise RequestRejected(400, f"The body is not {READABLE}.") from None
    if isinstance(sent, list):
        raise RequestRejected(400, "Batches are not supported; send each operation in a separate request.")
    if not isinstance(sent, dict):
        raise RequestRejected(400, 'The body must be a JSON object such as {"query": "{ __typename }"}.')
    return request_of(sent, documents)


def read_query_string(query_string: bytes, documents: PersistedDocuments) -> GraphQLRequest:
    """The request in a GET's query string, where objects are JSON. Raises as `read_json` does."""
    try:
        sent: dict[str, Any] = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise RequestRejected(400, "The query string is not percent-encoded UTF-8.") from None
    for name in OBJECTS:
        if name in sent:
            try:
                sent[name] = orjson.loads(sent[name] or b"null")
            except orjson.JSONDecodeError:
                raise RequestRejected(400, f'"{name}" is not {READABLE}.') from None
    return request_of(sent, documents)


def request_of(sent: Mapping[str, Any], documents: PersistedDocuments) -> GraphQLRequest:
    """The request in these parameters, once each has its type and the document is found. Raises as `read_json` does."""
    query, document_id = sent.get("query"), id_in(sent)
    if not isinstance(query, str | None) or (query is None and document_id is None):
        raise RequestRejected(400, '"query" is missing; send a GraphQL document as a string.')
    operation_name = sent.get("operationName")
    if not isinstance(operation_name, str | None):
        raise RequestRejected(400, '"operationName" must be a string or null.')
    for name in OBJECTS:
        if not isinstance(sent.get(name), dict | None):
            raise RequestRejected(400, f'"{name}" must be a JSON object or null.')
    if query == "" and document_id is not None:
        query = None  # as some clients send it beside an id
    document = documents.document(query, document_id)
    return GraphQLRequest(document, sent.get("variables"), operation_name or None, sent.get("extensions"))


@lru_cache(256)
def choose(accept: str, offers: Sequence[str]) -> str | None:
    """The offer with the highest quality in the Accept header; None if it accepts none.

    Of offers with the same quality, the first one that the client names is chosen, otherwise JSON: a client that sends
    `*/*` may not know GraphQL's own media type.
    """
    ranges = [parse_media_type(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return JSON
    ranks = {offer: rank_of(offer, ranges) for offer in offers}
    best = max(offers, key=ranks.__getitem__)
    return best if ranks[best][0] > 0 else None


@lru_cache(256)
def is_json(content_type: str) -> bool:
    """Whether this Content-Type is JSON in UTF-8, the default charset."""
    media_type, parameters = parse_media_type(content_type)
    return media_type == JSON and parameters.get("charset", "utf-8").lower() in ("utf-8", "utf8")


def rank_of(offer: str, ranges: Sequence[tuple[str, dict[str, str]]]) -> tuple[float, int, bool]:
    """Quality and specificity of the most specific media range that includes the offer, and whether it is JSON by a
    wildcard.
    """
    names = ["*/*", offer.split("/")[0] + "/*", offer]  # the most specific is the last
    specificity, quality = max(
        [(names.index(name), quality_of(parameters)) for name, parameters in ranges if name in names],
        default=(0, 0.0),
    )
    return quality, specificity, specificity < 2 and offer == JSON


def quality_of(parameters: dict[str, str]) -> float:
    try:
        return min(max(float(parameters.get("q", "1")), 0.0), 1.0)
    except ValueError:
        return 0.0


def parse_media_type(value: str) -> tuple[str, dict[str, str]]:
    """A media type or range with its parameters; names in lower case, values without quotes."""
    media_type, *rest = value.split(";")
    pairs = (parameter.partition("=") for parameter in rest)
    return media_type.strip().lower(), {name.strip().lower(): text.strip().strip('"') for name, _, text in pairs}
