"""The log: one line for each request, and the handler that writes lines to standard error, as JSON or as text.

A thread writes them in batches: a slow reader, or one that does not read, never delays a request, and a line costs the
event loop a few microseconds.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

from graph.observability.request_info import RequestInfo, cut

WRITE_AFTER_SECONDS = 0.1
FLUSH_SECONDS = 2.0
MAX_WAITING_BYTES = 16_000_000  # of lines to be written; more are dropped and counted
LINE_BYTES = 100  # of memory for a line besides its text
MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACEBACK_CHARACTERS = 20_000


class Handler(logging.Handler):
    """Writes records as lines to a file descriptor, in a thread."""

    dropped = 0

    def __init__(
        self, descriptor: int, line_of: Callable[[logging.LogRecord], bytes], *, max_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._line_of = line_of
        self._max_bytes = max_bytes
        self._lines: list[bytes] = []
        self._bytes = 0  # of lines that are waiting or being written
        self._adding = threading.Lock()
        self._due = threading.Event()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        self.write(self._line_of(record), soon=record.levelno >= logging.WARNING)

    def write(self, line: bytes, *, soon: bool = False) -> None:
        """Add a line, which ends with a newline, without waiting; `soon` writes it at once."""
        size = len(line) + LINE_BYTES
        with self._adding:
            if self._bytes + size > self._max_bytes:
                self.dropped += 1
                return
            self._bytes += size
            self._lines.append(line)
        if soon:
            self._due.set()

    def flush(self) -> None:
        """Wait until all lines are written, at most FLUSH_SECONDS."""
        end = time.monotonic() + FLUSH_SECONDS
        self._due.set()
        while self._bytes and time.monotonic() < end:
            time.sleep(0.005)

    def _run(self) -> None:
        while True:
            self._due.wait(WRITE_AFTER_SECONDS)
            self._due.clear()
            with self._adding:
                lines, self._lines = self._lines, []
            left = memoryview(b"".join(lines))
            size = len(left) + len(lines) * LINE_BYTES
            with suppress(OSError):  # the reader is gone, and there is no other place for the error
                while left:
                    left = left[os.write(self._descriptor, left) :]
            with self._adding:
                self._bytes -= size


def handler() -> Handler:
    """The handler of a server, for `logging.config.dictConfig`: people read a terminal, programs everything else."""
    return Handler(sys.stderr.fileno(), text_line if sys.stderr.isatty() else json_line)


def log_config(level: str) -> dict[str, Any]:
    """The configuration of `logging`: records of Clade from `level` on, records of libraries from warnings on."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"log": {"()": "graph.observability.log.handler"}},
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {"clade": {"level": level.upper()}},
    }


def dropped_lines() -> int:
    """The number of lines that this process dropped."""
    return sum(found.dropped for found in logging.getLogger().handlers if isinstance(found, Handler))


def flush_log() -> None:
    """Write all lines; a process that ends by a signal does not do this by itself."""
    for found in logging.getLogger().handlers:
        found.flush()


def json_line(record: logging.LogRecord) -> bytes:
    """A record as one line of JSON."""
    line = {
        "time": datetime.fromtimestamp(record.created, UTC),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage()[:MAX_MESSAGE_CHARACTERS],
    }
    line.update(_fields(record))
    option = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(line, option=option)
    except TypeError:  # a text with half of a surrogate pair
        return orjson.dumps({name: _encodable(str(value)) for name, value in line.items()}, option=option)


def text_line(record: logging.LogRecord) -> bytes:
    """A record as one line of text; a traceback follows on more lines."""
    clock = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
    fields = _fields(record)
    trace = fields.get("exception")
    parts = [clock, record.levelname.lower(), record.getMessage()[:MAX_MESSAGE_CHARACTERS]]
    parts += [f"{name}={value}" for name, value in fields.items() if value is not None and name != "exception"]
    line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(parts))
    return (_encodable(f"{line}\n{trace}" if trace else line) + "\n").encode()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    if record.exc_info and record.exc_info[0] is not None:
        trace = logging.Formatter().formatException(record.exc_info)[-MAX_TRACEBACK_CHARACTERS:]
        return {**fields, "exception": trace}
    return fields


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


MAX_DOCUMENT_CHARACTERS = 2_000
MAX_PATH_CHARACTERS = 200
SLOW_SECONDS = 1.0  # what people notice; nearly all requests take a fraction of it

logger = logging.getLogger("clade.request")

_LEVEL_NAMES = {logging.INFO: "INFO", logging.WARNING: "WARNING"}


class RequestLog:
    """Writes one line for each request; a warning if it was slow, or failed without a fault of its client.

    Event streams are as long as their clients listen, so they are never slow.
    """

    def __init__(self, slow_seconds: float = SLOW_SECONDS) -> None:
        self._slow_seconds = slow_seconds

    def __call__(self, info: RequestInfo) -> None:
        is_slow = info.events is None and info.seconds >= self._slow_seconds
        level = logging.WARNING if info.failure or is_slow else logging.INFO
        if logger.isEnabledFor(level):
            logger.handle(RequestRecord(level, fields_of(info)))


def log_rejected(client: tuple[str, int] | None, status: int, reason: str) -> None:
    """Write the line of a request that was rejected while it was received; it has neither an id nor an operation."""
    if logger.isEnabledFor(logging.INFO):
        address = cut(client[0]) if client else None
        logger.handle(RequestRecord(logging.INFO, {"status": status, "client": address, "reason": reason}))


class RequestRecord(logging.LogRecord):
    """A request's log record, without code location, thread and process: finding those would double its cost."""

    def __init__(self, level: int, fields: dict[str, Any]) -> None:
        self.__dict__.update(_CONSTANT)
        self.levelno = level
        self.levelname = _LEVEL_NAMES[level]
        self.created = time.time()
        self.fields = fields


_CONSTANT = vars(logging.LogRecord(logger.name, logging.INFO, "", 0, "request", None, None))


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
        fields["operation"], fields["kind"], fields["how"] = info.name, info.kind, info.how
        fields.update(info.reads)
        fields.pop("cached", None)  # as in `how`
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
