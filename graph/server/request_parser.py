"""What a GraphQL request says, read from the body of a POST or the address of a GET."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson

from graph.errors import BAD_REQUEST
from graph.operation.persisted_documents import id_in

Header = tuple[bytes, bytes]


class RequestRejected(Exception):
    """A request that is no GraphQL request; the message says why, and goes to the client."""

    def __init__(self, status: int, message: str, *headers: Header, code: str = BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """What a GraphQL request says, with every part of the type that it must have."""

    query: str | None
    document_id: str | None
    variables: dict[str, Any] | None
    operation_name: str | None
    extensions: dict[str, Any] | None


def read_json(body: bytes) -> RequestParameters:
    """The parameters in a POST's body. Raises Refused."""
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise RequestRejected(400, "The body is not JSON in UTF-8.") from None
    if isinstance(sent, list):
        raise RequestRejected(400, "Batches are not taken: send each operation in a request of its own.")
    if not isinstance(sent, dict):
        raise RequestRejected(400, 'The body must be a JSON object such as {"query": "{ __typename }"}.')
    return parameters_of(sent)


def read_query_string(query_string: bytes) -> RequestParameters:
    """The parameters in a GET's address, where `variables` and `extensions` are JSON. Raises Refused."""
    try:
        sent: dict[str, Any] = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise RequestRejected(400, "The address is not percent-encoded UTF-8.") from None
    for name in ("variables", "extensions"):
        if name in sent:
            try:
                sent[name] = orjson.loads(sent[name] or b"null")
            except orjson.JSONDecodeError:
                raise RequestRejected(400, f'"{name}" is not JSON.') from None
    return parameters_of(sent)


def parameters_of(sent: Mapping[str, Any]) -> RequestParameters:
    """What was sent, when every part has the type that it must have. Raises Refused."""
    query, document_id = sent.get("query"), id_in(sent)
    if not isinstance(query, str | None) or not (query or document_id):
        raise RequestRejected(400, '"query" is missing: it must be a string that holds a GraphQL document.')
    operation_name = sent.get("operationName")
    if not isinstance(operation_name, str | None):
        raise RequestRejected(400, '"operationName" must be a string or null.')
    variables, extensions = (object_of(sent, name) for name in ("variables", "extensions"))
    return RequestParameters(query or None, document_id, variables, operation_name or None, extensions)


def object_of(sent: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = sent.get(name)
    if not isinstance(value, dict | None):
        raise RequestRejected(400, f'"{name}" must be an object or null.')
    return value
