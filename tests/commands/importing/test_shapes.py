"""Random trees, written in the shapes that people bring: an import makes the tree in the file, or writes nothing and
says in a sentence what it saw.
"""

import csv
import json
import random
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli import app_of

Clade = Callable[..., Result]
NodePath = tuple[str, ...]
WORDS = (
    "Garden Mowers Robots Blades Tools Hoses Kitchen Knives Pans Lamps Sofas Tables Boots Coats Hats Paper Pens Ink "
    "Ørsta Łódź Škofja Ñuñoa Αθήνα Київ 東京"
).split()
SIGNS = (" > ", " / ", " | ", ">", "|", "\\", "::", " » ", "»", " → ", " -> ")
SEEDS = range(8)


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command in a directory of its own, on a store that is made by the first import."""
    monkeypatch.chdir(tmp_path)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db"}
    return lambda *words: CliRunner().invoke(app_of(words[:1]), [*map(str, words)], env=environment)


class File(NamedTuple):
    """A file with options by which an import takes its shape for another one, what it says then, and its tree."""

    name: str
    content: str
    options: Sequence[str]
    says: str
    paths: Collection[NodePath]


def tree(choose: random.Random, depth: int, width: int = 3) -> list[NodePath]:
    """The paths of a random tree, parents first; at least one of them has `depth` keys."""

    def below(path: NodePath) -> Iterator[NodePath]:
        keys = choose.sample(WORDS, choose.randint(1, width))
        for number, key in enumerate(keys):
            yield (*path, key)
            if len(path) + 1 < depth and (number == 0 or choose.random() < 0.6):
                yield from below((*path, key))

    return [*below(())]


def table(choose: random.Random, rows: Sequence[Sequence[object]], *, shuffled: bool = False) -> str:
    """A header and rows as CSV, with a random delimiter, in random order."""
    header, *others = rows
    if shuffled:
        choose.shuffle(others)
    output = StringIO()
    delimiter = choose.choice([",", ";", "\t"])
    csv.writer(output, delimiter=delimiter, lineterminator=choose.choice(["\n", "\r\n"])).writerows([header, *others])
    return output.getvalue()


def by_parent_ids(choose: random.Random) -> File:
    paths = tree(choose, 4)
    start, step = choose.choice([1, 100, 9_999]), choose.choice([1, 7])
    ids = {path: f"{start + step * number}" for number, path in enumerate(choose.sample(paths, len(paths)))}
    own, parent = choose.choice([("id", "parent_id"), ("ID", "ParentId"), ("path", "level"), ("key", "belongs under"),
                                 ("code", "x"), ("entity", "übergeordnet")])  # fmt: skip
    root = choose.choice(["", "0"]) if "p" in parent else ""
    header = [own, parent, "name"]
    rows = [[ids[path], ids.get(path[:-1], root), path[-1]] for path in paths]
    if own != "path" and choose.random() < 0.3:
        objects = [dict(zip(header, row, strict=True)) for row in rows]
        content = json.dumps(objects)
        return File("a.json", content, ["--level", f"category={own}", "--name", "category=name"], "parent", paths)
    content = table(choose, [header, *rows], shuffled=True)
    says = "a tree by parent ids"
    return File("a.csv", content, ["--level", f"category={own}", "--name", "category=name"], says, paths)


def by_whole_paths(choose: random.Random) -> File:
    sign = choose.choice(SIGNS)
    everything = paths = tree(choose, 4, 4)
    if choose.random() < 0.5:  # leaves alone
        paths = [path for path in paths if not any(other[: len(path)] == path != other for other in paths)]
    rows = [["Category", "n"], *[[sign.join(path), "x"] for path in paths]]
    content = table(choose, rows, shuffled=True)
    return File("a.csv", content, ["--level", "category=Category"], "has whole paths", everything)


def by_codes(choose: random.Random) -> File:
    paths = tree(choose, 4, 5)
    sign, prefix = choose.choice(["", ".", "-"]), choose.choice(["", "A", "NO"])
    digits = {path: str(number % 9 + 1) for number, path in enumerate(paths)}
    codes: dict[NodePath, str] = {}
    for path in paths:  # siblings have consecutive digits, so different ones
        above = codes.get(path[:-1], prefix)
        codes[path] = f"{above}{sign if path[:-1] else ''}{digits[path]}"
    if len({*codes.values()}) < len(codes) or sum(len(path) > 1 for path in paths) * 2 < len(paths):
        return by_codes(choose)
    rows = [["code", "title"], *[[codes[path], path[-1]] for path in paths]]
    content = table(choose, rows, shuffled=choose.random() < 0.5)
    says = "a tree by codes"
    return File("a.csv", content, ["--level", "category=code", "--name", "category=title"], says, paths)


def without_header(choose: random.Random) -> File:
    rows = [[*path, f"{choose.randint(1, 10**6)}"] for path in tree(choose, 3, 4) if len(path) == 3]
    levels = [f"--level={level}={name}" for level, name in zip(("country", "state", "city"), rows[0], strict=False)]
    if len({*rows[0]}) < 4 or len(rows) < 2:
        return without_header(choose)
    options = [*levels, f"--attr=city.population={rows[0][3]}"]
    return File("a.csv", table(choose, rows), options, "looks like data", ())


KINDS = {
    "category": (by_parent_ids, by_whole_paths, by_codes),
    "location": (without_header,),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hierarchy", KINDS)
def test_a_tree_in_another_shape_is_refused(clade: Clade, tmp_path: Path, hierarchy: str, seed: int) -> None:
    for kind in KINDS[hierarchy]:
        file = kind(random.Random(f"{kind.__name__} {seed}"))  # noqa: S311 - no secret
        (tmp_path / file.name).write_text(file.content, encoding="utf-8", newline="")
        result = clade("import", hierarchy, file.name, *file.options)
        assert file.says in str(result.exception), (kind, file, result.output)
        assert result.exit_code == 1
        assert not (tmp_path / "clade.db").exists()
        if not file.paths:
            continue
        for options in ([], file.options):
            run_proposal(clade, hierarchy, file.name, *options)
            assert tree_of_names(clade, hierarchy) == {*file.paths}, (kind, file, options)
            for part in tmp_path.glob("clade.db*"):
                part.unlink()


def run_proposal(clade: Clade, hierarchy: str, *words: str) -> str:
    """Import a file by the command that a description proposes; returns what it says."""
    described = clade("import", hierarchy, *words, "--describe")
    assert described.exit_code == 0, described.output + repr(described.exception)
    command = shlex.split(described.stdout.splitlines()[-1])
    done = clade(*command[1:])
    assert done.exit_code == 0, (command, done.output, done.exception)
    return described.stdout


def tree_of_names(clade: Clade, hierarchy: str) -> set[NodePath]:
    """The stored nodes by the names of all nodes on their paths."""
    nodes = [json.loads(line) for line in clade("export", hierarchy).stdout.splitlines()]
    names = {tuple(node["path"]): node["name"] for node in nodes}
    return {tuple(names[path[:depth]] for depth in range(1, len(path) + 1)) for path in names}


def stored(clade: Clade) -> set[NodePath]:
    nodes: list[dict[str, Any]] = [json.loads(line) for line in clade("export", "location").stdout.splitlines()]
    return {tuple(node["path"]) for node in nodes}


@pytest.mark.parametrize("seed", SEEDS)
def test_values_of_the_first_rows_of_groups_are_those_of_the_rows_below(
    clade: Clade, tmp_path: Path, seed: int
) -> None:
    choose = random.Random(f"groups {seed}")  # noqa: S311 - no secret
    cities = [path for path in tree(choose, 3, 4) if len(path) == 3]
    header = choose.sample(["Country", "State", "City"], 3)
    blank = choose.sample(["Country", "State"], choose.randint(1, 2))
    rows: list[list[str]] = []
    above: NodePath = ("", "", "")
    for path in cities:
        cells = dict(zip(("Country", "State", "City"), path, strict=True))
        for number, column in enumerate(("Country", "State"), start=1):
            if column in blank and path[:number] == above[:number]:
                cells[column] = choose.choice(["", " "])
        rows.append([cells[column] for column in header])
        above = path
    (tmp_path / "a.csv").write_text(table(choose, [header, *rows]), encoding="utf-8", newline="")
    has_blanks = any(not cell.strip() for row in rows for cell in row)
    plain = clade("import", "location", "a.csv")
    assert (plain.exit_code != 0) == has_blanks, (rows, plain.output)
    assert not has_blanks or "--fill-down" in str(plain.exception) or "rejected: " in plain.stderr
    everything = {path[:number] for path in cities for number in (1, 2, 3)}
    assert stored(clade) <= everything
    filled = clade("import", "location", "a.csv", *[word for column in blank for word in ("--fill-down", column)])
    assert filled.exit_code == 0, (rows, filled.output, filled.exception)
    assert stored(clade) == everything


FLAT = ["--level", "category=Key"]
REFUSED = {
    "indents": ("a.csv", "Key\nTools\n  Saws\n    Hand Saws\nGarden\n", FLAT, "is an outline: '  Saws'"),
    "marks of depth": ("a.txt", "Tools\n- Saws\n-- Hand Saws\nGarden\n", [], "is an outline: '- Saws'"),
    "a column of depths": ("a.csv", "Level,Key\n1,Tools\n2,Saws\n3,Hand Saws\n1,Garden\n", FLAT, "the depths of nodes"),
    "parents without a name": ("a.csv", "id,up,Key\n1,0,A\n2,1,B\n3,1,C\n4,0,D\n5,4,E\n", FLAT, '"up" has'),
    "codes beside the keys": ("a.csv", "Nr,Key\n1,A\n11,B\n111,C\n2,D\n21,E\n", FLAT, '"Nr" of a.csv looks'),
    "codes before the keys": ("a.csv", "Key\n1 A\n11 B\n111 C\n2 D\n21 E\n", FLAT, "a tree by codes"),
    "paths with commas": (
        "a.csv", 'Key\n"Tools, Saws, Hand"\n"Tools, Saws, Jig"\n"Tools, Axes, Big"\n"Tools, Axes, Small"\n', FLAT,
        "has whole paths",
    ),
    "marks for the value above": (
        "a.csv", "Group,Key\nTools,Saws\n-,Axes\nGarden,Hoses\n-,Pots\n",
        ["--level", "category=Group", "--level", "product=Key"], "--null Group=- takes it as no value",
    ),
    "a level without values": (
        "a.csv", "Group,Key,Size\nTools,Saws\nTools,Axes\n",
        ["--level", "category=Group", "--level", "product=Key", "--level", "variant=Size"], '"Size" of a.csv has no',
    ),
    "broken characters": ("a.csv", "Key\nS\ufffdgen\nAxt\n", FLAT, "has broken characters"),
    "values that are objects, too": (
        "a.json", '[{"Key": {"name": "Tools"}, "n": 1}, {"Key": "Garden", "n": 2}]', FLAT, "an object in others",
    ),
    "objects by key": ("a.json", '{"Tools": {"n": 1}, "Garden": {"n": 2}}', FLAT, "has objects by key"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_tree_that_is_not_in_the_keys_is_refused(clade: Clade, tmp_path: Path, what: str) -> None:
    name, content, options, says = REFUSED[what]
    (tmp_path / name).write_text(content, encoding="utf-8")
    result = clade("import", "category", name, *options)
    assert says in str(result.exception), result.output
    assert not (tmp_path / "clade.db").exists()


RIGHT = {
    "houses": ("Key,No\nHigh St,1\nHigh St,1a\nHigh St,2\nHigh St,2a\nHigh St,10\n", 6),
    "articles": ("Key,No\nTools,100\nTools,100-L\nTools,100-R\nTools,200\n", 5),
}


@pytest.mark.parametrize("what", RIGHT)
def test_keys_below_another_level_may_begin_with_each_other(clade: Clade, tmp_path: Path, what: str) -> None:
    content, nodes = RIGHT[what]
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    result = clade("import", "category", "a.csv", *FLAT, "--level", "product=No")
    assert f"added: {nodes} " in result.stdout, result.exception


def test_an_empty_column_that_is_only_named_like_a_level_and_roots_with_numbers_need_no_option(
    clade: Clade, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("Country,City,Postal code\nNO,Moss,\nNO,Halden,\n", encoding="utf-8")
    assert "added: 3 (1 COUNTRY, 2 CITY)" in clade("import", "location", "a.csv").stdout
    lines = [{"path": path, "level": "CATEGORY"} for path in ("A", "A1", "A1-X", "B", "A/x")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert "added: 5 (5 CATEGORY)" in clade("import", "category", "a.jsonl").stdout


# -- proposals -----------------------------------------------------------------------------------------------------

SAW = {"Tools": None, "Tools/Saws": None, "Tools/Saws/Hand saws": None, "Garden": None}
LISTS = [{"title": "Tools", "in": [{"title": "Saws", "in": [{"title": "Hand saws", "in": []}]}]}, {"title": "Garden"}]
GROUPS = {"groups": [{"name": "Tools", "items": [{"name": "Saws"}, {"name": "Axes"}]}, {"name": "Garden", "items": []}]}
DIGITS = sorted(f"{first}{second}" for first in range(1, 8) for second in ("", *"12345"))
PROPOSED: dict[str, tuple[str, str, str, list[str]]] = {
    "columns of one level": (
        "a.csv", "Department,Category,Subcategory,n\nTools,Saws,Hand,1\nTools,Saws,Jig,2\nTools,Axes,Big,3\n",
        "--level category=Department --level category=Category --level category=Subcategory",
        ["Tools", "Tools/Axes", "Tools/Axes/Big", "Tools/Saws", "Tools/Saws/Hand", "Tools/Saws/Jig"],
    ),
    "columns without any name of a level": (
        "a.csv", "Gruppe,Artikel\nTools,Saws\nTools,Axes\nGarden,Hoses\n", "--level category=Gruppe",
        ["Garden", "Garden/Hoses", "Tools", "Tools/Axes", "Tools/Saws"],
    ),
    "several paths in a cell": (
        "a.csv", "id,In\n1,Tools > Saws|Sale > Saws\n2,Tools > Axes\n3,Garden\n", """split " > " each "|"'""",
        ["Garden", "Sale", "Sale/Saws", "Tools", "Tools/Axes", "Tools/Saws"],
    ),
    "several paths with signs that keys may have": (
        "a.csv", "id,In\n1,Tools/Saws;Sale/Saws\n2,Tools/Axes;Sale/Axes\n", """split / each ;""",
        ["Sale", "Sale/Axes", "Sale/Saws", "Tools", "Tools/Axes", "Tools/Saws"],
    ),
    "three lines of paths": (
        "a.txt", "Tools\nTools / Saws\nTools / Saws / Big, green\n", '--columns path',
        ["Tools", "Tools/Saws", "Tools/Saws/Big, green"],
    ),
    "dotted words": (
        "a.csv", "path\ntools.saws.hand\ntools.axes\ntools.rakes\ngarden.hoses\n", 'split "."',
        ["garden", "garden/hoses", "tools", "tools/axes", "tools/rakes", "tools/saws", "tools/saws/hand"],
    ),
    "parents with levels": (
        "a.csv", "code,part of,title,kind\nUS,,USA,category\nNE,US,Nebraska,category\nOM,NE,Omaha,product\n",
        "--tree-by 'id=code,parent=part of,level=kind' --name category=title --name product=title",
        ["USA", "USA/Nebraska", "USA/Nebraska/Omaha"],
    ),
    "parents without a header": (
        "a.csv", "1,0,Tools\n2,1,Saws\n3,1,Axes\n4,2,Hand saws\n", "--tree-by id=id,parent=b",
        ["Tools", "Tools/Axes", "Tools/Saws", "Tools/Saws/Hand saws"],
    ),
    "paths and levels of another program": (
        "a.csv", "entity_id,parent_id,path,level,name\n2,1,1/2,1,Shop\n20,2,1/2/20,2,Pans\n21,20,1/2/20/21,3,Woks\n",
        "--tree-by id=entity_id,parent=parent_id", ["Shop", "Shop/Pans", "Shop/Pans/Woks"],
    ),
    "arrows in two rows": (
        "a.csv", "sku,category\n1,Tools > Saws\n2,Garden > Hoses\n", """'category=category split " > "'""",
        ["Garden", "Garden/Hoses", "Tools", "Tools/Saws"],
    ),
    "numbers of one and two digits": (
        "a.csv", "nr,title\n" + "".join(f"{one},T{one}\n" for one in DIGITS), "--tree-by prefix=nr",
        [f"T{one[0]}" + f"/T{one}" * (len(one) > 1) for one in DIGITS],
    ),
    "ranges of codes": (
        "a.csv",
        "Code,Title\n31-33,Made\n311,Food\n3111,Pet food\n32,Wood\n44,Sold\n441,Cars\n", "--tree-by prefix=Code",
        ["Made", "Made/Food", "Made/Food/Pet food", "Made/Wood", "Sold", "Sold/Cars"],
    ),
    "codes without a header": (
        "a.csv", "7,Garden\n71,Tools\n711,Spades\n8,Kitchen\n", "--tree-by prefix=id --name category=b",
        ["Garden", "Garden/Tools", "Garden/Tools/Spades", "Kitchen"],
    ),
    "an indented text": ("a.txt", "Tools\n  Saws\n    Hand saws\nGarden\n", "--tree-by indent", [*SAW]),
    "a text with marks": ("a.txt", "- Tools\n  - Saws\n    - Hand saws\n- Garden\n", "--tree-by indent", [*SAW]),
    "headings": ("a.txt", "# Tools\n## Saws\n### Hand saws\n# Garden\n", "--tree-by indent", [*SAW]),
    "an indented column": (
        "a.csv", "Name,n\nTools,1\n  Saws,2\n    Hand saws,3\nGarden,4\n", "--tree-by indent=Name", [*SAW],
    ),
    "a column of depths": (
        "a.csv", "Tiefe;Text\n1;Tools\n2;Saws\n3;Hand saws\n1;Garden\n", "--tree-by depth=Tiefe", [*SAW],
    ),
    "lists of another name": ("a.json", json.dumps(LISTS), "--tree-by children=in,name=title", [*SAW]),
    "children with titles": (
        "a.json", '[{"label": "A", "children": [{"label": "B"}]}]', "children=children,name=label", ["A", "A/B"],
    ),
    "lists of two names": (
        "a.json", json.dumps(GROUPS), "", ["Garden", "Tools", "Tools/Axes", "Tools/Saws"],
    ),
    "quotes that are apostrophes": (
        "a.csv", "'path','level'\n'Tools','CATEGORY'\n'Tools/Saws','CATEGORY'\n", "--quote", ["Tools", "Tools/Saws"],
    ),
    "a table of Markdown": (
        "a.csv", "| path | level |\n| --- | :---: |\n| Tools | CATEGORY |\n| Tools/Saws | CATEGORY |\n", "",
        ["Tools", "Tools/Saws"],
    ),
    "a table of a terminal": (
        "a.csv", "+-------+\n| path | level |\n+---+---+\n| Tools | CATEGORY |\n", "", ["Tools"],
    ),
    "texts for Excel": ("a.csv", 'Category,Product\nA,="01067"\nA,"=""02"""\n', "", ["A", "A/01067", "A/02"]),
}  # fmt: skip


