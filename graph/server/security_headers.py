"""What every answer tells browsers: who may frame it, read it, and what it may load."""

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
    """An ASGI application that adds the headers to all answers of another, errors and not-founds too.

    An answer keeps a content security policy of its own; any other may load nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._app(scope, receive, send)

        def send_with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                own = message["headers"]
                added = HEADERS_AND_POLICY
                for name, _ in own:
                    if name == POLICY:
                        added = HEADERS
                message["headers"] = [*own, *added]
            return send(message)

        return self._app(scope, receive, send_with_headers)
