"""How often roots are written: the index partition of all roots of a hierarchy takes 1,000 writes a second in all."""

from collections.abc import Sequence

from graph.hierarchies.categories import CategoryNode
from store.engine import ReadUsage, Store
from store.model.keys import parent_partition
from store.model.paths import parse_path
from store.model.records import Change, Put
from store.model.records import Delete as Deletion
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Side
from store.writing.writer import Writer
from tests import invariants
from tests.reordering import reorder
from tests.stores import StoreProxy
from tests.systems.asking import plant

ROOTS = "category"  # the partition of all roots in `by_parent`
TREES = 3
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


def edits(root: str) -> list[tuple[Edit, int]]:
    """Edits of a tree, one after the other, and how many of its roots each writes."""
    return [
        (create(f"{root}/a/new"), 0),
        (Update(CATEGORY, (root, "a"), "Other", None, {}), 0),
        (Move(CATEGORY, (root, "a", "b"), (root, "e", "b")), 0),
        (Delete(CATEGORY, (root, "e", "b"), Policy.CASCADE), 0),
        (reorder(CATEGORY, (root, "e"), Side.FIRST), 0),
        (create(f"{root}/new"), 1),
        (Move(CATEGORY, (root, "new"), (root, "e", "new")), 1),
        (Delete(CATEGORY, (root, "a"), Policy.CASCADE), 1),
        (Update(CATEGORY, (root,), "Other", None, {}), 1),
        (create(f"{root}x"), 1),
    ]


async def planted(store: Store) -> list[str]:
    roots = [f"r{number}" for number in range(TREES)]
    await plant(store, CategoryNode, [(parse_path(root + path), "CATEGORY") for root in roots for path in TREE])
    return roots


async def test_a_root_is_written_only_where_itself_or_its_children_change(store: Store) -> None:
    roots = await planted(store)
    for at_once in zip(*map(edits, roots), strict=True):
        counted = IndexWrites(store, ROOTS)
        for edit, _ in at_once:
            await Writer(counted).write(edit, ReadUsage())
        assert counted.count == sum(writes for _, writes in at_once), at_once
    await invariants.check(store)


async def test_an_import_below_children_of_roots_writes_no_root(store: Store) -> None:
    roots = await planted(store)
    counted = IndexWrites(store, ROOTS)
    new = [(root, "a", f"n{number}") for root in roots for number in range(60)]
    await plant(counted, CategoryNode, [(path, "CATEGORY") for path in new])
    assert counted.count == 0
    await plant(counted, CategoryNode, [((root, "new"), "CATEGORY") for root in roots])
    assert counted.count == TREES
    await invariants.check(store)
