"""Paths in one column, one level in several columns, missing parents, files without a header."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

from tests.commands.importing.imports import Import, importer, written
from tests.real_files import TAXONOMY, real_file

SPLIT = ["--level", 'category=category_path split " > "']


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Imports a file into an SQLite file, and exports that."""
    hierarchies = ("graph.hierarchies.locations", "graph.hierarchies.categories", "clade.examples.drive")
    return importer(tmp_path, monkeypatch, *hierarchies)


# -- paths in a column -------------------------------------------------------------------------------------------------

FEED = """id,title,category_path,price
A1,Robot,Garden > Mowers,499.00
A2,Hand mower,Garden > Mowers,89.50
A3,Hose,Garden > Watering > Hoses,19.00
"""


def test_a_product_feed_with_a_path_column_is_a_tree(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "feed.csv", FEED)
    options = ["--level", "product=id", "--name", "product=title", "--attr", "product.price=price"]
    done = clade("category", file, *SPLIT, *options)
    assert done.status == 0, done.said
    assert {path: (node["level"], node["name"], node.get("price")) for path, node in done.nodes.items()} == {
        "Garden": ("CATEGORY", "Garden", None),
        "Garden/Mowers": ("CATEGORY", "Mowers", None),
        "Garden/Mowers/A1": ("PRODUCT", "Robot", "499.00"),
        "Garden/Mowers/A2": ("PRODUCT", "Hand mower", "89.50"),
        "Garden/Watering": ("CATEGORY", "Watering", None),
        "Garden/Watering/Hoses": ("CATEGORY", "Hoses", None),
        "Garden/Watering/Hoses/A3": ("PRODUCT", "Hose", "19.00"),
    }


