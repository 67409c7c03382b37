"""Ids of files: imports that were stopped between nodes that swap their keys, and random taxonomies with ids."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result

from store.engine import ReadUsage
from store.errors import Unavailable
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions, EditResult
from store.writing.writer import Writer
from tests.commands.importing.files import Clade, clade, nodes_of, stored

__all__ = ["clade"]  # a fixture


CHAIN = [("S", ""), ("S/Saws", "a"), ("S/Axes", "b"), ("S/Tools", "z"), ("S/Tools/Own", "o")]


def imported_lines(clade: Clade, lines: Sequence[tuple[str, str]], *options: str) -> Result:
    rows = [{"path": path, "level": "CATEGORY", **({"id": one} if one else {})} for path, one in lines]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return clade("import", "category", "a.jsonl", *options)


def test_a_node_that_a_stopped_import_has_put_aside_is_found_and_goes_to_its_place(
    clade: Clade, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported_lines(clade, CHAIN)
    swapped = [("S", ""), ("S/Axes", "a"), ("S/Saws", "b")]
    write, left = Writer.write, 2

    async def failing(writer: Writer, edit: Edit, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        nonlocal left
        left -= not options.dry_run
        if left < 0:
            raise Unavailable("The store does not respond.")
        return await write(writer, edit, reads, options)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", failing)
        assert isinstance(imported_lines(clade, swapped, "--moves").exception, Unavailable)
    for command in ("check", "repair"):
        found = clade(command, "category")
        assert found.exit_code == 1
        assert "an import that was stopped has put the node aside; import the file again" in found.output
    assert imported_lines(clade, swapped, "--moves").exit_code == 0
    assert clade("check", "category").exit_code == 0
    assert {path: node["id"] for path, node in stored(clade, "category").items() if path in ("S/Axes", "S/Saws")} == {
        "S/Axes": "a", "S/Saws": "b",
    }  # fmt: skip


def test_an_import_that_was_stopped_before_a_move_gives_the_name_when_it_continues(
    clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("1 - A\n2 - A > B\n")
    clade("import", "category", "a.txt")
    (tmp_path / "a.txt").write_text("1 - X\n2 - X > B\n")
    left = 0
    write = Writer.write

    async def failing(writer: Writer, edit: Edit, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        nonlocal left
        left -= not options.dry_run
        if left < 0:
            raise Unavailable("The store does not respond.")
        return await write(writer, edit, reads, options)

    for possible in (0, 1):
        left = possible
        with monkeypatch.context() as patch:
            patch.setattr(Writer, "write", failing)
            assert isinstance(clade("import", "category", "a.txt", "--moves").exception, Unavailable)
    assert clade("import", "category", "a.txt", "--moves").exit_code == 0
    assert {path: (node["name"], node["id"]) for path, node in stored(clade, "category").items()} == {
        "X": ("X", "1"), "X/B": ("B", "2"),
    }  # fmt: skip


SIGNS = (" - ", " : ", "\t", " | ")
DIRT = ("\u200b", "\u00ad", "\ufeff", "\u00a0", "  ", "\u2003", " \u200e ")


class Taxonomy:
    """A random tree of nodes by id, each with its parent's id and its key."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.nodes: dict[str, tuple[str, str]] = {}
        self.keys = (
            f"{first} {second}" for second in "abcdefghij" for first in ("Saws", "Toys", "Ähren", "Tea", "東京")
        )
        for number in range(random_.randint(2, 9)):
            self.add(f"{number}{random_.choice(('', '-7', '.1x'))}")

    def add(self, node_id: str) -> None:
        self.nodes[node_id] = (self.random.choice(["", *self.nodes]), next(self.keys))

    def path(self, node_id: str) -> list[str]:
        parent, key = self.nodes[node_id]
        return [*(self.path(parent) if parent else []), key]

    def change(self) -> None:
        """Move and rename some nodes, and add one."""
        for node_id in [*self.nodes]:
            others = [one for one in self.nodes if self.path(node_id) != self.path(one)[: len(self.path(node_id))]]
            parent, key = self.nodes[node_id]
            if self.random.random() < 0.4:
                parent = self.random.choice(["", *others])
            self.nodes[node_id] = parent, next(self.keys) if self.random.random() < 0.4 else key
        self.add("n1")

    def lines(self, before: Callable[[str], str]) -> list[str]:
        lines = [f"{before(node_id)}{' > '.join(map(self.dirty, self.path(node_id)))}" for node_id in self.nodes]
        self.random.shuffle(lines)
        return [*lines, "# end"]

    def dirty(self, key: str) -> str:
        return key.replace(" ", self.random.choice(DIRT) + " ") if self.random.random() < 0.3 else key

    def tree(self) -> dict[str, str]:
        """The names by path."""
        return {"/".join(self.path(node_id)): self.nodes[node_id][1] for node_id in self.nodes}


@pytest.mark.parametrize("seed", range(5))
def test_any_taxonomy_and_its_changes_are_imported_as_they_are_or_not_at_all(
    clade: Clade, tmp_path: Path, seed: int
) -> None:
    random_ = random.Random(seed)  # noqa: S311 - no secret
    found, sign, file = Taxonomy(random_), random_.choice(SIGNS), tmp_path / "a.txt"
    kind = ("ids", "none", "some", "twice")[seed % 4]

    def before(node_id: str) -> str:
        return "" if kind == "none" else f"{node_id}{sign}"

    if kind in ("some", "twice"):
        lines = found.lines(before)
        _, _, path = lines[0].partition(sign)
        lines[0] = path if kind == "some" else f"{lines[1].partition(sign)[0]}{sign}Another key"
        file.write_text("\n".join(lines))
        refused = clade("import", "category", file, "--format", "taxonomy")
        assert (refused.exit_code, (tmp_path / "clade.db").exists()) == (1, False), refused.output
        return
    for _ in range(1 if kind == "none" else 2):
        file.write_text("\n".join(found.lines(before)))
        done = clade("import", "category", file, "--format", "taxonomy", "--moves", "--prune")
        assert done.exit_code == 0, done.output
        nodes = stored(clade, "category")
        assert {path: node["name"] for path, node in nodes.items()} == found.tree()
        if kind == "ids":
            assert {node["id"]: path for path, node in nodes.items()} == {
                node_id: "/".join(found.path(node_id)) for node_id in found.nodes
            }
        other = ["--store", f"sqlite:///empty{len(nodes)}-{random_.random()}.db"]
        assert clade("import", "category", file, "--format", "taxonomy", *other).exit_code == 0
        assert nodes_of(clade("export", "category", *other).stdout) == nodes
        found.nodes.pop("n1", None)
        found.change()
