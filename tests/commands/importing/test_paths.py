"""Paths in cells of a table, one level in several columns, and parents that a file names only in paths."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from store.errors import BadInput
from store.transfer.formats.cell_paths import CellPaths
from tests.commands.importing.files import Clade, clade, split, stored, table
from tests.selection import examples

__all__ = ["clade"]

SPLIT = """category --level 'category=path split " > "'"""
FEED = """id,title,path,price
A1,Robot,Garden > Mowers,499.00
A2,Hand mower,Garden > Mowers,89.50
A3,Hose,"Garden > ""Pots > Pans"" > Hoses",19.00
"""


def values(nodes: dict[str, dict[str, Any]], *names: str) -> dict[str, tuple[Any, ...]]:
    return {path: tuple(node.get(name) for name in names) for path, node in nodes.items()}


def test_a_product_feed_with_paths_is_a_tree(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "feed.csv").write_text(FEED)
    hierarchy, options = split(f"{SPLIT} --level product=id --name product=title --attr product.price=price")
    done = clade("import", hierarchy, "feed.csv", *options)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert values(stored(clade, "category"), "level", "name", "price") == {
        "Garden": ("CATEGORY", "Garden", None),
        "Garden/Mowers": ("CATEGORY", "Mowers", None),
        "Garden/Mowers/A1": ("PRODUCT", "Robot", "499.00"),
        "Garden/Mowers/A2": ("PRODUCT", "Hand mower", "89.50"),
        "Garden/Pots > Pans": ("CATEGORY", "Pots > Pans", None),
        "Garden/Pots > Pans/Hoses": ("CATEGORY", "Hoses", None),
        "Garden/Pots > Pans/Hoses/A3": ("PRODUCT", "Hose", "19.00"),
    }


CELLS: dict[str, tuple[str, str | None, list[str]]] = {
    "A > B": (" > ", None, ["A,B"]), "A   >  B": (" > ", None, ["A,B"]), "A >B> C": (">", None, ["A,B,C"]),
    "/usr/share": ("/", None, ["usr,share"]), "usr/share/": ("/", None, ["usr,share"]), "A": (" > ", None, ["A"]),
    "A::B": ("::", None, ["A,B"]), "C:\\x\\y z": ("\\", None, ["C:,x,y z"]), "A\tB": ("\t", None, ["A,B"]),
    "T-Shirts - X/Y-": (" - ", None, ["T-Shirts,X/Y-"]), "A; B;C": ("; ", None, ["A,B;C"]),
    "Bags\\/Purses/Red": ("/", None, ["Bags/Purses,Red"]), 'A > "B > ""C"""': (" > ", None, ['A,B > "C"']),
    'TV > 55" > "Best" of': (" > ", None, ['TV,55","Best" of']), "A|B|A|": (" > ", "|", ["A", "B"]),
    'A > "x|y" | A > z\\|': (" > ", "|", ["A,x|y", "A,z|"]), "A, A > B,": (">", ",", ["A", "A,B"]),
    "A > A > A": (" > ", None, ["A,A,A"]), "A>B>>C": (">", ">>", ["A,B", "C"]),
    "日本 » 東京": (" » ", None, ["日本,東京"]), "> A > B >": (" > ", None, ["A,B"]),
    "A" + " " * 100_000 + ">B" + '""' * 100_000: (">", None, ["A,B" + '""' * 100_000]),
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=range(len(CELLS)))
def test_a_cell_is_the_keys_of_its_paths(cell: str) -> None:
    sign, each, paths = CELLS[cell]
    assert [",".join(path) for path in CellPaths(sign, each).read(cell)] == paths


WRONG = {
    "A >  > C": "The path has an empty key", "A >C": "has > without blanks around it", "A>C": "has > without blanks",
    '"A > B': "A quote in \"A > B is not closed",
    '"" > "" > B': "The path has an empty key",
    '"A" > " > "B': "is not closed", "\x07 > A": "U+0007",
}  # fmt: skip


