"""All kinds of what is stored besides nodes: the one list that writers, check and repair share.

A new kind is a class and its place in one of these lists.
"""

from collections.abc import Sequence

from store.kinds.event_kind import EventKind, EventKinds
from store.kinds.identity import History, IdRecords
from store.kinds.node_kind import NodeKind, NodeKinds
from store.kinds.search import CellItems, MovesForSearch, WordItems
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.records import Record

NODE_KINDS: list[type[NodeKind]] = [IdRecords, WordItems, CellItems]
EVENT_KINDS: list[type[EventKind]] = [History, MovesForSearch]


class Kinds:
    """The kinds that apply to a hierarchy; where its class is not loaded, those that any has."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        kinds = NODE_KINDS if hierarchy is not None else [IdRecords]
        self.nodes = NodeKinds([one for kind in kinds if (one := kind(hierarchy)).applies])  # type: ignore[arg-type]
        self.events = EventKinds([kind(hierarchy) for kind in EVENT_KINDS])

    def most_of_removal(self, records: Sequence[Record]) -> int:
        """A bound of the changes for nodes that are deleted, besides three for each."""
        return self.nodes.most(records, moved=False) + self.events.most_of_removal(len(records))

    def most_of_move(self, source: Key, target: Key, records: Sequence[Record]) -> int:
        """The same for a subtree that is moved, its top first."""
        below, top = self.nodes.of_move(source, target)
        most = below.most(records, moved=True) + top.most(records[:1], moved=True)
        return most + self.events.most_of_move(len(records), source, target)


def checked_kinds(hierarchy: Hierarchy) -> list[NodeKind]:
    """The kinds whose items have partitions of their own, also those that do not apply: then there may be none."""
    return [one for kind in NODE_KINDS if (one := kind(hierarchy)).partitions]
