"""Demo data: real places and a made-up catalogue, as rows of an import. It needs `pip install .[demo]`."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import orjson

from clade.demo import cities, countries
from clade.demo.countries import Row


def rows() -> dict[str, Iterable[Row]]:
    """The rows of each hierarchy by its name, parents first, and the same in every run."""
    return {
        "location": chain(countries.rows(), cities.rows(), _lines("shops.jsonl")),
        "category": _lines("catalogue.jsonl"),
    }


def _lines(name: str) -> Iterator[Row]:
    for line in (Path(__file__).parent / name).read_bytes().splitlines():
        yield orjson.loads(line)
