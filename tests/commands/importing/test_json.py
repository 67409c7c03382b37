"""Random trees in JSON, of which all nodes are stored or written to the file of rejected rows."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from store.errors import quantity
from tests.commands.importing.files import Clade, clade, replaced, stored
from tests.commands.importing.test_paths import Tree, changed
from tests.commands.importing.test_paths import grown as grown_tree
from tests.selection import examples

__all__ = ["clade"]

BELOW = {"": ["CATEGORY"], "CATEGORY": ["CATEGORY", "PRODUCT"], "PRODUCT": ["VARIANT"], "VARIANT": []}
Path_ = tuple[str, ...]


def grown(random: Random, above: Path_, under: str, is_right: bool, levels: dict[Path_, str], wrong: set[Path_]) -> Any:
    """Random children in one of the forms that they have, with null, keys and levels that are rejected among them.

    `levels` gets their levels by path, `wrong` the paths of those that are rejected.
    """
    nodes: list[Any] = []
    for number in range(random.randint(3 * (len(above) < 2), 4) if len(above) < 6 and BELOW[under] else 0):
        key = random.choice([number, number + 0.5]) if random.random() < 0.3 else f"k {number}"
        level = random.choice(BELOW[under])
        fields: dict[str, Any] = {random.choice(["key", "key", "name"]): key, "level": level}
        if is_unclear := random.random() < 0.2:
            del fields["level"]
        is_valid = is_right and not isinstance(key, float) and not (is_unclear and len(BELOW[under]) > 1)
        path = (*above, str(key))
        levels[path] = level
        if not is_valid:
            wrong.add(path)
        if is_unclear and len(BELOW[under]) > 1:
            fields["level"] = None
        else:
            fields["children"] = grown(random, path, level, is_valid, levels, wrong)
        nodes.append(fields)
    if random.random() < 0.1:
        nodes.append(None)
        wrong.add((*above, "None"))
    if above and nodes and all(one and isinstance(one.get("key"), str) for one in nodes):
        return {one.pop("key"): one for one in nodes}
    return nodes if nodes else random.choice([None, []])


@pytest.mark.parametrize("seed", range(4))
def test_stored_nodes_and_rejected_lines_are_the_whole_tree(clade: Clade, tmp_path: Path, seed: int) -> None:
    levels: dict[Path_, str] = {}
    wrong: set[Path_] = set()
    random = Random(f"tree {seed}")  # noqa: S311
    tree = grown(random, (), "", True, levels, wrong)
    (tmp_path / "a.json").write_text(json.dumps(tree))
    done = clade("import", "category", "a.json")
    assert done.exit_code == (1 if wrong else 0), done.output
    assert {path: node["level"] for path, node in stored(clade, "category").items()} == {
        "/".join(path): level for path, level in levels.items() if path not in wrong
    }
    assert f"rejected: {quantity(len(wrong), 'row')}" in done.stderr
    written = (tmp_path / "a.rejected.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in written[1::2]]
    paths = [tuple(map(str, line["path"])) for line in lines]
    assert sorted(paths) == sorted(wrong)
    mended = [
        {**line, "path": path, "level": levels[path]} for line, path in zip(lines, paths, strict=True) if path in levels
    ]
    for line in mended:
        if "name" in line:
            line["name"] = str(line["name"])
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in mended))
    assert clade("import", "category", "b.jsonl").exit_code == 0
    assert {*stored(clade, "category")} == {"/".join(path) for path in levels}


# -- trees with other names --------------------------------------------------------------------------------------------


def other_tree(choose: Random, tree: Tree, path: Path_, names: Sequence[str]) -> dict[str, Any]:
    """A node with what is below it, by the names of keys, names and children."""
    key, name, children = names
    below = [other_tree(choose, tree, one, names) for one in tree if one[:-1] == path]
    own = {key: path[-1], name: tree[path]} if path else {}
    if below and choose.random() < 0.3:
        return own | {children: {one.pop(key): one for one in below}}
    return own | ({children: below} if below else choose.choice([{}, {children: None}, {children: []}]))


def test_any_tree_with_other_names_is_imported_as_it_is(clade: Clade, tmp_path: Path) -> None:
    for seed in range(examples(2, 30)):
        choose = Random(f"names {seed}")  # noqa: S311 - no secret
        (tmp_path / "clade.db").unlink(missing_ok=True)
        names = choose.sample(["code", "title", "name", "key", "n=1", "Kinder", "kids"], 3)
        tree = grown_tree(choose)
        for before, state in (({}, tree), (tree, changed(choose, tree))):
            document = other_tree(choose, state, (), names)
            roots = document[names[2]]
            (tmp_path / "a.json").write_text(json.dumps(roots if isinstance(roots, list) else document))
            tree_by = "--tree-by=key={},name={},children={}".format(*names)
            done = replaced(clade, ["import", "category", "a.json", tree_by], before, state)
            assert done.exit_code == 0, (seed, done.output, done.exception)
            assert {tuple(one["path"]): one["name"] for one in stored(clade, "category").values()} == state, seed
            assert "Nothing changed." in clade("import", "category", "a.json", tree_by, "--prune").stdout
