"""Change log: what each transaction on a tree changed, kept for 90 days.

A log item is in the tree's partition at `sk` = `!` and the number of the version after the transaction. The roots of a
hierarchy have a log too, with the changes of which roots there are and of their order.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple, cast

from msgspec import Meta, Struct

from store.errors import BadPath
from store.metadata.tree_version import TreeVersion
from store.model.attributes import Value
from store.model.items import Item, Number, Put, SortKey, Time, damaged, decoded
from store.model.keys import log_key
from store.model.paths import parse_path


class Event(StrEnum):
    CREATED = "CREATED"
    UPDATED = "UPDATED"
    MOVED = "MOVED"
    DELETED = "DELETED"


class LogEntry(NamedTuple):
    """The change of one node: the event, the node's key and id, its level and its revision after the change.

    `sk` is its key without the log's partition: of a node `#NE#`, of a root in its hierarchy's log `#US#`. A move has
    the paths of its source and target, and is in the logs of both trees; with equal paths only the order among siblings
    changed. A move or deletion includes all descendants unless it is `alone`.
    """

    event: Event
    sk: SortKey
    id: str
    level: str
    revision: Number
    source: str | None = None
    target: str | None = None
    alone: bool = False


class _StoredLog(Struct):
    sk: Annotated[str, Meta(pattern=r"^!\d+$")]
    at: Time
    changes: list[LogEntry]
    ranks: dict[str, str] = {}


def root_log_key(pk: str) -> str:
    """The `sk` of a root in the log of its hierarchy."""
    return f"{pk[pk.index('#') :]}#"


def log_item(
    version: TreeVersion, entries: Iterable[LogEntry], at: str, now: float, ranks: Mapping[str, str] | None = None
) -> Put:
    """The log item of the transaction that increments `version`; `at` is the time as text, `now` in seconds.

    `ranks` are the new ranks of siblings that were reordered, by their `sk` as in entries.
    """
    key = log_key(version.partition, version.number + 1)
    changes: list[Value] = [[*_encode(entry)] for entry in entries]
    item: Item = {"pk": key.pk, "sk": key.sk, "at": at, "changes": changes, "expires": version.next_expires(now)}
    if ranks:
        item["ranks"] = cast(Value, dict(ranks))
    return Put(item)


def _encode(entry: LogEntry) -> tuple[Value, ...]:
    """An entry without the values at its end that are None or False."""
    return (entry.event.value, *entry[1 : None if entry.alone else 7 if entry.source else 5])


class LogContent(NamedTuple):
    """The content of a log item: its number, its time as text and in seconds since 1970, entries and new ranks."""

    number: int
    at: str
    seconds: float
    entries: list[LogEntry]
    ranks: dict[str, str]


def log_content(item: Item) -> LogContent:
    """The content of a log item; raises BadData where it is damaged."""
    found = decoded(item, _StoredLog)
    try:
        seconds = datetime.fromisoformat(found.at).timestamp()
        for entry in found.changes:
            for path in filter(None, (entry.source, entry.target)):
                parse_path(path)
    except (ValueError, BadPath) as error:
        raise damaged(item, str(error)) from None
    return LogContent(int(found.sk[1:]), found.at, seconds, found.changes, found.ranks)
