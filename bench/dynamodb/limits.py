"""Limits of DynamoDB's partitions as token buckets: strong reads of one item, writes of one partition of an index."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Name = tuple[str, str]
"""A table and an item of it, or a table or index and the value of its partition key."""

BURST_SECONDS = 0.1  # of unused units that a bucket keeps
WRITE_UNIT_BYTES = 1024
TRANSACTIONAL = 2  # units for one of the table; an index gets its entries after the transaction, at the usual price


@dataclass
class Buckets:
    """Units a second for each name, without a limit while `rate` is None."""

    rate: float | None = None
    clock: Callable[[], float] = time.monotonic
    used: Counter[Name] = field(default_factory=Counter)
    """The units of each name since the last `clear`."""
    rejected: Counter[Name] = field(default_factory=Counter)
    _debts: dict[Name, tuple[float, float]] = field(default_factory=dict)

    def take(self, units: Mapping[Name, int]) -> bool:
        """Take all these units, or none if a bucket has less than one. One that has more may give more than it has."""
        empty = [name for name in units if self._balance(name) < 1]
        self.rejected.update(empty)
        if empty:
            return False
        for name, some in units.items():
            self.used[name] += some
            self._debts[name] = (self._balance(name) - some, self.clock())
        return True

    def clear(self) -> None:
        self.used.clear()
        self.rejected.clear()

    def _balance(self, name: Name) -> float:
        if self.rate is None:
            return 1.0
        most = max(1.0, self.rate * BURST_SECONDS)
        left, then = self._debts.get(name, (most, 0.0))
        return min(most, left + (self.clock() - then) * self.rate)


def strongly_read(request: Json) -> list[tuple[str, Json]]:
    """The table and key of each item that a GetItem or BatchGetItem reads strongly."""
    if "Key" in request:
        return [(request["TableName"], request["Key"])] if request.get("ConsistentRead") else []
    asked = request.get("RequestItems", {}).items()
    return [(table, key) for table, one in asked if one.get("ConsistentRead") for key in one.get("Keys", ())]


def item_name(table: str, key: Json) -> Name:
    return table, " ".join(_text(key, name) for name in sorted(key))


@dataclass(frozen=True)
class Schema:
    """The keys of a table and its indexes: the names of their key attributes, the partition key first."""

    table: str
    keys: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, description: Json) -> "Schema":
        """The schema in a result of DescribeTable."""
        table = description["Table"]
        found = {one["IndexName"]: one["KeySchema"] for one in table.get("GlobalSecondaryIndexes", ())}
        found = {table["TableName"]: table["KeySchema"], **found}
        roles = ("HASH", "RANGE")
        keys = {
            name: tuple(one["AttributeName"] for role in roles for one in schema if one["KeyType"] == role)
            for name, schema in found.items()
        }
        return cls(table["TableName"], keys)


class IndexEntries:
    """The write units of changes by partition, for items that were written while it watched.

    A changed entry of an index costs its new size; one whose key changes costs a deletion too. Of an item that it has
    not seen, nothing is known to be deleted.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._items: dict[tuple[str, ...], Json] = {}

    def cost(self, changes: Iterable[Json], *, is_transaction: bool) -> Counter[Name]:
        """The units of the changes of a request, each such as `{"Put": {"Item": …}}`."""
        units: Counter[Name] = Counter()
        for change in changes:
            ((kind, what),) = change.items()
            item = what.get("Item") or what["Key"]
            size = _units(item) if kind == "Put" else 1
            partition = (self._schema.table, _text(item, self._schema.keys[self._schema.table][0]))
            units[partition] += size * (TRANSACTIONAL if is_transaction else 1)
            if kind in ("Put", "Delete"):
                new = item if kind == "Put" else {}
                units.update(self._index_cost(self._items.get(self._key(item), {}), new))
        return units

    def apply(self, changes: Iterable[Json]) -> None:
        """Remember the changes, which were carried out."""
        for change in changes:
            if "Put" in change:
                self._items[self._key(change["Put"]["Item"])] = change["Put"]["Item"]
            elif "Delete" in change:
                self._items.pop(self._key(change["Delete"]["Key"]), None)

    def _index_cost(self, old: Json, new: Json) -> Counter[Name]:
        units: Counter[Name] = Counter()
        for index, names in self._schema.keys.items():
            if index == self._schema.table or old == new:
                continue
            before, after = (
                tuple(_text(item, name) for name in names) if all(name in item for name in names) else None
                for item in (old, new)
            )
            if before and before != after:
                units[index, before[0]] += 1
            if after:
                units[index, after[0]] += _units(new)
        return units

    def _key(self, item: Json) -> tuple[str, ...]:
        return tuple(_text(item, name) for name in self._schema.keys[self._schema.table])


def changes_of(operation: str, request: Json) -> list[tuple[str, Json]]:
    """The table and change of each write of a request, as in a transaction; reads have none."""
    match operation:
        case "TransactWriteItems":
            return [(next(iter(one.values()))["TableName"], one) for one in request["TransactItems"]]
        case "BatchWriteItem":
            return [
                (table, {kind.removesuffix("Request"): what})
                for table, some in request["RequestItems"].items()
                for one in some
                for kind, what in one.items()
            ]
        case "PutItem" | "DeleteItem" | "UpdateItem":
            return [(request["TableName"], {operation.removesuffix("Item"): request})]
    return []


def _text(item: Json, name: str) -> str:
    return str(next(iter(item[name].values())))


def _units(item: Json) -> int:
    return -(-sum(len(name.encode()) + _size(value) for name, value in item.items()) // WRITE_UNIT_BYTES)


def _size(value: Json) -> int:
    """About the bytes that DynamoDB counts for a value."""
    ((kind, content),) = value.items()
    match kind:
        case "M":
            return 3 + sum(1 + len(name.encode()) + _size(one) for name, one in content.items())
        case "L":
            return 3 + sum(1 + _size(one) for one in content)
        case "N":
            return len(content) // 2 + 1
        case "S":
            return len(content.encode())
    return 1
