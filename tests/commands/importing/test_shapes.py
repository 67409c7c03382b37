"""Random trees, written in the shapes that people bring: an import makes the tree in the file, or writes nothing and
says in a sentence what it saw.
"""

import csv
import json
import random
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of

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
    """A file with the options of its import, and what an import says that does not know its shape."""

    name: str
    content: str
    options: Sequence[str]
    says: str


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
    if choose.random() < 0.3:
        objects = [dict(zip(header, row, strict=True)) for row in rows]
        return File("a.json", json.dumps(objects), ["--level", f"category={own}", "--name", "category=name"], "parent")
    content = table(choose, [header, *rows], shuffled=True)
    return File("a.csv", content, ["--level", f"category={own}", "--name", "category=name"], "a tree by parent ids")


def by_whole_paths(choose: random.Random) -> File:
    sign = choose.choice(SIGNS)
    paths = tree(choose, 4, 4)
    if choose.random() < 0.5:  # leaves alone
        paths = [path for path in paths if not any(other[: len(path)] == path != other for other in paths)]
    rows = [["Category", "n"], *[[sign.join(path), "x"] for path in paths]]
    return File("a.csv", table(choose, rows, shuffled=True), ["--level", "category=Category"], "has whole paths")


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
    return File("a.csv", content, ["--level", "category=code", "--name", "category=title"], "a tree by codes")


def without_header(choose: random.Random) -> File:
    rows = [[*path, f"{choose.randint(1, 10**6)}"] for path in tree(choose, 3, 4) if len(path) == 3]
    levels = [f"--level={level}={name}" for level, name in zip(("country", "state", "city"), rows[0], strict=False)]
    if len({*rows[0]}) < 4 or len(rows) < 2:
        return without_header(choose)
    return File("a.csv", table(choose, rows), [*levels, f"--attr=city.population={rows[0][3]}"], "looks like data")


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
        "a tree by codes",
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
