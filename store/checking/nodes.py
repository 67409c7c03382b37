"""Node checks: every node of one tree, in key order, which is depth-first.

Only the ancestors of the current node are in memory. The counts of a node are compared when all its descendants have
been seen.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, cast

from store.checking.findings import Finding, Findings, Fix, counts_text, mismatch, path_text, value_text
from store.errors import BadPath, quantity
from store.metadata.history import DELETION, id_record_key, is_aside
from store.metadata.tree_version import level_at_depth
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy, Undefined, may_stand, misplaced
from store.model.keys import (
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    decode_segment,
    depth_of,
    encode_segment,
    first_rank,
    id_key,
    last_segment,
    level_partition,
    parent_partition,
    parent_sort_key,
)
from store.model.names import are_names
from store.model.paths import checked_segment
from store.model.ranks import is_valid
from store.model.records import Counts, Item, is_id, is_revision, key_of, nonzero_counts

ASIDE_PROBLEM = "an import that was stopped has put the node aside; import the file again with --moves, or rename it"


class IdState(NamedTuple):
    """The partition of a node's id: its record, and the number of missing earlier revisions.

    `other` is the node that the record points to where that is not the node itself.
    """

    record: Item | None
    other: Item | None = None
    missing: int = 0


@dataclass(slots=True)
class _OpenNode:
    """A node whose descendants come next; `levels` lead from the root to it, `ranks` are reordered children's."""

    item: Item
    level: str
    levels: list[str]
    children: Counter[str] = field(default_factory=Counter)
    descendants: Counter[str] = field(default_factory=Counter)
    ranks: dict[str, str] = field(default_factory=dict)

    @property
    def sk(self) -> str:
        return cast(str, self.item["sk"])


