"""Deletions: after random edits, jobs and prunes the tombstones of each are those that a model says, on both stores."""

import contextlib
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.hierarchies.categories import CategoryNode
from store.checking.check import Check
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError
from store.model.keys import Index, KeyRange, id_key
from store.model.records import Item, Record
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.edit_many import EditMany
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, Node, RandomEdits
from tests.selection import examples
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.stores import Interrupted, once
from tests.systems.asking import Client

HIERARCHIES = {"category": CATEGORY}
Told = tuple[str, str, str | None, str | None, int, int]
"""Id, sort key, id of the parent, rank given by hand, children and descendants that were deleted with it."""


class Deletions:
    """The model: of each deletion its nodes, without those that are back, made of all nodes before and after it."""

    def __init__(self, store: Store, *, lowers_kids: bool = True) -> None:
        """Edits that bring back a node count it no longer among the children of its parent; imports do not."""
        self.store, self.lowers_kids = store, lowers_kids
        self.made: list[dict[str, Told]] = []
        self.before: dict[str, dict[str, Any]] = {}

    async def nodes(self) -> dict[str, dict[str, Any]]:
        return {item["id"]: item for item in (await invariants.nodes(self.store, "category")).values()}

    async def begin(self) -> None:
        self.before = await self.nodes()

    async def end(self) -> None:
        """Take what has gone since `begin` for one deletion, and compare."""
        after = await self.nodes()
        gone = {one: item for one, item in self.before.items() if one not in after}
        for deletion in self.made:  # whose nodes may be back
            for one in deletion.keys() & (self.before.keys() | after.keys()):
                _, _, under, *_ = deletion.pop(one)
                if under in deletion and self.lowers_kids:
                    *told, kids, below = deletion[under]
                    deletion[under] = *told, kids - 1, below
        self.made += [{one: self._told(item, gone) for one, item in gone.items()}] if gone else []
        await self.compare()

    def _told(self, item: dict[str, Any], gone: dict[str, dict[str, Any]]) -> Told:
        key = item["pk"] + item["sk"]
        places = [one["pk"] + one["sk"] for one in gone.values() if one is not item]
        below = [place for place in places if place.startswith(key)]
        kids = [place for place in below if place.count("#") == key.count("#") + 1]
        (under, *_) = [one["id"] for one in self.before.values() if one["pk"] + one["sk"] == item["parent"]] or [None]
        by_hand = None if item["rank"].endswith("#") else item["rank"]
        return item["id"], item["sk"], under, by_hand, len(kids), len(below)

    async def compare(self) -> None:
        """Fail unless the tombstones are those of the model, each in its deletion, and listed in the tree's order."""
        found: dict[str, dict[str, list[Item]]] = {}
        for item in await invariants.all_items(self.store):
            if item["pk"].startswith("id#") and "deleted" in item:
                parent = item["parent"].split("/")
                assert parent[0] == "gone"
                found.setdefault(parent[1], {}).setdefault(item["parent"], []).append(item)
        for parts in found.values():
            for name, items in parts.items():
                listed = await self.store.range(KeyRange(Index.BY_PARENT, name, "#", "$"), ReadUsage())
                assert [one["rank"] for one in listed] == sorted(str(one["key"]) for one in items)
                assert {str(one["pk"]) for one in listed} == {str(one["pk"]) for one in items}
        told = [{_node(item) for items in parts.values() for item in items} for parts in found.values()]
        expected = [{*deletion.values()} for deletion in self.made if deletion]
        assert sorted(map(sorted, told)) == sorted(map(sorted, expected))
        assert [str(one) async for one in Check(self.store, HIERARCHIES, journaled.AT).findings()] == []


def _node(item: Item) -> Any:
    node_id = str(item["pk"]).removeprefix("id#")
    return node_id, item["rank"], item.get("under"), item.get("place"), item["kids"], item["below"]


