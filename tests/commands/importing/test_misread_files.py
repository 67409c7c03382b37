"""Files that an import could take for something else: it stops with a sentence, or says what the file says."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from commands.importing.describe import check_file
from commands.importing.file_format import FileOptions, format_of
from commands.importing.source import Source
from graph.hierarchies.registry import hierarchies
from store.transfer.formats.matching import ColumnOptions
from tests.commands.importing.imports import Import, importer
from tests.commands.importing.imports import written as text
from tests.real_files import STARBUCKS, TAXONOMY, real_file

RUN_SECONDS = 120
PLACES = """
from clade import Node, attribute

class Place(Node, hierarchy="place", many="places"):
    "A country, a state or a city."

class Country(Place, under=[None]):
    "A country."

class State(Place, under=[None, Country]):
    "A state."

class City(Place, under=[None, Country, State]):
    "A city."

    population: int | None = attribute("People.")
    latitude: float | None = attribute("Degrees.")
"""
PRODUCTS = ["--key", "{category*#}"]


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Imports a file into a new SQLite file, and exports that."""
    (tmp_path / "places.py").write_text(PLACES)
    return importer(tmp_path, monkeypatch, tmp_path / "places.py", "graph.hierarchies.categories")


def written(file: Path, rows: Sequence[Sequence[object]]) -> Path:
    output = io.StringIO()
    csv.writer(output).writerows(rows)
    file.write_text(output.getvalue())
    return file


def items(file: Path, *found: dict[str, str]) -> Path:
    """The items of a DynamoDB table as in an export to S3."""
    lines = [{"Item": {name: {"S": value} for name, value in item.items()}} for item in found]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


# -- values of a row belong to its last node ---------------------------------------------------------------------------


