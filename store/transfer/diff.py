"""What must change in one tree so that it is as a file wants it: two sorted lists, walked side by side.

The records of the table and the nodes of the file both come in key order, which is depth-first. So the ancestors of
wherever the walk stands are always on one stack, and nothing has to be kept but what changes and what stands above it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from msgspec.structs import replace

from store.errors import BadInput
from store.model.hierarchy import may_stand, misplaced
from store.model.items import Item, check_content
from store.model.keys import parent_sort_key, path_of
from store.model.paths import format_path
from store.model.ranks import is_manual, rank_after
from store.model.records import Record
from store.text import shorten
from store.transfer.rows import (
    ImportPlan,
    Node,
    Rejection,
    Tree,
)


@dataclass
class TreeDiff:
    """What changes in a tree: `created` parents first, `updated` as old and new state, `removed` children first.

    `above` holds the table's records of everything that stands above a change, by sort key.
    """

    created: list[Node] = field(default_factory=list)
    updated: list[tuple[Record, Record]] = field(default_factory=list)
    removed: list[Record] = field(default_factory=list)
    above: dict[str, Record] = field(default_factory=dict)
    unchanged: int = 0
    rejections: list[Rejection] = field(default_factory=list)


class _Place:
    """A node on the stack: of the table where it has an `item`, else one that will be created.

    `covered` where the file speaks of it or of something above, `kept` where it must stay, `recorded` where what
    stands below it changes, so that it is among the records above. `ranks` are those of its children that hands made,
    `ranked` its children to be created that want such a one.
    """

    __slots__ = ("covered", "item", "kept", "level", "ranked", "ranks", "recorded", "sk")

    def __init__(self, sk: str, level: str, item: Item | None, *, covered: bool, kept: bool) -> None:
        self.sk = sk
        self.level = level
        self.item = item
        self.covered = covered
        self.kept = kept
        self.recorded = False
        self.ranks: list[str] = []
        self.ranked: list[Node] = []


class TreeMerge:
    """The walk through one tree: `take` the table's node items in key order, page by page, then `finish`.

    `pk` is the tree's partition. With `prune`, what the file lacks below its nodes is removed, but never what a
    rejected row was about. An updated record has its next revision, and still the time of the former one.
    """

    def __init__(self, wanted: ImportPlan, tree: Tree, pk: str, *, prune: bool = False) -> None:
        self._wanted = wanted
        self._pk = pk
        self._prune = prune
        self._refused = dict(tree.refused)
        self._nodes = iter([tree.nodes[sk] for sk in sorted(tree.nodes)])
        self._next = next(self._nodes, None)
        self._stack: list[_Place] = []
        self._found = TreeDiff()

    def take(self, items: Iterable[Item]) -> None:
        for item in items:
            sk = cast(str, item["sk"])
            while self._next is not None and self._next.sk < sk:
                self._add(self._advance())
            node = self._advance() if self._next is not None and self._next.sk == sk else None
            self._meet(sk, item, node)

    def finish(self) -> TreeDiff:
        while self._next is not None:
            self._add(self._advance())
        self._leave("")
        return self._found

    def _advance(self) -> Node:
        node = cast(Node, self._next)
        self._next = next(self._nodes, None)
        return node

    def _add(self, node: Node) -> None:
        """A node that the table has not."""
        above = self._leave(node.sk)
        try:
            self._check_new(node, above)
        except BadInput as error:
            return self._reject(node, str(error))
        self._record_stack()
        self._found.created.append(node)
        if node.rank is not None and above is not None:
            above.ranked.append(node)
        self._stack.append(_Place(node.sk, node.level, None, covered=True, kept=True))
        return None

    def _meet(self, sk: str, item: Item, node: Node | None) -> None:
        """A node that the table has, and what the file says of it."""
        above = self._leave(sk)
        if above is not None and is_manual(rank := cast(str, item["rank"])):
            above.ranks.append(rank)
        accepted = False
        if node is not None:
            try:
                self._compare(node, item)
                accepted = True
            except BadInput as error:
                self._reject(node, str(error))
        covered = accepted or (above is not None and above.covered)
        kept = accepted or not (self._prune and covered) or sk in self._refused or self._is_claimed(sk, item)
        self._stack.append(_Place(sk, cast(str, item["level"]), item, covered=covered, kept=kept))

    def _leave(self, sk: str) -> _Place | None:
        """Come to a key: close everything on the stack that it does not lie below; the closest that it does is told."""
        while self._stack and not (sk and sk.startswith(self._stack[-1].sk)):
            place = self._stack.pop()
            _rank(place.ranked, place.ranks)
            if place.item is not None and not place.kept:
                self._record_stack()
                self._found.removed.append(Record.of(place.item))
            elif self._stack:
                self._stack[-1].kept = True
        return self._stack[-1] if self._stack else None

    def _record_stack(self) -> None:
        """Something changes at the end of the stack, so all on it is needed."""
        for place in reversed(self._stack):
            if place.recorded:
                return
            place.recorded = True
            if place.item is not None:
                self._found.above[place.sk] = Record.of(place.item)

    def _is_claimed(self, sk: str, item: Item) -> bool:
        """Whether the file has the id of this item at another path: then it is no node that the file lacks."""
        node_id = _bare_id(item)
        if node_id in self._wanted.refused_ids:
            return True
        other = self._wanted.ids.get(node_id)
        return other is not None and (other.sk, other.root) != (sk, self._pk.partition("#")[2])

    def _reject(self, node: Node, reason: str) -> None:
        self._found.rejections.append(Rejection(node.number, reason))
        self._refused[node.sk] = node.number

    # -- whether a node may be as the file wants it --------------------------------------------------------------------

    def _check_new(self, node: Node, above: _Place | None) -> None:
        if len(node.sk) > 1 and (above is None or above.sk != parent_sort_key(node.sk)):
            raise BadInput(self._orphaned(node))
        under = above.level if above else None
        if not may_stand(self._wanted.hierarchy, node.level, under):
            raise BadInput(misplaced(self._wanted.hierarchy.levels[node.level], under))
        check_content(str(node), node.name or "", node.values)

    def _orphaned(self, node: Node) -> str:
        parent = parent_sort_key(node.sk)
        name = shorten(format_path(path_of(self._pk, parent)), 200)
        if parent in self._refused:
            return f"Its parent {name} is missing, since row {self._refused[parent]} was rejected."
        return f"Its parent {name} is neither in the file nor in the table."

    def _compare(self, node: Node, item: Item) -> None:
        """Note the update that a node needs, if any; raises BadInput where it is not the one that the table has."""
        if node.level != item["level"]:
            raise BadInput(f"{node} is a {item['level']} in the table, not a {node.level}.")
        if node.id is not None and node.id != _bare_id(item):
            raise BadInput(f"{node} has the id {_bare_id(item)} in the table, not {node.id}; ids never change.")
        same_name = node.name is None or node.name == item["name"]
        if same_name and all(item.get(name) == value for name, value in node.values.items()):
            self._found.unchanged += 1
            return
        old = Record.of(item)
        new = self._updated(old, node)
        check_content(str(node), new.name, new.attributes)
        self._record_stack()
        self._found.updated.append((old, new))

    def _updated(self, old: Record, node: Node) -> Record:
        values = {name: value for name, value in {**old.attributes, **node.values}.items() if value is not None}
        name = old.name if node.name is None else node.name
        return replace(old, name=name, attributes=values, revision=old.revision + 1, changed_by=None)


def _rank(nodes: Iterable[Node], taken: Iterable[str]) -> None:
    """Settle the ranks of siblings to be created: where another has one already, the next that is free."""
    ranks = set(taken)
    for node in nodes:
        node.rank = rank_after(cast(str, node.rank), ranks)
        ranks.add(node.rank or "")


def _bare_id(item: Item) -> str:
    return cast(str, item["id"]).partition(":")[2]
