"""Check and repair of search items, on both stores, with damage of every kind and after any moves."""

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from store.checking.check import Check
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.kinds.lineage import id_hash
from store.kinds.marker import marker_key
from store.metadata.moves import MoveTiming
from store.model.attributes import Attribute, Kind, Value
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import Change, Delete, Item, Put, key_of
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.writing import journaled

pytestmark = pytest.mark.usefixtures("probes")

AT = "2026-01-01T00:00:00.000Z"
SOON = MoveTiming(0.0, 0.0, 5.0, 5.0)
NOTED = replace(CATEGORY.levels["CATEGORY"], attributes={"note": Attribute("note", Kind.TEXT, "A note.", search=True)})
BY_HIERARCHY = replace(CATEGORY, search=Search(SearchScope.HIERARCHY))
BY_TREE = replace(CATEGORY, search=Search(SearchScope.TREE))
OTHERWISE = replace(BY_HIERARCHY, levels={**CATEGORY.levels, "CATEGORY": NOTED})
NAMES = {"r": "Rot", "r/a": "Große Äpfel", "r/a/b": "東京 Tower", "r/a/b/c": "Cox", "o": "Obst", "o/p": "Pear"}


async def fill(store: Store, hierarchy: Hierarchy = BY_HIERARCHY) -> None:
    wanted = ImportPlan(hierarchy)
    for number, (path, name) in enumerate(NAMES.items()):
        wanted.take(
            Row(number, parse_path(path), [Part("CATEGORY", name, path.replace("/", "."), {"note": "Nota bene"})])
        )
    await load(store, wanted, LoadResult())


async def findings(store: Store, hierarchy: Hierarchy = BY_HIERARCHY) -> list[str]:
    return [str(one) async for one in Check(store, {"category": hierarchy}, AT).findings()]


async def repaired(store: Store, hierarchy: Hierarchy = BY_HIERARCHY) -> list[tuple[str, bool]]:
    check = Check(store, {"category": hierarchy}, AT)
    return [(str(one.finding), one.is_fixed) async for one in Repair(check, SOON).run()]


async def write(store: Store, hierarchy: Hierarchy, *edits: Any) -> None:
    writer = Writer(store, SOON)
    for edit in edits:
        await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
        await writer.move_worker.finished()


async def word(store: Store, text: str) -> Item:
    """The only word item of a text."""
    items = await invariants.all_items(store)
    (found,) = [one for one in items if one["pk"].startswith("words/") and one["sk"].startswith(f"{text}#")]
    return found


def changed(**values: Value) -> Callable[[Item], Change]:
    return lambda item: Put({**item, **values})


def moved(node: str, **values: Value) -> Callable[[Item], Change]:
    return lambda _: Put({"pk": "kinds/category", "sk": f"category:{node}", "deepest": 1, **values})


