"""Reads of a search, counted: rounds, requests and units, also after ancestors were renamed and moved."""

from dataclasses import replace

import pytest

from graph.hierarchies.locations import Location
from resolvers.access.grants import Grants
from resolvers.search import finder
from resolvers.search import search as search_module
from resolvers.search.finder import Selected
from resolvers.search.search import SearchArguments, search
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.background_moves.timing import MoveTiming
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.keys import Path
from store.search.folding import SearchText
from store.writer.writer import Writer
from tests.brute_search import folded
from tests.resolvers.search.test_brute_force import LOCATION, all_nodes
from tests.resolvers.search.texts import Searches
from tests.selection import examples
from tests.systems.asking import plant

pytestmark = pytest.mark.both_stores

SEARCHES = examples(40, 150)
PLACES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Lincoln", "CITY"), ("US/MO", "STATE"),
    ("US/MO/Omak", "CITY"), ("CA", "COUNTRY"),
]  # fmt: skip


async def cost(
    store: Store,
    cache: PageCache,
    text: str,
    under: Path | None = None,
    first: int = 10,
    *,
    hierarchy: Hierarchy = LOCATION,
    grants: Grants | None = None,
) -> tuple[int, int, float]:
    """The rounds, requests and units of a search for what every node has."""
    request = Request(store, {"location": hierarchy}, page_cache=cache, grants=grants)
    asked = SearchArguments(SearchText.of(text), under=under, first=first)
    await search(request, hierarchy, asked, Selected(counts=False))
    return request.scheduler.rounds, request.reads.requests, request.reads.units


async def test_searches_of_real_names_read_little(demo_store):
    async with open_store(demo_store) as store:
        records = [record async for record in all_nodes(store, "location")]
        searches, cache, units = Searches(3, records), PageCache(0), []
        for _ in range(SEARCHES):
            asked = searches.one()
            words = len(set(folded(asked.text)))
            rounds, requests, spent = await cost(store, cache, asked.text, asked.under)
            below = asked.under is not None
            assert rounds <= 3, asked
            # Without a cache the state of moves is read each time, and some texts take more items.
            assert requests <= 3 + (words - 1) + 1 + 1 + below, asked
            assert spent <= 64, asked
            units.append(spent)
        assert sorted(units)[SEARCHES // 2] < 8


@pytest.fixture
async def planted(store: Store) -> Store:
    await plant(store, Location, [(tuple(path.split("/")), level) for path, level in PLACES])
    return store


async def test_a_search_takes_three_requests_in_two_rounds(planted):
    cache = PageCache(1_000_000, TreeVersionCache(0.0))
    first, again = [await cost(planted, cache, "oma") for _ in range(2)]
    assert first[:2] == (2, 4)  # with what moves have changed
    assert again[:2] == (2, 3)
    assert again[2] <= 5
    assert (await cost(planted, cache, "oma lin"))[:2] == (1, 3)  # no hits to read


async def test_every_search_takes_three_rounds_at_most(planted, monkeypatch):
    """Also where more items are read, in one tree, below a node, and for a caller who sees a part."""
    monkeypatch.setattr(search_module, "_limits", lambda texts, first, **_: (1, 1))
    cache, text, below = PageCache(0), "o", ("US", "NE")
    assert (await cost(planted, cache, "om", first=1))[:2] == (3, 4)
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", 0)
    assert (await cost(planted, cache, text, first=1))[:2] == (3, 4)
    assert (await cost(planted, cache, text, below, 1))[:2] == (3, 5)
    grants = Grants.of([("location", below)], [])
    for under in (None, below, ("US",)):
        assert (await cost(planted, cache, text, under, 1, grants=grants))[:2] <= (3, 4)
    by_tree = replace(LOCATION, search=Search(SearchScope.TREE, "population"))
    check = Check(planted, {"location": by_tree}, "2026-01-01T00:00:00.000Z")
    assert all([one.is_fixed async for one in Repair(check).run()])
    for who in (None, grants):
        assert (await cost(planted, cache, text, below, 1, hierarchy=by_tree, grants=who))[:2] <= (3, 5)


@pytest.mark.parametrize("target", [("US", "NB"), ("CA", "NE")])
async def test_nodes_below_a_moved_one_are_looked_up_once(planted, target):
    writer = Writer(planted, MoveTiming(0.0, 0.0))
    await writer.write(Move(LOCATION, ("US", "NE"), target), ReadUsage())
    await writer.move_worker.finished()
    cache = PageCache(1_000_000, TreeVersionCache(0.0))
    found = [(await cost(planted, cache, "omaha"))[:2] for _ in range(3)]
    assert found[0] <= (4, 6), found
    assert found[1] == found[2] <= (2, 3), found


async def test_unusual_arguments_are_rejected_before_anything_is_read(planted):
    wrong = [
        ("x" * 201, 10, None), ("a b c d e f g h i", 10, None), ("oma", -1, None), ("oma", 101, None),
        ("oma", 10, ("de",) * 1_000), ("oma", 10, ("not a tag",)),
    ]  # fmt: skip
    for text, first, languages in wrong:
        with pytest.raises(BadInput):
            SearchArguments(SearchText.of(text), languages, first=first)
