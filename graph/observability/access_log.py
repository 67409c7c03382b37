"""Access log: one line for each request."""

import logging
import time
from typing import Any

from graph.errors import INTERNAL, OVERLOADED, TIMEOUT
from graph.observability.request_info import RequestInfo, cut
from store.errors import Unavailable

MAX_DOCUMENT_CHARACTERS = 2_000
MAX_PATH_CHARACTERS = 200

OURS = frozenset({INTERNAL, OVERLOADED, TIMEOUT, Unavailable.code})
"""The codes of failures that are not the client's."""

logger = logging.getLogger("clade.request")

_LEVEL_NAMES = {logging.INFO: "INFO", logging.WARNING: "WARNING"}


class RequestLog:
    """Writes one line for each request: a warning where it was slow, or failed by no fault of its client."""

    def __init__(self, slow_seconds: float) -> None:
        self._slow_seconds = slow_seconds

    def __call__(self, observed: RequestInfo) -> None:
        failed = observed.status >= 500 or not OURS.isdisjoint(observed.codes)
        level = logging.WARNING if failed or observed.seconds >= self._slow_seconds else logging.INFO
        if logger.isEnabledFor(level):
            logger.handle(RequestRecord(level, fields_of(observed)))


def log_rejected(client: tuple[str, int] | None, status: int, reason: str) -> None:
    """Write the line of a request that was rejected while it was received: it has neither an id nor an operation."""
    if logger.isEnabledFor(logging.INFO):
        address = cut(client[0]) if client else None
        logger.handle(RequestRecord(logging.INFO, {"status": status, "client": address, "reason": reason}))


class RequestRecord(logging.LogRecord):
    """A request's line on its way. It tells no place in the code, no thread and no process, whose search takes as long
    as all else that is done for the line.
    """

    def __init__(self, level: int, fields: dict[str, Any]) -> None:
        self.__dict__.update(_SAME)
        self.levelno = level
        self.levelname = _LEVEL_NAMES[level]
        self.created = time.time()
        self.fields = fields


_SAME = vars(logging.LogRecord(logger.name, logging.INFO, "", 0, "request", None, None))


def fields_of(observed: RequestInfo) -> dict[str, Any]:
    """What a request's line tells: never variables, and the document only where debugging is on."""
    told: dict[str, Any] = {
        "id": observed.id,
        "method": observed.method,
        "path": observed.path[:MAX_PATH_CHARACTERS],
        "status": observed.status,
        "ms": round(observed.seconds * 1000, 3),
        "client": observed.client,
    }
    if observed.caller.name is not None:
        told["caller"], told["credential"] = cut(observed.caller.name), cut(observed.caller.id)
    if observed.kind is not None:
        told["operation"], told["kind"], told["how"] = observed.name, observed.kind, observed.how
        told.update(observed.reads)
        told.pop("cached", None)  # `how` says so
    if observed.codes:
        told["codes"] = observed.codes
    if observed.trace_id is not None:
        told["trace"] = observed.trace_id
    if observed.document is not None and logger.isEnabledFor(logging.DEBUG):
        told["document"] = observed.document[:MAX_DOCUMENT_CHARACTERS]
    return told
