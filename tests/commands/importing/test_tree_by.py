"""`--tree-by`: its parts, and trees by parent ids and by codes as files and tables have them."""

import csv
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import openpyxl
import pyarrow
import pytest
from click.testing import Result
from pyarrow import parquet

from commands.importing.files import tree_by
from store.errors import BadInput
from store.model.paths import format_path
from store.transfer.formats.columns import TreeBy
from store.transfer.parent_ids import hashed_id, node_id_of
from tests.commands.conftest import Clade


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id=ID,parent=PARENT", TreeBy(id="ID", parent="PARENT")),
        (" parent = p:q , id = a=b ", TreeBy(id="a=b", parent="p:q")),
        ('id=i d,"parent=Parent, if ""any""",key=dc:id=1,level=Ü', TreeBy(
            id="i d", parent='Parent, if "any"', key="dc:id=1", level="Ü")),
        ("prefix=code", TreeBy(prefix="code")),
        ("indent", TreeBy(indent="")),
        ("indent=Name", TreeBy(indent="Name")),
        ("depth=d,name=n", TreeBy(depth="d", name="n")),
        ("children=subs | kids,key=k,name=n,id=i", TreeBy(children=("subs", "kids"), key="k", name="n", id="i")),
        *((text, None) for text in (
            "", ",", "id=ID", "parent=P", "id=,parent=P", "id=a,parent=b,id=c", "id=a,parent=b,prefix=c", "prefix",
            "prefix=a,name=b", "indent=", "indent=a,depth=b", "children=", "children= | ", "children=a,parent=b",
            "key=a", "ID=a,PARENT=b", 'id=a,"parent=b', "level=a,key=b", "id=a,parent=b,name=c",
        )),
    ],
)  # fmt: skip
def test_how_the_tree_is_written_is_said_by_parts(text: str, expected: TreeBy | None) -> None:
    if expected is not None:
        assert tree_by(text) == expected
    else:
        with pytest.raises(BadInput, match="--tree-by"):
            tree_by(text)


