"""Security headers of all responses, and the check of the Host header on loopback addresses."""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.auth.loopback import has_loopback_host, listens_on_loopback
from graph.observability.request_info import KEY, RequestInfo
from graph.server.graphql_over_http import send_error
from store.errors import Forbidden

POLICY = b"content-security-policy"

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
HEADERS_AND_POLICY = [*HEADERS, (POLICY, b"default-src 'none'; frame-ancestors 'none'")]

WRONG_HOST = (
    "Invalid Host header; use localhost or 127.0.0.1. For a proxy on this machine set CLADE_PRODUCTION=1, or have "
    "it send Host: localhost."
)


class SecurityHeaders:
    """ASGI middleware that adds the headers to all responses, including errors.

    A response keeps its own content security policy; without one it may load nothing. With `check_hosts`, requests at a
    loopback address whose Host header names another host are answered by 403: a web page can have its own name resolved
    to 127.0.0.1 (DNS rebinding), but its requests still have that name as their host.
    """

    def __init__(self, app: ASGIApp, *, check_hosts: bool = False) -> None:
        self._app = app
        self._check_hosts = check_hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._app(scope, receive, send)

        def send_with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                added = HEADERS_AND_POLICY
                for name, _ in headers:
                    if name == POLICY:
                        added = HEADERS
                message["headers"] = [*headers, *added]
            return send(message)

        if self._check_hosts and listens_on_loopback(scope):
            info: RequestInfo = scope[KEY]  # of RequestObserver, which has rejected a second Host header
            if not has_loopback_host(info.headers):
                return send_error(send_with_headers, 403, WRONG_HOST, Forbidden.code)
        return self._app(scope, receive, send_with_headers)
