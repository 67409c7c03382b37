"""Random trees by paths in cells of a table and by columns of one level."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from store.transfer.shapes.cell_paths import CellPaths
from tests.commands.importing.files import Clade, clade, replaced, stored, table
from tests.selection import examples

__all__ = ["clade"]


def test_a_cell_of_a_hundred_thousand_blanks_and_quotes_is_the_keys_of_its_path() -> None:
    quotes = '""' * 100_000
    assert [*CellPaths(">", None).read(f"A{' ' * 100_000}>B{quotes}")] == [("A", f"B{quotes}")]


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
        for before, state in (({}, tree), (tree, changed(choose, tree))):
            content, options = written(choose, state, shape)
            (tmp_path / "a.csv").write_bytes(content)
            done = replaced(clade, ["import", "category", "a.csv", *options], before, state)
            assert done.exit_code == 0, (seed, done.output, done.exception)
            nodes = stored(clade, "category").values()
            assert {tuple(node["path"]): node["name"] for node in nodes} == state, seed
            assert "Nothing changed." in clade("import", "category", "a.csv", *options, "--prune").stdout