@pytest.mark.parametrize("more", [[], ["--level", "product=sku"]])
def test_a_cell_that_is_no_path_is_rejected(clade: Clade, tmp_path: Path, more: list[str]) -> None:
    rows = [["path", "sku"], ["B", "1"], *[[cell, "2"] for cell in WRONG]]
    (tmp_path / "a.csv").write_bytes(table(rows))
    hierarchy, options = split(SPLIT)
    done = clade("import", hierarchy, "a.csv", *options, *more)
    assert (done.exit_code, {*stored(clade, "category")} - {"B/1"}) == (1, {"B"}), done.output
    for line, reason in zip((tmp_path / "a.rejected.csv").read_text().splitlines()[1:], WRONG.values(), strict=True):
        assert 'Column ""path""' in line
        assert reason.replace('"', '""') in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["category=p split ''"], "split and each need a text each, and not the same"),
        (["category=p split ' | ' each '|'"], "split and each need a text each, and not the same"),
        (["category=p split >"], 'no column "p split >" (paths need quotes: COLUMN split " > " each "|")'),
        (["category=p each '|'"], 'no column "p each \'|\'" (paths need quotes'),
        (["category=p", "product=p split '>'"], "has paths, but a PRODUCT may not stand under a PRODUCT."),
        (["category=p", "product=q", "product=r"], "--level product is in the wrong position"),
        (["category=p", "category=p"], '--level category has the column "p" twice'),
        (["category=p", "category=q", "category=r", "--name=category=s", "--name=category=t"],
         "--name is given 2 times for name of CATEGORY, which has 3 columns: give one, or one for each"),
    ],
)  # fmt: skip
def test_a_wrong_column_of_paths_stops(clade: Clade, tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "a.csv").write_text("p,q,r,s,t\nx,y,z,u,v\n")
    given = [one if one.startswith("--") else f"--level={one}" for one in options]
    refused = clade("import", "category", "a.csv", *given)
    assert isinstance(refused.exception, BadInput), refused.output
    assert message in str(refused.exception)
    assert not (tmp_path / "clade.db").exists()


def test_a_node_below_several_paths_has_one_place(clade: Clade, tmp_path: Path) -> None:
    rows = ["A,1", "A > B | A,2", "A > B | C,3", "C > D|A|E,", "C,4"]
    (tmp_path / "a.csv").write_text("path,sku\n" + "\n".join(rows) + "\n")
    options = ["--level", """category=path split " > " each '|'""", "--level", "product=sku"]
    done = clade("import", "category", "a.csv", *options)
    assert (done.exit_code, [*stored(clade, "category")]) == (1, ["A", "A/1", "A/B", "A/B/2", "C", "C/4", "C/D", "E"])
    assert 'row 4: Column "path" has 2 paths, and the node of "sku" can stand below one of them; write a' in done.stderr


def test_several_paths_of_a_row_are_imported_together_with_its_values_or_not_at_all(
    clade: Clade, tmp_path: Path
) -> None:  # fmt: skip
    rows = ["A > B|C > D,Both,", "E > F|G,Two,7", "H|\x07 > J,Bad,", "K|L > M,,", "A > B,Other,", "N,One,8"]
    (tmp_path / "a.csv").write_text("path,title,no\n" + "\n".join(rows) + "\n")
    options = ["--level", """category=path split " > " each '|'""", "--name", "category=title", "--id", "category=no"]
    done = clade("import", "category", "a.csv", *options)
    assert done.exit_code == 1
    assert values(stored(clade, "category"), "name") == {
        "A": ("A",), "A/B": ("Both",), "C": ("C",), "C/D": ("Both",), "K": ("K",), "L": ("L",), "L/M": ("M",),
        "N": ("One",),
    }  # fmt: skip
    assert 'row 3: Column "no": The id 7 is that of another node in the same row.' in done.stderr
    assert "row 6: A/B has the name Both in row 2 already, not Other." in done.stderr


def test_columns_of_one_level_stand_below_one_another(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "Department,D name,Category,C name,Kind,K name,Title,SKU\nG,Garden,,,,,The garden,\n"
        "G,Garden,M,Mowers,R,Robots,All robots,\nG,,M,,,,,P1\nG,,,,R,Others,,\n"
    )
    levels = [
        "--level=category=Department",
        "--level=category=Category",
        "--level=category=Kind",
        "--level=product=SKU",
    ]
    done = clade("import", "category", "a.csv", *levels, "--name", "category=Title")
    assert (done.exit_code, values(stored(clade, "category"), "level", "name")) == (0, {
        "G": ("CATEGORY", "The garden"), "G/M": ("CATEGORY", "M"), "G/M/P1": ("PRODUCT", "P1"),
        "G/M/R": ("CATEGORY", "All robots"), "G/R": ("CATEGORY", "R"),
    }), done.output  # fmt: skip
    names = [f"--name=category={one} name" for one in "DCK"]
    done = clade("import", "category", "a.csv", *levels, *names)
    assert (done.exit_code, [name for (name,) in values(stored(clade, "category"), "name").values()]) == (
        0, ["Garden", "Mowers", "P1", "Robots", "Others"],
    ), done.output  # fmt: skip


