"""Texts and lists that take long to compare: the event loop serves others in between, and nothing is done twice.

Measured in processor time of the loop's thread, which others do not lengthen; the bound is far above what is needed.
"""

import asyncio
import time
import unicodedata

import pytest

from graph.hierarchies.locations import Location
from resolvers.sorting import node_values
from store.bounded_cache import cache_usage
from store.search.folding import MAX_READ_CHARACTERS, fold
from tests.systems.asking import Client, plant

LONGEST_SECONDS = 0.25
MARKS = "\u0301\u0316" * 8_000  # of two classes in turns, which normalizing has to sort


class Watch:
    """The longest time in which the event loop served nothing else, in seconds of its thread's processor time."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> "Watch":
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest, before = max(self.longest, now - before), now


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'clade.db'}"


@pytest.fixture
def store_url(sqlite_url) -> str:
    """SQLite alone: what is computed does not depend on the store."""
    return sqlite_url


async def test_many_conditions_on_long_texts_fold_each_text_once_and_yield(store):
    rows = [(("US",), "COUNTRY"), *[(("US", f"s{n}"), "STATE", f"{n} {'é' * 16_000}") for n in range(40)]]
    await plant(store, Location, rows)
    conditions = ", ".join(f'{{name: {{contains: "ä{n}"}}}}' for n in range(45))
    query = f'{{ location(path: "US") {{ children(where: {{or: [{conditions}]}}) {{ totalCount }} }} }}'
    client = Client(store, Location, planned=False)
    before = cache_usage()["folded_texts"].hits
    async with Watch() as watch:
        reply = await client.ask(query)
    assert reply.data["location"]["children"] == {"totalCount": 0}
    assert cache_usage()["folded_texts"].hits - before >= 44 * 40
    assert watch.longest < LONGEST_SECONDS


@pytest.mark.parametrize("folded", [node_values.folded, fold])
def test_marks_without_end_are_never_normalized(folded, monkeypatch):
    normalized = []
    normalize = unicodedata.normalize
    monkeypatch.setattr(unicodedata, "normalize", lambda form, text: normalized.append(text) or normalize(form, text))
    assert folded(f"Olá{MARKS}!") == folded("ola!" if folded is node_values.folded else "ola")
    assert normalized
    assert [len(text) for text in normalized if MARKS[:100] in text] == [], "it takes the square of their number"


def test_only_the_beginning_of_a_long_text_is_folded_for_search():
    assert fold("é" * 10_000) == "e" * MAX_READ_CHARACTERS
    assert fold("a " * 10_000).count("a") == MAX_READ_CHARACTERS // 2


async def test_a_search_that_reads_many_items_yields(store):
    rows = [(("US",), "COUNTRY"), (("US", "s"), "STATE")]
    rows += [(("US", "s", f"c{n}"), "CITY", f"omaha {n} oma", {"population": n}) for n in range(4_000)]
    await plant(store, Location, rows)
    client = Client(store, Location, planned=False)
    for query in ('text: "oma"', 'text: "oma", under: "US"', 'text: "oma om", first: 100', 'text: "o", level: [CITY]'):
        async with Watch() as watch:
            reply = await client.ask(f"{{ searchLocations({query}) {{ complete nodes {{ path }} }} }}")
        assert reply.data["searchLocations"]["nodes"]
        assert watch.longest < LONGEST_SECONDS, query
