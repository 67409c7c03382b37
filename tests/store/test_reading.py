"""Pages of a key range, on both stores."""

import pytest

from store.engine import ReadUsage, Store
from store.model.keys import Index, KeyRange
from store.model.records import Item, Put
from store.reading import Pages

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]

ALL = KeyRange(Index.TABLE, "p", "a", "z")


async def fill(store: Store, count: int) -> list[str]:
    keys = [f"k{number}" for number in range(count)]
    await store.commit([Put({"pk": "p", "sk": key}) for key in keys])
    return keys


def keys(items: list[Item]) -> list[str]:
    return [str(item["sk"]) for item in items]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 6, 7])
async def test_pages_have_all_items_once_and_none_is_empty(store: Store, count: int, reverse: bool) -> None:
    expected = await fill(store, count) if count else []
    reads = ReadUsage()
    pages = [page async for page in Pages(store, ALL, reads, limit=3, reverse=reverse)]
    assert [key for page in pages for key in keys(page)] == (expected[::-1] if reverse else expected)
    assert all(pages)
    assert reads.requests == count // 3 + 1
