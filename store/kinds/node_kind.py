"""Node kinds: what is stored besides a node, and follows from the node and its ancestors alone.

A kind is one class: the items of a node, what has to be read before they are written, and when they may be. Edits,
imports, background moves, check and repair ask all kinds of a hierarchy (`kinds.py`) and name none of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from store.model.hierarchy import Hierarchy
from store.model.items import Change, Delete, Item, Put, canonical_item, key_of
from store.model.keys import Key
from store.model.records import Record
from store.search.lineage import STEP, Lineage, Moves, id_hash, lineage

Found = Mapping[Key, Item | None]
"""Items that were read, by key."""


class Located(NamedTuple):
    """A node with its lineage.

    Of a node that is removed the lineage may be that of its root alone: the keys of its items follow from that.
    """

    record: Record
    line: Lineage

    @classmethod
    def below(cls, ancestors: Sequence[Record], record: Record) -> "Located":
        """A node whose ancestors, the root first, are read."""
        return cls(record, lineage([one.id for one in (*ancestors, record)]))


def located(ancestors: Sequence[Record], subtree: Iterable[Record]) -> Iterator[Located]:
    """The nodes of a subtree in key order, or siblings with all below them, with their lineages.

    `ancestors` are those of the first one, the root first.
    """
    above, line = list(ancestors), lineage([one.id for one in ancestors])
    for record in subtree:
        while above and not above[-1].key.holds(record.key):
            above.pop()
            line = line[:-STEP]
        above.append(record)
        line += id_hash(record.id)
        yield Located(record, line)


class NodeKind:
    """The items of one kind in one `hierarchy`. A subclass has `items`, and what differs from the rest below."""

    noun = "item"
    """What a finding calls an item."""

    unwanted = "but its class has no use for them"
    """Why there are none in a hierarchy to which the kind does not apply."""

    stray = "that do not follow from it"
    """What a finding says of items of a node that it should not have."""

    unmarked = ("not complete", "outdated", "marked as complete")
    """What a finding says where the marker is missing, where it is another, and where the kind does not apply."""

    by_ancestors = False
    """Whether items depend on the ids of ancestors."""

    are_canonical = False
    """Whether items have no value that the store would write in another form, so that it need not look at them."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy

    @property
    def applies(self) -> bool:
        """Whether nodes of the hierarchy have items of this kind."""
        return True

    @property
    def partitions(self) -> Sequence[str]:
        """What the partition keys of all items begin with, up to the first `#`; items of no other kind do."""
        raise NotImplementedError

    def items(self, node: Located) -> list[Item]:
        """The items of a node."""
        raise NotImplementedError

    def owner(self, item: Item) -> str:
        """The id of the node that has an item, as its key or content says; empty where that is damaged."""
        raise NotImplementedError

    def marker(self) -> Item | None:
        """The item, written with the first root or by a repair, which says that all nodes have their items; None where
        there was no time without.
        """
        return None

    # -- writing -------------------------------------------------------------------------------------------------------

    def keys_to_read(self, before: Located | None, after: Located | None) -> list[Key]:
        """The keys that `changes` needs to have been read."""
        return []

    def put(self, item: Item, old: Item | None, found: Found) -> Change:
        """The change that writes an item where the node had `old` before; raises a BadInput where it may not."""
        return Put(item, is_canonical=self.are_canonical)

    def delete(self, item: Item, found: Found) -> Change | None:
        """The change that removes an item of a node, None where it is not the node's any more."""
        return Delete(key_of(item))

    def changes(self, before: Located | None, after: Located | None, found: Found) -> list[Change]:
        """The changes that make the items of a node right; None for one that did not exist before, or not after."""
        if before is None:
            return [] if after is None else [self.put(item, None, found) for item in self.items(after)]
        old = {key_of(item): item for item in self.items(before)}
        new = {} if after is None else {key_of(item): item for item in self.items(after)}
        changes: list[Change] = [
            self.put(item, old.get(key), found)
            for key, item in new.items()
            if key not in old or not self.is_same(old[key], item)
        ]
        removals = [self.delete(item, found) for key, item in old.items() if key not in new]
        return changes + [one for one in removals if one is not None]

    def follows(self, source: Key, target: Key) -> bool:
        """Whether the move of a subtree changes the items of all its nodes, and not at most those of its top."""
        return True

    def most(self, records: Sequence[Record], *, moved: bool) -> int:
        """A bound of the changes for nodes that are moved or removed, besides three for each node."""
        return (1 + moved) * sum([len(self.items(Located(record, ""))) for record in records])

    # -- checking ------------------------------------------------------------------------------------------------------

    def is_same(self, stored: Item, derived: Item) -> bool:
        """Whether an item need not be written, since it is stored already."""
        return stored == derived

    def facts(self, items: Sequence[Item], moves: Moves | None) -> Iterable[str]:
        """A text for each item of one node; those of a stored and a derived item are equal if the former is right.

        `moves` are those of ancestors by which stored items may be outdated; with None every value is compared.
        """
        for item in items:
            values = sorted(canonical_item(item).items())
            yield "\n".join([str(item["pk"]), str(item["sk"]), *[f"{name}={_shown(value)}" for name, value in values]])


