"""Log handler: lines to standard error, as JSON or as text for a terminal.

A thread writes them, so that a reader that is slow, or does not read, never delays a request.
"""

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import Empty, SimpleQueue
from typing import Any, Literal

import orjson

LogFormat = Literal["auto", "json", "text"]

WRITE_AFTER_SECONDS = 0.1
FLUSH_SECONDS = 2.0
MAX_WAITING_BYTES = 16_000_000  # of lines to be written; more are dropped
LINE_BYTES = 100  # of memory for a line besides its text
MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACEBACK_CHARACTERS = 20_000


class Handler(QueueHandler):
    """Passes records as lines to a thread, which writes them to a file descriptor."""

    queue: SimpleQueue[bytes]

    def __init__(self, descriptor: int, formatter: logging.Formatter, *, max_bytes: int = MAX_WAITING_BYTES) -> None:
        super().__init__(SimpleQueue())
        self.setFormatter(formatter)
        self._max_bytes = max_bytes
        self._passed_bytes = 0
        self._writer = Writer(self.queue, descriptor)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        if record.levelno >= logging.WARNING:
            self._writer.is_due.set()

    def prepare(self, record: logging.LogRecord) -> bytes:
        """The line of a record; a record that waits would hold its arguments, and the frames of its traceback."""
        return f"{self.format(record)}\n".encode("utf-8", "backslashreplace")

    def enqueue(self, record: Any) -> None:
        size = len(record) + LINE_BYTES
        if self._passed_bytes - self._writer.written_bytes + size <= self._max_bytes:
            self._passed_bytes += size
            self.queue.put_nowait(record)

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


class Formatter(logging.Formatter):
    """What both formats of lines share."""

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """The fields of a record, with its traceback as `exception`."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            return {**fields, "exception": self.formatException(record.exc_info)[-MAX_TRACEBACK_CHARACTERS:]}
        return fields


class JSONFormatter(Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:MAX_MESSAGE_CHARACTERS],
        }
        line.update(self.fields(record))
        try:
            return orjson.dumps(line, option=orjson.OPT_UTC_Z).decode()
        except TypeError:  # a text with half of a surrogate pair
            texts = {name: str(value).encode("utf-8", "backslashreplace").decode() for name, value in line.items()}
            return orjson.dumps(texts).decode()


class TextFormatter(Formatter):
    """A record as one line of text; a traceback follows on more lines."""

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        fields = self.fields(record)
        parts = [clock, record.levelname.lower(), record.getMessage()[:MAX_MESSAGE_CHARACTERS]]
        parts += [f"{name}={value}" for name, value in fields.items() if value is not None and name != "exception"]
        lines = [" ".join(parts), *(fields["exception"].split("\n") if "exception" in fields else ())]
        return "\n".join(map(escaped, lines))


def escaped(text: str) -> str:
    """A text without characters that a terminal obeys."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def handler(log_format: LogFormat) -> Handler:
    """The handler of a server, for `logging.config.dictConfig`."""
    is_text = sys.stderr.isatty() if log_format == "auto" else log_format == "text"
    return Handler(sys.stderr.fileno(), TextFormatter() if is_text else JSONFormatter())


def config(level: str, log_format: LogFormat) -> dict[str, Any]:
    """The configuration of `logging`: records of Clade from `level` on, records of libraries from warnings on."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"log": {"()": "graph.observability.log_handler.handler", "log_format": log_format}},
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {"clade": {"level": level.upper()}},
    }


def flush() -> None:
    """Write all lines; a process that ends by a signal does not do this by itself."""
    for found in logging.getLogger().handlers:
        found.flush()
