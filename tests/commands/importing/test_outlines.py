"""Outlines: depths by blanks, marks, headings and branches of texts, and by blanks or numbers in a column."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from store.errors import BadInput
from tests.commands.importing.files import Clade, clade, excel, stored, table
from tests.commands.importing.test_paths import Tree, changed, grown
from tests.selection import examples

__all__ = ["clade"]

SHAPE = ["Tools", "Tools/Saws", "Tools/Saws/Hand Saws", "Tools/Axes", "Garden", "Garden/Hoses"]
LINES = {
    "blanks": "Tools\n  Saws\n    Hand Saws\n\n  Axes\nGarden\n  Hoses\n",
    "tabs": "\ufeff\tTools\r\n\t\tSaws\r\n\t\t\tHand Saws\r\n \r\n\t\tAxes\r\n\tGarden\r\n\t\tHoses",
    "one blank": "Tools\n Saws\n  Hand Saws\n Axes\nGarden\n Hoses",
    "list": "* Tools\n    - Saws\n        + Hand Saws\n    * Axes\n*   Garden\n    * Hoses\n",
    "list below texts": "Tools\n- Saws\n  - Hand Saws\n- Axes\nGarden\n- Hoses\n",
    "repeated marks": "- Tools\n-- Saws\n--- Hand Saws\n-- Axes\n- Garden\n-- Hoses\n",
    "marks below texts": "Tools\n. Saws\n.. Hand Saws\n. Axes\nGarden\n. Hoses\n",
    "headings": "## Tools\n### Saws\n#### Hand Saws\n### Axes\n## Garden\n### Hoses\n",
    "headings and lists": "# Tools\n- Saws\n  - Hand Saws\n- Axes\n\n# Garden\n- Hoses\n",
    "headings of several depths and lists": "# Tools\n## Saws\n* Hand Saws\n## Axes\n# Garden\n* Hoses\n",
}
BRANCHES = {
    "tree": "Tools\n├── Saws\n│\u00a0\u00a0 ├── Hand Saws\n│\u00a0\u00a0 └── Jig\n└── Axes\n    └── Big\n"
    "\n6 directories, 0 files\n",
    "tree --charset=ascii": "Tools\n|-- Saws\n|   |-- Hand Saws\n|   `-- Jig\n`-- Axes\n    `-- Big\n",
    "tree of Windows": "Tools\n├───Saws\n│   │   Hand Saws\n│   │   Jig\n│\n└───Axes\n    └───Big\n",
    "tree /A of Windows": "Tools\n+---Saws\n|   +---Hand Saws\n|   \\---Jig\n|\n\\---Axes\n    \\---Big\n",
}
DRAWN = ["Tools", "Tools/Saws", "Tools/Saws/Hand Saws", "Tools/Saws/Jig", "Tools/Axes", "Tools/Axes/Big"]


@pytest.mark.parametrize("what", [*LINES, *BRANCHES])
def test_a_text_is_the_tree_that_a_person_sees(clade: Clade, tmp_path: Path, what: str) -> None:
    name = "a.md" if "heading" in what else "a.txt"
    (tmp_path / name).write_text(LINES.get(what) or BRANCHES[what], newline="")
    done = clade("import", "category", name, "--tree-by", "indent")
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert {*stored(clade, "category")} == {*(SHAPE if what in LINES else DRAWN)}


REFUSED = {
    "a jump": ("A\n  B\nC\n    D\n", "Row 4 has no place in the outline: it is indented as no row above it"),
    "no end": ("".join(f"{' ' * n}A\n" for n in range(99)), "Row 33 has no place in the outline: it is below 32 "),
    "no end of headings": ("".join(f"{'#' * n} A\n" for n in range(1, 99)), "Row 33 has no place in the outline: it "),
    "a jump at once": ("A\n  B\n    C\nD\n    E\n", "Row 5 has no place in the outline: it is deeper by more than one"),
    "another width": ("A\n    B\n  C\n", "Row 3 has no place in the outline: it is indented as no row"),
    "tabs and blanks": ("A\n\tB\n        C\n", "Row 3 has no place in the outline: tabs and blanks are mixed"),
    "a jump of headings": ("# A\n### B\n", "Row 2 has no place in the outline: the heading before it is more than one"),
    "a heading above the first": ("## A\n# B\n", "Row 2 has no place in the outline: the heading before it"),
    "text between headings": ("# A\nSome words.\n- B\n", "Row 2 has no place in the outline: it has no mark"),
    "a second line of a mark": ("- A\n  more\n- B\n", "Row 2 has no place in the outline: it has no mark"),
    "a mark without a blank": ("A\n-B\n--C\n", "Row 2 has no place in the outline: it begins with a mark and no blank"),
    "a mark alone": ("- A\n  -\n", "Row 2 has no place in the outline: it begins with a mark"),
    "a note below branches": (BRANCHES["tree"] + "\nEnd of list\n", "Row 10 has no place in the outline: it has no"),
    "nothing that is indented": ("A\nB\nC\n", "No row is below another one: nothing shows their depths."),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_text_with_unclear_depths_stops_with_its_line(clade: Clade, tmp_path: Path, what: str) -> None:
    content, message = REFUSED[what]
    (tmp_path / "a.txt").write_text(content)
    refused = clade("import", "category", "a.txt", "--tree-by", "indent", "--yes")
    assert isinstance(refused.exception, BadInput), refused.output
    assert message in str(refused.exception)
    assert not (tmp_path / "clade.db").exists()


ROWS = [
    ["1", "Tools", "CATEGORY", "", "T"], ["2", "  Hand Saw", "PRODUCT", "9.50", "H"],
    ["3", "\u00a0   red", "variant", "", "R"], ["2", "  Saws", "", "", "S"], ["1", "Garden", "", "", "G"],
]  # fmt: skip
TABLES: dict[str, tuple[str, list[str]]] = {
    "indent=Item name": ("Item name", ["Garden", "Tools", "Tools/Hand Saw", "Tools/Hand Saw/red", "Tools/Saws"]),
    "indent=Item name,key=Code": ("Item name", ["G", "T", "T/H", "T/H/R", "T/S"]),
    "depth=Depth,name=Item": ("Item", ["Garden", "Tools", "Tools/Hand Saw", "Tools/Hand Saw/red", "Tools/Saws"]),
    "depth=Depth,key=Code": ("Name", ["G", "T", "T/H", "T/H/R", "T/S"]),
}


@pytest.mark.parametrize("form", ["csv", "xlsx"])
@pytest.mark.parametrize("tree_by", TABLES)
def test_a_table_is_an_outline_by_a_column(clade: Clade, tmp_path: Path, tree_by: str, form: str) -> None:
    name, paths = TABLES[tree_by]
    rows = [["Depth", name, "Type", "Price", "Code"], *ROWS]
    if form == "xlsx":
        rows[3:3] = [[None] * 5]  # type: ignore[list-item]
    (tmp_path / f"a.{form}").write_bytes(table(rows) if form == "csv" else excel([[*row] for row in rows]))
    command = ["import", "category", f"a.{form}", "--tree-by", f"{tree_by},level=Type"]
    done = clade(*command)
    assert done.exit_code == 0, done.output + repr(done.exception)
    nodes = stored(clade, "category")
    assert [*nodes] == paths
    found = [(node["level"], node["name"], node.get("price")) for node in nodes.values()]
    assert found[2:4] == [("PRODUCT", "Hand Saw", "9.50"), ("VARIANT", "red", None)]
    assert "Nothing changed." in clade(*command).stdout


TABLES_REFUSED = {
    "a jump": ("depth=d", "d,name\n0,A\n2,B\n", "Row 3 has no place in the outline: it is deeper by more than one"),
    "no end": ("depth=d", "d,name\n" + "".join(f"{n},A\n" for n in range(99)), "Row 34 has no place in the outline:"),
    "no number": ("depth=d", "d,name\n0,A\nx,B\n", 'Row 3 has no place in the outline: column "d" has x and no whole'),
    "a long number": ("depth=d", f"d,name\n0,A\n{'9' * 5000},B\n", "Row 3 has no place in the outline: column"),
    "less than the first": ("depth=d", "d,name\n1,A\n0,B\n", "its depth is less than 1, that of the first"),
    "no key": ("depth=d", "d,name\n0,A\n1,\n", "Row 3 has no place in the outline: it has no key."),
    "no such level": ("depth=d,level=l", "d,name,l\n0,A,SHELF\n", 'Column "l": SHELF is none of the levels CATEGORY'),
    "one of several levels": (
        "depth=d", "d,name\n0,A\n1,B\n", "Below COUNTRY there may be REGION or STATE or CITY; level=COLUMN of",
    ),
    "no column": ("indent", "name\nA\n  B\n", "--tree-by indent of a table is indent=COLUMN."),
    "no such column": ("indent=x", "name\nA\n  B\n", 'no column "x"'),
    "a column of a text": ("indent=x", "A\n  B\n", "with columns needs a table; a text is imported by indent alone."),
}  # fmt: skip


@pytest.mark.parametrize("what", TABLES_REFUSED)
def test_a_table_with_unclear_depths_stops_with_its_row(clade: Clade, tmp_path: Path, what: str) -> None:
    tree_by, content, message = TABLES_REFUSED[what]
    name = "a.txt" if what == "a column of a text" else "a.csv"
    (tmp_path / name).write_text(content)
    hierarchy = "location" if what == "one of several levels" else "category"
    refused = clade("import", hierarchy, name, "--tree-by", tree_by)
    assert isinstance(refused.exception, BadInput), refused.output
    assert message in str(refused.exception)
    assert not (tmp_path / "clade.db").exists()


def test_rejected_nodes_are_lines_with_their_paths(clade: Clade, tmp_path: Path) -> None:
    rows = [
        ["Depth", "Name", "Type", "Price"],
        ["1", "A", "", ""],
        ["2", "P", "PRODUCT", "many"],
        ["3", "v", "VARIANT", ""],
    ]
    (tmp_path / "a.csv").write_bytes(table(rows))
    done = clade("import", "category", "a.csv", "--tree-by", "depth=Depth,level=Type")
    assert (done.exit_code, [*stored(clade, "category")]) == (1, ["A"])
    rejected = tmp_path / "a.rejected.jsonl"
    reason, node, missing, below = map(json.loads, rejected.read_text().splitlines())
    assert (node["path"], below["path"]) == (["A", "P"], ["A", "P", "v"])
    assert '"many"' in reason["$reason"]
    assert missing["$reason"].endswith("Parent A/P is missing, since row 3 was rejected.")
    rejected.write_text(rejected.read_text().replace("many", "7.25"))
    assert clade("import", "category", "a.rejected.jsonl").exit_code == 0
    assert [*stored(clade, "category")] == ["A", "A/P", "A/P/v"]


# -- any tree ----------------------------------------------------------------------------------------------------------


def by_blanks(choose: random.Random) -> Callable[[int], str]:
    step, first = choose.choice(["\t", " ", "  ", "\u00a0   ", "   "]), choose.randint(0, 1)
    return lambda depth: step * (depth + first)


def by_marks(choose: random.Random) -> Callable[[int], str]:
    mark, step = choose.choice("-*+•>"), choose.choice(["", "", "  ", "\t"])
    return lambda depth: f"{step * depth}{mark if step else mark * (depth + 1)} "


def by_headings(choose: random.Random) -> Callable[[int], str]:
    least, lists = choose.randint(1, 2), choose.randint(1, 3)
    return lambda depth: f"{'#' * (depth + least)} " if depth < lists else f"{'  ' * (depth - lists)}- "


def by_depth(choose: random.Random) -> Callable[[int], str]:
    first = choose.choice([0, 1, 7])
    return lambda depth: str(depth + first)


@pytest.mark.parametrize(
    ("form", "shape"),
    [(form, shape) for form in ("txt", "csv") for shape in (by_blanks, by_marks, by_headings)] + [("csv", by_depth)],
)
def test_any_outline_is_imported_as_its_tree(
    clade: Clade, tmp_path: Path, form: str, shape: Callable[[random.Random], Callable[[int], str]]
) -> None:  # fmt: skip
    for seed in range(examples(2, 30)):
        choose = random.Random(f"{shape.__name__} {form} {seed}")  # noqa: S311 - no secret
        (tmp_path / "clade.db").unlink(missing_ok=True)
        tree = grown(choose) | {("Root",): "Root", ("Root", "below"): "below"}
        for state in (tree, changed(choose, tree)):
            if shape is by_blanks:  # a lone > is a mark
                state = {path: name for path, name in state.items() if ">" not in path}
            options = written(choose, tmp_path / f"a.{form}", state, shape(choose), is_depth=shape is by_depth)
            command = ["import", "category", f"a.{form}", *options, "--prune"]
            done = clade(*command)
            assert done.exit_code == 0, (seed, done.output, done.exception)
            names = {tuple(node["path"]): node["name"] for node in stored(clade, "category").values()}
            assert names == (state if form == "csv" else {path: path[-1] for path in state}), seed
            assert "Nothing changed." in clade(*command).stdout


def written(
    choose: random.Random, file: Path, tree: Tree, before: Callable[[int], str], *, is_depth: bool
) -> list[str]:  # fmt: skip
    """Write a tree in depth-first order, siblings in any, and return the options of its import."""
    order = {path: choose.random() for path in tree}
    paths = sorted(tree, key=lambda path: [order[path[:depth]] for depth in range(1, len(path) + 1)])
    lines = [before(len(path) - 1) + ("" if is_depth else path[-1]) for path in paths]
    if file.suffix == ".csv":
        rows = [[line, tree[path], path[-1]] for line, path in zip(lines, paths, strict=True)]
        rows[1:1] = choose.choice([[], [["", " ", ""]]])
        file.write_bytes(table([["what", "name", "k"], *rows]))
        return ["--tree-by", "depth=what,key=k" if is_depth else "indent=what"]
    ends = [choose.choice(["\n", "  \n", "\n\n", "\r\n"]) for _ in lines]
    file.write_text("".join(line + end for line, end in zip(lines, ends, strict=True)), newline="")
    return ["--tree-by", "indent"]