def test_the_name_of_an_item_is_that_of_its_last_node(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden#mowers", "SK": "1", "title": "Lawn mowers"})
    done = clade("category", file, *PRODUCTS, "--keys", "PK", "--name", "category=title", "--name-in", "category.de=SK")
    assert done.status == 0, done.said
    assert {path: (node["name"], node.get("names")) for path, node in done.nodes.items()} == {
        "garden": ("garden", None), "garden/mowers": ("Lawn mowers", {"de": "1"}),
    }  # fmt: skip


def test_an_attribute_of_an_item_that_two_levels_have_is_that_of_the_last_node(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden", "SK": "mower", "title": "Mower", "owner": "Garden Ltd"})
    names = ["--name", "category=title", "--name", "product=title", "--name-in", "category.en=owner"]
    done = clade("category", file, "--key", "{category} / {product}", "--keys", "PK,SK", *names)
    assert done.status == 0, done.said
    assert (done.nodes["garden"]["name"], done.nodes["garden/mower"]["name"]) == ("garden", "Mower")
    assert done.nodes["garden"]["names"] == {"en": "Garden Ltd"}, "a column of that level alone is a value of it"


def test_two_items_that_contradict_each_other_are_rejected_with_both_lines(clade: Import, tmp_path: Path) -> None:
    both = [{"PK": "garden", "SK": f"{number}", "owner": f"Owner {number}"} for number in range(2)]
    file = items(tmp_path / "x.json", *both)
    names = ["--name", "category=owner", "--keys", "PK,SK"]
    done = clade("category", file, "--key", "{category} / {product}", *names)
    assert done.status == 1
    assert "line 2" in done.said or "row 2" in done.said
    assert "garden has the name Owner 0 in row 1 already, not Owner 1." in done.said


def test_keys_of_items_are_not_folded_in_silence(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden"})
    done = clade("category", file, "--key", "{category}", "--keys", "PK", "--fold-case", "category")
    assert (done.status, done.nodes) == (1, {})
    assert "--fold-case is for files, not for DynamoDB tables" in done.said


@pytest.mark.parametrize("option", ["--keys=PK,SK", "--read-units=5", "--segments=4"])
def test_options_of_tables_are_not_ignored_in_silence(clade: Import, tmp_path: Path, option: str) -> None:
    file = written(tmp_path / "x.csv", [["category"], ["garden"]])
    done = clade("category", file, "--level", "category=category", option)
    assert (done.status, done.nodes) == (1, {})
    assert "--keys, --read-units and --segments are for DynamoDB tables, not for files." in done.said


def test_a_scan_is_not_asked_of_an_export_in_silence(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden"})
    done = clade("category", file, "--key", "{category}", "--keys", "PK", "--segments", "4")
    assert (done.status, done.nodes) == (1, {})
    assert "--read-units and --segments are for a table that is scanned, not for an export of one." in done.said


# -- trees by parent ids -----------------------------------------------------------------------------------------------

KINDS = ("Garden", "Mowers", "Robots", "Blades", "Tools", "Hoses")


def tree(count: int, header: Sequence[str], *, roots: str = "") -> list[list[str]]:
    """Rows of an id, the id of the parent and a name: a tree of four children each."""
    rows = [[f"{n}", f"{(n - 2) // 4 + 1}" if n > 1 else roots, f"{KINDS[n % 6]} {n}"] for n in range(1, count + 1)]
    return [[*header], *rows]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(tree(600, ["id", "parent_id", "name"]), id="numbers"),
        pytest.param(tree(600, ["id", "parent_id", "name"], roots="0"), id="root 0"),
        pytest.param(tree(600, ["id", "parent_id", "name"], roots="1"), id="root refers to itself"),
        pytest.param(tree(3, ["id", "parentId", "name"]), id="three rows"),
        pytest.param(tree(600, ["id", "belongs under", "name"]), id="another name"),
        pytest.param(
            [["id", "parent_id", "name"], *reversed(tree(7_000, [])[1:])],
            id="children first",
            marks=pytest.mark.thorough,
        ),
        pytest.param([["slug", "x", "name"], ["g", "", "G"], ["g-m", "g", "M"], ["g-m-r", "g-m", "R"]], id="texts"),
    ],
)  # fmt: skip
def test_a_tree_by_parent_ids_is_not_made_a_flat_list(clade: Import, tmp_path: Path, rows: list[list[str]]) -> None:
    file = written(tmp_path / "x.csv", rows)
    options = ["--level", f"category={rows[0][0]}", "--name", "category=name"]
    for more in ([], ["--describe"], ["--dry-run"]):
        done = clade("category", file, *options, *more)
        assert (done.status, done.nodes) == (1, {}), done.said
        assert f'x.csv is a tree by parent ids: column "{rows[0][1]}" has values of "{rows[0][0]}"' in done.said
        assert f"add --tree-by {shlex.quote(f'id={rows[0][0]},parent={rows[0][1]}')}" in done.said
        assert "Proposed command" not in done.said
    confirmed = clade("category", file, *options, "--yes", "--dry-run")
    assert (confirmed.status, f"added: {len(rows) - 1:,} " in confirmed.said) == (0, True), confirmed.said


def test_the_command_says_so_in_one_line_and_makes_no_store(tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", tree(9, ["id", "parent_id", "name"]))
    words = ["import", "category", str(file), "--level", "category=id"]
    done = subprocess.run(
        [sys.executable, "-c", "from commands.main import run; run()", *words],
        env={**os.environ, "CLADE_STORE": f"sqlite:///{tmp_path}/x.db"},
        capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("clade: x.csv is a tree by parent ids")
    assert not (tmp_path / "x.db").exists()


def test_a_tree_by_parent_ids_is_recognized_in_every_format(clade: Import, tmp_path: Path) -> None:
    objects = [dict(zip(["id", "parentId", "name"], row, strict=True)) for row in tree(9, [])[1:]]
    json_file, parquet_file, book = tmp_path / "x.json", tmp_path / "x.parquet", openpyxl.Workbook()
    json_file.write_text(json.dumps(objects))
    parquet.write_table(pyarrow.Table.from_pylist(objects), parquet_file)
    for row in tree(9, ["id", "parentId", "name"]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    for file in (json_file, parquet_file, tmp_path / "x.xlsx"):
        done = clade("category", file, "--level", "category=id")
        assert (done.status, done.nodes, "is a tree by parent ids" in done.said) == (1, {}, True), done.said
    table = items(tmp_path / "items.json", *[{**one, "PK": f"C{one['id']}"} for one in objects])
    for more in ([], ["--describe"]):
        done = clade("category", table, "--keys", "id", "--key", "{category}", *more)
        assert (done.status, done.nodes, "is a tree by parent ids" in done.said) == (1, {}, True), done.said


ORDINARY = [
    pytest.param([["City", "Capital", "n"], ["Lyon", "Paris", "1"], ["Paris", "Paris", "2"], ["Nice", "Paris", "3"]],
                 id="capitals"),
    pytest.param([["City", "depth"], *[[f"{n}", f"{min(n - 1, 3)}"] for n in range(1, 40)]], id="depths"),
    pytest.param([["City", "rooms"], *[[f"{n}", f"{n * 7 % 11}"] for n in range(1, 400)]], id="small numbers"),
    # As a tree: of one half each, below a node that would be its own parent.
    pytest.param([["City", "rooms"], ["1", "1"], *[[f"{n}", f"{n // 2}"] for n in range(2, 400)], ["400", ""]],
                 id="a number that is its own"),
    pytest.param([["City", "next"], *[[f"C{n}", f"C{n % 9 + 1}"] for n in range(1, 10)]], id="a circle"),
    pytest.param([["City", "parent company"], ["A", "Acme"], ["B", "Acme"], ["C", "B & Sons"]], id="companies"),
    pytest.param([["City", "Road"], ["A/B", "1/2"], ["C/D", "1/3"], ["E/F", "1/4"]], id="slashes"),
    pytest.param([["City", "n"], ["Main St 5/1", "1"], ["Main St 5/2", "2"], ["Main St 5/3", "3"]], id="houses"),
    pytest.param([["City", "n"], ["https://a.example/x", "1"], ["https://a.example/y", "2"]], id="addresses"),
    pytest.param([["City", "2019", "2020"], ["Bonn", "1", "2"], ["Köln", "3", "4"]], id="years"),
    pytest.param([["Land", "2019", "City"], ["DE", "1999", "Bonn"], ["DE", "2020", "Ulm"]], id="years above years"),
    pytest.param([["City"], ["Bonn"]], id="one column"),
    pytest.param([["City", "Q1", "Q2"], ["Bonn", "Q3", "Q4"], ["Ulm", "Q2", "Q1"]], id="quarters"),
]  # fmt: skip


@pytest.mark.parametrize("rows", ORDINARY)
def test_an_ordinary_table_is_imported(clade: Import, tmp_path: Path, rows: list[list[str]]) -> None:
    done = clade("place", written(tmp_path / "x.csv", rows), "--level", "city=City")
    assert (done.status, len(done.nodes)) == (0, len(rows) - 1), done.said


# -- paths in a column -------------------------------------------------------------------------------------------------

GARDEN = [["Garden"], ["Garden", "Mowers"], ["Garden", "Mowers", "Robots"], ["Garden", "Hoses"], ["Kitchen", "Knives"]]


@pytest.mark.parametrize("separator", [" > ", ">", "/", " / ", "|", " | ", " » "])
@pytest.mark.parametrize("form", ["table", "path table", "lines", "items"])
def test_paths_in_a_column_are_not_made_keys_of_roots(clade: Import, tmp_path: Path, separator: str, form: str) -> None:
    if separator.strip() == "/" and form in ("path table", "lines"):
        return  # which is how paths are written there
    paths = [separator.join(path) for path in GARDEN]
    file, options = tmp_path / "x.csv", []
    match form:
        case "table":
            written(file, [["Path", "n"], *[[path, "1"] for path in paths]])
            options = ["--level", "category=Path"]
        case "path table":
            written(file, [["path", "level", "name"], *[[path, "CATEGORY", "x"] for path in paths]])
        case "lines":
            file = file.with_suffix(".jsonl")
            file.write_text("".join(json.dumps({"path": path, "level": "CATEGORY"}) + "\n" for path in paths))
        case _:
            items(file, *[{"PK": path} for path in paths])
            options = ["--keys", "PK", "--key", "{category}"]
    for more in ([], ["--describe"]) if form != "items" else ([],):
        done = clade("category", file, *options, *more)
        assert (done.status, done.nodes) == (1, {}), done.said
        assert f'such as "{separator.join(GARDEN[2])}", where a key of one CATEGORY belongs' in done.said
        assert "Proposed command" not in done.said
    done = clade("category", file, *options, "--yes")
    assert (done.status, len(done.nodes)) == (0, len(GARDEN)), done.said


@pytest.mark.parametrize("separator", [" > ", "/", "|", " » "])
def test_the_way_out_is_the_command_that_the_sentence_names(clade: Import, tmp_path: Path, separator: str) -> None:
    rows = [["n", "Path"], *[["1", separator.join(path)] for path in GARDEN]]
    refused = clade("category", written(tmp_path / "x.csv", rows), "--level", "category=Path")
    assert (refused.status, refused.nodes) == (1, {})
    (option,) = re.findall(r"--level '(.+?)'[.]", refused.said)
    done = clade("category", tmp_path / "x.csv", "--level", option)
    assert (done.status, list(done.nodes)) == (0, [
        "Garden", "Garden/Hoses", "Garden/Mowers", "Garden/Mowers/Robots", "Kitchen", "Kitchen/Knives",
    ]), done.said  # fmt: skip


# -- files without a header, text files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([["US", "NE", "Omaha"], ["US", "NE", "Lincoln"]], "--level country=US --level state=NE --level city=Omaha"),
        ([["Omaha", "478192"], ["Lincoln", "291082"]], "--level city=Omaha --attr city.population=478192"),
        ([["S-001", "2019-01-02"], ["S-002", "2020-02-03"]], "--level city=S-001"),
        ([["Omaha", "41.26", "-95.94"], ["Ulm", "48.4", "9.99"]], "--level city=Omaha --attr city.latitude=41.26"),
    ],
)
def test_a_first_row_of_data_is_not_lost(clade: Import, tmp_path: Path, rows: list[list[str]], options: str) -> None:
    file = written(tmp_path / "x.csv", rows)
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    for one in (file, tmp_path / "x.xlsx"):
        done = clade("place", one, *options.split())
        assert (done.status, done.nodes) == (1, {}), done.said
        assert f"name the {len(rows[0])} columns with --columns, such as --columns a,b,c." in done.said
    assert clade("place", file, *options.split(), "--yes").status == 0


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
def test_a_text_file_with_columns_is_a_table(clade: Import, tmp_path: Path, delimiter: str) -> None:
    file = tmp_path / "x.txt"
    file.write_text(f"Country{delimiter}City\nUS{delimiter}Omaha\nDE{delimiter}Ulm\n")
    done = clade("place", file)
    assert (done.status, list(done.nodes)) == (0, ["DE", "DE/Ulm", "US", "US/Omaha"]), done.said
    file.write_text("Garden\nGarden > Hoses, long\n")
    assert clade("category", file).status == 0


def test_a_text_file_of_paths_with_other_separators_is_not_made_roots(clade: Import, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("".join("/".join(path) + "\n" for path in GARDEN))
    done = clade("category", file)
    assert (done.status, done.nodes) == (1, {}), done.said
    assert """split them with --columns path --level 'category=path split "/"'.""" in done.said
    done = clade("category", file, "--columns", "path", "--level", 'category=path split "/"')
    assert (done.status, "Garden/Mowers/Robots" in done.nodes, len(done.nodes)) == (0, True, 6), done.said


@pytest.mark.parametrize(
    ("name", "hierarchy", "levels"),
    [
        (STARBUCKS, "location", []),
        (STARBUCKS, "location", ["country=Country", "city=City", "store=Store Number"]),
        (STARBUCKS, "location", ["country=Street Address"]),
        (TAXONOMY, "category", []),
    ],
)
def test_a_real_file_is_what_it_seems(name: str, hierarchy: str, levels: list[str]) -> None:
    file, definition = real_file(name), hierarchies()[hierarchy]
    found = format_of(definition, file, None, FileOptions(ColumnOptions(levels)))
    check_file(definition, Source(file, name, file.parent), found)


def test_an_indented_list_is_not_made_roots(clade: Import, tmp_path: Path) -> None:
    file = text(tmp_path / "x.txt", "Home\n\tKitchen\n\t\tKnives\nGarden\n")
    done = clade("category", file)
    assert (done.status, done.nodes) == (1, {})
    assert 'x.txt has indented lines, such as "Kitchen", and indents are not read; write whole paths' in done.said
    assert clade("category", file, "--yes").status == 0


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_a_tree_by_parent_ids_without_columns_of_levels_is_called_so(clade: Import, tmp_path: Path, name: str) -> None:
    csv_text = "nr;parentnr;naam\n1;;Alles\n2;1;Fietsen\n2;3;Fietsen\n3;1;Autos\n4;2;E-bikes\n5;99;Los\n"
    lines = "".join(
        json.dumps(dict(zip(("nr", "parentnr", "naam"), row.split(";"), strict=True))) + "\n"
        for row in csv_text.splitlines()[1:]
    )
    file = text(tmp_path / name, csv_text if name == "x.csv" else lines)
    done = clade("category", file)
    assert (done.status, done.nodes) == (1, {})
    assert f"{name} is a tree by parent ids" in done.said
    assert "add --tree-by id=nr,parent=parentnr" in done.said
    assert [*clade("category", file, "--tree-by", "id=nr,parent=parentnr").nodes] == [
        "Alles", "Alles/Autos", "Alles/Fietsen", "Alles/Fietsen/E-bikes",
    ]  # fmt: skip


def test_lines_of_json_with_columns_of_levels_are_a_table(clade: Import, tmp_path: Path) -> None:
    file = text(tmp_path / "x.jsonl", '{"country": "US", "city": "Omaha"}\n{"country": "US", "city": "Ames"}\n')
    assert [*clade("place", file).nodes] == ["US", "US/Ames", "US/Omaha"]


def test_columns_of_a_level_further_down_are_found_by_their_names(clade: Import, tmp_path: Path) -> None:
    file = text(tmp_path / "x.csv", "Category,Sub-category,Product\nTools,Saws,Handsaw\nGarden,,Hose\n")
    assert [*clade("category", file).nodes] == ["Garden", "Garden/Hose", "Tools", "Tools/Saws", "Tools/Saws/Handsaw"]


def shop(file: Path, header: str) -> Path:
    return text(file, header + "".join(f"C{n % 2},S{n % 4},K{n},Thing {n},{n}.50\n" for n in range(40)))


@pytest.mark.parametrize("code", ["sku", "Product ID", "product_code"])
def test_products_in_columns_of_categories_are_found_by_their_codes(clade: Import, tmp_path: Path, code: str) -> None:
    done = clade("category", shop(tmp_path / "x.csv", f"Category,Subcategory,{code},name,price\n"))
    assert (done.status, len(done.nodes)) == (0, 46), done.said
    assert (done.nodes["C1/S3/K7"]["name"], done.nodes["C1/S3/K7"]["price"]) == ("Thing 7", "7.50")
    assert done.nodes["C1/S3"]["name"] == "S3"


def test_a_guess_that_most_rows_contradict_stops_the_import(clade: Import, tmp_path: Path) -> None:
    file = shop(tmp_path / "x.csv", "Category,Subcategory,Artikel,name,price\n")
    done = clade("category", file)
    assert (done.status, done.nodes) == (1, {}), done.said
    assert "By the names of the columns 36 of 40 rows would be rejected; row 6: C0/S0 has the name Thing 0" in done.said
    assert "--level sets the columns" in done.said
    assert len(clade("category", file, "--yes", "--allow-rejects").nodes) == 6
    words = ["--level", "category=Category", "--level", "category=Subcategory", "--level", "product=Artikel"]
    assert clade("category", file, *words, "--name", "product=name").status == 0
