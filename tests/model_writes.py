"""Model of edits: a second implementation with dictionaries of nodes, histories and redirects."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from store.engine import ReadUsage, Store
from store.metadata.history import revisions
from store.model.hierarchy import may_stand
from store.model.keys import Path, path_of
from store.model.records import Record, derived_id
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position, Side
from tests import invariants
from tests.hierarchies import CATEGORY

KEYS = ["a", "b", "a b", "#$", "é"]
MAX_DEPTH = 5
_BESIDE = (Side.BEFORE, Side.AFTER)


class RandomEdits:
    """Random edits, most of them of existing nodes, so that many succeed and some are rejected."""

    def __init__(self, seed: int, model: "Model") -> None:
        self.random = Random(seed)  # noqa: S311
        self.model = model

    def one(self) -> Edit:
        return self.random.choice(
            [self.create, self.create, self.update, self.move, self.move, self.order, self.delete]
        )()

    def create(self) -> Edit:
        parent = self.path() if self.model.nodes and self.random.random() < 0.9 else ()
        level = self.random.choice(["CATEGORY", "CATEGORY", "CATEGORY", "PRODUCT", "VARIANT"])
        node_id = self.random.choice([None, None, None, "i", "j"])
        path = (*parent, self.key())[-MAX_DEPTH:]
        return Create(CATEGORY, path, level, self.key(), self.values(), node_id)

    def update(self) -> Edit:
        name = self.random.choice([None, *KEYS])
        return Update(CATEGORY, self.path(), name, None, self.values(), self.expected())

    def move(self) -> Edit:
        path = self.path()
        target = self.random.choice(
            [(*path[:-1], self.key()), (*self.path(), path[-1]), (*self.path(), self.key()), (self.key(),)]
        )
        return Move(CATEGORY, path, target, self.expected(), self.random.choice([None, None, self.position(target)]))

    def order(self) -> Move:
        path = self.path()
        return Move(CATEGORY, path, path, position=self.position(path))

    def position(self, path: Path) -> Position:
        side = self.random.choice(list(Side))
        family = [one for one in self.model.nodes if one[:-1] == path[:-1]] or [path]
        beside = self.random.choice([*family, *family, self.path()]) if side in _BESIDE else None
        return Position(side, beside)

    def delete(self) -> Edit:
        return Delete(CATEGORY, self.path(), self.random.choice(list(Policy)), self.expected())

    def path(self) -> Path:
        known = list(self.model.nodes)
        if known and self.random.random() < 0.95:
            return self.random.choice(known)
        return tuple(self.random.choices(KEYS, k=self.random.randint(1, 3)))

    def key(self) -> str:
        return self.random.choice(KEYS)

    def values(self) -> dict[str, Any]:
        return self.random.choice([{}, {"note": "1"}, {"note": "2"}, {"note": None}])

    def expected(self) -> int | None:
        return self.random.choice([None, None, None, 1, 2])


class Refused(Exception):
    """The edit is rejected with this code."""


@dataclass(frozen=True)
class Node:
    id: str
    level: str
    name: str
    values: dict[str, Any]
    revision: int = 1


@dataclass
class Model:
    nodes: dict[Path, Node] = field(default_factory=dict)
    past: dict[str, list[Node]] = field(default_factory=dict)  # all states but the present one, by id
    aliases: dict[Path, str] = field(default_factory=dict)  # of paths that nodes have left: the last one's id
    left: set[Path] = field(default_factory=set)  # paths that tell of nodes which have left them
    trees_left: set[str] = field(default_factory=set)  # by a move within or from them

    def apply(self, edit: Edit) -> Callable[[Record], None]:
        """A function that applies the result of the edit to the model; raises Refused if it is rejected."""
        match edit:
            case Create():
                return self._create(edit)
            case Update():
                return self._update(edit)
            case Move():
                return self._move(edit)
            case Delete():
                return self._delete(edit)
        raise AssertionError(edit)

    def _existing(self, path: Path, expected: int | None = None) -> Node:
        if path not in self.nodes:
            raise Refused("NOT_FOUND")
        node, first = self.nodes[path], derived(path)
        # Where another node was, the revision may be that of the other one.
        had_another = path in self.left or (first != node.id and first in self.past)
        if expected is not None and (expected != node.revision or had_another):
            raise Refused("CONFLICT")
        return node

    def _check_place(self, path: Path, level: str, gone: Path = ()) -> None:
        under = self._existing(path[:-1]).level if len(path) > 1 else None
        if not may_stand(CATEGORY, level, under):
            raise Refused("MISPLACED")
        if path in self.nodes and path != gone:
            raise Refused("ALREADY_EXISTS")

    def _create(self, edit: Create) -> Callable[[Record], None]:
        self._check_place(edit.path, edit.level)
        if any(node.id == f"category:{edit.node_id}" for node in self.nodes.values()):
            raise Refused("ALREADY_EXISTS")

        def made(record: Record) -> None:
            before = self.past.setdefault(record.id, [])
            values = {name: value for name, value in edit.values.items() if value is not None}
            self.nodes[edit.path] = Node(record.id, edit.level, edit.name, values, len(before) + 1)

        return made

    def _update(self, edit: Update) -> Callable[[Record], None]:
        old = self._existing(edit.path, edit.expected)
        values = {name: value for name, value in {**old.values, **edit.values}.items() if value is not None}
        new = replace(old, name=edit.name or old.name, values=values)

        def made(record: Record) -> None:
            if new != old:
                self.past[old.id].append(old)
                self.nodes[edit.path] = replace(new, revision=old.revision + 1)

        return made

    def _move(self, edit: Move) -> Callable[[Record], None]:
        path, target = edit.path, edit.target
        node = self._existing(path, edit.expected)
        if target != path:
            if target[: len(path)] == path:
                raise Refused("MISPLACED")
            self._check_place(target, node.level)
        if edit.position is not None and (beside := edit.position.beside) is not None:
            other = self._existing(beside)
            if beside == path or beside[:-1] != target[:-1] or node.level != other.level:
                raise Refused("BAD_USER_INPUT")
        return lambda record: self._relocate({path: target})

    def _relocate(self, places: dict[Path, Path]) -> None:
        """Move several subtrees at once."""
        moved = {}
        for path, target in places.items():
            if target == path:
                continue
            moved |= {(*target, *one[len(path) :]): one for one in self.nodes if one[: len(path)] == path}
        found = {new: self.nodes[old] for new, old in moved.items()}
        for old in moved.values():
            self.aliases[old] = self.nodes.pop(old).id
            self.left.add(old)
            self.trees_left.add(old[0])
        self.nodes |= found

    def _delete(self, edit: Delete) -> Callable[[Record], None]:
        self._existing(edit.path, edit.expected)
        size = len(edit.path)
        children = [one for one in self.nodes if one[:-1] == edit.path]
        if edit.policy is Policy.REFUSE and children:
            raise Refused("NOT_EMPTY")
        places = {one: (*edit.path[:-1], one[-1]) for one in sorted(children)}
        if edit.policy is Policy.REPARENT:
            refusals = []
            for child, target in places.items():
                try:
                    self._check_place(target, self.nodes[child].level, gone=edit.path)
                except Refused as refused:
                    refusals.append(str(refused))
            if refusals:
                raise Refused(min(refusals, key=["MISPLACED", "ALREADY_EXISTS"].index))

        def made(record: Record) -> None:
            gone = [edit.path]
            if edit.policy is Policy.CASCADE:
                gone = [one for one in self.nodes if one[:size] == edit.path]
            for one in gone:
                node = self.nodes.pop(one)
                self.aliases.pop(one, None)
                self.past[node.id].append(node)
                if node.id != derived(one) or one[0] in self.trees_left:
                    self.left.add(one)
            if edit.policy is Policy.REPARENT:
                self._relocate(places)

        return made


def derived(path: Path) -> str:
    """The id of the first node that is created at a path without one of its own."""
    return f"category:{derived_id('category', path)}"


async def compare(store: Store, model: Model) -> None:
    """Fail if the table differs from the model, or breaks an invariant."""
    await invariants.check(store)
    items = await invariants.all_items(store)
    nodes, aliases = {}, {}
    for item in items:
        if "tier" in item:
            record = Record.of(item)
            found = Node(record.id, record.level, record.name, record.attributes, record.revision)
            nodes[record.path] = found
        elif item["pk"].startswith("alias#") and "deleted" not in item:
            aliases[path_of(item["pk"].removeprefix("alias#"), item["sk"])] = item["id"]
    assert nodes == model.nodes
    assert aliases == model.aliases
    for node_id, past in model.past.items():
        kept = await store.range(revisions(node_id, len(past) + 2), ReadUsage(), strong=True)
        told = [
            Node(node_id, v["level"], v["name"], {"note": v["note"]} if "note" in v else {}, v["revision"])
            for v in kept
        ]
        assert told == past
