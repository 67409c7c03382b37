"""How often roots are written: the index partition of all roots of a hierarchy takes 1,000 writes a second in all."""

from collections.abc import Sequence

import pytest

from graph.hierarchies.categories import CategoryNode
from store.engine import ReadUsage, Store
from store.model.keys import parent_partition
from store.model.paths import parse_path
from store.model.records import Change, Put
from store.model.records import Delete as Deletion
from store.writing.create_update import Create, Edit, Update
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Side
from store.writing.writer import Writer
from tests import invariants
from tests.reordering import reorder
from tests.stores import StoreProxy
from tests.systems.asking import plant

ROOTS = "category"  # the partition of all roots in `by_parent`
TREES = 20
CATEGORY = CategoryNode.definition()
TREE = ["", "/a", "/a/b", "/a/b/c", "/a/d", "/e"]


class IndexWrites(StoreProxy):
    """A store that counts the writes to one partition of `by_parent`: items with other attributes than before."""

    def __init__(self, store: Store, partition: str) -> None:
        super().__init__(store)
        self._partition = partition
        self.count = 0

    async def commit(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, Put | Deletion) and change.key.sk.startswith("#"):
                (before,) = await self._store.get([change.key], ReadUsage(), strong=True)
                after = change.item if isinstance(change, Put) else None
                is_listed = parent_partition(*change.key) == self._partition and "#" in change.key.pk
                self.count += is_listed and not change.key.pk.startswith("alias#") and before != after
        await self._store.commit(changes)


def create(path: str) -> Edit:
    return Create(CATEGORY, parse_path(path), "CATEGORY", "New", {})


EDITS = {
    "a node below a child": (lambda root: [create(f"{root}/a/new")], 0),
    "a node deep in the tree": (lambda root: [create(f"{root}/a/b/c/new")], 0),
    "content of a child": (lambda root: [Update(CATEGORY, (root, "a"), "Other", None, {})], 0),
    "a move below the children": (lambda root: [Move(CATEGORY, (root, "a", "b"), (root, "e", "b"))], 0),
    "a deletion below the children": (lambda root: [Delete(CATEGORY, (root, "a", "b"), Policy.CASCADE)], 0),
    "the order of children": (lambda root: [reorder(CATEGORY, (root, "e"), Side.FIRST)], 0),
    "a child": (lambda root: [create(f"{root}/new")], 1),
    "a child that is deleted": (lambda root: [Delete(CATEGORY, (root, "a"), Policy.CASCADE)], 1),
    "a child that moves down": (lambda root: [Move(CATEGORY, (root, "a"), (root, "e", "a"))], 1),
    "content of the root": (lambda root: [Update(CATEGORY, (root,), "Other", None, {})], 1),
    "a new tree": (lambda root: [create(f"{root}x")], 1),
    "twenty nodes": (lambda root: [create(f"{root}/a/n{number}") for number in range(20)], 0),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
async def test_a_root_is_written_only_where_itself_or_its_children_change(store: Store, what: str) -> None:
    edits_in, expected = EDITS[what]
    roots = [f"r{number}" for number in range(TREES)]
    await plant(store, CategoryNode, [(parse_path(root + path), "CATEGORY") for root in roots for path in TREE])
    counted = IndexWrites(store, ROOTS)
    writer = Writer(counted)
    for root in roots:
        for edit in edits_in(root):
            await writer.write(edit, ReadUsage())
    assert counted.count == expected * TREES
    await invariants.check(store)


async def test_an_import_below_children_of_roots_writes_no_root(store: Store) -> None:
    roots = [f"r{number}" for number in range(TREES)]
    await plant(store, CategoryNode, [(parse_path(root + path), "CATEGORY") for root in roots for path in TREE])
    counted = IndexWrites(store, ROOTS)
    new = [(root, "a", f"n{number}") for root in roots for number in range(60)]
    await plant(counted, CategoryNode, [(path, "CATEGORY") for path in new])
    assert counted.count == 0
    await plant(counted, CategoryNode, [((root, "new"), "CATEGORY") for root in roots])
    assert counted.count == TREES
    await invariants.check(store)
