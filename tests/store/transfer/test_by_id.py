"""Rows by ids: what they read, on both stores, and that few of them read no whole tree."""

from collections.abc import Sequence

import pytest

from store.engine import Store
from store.transfer.by_id import RowsById
from store.transfer.formats.table import Table
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from store.transfer.shapes.by_id import ById
from store.transfer.shapes.shape import RowOptions
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.transfer.test_load import imported
from tests.stores import ReadRecorder

pytestmark = pytest.mark.both_stores


async def taken(store: Store, numbers: Sequence[int], price: str) -> tuple[LoadResult, ReadRecorder, int]:
    """The result of prices for products, its reads, and its requests of the store, 0 where it is embedded."""
    plan, result, recorder = ImportPlan(CATEGORY), LoadResult(), ReadRecorder(store)
    rows = [(number, ["", f"p{number}", price], None, None, "") for number in numbers]
    shape = ById(CATEGORY, Table("a.csv", ["path", "id", "price"], lambda: iter(rows)), RowOptions(by_id="id"))
    before = store.calls.made if store.calls else 0
    assert shape.by_id is not None
    await RowsById(plan, shape.by_id, are_unique=True).take(recorder, [*shape.rows()])
    made = (store.calls.made if store.calls else 0) - before
    await load(recorder, plan, result)
    await invariants.check(store)
    return result, recorder, made


async def test_few_ids_read_their_nodes_and_these_ancestors_and_many_their_trees(store: Store) -> None:
    shelves = [(f"S/{shelf}", "CATEGORY") for shelf in range(5)]
    products = [(f"S/{number % 5}/{number}", "PRODUCT", {"id": f"p{number}", "price": "1"}) for number in range(300)]
    await imported(store, [("S", "CATEGORY"), *shelves, *products], CATEGORY)
    for numbers, requests, keys in ((range(7, 10), 2, 3 + 3 + 1 + 3 + 3), (range(250), 6, 500)):
        for price, changed in (("2", len(numbers)), ("2", 0), ("1", len(numbers))):
            result, recorder, made = await taken(store, numbers, price)
            assert (result.rejections, result.changed.total(), result.unchanged) == (
                [],
                changed,
                len(numbers) - changed,
            )
            assert made == (requests if store.calls else 0)
            nodes = [key for key in recorder.keys if key.sk[:1] in ("#", "v")]
            assert len(nodes) == keys
            assert bool(recorder.spans) is (len(numbers) > 100)
