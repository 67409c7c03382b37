"""Sources of imports, and files that an import could take for something else: it stops with a sentence, or says what
the file says.
"""

import csv
import gzip
import io
import json
import shlex
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from commands.importing import source
from commands.main import app_of
from tests.real_files import STARBUCKS, TAXONOMY, real_file

PLACES = """
from clade import Node, attribute

class Place(Node, hierarchy="place", many="places", prefix="Any"):
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


class Done(NamedTuple):
    """A command that has ended: its exit status, its output, and the nodes that are stored then, by path."""

    status: int
    said: str
    nodes: dict[str, dict[str, Any]]


Import = Callable[..., Done]


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Imports a file into a new SQLite file, in a directory of its own, and exports that."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "places.py").write_text(PLACES)
    url = f"sqlite:///{tmp_path}/nodes.db"
    for name, value in (
        ("CLADE_STORE", url),
        ("CLADE_HIERARCHIES", f"{tmp_path}/places.py,graph.hierarchies.locations,graph.hierarchies.categories"),
    ):
        monkeypatch.setenv(name, value)

    def imported(hierarchy: str, *words: object, stdin: bytes = b"") -> Done:
        done = CliRunner().invoke(app_of(), ["import", hierarchy, *map(str, words)], input=stdin)
        exported = CliRunner().invoke(app_of(), ["export", hierarchy]) if (tmp_path / "nodes.db").exists() else None
        nodes = {
            "/".join(node["path"]): node for node in map(json.loads, exported.stdout.splitlines() if exported else ())
        }
        return Done(done.exit_code, f"{done.output}{done.exception or ''}", nodes)

    return imported


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


def test_values_of_an_item_are_those_of_its_last_node(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden#mowers", "SK": "1", "title": "Lawn mowers"})
    done = clade("category", file, *PRODUCTS, "--keys", "PK", "--name", "category=title", "--name-in", "category.de=SK")
    assert {path: (node["name"], node.get("names")) for path, node in done.nodes.items()} == {
        "garden": ("garden", None), "garden/mowers": ("Lawn mowers", {"de": "1"}),
    }, done.said  # fmt: skip
    file = items(tmp_path / "x.json", {"PK": "tools", "SK": "mower", "title": "Mower", "owner": "Tools Ltd"})
    names = ["--name", "category=title", "--name", "product=title", "--name-in", "category.en=owner"]
    done = clade("category", file, "--key", "{category} / {product}", "--keys", "PK,SK", *names)
    assert (done.nodes["tools"]["name"], done.nodes["tools/mower"]["name"]) == ("tools", "Mower"), done.said
    assert done.nodes["tools"]["names"] == {"en": "Tools Ltd"}, "a column of that level alone is a value of it"


def test_two_items_that_contradict_each_other_are_rejected_with_both_lines(clade: Import, tmp_path: Path) -> None:
    both = [{"PK": "garden", "SK": f"{number}", "owner": f"Owner {number}"} for number in range(2)]
    file = items(tmp_path / "x.json", *both)
    names = ["--name", "category=owner", "--keys", "PK,SK"]
    done = clade("category", file, "--key", "{category} / {product}", *names)
    assert "row 2" in done.said
    assert "garden has the name Owner 0 in row 1 already, not Owner 1." in done.said


def test_keys_of_items_are_not_folded_in_silence(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden"})
    done = clade("category", file, "--key", "{category}", "--keys", "PK", "--fold-case", "category")
    assert (done.status, done.nodes) == (1, {})
    assert "--fold-case is for files, not for DynamoDB tables" in done.said


# -- trees by parent ids -----------------------------------------------------------------------------------------------

KINDS = ("Garden", "Mowers", "Robots", "Blades", "Tools", "Hoses")


def tree(count: int, header: Sequence[str], *, roots: str = "") -> list[list[str]]:
    """Rows of an id, the id of the parent and a name: a tree of four children each."""
    rows = [[f"{n}", f"{(n - 2) // 4 + 1}" if n > 1 else roots, f"{KINDS[n % 6]} {n}"] for n in range(1, count + 1)]
    return [[*header], *rows]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(tree(150, ["id", "parent_id", "name"], roots="0"), id="root 0"),
        pytest.param(tree(150, ["id", "parent_id", "name"], roots="1"), id="root refers to itself"),
        pytest.param(tree(3, ["id", "parentId", "name"]), id="three rows"),
        pytest.param(tree(150, ["id", "belongs under", "name"]), id="another name"),
        pytest.param([["id", "parent_id", "name"], *reversed(tree(5_500, [])[1:])], id="children first"),
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
        assert "write a file with the columns path, level and name" in done.said
        assert "Proposed command" not in done.said
    confirmed = clade("category", file, *options, "--yes", "--dry-run")
    assert (confirmed.status, f"added: {len(rows) - 1:,} " in confirmed.said) == (0, True), confirmed.said


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
def test_paths_in_a_column_are_not_made_keys_of_roots(clade: Import, tmp_path: Path, separator: str) -> None:
    file = written(tmp_path / "x.csv", [["Path", "n"], *[[separator.join(path), "1"] for path in GARDEN]])
    for more in ([], ["--describe"]):
        done = clade("category", file, "--level", "category=Path", *more)
        assert (done.status, done.nodes) == (1, {}), done.said
        assert f'such as "{separator.join(GARDEN[2])}", where a key of one CATEGORY belongs' in done.said
        assert "Proposed command" not in done.said
    done = clade("category", file, "--level", "category=Path", "--yes")
    assert (done.status, len(done.nodes)) == (0, len(GARDEN)), done.said


@pytest.mark.parametrize("form", ["path table", "lines", "items", "text"])
def test_paths_are_not_made_keys_of_roots_in_any_form(clade: Import, tmp_path: Path, form: str) -> None:
    paths = [("/" if form == "text" else " > ").join(path) for path in GARDEN]
    file, options = tmp_path / "x.json", []
    match form:
        case "path table":
            rows = [["path", "level", "name"], *[[path, "CATEGORY", "x"] for path in paths]]
            file = written(tmp_path / "x.csv", rows)
        case "lines":
            file = tmp_path / "x.jsonl"
            file.write_text("".join(json.dumps({"path": path, "level": "CATEGORY"}) + "\n" for path in paths))
        case "text":
            file = tmp_path / "x.txt"
            file.write_text("\n".join(paths))
        case _:
            items(file, *[{"PK": path} for path in paths])
            options = ["--keys", "PK", "--key", "{category}"]
    done = clade("category", file, *options)
    assert (done.status, done.nodes, "has whole paths" in done.said) == (1, {}, True), done.said


def test_the_way_out_is_a_table_of_paths(clade: Import, tmp_path: Path) -> None:
    columns = [["L1", "L2", "L3"], *[[*path, *[""] * (3 - len(path))] for path in GARDEN]]
    file = written(tmp_path / "x.csv", columns)
    options = [word for one in columns[0] for word in ("--level", f"category={one}")]
    refused = clade("category", file, *options)
    assert (refused.status, refused.nodes) == (1, {})
    assert "write a file with the columns path, level and name" in refused.said
    paths = [["path", "level", "name"], ["Kitchen", "CATEGORY", "Kitchen"]]
    file = written(tmp_path / "y.csv", [*paths, *[["/".join(path), "CATEGORY", path[-1]] for path in GARDEN]])
    done = clade("category", file)
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
        assert "add a line above it that names the columns" in done.said
    assert clade("place", file, *options.split(), "--yes").status == 0


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
def test_a_text_file_with_columns_is_a_table(clade: Import, tmp_path: Path, delimiter: str) -> None:
    file = tmp_path / "x.txt"
    file.write_text(f"Country{delimiter}City\nUS{delimiter}Omaha\nDE{delimiter}Ulm\n")
    done = clade("place", file)
    assert (done.status, list(done.nodes)) == (0, ["DE", "DE/Ulm", "US", "US/Omaha"]), done.said
    file.write_text("Garden\nGarden > Hoses, long\n")
    assert clade("category", file).status == 0


@pytest.mark.parametrize(
    ("name", "hierarchy", "levels"),
    [
        (STARBUCKS, "location", []),
        (STARBUCKS, "location", ["country=Country", "city=City", "store=Store Number"]),
        (STARBUCKS, "location", ["country=Street Address"]),
        (TAXONOMY, "category", []),
    ],
)
def test_a_real_file_is_what_it_seems(clade: Import, name: str, hierarchy: str, levels: list[str]) -> None:
    options = [word for one in levels for word in ("--level", one)]
    done = clade(hierarchy, real_file(name), *options, "--describe")
    assert (done.status, "Proposed command" in done.said) == (0, True), done.said


# -- sources -----------------------------------------------------------------------------------------------------------

CITIES = b"Country,City,Population\nUS,Omaha,many\nUS,Lincoln,291082\n"


def test_the_standard_input_is_imported_and_its_rejected_rows_are_in_the_working_directory(
    clade: Import, tmp_path: Path
) -> None:
    done = clade("location", "-", "--format", "csv", stdin=gzip.compress(CITIES))
    assert "added: 2 (1 COUNTRY, 1 CITY)" in done.said, done.said
    assert (tmp_path / "stdin.rejected.csv").read_bytes().startswith(b"Country,City,Population,reason\nUS,Omaha,many,")
    assert "add --format with one of csv," in clade("location", "-", stdin=CITIES).said


@pytest.mark.parametrize("name", ["a" * 300 + ".csv", "é" * 150 + ".csv", "a\x1b[31m\n.csv", "../../a.csv", ".."])
def test_a_name_in_an_archive_is_no_place_for_rejected_rows(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, CITIES)
    found = source.Source(tmp_path / "a.zip", "a.zip", tmp_path).rejected(".csv")
    assert found.parent == tmp_path
    assert found.name.isprintable()
    found.write_bytes(b"")


def test_the_described_command_imports_the_file(clade: Import, tmp_path: Path) -> None:
    content = "Country;City;Population;Latitude;Note\nDE;Köln;1.073.096;50,9;x\nDE;Bonn;NULL;50,7;y\n"
    (tmp_path / "cities.csv").write_bytes(content.encode("cp1252"))
    described = clade("location", "cities.csv", "--describe")
    assert "cities.csv: encoding cp1252 and delimiter ;, guessed" in described.said
    assert "  City: Köln, Bonn\n" in described.said
    assert "  Note: x, y (not imported)\n" in described.said
    command = described.said.splitlines()[-1].strip()
    assert "--null Population=NULL --numbers 1.234,56" in command
    assert not (tmp_path / "nodes.db").exists()
    done = clade(*shlex.split(command)[2:])
    assert "added: 3 (1 COUNTRY, 2 CITY)" in done.said
    assert (done.nodes["DE/Köln"]["population"], done.nodes["DE/Köln"]["latitude"]) == (1073096, 50.9)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://bucket/cities.csv?key=x", "s3://bucket/cities.csv is an address, and only files are imported; download"),
        ("https://me:secret@host/cities.csv", "https://host/cities.csv is an address, and only files are imported"),
        ("folder", "folder is not an export of a DynamoDB table"),
        ("land.csv", "No column is named like a level of location"),
    ],
)
def test_what_cannot_be_described_gets_one_sentence(clade: Import, tmp_path: Path, address: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "land.csv").write_text("Land;Stadt\nDE;Bonn\n")
    for more in ([], ["--describe"]):
        assert message in clade("location", address, *more).said
    assert not (tmp_path / "nodes.db").exists()
