"""Record cache: never a stale record, one object for equal bytes in ranges that are read again, the limit of bytes."""

import pytest

from store.connect import open_store
from store.engine import CONTENT_TIMES, RECORD_BYTES, ReadUsage, RecordCache, Store
from store.model.keys import KeyRange, children, subtree
from store.model.records import Item, Put, Record

pytestmark = pytest.mark.both_stores

SPANS = [subtree("location#US", "#"), children("location#US", "#")]
SIZE = CONTENT_TIMES * 3 + RECORD_BYTES  # of an entry whose content has three bytes


def record(name: str) -> Record:
    return Record.new("location", ("US", name), "CITY", name, name, "2026-11-20T12:00:00Z", {}, above=["COUNTRY"])


async def put(store: Store, *items: Item) -> None:
    await store.commit([Put(one) for one in items])


async def nodes(store: Store, span: KeyRange = SPANS[0]) -> list[Record]:
    return await store.nodes(span, ReadUsage())


async def test_an_unchanged_record_is_the_same_object_in_every_index_and_after_other_writes(store: Store) -> None:
    await put(store, record("a").item(), record("b").item())
    await nodes(store)  # from which a parser learns
    first = await nodes(store)
    for number in range(3):
        await put(store, record(f"c{number}").item())
        await nodes(store, SPANS[1])  # of which nothing is cached the first time
        for span in SPANS:
            assert all(one is other for one, other in zip(await nodes(store, span), first, strict=False))
    if snapshot := store.snapshot():
        async with snapshot:
            assert (await nodes(snapshot))[0] is first[0]


async def test_an_edit_is_visible_at_once_though_it_increments_no_revision(store_url: str) -> None:
    async with open_store(store_url, keep_bytes=1_000_000) as store, open_store(store_url) as other:
        await store.create()
        await put(store, record("a").item(), record("b").item())
        for name in ("Ä", "a", "A", "a"):
            await put(other, {**record("a").item(), "name": name})
            for span in SPANS:
                assert [one.name for one in await nodes(store, span)] == [name, "b"]
            assert {one.revision for one in await nodes(store)} == {1}
        one, again = await nodes(other), await nodes(other)
        assert one == again
        assert one[0] is not again[0]


@pytest.mark.parametrize(("most", "kept"), [(SIZE - 1, []), (SIZE, ["c"]), (3 * SIZE - 1, ["b", "c"])])
def test_the_records_read_last_are_kept_up_to_the_limit_of_bytes(most: int, kept: list[str]) -> None:
    cache, decoded = RecordCache(most), list[str]()

    def decode(content: bytes) -> Record:
        decoded.append(content.decode()[-1])
        return record(decoded[-1])

    for name in "abc":
        (found,) = cache.records([f"{name:>3}".encode()], decode)
        assert (found.name, found.fragments) == (name, {})
    decoded.clear()
    for name in reversed("abc"):  # the newest first, so that what is decoded again drops nothing that is asked for
        cache.records([f"{name:>3}".encode()], decode)
    assert [name for name in "abc" if name not in decoded] == kept
