"""Host check on loopback addresses: requests whose Host header names another host are rejected.

A web page can have its own name resolved to 127.0.0.1 and then seem to come from this machine (DNS rebinding), but its
requests still have that name as their host.
"""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Receive, Scope, Send

from graph.auth.loopback import has_loopback_host, listens_on_loopback
from graph.observability.request_info import KEY, RequestInfo
from graph.server.response_sender import send_error
from store.errors import Forbidden

MESSAGE = (
    "Invalid Host header; use localhost or 127.0.0.1. For a proxy on this machine set CLADE_PRODUCTION=1, or have "
    "it send Host: localhost."
)


class LoopbackHosts:
    """ASGI middleware that answers 403 on a loopback address unless the Host header names a loopback address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and listens_on_loopback(scope):
            info: RequestInfo | None = scope.get(KEY)  # RequestObserver has rejected a second Host header
            headers = dict(scope["headers"]) if info is None else info.headers
            if not has_loopback_host(headers):
                return send_error(send, 403, MESSAGE, Forbidden.code)
        return self._app(scope, receive, send)
