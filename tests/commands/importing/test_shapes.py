"""Random trees, written in the shapes that people bring: an import makes the tree in the file, or writes nothing and
says in a sentence what it saw.
"""

import csv
import json
import random
import shlex
from collections.abc import Collection, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands.importing.files import Clade, clade
from tests.selection import examples

__all__ = ["clade"]  # a fixture

NodePath = tuple[str, ...]
WORDS = (
    "Garden Mowers Robots Blades Tools Hoses Kitchen Knives Pans Lamps Sofas Tables Boots Coats Hats Paper Pens Ink "
    "Ørsta Łódź Škofja Ñuñoa Αθήνα Київ 東京"
).split()
SIGNS = (" > ", " / ", " | ", ">", "|", "\\", "::", " » ", "»", " → ", " -> ")
SEEDS = range(examples(4, 8))


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
    own, parent = choose.choice([("id", "parent_id"), ("ID", "ParentId"), ("path", "within"), ("key", "belongs under"),
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