def table(file: Path, rows: Iterable[Sequence[object]], header: Sequence[str] = ("id", "parent", "name")) -> Path:
    with file.open("w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([header, *rows])
    return file


def stored(clade: Clade, hierarchy: str = "category") -> dict[str, dict[str, Any]]:
    """The stored nodes by path."""
    nodes = map(json.loads, clade("export", hierarchy).stdout.splitlines())
    return {format_path(tuple(node["path"])): node for node in nodes}


def ids(clade: Clade, hierarchy: str = "category") -> dict[str, str]:
    return {path: node["id"] for path, node in stored(clade, hierarchy).items()}


def said(result: Result) -> str:
    return f"{result.output}{result.exception or ''}"


BY = ("--tree-by", "id=id,parent=parent")
GARDEN = [("3", "2", "Robots"), ("1", "", "Garden"), ("2", "1", "Mowers"), ("4", "1", "Hoses")]
PATHS = {"Garden": "1", "Garden/Hoses": "4", "Garden/Mowers": "2", "Garden/Mowers/Robots": "3"}


@pytest.mark.parametrize("form", ["csv", "txt", "jsonl", "json", "geojson", "xlsx", "parquet"])
def test_a_tree_by_parent_ids_is_read_in_every_format(clade: Clade, tmp_path: Path, form: str) -> None:
    file, header = tmp_path / f"x.{form}", ("id", "parent", "name")
    objects = [dict(zip(header, row, strict=True)) for row in GARDEN]
    match form:
        case "csv":
            table(file, GARDEN)
        case "txt":
            file.write_text("".join("\t".join(row) + "\n" for row in (header, *GARDEN)))
        case "jsonl":
            file.write_text("".join(json.dumps(one) + "\n" for one in objects))
        case "json":
            file.write_text(json.dumps(objects))
        case "geojson":
            features = [{"type": "Feature", "properties": one, "geometry": None} for one in objects]
            file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        case "parquet":
            parquet.write_table(pyarrow.Table.from_pylist(objects), file)
        case _:
            book = openpyxl.Workbook()
            for row in (header, *GARDEN):
                book.active.append([int(cell) if cell.isdigit() else cell for cell in row])
            book.save(file)
    done = clade("import", "category", file, *BY)
    assert (done.exit_code, ids(clade)) == (0, PATHS), said(done)
    again = clade("import", "category", file, *BY)
    assert (again.exit_code, "Nothing changed.\nunchanged: 4" in again.stdout) == (0, True), said(again)


def test_a_description_writes_nothing_and_missing_parents_are_created_if_wanted(clade: Clade, tmp_path: Path) -> None:
    described = clade("import", "category", table(tmp_path / "x.csv", GARDEN), *BY, "--describe")
    assert (described.exit_code, stored(clade)) == (0, {}), said(described)
    file = table(tmp_path / "x.csv", [("2", "1", "B"), ("4", "", "C"), ("3", "x y", "D")])
    done = clade("import", "category", file, *BY, "--create-parents")
    assert (done.exit_code, ids(clade)) == (0, {"1": "1", "1/B": "2", "C": "4", "x y": hashed_id("x y"), "x y/D": "3"})
    assert "created: 2 parents without a row." in done.stdout
    assert "Nothing changed." in clade("import", "category", file, *BY).stdout, "they are stored now"


@pytest.mark.parametrize("text", ["", "0", "-1", "#", "NULL", "Root", "1", "elsewhere"])
def test_a_root_has_no_parent_or_itself_or_one_that_all_roots_name_and_no_row_has(
    clade: Clade, tmp_path: Path, text: str
) -> None:
    rows = [("2", "1", "B"), ("1", text, "A"), *([("3", "elsewhere", "C")] if text == "elsewhere" else [])]
    done = clade("import", "category", table(tmp_path / "x.csv", rows), *BY)
    assert done.exit_code == 0, said(done)
    assert {**ids(clade), "C": ""} == {"A": "1", "A/B": "2", "C": ""} | ({"C": ""})
    assert ('No row has the id "elsewhere", the parent of 2 rows, which are roots.' in done.stdout) == (
        text == "elsewhere"
    )
    assert "Nothing changed." in clade("import", "category", tmp_path / "x.csv", *BY).stdout
    part = table(tmp_path / "part.csv", [("8", "77", "X"), ("9", "77", "Y")])
    refused = clade("import", "category", part, *BY)
    assert (refused.exit_code, "X" in stored(clade)) == (1, False), "a part of a tree has no roots of its own"


def test_a_text_that_means_no_parent_may_be_an_id(clade: Clade, tmp_path: Path) -> None:
    clade("import", "category", table(tmp_path / "x.csv", [("5", "0", "B"), ("0", "", "A"), ("6", "#", "C")]), *BY)
    assert ids(clade) == {"A": "0", "A/B": "5", "C": "6"}


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        (
            [("1", "", "A"), ("2", "9", "B"), ("3", "2", "C")],
            ['row 3: No row has the id "9" of its parent; --create-parents', "row 4: Its parent, row 3, was rejected."],
        ),
        (
            [("1", "", "A"), ("2", "3", "B"), ("3", "4", "C"), ("4", "2", "D"), ("5", "4", "E")],
            [f"row {row}: The parents are a circle of the rows 3, 4, 5." for row in (3, 4, 5)]
            + ["row 6: Its parent, row 5, was rejected."],
        ),
        (
            [("1", "", "A"), ("2", "1", "B"), ("3", "2", "C"), ("3", "1", "C")],
            [
                'row 4: "3" has the parent "1" in row 5, and the parent "2" here.',
                'row 5: "3" has the parent "2" in row 4 already, not the parent "1".',
            ],
        ),
        (
            [("1", "", "A"), ("2", "", "B"), ("3", "2", "C"), ("2", "1", "B")],
            [
                'row 3: "2" has the parent "1" in row 5, and no parent here.',
                "row 4: Its parent, row 3, was rejected.",
                'row 5: "2" has no parent in row 3 already, not the parent "1".',
            ],
        ),
        ([("1", "", "A"), ("2", "1", "B"), ("2", "1", "C")], ['row 4: "2" has other values in row 3 already.']),
        ([("1", "", "A"), ("", "1", "B")], ['row 3: Column "id" is empty']),
        (
            [(f"{n}", f"{n - 1}" if n > 1 else "", "A" if n == 1 else f"N{n}") for n in range(35, 0, -1)],
            ["row 2: Its parent, row 4, was rejected.", "row 4: The node is more than 32 levels deep."],
        ),
    ],
    ids=["orphan", "circle", "two parents", "root with a parent", "two names", "no id", "too deep"],
)
def test_rows_without_a_place_are_rejected_with_their_lines(
    clade: Clade, tmp_path: Path, rows: list[tuple[str, str, str]], reasons: list[str]
) -> None:
    done = clade("import", "category", table(tmp_path / "x.csv", rows), *BY)
    assert (done.exit_code, "A" in stored(clade)) == (1, True)
    assert [reason for reason in reasons if reason not in done.stderr] == [], said(done)
    rejected = tmp_path / "x.rejected.csv"
    assert len(list(csv.DictReader(rejected.open()))) == max(3 * (len(rows) > 9), len(reasons))
    table(rejected, [("30", "1", "Z")])
    assert clade("import", "category", rejected, *BY).exit_code == 0, "once it is corrected, below stored nodes"