class NodeChecks:
    """`check` each node item of the tree at `pk` in key order, then `finish`.

    Results are `shape` (nodes by level and depth), `findings` and `undefined` attributes. `root_ranks` are the ranks of
    reordered roots with their paths, shared by all trees of the hierarchy.
    """

    def __init__(self, hierarchy: Hierarchy, pk: str, root_ranks: dict[str, str]) -> None:
        self.shape: Counter[str] = Counter()
        self.findings = Findings()
        self.undefined = Undefined(hierarchy)
        self._hierarchy = hierarchy
        self._pk = pk
        self._root_ranks = root_ranks
        self._open: list[_OpenNode] = []

    def check(self, item: Item, id_state: IdState) -> None:
        sk = cast(str, item["sk"])
        self._close(sk)
        if problem := _key_problem(self._pk, sk):
            return self._report(item, problem)
        if is_aside(key_of(item)):
            self._report(item, ASIDE_PROBLEM)
        parent = self._parent(item, sk)
        level = self._level(item, parent)
        above = self._above(item, parent)
        self._expect(item, "parent", parent_partition(self._pk, sk))
        if level:
            self._expect(item, "tier", level_partition(self._pk, level, depth_of(sk)))
        self._check_rank(item, level, self._root_ranks if sk == "#" else parent.ranks if parent else {})
        self._check_id(item, id_state)
        self._check_content(item, level)
        if level:
            self.shape[level_at_depth(level, depth_of(sk))] += 1
            if parent is not None:
                parent.children[level] += 1
        self._open.append(_OpenNode(item, level, [*above, level]))

    def finish(self) -> None:
        self._close("")

    def _report(self, item: Item, problem: str, **values: Value) -> None:
        """Add a finding, with the values that fix it where they are known."""
        key = key_of(item)
        fix = Fix.of(key, item, values) if values else None
        self.findings.add(Finding(self._hierarchy.name, path_text(*key), problem, fix))

    def _expect(self, item: Item, name: str, expected: Value) -> None:
        """Report an attribute that does not have the value that follows from the rest, which is its fix."""
        if (found := item.get(name)) != expected:
            self._report(item, mismatch(name, value_text(found), value_text(expected)), **{name: expected})

    def _close(self, sk: str) -> None:
        """Compare the counts of all open nodes that are not ancestors of the node at a sort key."""
        while self._open and not (sk and sk.startswith(self._open[-1].sk)):
            node = self._open.pop()
            self._expect_counts(node, "kids", node.children)
            if node.sk == "#":
                self._expect(node.item, "below", None)  # it is the shape of the tree version
            else:
                self._expect_counts(node, "below", node.descendants)
            if self._open:
                descendants = self._open[-1].descendants
                descendants.update(node.descendants)
                if node.level:
                    descendants[node.level] += 1

    def _expect_counts(self, node: _OpenNode, name: str, counts: Counts) -> None:
        found = node.item.get(name)
        if nonzero_counts(found) != counts:
            problem = mismatch(name, counts_text(found), counts_text(counts))
            self._report(node.item, problem, **{name: cast(Value, dict(counts))})

    # -- position ------------------------------------------------------------------------------------------------------

    def _parent(self, item: Item, sk: str) -> _OpenNode | None:
        if sk == "#":
            return None
        above = self._open[-1] if self._open else None
        if above is not None and above.sk == parent_sort_key(sk):
            return above
        self._report(item, f"parent {path_text(self._pk, parent_sort_key(sk))} is missing")
        return None

    def _level(self, item: Item, parent: _OpenNode | None) -> str:
        """The level, which `tier` and `rank` contain as well, so that two of the three outvote the third."""
        levels, level = self._hierarchy.levels, _text(item.get("level"))
        tier = _text(item.get("tier")).rpartition("@")[0].rpartition("@")[2]
        if tier in levels and tier == _text(item.get("rank")).partition("#")[0]:
            self._expect(item, "level", tier)
            level = tier
        if level not in levels:
            self._report(item, mismatch("level", value_text(item.get("level")), f"a level of {self._hierarchy.name}"))
            return level
        under = parent.level if parent else None
        is_placed = parent is not None or item["sk"] == "#"
        if is_placed and not may_stand(self._hierarchy, level, under):
            self._report(item, misplaced(self._hierarchy, level, under).rstrip("."))
        return level

    def _above(self, item: Item, parent: _OpenNode | None) -> list[str]:
        """The levels of its ancestors; where its parent is missing, they are known from itself alone."""
        found, depth = item.get("above"), depth_of(cast(str, item["sk"]))
        if parent is not None or depth == 0:
            levels = parent.levels if parent is not None else []
            self._expect(item, "above", cast(Value, [*levels]))
            return levels
        if isinstance(found, list) and len(found) == depth and all(isinstance(level, str) for level in found):
            return cast(list[str], found)
        self._report(item, mismatch("above", value_text(found), f"a list of {quantity(depth, 'level')}"))
        return [""] * depth

    def _check_rank(self, item: Item, level: str, siblings: dict[str, str]) -> None:
        """`siblings` are the ranks of reordered siblings with their paths; all other ranks are unique by themselves."""
        rank, default = item.get("rank"), first_rank(level, last_segment(self._pk, cast(str, item["sk"])))
        if not level or rank == default:
            return
        path = path_text(*key_of(item))
        if not (isinstance(rank, str) and rank.startswith(f"{level}#") and is_valid(rank)):
            problem = mismatch("rank", value_text(rank), value_text(default))
        elif siblings.setdefault(rank, path) != path:
            problem = f"attribute `rank` is the same as that of {siblings[rank]}"
        else:
            return
        self._report(item, problem, **({"rank": default} if len(default.encode()) <= MAX_SORT_KEY_BYTES else {}))

    # -- content -------------------------------------------------------------------------------------------------------

    def _check_id(self, item: Item, state: IdState) -> None:
        node_id, record, key = item.get("id"), state.record, key_of(item)
        if not is_id(self._hierarchy, node_id):
            return self._report(item, mismatch("id", value_text(node_id), f"an id of {self._hierarchy.name}"))
        if state.missing:
            self._report(item, f"{quantity(state.missing, 'earlier revision')} missing")
        if record is not None and "deleted" not in record and id_record_key(record) == key:
            if not (left := [name for name in (*DELETION, "was") if name in record]):
                return None
            problem = f"the record of id {node_id} has {', '.join(left)}, as of a deleted node"
            fix = Fix.of(id_key(cast(str, node_id)), record, dict.fromkeys(left))
            return self.findings.add(Finding(self._hierarchy.name, path_text(*key), problem, fix))
        if state.other is not None and state.other.get("id") == node_id:
            return self._report(item, f"id {node_id} is also the id of {path_text(*key_of(state.other))}")
        if record is None:
            problem = f"id {node_id} has no record"
        elif "deleted" in record:
            problem = f"the record of id {node_id} says that the node is deleted"
        else:
            problem = f"the record of id {node_id} points to {path_text(record.get('tree'), record.get('key'))}"
        others = {name: None for name in record or () if name not in ("pk", "sk")}
        fix = Fix.of(id_key(cast(str, node_id)), record, {**others, "tree": key.pk, "key": key.sk})
        return self.findings.add(Finding(self._hierarchy.name, path_text(*key), problem, fix))

    def _check_content(self, item: Item, level: str) -> None:
        author = item.get("changed_by")
        for name, is_valid_value, expected in (
            ("name", bool(_text(item.get("name"))), "a text that is not empty"),
            ("names", item.get("names") is None or are_names(item["names"]), "texts by language"),
            ("revision", is_revision(item.get("revision")), "a positive integer"),
            ("updated_at", _is_time(item.get("updated_at")), "a time in UTC (RFC 3339)"),
            ("changed_by", author is None or isinstance(author, str), "a text"),
        ):
            if not is_valid_value:
                self._report(item, mismatch(name, value_text(item.get(name)), expected))
        self.undefined.see(level, item)
        self.undefined.see_rules(level, item, path_text(*key_of(item)))
        defined = self._hierarchy.levels.get(level)
        for attribute in defined.attributes.values() if defined else ():
            value = attribute.value_in(item)
            if value is not None and not attribute.is_valid(value):
                kind = attribute.enum or attribute.kind
                kind = f"a list of {kind}" if attribute.many else kind
                self._report(item, mismatch(attribute.name, value_text(value), kind))


def _key_problem(pk: str, sk: str) -> str | None:
    """Why no node can have a key, None if it is valid."""
    if sk[-1] != "#" or "##" in sk or sk.count("#") > MAX_SEGMENTS or len(sk.encode()) > MAX_SORT_KEY_BYTES:
        return "the key is not that of a node"
    own = last_segment(pk, sk)
    try:
        is_canonical = encode_segment(checked_segment(decode_segment(own))) == own
    except BadPath:
        return "the key is not that of a node"
    return None if is_canonical else "the key is not in canonical form"


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and value.endswith("Z") and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
