"""Model of restores: which nodes of a deletion come back, where and with what, or why none does.

Other edits are not modelled: what they leave is taken from the table, as the nodes before and after them tell it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from store.engine import ReadUsage, Store
from store.metadata.history import deletion_of
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Level, Search, SearchScope, may_stand
from store.model.keys import KeyRange, Path, id_key, path_of
from store.model.ranks import is_manual
from store.model.records import Item, Record
from store.writing.edit import UNUSABLE, Named
from store.writing.restore import Restore
from tests.hierarchies import CATEGORY
from tests.stores import StoreProxy

CODE = Attribute("code", Kind.TEXT, "Code.", unique=True)


def _coded(level: Level) -> Level:
    return replace(level, attributes={**level.attributes, "code": CODE})


LEVELS = {name: _coded(level) for name, level in CATEGORY.levels.items()}
CODED = replace(CATEGORY, levels=LEVELS, search=Search(SearchScope.TREE))
PLAIN = replace(CATEGORY, levels=LEVELS)
"""Both have unique codes, the first one search as well."""

Refusal = tuple[str, str]
"""Code and field."""


@dataclass(frozen=True)
class Node:
    id: str
    path: Path
    level: str
    name: str
    values: Mapping[str, Any]
    revision: int
    rank: str

    @property
    def place(self) -> str | None:
        return self.rank if is_manual(self.rank) else None


@dataclass(frozen=True)
class Lost:
    """A deleted node as it was last, with the id of its parent then; `kids` of its children are deleted with it."""

    node: Node
    deletion: str
    under: str | None
    kids: int


Nodes = dict[str, Node]


def nodes_of(items: Iterable[Item]) -> Nodes:
    """All nodes of a table by id."""
    found = [Record.of(item) for item in items if "tier" in item]
    return {
        one.id: Node(one.id, one.path, one.level, one.name, one.attributes, one.revision, one.rank) for one in found
    }


def lost_of(items: Sequence[Item]) -> dict[str, Lost]:
    """All deleted nodes of a table by id, with the contents of their last revisions."""
    revisions = {(item["pk"], item["sk"]): item for item in items if str(item["pk"]).startswith("id#")}
    found = {}
    for item in items:
        if str(item["pk"]).startswith("id#") and item["sk"] == "v0" and item.get("deleted"):
            gone: Any = item
            content: Any = revisions[gone["pk"], f"v{gone['revision']:010d}"]
            node_id, path = gone["pk"].removeprefix("id#"), path_of(gone["tree"], gone["key"])
            values = {name: content[name] for name in ("note", "code") if name in content}
            rank = gone.get("place") or f"{gone['level']}#"
            node = Node(node_id, path, gone["level"], content["name"], values, gone["revision"], rank)
            found[node_id] = Lost(node, str(deletion_of(item)), gone.get("under"), gone["kids"])
    return found


def redirects_of(items: Iterable[Item]) -> dict[Path, tuple[str, bool]]:
    """The id in each redirect, and whether reads follow it."""
    return {
        path_of(str(item["pk"]).removeprefix("alias#"), str(item["sk"])): (str(item["id"]), "deleted" not in item)
        for item in items
        if str(item["pk"]).startswith("alias#")
    }


class Model:
    """The nodes, those that are deleted, and of each path that nodes have left the redirect there."""

    def __init__(self, *, is_lagging: bool) -> None:
        """`is_lagging`: a child that is missing in the index keeps a node from being restored."""
        self.is_lagging = is_lagging
        self.nodes: Nodes = {}
        self.lost: dict[str, Lost] = {}
        self.redirects: dict[Path, tuple[str, bool]] = {}

    def at(self, path: Path) -> Node | None:
        return next((one for one in self.nodes.values() if one.path == path), None)

    # -- other edits ---------------------------------------------------------------------------------------------------

    def take(self, items: Sequence[Item]) -> None:
        """Take over whatever the table has."""
        self.nodes, self.lost, self.redirects = nodes_of(items), lost_of(items), redirects_of(items)

    def follow(self, items: Sequence[Item]) -> None:
        """Take over one edit: fail unless what has gone is one deletion, as the nodes before it tell."""
        nodes, stored, former = nodes_of(items), lost_of(items), {**self.lost}
        gone = {one: node for one, node in self.nodes.items() if one not in nodes}
        labels = {stored[one].deletion for one in gone}
        assert len(labels) == bool(gone)
        assert not labels & {one.deletion for one in former.values()}
        for one in nodes.keys() & former.keys():
            self.bring_back(one)
        unders = {one: self._id_at(node.path[:-1]) for one, node in gone.items()}
        kids = Counter(unders.values())
        for one, node in gone.items():
            rank = node.rank if node.place else f"{node.level}#"
            self.lost[one] = Lost(replace(node, rank=rank), *labels, unders[one], kids[one])
        assert stored == self.lost
        self.nodes, self.redirects = nodes, redirects_of(items)

    def bring_back(self, node_id: str) -> None:
        """Note that one node comes back by itself."""
        one = self.lost.pop(node_id)
        parent = self.lost.get(one.under or "")
        if parent is not None and parent.deletion == one.deletion:
            self.lost[parent.node.id] = replace(parent, kids=parent.kids - 1)

    def _id_at(self, path: Path) -> str | None:
        found = self.at(path)
        return None if found is None else found.id

    # -- restores ------------------------------------------------------------------------------------------------------

    def coming_back(self, top: Lost) -> list[Lost]:
        """All of the same deletion that still hang on a node that comes back, parents first."""
        found, unders = [top], [top.node.id]
        for under in unders:
            some = [one for one in self.lost.values() if (one.under, one.deletion) == (under, top.deletion)]
            found += some
            unders += [one.node.id for one in some]
        return found

    def refusals(self, edit: Restore) -> tuple[set[Refusal], Path]:
        """Why a node does not come back; if that is empty, the path at which it does."""
        top, faults = self.lost.get(edit.node_id), set[Refusal]()
        if top is None:
            faults.add(("NOT_FOUND", "id"))
        parent, is_known = self._parent(edit, top)
        if parent is None and is_known:
            faults.add(("NOT_FOUND", "to"))
        key = edit.path[0] if edit.path else top.node.path[-1] if top else UNUSABLE
        if parent is None:
            return faults, ()
        path = (*parent, key)
        above = self.at(parent)
        if parent and above is None:
            faults.add(("NOT_FOUND", "to"))
        elif top is not None and not may_stand(CATEGORY, top.node.level, above.level if above else None):
            faults.add(("MISPLACED", "to"))
        if self.at(path) is not None:
            faults.add(("ALREADY_EXISTS", "key"))
        if top is None or faults:
            return faults, path
        back = self.coming_back(top)
        kids = Counter([one.under for one in back[1:]])
        if self.is_lagging and any(kids[one.node.id] < one.kids for one in back):
            return {("UNAVAILABLE", "")}, path
        had = {node.values["code"] for node in self.nodes.values() if "code" in node.values}
        codes = [one.node.values["code"] for one in back if "code" in one.node.values]
        return {("TAKEN", "id") for code in codes if code in had}, path

    def _parent(self, edit: Restore, top: Lost | None) -> tuple[Path | None, bool]:
        """The path below which a node comes, None for a node that is not there; whether that is known at all."""
        named: Named | None = next((one for one in edit.names or () if one.field == "to"), None)
        if edit.to_root:
            return (), True
        if named is not None and named.id is None:
            return named.path, True
        wanted = named.id if named is not None else None if top is None else top.under
        if named is None and wanted is None:
            return (None, False) if top is None else ((), True)
        found = self.nodes.get(wanted or "")
        return (None if found is None else found.path), True

    def restore(self, edit: Restore, path: Path, items: Sequence[Item]) -> int:
        """Bring a node back at a path, and fail unless the table is so; returns how many nodes that are."""
        top, nodes, before = self.lost[edit.node_id], nodes_of(items), {**self.nodes}
        back, start = self.coming_back(top), len(top.node.path)
        self.bring_back(edit.node_id)
        for one in back:
            self.lost.pop(one.node.id, None)
            former, node_id = one.node.path, one.node.id
            there = (*path, *former[start:])
            rank = nodes[node_id].rank if node_id == edit.node_id or not one.node.place else one.node.rank
            assert is_manual(rank) or node_id == edit.node_id or not one.node.place
            before[node_id] = replace(one.node, path=there, revision=one.node.revision + 1, rank=rank)
            if there != former and self.redirects.get(former, (node_id, True))[0] == node_id:
                self.redirects[former] = node_id, True
        self._check_rank(top, path, nodes)
        before |= {one: replace(node, rank=nodes[one].rank) for one, node in before.items() if one in self.nodes}
        assert nodes == before
        assert lost_of(items) == self.lost
        assert redirects_of(items) == self.redirects
        self.nodes = nodes
        return len(back)

    def _check_rank(self, top: Lost, path: Path, after: Nodes) -> None:
        """The others keep their order. The node keeps the rank given by hand where parent and key stay: if another
        has that by now, it is the next one.
        """
        family = [one.id for one in self.nodes.values() if (one.path[:-1], one.level) == (path[:-1], top.node.level)]
        was = sorted(family, key=lambda one: self.nodes[one].rank)
        assert was == sorted(family, key=lambda one: after[one].rank)
        own, stays = after[top.node.id], (self._id_at(path[:-1]), path[-1]) == (top.under, top.node.path[-1])
        if top.node.place is None or not stays:
            assert own.place is None
            return
        holder = [one for one in family if self.nodes[one].rank == top.node.rank]
        if not holder:
            assert own.rank == top.node.rank
            return
        order = sorted([*family, own.id], key=lambda one: after[one].rank)
        assert order[order.index(holder[0]) + 1] == own.id


class Late(StoreProxy):
    """A store whose index lacks one deleted node, so many `times`, and whose clock is ahead."""

    is_embedded = False

    def __init__(self, store: Store, lacks: str | None, times: int = 99, ahead: float = 0.0) -> None:
        super().__init__(store)
        self.lacks, self.times, self.ahead = lacks and id_key(lacks).pk, times, ahead

    def now(self) -> float:
        return self._store.now() + self.ahead

    async def range(self, span: KeyRange, reads: ReadUsage, **how: Any) -> list[Item]:
        found = await self._store.range(span, reads, **how)
        lacking = [item for item in found if item["pk"] != self.lacks]
        if not span.partition.startswith("gone/") or not self.times or len(lacking) == len(found):
            return found
        self.times -= 1
        return lacking
