"""Real files with their dirt: every level's count as other code counts it.

The long form, with the countries of most shops as well: CLADE_TEST_ALL_STORES=1 pytest tests/commands/importing
"""

import csv
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection

import pytest

from commands.importing.file_format import columns
from graph.hierarchies.registry import hierarchies
from store.engine.protocol import Store
from store.transfer.formats.lines import read_taxonomy, taxonomy_level
from store.transfer.formats.matching import ColumnOptions
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Rejection
from tests import invariants
from tests.level_columns import read_csv
from tests.real_files import STARBUCKS, TAXONOMY, real_file

ALL = bool(os.environ.get("CLADE_TEST_ALL_STORES"))
MANY_STORES = ("US", "CN", "CA", "JP", "KR", "GB")  # two thirds of the chain
LEVELS = ["country=Country", "state=State/Province", "city=City", "postal_code=Postcode", "store=Store Number"]


async def imported(store: Store, wanted: ImportPlan) -> LoadResult:
    outcome = LoadResult()
    await load(store, wanted, outcome)
    return outcome


def stores(kind: str = "store", without: Collection[str] = ()) -> ImportPlan:
    location = hierarchies()["location"]
    form = columns(
        location, ColumnOptions(LEVELS, [f"{kind}=Store Name"], [], [f"{kind}.street=Street Address"], ["city"])
    )
    wanted = ImportPlan(location)
    for _, row in read_csv(form, real_file(STARBUCKS)):
        if isinstance(row, Rejection) or row.path[0] not in without:
            wanted.take(row)
    return wanted


def counted(without: Collection[str]) -> dict[str, int]:
    """How many different nodes of each level the file names, by sets of what stands in its columns."""
    found: dict[str, set[tuple[str, ...]]] = {
        name: set() for name in ("COUNTRY", "STATE", "CITY", "POSTAL_CODE", "STORE")
    }
    with real_file(STARBUCKS).open(encoding="utf-8-sig", newline="") as source:
        for row in csv.DictReader(source):
            cells = [row[name] for name in ("Country", "State/Province", "City", "Postcode", "Store Number")]
            country, state, city, postcode, number = (unicodedata.normalize("NFC", cell.strip()) for cell in cells)
            if country in without:
                continue
            place = (country, state, city.casefold(), postcode, number)
            for depth, (level, cell) in enumerate(zip(found, place, strict=True), start=1):
                if cell:
                    found[level].add(place[:depth])
    return {level: len(places) for level, places in found.items()}


@pytest.mark.thorough
async def test_all_stores_of_a_coffee_chain_are_imported(store: Store) -> None:
    without = () if ALL else MANY_STORES
    outcome = await imported(store, stores(without=without))
    assert outcome.rejections == []
    assert dict(outcome.added) == counted(without)
    if not without:
        assert outcome.added["STORE"] == 25_599, "one of the 25,600 is there twice"
    await invariants.check(store)
    found = Counter(item["level"] for item in (await invariants.nodes(store, "location")).values())
    assert found == counted(without)
    again = await imported(store, stores(without=without))
    assert (again.written, again.commits) == (0, 0)


async def test_the_whole_taxonomy_is_imported(store: Store) -> None:
    category = hierarchies()["category"]
    wanted = ImportPlan(category)
    for _, row in read_taxonomy(taxonomy_level(category), real_file(TAXONOMY)):
        wanted.take(row)
    outcome = await imported(store, wanted)
    lines = re.findall(r"^[^#\n].*$", real_file(TAXONOMY).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert outcome.rejections == []
    assert dict(outcome.added) == {"CATEGORY": len(lines)}
    await invariants.check(store)
    depths = Counter(item["sk"].count("#") for item in (await invariants.nodes(store, "category")).values())
    assert depths == Counter(line.count(" > ") + 1 for line in lines)
