"""What a server logs at its start."""

import pytest

from graph.server.lifecycle import log_undefined
from resolvers.roots import undefined_hierarchies
from store.engine import ReadUsage, Store
from store.writing.create_update import Create
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY, LOCATION
from tests.waiting import until

pytestmark = pytest.mark.both_stores


async def test_a_hierarchy_that_no_class_defines_is_logged_as_long_as_it_has_nodes(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Writer(store)
    for hierarchy, level in ((LOCATION, "COUNTRY"), (CATEGORY, "CATEGORY")):
        await writer.write(Create(hierarchy, ("A",), level, "A", {}), ReadUsage())
    await log_undefined(store, {"category": CATEGORY})
    assert [one.message.partition(",")[0] for one in caplog.records] == [
        'The store has nodes of the hierarchy "location"'
    ]
    reads = ReadUsage()
    assert await undefined_hierarchies(store, (), reads) == ["category", "location"]
    assert reads.requests == 1
    await writer.write(Delete(LOCATION, ("A",), Policy.REFUSE), ReadUsage())

    async def is_undefined_no_more() -> bool:  # an index may be late
        return not await undefined_hierarchies(store, {"category"}, ReadUsage())

    await until(is_undefined_no_more)
