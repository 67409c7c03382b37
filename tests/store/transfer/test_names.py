"""Names in languages through imports and exports: JSON lines and CSV, on both stores."""

import json
from pathlib import Path

import pytest

from commands.importing.file_format import columns
from store.engine.protocol import Store
from store.errors import BadInput
from store.transfer.export import export
from store.transfer.formats.lines import read_jsonl
from store.transfer.formats.matching import ColumnOptions
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from tests import invariants
from tests.hierarchies import LOCATION
from tests.level_columns import read_csv

LINES = [
    {"path": "DE", "level": "COUNTRY", "name": "Germany", "names": {"de": "Deutschland", "FR": "Allemagne"}},
    {"path": "DE/Munich", "level": "CITY", "names": {"de-at": "München", "it": None}, "population": 1},
    {"path": "DE/Ulm", "level": "CITY"},
]
CSV = """Country,Land,Pays,City,Stadt
DE,Deutschland,,Munich,München
DE,,Allemagne,Ulm,
"""


async def take(store: Store, rows) -> LoadResult:
    plan, result = ImportPlan(LOCATION), LoadResult()
    for _, row in rows:
        plan.take(row)
    await load(store, plan, result)
    await invariants.check(store)
    return result


def lines(tmp_path: Path, *found: dict) -> object:
    file = tmp_path / "nodes.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in found), "utf-8")
    return read_jsonl(file)


async def names(store: Store) -> dict[str, object]:
    found = [json.loads(line) async for page in export(store, LOCATION) for line in page.splitlines()]
    return {"/".join(one["path"]): one.get("names") for one in found}


async def test_json_lines_come_back_as_they_were_exported(store: Store, tmp_path: Path) -> None:
    assert (await take(store, lines(tmp_path, *LINES))).written == 3
    assert await names(store) == {
        "DE": {"de": "Deutschland", "fr": "Allemagne"}, "DE/Munich": {"de-AT": "München"}, "DE/Ulm": None,
    }  # fmt: skip
    exported = b"".join([page async for page in export(store, LOCATION)])
    again = [json.loads(line) for line in exported.splitlines()]
    assert (await take(store, lines(tmp_path, *again))).written == 0


async def test_a_file_changes_the_languages_that_it_has_alone(store: Store, tmp_path: Path) -> None:
    await take(store, lines(tmp_path, *LINES))
    one = {"path": "DE", "level": "COUNTRY"}
    assert (await take(store, lines(tmp_path, one | {"names": {"de": "Deutschland", "it": None}}))).written == 0
    assert (await take(store, lines(tmp_path, one | {"names": {"it": "Germania", "fr": None}}))).written == 1
    assert (await names(store))["DE"] == {"de": "Deutschland", "it": "Germania"}
    assert (await take(store, lines(tmp_path, one | {"names": None}))).written == 1
    assert (await names(store))["DE"] is None
    assert (await take(store, lines(tmp_path, one | {"names": {}}))).written == 0


async def test_csv_columns_hold_names_in_languages(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "cities.csv"
    file.write_text(CSV, "utf-8")
    options = ["country.DE=Land", "country.fr=Pays", "city.de=Stadt"]
    found = columns(LOCATION, ColumnOptions(["country=Country", "city=City"], [], [], [], [], options))
    for written in (3, 0):
        assert (await take(store, read_csv(found, file))).written == written
    assert await names(store) == {
        "DE": {"de": "Deutschland", "fr": "Allemagne"}, "DE/Munich": {"de": "München"}, "DE/Ulm": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("city=Stadt", "has no language; use --name-in city.de="), ("city.d=Stadt", "not a language tag"),
        ("city.de", "has no column"), ("state.de=Land", "add --level state=Column"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_with_a_way_out(option: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        columns(LOCATION, ColumnOptions(["country=Country", "city=City"], [], [], [], [], [option]))


async def test_rows_with_invalid_or_contradicting_names_are_rejected(store: Store, tmp_path: Path) -> None:
    country = {"path": "DE", "level": "COUNTRY"}
    many = {f"de-{number:03}": "x" for number in range(51)}
    result = await take(
        store,
        lines(
            tmp_path,
            country | {"names": {"de": "Deutschland"}},
            country | {"names": {"de": "Dutschland"}},
            country | {"names": {"en": 7}},
            country | {"names": ["en"]},
            {"path": "FR", "level": "COUNTRY", "names": many},
        ),
    )
    reasons = [one.reason for one in sorted(result.rejections)]
    assert [number for number, *_ in sorted(result.rejections)] == [2, 3, 4, 5]
    assert "name in de Deutschland in row 1 already, not Dutschland" in reasons[0]
    for reason, part in zip(reasons[1:], ["a non-empty string", "by language", "at most 50"], strict=True):
        assert part in reason