class Wishes(RandomEdits):
    """Random edits, many of them deletions, of the nodes that are in a table."""

    def one(self) -> Edit:
        if self.random.random() > 0.3:
            return super().one()
        return Delete(CATEGORY, self.path(), self.random.choice([Policy.CASCADE, Policy.CASCADE, Policy.REPARENT]))

    def know(self, nodes: dict[str, dict[str, Any]]) -> None:
        self.model.nodes = {Record.of(item).path: Node("", "", "", {}) for item in nodes.values()}


async def edited(store: Store, seed: int, count: int) -> None:
    """Make random edits, those of more than one transaction by jobs, and compare after each."""
    wishes, deletions, writer = Wishes(seed, Model()), Deletions(store), Writer(store, journaled.SOON)
    full = [("/".join(path), "CATEGORY") for depth in range(1, 5) for path in product("ab", repeat=depth)]
    for _ in range(count):
        if len(await deletions.nodes()) < 10:
            await load(store, wanted_of(full, CATEGORY), LoadResult())
        await deletions.begin()
        wishes.know(deletions.before)
        with contextlib.suppress(CladeError):
            await writer.write(wishes.one(), ReadUsage())
            await writer.move_worker.finished()
        await deletions.end()
    await invariants.check(store)


@settings(max_examples=examples(2, 20))
@given(st.integers(0, 1 << 32))
async def test_each_edit_that_deletes_is_one_deletion(seed: int) -> None:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        if seed % 2:
            store.max_commit_changes = store.max_changes = journaled.SMALL
        await edited(store, seed, 60)


@pytest.mark.both_stores
async def test_each_edit_that_deletes_is_one_deletion_on_both_stores(store: Store) -> None:
    store.max_commit_changes = store.max_changes = journaled.SMALL
    await edited(store, 7, examples(15, 40))


async def pruned(store: Store, seed: int, rounds: int) -> None:
    """Import random parts of a tree, which prune the rest in several transactions, while others write to the tree."""
    random, deletions = Random(seed), Deletions(store, lowers_kids=False)  # noqa: S311
    store.max_changes = 30
    keys = ["", *"abcd", *[f"{a}/{b}" for a in "abcd" for b in "xy"], *[f"a/x/{c}" for c in "12345"]]
    rows = [(f"r/{key}".strip("/"), "CATEGORY", {"id": f"i{n}"} if n % 2 else {}) for n, key in enumerate(keys)]
    for _ in range(rounds):
        left = [row for row in rows if row[0] == "r" or random.random() < 0.2]
        await load(store, wanted_of(rows, CATEGORY), LoadResult())
        await deletions.begin()

        async def disturb() -> None:
            await Writer(store).write(Update(CATEGORY, ("r",), random.choice("xyz"), None, {}), ReadUsage())

        disturbed: Any = Interrupted(store, "commit", before=once(random.randint(1, 3), disturb))
        await load(disturbed, wanted_of(left, CATEGORY), LoadResult(), prune=True)
        await deletions.end()
    await invariants.check(store)
    assert len(deletions.made) == rounds


@settings(max_examples=examples(2, 20))
@given(st.integers(0, 1 << 32))
async def test_what_an_import_prunes_of_a_tree_is_one_deletion(seed: int) -> None:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await pruned(store, seed, 4)


@pytest.mark.both_stores
async def test_what_an_import_prunes_of_a_tree_is_one_deletion_on_both_stores(store: Store) -> None:
    await pruned(store, 7, 3)


@pytest.mark.parametrize("top", ["r", "r/a"])
async def test_a_job_that_is_killed_after_any_commit_leaves_one_deletion_of_its_id(store_url: str, top: str) -> None:
    for commits in range(1, 30):
        url = store_url.replace("clade-", f"clade-{commits}-").replace("clade.db", f"{commits}.db")
        async with open_store(url) as store:
            await store.create()
            await journaled.plant(store, "r/a/n0/y/z/1", "r/a/n0/y/z/2")
            deletions = Deletions(store)
            await deletions.begin()
            if not await journaled.died(store, journaled.cascade(top), commits):
                return
            await journaled.lapse(store)
            await journaled.resume(store)
            await deletions.end()
            move = await journaled.only_move(store)
            items = [item for item in await invariants.all_items(store) if item.get("deleted") and "rank" in item]
            assert len(items) == move.nodes
            assert {str(item["parent"])[:-1] for item in items} == {f"gone/{move.id}/"}
            assert len({item["parent"] for item in items}) > 1
    raise AssertionError("The job does not end.")


