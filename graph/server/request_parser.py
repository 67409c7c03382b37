"""Request parser: a GraphQLRequest from the body of a POST or the query string of a GET."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson

from graph.errors import RequestRejected
from graph.operation.graphql_request import GraphQLRequest, PersistedDocuments, id_in


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
