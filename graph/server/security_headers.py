"""Security headers of all responses: framing, reading by other origins, and a content security policy."""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = b"content-security-policy"

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
NOTHING_ALLOWED = (POLICY, b"default-src 'none'; frame-ancestors 'none'")
HEADERS_AND_POLICY = [*HEADERS, NOTHING_ALLOWED]


class SecurityHeaders:
    """ASGI middleware that adds the headers to all responses, including errors.

    A response keeps its own content security policy; without one it may load nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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

        return self._app(scope, receive, send_with_headers)