@pytest.mark.parametrize("what", PROPOSED)
def test_the_proposed_command_makes_the_tree_of_the_file(clade: Clade, tmp_path: Path, what: str) -> None:
    name, content, options, paths = PROPOSED[what]
    (tmp_path / name).write_text(content, encoding="utf-8")
    plain = clade("import", "category", name)
    assert plain.exit_code == (1 if "--" in options or "split" in options else plain.exit_code), plain.output
    if plain.exit_code:
        assert "--" in str(plain.exception)
        assert not (tmp_path / "clade.db").exists()
    said = run_proposal(clade, "category", name)
    assert options.replace("split / each ;", """split "/" each ";"'""") in said
    assert tree_of_names(clade, "category") == {tuple(path.split("/")) for path in paths}


WRONG = {
    "characters of another encoding": ("a.csv", "Category\nKÃ¶ln\nMÃ¼nchen\n", '"KÃ¶ln"|"MÃ¼nchen"'),
    "a second header": ("a.csv", "Category,n\nGruppe,Zahl\nA,1\nB,2\nC,3\n", '"Zahl" stands above numbers'),
    "a name twice": ("a.json", '{"A": {"level": "CATEGORY"}, "A": {"level": "CATEGORY"}}', "the same name twice"),
    "levels that nothing says": ("a.csv", "1,2,A\n2,0,B\n3,2,C\n7,x,D\n", "--level category=COLUMN"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_no_option_mends_is_refused_and_not_proposed(clade: Clade, tmp_path: Path, what: str) -> None:
    name, content, says = WRONG[what]
    (tmp_path / name).write_text(content, encoding="utf-8")
    for more in ([], ["--describe"]):
        result = clade("import", "category", name, *more)
        assert (result.exit_code, (tmp_path / "clade.db").exists()) == (1, False)
        assert not more or re.search(says, str(result.exception))
