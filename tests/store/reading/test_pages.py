"""Pages of a key range, on both stores."""

import pytest

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Item, Put
from store.model.keys import Index
from store.model.ranges import KeyRange
from store.reading.pages import Pages

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
    pages = [page async for page in Pages(store, ALL, ReadUsage(), limit=3, reverse=reverse)]
    assert [key for page in pages for key in keys(page)] == (expected[::-1] if reverse else expected)
    assert all(pages)


async def test_the_last_page_is_known_as_such_without_another_read(store: Store) -> None:
    await fill(store, 4)
    pages = Pages(store, ALL, ReadUsage(), limit=3)
    assert (len(await pages.next()), pages.has_next) == (3, True)
    assert (len(await pages.next()), pages.has_next) == (1, False)


async def test_the_limit_may_change_between_pages(store: Store) -> None:
    await fill(store, 6)
    pages, sizes = Pages(store, ALL, ReadUsage(), limit=1), []
    async for page in pages:
        sizes.append(len(page))
        pages.limit = 4
    assert sizes == [1, 4, 1]
