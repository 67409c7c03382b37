"""The walk through one tree that proves each of its nodes, one after another in key order, which is depth-first.

Of what was met only the line from the root down to the present node is kept. A node's counts are compared when the
walk leaves it, since only then has it met all that lies below."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, cast

from store.checking.findings import (
    Finding,
    Findings,
    Fix,
    place,
    told,
)
from store.errors import BadPath
from store.metadata.history import id_record_key
from store.metadata.tree_version import level_at_depth
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy, misplaced
from store.model.items import Item, key_of
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
from store.model.paths import checked_segment
from store.model.ranks import is_valid
from store.model.records import (
    Counts,
    is_id,
    is_revision,
    nonzero_counts,
)
from store.model.undefined_values import Undefined
from store.text import shorten


class Beside(NamedTuple):
    """What lies in the partition of a node's id: its record, and how many former states are missing.

    `other` is the node that the record leads to where that is not this one.
    """

    record: Item | None
    other: Item | None = None
    missing: int = 0


class _Open:
    """A node that the walk has not left; `line` are the levels down to it, `ranks` those made by hand below it."""

    __slots__ = ("below", "item", "kids", "level", "line", "ranks", "sk")

    def __init__(self, item: Item, level: str, line: list[str]) -> None:
        self.item = item
        self.sk = cast(str, item["sk"])
        self.level = level
        self.line = line
        self.kids: Counter[str] = Counter()
        self.below: Counter[str] = Counter()
        self.ranks: dict[str, str] = {}


class NodeChecks:
    """`meet` each node item of the tree at `pk` in key order, then `finish`: `shape`, `findings` and `undefined`
    attributes are what there is.

    `ranks` are the ranks of roots that were made by hand, each with its tree, as far as they are known.
    """

    def __init__(self, hierarchy: Hierarchy, pk: str, ranks: dict[str, str]) -> None:
        self.shape: Counter[str] = Counter()
        self.findings = Findings()
        self.undefined = Undefined(hierarchy)
        self._hierarchy = hierarchy
        self._pk = pk
        self._ranks = ranks
        self._stack: list[_Open] = []

    def meet(self, item: Item, beside: Beside) -> None:
        sk = cast(str, item["sk"])
        self._leave(sk)
        if wrong := _wrong_key(self._pk, sk):
            return self._tell(item, wrong)
        parent = self._parent(item, sk)
        level = self._level(item, parent)
        line = self._line(item, parent)
        self._check_keys(item, level)
        self._check_rank(item, level, self._ranks if sk == "#" else parent.ranks if parent else {})
        self._check_id(item, beside)
        self._check_content(item, level)
        if level:
            self.shape[level_at_depth(level, depth_of(sk))] += 1
            if parent is not None:
                parent.kids[level] += 1
        self._stack.append(_Open(item, level, [*line, level]))

    def finish(self) -> None:
        self._leave("")

    def _tell(self, item: Item, wrong: str, **values: Value) -> None:
        """Note what is wrong with a node, and the values that make it right where they are known."""
        key = key_of(item)
        mend = Fix.of(key, item, values) if values else None
        self.findings.add(Finding(self._hierarchy.name, place(*key), wrong, mend))

    def _leave(self, sk: str) -> None:
        """Come to a key: compare and close all on the stack that it does not lie below."""
        while self._stack and not (sk and sk.startswith(self._stack[-1].sk)):
            left = self._stack.pop()
            self._compare(left, "kids", "children", left.kids)
            self._compare(left, "below", "descendants", left.below)
            if self._stack:
                below = self._stack[-1].below
                below.update(left.below)
                if left.level:
                    below[left.level] += 1

    def _compare(self, left: _Open, name: str, what: str, counts: Counts) -> None:
        says = left.item.get(name)
        if nonzero_counts(says) != counts:
            true = cast(Value, dict(counts))
            self._tell(left.item, f"its {what} are counted as {told(says)}; there are {told(true)}", **{name: true})

    # -- where it stands -----------------------------------------------------------------------------------------------

    def _parent(self, item: Item, sk: str) -> _Open | None:
        if sk == "#":
            return None
        above = self._stack[-1] if self._stack else None
        if above is not None and above.sk == parent_sort_key(sk):
            return above
        self._tell(item, f"its parent {place(self._pk, parent_sort_key(sk))} is missing")
        return None

    def _level(self, item: Item, parent: _Open | None) -> str:
        """Its level, which its tier and its rank tell as well, so that two of the three outvote the third."""
        levels, level = self._hierarchy.levels, _text(item.get("level"))
        tier = _text(item.get("tier")).rpartition("@")[0].rpartition("@")[2]
        if tier != level and tier in levels and tier == _text(item.get("rank")).partition("#")[0]:
            self._tell(item, f'its level is "{shorten(level)}", while its tier and its rank say {tier}', level=tier)
            level = tier
        if level not in levels:
            self._tell(item, f'its level "{shorten(level)}" is none of {self._hierarchy.name}')
            return level
        under = parent.level if parent else None
        stands = parent is not None or item["sk"] == "#"
        if stands and under not in levels[level].under and (under is None or under in levels):
            self._tell(item, misplaced(levels[level], under).rstrip("."))
        return level

    def _line(self, item: Item, parent: _Open | None) -> list[str]:
        """The levels above it; where its parent is missing, none but itself tells them."""
        above, sk = item.get("above"), cast(str, item["sk"])
        if parent is not None or sk == "#":
            line = parent.line if parent is not None else []
            if above != line:
                self._tell(item, f"the levels above it are noted as {_shown(above)}", above=[*line])
            return line
        if isinstance(above, list) and len(above) == depth_of(sk) and all(isinstance(one, str) for one in above):
            return cast(list[str], above)
        self._tell(item, f"the levels above it are noted as {_shown(above)}")
        return [""] * depth_of(sk)

    def _check_keys(self, item: Item, level: str) -> None:
        sk = cast(str, item["sk"])
        if item.get("parent") != (parent := parent_partition(self._pk, sk)):
            self._tell(item, "it is not listed among its siblings", parent=parent)
        if level and item.get("tier") != (tier := level_partition(self._pk, level, depth_of(sk))):
            self._tell(item, "it is not listed among the nodes of its level", tier=tier)

    def _check_rank(self, item: Item, level: str, made: dict[str, str]) -> None:
        """`made` are the ranks of siblings that were put somewhere by hand; all others are unique by themselves."""
        rank, usual = item.get("rank"), first_rank(level, last_segment(self._pk, cast(str, item["sk"])))
        if not level or rank == usual:
            return
        if not (isinstance(rank, str) and rank.startswith(f"{level}#") and is_valid(rank)):
            wrong = f"its place among its siblings is noted as {_shown(rank)}"
        elif made.setdefault(rank, place(*key_of(item))) != place(*key_of(item)):
            wrong = f"it has the same place among its siblings as {made[rank]}"
        else:
            return
        self._tell(item, wrong, **({"rank": usual} if len(usual.encode()) <= MAX_SORT_KEY_BYTES else {}))

    # -- what it is ----------------------------------------------------------------------------------------------------

    def _check_id(self, item: Item, beside: Beside) -> None:
        node_id, record = item.get("id"), beside.record
        if not is_id(self._hierarchy, node_id):
            return self._tell(item, f"its id {_shown(node_id)} is none that a node can have")
        if beside.missing:
            self._tell(item, f"{beside.missing} of its former states are missing")
        key = key_of(item)
        if record is not None and "deleted" not in record and id_record_key(record) == key:
            return None
        if beside.other is not None and beside.other.get("id") == node_id:
            return self._tell(item, f"its id {node_id} is that of {place(*key_of(beside.other))} as well")
        if record is None:
            wrong = f"its id {node_id} has no record"
        elif "deleted" in record:
            wrong = f"its id {node_id} is noted as that of a deleted node"
        else:
            wrong = f"its id {node_id} leads to {place(record.get('tree'), record.get('key'))}"
        mend = Fix.of(id_key(cast(str, node_id)), record, _only(record, tree=key.pk, key=key.sk))
        return self.findings.add(Finding(self._hierarchy.name, place(*key), wrong, mend))

    def _check_content(self, item: Item, level: str) -> None:
        name, by = item.get("name"), item.get("changed_by")
        if not isinstance(name, str) or not name:
            self._tell(item, f"its name is {_shown(name)}")
        if not is_revision(item.get("revision")):
            self._tell(item, f"its revision is {_shown(item.get('revision'))}")
        if not _is_time(item.get("updated_at")):
            self._tell(item, f"its last change is at {_shown(item.get('updated_at'))}")
        if by is not None and not isinstance(by, str):
            self._tell(item, f"it was changed by {_shown(by)}")
        self.undefined.see(level, item)
        known = self._hierarchy.levels.get(level)
        for attribute in known.attributes.values() if known else ():
            value = item.get(attribute.name)
            if value is not None and not attribute.is_valid(value):
                kind = f"list of {attribute.kind}" if attribute.many else attribute.kind
                self._tell(item, f"its {attribute.name} {_shown(value)} is no {kind}")


def _only(record: Item | None, **values: Value) -> Mapping[str, Value]:
    """These values, and none of what else a record has beside its key."""
    others = {name: None for name in record or () if name not in ("pk", "sk")}
    return {**others, **values}


def _wrong_key(pk: str, sk: str) -> str | None:
    """What makes a key one that no node can have."""
    if sk[-1] != "#" or "##" in sk or sk.count("#") > MAX_SEGMENTS or len(sk.encode()) > MAX_SORT_KEY_BYTES:
        return "no node can have this key"
    own = last_segment(pk, sk)
    try:
        return None if encode_segment(checked_segment(decode_segment(own))) == own else "its key is not in normal form"
    except BadPath:
        return "no node can have this key"


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and value.endswith("Z") and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _shown(value: object) -> str:
    return "nothing" if value is None else shorten(repr(value))
