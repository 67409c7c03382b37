"""Logs: what is reported of a request, the access log with one line for each, and the handler of all lines.

Lines go to standard error, as JSON or as text for a terminal. A thread writes them, so that a reader that is slow, or
does not read, never delays a request.
"""

import logging
import os
import random
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import Empty, SimpleQueue
from typing import Any, Literal

import orjson
from starlette.types import Scope

from graph.errors import SERVER_ERRORS
from resolvers.access.callers import ANYONE, Caller

LogFormat = Literal["auto", "json", "text"]

KEY = "clade.request_info"
"""The key of a RequestInfo in the ASGI scope."""

ARRIVED = "clade.arrived"
"""The key in the ASGI scope of the time, by `time.perf_counter`, of a head that came before its body."""

PROBES = ("/healthz", "/readyz")
"""Paths that load balancers request every few seconds; these requests are not reported."""

REQUEST_ID = b"x-request-id"
STATUS_CLIENT_CLOSED = 499
"""The status of a request whose client disconnected before the response, as in nginx."""

SLOW_SECONDS = 1.0  # what people notice; nearly all requests take a fraction of it
MAX_NAME_CHARACTERS = 200
MAX_PATH_CHARACTERS = 200
MAX_DOCUMENT_CHARACTERS = 2_000
MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACEBACK_CHARACTERS = 20_000

WRITE_AFTER_SECONDS = 0.1
FLUSH_SECONDS = 2.0
MAX_WAITING_BYTES = 16_000_000  # of lines to be written; more are dropped
LINE_BYTES = 100  # of memory for a line besides its text

logger = logging.getLogger("clade.request")

READS = ("requests", "rounds", "items", "units")

_VALID_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")
_LEVELS = {level: logging.getLevelName(level).lower() for level in (logging.INFO, logging.WARNING)}


@dataclass(slots=True)
class RequestInfo:
    """What logs, metrics and traces report of one request: HTTP, operation, reads, errors and duration.

    Its fields are set while it is processed. `started` is a time of a monotonic clock, in seconds.
    """

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
        """A request that starts now, or with its head. Its id is the client's X-Request-Id if valid, else random."""
        headers = dict(scope["headers"])
        sent = headers.get(REQUEST_ID)
        # Ids are not secret, so the fast generator is sufficient.
        given = sent.decode() if sent and _VALID_ID.fullmatch(sent) else f"{random.getrandbits(128):032x}"
        client = scope.get("client")
        address = client[0][:MAX_NAME_CHARACTERS] if client else None
        started = scope.get(ARRIVED) or time.perf_counter()
        return cls(given, scope["method"], scope["path"], started, client=address, headers=headers)

    @property
    def failure(self) -> str | None:
        """The kind of a failure that the client did not cause, an error code or a status; None for other outcomes."""
        if not self.codes and self.status < 500:
            return None
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

    def tell(self, errors: Sequence[dict[str, Any]]) -> None:
        """Set the codes of a response with these errors, and of the user errors in its data."""
        if not errors and not getattr(self.context, "user_errors", ()):
            return
        self.codes = list(dict.fromkeys([*codes_of(errors), *getattr(self.context, "user_errors", ())]))

    @property
    def reads(self) -> Mapping[str, Any]:
        """The reads, as in `extensions.reads`; empty if no operation was executed."""
        return {} if self.context is None else self.context.reads_report()


def cut(text: str) -> str:
    """A text of a client, shortened for logs and spans."""
    return text if len(text) <= MAX_NAME_CHARACTERS else f"{text[:MAX_NAME_CHARACTERS]}…"


def codes_of(errors: Sequence[dict[str, Any]]) -> list[str]:
    """The codes of a response's errors, each once."""
    return list(dict.fromkeys(error.get("extensions", {}).get("code", "") for error in errors))


class RequestLog:
    """Writes one line for each request; a warning if it was slow, or failed without a fault of its client.

    Event streams are as long as their clients listen, so they are never slow.
    """

    def __init__(self, slow_seconds: float = SLOW_SECONDS) -> None:
        self._slow_seconds = slow_seconds

    def __call__(self, info: RequestInfo) -> None:
        is_slow = info.events is None and info.seconds >= self._slow_seconds
        level = logging.WARNING if is_slow or info.failure else logging.INFO
        if logger.isEnabledFor(level):
            if (handler := only_handler()) is not None:  # the way through `logging` takes longer than the line
                handler.pass_on(level, handler.lines.line(time.time(), level, logger.name, "request", fields_of(info)))
            else:
                logger.log(level, "request", extra={"fields": fields_of(info)})


def fields_of(info: RequestInfo) -> dict[str, Any]:
    """The fields of a request's line: never variables, and the document only at the level debug."""
    fields: dict[str, Any] = {
        "id": info.id,
        "method": info.method,
        "path": info.path[:MAX_PATH_CHARACTERS],
        "status": info.status,
        "ms": round(info.seconds * 1000, 3),
        "client": info.client,
    }
    if info.caller.name is not None:
        fields["caller"], fields["credential"] = cut(info.caller.name), cut(info.caller.id)
    if info.kind is not None:
        reads = info.reads
        fields["operation"], fields["kind"], fields["how"] = info.name, info.kind, info.how
        fields |= {name: reads[name] for name in READS if name in reads}
    if info.events is not None:
        fields["events"] = info.events
    if info.codes:
        fields["codes"] = info.codes
    if info.reason is not None:
        fields["reason"] = info.reason
    if info.trace_id is not None:
        fields["trace"] = info.trace_id
    if info.document is not None and logger.isEnabledFor(logging.DEBUG):
        fields["document"] = info.document[:MAX_DOCUMENT_CHARACTERS]
    return fields


