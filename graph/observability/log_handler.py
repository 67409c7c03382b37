"""Log handler: lines to standard error, as JSON or as text for a terminal.

They are written by a thread of their own, some of them at a time: a reader that is slow, or does not read, never holds
up a request, and a line costs the event loop some microseconds.
"""

import logging
import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

Form = Literal["auto", "json", "text"]

WRITE_AFTER_SECONDS = 0.1
FLUSH_SECONDS = 2.0
MAX_WAITING_BYTES = 16_000_000  # of lines to be written; more are dropped, and counted
LINE_BYTES = 100  # that a line takes beside its text
MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACEBACK_CHARACTERS = 20_000


class Sink:
    """Lines on their way to a file descriptor."""

    dropped = 0

    def __init__(self, descriptor: int, *, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._lines: deque[bytes] = deque()
        self._bytes = 0  # of lines that wait or are being written
        self._counting = threading.Lock()
        self._due = threading.Event()
        self._busy = False
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def write(self, line: bytes, *, soon: bool = False) -> None:
        """Take a line, which ends in a newline; never waits."""
        taken = len(line) + LINE_BYTES
        with self._counting:
            if self._bytes + taken > self._max_bytes:
                self.dropped += 1
                return
            self._bytes += taken
        self._lines.append(line)
        if soon:
            self._due.set()

    def flush(self) -> None:
        """Wait until all is written, but not for a reader that stands still."""
        end = time.monotonic() + FLUSH_SECONDS
        self._due.set()
        while (self._lines or self._busy) and time.monotonic() < end:
            time.sleep(0.005)

    def _run(self) -> None:
        while True:
            self._due.wait(WRITE_AFTER_SECONDS)
            self._due.clear()
            self._busy = True  # before the lines are taken, so that a flush misses none
            count = len(self._lines)
            left = memoryview(b"".join([self._lines.popleft() for _ in range(count)]))
            taken = len(left) + count * LINE_BYTES
            with suppress(OSError):  # nobody reads any more, and there is nobody else to tell
                while left:
                    left = left[os.write(self._descriptor, left) :]
            with self._counting:
                self._bytes -= taken
            self._busy = False


class Handler(logging.Handler):
    """Sends records to a sink as lines of one form."""

    def __init__(self, sink: Sink, form: Literal["json", "text"]) -> None:
        super().__init__()
        self.sink = sink
        self._line = json_line if form == "json" else text_line

    def createLock(self) -> None:
        self.lock = None  # the sink needs none

    def emit(self, record: logging.LogRecord) -> None:
        self.sink.write(self._line(record), soon=record.levelno >= logging.WARNING)

    def flush(self) -> None:
        self.sink.flush()


def handler(form: Form) -> Handler:
    """The one handler of a server, for `logging.config.dictConfig`."""
    if form == "auto":
        form = "text" if sys.stderr.isatty() else "json"
    return Handler(Sink(sys.stderr.fileno()), form)


def config(level: str, form: Form) -> dict[str, Any]:
    """How a server process sets up `logging`: its own lines from `level` on, those of libraries from warnings on."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"log": {"()": "graph.observability.log_handler.handler", "form": form}},
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {"clade": {"level": level.upper()}},
    }


def dropped() -> int:
    """How many lines of this process nobody read in time."""
    return sum(one.sink.dropped for one in logging.getLogger().handlers if isinstance(one, Handler))


def flush() -> None:
    """Write what has not been written yet: a process that ends by a signal does not come back to it."""
    for one in logging.getLogger().handlers:
        one.flush()


def json_line(record: logging.LogRecord) -> bytes:
    """A record as one line of JSON."""
    told = {
        "time": datetime.fromtimestamp(record.created, UTC),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage()[:MAX_MESSAGE_CHARACTERS],
    }
    told.update(_fields(record))
    option = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(told, option=option)
    except TypeError:  # a text with half a character in it
        return orjson.dumps({name: _whole(str(value)) for name, value in told.items()}, option=option)


def text_line(record: logging.LogRecord) -> bytes:
    """A record as a line for people; a traceback takes more of them."""
    clock = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
    fields = _fields(record)
    trace = fields.get("exception")
    told = [clock, record.levelname.lower(), record.getMessage()[:MAX_MESSAGE_CHARACTERS]]
    told += [f"{name}={value}" for name, value in fields.items() if value is not None and name != "exception"]
    line = "".join(one if one.isprintable() else repr(one)[1:-1] for one in " ".join(told))
    return (_whole(f"{line}\n{trace}" if trace else line) + "\n").encode()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    if record.exc_info and record.exc_info[0] is not None:
        trace = logging.Formatter().formatException(record.exc_info)[-MAX_TRACEBACK_CHARACTERS:]
        return {**fields, "exception": trace}
    return fields


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