WRONG = "category r/a/b/c: 1 search item not as the node is"
LOST = "category r/a/b/c: 1 search item of words or a place that it does not need"
MOVED = "category r/a: what search has of its move is wrong"
ELSEWHERE = id_hash("category:o")
DAMAGE: dict[str, tuple[Callable[[Item], Change], str]] = {  # of the item of the word `cox`
    "missing": (lambda item: Delete(key_of(item)), "category r/a/b/c: 1 search item missing"),
    "another level": (changed(level="PRODUCT"), WRONG),
    "another weight": (changed(rank="00499:00cox#r.a.b.c"), WRONG),
    "other names": (changed(names={"de": "cox"}), WRONG),
    "other words": (changed(others={"note": "x"}), WRONG),
    "another partition": (changed(parent="words/category#zzz"), WRONG),
    "a damaged rank": (changed(rank="x"), WRONG),
    "another lineage": (changed(line=ELSEWHERE + id_hash("category:r.a.b.c")), WRONG),
    "a word that it lost": (changed(sk="coy#01#r.a.b.c"), LOST),
    "a weight that it lost": (changed(sk="cox#0049987:#r.a.b.c"), LOST),
    "no such node": (
        changed(sk="cox#01#nobody"), "category: 1 search item of the node category:nobody, which does not exist",
    ),
    "a moved node that does not exist": (
        moved("nobody", line=id_hash("category:nobody")),
        "category: search has a move of category:nobody, which does not exist",
    ),
    "a damaged moved node": (moved("r.a", line=7), MOVED),
    "a moved node that is elsewhere": (moved("r.a", line=ELSEWHERE + id_hash("category:r.a")), MOVED),
    "no marker": (
        lambda _: Delete(marker_key("category")),
        "category: search items are missing: all; what needs them is an error until clade repair has written them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
async def test_damage_is_found_and_repaired(store: Store, what: str) -> None:
    damage, finding = DAMAGE[what]
    await fill(store)
    assert await findings(store) == []
    await store.commit([damage(await word(store, "cox"))])
    assert await findings(store) == [finding]
    assert await repaired(store) == [(finding, True)]
    assert await findings(store) == []
    assert await repaired(store) == []
    await invariants.check(store, {"category": BY_HIERARCHY})


@pytest.mark.parametrize(
    ("before", "later"), [(CATEGORY, BY_HIERARCHY), (BY_HIERARCHY, BY_TREE), (BY_TREE, OTHERWISE), (BY_TREE, CATEGORY)],
    ids=["a class with search", "another scope", "another attribute", "a class without search"],
)  # fmt: skip
async def test_another_class_is_found_and_brought_up(store: Store, before: Hierarchy, later: Hierarchy) -> None:
    await fill(store, before)
    await write(store, before, journaled.move("r/a", "o/a"))
    assert await findings(store, before) == []
    found = await findings(store, later)
    assert any("clade repair has written them" in one for one in found) == (later is not CATEGORY)
    assert found
    assert all(is_fixed for _, is_fixed in await repaired(store, later))
    assert await findings(store, later) == []
    await invariants.check(store, {"category": later} if later is not CATEGORY else None)


@pytest.mark.parametrize("hierarchy", [BY_HIERARCHY, BY_TREE], ids=["hierarchy", "tree"])
async def test_outdated_items_are_no_findings_and_are_written_anew(store: Store, hierarchy: Hierarchy) -> None:
    await fill(store, hierarchy)
    await write(
        store, hierarchy, journaled.move("r/a/b", "r/b"), journaled.move("r", "o/p/r"), journaled.move("o", "z")
    )
    assert await findings(store, hierarchy) == []
    former, lines = await word(store, "cox"), [("r", "r.a", "r.a.b", "r.a.b.c"), ("o", "o.p", "r", "r.a.b", "r.a.b.c")]
    before, after = ["".join(id_hash(f"category:{one}") for one in line) for line in lines]
    assert former["line"] == (after if hierarchy is BY_TREE else before)
    assert former["at"] == ("o#p#r#b#c#" if hierarchy is BY_TREE else "r#a#b#c#")
    assert await repaired(store, hierarchy) == []
    present = await word(store, "cox")
    assert present["line"] == after
    assert present["at"] == "z#p#r#b#c#"
    assert await findings(store, hierarchy) == []
    await invariants.check(store, {"category": hierarchy})


@pytest.mark.parametrize(("path", "hierarchy"), [("r", BY_TREE), ("r/a", BY_HIERARCHY)], ids=["a root", "inside"])
async def test_the_items_of_a_node_that_cannot_be_read_stay_until_it_can(
    store: Store, path: str, hierarchy: Hierarchy
) -> None:
    await fill(store, hierarchy)
    key = node_key("category", parse_path(path))
    (node,) = await store.get([key], ReadUsage(), strong=True)
    assert node is not None
    before = [one for one in await invariants.all_items(store) if one["pk"].startswith("words/")]
    await store.commit([Put({name: value for name, value in node.items() if name != "name"})])
    (found,) = await findings(store, hierarchy)
    for _ in range(2):
        assert await repaired(store, hierarchy) == [(found, False)]
    assert [one for one in await invariants.all_items(store) if one["pk"].startswith("words/")] == before
    await store.commit([Put(node)])
    assert await findings(store, hierarchy) == []


async def test_a_repair_that_stops_anywhere_is_continued_and_says_only_at_its_end_that_it_is_complete(
    store: Store,
) -> None:
    await fill(store, CATEGORY)
    store.max_changes = 4  # so that a page takes several transactions
    stops = 0
    for commits in itertools.count(1):
        with contextlib.suppress(journaled.Dies):
            await repaired(cast(Store, journaled.mortal(store, 4 + commits % 3)))
            break
        stops += 1
        assert await findings(store), "it goes on later"
    assert stops > 2
    assert await findings(store) == []
    await invariants.check(store, {"category": BY_HIERARCHY})
