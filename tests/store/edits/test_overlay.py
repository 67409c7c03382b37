"""Write overlay: pending changes over read items, and several changes of one item."""

from typing import Any

import pytest

from store.edits.reader import NotCombinable, WriteOverlay
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.model.items import ABSENT, Change, Delete, Item, Put, condition_holds
from store.model.keys import Key
from tests.recorded_reads import ReadRecorder

THERE, NOT_THERE = Key("there", "x"), Key("not there", "x")


def item(key: Key, n: int, **more: Any) -> Item:
    return {"pk": key.pk, "sk": key.sk, "n": n, **more}


def put(key: Key, n: int, when: Any = None) -> Put:
    return Put(item(key, n), when or {})


def possible(key: Key, found: Item | None, n: int) -> list[Change]:
    """All changes of an item that can be made where this lies."""
    conditions = [None, ABSENT, {"n": 1}, {"n": 2}]
    some: list[Change] = [put(key, n, when) for when in conditions] + [Delete(key, when or {}) for when in conditions]
    return [change for change in some if condition_holds(change.when, found)]


def after(change: Change) -> Item | None:
    return change.item if isinstance(change, Put) else None


async def found(store: Store, key: Key) -> Item | None:
    return (await store.get([key], ReadUsage(), strong=True))[0]


@pytest.mark.parametrize("key", [THERE, NOT_THERE])
async def test_changes_of_one_item_have_the_same_result_in_one_commit_as_in_several(store: Store, key: Key) -> None:
    start = item(key, 1) if key is THERE else None
    for first in possible(key, start, 2):
        for second in possible(key, after(first), 3):
            await store.commit([Delete(key) if start is None else Put(start)])
            overlay = WriteOverlay(store)
            await overlay.add([first])
            await overlay.add([second])
            assert overlay.item(key) == after(second)
            await store.commit(overlay.changes)
            assert await found(store, key) == after(second), (first, second)


@pytest.mark.parametrize("key", [THERE, NOT_THERE])
async def test_the_condition_of_the_first_change_is_that_of_the_commit(store: Store, key: Key) -> None:
    other = None if key is THERE else item(key, 7)  # of what the first change has seen
    first = put(key, 2, {"n": 1} if key is THERE else ABSENT)
    for second in (put(key, 3), Delete(key)):
        await store.commit([Delete(key) if other is None else Put(other)])
        overlay = WriteOverlay(store)
        await overlay.add([first])
        await overlay.add([second])
        with pytest.raises(Conflict):
            await store.commit(overlay.changes)
        assert await found(store, key) == other


async def test_the_condition_of_a_later_change_is_checked_against_pending_changes(store: Store) -> None:
    overlay = WriteOverlay(store)
    await overlay.add([put(THERE, 1)])
    with pytest.raises(Conflict):
        await overlay.add([put(THERE, 2, ABSENT)])


async def test_each_key_is_read_once(store: Store) -> None:
    await store.commit([put(THERE, 1)])
    witness: Any = ReadRecorder(store)
    overlay, changed = WriteOverlay(witness), Key("changed", "x")
    await overlay.add([put(changed, 5)])
    await overlay.read([THERE, NOT_THERE, changed, THERE], ReadUsage())
    await overlay.read([NOT_THERE, THERE], ReadUsage())
    assert witness.keys == [THERE, NOT_THERE]
    assert [overlay.item(key) for key in (THERE, NOT_THERE, changed)] == [item(THERE, 1), None, item(changed, 5)]


async def test_committed_changes_stay_and_discarded_ones_do_not(store: Store) -> None:
    overlay = WriteOverlay(store)
    await overlay.read([THERE], ReadUsage())
    await overlay.add([put(THERE, 1)])
    overlay.mark_committed()
    await overlay.add([put(THERE, 2, {"n": 1})])
    overlay.discard()
    assert overlay.item(THERE) == item(THERE, 1)
    assert not overlay.is_pending
    overlay.reset()
    assert THERE not in overlay


async def test_pending_items_look_like_stored_ones(store: Store) -> None:
    wanted = item(THERE, 1, price=3.0, gone=None)
    overlay = WriteOverlay(store)
    await overlay.add([Put(wanted)])
    pending = overlay.item(THERE)
    await store.commit(overlay.changes)
    assert pending == await found(store, THERE)
    assert type(pending["price"]) is int


async def test_pending_changes_fit_into_one_commit(store: Store) -> None:
    store.max_commit_changes = 3
    overlay = WriteOverlay(store)
    await overlay.add([put(Key("a", "x"), 1), put(Key("b", "x"), 1)])
    with pytest.raises(NotCombinable):
        await overlay.add([put(Key("c", "x"), 1), put(Key("d", "x"), 1)])
    await overlay.add([put(Key("b", "x"), 2), put(Key("c", "x"), 1)])
    assert len(overlay.changes) == 3
    overlay.discard()
    large = [Put(item(Key(f"{n}", "x"), n, text="x" * 390_000)) for n in range(3)]
    for _ in range(2):
        await overlay.add(large)
    assert len(overlay.changes) == 3
    for one in large[:2]:
        await overlay.add([one])
    with pytest.raises(NotCombinable):
        await overlay.add(large[:1])
