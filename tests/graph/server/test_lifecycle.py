"""What a server logs at its start."""

import pytest

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.server.lifecycle import log_undefined
from resolvers.roots import undefined_hierarchies
from store.engine import ReadUsage, Store
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests.systems.asking import plant
from tests.waiting import until

pytestmark = pytest.mark.both_stores


async def test_a_hierarchy_that_no_class_defines_is_logged_as_long_as_it_has_nodes(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await plant(store, Location, [(("A",), "COUNTRY")])
    await plant(store, CategoryNode, [(("A",), "CATEGORY")])
    await log_undefined(store, {"category"})
    assert [one.message.partition(",")[0] for one in caplog.records] == [
        'The store has nodes of the hierarchy "location"'
    ]
    reads = ReadUsage()
    assert await undefined_hierarchies(store, (), reads) == ["category", "location"]
    assert reads.requests == 1
    await Writer(store).write(Delete(Location.definition(), ("A",), Policy.REFUSE), ReadUsage())

    async def is_undefined_no_more() -> bool:  # an index may be late
        return not await undefined_hierarchies(store, {"category"}, ReadUsage())

    await until(is_undefined_no_more)
