"""Request info: what logs, metrics and traces report of one request: HTTP, operation, reads, errors and duration."""

import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from graph.errors import SERVER_ERRORS
from resolvers.access.callers import ANYONE, Caller

KEY = "clade.request_info"
"""The key of a RequestInfo in the ASGI scope."""

REQUEST_ID = b"x-request-id"
STATUS_CLIENT_CLOSED = 499
"""The status of a request whose client disconnected before the response, as in nginx."""

MAX_NAME_CHARACTERS = 200

_VALID_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")


@dataclass(slots=True)
class RequestInfo:
    """One request. Its fields are set while it is processed. `started` is a time of a monotonic clock, in seconds."""

    id: str
    method: str
    path: str
    started: float
    seconds: float = 0.0
    status: int = STATUS_CLIENT_CLOSED
    operation: str | None = None
    """The name of the operation."""
    caller: Caller = ANYONE
    """The caller; anonymous until the request is authenticated."""
    kind: str | None = None
    """`query`, `mutation` or `subscription`; None if no operation was executed."""
    document: str | None = None
    codes: Sequence[str] = ()
    reason: str | None = None
    """Why the credential was rejected, which the response does not say; or the message of another rejection."""
    events: int | None = None
    """The number of events that were sent for a subscription; None for every other request."""
    context: Any = None
    """The operation's Context, which has `how` and the reads."""
    trace_id: str | None = None
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    """The request headers, each name once."""
    client: str | None = None
    """The client's IP address, of the connection, or from a proxy on this machine."""

    @classmethod
    def of(cls, scope: Scope) -> "RequestInfo":
        """A request that starts now. Its id is the client's X-Request-Id if it is valid, else a random one."""
        headers = dict(scope["headers"])
        sent = headers.get(REQUEST_ID)
        # Ids are not secret, so the fast generator is sufficient.
        given = sent.decode() if sent and _VALID_ID.fullmatch(sent) else f"{random.getrandbits(128):032x}"
        client = scope.get("client")
        address = client[0][:MAX_NAME_CHARACTERS] if client else None
        return cls(given, scope["method"], scope["path"], time.perf_counter(), client=address, headers=headers)

    @property
    def failure(self) -> str | None:
        """The kind of a failure that the client did not cause, an error code or a status; None for other outcomes."""
        code = next((code for code in self.codes if code in SERVER_ERRORS), None)
        return code or (str(self.status) if self.status >= 500 else None)

    @property
    def name(self) -> str | None:
        """The operation's name, shortened for logs and spans."""
        return None if self.operation is None else cut(self.operation)

    @property
    def how(self) -> str | None:
        """`Context.how`; None if no operation was executed."""
        return getattr(self.context, "how", None)

    @property
    def reads(self) -> dict[str, Any]:
        """The reads, as in `extensions.reads`; empty if no operation was executed."""
        return {} if self.context is None else self.context.reads_report()


def cut(text: str) -> str:
    """A text of a client, shortened for logs and spans."""
    return text if len(text) <= MAX_NAME_CHARACTERS else f"{text[:MAX_NAME_CHARACTERS]}…"


def codes_of(errors: Sequence[dict[str, Any]]) -> list[str]:
    """The codes of a response's errors, each once."""
    return list(dict.fromkeys(error.get("extensions", {}).get("code", "") for error in errors))