def test_a_name_is_that_of_the_last_node_of_a_path(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", "category_path,title\nG,Garden\nG > M,Lawn mowers\n")
    done = clade("category", file, *SPLIT, "--name", "category=title")
    assert {path: node["name"] for path, node in done.nodes.items()} == {"G": "Garden", "G/M": "Lawn mowers"}, done.said


def test_two_rows_that_name_a_node_of_a_path_differently_are_rejected_with_both_lines(
    clade: Import, tmp_path: Path
) -> None:
    file = written(tmp_path / "x.csv", "category_path,title\nG > M,Lawn mowers\nG > M,Mowers\n")
    done = clade("category", file, *SPLIT, "--name", "category=title")
    assert done.status == 1
    assert "row 3: G/M has the name Lawn mowers in row 2 already, not Mowers." in done.said


@pytest.mark.parametrize(
    ("cell", "separator", "path"),
    [
        ("A > B", " > ", "A/B"), ("A >B> C", ">", "A/B/C"), (" A | B ", "|", "A/B"), ("/usr/share", "/", "usr/share"),
        ("usr/share/", "/", "usr/share"), ("A", " > ", "A"), ("A::B", "::", "A/B"), ("C:\\\\x\\\\y", "\\\\", "C:/x/y"),
    ],
)  # fmt: skip
def test_a_cell_is_split_by_the_separator(clade: Import, tmp_path: Path, cell: str, separator: str, path: str) -> None:
    file = written(tmp_path / "x.csv", f"p,n\n{cell},1\n")
    done = clade("category", file, "--level", f"category=p split '{separator}'")
    assert (done.status, list(done.nodes)[-1]) == (0, path), done.said


@pytest.mark.parametrize("cell", ["A >  > C", "A > > C"])
def test_an_empty_part_of_a_path_is_rejected(clade: Import, tmp_path: Path, cell: str) -> None:
    file = written(tmp_path / "x.csv", f"p\nB\n{cell}\n")
    done = clade("category", file, "--level", "category=p split '>'")
    assert (done.status, list(done.nodes)) == (1, ["B"])
    assert 'row 3: Column "p": A path has an empty segment' in done.said


def test_only_a_level_in_itself_is_split(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", "p\nUS > NE\n")
    done = clade("location", file, "--level", "country=p split ' > '")
    assert (done.status, done.nodes) == (1, {})
    assert "--level country is split, but a COUNTRY may not stand under a COUNTRY." in done.said


def test_the_real_taxonomy_is_the_same_as_a_column_of_a_feed(clade: Import, tmp_path: Path) -> None:
    paths = [line for line in real_file(TAXONOMY).read_text("utf-8").splitlines() if not line.startswith("#")]
    feed = tmp_path / "feed.csv"
    with feed.open("w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([["sku", "category"], *[[f"S-{n}", path] for n, path in enumerate(paths)]])
    done = clade("category", feed, "--level", 'category=category split " > "', "--level", "product=sku")
    assert done.status == 0, done.said
    model: dict[tuple[str, ...], str] = {}
    for number, path in enumerate(paths):
        keys = tuple(path.split(" > "))
        model |= {keys[:depth]: "CATEGORY" for depth in range(1, len(keys) + 1)}
        model[*keys, f"S-{number}"] = "PRODUCT"
    assert {tuple(node["path"]): node["level"] for node in done.nodes.values()} == model


def test_a_listing_of_files_is_a_tree_of_folders(clade: Import, tmp_path: Path) -> None:
    """As PowerShell writes it: Get-ChildItem -Recurse -File | Select DirectoryName, Name, Length | Export-Csv."""
    found = [
        (f"D:\\{folder.relative_to('tests')}".replace("/", "\\"), file.name, file.stat().st_size)
        for folder in sorted(Path("tests/store").glob("**/"))
        for file in sorted(folder.glob("*.py"))
    ]
    output = io.StringIO()
    csv.writer(output, quoting=csv.QUOTE_ALL).writerows([["DirectoryName", "Name", "Length"], *found])
    file = written(tmp_path / "files.csv", output.getvalue())
    options = ["--level", "drive=drive", "--level", "folder=DirectoryName split '\\'", "--level", "file=Name"]
    options = [*options[2:], "--attr", "file.bytes=Length"]
    refused = clade("drive", file, *options)
    assert "FOLDER is allowed under DRIVE, FOLDER" in refused.said, "a drive has no column"
    rows = [[one[0].split("\\")[0], "\\".join(one[0].split("\\")[1:]), *one[1:]] for one in found]
    output = io.StringIO()
    csv.writer(output).writerows([["Drive", "Folder", "Name", "Length"], *rows])
    done = clade(
        "drive", written(file, output.getvalue()), "--level", "drive=Drive", "--level", "folder=Folder split '\\'",
        "--level", "file=Name", "--attr", "file.bytes=Length",
    )  # fmt: skip
    assert done.status == 0, done.said
    model: dict[str, tuple[str, int | None]] = {"D:": ("DRIVE", None)}
    for folder, name, size in found:
        keys = folder.split("\\")
        model |= {"/".join(keys[:depth]): ("FOLDER", None) for depth in range(2, len(keys) + 1)}
        model["/".join([*keys, name])] = ("FILE", size)
    assert {path: (node["level"], node.get("bytes")) for path, node in done.nodes.items()} == model


# -- one level in several columns --------------------------------------------------------------------------------------

COLUMNS = ["--level", "category=Department", "--level", "category=Category", "--level", "category=Kind"]


def test_one_level_has_several_columns(clade: Import, tmp_path: Path) -> None:
    rows = "Department,Category,Kind,Title,SKU\nGarden,,,The garden,\nGarden,Mowers,Robots,Robots that mow,\n"
    file = written(tmp_path / "x.csv", rows + "Garden,Mowers,,,P1\n")
    done = clade("category", file, *COLUMNS, "--level", "product=SKU", "--name", "category=Title")
    assert {path: (node["level"], node["name"]) for path, node in done.nodes.items()} == {
        "Garden": ("CATEGORY", "The garden"), "Garden/Mowers": ("CATEGORY", "Mowers"),
        "Garden/Mowers/P1": ("PRODUCT", "P1"), "Garden/Mowers/Robots": ("CATEGORY", "Robots that mow"),
    }, done.said  # fmt: skip


def test_a_gap_between_columns_of_one_level_is_rejected(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", "Department,Category,Kind\nGarden,,Robots\nGarden,Mowers,\n")
    done = clade("category", file, *COLUMNS)
    assert (done.status, list(done.nodes)) == (1, ["Garden", "Garden/Mowers"])
    assert 'row 2: Column "Category" is empty, but "Kind" below it has a key; fill it in.' in done.said


@pytest.mark.parametrize(
    ("hierarchy", "levels", "reason"),
    [
        ("location", ["country=A", "country=B"], "a COUNTRY may not stand under a COUNTRY"),
        ("category", ["category=A", "category=A"], "name each of its columns once"),
        ("category", ["category=A", "product=B", "category=C"], "one after the other"),
    ],
)
def test_columns_of_one_level_are_checked(
    clade: Import, tmp_path: Path, hierarchy: str, levels: Sequence[str], reason: str
) -> None:
    file = written(tmp_path / "x.csv", "A,B,C\nx,y,z\n")
    done = clade(hierarchy, file, *[word for level in levels for word in ("--level", level)])
    assert (done.status, done.nodes, reason in done.said) == (1, {}, True), done.said


# -- parents that no row describes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_missing_parents_are_created_if_that_is_asked_for(clade: Import, tmp_path: Path, form: str) -> None:
    if form == "csv":
        file = written(tmp_path / "x.csv", "path,level,name\nG/M/R/P1,PRODUCT,Robot\nG/M,CATEGORY,Mowers\n")
    else:
        lines = [{"path": "G/M/R/P1", "level": "PRODUCT", "name": "Robot"}, {"path": "G/M", "level": "CATEGORY"}]
        file = written(tmp_path / "x.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    refused = clade("category", file)
    assert (refused.status, refused.nodes) == (1, {})
    done = clade("category", file, "--create-parents")
    assert (done.status, {path: node["level"] for path, node in done.nodes.items()}) == (
        0, {"G": "CATEGORY", "G/M": "CATEGORY", "G/M/R": "CATEGORY", "G/M/R/P1": "PRODUCT"},
    ), done.said  # fmt: skip
    assert "parents without a row of their own: 2 (2 CATEGORY)" in done.said
    assert "Nothing changed." in clade("category", file, "--create-parents").said


def test_a_created_parent_changes_nothing_of_the_stored_one(clade: Import, tmp_path: Path) -> None:
    clade("category", written(tmp_path / "g.csv", "path,level,name\nG,CATEGORY,Garden\n"))
    done = clade("category", written(tmp_path / "x.csv", "path,level\nG/M,CATEGORY\n"), "--create-parents")
    assert (done.status, done.nodes["G"]["name"], len(done.nodes)) == (0, "Garden", 2), done.said


def test_parents_of_an_unclear_level_are_not_created(clade: Import, tmp_path: Path) -> None:
    done = clade(
        "location", written(tmp_path / "x.csv", "path,level\nUS/NE/Omaha,CITY\nDE/BY,STATE\n"), "--create-parents"
    )
    assert (done.status, list(done.nodes)) == (1, ["DE", "DE/BY"])
    assert "Parent US/NE is neither in the file nor in the table, and its level is unclear; add a row" in done.said


def test_a_parent_whose_row_is_rejected_is_not_created(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", "path,level\nG,CITY\nG/M,CATEGORY\n")
    done = clade("category", file, "--create-parents")
    assert (done.status, done.nodes) == (1, {})
    assert "row 3: Parent G is missing, since row 2 was rejected." in done.said


# -- files without a header --------------------------------------------------------------------------------------------

HEADERLESS = [["US", "Omaha", "478192"], ["US", "Lincoln", "many"], ["DE", "Ulm", "126790"]]
NAMED = ["--columns", "c, t,people", "--level", "country=c", "--level", "city=t", "--attr", "city.population=people"]


@pytest.mark.parametrize("form", ["csv", "txt", "xlsx"])
def test_columns_of_a_file_without_a_header_are_named(clade: Import, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"x.{form}"
    if form == "xlsx":
        book = openpyxl.Workbook()
        for row in HEADERLESS:
            book.active.append(row)
        book.save(file)
    else:
        csv.writer(file.open("w"), delimiter="\t" if form == "txt" else ";").writerows(HEADERLESS)
    done = clade("location", file, *NAMED)
    assert (done.status, list(done.nodes)) == (1, ["DE", "DE/Ulm", "US", "US/Omaha"]), done.said
    assert "row 2: " in done.said, "the first line is a row"
    rejected = tmp_path / "x.rejected.csv"
    rejected.write_text(rejected.read_text().replace("many", "291082"))
    again = clade("location", rejected, *NAMED)
    assert (again.status, again.nodes["US/Lincoln"]["population"]) == (0, 291082), again.said


def test_a_row_of_another_width_than_the_named_columns_is_rejected(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", "US,Omaha\nDE,Ulm,1\n")
    done = clade("location", file, "--columns", "country,city")
    assert (done.status, list(done.nodes)) == (1, ["US", "US/Omaha"])
    assert "row 2: The row has 3 columns, the header 2." in done.said


def test_columns_are_named_of_tables_alone(clade: Import, tmp_path: Path) -> None:
    done = clade("location", written(tmp_path / "x.jsonl", '{"path": "US"}\n'), "--columns", "path,level")
    assert (done.status, done.nodes) == (1, {})
    assert "--columns needs a CSV or Excel file without a header" in done.said
