"""Alarms of a table: metrics of DynamoDB in CloudWatch, the same in every template format."""

from collections.abc import Sequence
from dataclasses import dataclass

from store.model.keys import Index, index_name

NAMESPACE = "AWS/DynamoDB"
PERIOD_SECONDS = 60
PERIODS = 5
"""The number of latest periods that are looked at."""
BREACHING_PERIODS = 3
"""An alarm is raised when so many of them are above the threshold: retries absorb a short peak."""
OPERATIONS = ("BatchGetItem", "GetItem", "PutItem", "Query", "Scan", "TransactWriteItems")
"""The calls of servers and commands that read and write items."""


@dataclass(frozen=True)
class Metric:
    """A metric of the table, of one of its indexes or of one operation."""

    name: str
    index: str | None = None
    operation: str | None = None


@dataclass(frozen=True)
class Alarm:
    """An alarm on the sum of metrics, which is raised when the sum is above 0 in several minutes."""

    name: str
    description: str
    metrics: Sequence[Metric]


def alarms() -> list[Alarm]:
    """The alarms of a table."""
    places = [None, *(index_name(index) for index in Index if index is not Index.TABLE)]
    return [
        Alarm(
            "ReadThrottles",
            "Reads of the table are throttled: raise its capacity, or look for a hot tree.",
            [Metric("ReadThrottleEvents", index=place) for place in places],
        ),
        Alarm(
            "WriteThrottles",
            "Writes of the table are throttled: raise its capacity, or divide a tree that is written all the time.",
            [Metric("WriteThrottleEvents", index=place) for place in places],
        ),
        Alarm(
            "SystemErrors",
            "DynamoDB fails; Clade retries, and answers UNAVAILABLE if that does not help.",
            [Metric("SystemErrors", operation=operation) for operation in OPERATIONS],
        ),
    ]
