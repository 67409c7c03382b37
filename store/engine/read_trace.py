"""Read trace: the calls of one request to its store and what its caches answered, in the notation of DynamoDB.

A request has one only if the caller requested it (`ReadUsage.trace`).
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from store.model.keys import Index, Key, index_name
from store.model.ranges import KeyRange, just_after, prefix_end, siblings

MAX_CALLS = 200  # listed; the others are counted
MAX_KEYS = 20  # listed of one call


class ReadTrace:
    """The calls in the order in which they returned, at most MAX_CALLS, and the cached pages and records.

    `round_number` returns the number of the round that is under way. A round is what `ReadScheduler.rounds` counts:
    reads of which each began before all others had ended. So the pages of one long Query are in one round, and the
    reads of an edit, which no round counts, are in that of what the request read before, 0 at first.
    """

    def __init__(self, round_number: Callable[[], int]) -> None:
        self.pages = 0
        self.records = 0
        self._round_number = round_number
        self._calls: list[dict[str, Any]] = []
        self._left_out = 0

    def add_range(
        self,
        operation: str,
        key_range: KeyRange,
        *,
        items: int,
        units: float,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = False,
        count: bool = False,
        after: str | None = None,
    ) -> None:
        """Add a call for a range, or for the part of it behind the sort key `after`; `count` returns no items."""
        if self._has_room():
            options = {
                "limit": limit,
                "scanIndexForward": False if reverse else None,
                "select": "COUNT" if count else None,
                "after": after,
            }
            what = {"keyCondition": key_condition(key_range)} | {k: v for k, v in options.items() if v is not None}
            self._add(operation, key_range.index, what, items, units, strong=strong)

    def add_keys(self, operation: str, keys: Sequence[Key], *, items: int, units: float, strong: bool) -> None:
        """Add a call for items by their keys, of which at most MAX_KEYS are listed."""
        if self._has_room():
            listed = [f"{_equal('pk', pk)} AND {_equal('sk', sk)}" for pk, sk in keys[:MAX_KEYS]]
            what: dict[str, Any] = {"keys": listed}
            if len(keys) > MAX_KEYS:
                what["moreKeys"] = len(keys) - MAX_KEYS
            self._add(operation, Index.TABLE, what, items, units, strong=strong)

    def report(self) -> dict[str, Any]:
        """The members of `extensions.reads` beside the counts; `moreCalls` only where some are left out."""
        more = {"moreCalls": self._left_out} if self._left_out else {}
        return {"fromCache": {"pages": self.pages, "records": self.records}, "calls": self._calls, **more}

    def _has_room(self) -> bool:
        has_room = len(self._calls) < MAX_CALLS
        self._left_out += not has_room
        return has_room

    def _add(
        self, operation: str, index: Index, what: dict[str, Any], items: int, units: float, *, strong: bool
    ) -> None:
        self._calls.append(
            {
                "operation": operation,
                "index": index_name(index),
                **what,
                "consistentRead": strong,
                "items": items,
                "units": units,
                "round": self._round_number(),
            }
        )


def key_condition(key_range: KeyRange) -> str:
    """A range as a key condition with its values: `pk = "location#US" AND begins_with(sk, "#NE#")`.

    Ranges of a prefix are `begins_with`, also where they leave out the node whose key is the prefix itself, though
    DynamoDB is sent BETWEEN for all of them. Of BETWEEN the upper bound is not in the range.
    """
    partition, lo, hi = _equal(key_range.index.partition, key_range.partition), key_range.lo, key_range.hi
    if key_range == siblings(key_range.partition):
        return partition
    prefix = lo.removesuffix("!")
    if prefix.endswith("#") and lo in (prefix, just_after(prefix)) and hi == prefix_end(prefix):
        return f"{partition} AND begins_with({key_range.index.sort}, {_quoted(prefix)})"
    return f"{partition} AND {key_range.index.sort} BETWEEN {_quoted(lo)} AND {_quoted(hi)}"


def _equal(name: str, value: str) -> str:
    return f"{name} = {_quoted(value)}"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
