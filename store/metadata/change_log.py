"""Change log: what each transaction on a tree changed, kept for 90 days.

A log item lies behind the tree's version, at `sk` = `!` and the number that the version had after the transaction.
The roots of a hierarchy have a log too, of what changes which roots there are and how they are ordered.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, cast

from store.metadata.tree_version import TreeVersion
from store.model.attributes import Value
from store.model.items import Item, Put
from store.model.keys import (
    log_key,
)


class Event(StrEnum):
    CREATED = "CREATED"
    UPDATED = "UPDATED"
    MOVED = "MOVED"
    DELETED = "DELETED"


class LogEntry(NamedTuple):
    """One node's change: what happened, to which node, where it lies and which revision it has now.

    `sk` is its key without the log's partition in front: of a node `#NE#`, of a root in its hierarchy's log `#US#`. A
    move tells from which path to which, and is in the logs of both trees; with equal paths the node has only another
    place among its siblings. A move, and a deletion, is about all below the node as well, unless it is `alone`.
    """

    event: Event
    sk: str
    id: str
    level: str
    revision: int
    source: str | None = None
    target: str | None = None
    alone: bool = False


def root_log_key(pk: str) -> str:
    """How the log of a hierarchy names the root of a tree."""
    return f"{pk[pk.index('#') :]}#"


def log_item(
    stamp: TreeVersion, entries: Iterable[LogEntry], at: str, now: float, ranks: Mapping[str, str] | None = None
) -> Put:
    """What the transaction that raises `stamp` leaves in the log; `at` is the time as text, `now` in seconds.

    `ranks` are the new ranks of siblings that were put in another order, by what stands for `sk` in entries.
    """
    key = log_key(stamp.partition, stamp.number + 1)
    changes: list[Value] = [[*_needed(entry)] for entry in entries]
    item: Item = {"pk": key.pk, "sk": key.sk, "at": at, "changes": changes, "expires": stamp.next_expires(now)}
    if ranks:
        item["ranks"] = cast(Value, dict(ranks))
    return Put(item)


def _needed(entry: LogEntry) -> tuple[Value, ...]:
    """An entry without what it leaves out at its end."""
    return (entry.event.value, *entry[1 : None if entry.alone else 7 if entry.source else 5])


def log_entries(item: Item) -> list[LogEntry]:
    """What an item of the log tells."""
    return [LogEntry(Event(event), *rest) for event, *rest in cast(dict[str, Any], item)["changes"]]
