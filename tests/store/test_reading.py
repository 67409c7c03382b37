"""Pages of a key range, on both stores."""

import pytest

from store.engine import ReadUsage, Store
from store.model.keys import Index, KeyRange
from store.model.records import Put
from store.reading import Pages

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]

ALL = KeyRange(Index.TABLE, "p", "a", "z")


@pytest.mark.parametrize("reverse", [False, True])
async def test_pages_have_all_items_once_and_none_is_empty(store: Store, reverse: bool) -> None:
    for count in range(8):
        reads = ReadUsage()
        pages = [page async for page in Pages(store, ALL, reads, limit=3, reverse=reverse)]
        expected = [f"k{number}" for number in range(count)]
        assert [item["sk"] for page in pages for item in page] == (expected[::-1] if reverse else expected)
        assert all(pages)
        assert reads.requests == count // 3 + 1
        await store.commit([Put({"pk": "p", "sk": f"k{count}"})])
