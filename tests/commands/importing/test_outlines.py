"""Random outlines in texts and tables: depths by blanks, marks and headings, and by numbers in a column."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.importing.files import Clade, clade, replaced, stored, table
from tests.commands.importing.test_paths import Tree, changed, grown
from tests.selection import examples

__all__ = ["clade"]


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
        states = [tree, changed(choose, tree)]
        if shape is by_blanks:  # a lone > is a mark
            states = [{path: name for path, name in state.items() if ">" not in path} for state in states]
        for before, state in zip([{}, *states], states, strict=False):
            options = written(choose, tmp_path / f"a.{form}", state, shape(choose), is_depth=shape is by_depth)
            command = ["import", "category", f"a.{form}", *options]
            done = replaced(clade, command, before, state)
            assert done.exit_code == 0, (seed, done.output, done.exception)
            names = {tuple(node["path"]): node["name"] for node in stored(clade, "category").values()}
            assert names == (state if form == "csv" else {path: path[-1] for path in state}), seed
            assert "Nothing changed." in clade(*command, "--prune").stdout


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
