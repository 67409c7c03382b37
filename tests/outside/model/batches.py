"""Batches: random ones, and what the docs say comes of several changes in one transaction.

"Paths name nodes as they are after the edits before; where two nodes would have one path for the moment, the one that
had it first." So nodes can swap their keys: a node waits until its target is left by a later edit of the batch.
"""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.outside.model import operations
from tests.outside.model.operations import Fault, Step
from tests.outside.model.trees import Doubtful, Node, Trees, found

SIZES = (2, 2, 3, 4, 6)
Ids = dict[int, str]


def some_batch(chance: random.Random, trees: Trees, ids: Ids, number: int) -> Step:
    """A batch of edits, each of which is made for the state after those before it; most of the time all are right."""
    while True:
        copied, known, edits = copy.deepcopy(trees), dict(ids), list[Step]()
        for place in range(chance.choice(SIZES)):
            n = operations.IN_BATCHES * (number + 1) + 100 * place
            some = _swap(chance, copied, n) if chance.random() < 0.15 else [_right(chance, copied, known, n)]
            if not some or not _try(copied, known, [*some]):
                some = [_right(chance, copied, known, n)]
            edits += some
        step: Step = {"do": "edit", "n": number, "server": chance.randrange(2), "edits": edits[:9]}
        try:
            outcome(trees, ids, step["edits"])
        except Doubtful:
            continue
        if chance.random() < 0.1:
            step["dry"] = True
        elif chance.random() < 0.15:
            step["once"] = f"key-{number}-{chance.randrange(10**6)}"
        elif chance.random() < 0.3:
            step["forecast"] = True
        return step


def _right(chance: random.Random, trees: Trees, ids: Ids, n: int) -> Step:
    """An edit, which has mostly no fault."""
    for _ in range(3 if chance.random() < 0.9 else 1):
        edit = operations.some_edit(chance, trees, n)
        if not operations.rules(trees, edit, ids)[0]:
            break
    return edit


def _try(trees: Trees, ids: Ids, edits: list[Step]) -> bool:
    """Whether these edits can be made; then they are made on the copy, for the edits after them."""
    try:
        seen = outcome(trees, ids, edits)
    except Doubtful:
        return False
    if seen.faults:
        return len(edits) == 1
    simulate(trees, ids, edits, _provisional(edits, ids), "")
    return True


def _swap(chance: random.Random, trees: Trees, n: int) -> list[Step]:
    """Nodes that take each other's places: two or three that change keys, or one whose place another has left."""
    groups = [ids for ids in trees.siblings.values() if len(ids) > 1]
    if not groups:
        return []
    group = chance.choice(groups)
    nodes = chance.sample(group, min(len(group), chance.choice((2, 2, 3))))
    first, *_, last = (trees.nodes[id] for id in nodes)
    numbers = iter(range(n, n + 10))

    def move(id: str, key: str) -> Step:
        node = trees.nodes[id]
        name: Any = trees.path(node)
        if not node["id"].startswith("new:") and chance.random() < 0.4:
            name = {"id": node["id"]}
        return {"do": "move", "n": next(numbers), "node": name, "key": key}

    if len(nodes) > 1 and chance.random() < 0.7:
        keys = [trees.nodes[id]["key"] for id in nodes]
        return [move(id, key) for id, key in zip(nodes, [*keys[1:], keys[0]], strict=True)]
    leaves: Step = {"do": "delete", "n": next(numbers), "node": trees.path(last), "policy": "CASCADE"}
    if chance.random() < 0.5:
        leaves = move(last["id"], f"left {n}")
    if chance.random() < 0.5:
        return [move(first["id"], last["key"]), leaves]
    above = trees.nodes[last["parent"]] if last["parent"] else None
    made = {"parent": above and trees.path(above), "key": last["key"], "name": "new", "level": "BOX", "values": {}}
    return [{"do": "create", "n": next(numbers), "says": "level", **made}, leaves]


@dataclass
class Waiting:
    """An edit whose target another node still has; of a move, the node is at no path until then."""

    place: int
    edit: Step
    target: tuple[str | None, str]
    paths: tuple[str, ...]
    node: Node | None = None


