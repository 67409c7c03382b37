"""Migration of layout 1 to 2, on both stores: interrupted, repeated, and beside servers that read and write."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from store.checking.check import Check
from store.checking.migration import migrate
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Unavailable, WrongLayout
from store.metadata.layout_version import LAYOUT
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.items import Change, Item, Put
from store.model.keys import Key, node_key, tree_version_key
from store.model.paths import parse_path
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.background_moves.journaled import create
from tests.store.checking.broken import HIERARCHIES, fill
from tests.store.metadata.test_layout_version import set_layout
from tests.systems.asking import Client, plant

AT = "2026-11-20T12:00:00.000Z"
TREES = [f"r{n}" for n in range(12)]


class BeforeCommits:
    """A store that calls `hook` before each commit."""

    def __init__(self, store: Store, hook: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Sequence[Change]) -> None:
        await self._hook()
        await self._store.commit(changes)


async def roots(store: Store) -> list[Item]:
    return [item for item in await invariants.all_items(store) if "tier" in item and item["sk"] == "#"]


async def make_older(store: Store, store_url: str) -> int:
    """Make a table one of layout 1, whose roots have the counts of their descendants; returns their number."""
    found = await roots(store)
    for root in found:
        (version,) = await store.get([tree_version_key(str(root["pk"]))], ReadUsage(), strong=True)
        below: Any = TreeVersion.of(str(root["pk"]), version).below_root
        await store.commit([Put({**root, "below": below})])
    await set_layout(store_url, 1)
    return len(found)


async def problems(store: Store, category: Hierarchy = CategoryNode.definition()) -> list[str]:
    return [str(one) async for one in Check(store, {**HIERARCHIES, "category": category}, AT).findings()]


async def grow(store: Store, path: str) -> None:
    await Writer(store).write(replace(create(path), hierarchy=CategoryNode.definition()), ReadUsage())


async def plant_trees(store: Store) -> None:
    await plant(store, CategoryNode, [(path, "CATEGORY") for root in TREES for path in ((root,), (root, "a"))])


async def test_a_migrated_table_is_as_a_new_one(store: Store, store_url: str) -> None:
    await fill(store)
    before = sorted(await roots(store), key=itemgetter("pk"))
    count = await make_older(store, store_url)
    with pytest.raises(WrongLayout, match="clade table migrate"):
        await store.health()
    assert await migrate(store) == (1, count)
    await store.health()
    assert sorted(await roots(store), key=itemgetter("pk")) == before
    assert await problems(store, CATEGORY) == []
    await invariants.check(store)
    assert await migrate(store) == (LAYOUT, 0)


async def test_an_interrupted_migration_is_found_and_continued(store: Store, store_url: str) -> None:
    await plant_trees(store)
    count = await make_older(store, store_url)
    commits = iter(range(5))

    async def fail() -> None:
        if next(commits, None) is None:
            raise Unavailable("The table is gone.")

    with contextlib.suppress(Unavailable):
        await migrate(BeforeCommits(store, fail))
    left = [root for root in await roots(store) if "below" in root]
    assert 0 < len(left) < count
    assert await problems(store) == [
        f"category {str(root['pk']).partition('#')[2]}: attribute `below` is {{'CATEGORY': 1}}, expected absent"
        for root in sorted(left, key=lambda root: str(root["pk"]))
    ]
    assert await migrate(store) == (LAYOUT, len(left))
    assert await problems(store) == []


async def test_a_write_between_read_and_rewrite_is_kept(store: Store, store_url: str) -> None:
    await plant(store, CategoryNode, [(("r",), "CATEGORY")])
    await make_older(store, store_url)
    written: list[bool] = []

    async def write_first() -> None:
        if not written:
            written.append(True)
            await grow(store, "r/new")

    await migrate(BeforeCommits(store, write_first))
    assert [root["kids"] for root in await roots(store)] == [{"CATEGORY": 1}]
    await invariants.check(store)


@pytest.mark.parametrize("attribute", ["id", "kids", "below", "revision", "rank"])
async def test_a_rewrite_requires_what_any_write_to_the_root_changes(
    store: Store, store_url: str, attribute: str
) -> None:
    await plant(store, CategoryNode, [(("r",), "CATEGORY")])
    await make_older(store, store_url)
    other: dict[str, Any] = {
        "id": "category:x", "kids": {"CATEGORY": 3}, "below": {"CATEGORY": 4}, "revision": 9, "rank": "CATEGORY#5",
    }  # fmt: skip
    written: list[Item] = []

    async def write_first() -> None:
        if not written:
            (root,) = await roots(store)
            written.append({**root, attribute: other[attribute], "note": "of another writer"})
            await store.commit([Put(written[0])])

    await migrate(BeforeCommits(store, write_first))
    expected = {name: value for name, value in written[0].items() if name != "below"}
    assert await roots(store) == [expected]


async def test_servers_count_and_write_rightly_while_a_table_is_migrated(store: Store, store_url: str) -> None:
    await plant_trees(store)
    await make_older(store, store_url)
    begun, done, stop = Counter[str](), Counter[str](), asyncio.Event()
    read = 0

    async def write() -> None:
        for number in range(6):
            for root in TREES:
                begun[root] += 1
                await grow(store, f"{root}/a/n{number}" if number % 2 else f"{root}/n{number}")
                done[root] += 1
        stop.set()

    async def count() -> None:
        nonlocal read
        client = Client(store, CategoryNode, planned=False)
        while not stop.is_set() or not read:
            before = Counter(done)
            reply = await client.ask("{ categories { nodes { key descendantCount root { descendantCount } } } }")
            for node in reply.data["categories"]["nodes"]:
                for found in (node["descendantCount"], node["root"]["descendantCount"]):
                    assert before[node["key"]] <= found - 1 <= begun[node["key"]]
            read += 1
            await asyncio.sleep(0)

    async def bring() -> None:
        while not stop.is_set():  # as often as somebody may start it again
            await migrate(store)
            await asyncio.sleep(0)

    await asyncio.gather(write(), count(), bring())
    assert not [root for root in await roots(store) if "below" in root]
    assert await problems(store) == []
    await invariants.check(store)


async def test_a_root_with_counts_of_layout_1_is_read_by_the_counts_of_its_tree(store: Store, store_url: str) -> None:
    await plant_trees(store)
    await make_older(store, store_url)
    (root,) = await store.get([node_key("category", parse_path("r0"))], ReadUsage(), strong=True)
    await store.commit([Put({**(root or {}), "below": {"CATEGORY": 77}})])
    reply = await Client(store, CategoryNode).ask('{ category(path: "r0") { descendantCount } }')
    assert reply.data["category"]["descendantCount"] == 1
    assert Key("category#r0", "#") == node_key(CATEGORY.name, ("r0",))