async def test_several_edits_of_one_request_are_a_deletion_each(store: Store) -> None:
    await load(store, wanted_of([(one, "CATEGORY") for one in ("r", "r/a", "r/a/b", "r/c")], CATEGORY), LoadResult())
    nodes = {item["sk"]: item for item in (await invariants.nodes(store, "category")).values()}
    bare = str(nodes["#a#b#"]["id"]).removeprefix("category:")
    below = ("r", "a")
    edits = [
        Delete(CATEGORY, below, Policy.CASCADE), Create(CATEGORY, ("r", "d"), "CATEGORY", "d", {}, bare),
        Delete(CATEGORY, ("r", "c"), Policy.REFUSE), Delete(CATEGORY, ("r", "d"), Policy.REFUSE),
    ]  # fmt: skip
    await Writer(store).write(EditMany(CATEGORY, edits), ReadUsage())
    items = [item for item in await invariants.all_items(store) if item["pk"].startswith("id#") and "rank" in item]
    assert len({item["parent"] for item in items}) == 3
    assert sorted([(item["rank"], item["kids"], item["below"]) for item in items]) == [
        ("#a#", 0, 1), ("#c#", 0, 0), ("#d#", 0, 0),
    ]  # fmt: skip
    assert await journaled.findings(store) == []


@pytest.mark.parametrize("how", ["an edit", "an import"])
async def test_the_id_record_of_a_node_that_is_back_has_nothing_of_its_deletion(store: Store, how: str) -> None:
    await load(store, wanted_of([("r", "CATEGORY"), ("r/a", "CATEGORY", {"id": "i"})], CATEGORY), LoadResult())
    await Writer(store).write(Delete(CATEGORY, ("r", "a"), Policy.REFUSE), ReadUsage())
    gone = await journaled.there(store, id_key("category:i"))
    assert gone.keys() >= {"parent", "rank", "under", "kids", "below"}
    if how == "an edit":
        await Writer(store).write(Create(CATEGORY, ("r", "b"), "CATEGORY", "b", {}, "i"), ReadUsage())
    else:
        await load(store, wanted_of([("r/b", "CATEGORY", {"id": "i"})], CATEGORY), LoadResult())
    record = await journaled.there(store, id_key("category:i"))
    assert record == {"pk": "id#category:i", "sk": "v0", "tree": "category#r", "key": "#b#"}
    listed = KeyRange(Index.BY_PARENT, str(gone["parent"]), "#", "$")
    assert await store.range(listed, ReadUsage()) == []


async def test_a_deletion_ends_redirects_from_its_path_in_a_tree_that_has_some(store: Store) -> None:
    await load(store, wanted_of([(one, "CATEGORY") for one in ("r", "r/a", "r/b")], CATEGORY), LoadResult())
    await journaled.write(store, Delete(CATEGORY, ("r", "b"), Policy.REFUSE))
    assert not [item for item in await invariants.all_items(store) if item["pk"].startswith("alias#")]
    edits = journaled.move("r/a", "r/c"), journaled.move("r/c", "r/d"), journaled.create("r/c")
    for edit in edits:
        await journaled.write(store, edit)
    await journaled.write(store, Delete(CATEGORY, ("r", "c"), Policy.REFUSE))
    asked = '{ a: category(path: "r/a") { path } c: category(path: "r/c") { path } }'
    reply = await Client(store, CategoryNode).ask(asked)
    assert reply.data == {"a": {"path": "r/d"}, "c": None}