def only_handler() -> "Handler | None":
    """The handler of a server, if lines of requests go there and nowhere else, as the server configures it."""
    above, root = logger.parent, logging.root
    if logger.handlers or logger.filters or above is None or above.handlers or above.parent is not root:
        return None
    handlers = root.handlers if logger.propagate and above.propagate else ()
    if len(handlers) != 1 or type(found := handlers[0]) is not Handler:
        return None
    return None if found.filters or found.level else found


def handler(log_format: LogFormat) -> "Handler":
    """The handler of a server, for `logging.config.dictConfig`."""
    is_text = sys.stderr.isatty() if log_format == "auto" else log_format == "text"
    return Handler(sys.stderr.fileno(), TextFormatter() if is_text else JSONFormatter())


def config(level: str, log_format: LogFormat) -> dict[str, Any]:
    """The configuration of `logging`: records of Clade from `level` on, records of libraries from warnings on."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"log": {"()": "graph.observability.logs.handler", "log_format": log_format}},
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {"clade": {"level": level.upper()}},
    }


def flush() -> None:
    """Write all lines; a process that ends by a signal does not do this by itself."""
    for found in logging.getLogger().handlers:
        found.flush()


class Handler(QueueHandler):
    """Passes records as lines to a thread, which writes them to a file descriptor."""

    queue: SimpleQueue[bytes]

    def __init__(self, descriptor: int, lines: "Formatter", *, max_bytes: int = MAX_WAITING_BYTES) -> None:
        super().__init__(SimpleQueue())
        self.lines = lines
        self.setFormatter(lines)
        self._max_bytes = max_bytes
        self._passed_bytes = 0
        self._writer = Writer(self.queue, descriptor)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the line of a record, since one that waits would hold its arguments, and frames of its traceback."""
        try:
            self.pass_on(record.levelno, self.format(record).encode("utf-8", "backslashreplace"))
        except Exception:  # as all handlers do it
            self.handleError(record)

    def pass_on(self, level: int, line: bytes) -> None:
        """Pass a line to the thread, unless too many wait."""
        size = len(line) + 1 + LINE_BYTES
        if self._passed_bytes - self._writer.written_bytes + size <= self._max_bytes:
            self._passed_bytes += size
            self.queue.put_nowait(line + b"\n")
        if level >= logging.WARNING:
            self._writer.is_due.set()

    def flush(self) -> None:
        """Wait until all lines are written, at most FLUSH_SECONDS."""
        end = time.monotonic() + FLUSH_SECONDS
        self._writer.is_due.set()
        while self._writer.written_bytes < self._passed_bytes and time.monotonic() < end:
            time.sleep(0.005)


class Writer(QueueListener):
    """Writes the lines of a queue to a file descriptor: those of a tenth of a second together, and warnings at once.

    Waking a thread and writing for each line would cost a request more than the line. There is no StreamHandler, since
    `logging` takes the lock of each handler when the process ends, and would wait there for a reader that is blocked.
    """

    queue: SimpleQueue[bytes]
    written_bytes = 0
    """With LINE_BYTES for each line, and lines for which there was no reader."""

    def __init__(self, lines: SimpleQueue[bytes], descriptor: int) -> None:
        super().__init__(lines)
        self._descriptor = descriptor
        self.is_due = threading.Event()

    def handle(self, record: Any) -> None:
        self.is_due.wait(WRITE_AFTER_SECONDS)
        self.is_due.clear()
        lines = [record]
        with suppress(Empty):
            while True:
                lines.append(self.queue.get_nowait())
        left = memoryview(b"".join(lines))
        size = len(left) + len(lines) * LINE_BYTES
        with suppress(OSError):  # the reader is gone, and there is no other place for the error
            while left:
                left = left[os.write(self._descriptor, left) :]
        self.written_bytes += size


class Formatter(ABC, logging.Formatter):
    """What both formats of lines share."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            fields = {**fields, "exception": self.formatException(record.exc_info)[-MAX_TRACEBACK_CHARACTERS:]}
        return self.line(record.created, record.levelno, record.name, record.getMessage(), fields).decode()

    @abstractmethod
    def line(self, created: float, level: int, name: str, message: str, fields: dict[str, Any]) -> bytes:
        """A line with these fields; `created` is a time in seconds, and an `exception` is a traceback."""


class JSONFormatter(Formatter):
    """A record as one line of JSON."""

    def line(self, created: float, level: int, name: str, message: str, fields: dict[str, Any]) -> bytes:
        line = {
            "time": datetime.fromtimestamp(created, UTC),
            "level": _LEVELS.get(level) or logging.getLevelName(level).lower(),
            "logger": name,
            "message": message[:MAX_MESSAGE_CHARACTERS],
            **fields,
        }
        try:
            return orjson.dumps(line, option=orjson.OPT_UTC_Z)
        except TypeError:  # a text with half of a surrogate pair
            texts = {name: str(value).encode("utf-8", "backslashreplace").decode() for name, value in line.items()}
            return orjson.dumps(texts)


class TextFormatter(Formatter):
    """A record as one line of text; a traceback follows on more lines."""

    def line(self, created: float, level: int, name: str, message: str, fields: dict[str, Any]) -> bytes:
        clock = datetime.fromtimestamp(created).astimezone().strftime("%H:%M:%S")
        parts = [clock, logging.getLevelName(level).lower(), message[:MAX_MESSAGE_CHARACTERS]]
        parts += [f"{name}={value}" for name, value in fields.items() if value is not None and name != "exception"]
        lines = [" ".join(parts), *(fields["exception"].split("\n") if "exception" in fields else ())]
        # A terminal obeys characters that are not printable.
        told = "\n".join("".join(char if char.isprintable() else repr(char)[1:-1] for char in line) for line in lines)
        return told.encode("utf-8", "backslashreplace")
