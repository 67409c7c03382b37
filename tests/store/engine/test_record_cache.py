"""Record cache: a hit for equal bytes, never a stale record, and the limit of bytes."""

import gc
from pathlib import Path
from random import Random

import pytest

from store.bounded_cache import CacheUsage, cache_usage
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.record_cache import CONTENT_TIMES, RECORD_BYTES, RecordCache, Row
from store.engine.usage import ReadUsage
from store.model.items import Item, Put
from store.model.ranges import KeyRange, children, subtree
from store.model.records import Record
from tests.cached_records import cached, shared_records

SPANS = [subtree("location#US", "#"), children("location#US", "#")]
SIZE = CONTENT_TIMES * 3 + RECORD_BYTES  # of an entry whose body has three bytes


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """Only the store in a file has a record cache."""
    return f"sqlite:///{tmp_path / 'clade.db'}"


def record(name: str) -> Record:
    return Record.new("location", ("US", name), "CITY", name, name, "2026-11-20T12:00:00Z", {}, above=["COUNTRY"])


def item(key: str, **changed: str) -> Item:
    return {**record(key).item(), **changed}


async def put(store: Store, *items: Item) -> None:
    await store.commit([Put(one) for one in items])


async def nodes(store: Store, span: KeyRange = SPANS[0]) -> list[Record]:
    return await store.nodes(span, ReadUsage())


async def test_an_unchanged_record_is_the_same_object_in_every_index_and_after_other_writes(store: Store) -> None:
    await put(store, item("a"), item("b"))
    first = await nodes(store)
    for number in range(3):
        await put(store, item(f"c{number}"))
        for span in SPANS:
            assert [one for one in await nodes(store, span) if one.name in "ab"] == first
            assert all(one is other for one, other in zip(await nodes(store, span), first, strict=False))


async def test_an_edit_is_visible_at_once_though_it_increments_no_revision(store_url: str) -> None:
    with shared_records() as records:
        async with open_store(store_url, keep_bytes=1_000_000) as store, open_store(store_url) as other:
            await store.create()
            await put(store, item("a"), item("b"))
            for name in ("Ä", "a", "A", "a"):
                await put(other, item("a", name=name))
                for span in SPANS:
                    assert [one.name for one in await nodes(store, span)] == [name, "b"]
                assert {one.revision for one in await nodes(store)} == {1}
        assert not records.changed()


def cached_bytes() -> int:
    gc.collect()  # of other tests
    return cache_usage().get("records", CacheUsage(0, 0)).bytes


async def test_nothing_is_cached_where_the_limit_is_0(store_url: str) -> None:
    async with open_store(store_url) as store:
        await store.create()
        await put(store, item("a"))
        before = cached_bytes()
        found = [await nodes(store) for _ in range(3)]
        assert found == [[record("a")]] * 3
        assert len({id(one) for (one,) in found}) == 3
        assert cached_bytes() == before


async def test_ranges_of_items_do_not_use_the_record_cache(store: Store) -> None:
    await put(store, item("a"))
    await nodes(store)
    (first,) = await nodes(store)
    before = cached_bytes()
    await put(store, *[item(f"b{number}") for number in range(90)])
    await store.range(SPANS[0], ReadUsage())
    assert cached_bytes() == before > 0
    assert (await nodes(store))[0] is first


async def test_a_snapshot_shares_the_cache_of_its_store(tmp_path) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}", keep_bytes=1_000_000) as store:
        await store.create()
        await put(store, item("a"))
        (first,) = await nodes(store)
        snapshot = store.snapshot()
        assert snapshot is not None
        async with snapshot:
            assert (await nodes(snapshot))[0] is first


class Decoding:
    """What is decoded, and how often."""

    def __init__(self, most: int) -> None:
        self.decoded = RecordCache(most)
        self.times = 0

    def __call__(self, row: Row) -> Record:
        self.times += 1
        return record(row[-1].decode())

    def ask(self, name: str) -> bool:
        """Whether it was kept."""
        before = self.times
        assert self.decoded.records([(name.encode(),)], self) == [record(name)]
        return self.times == before


@pytest.mark.parametrize("most", [0, 1, SIZE, 2 * SIZE, 7 * SIZE + 1, 20 * SIZE])
def test_the_limit_of_bytes_holds(most: int) -> None:
    decoding, random = Decoding(most), Random(most)  # noqa: S311
    names: list[Row] = [(b"%03d" % number,) for number in range(40)]
    for _ in range(500):
        decoding.ask(f"{random.randrange(40):03}")
        assert len(cached(decoding.decoded, names)) * SIZE <= most
    assert len(cached(decoding.decoded, names)) * SIZE >= most / 2 - SIZE


def test_the_least_recently_read_record_is_dropped_first() -> None:
    decoding = Decoding(20 * SIZE)
    assert not decoding.ask("hot")
    assert not decoding.ask("one")
    for number in range(100):
        assert not decoding.ask(f"{number:03}")
        assert decoding.ask("hot")
    assert not decoding.ask("one")


def test_a_record_larger_than_the_limit_drops_no_other() -> None:
    decoding, huge = Decoding(4 * SIZE), (bytes(2 * SIZE),)
    decoding.ask("hot")
    for _ in range(2):
        decoding.decoded.records([huge], lambda _: record("huge"))
    assert cached(decoding.decoded, [(b"hot",), huge]) == [(b"hot",)]


def test_serialized_fragments_are_cached_with_their_record() -> None:
    kept, not_kept = RecordCache(SIZE * 2), RecordCache(0)
    assert kept.records([(b"one",)], Decoding(0))[0].fragments == {}
    assert not_kept.records([(b"one",)], Decoding(0))[0].fragments is None
    assert kept.records([(b"one",)], Decoding(0)) == not_kept.records([(b"one",)], Decoding(0))