@dataclass
class Outcome:
    """What comes of a batch: faults, codes that may come as well, and the nodes of its edits, by their ids."""

    faults: list[Fault] = field(default_factory=list)
    may: set[str] = field(default_factory=set)
    is_open: bool = False  # whether faults of later edits may be others, which follow from the first ones
    ids: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # nodes that were deleted, of which one may be there again


def _provisional(edits: list[Step], ids: Ids) -> Callable[[int], str]:
    """Ids of new nodes before the server has told them."""

    def new_id(place: int) -> str:
        chosen = operations.sent_id(edits[place], ids)
        return f"thing:{chosen}" if chosen else f"new:{edits[place]['n']}"

    return new_id


def outcome(trees: Trees, ids: Ids, edits: list[Step]) -> Outcome:
    """What would come of a batch."""
    return simulate(copy.deepcopy(trees), dict(ids), edits, _provisional(edits, ids), "")


def simulate(trees: Trees, ids: Ids, edits: list[Step], new_id: Callable[[int], str], at: str) -> Outcome:
    """Make a batch as far as it goes. Raises Doubtful where the docs do not say what comes of it."""
    return _Simulation(trees, ids, edits, new_id, at).run()


class _Simulation:
    def __init__(self, trees: Trees, ids: Ids, edits: list[Step], new_id: Callable[[int], str], at: str) -> None:
        self.trees, self.ids, self.edits, self.new_id, self.at = trees, ids, edits, new_id, at
        self.revisions = {id: node["revision"] for id, node in trees.nodes.items()}
        self.seen = Outcome(ids=[""] * len(edits))
        self.waiting: list[Waiting] = []
        self.failed: list[str] = []

    def run(self) -> Outcome:
        for place, edit in enumerate(self.edits):
            self._check_waiting(edit)
            self._make(place, edit)
            for one in [one for one in self.waiting if self._is_free(one)]:
                self.waiting.remove(one)
                self._arrive(one)
        if self.waiting:
            self.seen.is_open = True
            # Where other edits failed as well, these may follow from that.
            for one in [] if self.seen.faults else self.waiting:
                self._fail(one.place, [operations.fault("ALREADY_EXISTS", "key to position")])
        return self.seen

    def _make(self, place: int, edit: Step) -> None:
        faults, may = operations.rules(self.trees, edit, self.ids, self.revisions)
        self.seen.may |= may
        if edit["do"] != "update":
            # "A batch is one transaction": it holds less than the changes of a large subtree.
            self.seen.may.add("TOO_LARGE")
        if self.failed and self._follows(edit):
            self.seen.is_open = True
            self.seen.may |= {code for one in faults for code in one.codes}
            told = [one for one in faults if one.stage in (operations.FORM, operations.CONTENT)]
            if faults:
                self._fail(place, told)
                return
        if faults and all(one.is_taken for one in faults) and self._is_left_later(place, edit):
            self._wait(place, edit)
        elif faults:
            self._fail(place, faults)
        else:
            gone = found(self.trees, edit["node"], self.ids) if edit["do"] == "delete" else None
            if gone:
                self.seen.gone |= {gone["id"], *(below["id"] for below in self.trees.descendants(gone["id"]))}
            node = operations.apply(self.trees, edit, self.ids, self.new_id(place), self.at)
            self.seen.ids[place] = node["id"]

    def _fail(self, place: int, faults: list[Fault]) -> None:
        self.seen.faults += [replace(one, edit=place) for one in faults]
        self.failed += self._paths(self.edits[place])

    def _follows(self, edit: Step) -> bool:
        """Whether an edit is about what an edit that failed was about."""
        own = self._paths(edit)
        return any(f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/") for a in own for b in self.failed)

    def _paths(self, edit: Step) -> list[str]:
        """The paths that an edit names, with the new one."""
        names = [edit.get(part) for part in ("node", "parent", "to")] + [*edit.get("position", {}).values()]
        paths = [name for name in names if isinstance(name, str)]
        nodes = [found(self.trees, name, self.ids) for name in names if isinstance(name, dict) and "root" not in name]
        paths += [self.trees.path(node) for node in nodes if node]
        key = operations.values.segment(edit["key"]) if "key" in edit else paths[0].rpartition("/")[2] if paths else ""
        paths += [f"{above}/{key}" if above else key for above in self._aboves(edit, paths)]
        return paths

    def _aboves(self, edit: Step, paths: list[str]) -> list[str]:
        """Where the node comes below: what `to` or `position` say, or where it is; "" at the root."""
        if edit["do"] == "create":
            return paths[:1] or [""]
        beside = next(iter(edit.get("position", {}).values()), None)
        node = found(self.trees, beside, self.ids) if isinstance(beside, dict) else None
        aboves = [edit["to"]] if isinstance(edit.get("to"), str) else []
        aboves += [beside.rpartition("/")[0]] if isinstance(beside, str) else []
        aboves += [self.trees.path(node).rpartition("/")[0]] if node else []
        return aboves or ([""] if "to" in edit else [paths[0].rpartition("/")[0]] if paths else [])

    # Waiting

    def _holder(self, target: tuple[str | None, str]) -> Node | None:
        parent, key = target
        children = self.trees.children(parent) if parent is None or parent in self.trees.nodes else []
        return next((one for one in children if one["key"] == operations.values.normal(key)), None)

    def _is_free(self, one: Waiting) -> bool:
        return self._holder(one.target) is None

    def _is_left_later(self, place: int, edit: Step) -> bool:
        """Whether a later edit moves or deletes the node at the target."""
        holder = self._holder(operations.target_of(self.trees, edit, self.ids))
        assert holder
        path = operations.values.normal(self.trees.path(holder))
        for later in self.edits[place + 1 :]:
            name = later.get("node")
            same = operations.values.normal(name) == path if isinstance(name, str) else name is not None and (
                found(self.trees, name, self.ids) is holder
            )  # fmt: skip
            if same and (later["do"] == "delete" or (later["do"] == "move" and {"key", "to", "position"} & {*later})):
                return True
        return False

    def _wait(self, place: int, edit: Step) -> None:
        target = operations.target_of(self.trees, edit, self.ids)
        node = None if edit["do"] == "create" else found(self.trees, edit["node"], self.ids)
        above = self.trees.nodes[target[0]] if target[0] else None
        paths = [self.trees.path(above) if above else ""]
        if node:
            paths.append(self.trees.path(node))
            self.trees.siblings[(node["parent"], node["level"])].remove(node["id"])
        if {"before", "after"} & {*edit.get("position", {})}:
            raise Doubtful
        self.waiting.append(Waiting(place, edit, target, tuple(paths), node))

    def _arrive(self, one: Waiting) -> None:
        if one.node is None:
            node = operations.apply(self.trees, one.edit, self.ids, self.new_id(one.place), self.at)
        else:
            node = one.node
            self.trees.siblings[(node["parent"], node["level"])].append(node["id"])
            side = next(iter(one.edit.get("position", {})), None)
            self.trees.move_to(node, *one.target, side)
        self.seen.ids[one.place] = node["id"]

    def _check_waiting(self, edit: Step) -> None:
        """Raise Doubtful where an edit is about what waits, or above its old or its new place."""
        names = [edit.get(part) for part in ("node", "parent", "to")] + [*edit.get("position", {}).values()]
        for one in self.waiting:
            for name in names:
                node = found(self.trees, name, self.ids) if isinstance(name, dict) and "root" not in name else None
                if one.node and node and one.node["id"] in (node["id"], *(n["id"] for n in self.trees.ancestors(node))):
                    raise Doubtful
            if edit["do"] in ("move", "delete"):
                path = edit["node"] if isinstance(edit["node"], str) else ""
                named = found(self.trees, edit["node"], self.ids)
                path = self.trees.path(named) if named else path
                if any(f"{other}/".startswith(f"{path}/") for other in one.paths):
                    raise Doubtful
