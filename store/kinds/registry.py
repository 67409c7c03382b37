"""Registry of the node kinds: an entry for each."""

from store.kinds.cells import CellKind
from store.kinds.kind import NodeKind
from store.kinds.unique import UniqueKind
from store.kinds.words import WordKind
from store.model.hierarchy import Hierarchy

KINDS: dict[str, NodeKind] = {kind.name: kind for kind in (WordKind(), CellKind(), UniqueKind())}


def is_asked(hierarchy: Hierarchy) -> bool:
    """Whether a class asks for items of any kind."""
    return any(kind.is_asked(hierarchy) for kind in KINDS.values())