class PlainKind(NodeKind):
    """One item of each node, by its id and key alone: an import writes it without making a record."""

    def created(self, node_id: str, pk: str, sk: str, found: Found) -> Change:
        """The change that writes the item of a new node."""
        raise NotImplementedError


def _shown(value: Any) -> str:
    """A value as text that does not depend on the order of a map."""
    return repr(sorted(cast(dict[str, Any], value).items())) if type(value) is dict else repr(value)


class NodeKinds:
    """Some kinds of a hierarchy, together."""

    def __init__(self, kinds: Iterable[NodeKind]) -> None:
        self.all = list(kinds)
        self.by_ancestors = any(kind.by_ancestors for kind in self.all)
        self.plain = [kind for kind in self.all if isinstance(kind, PlainKind)]
        self._readers = [kind for kind in self.all if type(kind).keys_to_read is not NodeKind.keys_to_read]

    def __iter__(self) -> Iterator[NodeKind]:
        return iter(self.all)

    def others(self) -> "NodeKinds":
        """Those that are not plain."""
        return NodeKinds([kind for kind in self.all if not isinstance(kind, PlainKind)])

    @property
    def reads(self) -> bool:
        """Whether any of them has to read before it writes."""
        return bool(self._readers)

    def of_move(self, source: Key, target: Key) -> tuple["NodeKinds", "NodeKinds"]:
        """Those whose items a move changes for all nodes of a subtree, and those for its top alone."""
        follow = [kind for kind in self.all if kind.follows(source, target)]
        return NodeKinds(follow), NodeKinds([kind for kind in self.all if kind not in follow])

    def markers(self) -> list[Item]:
        """The items that say that all nodes have their items."""
        found = [marker for kind in self.all if (marker := kind.marker()) is not None]
        return list({key_of(marker): marker for marker in found}.values())

    def keys_to_read(self, before: Located | None, after: Located | None) -> list[Key]:
        return [key for kind in self._readers for key in kind.keys_to_read(before, after)]

    def changes(self, before: Located | None, after: Located | None, found: Found) -> list[Change]:
        """As those of each kind."""
        return [change for kind in self.all for change in kind.changes(before, after, found)]

    def most(self, records: Sequence[Record], *, moved: bool) -> int:
        return sum([kind.most(records, moved=moved) for kind in self.all])

    # -- a move of several transactions --------------------------------------------------------------------------------

    def prepared(self, before: Located, after: Located, found: Found) -> list[Change]:
        """The changes with the copy of a node: its items at keys where it has none yet."""
        return [
            change
            for kind in self.all
            for change in _apart(kind, before, kind.changes(before, after, found))
            if isinstance(change, Put)
        ]

    def swept(self, before: Located, after: Located | None, found: Found) -> list[Change]:
        """The changes with the removal of a moved node from its former place, or of a deleted one: all others."""
        changes: list[Change] = []
        for kind in self.all:
            all_changes = kind.changes(before, after, found)
            prepared = {id(one) for one in _apart(kind, before, all_changes) if isinstance(one, Put)}
            changes += [change for change in all_changes if id(change) not in prepared]
        return changes

    def undone(self, copy: Located, node: Located, found: Found) -> list[Change]:
        """The changes with the removal of the copy of a node: those of `prepared` taken back."""
        return [change for kind in self.all for change in kind.changes(copy, node, found) if isinstance(change, Delete)]


def _apart(kind: NodeKind, node: Located, changes: Sequence[Change]) -> list[Change]:
    """The changes at keys where a node has no items."""
    if not changes:
        return []
    own = {key_of(item) for item in kind.items(node)}
    return [change for change in changes if change.key not in own]
