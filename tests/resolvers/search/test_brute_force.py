"""Searches of real names in many scripts find what brute force over all nodes finds, in its order.

The long form: pytest --examples 20000 tests/resolvers/search/test_brute_force.py
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from commands.importing.file_format import columns
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from resolvers.search.search import SearchArguments, search
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.records import Record
from store.search.folding import SearchText
from store.transfer.formats.lines import read_taxonomy, taxonomy_level
from store.transfer.formats.matching import ColumnOptions
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Rejection
from tests.brute_search import Brute, folded, is_long
from tests.level_columns import read_csv
from tests.real_files import STARBUCKS, TAXONOMY, real_file
from tests.resolvers.search.texts import Asked, Searches
from tests.selection import examples

SEARCHES = examples(20, 60)
ALL_COUNTRIES = 1_000  # from so many searches on
COUNTRIES = "TW JP KR TH RU SA TR PL CZ GR VN".split()  # of the shops in the short form
LEVELS = ["country=Country", "state=State/Province", "city=City", "postal_code=Postcode", "store=Store Number"]
LOCATION, CATEGORY = Location.definition(), CategoryNode.definition()


def shops() -> list[ImportPlan]:
    wanted = ImportPlan(LOCATION)
    form = columns(LOCATION, ColumnOptions(LEVELS, ["store=Store Name"], [], ["store.street=Street Address"], ["city"]))
    for _, row in read_csv(form, real_file(STARBUCKS)):
        if SEARCHES >= ALL_COUNTRIES or (not isinstance(row, Rejection) and row.path[0] in COUNTRIES):
            wanted.take(row)
    return [wanted]


def taxonomy() -> list[ImportPlan]:
    wanted = ImportPlan(CATEGORY)
    for _, row in read_taxonomy(taxonomy_level(CATEGORY), real_file(TAXONOMY)):
        wanted.take(row)
    return [wanted]


SOURCES = {"taxonomy": taxonomy, "shops": shops}


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, source: str) -> str:
    """The address of a SQLite file that holds a source."""
    if source == "demo":
        return str(request.getfixturevalue("demo_store"))
    made = f"sqlite:///{tmp_path_factory.mktemp('searched') / source}.db"
    asyncio.run(_import(made, SOURCES[source]()))
    return made


async def _import(url: str, plans: list[ImportPlan]) -> None:
    async with open_store(url) as store:
        await store.create()
        for plan in plans:
            await load(store, plan, LoadResult())


async def all_nodes(store: Store, hierarchy: str) -> AsyncIterator[Record]:
    async for page in store.scan(ReadUsage()):
        for item in page:
            if "tier" in item and str(item["pk"]).startswith(f"{hierarchy}#"):
                yield Record.of(item)


@pytest.mark.parametrize(
    ("source", "hierarchy"),
    [
        pytest.param("demo", LOCATION, marks=pytest.mark.thorough),
        pytest.param("taxonomy", CATEGORY, marks=pytest.mark.thorough),
        ("shops", LOCATION),
    ],
)
async def test_searches_find_what_brute_force_finds(url, hierarchy):
    async with open_store(url) as store:
        brute = Brute(hierarchy, [record async for record in all_nodes(store, hierarchy.name)])
        searches, cache = Searches(1, [node.record for node in brute.nodes]), PageCache(10_000_000)
        wrong, proven = [], 0
        for _ in range(SEARCHES):
            asked = searches.one()
            found, complete = await ask(store, hierarchy, asked, cache)
            expected = [record.id for record in brute.find(asked.text, **asked.scope)]
            proven += complete
            if found != expected and (complete or is_long(folded(asked.text))):
                wrong.append((asked, found, expected, complete))
        assert wrong == []
        assert proven > 0.9 * (SEARCHES)


async def ask(store: Store, hierarchy, asked: Asked, cache: PageCache) -> tuple[list[str], bool]:
    request = Request(store, {hierarchy.name: hierarchy}, page_cache=cache)
    arguments = SearchArguments(
        SearchText.of(asked.text), asked.languages, under=asked.under, levels=asked.levels, first=asked.first
    )
    page = await search(request, hierarchy, arguments)
    return [record.id for record in page.records], page.complete
