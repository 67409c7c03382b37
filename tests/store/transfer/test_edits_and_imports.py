"""A tree that edits have made and one that an import of its end state makes: their items are the same, on both stores.

What differs by nature is left out, by kind of item:

| item | left out |
| --- | --- |
| node | its revision, and when and by whom it was written |
| revision, tombstone, redirect, log, move | all, since the import knows no past |
| tree version | its number, whether there are redirects, and when logs expire; all of a tree without nodes |
| item of a moved node | all: it leads from former lineages to present ones |
| item of a node kind | nothing; where ancestors were moved, it is compared after a repair, which writes it anew |
| marker | its number, and the levels without nodes that only an import names |
"""

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from commands.importing.files import FileOptions, shape_of_file
from store.checking.check import Check
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.errors import CladeError
from store.kinds.marker import Marker, marker_key
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.keys import Key
from store.model.records import Item, derived_id, key_of
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused
from tests.selection import examples
from tests.store.model.test_undefined_values import exported
from tests.store.writing.journaled import AT, SOON
from tests.systems.test_batches import pair

pytestmark = pytest.mark.usefixtures("probes")

EVERY = {
    "note": Attribute("note", Kind.TEXT, "A note.", search=True), "stock": Attribute("stock", Kind.INT, "A number."),
    "north": Attribute("north", Kind.FLOAT, "Degrees."), "east": Attribute("east", Kind.FLOAT, "Degrees."),
}  # fmt: skip
LEVELS = {name: replace(one, attributes=EVERY) for name, one in CATEGORY.levels.items()}
SEARCHED = replace(
    CATEGORY, levels=LEVELS, search=Search(SearchScope.HIERARCHY, "stock"), location=("north", "east")
)  # fmt: skip
BY_TREE = replace(SEARCHED, search=Search(SearchScope.TREE, "stock"))
SCOPES = [SEARCHED, BY_TREE]
FEW = 20
TREES = {"sqlite": 40, "dynamodb": 6}  # of a thorough run
TINY = 100  # changes in a transaction, in which few nodes move


class Edits(RandomEdits):
    """Random edits of all attributes; of few nodes none is deleted, and no deletion leaves few."""

    def delete(self) -> Edit:
        path = self.path()
        left = [one for one in self.model.nodes if one[: len(path)] != path]
        is_possible = len(self.model.nodes) > FEW and len(left) > FEW / 2
        return (
            Delete(CATEGORY, path, self.random.choice(list(Policy)), self.expected()) if is_possible else self.create()
        )

    def values(self) -> dict[str, Any]:
        values = {
            "note": ["red box", "Ärger", "", None], "stock": [7, -1, None], "north": [1.5, 52, None],
            "east": [-180, 7.25, None],
        }  # fmt: skip
        return {name: self.random.choice(some) for name, some in values.items() if self.random.random() < 0.5}


async def edit(store: Store, hierarchy: Hierarchy, edits: RandomEdits, length: int, *, only_new: bool = False) -> None:
    """Make random edits, but for those that are refused: the model, which knows no attributes, only says where nodes
    are.
    """
    writer = Writer(store, SOON)
    for _ in range(length):
        one: Any = edits.create() if only_new else edits.one()
        with suppress(Refused, CladeError):
            made = edits.model.apply(replace(one, values={}) if isinstance(one, Create | Update) else one)
            made((await writer.write(replace(one, hierarchy=hierarchy), ReadUsage())).record)
            await writer.move_worker.finished()
    await invariants.check(store, {"category": hierarchy})
    assert len(await invariants.nodes(store, "category")) > FEW / 2


async def imported(lines: Sequence[Any], store: Store, hierarchy: Hierarchy, folder: Path) -> None:
    """Import lines from a file."""
    file, plan, result = folder / "nodes.jsonl", ImportPlan(hierarchy), LoadResult()
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    for row in shape_of_file(hierarchy, file, None, FileOptions()).rows():
        plan.take(row)
    await load(store, plan, result)
    assert (result.rejections, result.added.total()) == ([], len(lines))
    await invariants.check(store, {"category": hierarchy})


async def comparable(store: Store) -> dict[Key, Any]:
    """The items without what differs by nature."""
    items = {key_of(item): item for item in await invariants.all_items(store)}
    levels, found = {item["level"] for item in items.values() if "tier" in item}, {}
    for key, item in items.items():
        if "tier" in item:
            found[key] = without(item, "revision", "updated_at", "changed_by")
        elif key.sk == "!":
            found[key] = without(item, "n", "aliases", "log_expires") if item["shape"] else None
        elif key == marker_key("category"):
            recipes = cast(Marker, Marker.of("category", item)).recipes
            found[key] = {name: replace(one, levels=chosen(one.levels, levels)) for name, one in recipes.items()}
        elif key.pk.startswith("id#"):
            found[key] = item if key.sk == "v0" and "deleted" not in item else None
        elif not (key.pk.startswith(("alias#", "kinds/")) or key.pk == "moves" or key.sk.startswith("!")):
            found[key] = item
    return {key: one for key, one in found.items() if one is not None}


def without(item: Item, *names: str) -> Item:
    return {name: value for name, value in item.items() if name not in names}


def chosen(levels: Mapping[str, Any], names: Container[str]) -> Mapping[str, Any]:
    return {name: one for name, one in levels.items() if name in names}


async def repaired(store: Store, hierarchy: Hierarchy) -> None:
    assert [one async for one in Repair(Check(store, {"category": hierarchy}, AT), SOON).run()] == []


@pytest.mark.both_stores
@pytest.mark.parametrize("hierarchy", SCOPES, ids=["hierarchy", "tree"])
async def test_new_nodes_are_the_same_by_edits_and_by_an_import(
    store_url: str, hierarchy: Hierarchy, tmp_path: Path
) -> None:
    for seed in range(examples(1, TREES[store_url.partition(":")[0]])):
        async with pair(store_url, seed) as (one, other):
            await edit(one, hierarchy, Edits(seed, Model()), 150, only_new=True)
            lines = await exported(one, hierarchy)
            for line in lines:  # which the import gives as well
                if line["id"] == derived_id("category", tuple(line["path"])):
                    del line["id"]
            await imported(lines, other, hierarchy, tmp_path)
            assert await comparable(other) == await comparable(one)


@pytest.mark.parametrize(
    "hierarchy", [SCOPES[0], pytest.param(SCOPES[1], marks=pytest.mark.both_stores)], ids=["hierarchy", "tree"]
)
async def test_the_end_state_of_edits_is_the_same_by_an_import(
    store_url: str, hierarchy: Hierarchy, tmp_path: Path
) -> None:
    for seed in range(examples(2, TREES[store_url.partition(":")[0]])):
        async with pair(store_url, seed) as (one, other):
            edits = Edits(seed, Model())
            await edit(one, hierarchy, edits, 150)
            one.max_commit_changes = TINY if seed % 2 else one.max_commit_changes
            await edit(one, hierarchy, edits, 30)
            await imported(await exported(one, hierarchy), other, hierarchy, tmp_path)
            one.max_commit_changes = other.max_commit_changes
            await repaired(one, hierarchy)
            assert await comparable(other) == await comparable(one)