def test_equal_rows_are_one_and_keys_are_the_same_in_any_order(clade: Clade, tmp_path: Path) -> None:
    rows = [("1", "", "US"), ("30", "1", "Springfield"), ("7", "1", "Spring\u00adfield"), ("5", "1", ""),
            ("x:y#z", "1", "Springfield"), ("8", "1", "S" * 400), ("30", "1", "Springfield")]  # fmt: skip
    Random(1).shuffle(rows)  # noqa: S311
    done = clade("import", "category", table(tmp_path / "x.csv", rows), *BY)
    assert (done.exit_code, "repeated: 1 row that another row equals." in done.stdout) == (0, True), said(done)
    hashed = hashed_id("x:y#z")
    assert ids(clade) == {
        "US": "1", "US/5": "5", "US/8": "8", "US/Springfield": "7", "US/Springfield (30)": "30",
        "US/Springfield (x:y#z)": hashed,
    }  # fmt: skip
    assert stored(clade)["US/Springfield (30)"]["name"] == "Springfield"


def test_the_key_of_a_stored_node_changes_neither_for_a_new_sibling_nor_for_a_new_name(
    clade: Clade, tmp_path: Path
) -> None:
    header, file = ("id", "parent", "name", "slug"), tmp_path / "x.csv"
    clade("import", "category", table(file, [("1", "", "US", "us"), ("30", "1", "Spring", "s")], header), *BY)
    table(file, [("1", "", "USA", "us"), ("7", "1", "Spring", "t"), ("30", "1", "Spring", "s")], header)
    clade("import", "category", file, *BY)
    assert ids(clade) == {"US": "1", "US/Spring": "30", "US/Spring (7)": "7"}
    assert stored(clade)["US"]["name"] == "USA"
    clade("import", "category", table(file, [("1", "", "USA", "us"), ("8", "1", "Spring", "u")], header), *BY)
    assert ids(clade)["US/Spring (8)"] == "8", "those that the file does not have keep their keys, too"
    done = clade("import", "category", file, "--tree-by", "id=id,parent=parent,key=slug", "--prune")
    assert (done.exit_code, ids(clade)) == (0, {"us": "1", "us/u": "8"}), said(done)


