"""Random trees by parent ids, which are moved, renamed and have new siblings in their next states."""

import unicodedata
from pathlib import Path
from random import Random
from typing import Any

import pytest

from store.transfer.shapes.parent_tree import node_id_of
from tests.commands.conftest import Clade
from tests.commands.importing.files import stored, table

BY = ("--tree-by", "id=id,parent=parent")
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


SEEDS = [
    pytest.param(n, marks=pytest.mark.thorough if n > 2 else [pytest.mark.both_stores] * (n == 0)) for n in range(60)
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_nightly_file_keeps_its_tree(clade: Clade, tmp_path: Path, seed: int) -> None:
    choose, tree, before = Random(seed), dict[str, tuple[str, str]](), dict[str, dict[str, Any]]()  # noqa: S311
    for _ in range(3):
        tree = _random_tree(choose, tree)
        rows = [(own, *rest) for own, rest in tree.items()]
        choose.shuffle(rows)
        file = tmp_path / "x.csv"
        file.write_bytes(table([("id", "parent", "name"), *rows]))
        done = clade("import", "category", file, *BY)
        assert (done.exit_code, done.stderr.count("rejected")) == (0, 0), done.output + repr(done.exception)
        after = {node["id"]: node for node in stored(clade, "category").values()}
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
