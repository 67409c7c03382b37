"""Error response: one GraphQL error as JSON, sent by middleware before a request reaches the endpoint."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from starlette.types import Send

from graph.errors import error_body

Header = tuple[bytes, bytes]

CLOSE: Header = (b"connection", b"close")


async def send_error(
    send: Send,
    status: int,
    message: str,
    code: str,
    headers: Sequence[Header] = (),
    extensions: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Send a whole response with one error and no data."""
    body = error_body(message, code, extensions)
    start = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})