def test_another_tree_with_the_same_paths_is_not_overwritten(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("Garden\nGarden > Mowers\n")
    clade("import", "category", tmp_path / "t.txt")
    done = clade("import", "category", table(tmp_path / "x.csv", GARDEN), *BY)
    assert (done.exit_code, list(stored(clade))) == (1, ["Garden", "Garden/Mowers"])
    assert 'Garden is stored without the id "1" of row 3, as by a file of paths; nothing was imported.' in said(done)


X, P, Q, R = (("", "X"), ("", "P"), ("", "Q"), ("", "R"))


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"1": X, "2": ("1", "B"), "3": ("2", "C")}, {"1": ("2", "X"), "2": ("", "B"), "3": ("1", "C")},
         {"B": "2", "B/X": "1", "B/X/C": "3"}),
        ({"1": X, "2": ("1", "X")}, {"1": ("2", "X"), "2": X}, {"X": "2", "X/X": "1"}),
        ({"0": P, "1": ("0", "X"), "2": ("1", "X")}, {"0": P, "1": ("2", "X"), "2": ("0", "X")},
         {"P": "0", "P/X": "2", "P/X/X": "1"}),
        ({"p": P, "q": Q, "1": ("p", "x"), "2": ("q", "x"), "3": ("1", "y"), "4": ("2", "z")},
         {"p": P, "q": Q, "1": ("q", "x"), "2": ("p", "x"), "3": ("1", "y"), "4": ("2", "z")},
         {"P": "p", "P/x": "2", "P/x/z": "4", "Q": "q", "Q/x": "1", "Q/x/y": "3"}),
        ({"p": P, "q": Q, "r": R, "1": ("p", "x"), "2": ("q", "x"), "3": ("r", "x")},
         {"p": P, "q": Q, "r": R, "1": ("q", "x"), "2": ("r", "x"), "3": ("p", "x")},
         {"P": "p", "P/x": "3", "Q": "q", "Q/x": "1", "R": "r", "R/x": "2"}),
        ({"1": X, "2": ("1", "x")}, {"1": X, "3": ("1", "B"), "2": ("3", "x"), "4": ("1", "x")},
         {"X": "1", "X/B": "3", "X/B/x": "2", "X/x": "4"}),
        ({"1": X, "4": ("1", "X"), "p": P, "2": ("p", "X")}, {"1": ("p", "X"), "4": ("2", "X"), "p": P, "2": X},
         {"P": "p", "P/X": "1", "X": "2", "X/X": "4"}),
        ({"1": X, "2": ("1", "x"), "3": P, "4": ("3", "x")}, {"1": X, "2": ("1", "x"), "3": P, "4": ("1", "x")},
         {"X": "1", "X/x": "2", "X/x (4)": "4", "P": "3"}),
    ],
    ids=["parent and child", "of one key", "below a root", "a swap", "a circle of three", "where another one was",
         "to the path of a former parent", "to a sibling of its name"],
)  # fmt: skip
def test_a_second_import_moves_what_has_another_parent(
    clade: Clade, tmp_path: Path, before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]],
    paths: dict[str, str],
) -> None:  # fmt: skip
    file = table(tmp_path / "x.csv", [(own, *rest) for own, rest in before.items()])
    assert clade("import", "category", file, *BY).exit_code == 0
    table(file, [(own, *rest) for own, rest in after.items()])
    dry = clade("import", "category", file, *BY, "--dry-run")
    assert (dry.exit_code, len(ids(clade))) == (0, len(before))
    done = clade("import", "category", file, *BY)
    assert (done.exit_code, ids(clade)) == (0, dict(sorted(paths.items()))), said(done)
    assert "Nothing changed." in clade("import", "category", file, *BY).stdout
    assert clade("check").exit_code == 0


def test_levels_and_values_are_those_of_rows(clade: Clade, tmp_path: Path) -> None:
    rows = [("1", "", "USA", "Country"), ("2", "1", "NE", "state"), ("3", "2", "Omaha", "City", "", "1.500"),
            ("4", "2", "x", "Team"), ("5", "2", "68118", "Postal code", "7"), ("6", "2", "y", "")]  # fmt: skip
    file = table(tmp_path / "x.csv", rows, ("Nr", "a:b=c", "Name", "What, if any", "Square feet", "Population"))
    words = ["import", "location", file, "--tree-by", 'id=Nr,parent=a:b=c,"level=What, if any"']
    done = clade(*words, "--numbers", "1.234,56")
    assert (done.exit_code, list(stored(clade, "location"))) == (1, ["USA", "USA/NE", "USA/NE/Omaha"])
    assert stored(clade, "location")["USA/NE/Omaha"]["population"] == 1500
    for reason in (
        'row 5: Column "What, if any": Team is none of the levels', "row 6: POSTAL_CODE has no attribute",
        "row 7: Below STATE there may be COUNTY or CITY",
    ):  # fmt: skip
        assert reason in done.stderr, said(done)


def test_levels_that_places_do_not_say_need_a_column(clade: Clade, tmp_path: Path) -> None:
    done = clade("import", "location", table(tmp_path / "x.csv", GARDEN), *BY)
    assert (done.exit_code, stored(clade, "location")) == (1, {})
    assert "Below COUNTRY there may be REGION or STATE or CITY; level=COLUMN of --tree-by names" in said(done)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--tree-by", "id=id,parent=boss"], 'The file has no column "boss"'),
        (["--tree-by", "id=id,parent=parent,level=kind"], 'The file has no column "kind"'),
        ([*BY, "--level", "category=name"], "which --tree-by has not"),
        ([*BY, "--fill-down", "parent"], "which --tree-by has not"),
        ([*BY, "--level-ids"], "--level-ids"),
        ([*BY, "--attr", "product.colour=name"], 'PRODUCT has no attribute "colour"'),
        (["--tree-by", "children=name"], "--tree-by children is not for"),
        (["--tree-by", "prefix=name"], "No code begins with another one"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    clade: Clade, tmp_path: Path, options: list[str], reason: str
) -> None:
    done = clade("import", "category", table(tmp_path / "x.csv", GARDEN), *options)
    assert (done.exit_code, stored(clade), reason in said(done)) == (1, {}, True), said(done)


