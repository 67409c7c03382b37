"""What a table holds, and the changes that one commit makes to it.

An item is a flat mapping with the attributes of its keys (`pk`, `sk`; of a node also `parent`, `rank` and `tier`),
`expires` (seconds since 1970, after which it may be deleted) where it is not for ever, and whatever it is about.
"""

from collections.abc import Mapping
from typing import cast

from msgspec import Struct

from store.attributes import Value
from store.keys import Key

Item = dict[str, Value]

# What must be true of the item that lies at a change's key before the commit: these attributes have these values, and
# those given as None are absent. Nothing is required where the mapping is empty.
Condition = Mapping[str, Value]

ABSENT: Condition = {"pk": None}
UNCONDITIONAL: Condition = {}


class Put(Struct, frozen=True):
    """Write an item, over the one that lies at its key."""

    item: Item
    when: Condition = UNCONDITIONAL

    @property
    def key(self) -> Key:
        return key_of(self.item)


class Delete(Struct, frozen=True):
    """Remove the item at a key, if there is one."""

    key: Key
    when: Condition = UNCONDITIONAL


class Check(Struct, frozen=True):
    """Change nothing, but require something of the item at a key."""

    key: Key
    when: Condition


Change = Put | Delete | Check


def key_of(item: Item) -> Key:
    return Key(cast(str, item["pk"]), cast(str, item["sk"]))


def holds(condition: Condition, item: Item | None) -> bool:
    """Whether a condition is true of the item that lies at its key, or of nothing there."""
    found = item or {}
    return all(found.get(name) == value for name, value in condition.items())