# -- any tree ----------------------------------------------------------------------------------------------------------

KEYS = ["Garden", "T-Shirts", "Nuts > Bolts", 'a"b', '"q"', 'x"', "\\", "c:\\d", "Łódź", "x|y", "A/B", "50%", ">", "'s",
        "=1+2", "true", "0", "é" * 50, "a,b;c"]  # fmt: skip
Tree = dict[tuple[str, ...], str]


def grown(choose: random.Random, path: tuple[str, ...] = ()) -> Tree:
    """Names by path of a random tree of categories."""
    found: Tree = {}
    for key in choose.sample(KEYS, choose.randint(1, 3) + (not path)):
        found[*path, key] = choose.choice([key, f"{key} 2", "same"])
        if len(path) < 4 and choose.random() < 0.6:
            found |= grown(choose, (*path, key))
    return found


def changed(choose: random.Random, before: Tree) -> Tree:
    """The tree with other names, without some subtrees below its roots, and with new ones."""
    gone = [path for path in before if len(path) > 1 and choose.random() < 0.1]
    found = {path: name for path, name in before.items() if not any(path[: len(one)] == one for one in gone)}
    found |= {path: "new" for path in found if choose.random() < 0.2}
    root = choose.choice([*found])
    return {(*root, *path): name for path, name in grown(choose).items() if len(root) + len(path) < 8} | found


def cell(choose: random.Random, path: Sequence[str], sign: str, each: str) -> str:
    """A path as a cell, with blanks and escapes as they come."""
    keys: list[str] = []
    for key in path:
        is_hostile = key.startswith('"') or "\\" in key or any(one.strip() in key for one in (sign, each))
        if is_hostile and ("\\" in key or '"' in key or choose.random() < 0.5):
            key = '"' + key.replace('"', '""') + '"'
        elif is_hostile:
            key = key.replace(sign.strip(), f"\\{sign.strip()}").replace(each, f"\\{each}")
        keys.append(key)
    return sign.replace(" ", choose.choice([" ", "  ", " \u00a0"])).join(keys)


def written(choose: random.Random, tree: Tree, shape: str) -> tuple[bytes, list[str]]:
    """The tree as a table, and the options of its import."""
    sign, each = choose.choice([" > ", ">", "/", " | ", " -> "]), choose.choice([";", "^"])
    depth = max(map(len, tree))
    rows = [[*path, *[""] * (depth - len(path)), name] for path, name in tree.items()]
    header, levels = [*[f"L {number}" for number in range(depth)], "title"], [f"category=L {n}" for n in range(depth)]
    if shape != "columns":
        header = ["a = b", "title"]
        levels = [f"category=a = b split \"{sign}\" each '{each}'"]
        rows = [[cell(choose, path, sign, each), name] for path, name in tree.items()]
    if shape == "several":
        by_name: dict[str, list[str]] = {}
        for path, name in rows:
            by_name.setdefault(name, []).append(path)
        rows = [[f"{choose.choice(['', ' '])}{each} ".join(paths), name] for name, paths in by_name.items()]
    choose.shuffle(rows)
    options = [word for level in levels for word in ("--level", level)]
    return b"\n" + table([header, *rows]) + b"\r\n" * choose.randint(0, 2), [*options, "--name", "category=title"]


@pytest.mark.parametrize("shape", ["path", "several", "columns"])
def test_an_imported_tree_is_that_of_the_file_and_then_that_of_its_next_state(
    clade: Clade, tmp_path: Path, shape: str
) -> None:  # fmt: skip
    for seed in range(examples(2, 40)):
        choose = random.Random(f"{shape} {seed}")  # noqa: S311 - no secret
        (tmp_path / "clade.db").unlink(missing_ok=True)
        tree = grown(choose)
        for state in (tree, changed(choose, tree)):
            content, options = written(choose, state, shape)
            (tmp_path / "a.csv").write_bytes(content)
            done = clade("import", "category", "a.csv", *options, "--prune")
            assert done.exit_code == 0, (seed, done.output, done.exception)
            nodes = stored(clade, "category").values()
            assert {tuple(node["path"]): node["name"] for node in nodes} == state, seed
            assert "Nothing changed." in clade("import", "category", "a.csv", *options, "--prune").stdout


# -- parents that a file only names in paths ---------------------------------------------------------------------------

