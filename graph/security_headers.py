"""What every answer tells browsers: who may frame it, read it, and what it may load."""

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


class SecurityHeaders:
    """An ASGI application that adds the headers to all answers of another, errors and not-founds too.

    An answer keeps a content security policy of its own; any other may load nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                own_policy = any(name == POLICY for name, _ in headers)
                message["headers"] = [*headers, *HEADERS] if own_policy else [*headers, *HEADERS, NOTHING_ALLOWED]
            await send(message)

        await self._app(scope, receive, send_with_headers)
