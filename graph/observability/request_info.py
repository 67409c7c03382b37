"""What is known of one request when it is over: how it came, what it asked for, what that cost, and how it ended."""

import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from resolvers.access.caller import ANYONE, Caller

KEY = "clade.observed"
"""Where the scope of a request has its `Observed`."""

REQUEST_ID = b"x-request-id"
GONE = 499
"""The status of a request whose client left before the answer, as nginx writes it."""

MAX_NAME_CHARACTERS = 200

_SANE_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")


@dataclass(slots=True)
class RequestInfo:
    """One request; its parts are filled in by whoever knows them. `began` is of a steady clock, in seconds."""

    id: str
    method: str
    path: str
    began: float
    seconds: float = 0.0
    status: int = GONE
    operation: str | None = None
    """The name of its operation."""
    caller: Caller = ANYONE
    """Who asks, if that was found out."""
    kind: str | None = None
    """`query` or `mutation`; None for what never became an operation."""
    document: str | None = None
    codes: Sequence[str] = ()
    context: Any = None
    """What its resolvers shared, which knows how it was answered and what was read."""
    trace_id: str | None = None
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    """What the request brought, each name once."""
    client: str | None = None
    """The client's address, as the connection has it, or a proxy on this machine says it."""

    @classmethod
    def of(cls, scope: Scope) -> "RequestInfo":
        """A request that begins now, under the id that its client gave it, if that may stand in a log."""
        headers = dict(scope["headers"])
        sent = headers.get(REQUEST_ID)
        # Ids are there to be found again and keep no secret: random.random's kind is enough.
        given = sent.decode() if sent and _SANE_ID.fullmatch(sent) else f"{random.getrandbits(128):032x}"
        client = scope.get("client")
        address = client[0][:MAX_NAME_CHARACTERS] if client else None
        return cls(given, scope["method"], scope["path"], time.perf_counter(), client=address, headers=headers)

    @property
    def name(self) -> str | None:
        """The operation's name, as long as it may be in a log or a span."""
        name = self.operation
        return name if name is None or len(name) <= MAX_NAME_CHARACTERS else cut(name)

    @property
    def how(self) -> str | None:
        """As `Context.how`; None where nothing was answered."""
        return getattr(self.context, "how", None)

    @property
    def reads(self) -> dict[str, Any]:
        """What was read, as `extensions.reads` has it; empty where nothing was answered."""
        return {} if self.context is None else self.context.reads_report()


def cut(text: str) -> str:
    """A text of a client, as long as it may be in a log or a span."""
    return text if len(text) <= MAX_NAME_CHARACTERS else f"{text[:MAX_NAME_CHARACTERS]}…"


def codes_of(errors: Sequence[dict[str, Any]]) -> list[str]:
    """The codes of an answer's errors, each once."""
    return list(dict.fromkeys(error.get("extensions", {}).get("code", "") for error in errors))
