"""Write units of search items: what creations, renames and moves write beside what they write without search."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import pytest

from store.background_moves.timing import MoveTiming
from store.edits.create_update import Edit
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.items import Change, Put, canonical_item, size_of
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY
from tests.store.background_moves.journaled import create, move

pytestmark = pytest.mark.both_stores

SEARCHED = replace(CATEGORY, search=Search(SearchScope.HIERARCHY))
PLANTED = ["r", "r/a", "r/a/b", "r/a/b/c", "o", "o/p"]


def units(changes: Sequence[Change]) -> int:
    """Write units: in a transaction 2 a KB, in each index with the item 1 a KB."""
    puts = [canonical_item(change.item) for change in changes if isinstance(change, Put)]
    kilobytes = [(ceil(size_of(item) / 1024), ("rank" in item) + ("tier" in item)) for item in puts]
    return sum(size * (2 + indexes) for size, indexes in kilobytes) + 2 * (len(changes) - len(puts))


async def committed(store: Store, monkeypatch: pytest.MonkeyPatch, hierarchy: Hierarchy, *edits: Edit) -> list[Change]:
    """All changes that edits commit, background moves included."""
    commit, changes = store.commit, list[Change]()

    async def record(some: Sequence[Change]) -> None:
        await commit(some)
        changes.extend(some)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", record)
        writer = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0), {"category": hierarchy})
        for edit in edits:
            await writer.write(replace(edit, hierarchy=hierarchy), ReadUsage())
            await writer.move_worker.finished()
    return changes


def of_search(changes: Sequence[Change]) -> list[str]:
    """The sort keys of the search items, but of the mark of a large move that is running."""
    keys = {change.key.sk for change in changes if change.key.pk.startswith(("words/", "search/"))}
    return sorted(key for key in keys if not key.startswith("~"))


async def planted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [replace(create(path, node_id=path.replace("/", ".")), name=path.rpartition("/")[2]) for path in PLANTED]
    await committed(store, monkeypatch, SEARCHED, *named)


async def test_a_node_of_two_words_costs_six_units_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await planted(store, monkeypatch)
    two_words = [replace(create(path), name="Garden Chairs") for path in ("r/garden-chairs", "o/garden-chairs")]
    searched = await committed(store, monkeypatch, SEARCHED, two_words[0])
    plain = await committed(store, monkeypatch, CATEGORY, two_words[1])
    assert units(searched) - units(plain) == 6
    assert len(of_search(searched)) == 2


async def test_a_hierarchy_without_search_writes_nothing_for_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        of_search(await committed(store, monkeypatch, CATEGORY, create("r"), create("r/a"), move("r/a", "r/b"))) == []
    )


@pytest.mark.parametrize("limit", [None, 16], ids=["at once", "in the background"])
async def test_a_rename_of_an_ancestor_writes_only_its_own_items(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    await planted(store, monkeypatch)
    store.max_commit_changes = limit or store.max_commit_changes
    changes = await committed(store, monkeypatch, SEARCHED, move("r/a", "r/z"))
    assert of_search(changes) == ["a#01#r.a", "z#01#r.a"]


@pytest.mark.parametrize("limit", [None, 16], ids=["at once", "in the background"])
async def test_a_move_of_an_ancestor_writes_its_own_items_and_one_of_the_move(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    await planted(store, monkeypatch)
    store.max_commit_changes = limit or store.max_commit_changes
    changes = await committed(store, monkeypatch, SEARCHED, move("r/a", "o/p/a"))
    assert of_search(changes) == ["a#01#r.a", "category:r.a"]


async def test_a_move_of_a_leaf_writes_its_own_items_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await planted(store, monkeypatch)
    changes = await committed(store, monkeypatch, SEARCHED, move("r/a/b/c", "o/c"))
    assert of_search(changes) == ["c#01#r.a.b.c"]
