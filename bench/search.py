"""Benchmark of search: read units, rounds and processor time of random texts, beside other indexes of the same names.

These are SQLite's full-text index (FTS5) and, where its programs are given, PostgreSQL with pg_trgm.

The data are the countries, subdivisions and cities of GeoNames, all cities of at least so many inhabitants. Texts are
the beginnings of one or two words of random names. Clade's time is that of the search in the process, without GraphQL
around it; that of the others is one SQL statement, which orders by population. None proves more than it has to: Clade
returns names that are the text first, and whether nothing is missing. PostgreSQL's time is that which its server
reports, the least of five; it includes neither connection nor client.

Usage: python -m bench.search [FILE] [--inhabitants 15000] [--texts 300] [--postgresql /usr/lib/postgresql/15/bin]
FILE is an SQLite file that is made if it does not exist; without it the store is in memory.
"""

import argparse
import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median, quantiles

from bench import postgresql
from clade.demo import cities, countries
from graph.hierarchies.locations import Location
from resolvers.search.search import SearchArguments, search
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.records import Record
from store.search.folding import SearchText, fold
from store.transfer.formats.lines import row_of
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan

HIERARCHY = Location.definition()
LENGTHS = (3, 3, 4, 5, 8)  # of the beginnings


async def fill(store: Store) -> None:
    """Load the places into a new store."""
    plan = ImportPlan(HIERARCHY)
    for number, row in enumerate([*countries.rows(), *cities.rows()], start=1):
        plan.take(row_of(number, row))
    await load(store, plan, LoadResult())


async def names_of(store: Store) -> list[tuple[str, int]]:
    """The name and the population of every place."""
    found = []
    async for page in store.scan(ReadUsage()):
        records = [Record.of(item) for item in page if "tier" in item]
        found += [(record.name, int(str(record.attributes.get("population") or 0))) for record in records]
    return found


def texts_of(names: Sequence[tuple[str, int]], number: int) -> list[str]:
    """Random texts of one or two beginnings of words."""
    random, texts = Random(1), []
    while len(texts) < number:
        words = fold(random.choice(names)[0]).split("+")
        chosen = random.sample(words, min(len(words), random.choice((1, 1, 1, 2))))
        text = " ".join(word[: random.choice(LENGTHS)] for word in chosen)
        texts += [text] if any(len(word) >= 3 for word in text.split()) else []
    return texts


def full_text(names: Sequence[tuple[str, int]]) -> Callable[[str], object]:
    """The search of FTS5 over the same names, with an index of beginnings."""
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE place USING fts5(name, population UNINDEXED, "
        "tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3 4')"
    )
    connection.executemany("INSERT INTO place VALUES (?, ?)", names)
    statement = "SELECT rowid, name FROM place WHERE place MATCH ? ORDER BY CAST(population AS INT) DESC LIMIT 10"

    def find(text: str) -> object:
        wanted = " ".join(f'"{word}"*' for word in text.split())
        return connection.execute(statement, (wanted,)).fetchall()

    return find


async def measure(store: Store, texts: Sequence[str]) -> tuple[list[float], list[float], int, int]:
    """Milliseconds of the processor and read units of each search, the most rounds, and how many are not complete."""
    cache, times, units, rounds, incomplete = PageCache(10_000_000), [], [], 0, 0
    for text in texts:
        request = Request(store, {HIERARCHY.name: HIERARCHY}, page_cache=cache)
        began = time.process_time()
        found = await search(request, HIERARCHY, SearchArguments(SearchText.of(text)))
        times.append(1000 * (time.process_time() - began))
        units.append(request.reads.units)
        rounds = max(rounds, request.scheduler.rounds)
        incomplete += not found.complete
    return times, units, rounds, incomplete


async def compare(file: str | None, number: int, programs: Path | None) -> str:
    """The report in Markdown."""
    async with open_store(f"sqlite:///{file}" if file else "sqlite://:memory:") as store:
        if await store.create():
            await fill(store)
        names = await names_of(store)
        texts = texts_of(names, number)
        times, units, rounds, incomplete = await measure(store, texts)
    find, others = full_text(names), []
    for text in texts:
        began = time.process_time()
        find(text)
        others.append(1000 * (time.process_time() - began))
    lines = [_line("FTS5, ms of the processor", others)]
    if programs is not None:
        with postgresql.running(programs) as cluster:
            cluster.fill(names)
            lines.append(_line("PostgreSQL with pg_trgm, ms in its server", cluster.milliseconds(texts)))
    return "\n".join([
        f"{len(names):,} places, {len(texts)} texts, {incomplete} not complete, at most {rounds} rounds.",
        "",
        "| | median | 90 % | most |",
        "| --- | --- | --- | --- |",
        _line("read units", units),
        _line("Clade, ms of the processor", times),
        *lines,
    ])  # fmt: skip


def _line(title: str, values: Sequence[float]) -> str:
    return f"| {title} | {median(values):.2f} | {quantiles(values, n=10)[-1]:.2f} | {max(values):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description="Benchmark of search.")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--inhabitants", type=int, default=cities.MIN_POPULATION)
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--postgresql", type=Path)
    options = parser.parse_args()
    cities.MIN_POPULATION = options.inhabitants
    print(asyncio.run(compare(options.file, options.texts, options.postgresql)))


if __name__ == "__main__":
    main()
