"""Page cache: lookups of earlier requests, for stores that have a version; never stale."""

from collections.abc import AsyncIterator

import pytest

from resolvers.access.grants import Grants
from resolvers.access.redacted_node import RedactedNode
from resolvers.ancestors import read_ancestors
from resolvers.lookup import Lookup, find_nodes
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.relations import NoSelection, Relation, RelationKind
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.model.paths import format_path, parse_path
from store.model.records import Record
from tests.hierarchies import CATEGORY
from tests.store.background_moves import journaled

PATH: Lookup = ("category", ("r", "b", "c"))
ANCESTORS = Relation(RelationKind.ANCESTORS, ConnectionArguments(), NoSelection())


@pytest.fixture
async def planted(tmp_path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        await journaled.plant(store)
        yield store


class Server:
    """Makes requests that share a page cache."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._page_cache = PageCache(1_000_000)
        self.request = self.new()

    def new(self, grants: Grants | None = None) -> Request:
        self.request = Request(self._store, {"category": CATEGORY}, page_cache=self._page_cache, grants=grants)
        return self.request

    async def find(self, lookup: Lookup = PATH, grants: Grants | None = None) -> list[Record]:
        """A node after its ancestors, by a request of its own."""
        request = self.new(grants)
        (found,) = await find_nodes(request, [(lookup, NoSelection())])
        assert isinstance(found, Record), found
        (ancestors,) = await read_ancestors(request, [(found, ANCESTORS)])
        assert isinstance(ancestors, list), ancestors
        return [*ancestors, found]


async def test_a_cached_lookup_by_path_or_id_needs_no_read(planted):
    server = Server(planted)
    first = await server.find()
    by_id: Lookup = ("category", first[-1].id)
    assert await server.find(by_id) == first
    for lookup in (PATH, by_id):
        assert await server.find(lookup) == first
        assert server.request.reads.requests == 0
        assert server.request.budget.nodes_left == 10_000 - len(first)


async def test_a_write_by_any_process_invalidates_the_cache(planted, tmp_path):
    server = Server(planted)
    await server.find()
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as other:
        for writer, source, target in ((planted, "r/b", "r/x"), (other, "r/x", "r/y")):
            await journaled.write(writer, journaled.move(source, target))
            for lookup in (PATH, ("category", parse_path(f"{target}/c"))):  # an old path leads there as well
                assert format_path((await server.find(lookup))[-1].path) == f"{target}/c"


async def test_callers_with_grants_get_no_cached_lookups_of_others(planted):
    server = Server(planted)
    await server.find()
    below = Grants.parse(["read:category/r/b/c"])
    seen = await server.find(grants=below)
    assert [type(one) for one in seen] == [RedactedNode, RedactedNode, Record]
    (hidden,) = await find_nodes(server.new(Grants.parse(["read:category/r/a"])), [(PATH, NoSelection())])
    assert hidden is None
    assert [type(one) for one in await server.find()] == [Record] * 3  # nor the other way round


async def test_missing_nodes_are_not_cached(planted):
    server = Server(planted)
    for _ in range(2):
        assert await find_nodes(server.new(), [(("category", ("r", "none")), NoSelection())]) == [None]
        assert server.request.reads.requests > 0
