"""Rejection of an HTTP request while it is received: status, message and the complete HTTP/1.1 response."""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from graph.errors import BAD_REQUEST, OVERLOADED, error_body

MAX_HEAD_BYTES = 65_536

_HEADERS = (
    b"content-type: application/json; charset=utf-8\r\ncontent-length: %d\r\n%sx-content-type-options: nosniff\r\n"
    b"cache-control: no-store\r\nconnection: close\r\n\r\n"
)


class Rejection(Exception):
    """The reason why a request is rejected and its connection closed; the client receives the message."""

    def __init__(self, status: int, message: str, code: str = BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        body = error_body(message, code)
        retry_after = b"retry-after: 1\r\n" if code == OVERLOADED else b""
        self.response = STATUS_LINE[status] + _HEADERS % (len(body), retry_after) + body


def head_too_large() -> Rejection:
    message = f"The request head is larger than {MAX_HEAD_BYTES:,} bytes; send the query in the body of a POST."
    return Rejection(431, message)


def body_too_large(limit: int) -> Rejection:
    return Rejection(413, f"The request is larger than {limit:,} bytes; split it into several requests.")


def has_trailers() -> Rejection:
    return Rejection(400, "The request has trailers, which are not supported; send headers.")


def head_timeout(seconds: float) -> Rejection:
    return Rejection(408, f"The request head was not received within {seconds:g} seconds.")


def too_many_pipelined(limit: int) -> Rejection:
    return Rejection(400, f"More than {limit} requests wait on this connection; wait for responses first.")


def too_many_connections(limit: int) -> Rejection:
    return Rejection(503, f"The server has its maximum of {limit:,} connections; retry later.", OVERLOADED)


def too_many_incomplete() -> Rejection:
    message = "The server is receiving too many requests, and this one is the slowest; retry later."
    return Rejection(503, message, OVERLOADED)
