"""Access log: one line for each request."""

import logging
import time
from typing import Any

from graph.observability.request_info import RequestInfo, cut

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