LINES = [{"path": "G/M/R/P1", "level": "PRODUCT", "name": "Robot"}, {"path": "G/M", "level": "CATEGORY"}]
WAY_OUT = "is neither in the file nor in the table; --create-parents creates it."


def json_lines(lines: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_missing_parents_are_created_by_an_option_and_counted(clade: Clade, tmp_path: Path, name: str) -> None:
    content = {
        "a.csv": "path,level,name\nG/M/R/P1,PRODUCT,Robot\nG/M,CATEGORY,\n", "a.jsonl": json_lines(LINES),
        "a.json": json.dumps(LINES),
    }  # fmt: skip
    (tmp_path / name).write_text(content[name])
    refused = clade("import", "category", name)
    assert (refused.exit_code, stored(clade, "category"), f"Parent G {WAY_OUT}" in refused.stderr) == (1, {}, True)
    for options in (["--dry-run"], []):
        done = clade("import", "category", name, "--create-parents", *options)
        assert done.exit_code == 0, done.output + repr(done.exception)
        assert "parents without a row of their own: 2 (2 CATEGORY)" in done.stdout
    assert values(stored(clade, "category"), "level", "name") == {
        "G": ("CATEGORY", "G"), "G/M": ("CATEGORY", "M"), "G/M/R": ("CATEGORY", "R"), "G/M/R/P1": ("PRODUCT", "Robot"),
    }  # fmt: skip
    again = clade("import", "category", name, "--create-parents", "--prune").stdout
    assert "Nothing changed." in again
    assert "parents" not in again


MISSING: dict[str, tuple[list[dict[str, Any]], list[str], str]] = {
    "location, of several levels": (
        [{"path": "US/NE/Omaha", "level": "CITY"}, {"path": "DE/BY", "level": "STATE"}], ["DE", "DE/BY"],
        "row 1: Parents are missing, and their levels are unclear; add rows for them.",
    ),
    "category, of no level": (
        [{"path": "A/P", "level": "PRODUCT"}, {"path": "A/P/x/B", "level": "CATEGORY"}],
        ["A", "A/P"], "row 2: Parents are missing, and their levels are unclear",
    ),
    "category, by a stored one": ([{"path": "Old/P/v", "level": "VARIANT"}], ["Old/P", "Old/P/v"], ""),
    "category, of a rejected row": (
        [{"path": "G", "level": "PRODUCT"}, {"path": "G/M/R", "level": "CATEGORY"}], [],
        "row 2: Parent G is missing, since row 1 was rejected.",
    ),
    "category, of an id of another node": (
        [{"path": "G/M", "level": "CATEGORY", "id": "7"}, {"path": "H/M", "level": "CATEGORY"}], ["H", "H/M"],
        "row 1: The id 7 belongs to Old; use --moves",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISSING)
def test_parents_are_created_where_their_level_is_certain(clade: Clade, tmp_path: Path, what: str) -> None:
    lines, paths, reason = MISSING[what]
    hierarchy, _, _ = what.partition(",")
    (tmp_path / "a.jsonl").write_text(json_lines([{"path": "Old", "level": "CATEGORY", "name": "O", "id": "7"}]))
    clade("import", "category", "a.jsonl")
    (tmp_path / "a.jsonl").write_text(json_lines(lines))
    done = clade("import", hierarchy, "a.jsonl", "--create-parents")
    nodes = values(stored(clade, hierarchy), "name")
    assert (done.exit_code, [path for path in nodes if path != "Old"]) == (1 if reason else 0, paths), done.output
    assert reason in done.stderr
    assert hierarchy == "location" or nodes["Old"] == ("O",)


def test_a_node_is_moved_below_created_parents(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json_lines([{"path": "A", "level": "CATEGORY", "id": "7"}]))
    clade("import", "category", "a.jsonl")
    (tmp_path / "a.jsonl").write_text(json_lines([{"path": "G/M/A", "level": "CATEGORY", "id": "7"}]))
    refused = clade("import", "category", "a.jsonl", "--moves")
    assert (refused.exit_code, [*stored(clade, "category")]) == (1, ["A"])
    done = clade("import", "category", "a.jsonl", "--moves", "--create-parents")
    nodes = stored(clade, "category")
    assert (done.exit_code, [*nodes], nodes["G/M/A"]["id"]) == (0, ["G", "G/M", "G/M/A"], "7"), done.output
    assert "parents without a row of their own: 2 (2 CATEGORY)" in done.stdout