def test_a_parent_that_is_an_object_is_no_root(clade: Clade, tmp_path: Path) -> None:
    objects = [{"id": 1, "name": "A"}, {"id": 2, "parent": 1, "name": "B"}, {"id": 4, "parent": {"id": 1}}]
    file = tmp_path / "x.json"
    file.write_text(json.dumps(objects))
    done = clade("import", "category", file, *BY)
    assert (done.exit_code, [*stored(clade)]) == (1, ["A", "A/B"]), said(done)
    assert 'row 3: Column "parent" is empty, but "parent.id" has a value.' in done.stderr


def test_items_of_a_table_are_a_tree_by_parent_ids(clade: Clade, tmp_path: Path) -> None:
    items = [{"id": {"N": own}, "parent": {"S": parent} if parent else {"NULL": True}, "name": {"S": name}}
             for own, parent, name in GARDEN]  # fmt: skip
    items += [{"id": {"N": "9"}, "parent": {"S": "1"}, "name": {"S": "Late"}, "price": {"BOOL": True}}]
    file = tmp_path / "x.json"
    file.write_text("".join(json.dumps({"Item": item}) + "\n" for item in items))
    done = clade("import", "category", file, *BY, "--skip", "name=Late")
    assert (done.exit_code, ids(clade)) == (0, PATHS), said(done)


@pytest.mark.parametrize(
    ("codes", "paths"),
    [
        ("1111 111 11 12", ["11", "11/111", "11/111/1111", "12"]),
        ("BE10 BE BE1 BG", ["BE", "BE/BE1", "BE/BE1/BE10", "BG"]),
        ("01 01.1 01.11 02 02.10", ["01", "01/01.1", "01/01.1/01.11", "02", "02/02.10"]),
        ("A01 A01.1 A01.111", ["A01", "A01/A01.1", "A01/A01.1/A01.111"]),
        ("31000000 30000000 71000000 71100000 71111000", [
            "30000000", "31000000", "71000000", "71000000/71100000", "71000000/71100000/71111000"]),
        ("10000000 10100000 10101500 10101501 11000000", [
            "10000000", "10000000/10100000", "10000000/10100000/10101500", "10000000/10100000/10101500/10101501",
            "11000000"]),
        ("31-33 311 3111 44–45 45", ["31-33", "31-33/311", "31-33/311/3111", "44–45", "44–45/45"]),
        ("A00-B99 A00-A09 A00 A00.1 B00 C00", [
            "A00-B99", "A00-B99/A00-A09", "A00-B99/A00-A09/A00", "A00-B99/A00-A09/A00/A00.1", "A00-B99/B00", "C00"]),
        ("1 1.1 2 3 4 5 6 8 9 10 10.1 11", ["1", "1/1.1", "10", "10/10.1", "11", *"2345689"]),
        ("10000000 10100000 10101500 10110000 10111300 20100000", [
            "10000000", "10000000/10100000", "10000000/10100000/10101500", "10000000/10110000",
            "10000000/10110000/10111300", "20100000"]),
        ("43000000 43210000 43211500 44120000 44121700", [
            "43000000", "43000000/43210000", "43000000/43210000/43211500", "44120000", "44120000/44121700"]),
        ("AZ AZ-BA AZ-BAB AZ-SA AZ-SAD", ["AZ", "AZ/AZ-BA", "AZ/AZ-BAB", "AZ/AZ-SA", "AZ/AZ-SAD"]),
        (" ".join(f"{n} 2.{n}" for n in range(1, 12)), [f"{above}{n}" for above in ("", "2/2.") for n in range(1, 12)]),
    ],
    ids=[
        "digits", "letters", "dots", "both", "zeros", "pairs", "ranges", "ranges in ranges", "an outline with a gap",
        "pairs without a root", "pairs without roots", "words", "an outline",
    ],
)  # fmt: skip
def test_codes_are_below_those_that_they_begin_with(clade: Clade, tmp_path: Path, codes: str, paths: list[str]) -> None:
    rows = [(code, f"Name of {code}") for code in codes.split()]
    Random(2).shuffle(rows)  # noqa: S311
    done = clade("import", "category", table(tmp_path / "x.csv", rows, ("Code", "name")), "--tree-by", "prefix=Code")
    assert (done.exit_code, sorted(stored(clade))) == (0, sorted(paths)), said(done)
    assert stored(clade)[paths[-1]]["name"] == f"Name of {paths[-1].rpartition('/')[2]}"


