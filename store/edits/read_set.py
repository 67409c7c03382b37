"""Read set: the items that an edit has read, and who writes when."""

from collections.abc import Mapping
from dataclasses import dataclass

from store.metadata.tree_version import TreeVersion
from store.model.items import Item
from store.model.keys import Key, tree_version_key
from store.model.records import Record


@dataclass(frozen=True)
class WriteContext:
    """The time of a write, in UTC (RFC 3339) and in seconds since 1970, and its author, None where unknown.

    Of a dry run no changes of the search items of removed nodes are built, only their number is estimated.
    """

    at: str
    now: float
    by: str | None = None
    is_dry_run: bool = False


class ReadSet:
    """Items by key, None where there is none. Asking for a key that was not read raises KeyError.

    Records of roots have counts of descendants only where the version of their tree was read.
    """

    def __init__(self) -> None:
        self._items: dict[Key, Item | None] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    def add(self, items: Mapping[Key, Item | None]) -> None:
        self._items |= items

    def item(self, key: Key) -> Item | None:
        return self._items[key]

    def record(self, key: Key) -> Record | None:
        item = self._items[key]
        if item is None:
            return None
        record = Record.of(item)
        is_counted = not record.is_root or tree_version_key(key.pk) not in self._items
        return record if is_counted else self.version(key.pk).with_counts(record)

    def version(self, partition: str) -> TreeVersion:
        return TreeVersion.of(partition, self._items[tree_version_key(partition)])
