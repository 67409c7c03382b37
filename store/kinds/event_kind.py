"""Event kinds: what is stored of what happened to nodes, and cannot be derived from those that are there.

So a check has constraints for their items, but does not derive them. Each kind is one class, which writers ask and do
not name (`kinds.py`).
"""

from collections.abc import Iterable, Sequence

from store.kinds.node_kind import Found, Located
from store.model.hierarchy import Hierarchy
from store.model.items import Change
from store.model.keys import Key
from store.model.records import Record


class EventKind:
    """The items of one kind in one `hierarchy`, None where its class is not loaded; for each event the changes."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        self.hierarchy = hierarchy

    def changed(self, old: Record) -> list[Change]:
        """A node gets its next revision."""
        return []

    def deleted(self, node: Located, at: str, by: str | None) -> list[Change]:
        """A node is deleted, alone or with others."""
        return []

    def keys_of_move(self, nodes: Sequence[Record]) -> list[Key]:
        """The keys that `moved` needs to have been read; `nodes` are the top and its ancestors, the root first."""
        return []

    def moved(self, before: Sequence[Record], after: Sequence[Record], found: Found) -> list[Change]:
        """A subtree is moved; `before` and `after` are its top and the ancestors, the root first."""
        return []

    def carried(self, before: Located, source: Key, target: Key) -> list[Change]:
        """A node is moved, alone or with the subtree from `source` to `target`."""
        return []

    def began(self, move_id: str) -> list[Change]:
        """A move of several transactions begins."""
        return []

    def ended(self, move_id: str) -> list[Change]:
        """It has ended."""
        return []

    def most_of_removal(self, nodes: int) -> int:
        """A bound of the changes for so many nodes that are deleted, besides three for each."""
        return 0

    def most_of_move(self, nodes: int, source: Key, target: Key) -> int:
        """The same for a subtree of so many nodes that is moved."""
        return 0


class EventKinds:
    """All kinds of a hierarchy, together."""

    def __init__(self, kinds: Iterable[EventKind]) -> None:
        self.all = list(kinds)

    def changed(self, old: Record) -> list[Change]:
        return [change for kind in self.all for change in kind.changed(old)]

    def deleted(self, node: Located, at: str, by: str | None = None) -> list[Change]:
        return [change for kind in self.all for change in kind.deleted(node, at, by)]

    def keys_of_move(self, nodes: Sequence[Record]) -> list[Key]:
        return [key for kind in self.all for key in kind.keys_of_move(nodes)]

    def moved(self, before: Sequence[Record], after: Sequence[Record], found: Found) -> list[Change]:
        return [change for kind in self.all for change in kind.moved(before, after, found)]

    def carried(self, before: Located, source: Key, target: Key) -> list[Change]:
        return [change for kind in self.all for change in kind.carried(before, source, target)]

    def began(self, move_id: str) -> list[Change]:
        return [change for kind in self.all for change in kind.began(move_id)]

    def ended(self, move_id: str) -> list[Change]:
        return [change for kind in self.all for change in kind.ended(move_id)]

    def most_of_removal(self, nodes: int) -> int:
        return sum([kind.most_of_removal(nodes) for kind in self.all])

    def most_of_move(self, nodes: int, source: Key, target: Key) -> int:
        return sum([kind.most_of_move(nodes, source, target) for kind in self.all])
