"""Change feed: a follower of the changes of trees has the same nodes as the trees, by path and by id."""

import asyncio
import contextlib
import uuid

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolvers.past.change_feed import Change, read_changes
from resolvers.session.request import Request
from store.connect import open_store
from store.edits.create_update import Create
from store.edits.delete import Delete, Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError
from store.model.keys import Path
from store.model.paths import parse_path
from store.model.records import Record
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import KEYS, Model, RandomEdits
from tests.selection import examples

SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(10, 40))  # a seed, and how many edits


async def nodes(store: Store) -> dict[Path, str]:
    """The ids of all nodes by their paths."""
    return {Record.of(one).path: one["id"] for one in (await invariants.nodes(store, "category")).values()}


class Follower:
    """Applies the changes of one tree; a subtree that comes from another tree is read."""

    def __init__(self, store: Store, root: str) -> None:
        self.by_path: dict[Path, str] = {}
        self.by_id: dict[str, Path] = {}
        self._store = store
        self._root = root
        self._cursor: str | None = None

    async def catch_up(self) -> None:
        page = await read_changes(
            Request(self._store, {"category": CATEGORY}), "category", (self._root,), self._cursor, None
        )
        self._cursor = page.cursor
        for change in page.changes:
            await self._take(change)

    async def _take(self, change: Change) -> None:
        assert change.id is not None
        path = parse_path(change.path)
        match change.event:
            case "CREATED":
                self._add({path: change.id})
            case "DELETED":
                self._leave(path, change)
            case "MOVED":
                source, target = parse_path(change.source or ""), parse_path(change.target or "")
                came = self._leave(source, change) if source[0] == self._root else await self._below(target)
                if target[0] == self._root:
                    self._add({(*target, *below): node_id for below, node_id in came.items()})

    def _add(self, came: dict[Path, str]) -> None:
        self.by_path |= came
        self.by_id |= {node_id: path for path, node_id in came.items()}

    def _leave(self, path: Path, change: Change) -> dict[Path, str]:
        """Take out the node at a path, with all below it where the change says so; by what each has below the path."""

        def goes(other: Path) -> bool:
            return other == path or (change.with_descendants and other[: len(path)] == path)

        left = {one[len(path) :]: node_id for one, node_id in self.by_path.items() if goes(one)}
        self.by_path = {one: node_id for one, node_id in self.by_path.items() if not goes(one)}
        self.by_id = {node_id: one for node_id, one in self.by_id.items() if not goes(one)}
        return left

    async def _below(self, top: Path) -> dict[Path, str]:
        found = await nodes(self._store)
        return {path[len(top) :]: node_id for path, node_id in found.items() if path[: len(top)] == top}


async def check(store: Store, followers: dict[str, Follower]) -> None:
    found = await nodes(store)
    for root in KEYS:
        await followers[root].catch_up()
        tree = {path: node_id for path, node_id in found.items() if path[0] == root}
        assert followers[root].by_path == tree
        assert followers[root].by_id == {node_id: path for path, node_id in tree.items()}


async def follow(store: Store, seed: int, length: int) -> None:
    writer, model = Writer(store), Model()
    wishes, followers = RandomEdits(seed, model), {root: Follower(store, root) for root in KEYS}
    for _ in range(length):
        edit = wishes.one()
        with contextlib.suppress(CladeError):
            record = (await writer.write(edit, ReadUsage())).record
            model.apply(edit)(record)
            await check(store, followers)


async def test_a_child_with_the_key_of_its_parent_survives_reparenting_in_the_feed(store: Store) -> None:
    writer, followers = Writer(store), {root: Follower(store, root) for root in KEYS}
    for path in [("a",), ("a", "b"), ("a", "b", "b"), ("a", "b", "b", "é"), ("a", "b", "é"), ("a", "b", "é", "a")]:
        await writer.write(Create(CATEGORY, path, "CATEGORY", "x", {}), ReadUsage())
    await check(store, followers)
    await writer.write(Delete(CATEGORY, ("a", "b"), Policy.REPARENT), ReadUsage())
    await check(store, followers)
    assert followers["a"].by_path.keys() == {("a",), ("a", "b"), ("a", "b", "é"), ("a", "é"), ("a", "é", "a")}


@settings(max_examples=examples(6, 30), deadline=None)
@given(SEQUENCES)
def test_a_follower_of_random_edits_has_the_same_trees(sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow(store, *sequence)

    asyncio.run(run())


@settings(max_examples=examples(1, 3), deadline=None, suppress_health_check=list(HealthCheck))
@given(SEQUENCES)
def test_a_follower_of_random_edits_on_dynamodb_has_the_same_trees(engine, sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store(engine.address(f"followed-{uuid.uuid4().hex}")) as store:
            await store.create()
            await follow(store, *sequence)

    asyncio.run(run())
