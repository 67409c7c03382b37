"""Cache: lookups of earlier requests are used while their tokens hold, and only a settled version has a token."""

from collections.abc import AsyncIterator

import pytest

from resolvers.access.grants import Grants
from resolvers.ancestors import read_ancestors
from resolvers.lookup import Lookup, find_nodes
from resolvers.planning.relations import ConnectionArguments, NoSelection, Relation, RelationKind
from resolvers.session.cache import TOKEN_SECONDS, PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Key
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
    assert [format_path(one.path) for one in seen] == ["r/b/c"]
    (hidden,) = await find_nodes(server.new(Grants.parse(["read:category/r/a"])), [(PATH, NoSelection())])
    assert hidden is None
    assert [type(one) for one in await server.find()] == [Record] * 3  # nor the other way round


async def test_missing_nodes_are_not_cached(planted):
    server = Server(planted)
    for _ in range(2):
        assert await find_nodes(server.new(), [(("category", ("r", "none")), NoSelection())]) == [None]
        assert server.request.reads.requests > 0


TREE = "location#US"
MOVE = ActiveMoveRef("m", Key(TREE, "#A#"), None)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def version(number: int, *moves: ActiveMoveRef) -> TreeVersion:
    return TreeVersion(TREE, number, moves=moves)


def test_a_version_proves_what_was_read_a_settle_time_after_it_was_first_seen(clock):
    versions = TreeVersionCache(2.0, clock=clock)
    assert versions.token(version(7), clock.now) is None
    versions.see(version(7), clock.now)
    assert versions.token(version(7), 101.9) is None
    proof = versions.token(version(7), 102.0)
    assert proof is not None
    versions.see(version(7), 103.0)
    assert versions.token(version(7), 104.0) is proof is versions.last_token(TREE)
    assert versions.token(version(6), 104.0) is None
    clock.now = 105.0
    versions.see(version(8), 105.0)
    assert versions.token(version(7), 110.0) is None
    assert versions.token(version(8), 106.9) is None
    assert versions.token(version(8), 107.0) not in (None, proof)


def test_a_proof_is_renewed_after_a_minute(clock):
    versions = TreeVersionCache(2.0, clock=clock)
    versions.see(version(7), clock.now)
    proof = versions.token(version(7), 102.0)
    assert versions.token(version(7), 100.0 + TOKEN_SECONDS - 0.1) is proof
    assert versions.token(version(7), 100.0 + TOKEN_SECONDS) not in (None, proof)


def test_nothing_is_proven_while_a_move_runs(clock):
    versions = TreeVersionCache(0.0, clock=clock)
    versions.see(version(7, MOVE), clock.now)
    assert versions.token(version(7, MOVE), 200.0) is None


def test_of_two_reads_side_by_side_the_older_version_is_not_taken_back(clock):
    versions = TreeVersionCache(0.0, clock=clock)
    clock.now = 103.0
    versions.see(version(8), 101.0)
    versions.see(version(7), 102.0)  # began before the other ended, and may have been answered before the write
    assert versions.latest(TREE) == version(8)
    versions.see(version(7), 104.0)  # the table was restored
    assert versions.latest(TREE) == version(7)


def test_a_version_is_fresh_for_the_allowed_time_after_its_read_began(clock):
    versions = TreeVersionCache(2.0, 1.0, clock=clock)
    assert versions.fresh(TREE) is None
    clock.now = 100.5
    versions.see(version(7), 100.0)
    assert versions.fresh(TREE) == version(7)
    clock.now = 101.1
    assert versions.fresh(TREE) is None
    versions.see(version(7), 101.0)
    assert versions.fresh(TREE) == version(7)
    assert TreeVersionCache(2.0, clock=clock).fresh(TREE) is None