def test_a_code_whose_parent_has_no_row_is_below_the_nearest_and_counted(clade: Clade, tmp_path: Path) -> None:
    file = table(tmp_path / "x.csv", [(code,) for code in "11 112 1111 99999 1".split()], ["code"])
    done = clade("import", "category", file, "--tree-by", "prefix=code", "--id", "category=code")
    assert ids(clade) == {"1": "1", "1/11": "11", "1/11/1111": "1111", "1/11/112": "112", "99999": "99999"}
    assert "2 codes below the nearest one that begins it" in done.stdout
    table(file, [(code,) for code in "11 111 112 1111 99999 1".split()], ["code"])
    done = clade("import", "category", file, "--tree-by", "prefix=code", "--id", "category=code", "--moves")
    assert (done.exit_code, ids(clade)["1/11/111/1111"]) == (0, "1111"), said(done)


WORDS = ["A", "a", "A ", "É", "E\u0301", "0", "~", "a/b", "%2F", "<&>", "’", "東京", "\u00ad", "-", "A (1)", "x" * 90]
IDS = [*"123456789", "10", "é", "a b", "x#1", "http://x/1", "%", "'", '"', "A", "00", "a,b"]


def _random_tree(choose: Random, before: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Ids with their parents and names: new ones, or many of those before, moved, renamed and with siblings."""
    tree: dict[str, tuple[str, str]] = {}
    for own in choose.sample(IDS, choose.randint(len(IDS) // 2, len(IDS))):
        parent, name = before.get(own, ("?", choose.choice(WORDS)))
        if parent not in ("", *tree) or choose.random() < 0.4:
            parent = choose.choice(["", *tree])
        tree[own] = parent, choose.choice(WORDS) if choose.random() < 0.2 else name
    return tree


@pytest.mark.both_stores
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(3, 60))])
def test_a_nightly_file_keeps_its_tree(clade: Clade, tmp_path: Path, seed: int) -> None:
    choose, tree, before = Random(seed), dict[str, tuple[str, str]](), dict[str, dict[str, Any]]()  # noqa: S311
    for _ in range(3):
        tree = _random_tree(choose, tree)
        rows = [(own, *rest) for own, rest in tree.items()]
        choose.shuffle(rows)
        file = table(tmp_path / "x.csv", rows)
        done = clade("import", "category", file, *BY)
        assert (done.exit_code, done.stderr.count("rejected")) == (0, 0), said(done)
        after = {node["id"]: node for node in stored(clade).values()}
        at = {tuple(node["path"]): own for own, node in after.items()}
        parents = {own: at.get(tuple(node["path"][:-1]), "") for own, node in after.items()}
        wanted = {node_id_of(own): (parent and node_id_of(parent), name) for own, (parent, name) in tree.items()}
        assert {own: parents[own] for own in wanted} == {own: parent for own, (parent, _) in wanted.items()}
        for own, (_, name) in wanted.items():
            key = after[own]["path"][-1]
            assert unicodedata.normalize("NFC", after[own]["name"]) == unicodedata.normalize("NFC", name.strip())
            assert own not in before or before[own]["path"][-1].split(" (")[0] == key.split(" (")[0]
            stays = own in before and before[own]["above"] == parents[own]
            assert not stays or before[own]["path"][-1] == key
        assert {own for own in before if own not in after} == set(), "nothing is removed"
        assert "Nothing changed." in clade("import", "category", file, *BY).stdout
        assert clade("check").exit_code == 0
        before = {own: {**node, "above": parents[own]} for own, node in after.items()}
