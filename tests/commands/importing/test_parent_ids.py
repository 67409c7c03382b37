"""Trees by parent ids: rows in any order become the tree that they say, and later imports keep it."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from commands.importing.job import MAX_ROOTS
from tests.commands.importing.imports import Import, importer, written
from tests.real_files import ISO_3166_2, real_file

UNITS = """
from clade import Node, attribute

class Unit(Node, hierarchy="unit", many="units"):
    "A part of an organisation, or somebody in it."

class Department(Unit, under=[None, "self"]):
    "A department."

    budget: float | None = attribute("Money.")

class Person(Unit, under=[None, Department, "self"]):
    "Somebody."

    title: str | None = attribute("What she does.")
"""
BY = ["--tree-by", "id=id,parent=parent"]


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Imports a file into an SQLite file, and exports that."""
    (tmp_path / "units.py").write_text(UNITS)
    return importer(tmp_path, monkeypatch, tmp_path / "units.py", "graph.hierarchies.categories")


def table(file: Path, rows: Iterable[Sequence[object]], header: Sequence[str] = ("id", "parent", "name")) -> Path:
    with file.open("w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([header, *rows])
    return file


def names(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The ids of nodes by path."""
    return {path: node["id"] for path, node in nodes.items()}


GARDEN = [("3", "2", "Robots"), ("1", "", "Garden"), ("2", "1", "Mowers"), ("4", "1", "Hoses")]
GARDEN_PATHS = {"Garden": "1", "Garden/Hoses": "4", "Garden/Mowers": "2", "Garden/Mowers/Robots": "3"}


@pytest.mark.parametrize("form", ["csv", "tsv", "txt", "jsonl", "json", "xlsx", "parquet"])
def test_a_tree_by_parent_ids_is_read_in_every_format(clade: Import, tmp_path: Path, form: str) -> None:
    file, header = tmp_path / f"x.{form}", ("id", "parent", "name")
    objects = [dict(zip(header, row, strict=True)) for row in GARDEN]
    match form:
        case "csv":
            table(file, GARDEN)
        case "tsv" | "txt":
            written(file, "".join("\t".join(row) + "\n" for row in (header, *GARDEN)))
        case "jsonl":
            written(file, "".join(json.dumps(one) + "\n" for one in objects))
        case "json":
            written(file, json.dumps(objects))
        case "parquet":
            parquet.write_table(pyarrow.Table.from_pylist(objects), file)
        case _:
            book = openpyxl.Workbook()
            for own, parent, name in (header, *GARDEN):
                book.active.append([int(own) if own.isdigit() else own, parent, name])
            book.save(file)
    done = clade("category", file, *BY)
    assert (done.status, names(done.nodes)) == (0, GARDEN_PATHS), done.said
    assert "1 root; nodes by depth: 1, 2, 1" in done.said
    again = clade("category", file, *BY)
    assert (again.status, "Nothing changed.\nunchanged: 4" in again.said) == (0, True), again.said


@pytest.mark.parametrize("root", ["", "0", "-1", "NULL", "root", "1"])
def test_a_root_has_no_parent_or_itself(clade: Import, tmp_path: Path, root: str) -> None:
    done = clade("category", table(tmp_path / "x.csv", [("2", "1", "B"), ("1", root, "A")]), *BY)
    assert (done.status, names(done.nodes)) == (0, {"A": "1", "A/B": "2"}), done.said


def test_a_text_that_means_no_parent_may_be_an_id(clade: Import, tmp_path: Path) -> None:
    done = clade("category", table(tmp_path / "x.csv", [("5", "0", "B"), ("0", "", "A")]), *BY)
    assert names(done.nodes) == {"A": "0", "A/B": "5"}, done.said


# -- what is rejected --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        pytest.param(
            [("1", "", "A"), ("2", "9", "B"), ("3", "2", "C")],
            [
                'row 3: No row has the id of its parent, "9"; --create-parents',
                "row 4: Its parent, row 3, was rejected.",
            ],
            id="orphan",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "3", "B"), ("3", "4", "C"), ("4", "2", "D"), ("5", "4", "E")],
            [f'row {row}: The parents are a circle: "2" in row 3, "3" in row 4, "4" in row 5.' for row in (3, 4, 5)]
            + ["row 6: Its parent, row 5, was rejected."],
            id="circle",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "1", "B"), ("3", "2", "C"), ("3", "1", "C")],
            ['row 5: "3" has the parent "2" in row 4 already, not the parent "1".'],
            id="two parents",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "1", "B"), ("1", "2", "A")],
            ['row 4: "1" has no parent in row 2 already, not the parent "2".'],
            id="root",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "1", "B"), ("2", "1", "C")],
            ['row 4: "2" has other values in row 3 already.'],
            id="two names",
        ),
        pytest.param([("1", "", "A"), ("", "1", "B")], ['row 3: Column "id" has no id.'], id="no id"),
    ],
)
def test_rows_without_a_place_are_rejected_with_their_lines(
    clade: Import, tmp_path: Path, rows: list[tuple[str, str, str]], reasons: list[str]
) -> None:
    file = table(tmp_path / "x.csv", rows)
    done = clade("category", file, *BY)
    assert (done.status, "A" in done.nodes) == (1, True)
    for reason in reasons:
        assert reason in done.said, done.said
    assert f"rejected: {len(reasons)} row" in done.said
    rejected = list(csv.DictReader((tmp_path / "x.rejected.csv").open()))
    assert len(rejected) == len(reasons), "each with its own line"


def test_a_row_that_is_there_twice_is_one(clade: Import, tmp_path: Path) -> None:
    done = clade("category", table(tmp_path / "x.csv", [("1", "", "A"), ("2", "1", "B"), ("2", "1", "B")]), *BY)
    assert (done.status, names(done.nodes)) == (0, {"A": "1", "A/B": "2"}), done.said


def test_what_is_too_deep_is_rejected(clade: Import, tmp_path: Path) -> None:
    rows = [(f"{n}", f"{n - 1}" if n > 1 else "", f"N{n}") for n in range(1, 36)]
    done = clade("category", table(tmp_path / "x.csv", rows[::-1]), *BY)
    assert (done.status, len(done.nodes)) == (1, 32)
    assert done.said.count("The node is more than 32 levels deep.") == 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--tree-by", "id"], "use --tree-by id=ID,parent=PARENT"),
        (["--tree-by", "id=id"], "use --tree-by id=ID,parent=PARENT"),
        (["--tree-by", "id=id,parent=boss"], 'The file has no column "boss"'),
        (["--tree-by", "id=id,parent=parent,level=kind"], 'The file has no column "kind"'),
        ([*BY, "--level", "category=name"], "needs a column of levels: --tree-by id=id,parent=parent,level=COLUMN"),
        ([*BY, "--id", "category=id"], "--id and --fold-case are not for a tree by parent ids"),
        ([*BY, "--attr", "product.colour=name"], 'PRODUCT has no attribute "colour"'),
    ],
)
def test_wrong_options_are_one_sentence(clade: Import, tmp_path: Path, options: list[str], reason: str) -> None:
    done = clade("category", table(tmp_path / "x.csv", GARDEN), *options)
    assert (done.status, done.nodes, reason in done.said) == (1, {}, True), done.said


def test_rows_without_levels_are_of_the_only_level_in_itself_or_of_the_one_that_is_given(
    clade: Import, tmp_path: Path
) -> None:
    file = table(tmp_path / "x.csv", [("1", "", "Ana", "CEO"), ("2", "1", "Bo", "")], ("id", "parent", "name", "title"))
    refused = clade("unit", file, *BY)
    assert (refused.status, refused.nodes) == (1, {})
    assert "Rows of unit without a level may be of several: DEPARTMENT, PERSON; add one of them" in refused.said
    done = clade("unit", file, "--tree-by", "id=id,parent=parent,level=person")
    assert {path: node["level"] for path, node in done.nodes.items()} == {"Ana": "PERSON", "Ana/Bo": "PERSON"}
    assert done.nodes["Ana"]["title"] == "CEO"


def test_rejected_lines_of_json_can_be_corrected(clade: Import, tmp_path: Path) -> None:
    file = written(
        tmp_path / "x.jsonl", '{"id": 1, "parent": null, "name": "A"}\n{"id": 2, "parent": 7, "name": "B"}\n'
    )
    assert clade("category", file, *BY).status == 1
    rejected = tmp_path / "x.rejected.jsonl"
    written(rejected, rejected.read_text().replace('"parent": 7', '"parent": 1'))
    done = clade("category", rejected, *BY)
    assert (done.status, [*done.nodes]) == (0, ["A", "A/B"]), done.said


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_keys_are_the_same_in_any_order_of_rows(clade: Import, tmp_path: Path, seed: int) -> None:
    rows = [("1", "", "US"), ("30", "1", "Springfield"), ("7", "1", "Springfield"), ("5", "1", "")]
    Random(seed).shuffle(rows)  # noqa: S311
    done = clade("category", table(tmp_path / "x.csv", rows), *BY)
    assert names(done.nodes) == {"US": "1", "US/5": "5", "US/Springfield": "7", "US/Springfield (30)": "30"}, done.said


def test_the_key_of_a_node_never_changes_for_a_new_sibling(clade: Import, tmp_path: Path) -> None:
    file = table(tmp_path / "x.csv", [("1", "", "US"), ("30", "1", "Springfield")])
    clade("category", file, *BY)
    table(file, [("1", "", "US"), ("7", "1", "Springfield"), ("30", "1", "Springfield")])
    done = clade("category", file, *BY)
    assert names(done.nodes) == {"US": "1", "US/Springfield": "30", "US/Springfield (7)": "7"}, done.said
    table(file, [("1", "", "US"), ("8", "1", "Springfield")])
    done = clade("category", file, *BY)
    assert names(done.nodes)["US/Springfield (8)"] == "8", "those that the file does not have keep their keys, too"
    assert len(done.nodes) == 4


def test_a_renamed_node_keeps_its_key_and_one_with_a_column_of_keys_gets_the_new_one(
    clade: Import, tmp_path: Path
) -> None:
    header = ("id", "parent", "name", "slug")
    file = table(tmp_path / "x.csv", [("1", "", "Garden", "garden"), ("2", "1", "Mowers", "mowers")], header)
    clade("category", file, *BY)
    table(file, [("1", "", "Gardens", "garden"), ("2", "1", "Mowers", "cutters")], header)
    done = clade("category", file, *BY)
    assert {path: node["name"] for path, node in done.nodes.items()} == {"Garden": "Gardens", "Garden/Mowers": "Mowers"}
    done = clade("category", file, "--tree-by", "id=id,parent=parent,key=slug")
    assert names(done.nodes) == {"garden": "1", "garden/cutters": "2"}, done.said
    assert "moved: 2 (2 CATEGORY)" in done.said


def test_names_that_are_no_keys_and_ids_that_are_no_ids_are_imported(clade: Import, tmp_path: Path) -> None:
    rows = [("http://a.example/#1", "", "A\x07lert"), ("http://a.example/#2", "http://a.example/#1", "n" * 300)]
    file = table(tmp_path / "x.csv", rows)
    done = clade("category", file, *BY)
    keys = [tuple(node["path"]) for node in done.nodes.values()]
    assert (done.status, keys) == (0, [("http://a.example/#1",), ("http://a.example/#1", "http://a.example/#2")]), (
        done.said
    )
    file = table(tmp_path / "x.csv", [("http://b.example/#1", "", "A"), ("b#2", "http://b.example/#1", "B")])
    done = clade("category", file, *BY)
    assert (done.status, list(done.nodes)[:2]) == (0, ["A", "A/B"]), done.said
    assert "Some ids of the file cannot be ids of nodes; these nodes have ids that are made of them." in done.said
    assert "Nothing changed." in clade("category", file, *BY).said


def test_another_tree_with_the_same_paths_is_not_overwritten(clade: Import, tmp_path: Path) -> None:
    clade("category", written(tmp_path / "t.txt", "Garden\nGarden > Mowers\n"))
    done = clade("category", table(tmp_path / "x.csv", GARDEN), *BY)
    assert (done.status, list(done.nodes)) == (1, ["Garden", "Garden/Mowers"])
    assert 'Garden is stored without the id "1" of row 3, as by a file of paths; nothing was imported.' in done.said


# -- later imports -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        pytest.param(
            [("1", "", "A"), ("2", "1", "B"), ("3", "2", "C")], [("1", "2", "A"), ("2", "", "B"), ("3", "1", "C")],
            {"B": "2", "B/A": "1", "B/A/C": "3"}, id="parent and child",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "1", "A")], [("1", "2", "A"), ("2", "", "A")],
            {"A": "2", "A/A": "1"}, id="parent and child of one name",
        ),
        pytest.param(
            [("p", "", "P"), ("q", "", "Q"), ("1", "p", "x"), ("2", "q", "x"), ("3", "1", "y"), ("4", "2", "z")],
            [("p", "", "P"), ("q", "", "Q"), ("1", "q", "x"), ("2", "p", "x"), ("3", "1", "y"), ("4", "2", "z")],
            {"P": "p", "P/x": "2", "P/x/z": "4", "Q": "q", "Q/x": "1", "Q/x/y": "3"}, id="two that swap",
        ),
        pytest.param(
            [("p", "", "P"), ("q", "", "Q"), ("r", "", "R"), ("1", "p", "x"), ("2", "q", "x"), ("3", "r", "x")],
            [("p", "", "P"), ("q", "", "Q"), ("r", "", "R"), ("1", "q", "x"), ("2", "r", "x"), ("3", "p", "x")],
            {"P": "p", "P/x": "3", "Q": "q", "Q/x": "1", "R": "r", "R/x": "2"}, id="three in a circle",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "1", "x")], [("1", "", "A"), ("3", "1", "B"), ("2", "3", "x"), ("4", "1", "x")],
            {"A": "1", "A/B": "3", "A/B/x": "2", "A/x": "4"}, id="a new one where another one was",
        ),
        pytest.param(
            [("1", "", "A"), ("2", "1", "x"), ("3", "", "B"), ("4", "3", "x")],
            [("1", "", "A"), ("2", "1", "x"), ("3", "", "B"), ("4", "1", "x")],
            {"A": "1", "A/x": "2", "A/x (4)": "4", "B": "3"}, id="to a sibling of its name",
        ),
    ],
)  # fmt: skip
def test_a_second_import_moves_what_has_another_parent(
    clade: Import, tmp_path: Path, before: list[tuple[str, str, str]], after: list[tuple[str, str, str]],
    paths: dict[str, str],
) -> None:  # fmt: skip
    file = tmp_path / "x.csv"
    assert clade("category", table(file, before), *BY).status == 0
    dry = clade("category", table(file, after), *BY, "--dry-run")
    assert (dry.status, len(dry.nodes)) == (0, len(before))
    done = clade("category", file, *BY)
    assert (done.status, names(done.nodes)) == (0, paths), done.said
    assert "Nothing changed." in clade("category", file, *BY).said


def test_rows_that_are_absent_are_removed_only_with_prune(clade: Import, tmp_path: Path) -> None:
    file = table(tmp_path / "x.csv", GARDEN)
    clade("category", file, *BY)
    table(file, GARDEN[:3])
    assert len(clade("category", file, *BY).nodes) == 4
    done = clade("category", file, *BY, "--prune")
    assert (done.status, "Garden/Hoses" in done.nodes, len(done.nodes)) == (0, False, 3), done.said


def test_a_part_of_the_rows_is_placed_below_stored_nodes(clade: Import, tmp_path: Path) -> None:
    clade("category", table(tmp_path / "x.csv", GARDEN), *BY)
    done = clade("category", table(tmp_path / "y.csv", [("9", "3", "Small"), ("8", "9", "Red")]), *BY)
    assert (done.status, names(done.nodes)["Garden/Mowers/Robots/Small/Red"]) == (0, "8"), done.said


# -- levels, attributes ------------------------------------------------------------------------------------------------


def test_an_org_chart_with_two_tops_and_levels_is_a_tree(clade: Import, tmp_path: Path) -> None:
    rows = [
        ("7", "d2", "Ana Ruiz", "p", "Painter", ""), ("d1", "", "Works", "d", "", "1.000,5"),
        ("d2", "d1", "Paint shop", "d", "", ""), ("1", "", "Olga Szabo", "p", "Auditor", ""),
        ("2", "1", "Li", "p", "", ""),
    ]  # fmt: skip
    file = table(tmp_path / "x.csv", rows, ("Nr", "Reports to", "Name", "kind", "title", "Money"))
    words = ["--tree-by", "id=Nr,parent=Reports to,level=kind", "--level", "department=d", "--level", "person=p"]
    done = clade("unit", file, *words, "--attr", "department.budget=Money", "--numbers", "1.234,56")
    assert done.status == 0, done.said
    assert {path: (node["level"], node.get("title"), node.get("budget")) for path, node in done.nodes.items()} == {
        "Olga Szabo": ("PERSON", "Auditor", None),
        "Olga Szabo/Li": ("PERSON", None, None),
        "Works": ("DEPARTMENT", None, 1000.5),
        "Works/Paint shop": ("DEPARTMENT", None, None),
        "Works/Paint shop/Ana Ruiz": ("PERSON", "Painter", None),
    }
    assert "2 roots; nodes by depth: 2, 2, 1" in done.said


def test_levels_and_values_of_rows_are_checked(clade: Import, tmp_path: Path) -> None:
    rows = [("1", "", "Works", "Department", ""), ("2", "1", "x", "Team", ""), ("3", "1", "y", "", ""),
            ("4", "1", "z", "department", "Boss"), ("5", "2", "w", "PERSON", "")]  # fmt: skip
    file = table(tmp_path / "x.csv", rows, ("id", "parent", "name", "kind", "title"))
    done = clade("unit", file, "--tree-by", "id=id,parent=parent,level=kind")
    assert (done.status, list(done.nodes)) == (1, ["Works"])
    for reason in (
        'row 3: Column "kind" has "Team", which is none of the levels DEPARTMENT, PERSON; --level LEVEL=Team says',
        'row 4: Column "kind" has no level.', 'row 5: Column "title": DEPARTMENT has no attribute "title"',
        'row 6: No row has the id of its parent, "2"',
    ):  # fmt: skip
        assert reason.replace('Column "title": ', "") in done.said, done.said


def test_a_number_in_another_format_is_rejected(clade: Import, tmp_path: Path) -> None:
    file = table(tmp_path / "x.csv", [("1", "", "A", "1.5")], ("id", "parent", "name", "budget"))
    done = clade("unit", file, "--tree-by", "id=id,parent=parent,level=department", "--numbers", "1.234,56")
    assert (done.status, done.nodes) == (1, {})
    assert "'1.5', which is not written like 1.234,56, is not a valid Float" in done.said


# -- real files --------------------------------------------------------------------------------------------------------


def test_iso_3166_2_by_the_codes_of_parents(clade: Import, tmp_path: Path) -> None:
    file = real_file(ISO_3166_2)
    done = clade("category", file, "--tree-by", "id=code,parent=parent")
    assert done.status == 0, done.said
    with file.open(encoding="utf-8") as source:
        rows = {row["code"]: row for row in csv.DictReader(source)}
    model = {code: (row["parent"], row["name"]) for code, row in rows.items()}
    ids = {tuple(node["path"]): node["id"] for node in done.nodes.values()}
    assert {own: (ids.get(path[:-1], ""), done.nodes["/".join(path)]["name"]) for path, own in ids.items()} == model
    assert "249 roots; nodes by depth: 249, 3,590, 1,454, 2" in done.said
    assert done.nodes["Estonia/Tartumaa/Tartu (EE-796)"]["name"] == "Tartu"


def test_pairs_of_geonames_have_parents_without_rows(clade: Import, tmp_path: Path) -> None:
    """As in hierarchy.txt: parent, child and type without a header; the top has no row, some have two parents."""
    text = "6295630\t6255146\tADM\n6255146\t2186224\tADM\n6255146\t99237\tADM\n6295630\t6255147\tADM\n"
    file = written(tmp_path / "hierarchy.txt", f"{text}6255147\t99237\tADM\n99237\t94824\t\n")
    words = ["--columns", "parent,child,type", "--tree-by", "id=child,parent=parent"]
    refused = clade("category", file, *words)
    assert (refused.status, refused.nodes) == (1, {})
    done = clade("category", file, *words, "--create-parents")
    assert done.status == 1, "the row of a second parent is rejected"
    assert 'row 5: "99237" has the parent "6255146" in row 3 already, not the parent "6255147".' in done.said
    assert list(done.nodes) == [
        "6295630", "6295630/6255146", "6295630/6255146/2186224", "6295630/6255146/99237",
        "6295630/6255146/99237/94824", "6295630/6255147",
    ]  # fmt: skip
    assert "parents without a row of their own: 1 (1 CATEGORY)" in done.said


def test_many_rows_in_any_order_are_the_tree_that_they_are_by_paths(clade: Import, tmp_path: Path) -> None:
    paths: dict[str, str] = {}
    rows = []
    for number in range(1, 3_001):
        parent = "" if number <= 5 else str((number - 6) // 5 + 1)
        paths[str(number)] = "/".join([*([paths[parent]] if parent else []), f"n{number}"])
        rows.append((str(number), parent, f"n{number}"))
    Random(1).shuffle(rows)  # noqa: S311
    done = clade("category", table(tmp_path / "x.csv", rows), *BY)
    assert (done.status, names(done.nodes)) == (0, {path: own for own, path in paths.items()}), done.said[-500:]


# -- files that may be lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [BY, ["--level", "category=name"]])
def test_very_many_roots_need_a_confirmation(clade: Import, tmp_path: Path, options: list[str]) -> None:
    rows = [(f"a{n}", "", f"N {n}") for n in range(MAX_ROOTS + 1)]
    file = table(tmp_path / "x.csv", rows)
    done = clade("category", file, *options)
    assert (done.status, done.nodes) == (1, {})
    assert "x.csv makes 1,001 roots, so it may be a tree by a parent id or by paths" in done.said
    assert clade("category", file, *options, "--yes").status == 0


def test_a_parent_that_is_an_object_is_no_root(clade: Import, tmp_path: Path) -> None:
    objects = [{"id": 1, "parent": None, "name": "A"}, {"id": 2, "parent": 1, "name": "B"}, {"id": 3, "name": "C"}]
    file = written(tmp_path / "x.json", json.dumps([*objects, {"id": 4, "parent": {"id": 1}, "name": "D"}]))
    done = clade("category", file, *BY)
    assert (done.status, [*done.nodes]) == (1, ["A", "A/B", "C"]), done.said
    assert 'row 4: Column "parent" is empty, but "parent.id" has a value.' in done.said
