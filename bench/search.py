"""Benchmark of search by words: read units, rounds and processor time of random texts: python -m bench.search --help.

The data are the countries, subdivisions and cities of GeoNames in an SQLite file. Texts are the beginnings of one or
two words of random names, and each is searched once.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median, quantiles

import orjson

from bench import places
from bench.checkouts import add_options, checkouts
from bench.processes import JSON_BOTH_WAYS, Process, ask
from bench.report import number, python_build, table

LENGTHS = (3, 3, 4, 5, 8)  # of the beginnings
QUERY = "query($text: String!) { searchLocations(text: $text) { complete nodes { id name } } }"
HEAD = ("server", "", "median", "90 %", "most")


def texts_of(names: Sequence[str], number: int) -> list[str]:
    """Random texts of one or two beginnings of words."""
    random, texts = Random(1), list[str]()
    while len(texts) < number:
        words = random.choice(names).split()
        chosen = random.sample(words, min(len(words), random.choice((1, 1, 1, 2))))
        text = " ".join(word[: random.choice(LENGTHS)] for word in chosen)
        texts += [text] if any(len(word) >= 3 and word.isalpha() for word in text.split()) else []
    return texts


def measured(server: Process, texts: Sequence[str]) -> tuple[dict[str, list[float]], int]:
    """The figures of each search, and how many are not complete."""
    figures: dict[str, list[float]] = {"read units": [], "rounds": [], "CPU ms": []}
    incomplete = 0
    for text in texts:
        cpu = server.cpu_seconds()
        body = orjson.dumps({"query": QUERY, "variables": {"text": text}})
        answer = orjson.loads(ask(server.url, body, {**JSON_BOTH_WAYS, "clade-reads": "1"}))
        reads = answer["extensions"]["reads"]
        for name, value in zip(
            figures, (reads["units"], reads["rounds"], 1000 * (server.cpu_seconds() - cpu)), strict=True
        ):
            figures[name].append(value)
        incomplete += not answer["data"]["searchLocations"]["complete"]
    return figures, incomplete


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the table, and return it."""
    options = _options(arguments)
    print(python_build(), flush=True)
    tree = places.real(options.inhabitants)
    texts = texts_of([place.name for place in tree], options.texts)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        lines = Path(name) / "places.jsonl"
        places.write(tree, lines)
        for one in checkouts(options):
            store = one.file(Path(name))
            one.fill(store, lines)
            with one.server(store).process as server:
                measured(server, texts[:1])
                figures, incomplete = measured(server, texts)
            print(f"{one.name}: {len(tree):,} places, {len(texts)} texts, {incomplete} not complete")
            for what, values in figures.items():
                ends = (median(values), quantiles(values, n=10)[-1], max(values))
                rows.append([one.name, what, *map(number, ends)])
    print(shown := table(HEAD, rows))
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    add_options(parser)
    parser.add_argument("--inhabitants", type=int, choices=places.POPULATIONS, default=500, help="default 500")
    parser.add_argument("--texts", type=int, default=300, help="texts; default 300")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
