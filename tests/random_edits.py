"""Random edits of a hierarchy, and what of a store two of them have to have in common after the same edits."""

from random import Random
from typing import Any

from store.engine import Store
from store.model.keys import Path, path_of
from store.model.records import Record
from store.writing.create_update import Create, Edit, Update
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position, Side
from tests import invariants
from tests.hierarchies import CATEGORY

KEYS = ["a", "b", "a b", "#$", "é"]
MAX_DEPTH = 5
_BESIDE = (Side.BEFORE, Side.AFTER)


async def states(store: Store) -> tuple[dict[Path, Any], dict[Path, Path]]:
    """The level, name, attributes and revision of each node by its path, and where former paths lead."""
    items = await invariants.all_items(store)
    records = [Record.of(item) for item in items if "tier" in item]
    places = {one.id: one.path for one in records}
    former = [one for one in items if one["pk"].startswith("alias#") and "deleted" not in one]
    led = {path_of(one["pk"].removeprefix("alias#"), one["sk"]): one["id"] for one in former}
    nodes = {one.path: (one.level, one.name, one.attributes, one.revision) for one in records}
    return nodes, {path: places[node_id] for path, node_id in led.items() if node_id in places}


class RandomEdits:
    """Random edits, most of them of existing nodes, so that many succeed and some are rejected."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.known: list[Path] = []

    async def see(self, store: Store) -> None:
        """Take the paths of all nodes, to which the next edits may belong."""
        self.known = sorted((await states(store))[0])

    def one(self) -> Edit:
        return self.random.choice(
            [self.create, self.create, self.update, self.move, self.move, self.order, self.delete]
        )()

    def create(self) -> Edit:
        parent = self.path() if self.known and self.random.random() < 0.9 else ()
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
        family = [one for one in self.known if one[:-1] == path[:-1]] or [path]
        beside = self.random.choice([*family, *family, self.path()]) if side in _BESIDE else None
        return Position(side, beside)

    def delete(self) -> Edit:
        return Delete(CATEGORY, self.path(), self.random.choice(list(Policy)), self.expected())

    def path(self) -> Path:
        if self.known and self.random.random() < 0.95:
            return self.random.choice(self.known)
        return tuple(self.random.choices(KEYS, k=self.random.randint(1, 3)))

    def key(self) -> str:
        return self.random.choice(KEYS)

    def values(self) -> dict[str, Any]:
        return self.random.choice([{}, {"note": "1"}, {"note": "2"}, {"note": None}])

    def expected(self) -> int | None:
        return self.random.choice([None, None, None, 1, 2])
