"""What earlier requests have found of a store that knows its version is found again without a read, and never stale."""

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
    """Makes requests that share what they keep."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept = PageCache(1_000_000)
        self.request = self.new()

    def new(self, grants: Grants | None = None) -> Request:
        self.request = Request(self._store, {"category": CATEGORY}, page_cache=self._kept, grants=grants)
        return self.request

    async def find(self, lookup: Lookup = PATH, grants: Grants | None = None) -> list[Record]:
        """A node after its ancestors, by a request of its own."""
        request = self.new(grants)
        (found,) = await find_nodes(request, [(lookup, NoSelection())])
        assert isinstance(found, Record), found
        (ancestors,) = await read_ancestors(request, [(found, ANCESTORS)])
        assert isinstance(ancestors, list), ancestors
        return [*ancestors, found]


async def test_what_was_looked_up_by_path_or_id_is_found_again_without_a_read(planted):
    server = Server(planted)
    first = await server.find()
    by_id: Lookup = ("category", first[-1].id)
    assert await server.find(by_id) == first
    for lookup in (PATH, by_id):
        assert await server.find(lookup) == first
        assert server.request.reads.requests == 0
        assert server.request.budget.nodes_left == 10_000 - len(first)


async def test_a_write_by_anybody_is_in_the_next_answer(planted, tmp_path):
    server = Server(planted)
    await server.find()
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as other:
        for writer, source, target in ((planted, "r/b", "r/x"), (other, "r/x", "r/y")):
            await journaled.write(writer, journaled.move(source, target))
            for lookup in (PATH, ("category", parse_path(f"{target}/c"))):  # an old path leads there as well
                assert format_path((await server.find(lookup))[-1].path) == f"{target}/c"


async def test_nobody_is_shown_what_was_kept_for_others_who_see_more(planted):
    server = Server(planted)
    await server.find()
    below = Grants.parse(["read:category/r/b/c"])
    seen = await server.find(grants=below)
    assert [type(one) for one in seen] == [RedactedNode, RedactedNode, Record]
    (hidden,) = await find_nodes(server.new(Grants.parse(["read:category/r/a"])), [(PATH, NoSelection())])
    assert hidden is None
    assert [type(one) for one in await server.find()] == [Record] * 3  # nor the other way round


async def test_what_is_nowhere_is_looked_for_each_time(planted):
    server = Server(planted)
    for _ in range(2):
        assert await find_nodes(server.new(), [(("category", ("r", "none")), NoSelection())]) == [None]
        assert server.request.reads.requests > 0
