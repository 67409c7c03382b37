"""A former path leads to the node that was there last, wherever that is now; the model knows only who was where."""

import asyncio
import itertools
import uuid
from random import Random

import pytest

from graph.hierarchies.categories import CategoryNode
from store.background_moves.timing import MoveTiming
from store.checking.check import Check
from store.connect import open_store
from store.edits.create_update import Create
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import TooLarge
from store.model.keys import Path
from store.model.paths import format_path
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY as TOLD
from tests.selection import examples
from tests.store.transfer.test_load import imported
from tests.store.transfer.test_move_existing import resettled
from tests.systems.writing import Clients

pytestmark = pytest.mark.both_stores

CATEGORY = CategoryNode.definition()
TREES = ("X", "Z")
USED = "abc"  # keys that nodes share and leave to others
MAX_DEPTH = 6
OPERATIONS = 60
SMALL = 14  # changes in a transaction, so that moves of three nodes run in the background
MANY_PATHS = 300  # in one query


class Places:
    """The ids of nodes by path, and of the nodes that were last at the paths that nodes have left by moves."""

    def __init__(self) -> None:
        self.ids: dict[Path, str] = {}
        self.last: dict[Path, str] = {}

    def below(self, path: Path) -> list[Path]:
        return [one for one in self.ids if one[: len(path)] == path]

    def move(self, path: Path, target: Path) -> None:
        taken = {one: self.ids.pop(one) for one in self.below(path)}
        self.last |= taken
        self.ids |= {(*target, *one[len(path) :]): node_id for one, node_id in taken.items()}

    def delete(self, path: Path) -> None:
        del self.ids[path]
        self.last.pop(path, None)

    def expected(self) -> dict[Path, Path | None]:
        """Where each path leads that any node has ever had."""
        places = {node_id: path for path, node_id in self.ids.items()}
        return {path: path if path in self.ids else places.get(self.last[path]) for path in (*self.ids, *self.last)}


class History:
    """Random writes, made in a store and in the model."""

    def __init__(self, store: Store, seed: int) -> None:
        self.places = Places()
        self._random = Random(seed)  # noqa: S311
        self._numbers = itertools.count(1)
        self._writer = Writer(store, MoveTiming(0.0, 0.0), {"category": CATEGORY})
        self._new_keys = self._random.random() < 0.5

    async def begin(self) -> None:
        for tree in TREES:
            await self._create((tree,))
        for path in itertools.product(TREES, USED):
            await self._create(path)

    async def next(self) -> None:
        await self._random.choice(
            [self.create, self.rename, self.rename, self.move, self.move, self.swap, self.delete]
        )()

    async def create(self) -> None:
        await self._create((*self._path(MAX_DEPTH - 1), self._key()))

    async def rename(self) -> None:
        path = self._path()
        await self._move(path, (*path[:-1], self._key()))

    async def move(self) -> None:
        await self._move(path := self._path(), (*self._path(MAX_DEPTH - 1), path[-1]))

    async def swap(self) -> None:
        one, aside = self._path(), (f"n{next(self._numbers)}",)
        others = [path for path in self.places.ids if path[:-1] == one[:-1] and path != one]
        if others:
            other = self._random.choice(others)
            for path, target in ((one, (*one[:-1], *aside)), (other, one), ((*one[:-1], *aside), other)):
                await self._move(path, target)

    async def delete(self) -> None:
        path = self._path()
        if len(path) == 1:
            return
        policy = self._random.choice([Policy.CASCADE, Policy.REPARENT, Policy.REFUSE])
        below = self.places.below(path)
        children = sorted(one for one in below if len(one) == len(path) + 1)
        targets = {child: (*path[:-1], child[-1]) for child in children}
        if policy is Policy.REPARENT and any(one in self.places.ids and one != path for one in targets.values()):
            return
        if policy is Policy.REFUSE and children:
            return
        try:
            await self._written(Delete(CATEGORY, path, policy))
        except TooLarge:
            return
        for one in below if policy is Policy.CASCADE else [path]:
            self.places.delete(one)
        if policy is Policy.REPARENT:
            for child, target in targets.items():
                self.places.move(child, target)

    def _path(self, max_depth: int = MAX_DEPTH) -> Path:
        return self._random.choice([path for path in self.places.ids if len(path) <= max_depth])

    def _key(self) -> str:
        return f"n{next(self._numbers)}" if self._new_keys else self._random.choice(USED)

    async def _create(self, path: Path) -> None:
        if path not in self.places.ids:
            record = (await self._writer.write(Create(CATEGORY, path, "CATEGORY", "x", {}, None), ReadUsage())).record
            self.places.ids[path] = record.id

    async def _move(self, path: Path, target: Path) -> None:
        if target in self.places.ids or target[: len(path)] == path:
            return
        await self._written(Move(CATEGORY, path, target))
        self.places.move(path, target)

    async def _written(self, edit: Move | Delete) -> None:
        await self._writer.write(edit, ReadUsage())
        await self._writer.move_worker.finished()


async def led_to(clients: Clients, paths: list[Path]) -> dict[Path, Path | None]:
    found: list[dict[str, str] | None] = []
    for start in range(0, len(paths), MANY_PATHS):
        some = list(map(format_path, paths[start : start + MANY_PATHS]))
        found += (await clients.ask("query($p: [Path!]!) { categoriesByPath(paths: $p) { path } }", p=some))[
            "categoriesByPath"
        ]
    return {path: node and tuple(node["path"].split("/")) for path, node in zip(paths, found, strict=True)}


def run(url: str, seed: int) -> None:
    async def made() -> None:
        async with open_store(url) as store:
            await store.create()
            store.max_commit_changes = SMALL if seed % 2 else store.max_commit_changes
            history, clients = History(store, seed), Clients(store, writes=False)
            await history.begin()
            for number in range(OPERATIONS):
                await history.next()
                if number % 5 == 4:
                    expected = history.places.expected()
                    assert await led_to(clients, list(expected)) == expected
            assert [str(one) async for one in Check(store, {"category": CATEGORY}, "").findings()] == []

    asyncio.run(made())


@pytest.mark.parametrize("seed", range(examples(4, 50)))
def test_on_sqlite_no_former_path_is_lost_or_leads_elsewhere(seed: int) -> None:
    run("sqlite://:memory:", seed)


@pytest.mark.parametrize("seed", range(examples(2, 50)))
def test_on_dynamodb_no_former_path_is_lost_or_leads_elsewhere(engine, seed: int) -> None:
    run(engine.address(f"former-{uuid.uuid4().hex}"), seed)


async def test_imports_write_and_remove_redirects_as_mutations_do(store: Store) -> None:
    """A node moves away by an import, and another that takes its path goes with an import that prunes."""
    clients, box = Clients(store, writes=False), "CATEGORY"
    await imported(store, [("X", box), ("X/a", box, {"id": "a"}), ("X/a/b", box, {"id": "b"})], TOLD)
    await resettled(store, [("X", box), ("X/z", box, {"id": "a"}), ("X/z/y", box, {"id": "b"})], TOLD)
    there = {("X", "a"): ("X", "z"), ("X", "a", "b"): ("X", "z", "y"), ("X", "z", "b"): ("X", "z", "y")}
    assert await led_to(clients, list(there)) == there
    await imported(store, [("X", box), ("X/a", box, {"id": "new"})], TOLD)
    assert await led_to(clients, list(there)) == {**there, ("X", "a"): ("X", "a")}
    await imported(store, [("X", box), ("X/z", box), ("X/z/y", box)], TOLD, prune=True)
    assert await led_to(clients, list(there)) == {**there, ("X", "a"): None}
