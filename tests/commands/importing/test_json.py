"""Trees in JSON: their keys, levels and children, and the lines of nodes that are rejected."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from store.errors import BadInput, quantity
from tests.commands.importing.files import Clade, clade, split, stored
from tests.commands.importing.test_paths import Tree, changed
from tests.commands.importing.test_paths import grown as grown_tree
from tests.selection import examples

__all__ = ["clade"]

LOST = "has objects that would be lost. The nodes of a tree are in lists"
SAWS = {"key": "Saws", "level": "CATEGORY"}


def tree_of(*nodes: Any) -> list[Any]:
    """A tree of categories: its root, with the nodes below it."""
    return [{"key": "A", "level": "CATEGORY", "children": list(nodes)}]


TREES: dict[str, tuple[Any, str, list[str]]] = {
    "a number as a key": (
        tree_of({"key": 11, "level": "CATEGORY", "name": "Tools", "children": [SAWS]}), "category",
        ["A", "A/11", "A/11/Saws"],
    ),
    "a number of 64 bits": (tree_of({**SAWS, "key": 2**64 - 1}), "category", ["A", "A/18446744073709551615"]),
    "a number as a name": ([{"name": 2021, "level": "CATEGORY"}], "category", ["2021"]),
    "numbers in paths": ([{"path": [1], "level": "CATEGORY"}, {"path": [1, 2], "level": "PRODUCT"}], "category",
                         ["1", "1/2"]),
    "the only level of a root": ([{"name": "US", "children": []}, {"name": "SG"}], "", ["SG", "US"]),
    "the only level below another": (
        tree_of({"key": "P", "level": "product", "children": [{"key": "red"}, {"key": 7}]}), "category",
        ["A", "A/P", "A/P/7", "A/P/red"],
    ),
    "children by key": (
        {"A": {"level": "CATEGORY", "children": {"B": SAWS | {"key": "b"}, "C": {"level": "CATEGORY"}}}}, "category",
        ["A", "A/C", "A/b"],
    ),
    "roots as children by key": ({"children": {"US": {"level": "COUNTRY"}}}, "", ["US"]),
    "one root": (tree_of(SAWS)[0], "category", ["A", "A/Saws"]),
    "roots in one list of an object": ({"version": 1, "roots": tree_of(SAWS)}, "category", ["A", "A/Saws"]),
    "a table of lists that nest in themselves, with a level for each": (
        [{"key": "A", "sub": [{"key": "B", "sub": [{"key": "C"}]}]}],
        "category --level category=key --level product=sub.key --level variant=sub.sub.key", ["A", "A/B", "A/B/C"],
    ),
    "a table of lists that are called children, with a level for each": (
        [{"name": "US", "children": [{"name": "Omaha"}]}],
        "--level country=name --level city=children.name", ["US", "US/Omaha"],
    ),
    "one of the lists of a table": (
        [{"name": "US", "states": [{"name": "NE"}]}], "--level country=name", ["US"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TREES)
def test_a_tree_is_imported_as_it_is_in_the_file(clade: Clade, tmp_path: Path, what: str) -> None:
    document, options, paths = TREES[what]
    hierarchy, words = split(options)
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = clade("import", hierarchy, "a.json", *words)
    assert (done.exit_code, [*stored(clade, hierarchy)]) == (0, paths), done.output + repr(done.exception)


REFUSED: dict[str, tuple[Any, str, str]] = {
    "a level without those below": (tree_of(SAWS), "category --level category=key", f'"children" {LOST}'),
    "a list of another name, with too few levels": (
        [{"name": "A", "sub": [{"name": "B", "sub": [{"name": "C"}]}]}],
        "category --level category=name --level product=sub.name", f'"sub.sub" {LOST}',
    ),
    "names that take turns": (
        [{"name": "A", "groups": [{"name": "B", "items": [{"name": "C", "groups": [{"name": "D"}]}]}]}],
        "category --level category=name --level product=groups.name --level variant=groups.items.name",
        f'"groups.items.groups" {LOST}',
    ),
    "nodes in a list of another name": (
        [{"key": "A", "level": "CATEGORY", "nodes": [SAWS]}], "category --ignore-unknown", f'"nodes" {LOST}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_tree_that_would_lose_nodes_is_refused(clade: Clade, tmp_path: Path, what: str) -> None:
    document, options, message = REFUSED[what]
    hierarchy, words = split(options)
    (tmp_path / "a.json").write_text(json.dumps(document))
    for more in ([], ["--describe"]):
        refused = clade("import", hierarchy, "a.json", *words, *more)
        assert isinstance(refused.exception, BadInput), refused.output
        assert message in str(refused.exception)
    assert not (tmp_path / "clade.db").exists()


def test_a_tree_of_any_depth_is_one_sentence(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"name":"A","children":' * 100_000 + "[]" + "}]" * 100_000)
    assert "a.json is not valid JSON: depth limit exceeded" in str(clade("import", "category", "a.json").exception)


WRONG = {
    "11.0": "A key is a text or a whole number of at most 64 bits, not 11.0; write a text.",
    "1e3": "not 1000.0; write a text.",
    "18446744073709551616": "not 1.8446744073709552e+19; write a text.",
    "true": "not true; write a text.",
    "[1]": "not [1]; write a text.",
    "null": "not null; write a text.",
}


@pytest.mark.parametrize("key", WRONG)
def test_what_is_below_a_rejected_node_is_rejected_with_its_path(clade: Clade, tmp_path: Path, key: str) -> None:
    (tmp_path / "a.json").write_text(
        f'[{{"key": "A", "level": "CATEGORY", "children": [{{"key": {key}, "level": "PRODUCT", "children": '
        '[{"key": "red", "sku": "R-1"}]}]}]'
    )
    done = clade("import", "category", "a.json")
    assert (done.exit_code, [*stored(clade, "category")]) == (1, ["A"])
    assert "rejected: 2 rows; written to" in done.stderr
    assert WRONG[key] in done.stderr
    _, first, reason, second = map(json.loads, (tmp_path / "a.rejected.jsonl").read_text().splitlines())
    assert first == {"path": ["A", json.loads(key)], "level": "PRODUCT"}
    assert reason["$reason"].endswith(" is missing, since row 2 was rejected.")
    assert second == {"path": [*first["path"], "red"], "level": "VARIANT", "sku": "R-1"}


def test_a_level_of_several_is_asked_for(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"name": "Tools", "children": [{"name": "Saws"}]}]')
    done = clade("import", "category", "a.json")
    assert (done.exit_code, [*stored(clade, "category")]) == (1, ["Tools"])
    assert 'The node below Tools has no level; write "level" with CATEGORY or PRODUCT.' in done.stderr


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
    return nodes or random.choice([None, []])


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

ROBOT = {"title": "Robot", "slug": "r", "Preis": "9.50", "Brand": "Z"}
SHOP = {
    "departments": [
        {"title": "Garden", "slug": "g", "categories": [
            {"title": "Mowers", "slug": "m", "products": [ROBOT]},
        ]},
        {"title": "Kitchen", "slug": "k", "categories": ["Pans", 7]},
    ]
}  # fmt: skip
IN_SHOP = "--tree-by 'children=departments|categories|products,key=slug,name=title' --attr product.price=Preis"
GIVEN: dict[str, tuple[Any, str, list[str]]] = {
    "lists that are named like levels": (
        SHOP, f"{IN_SHOP} --level category=departments", ["g", "g/m", "g/m/r", "k", "k/7", "k/Pans"],
    ),
    "a document in others": (
        {"ok": True, "data": {"result": SHOP}}, f"{IN_SHOP} --level category=departments",
        ["g", "g/m", "g/m/r", "k", "k/7", "k/Pans"],
    ),
    "names as keys": (
        {"title": "A", "nodes": [{"title": "B", "nodes": []}, {"title": "C", "nodes": None}]},
        "--tree-by children=nodes,name=title", ["A", "A/B", "A/C"],
    ),
    "nodes by key": (
        {"A": {"label": "x", "subs": {"B": {"label": "y"}, "C": {"label": "z", "subs": {}}}}, "D": {"label": "w"}},
        "--tree-by children=subs,name=label", ["A", "A/B", "A/C", "D"],
    ),
    "one node by key": (
        {"A": {"subs": {"B": {"subs": {"C": {}}}}}}, "--tree-by children=subs", ["A", "A/B", "A/B/C"],
    ),
    "levels in a field": (
        [{"code": 1, "level": "category", "in": [{"code": "p", "level": "PRODUCT", "in": [{"code": "v"}]}]}],
        "--tree-by children=in,key=code", ["1", "1/p", "1/p/v"],
    ),
    "lists of a level": (
        [{"t": "A", "subs": [{"t": "B", "items": [{"t": "P"}]}], "items": [{"t": "Q"}]}],
        "--tree-by 'children=subs|items,name=t' --level category=subs --level product=items",
        ["A", "A/B", "A/B/P", "A/Q"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GIVEN)
def test_a_tree_with_other_names_is_imported_by_options(clade: Clade, tmp_path: Path, what: str) -> None:
    document, options, paths = GIVEN[what]
    _, words = split(f"category {options}")
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = clade("import", "category", "a.json", *words)
    assert (done.exit_code, [*stored(clade, "category")]) == (0, paths), done.output + repr(done.exception)
    if "g/m/r" in paths:
        product = stored(clade, "category")["g/m/r"]
        assert (product["level"], product["name"], product["price"], product["brand"]) == (
            "PRODUCT",
            "Robot",
            "9.50",
            "Z",
        )
    assert "Nothing changed." in clade("import", "category", "a.json", *words).stdout


WRONG_TREES: dict[str, tuple[Any, str, str]] = {
    "an unclear level of a list": (
        [{"name": "A", "subs": [{"name": "B"}], "items": []}], "--tree-by 'children=subs|items'",
        'A node in "subs" may be CATEGORY or PRODUCT; --level names it: category=subs.',
    ),
    "no key": ([{"name": "A", "in": [{"nam": "B"}]}], "--tree-by children=in", 'The node below A has no "name".'),
    "a field of no attribute": (
        [{"name": "A", "path": "/a", "in": [{"name": "B"}]}], "--tree-by children=in",
        'CATEGORY has no attribute "path"; it has none.',
    ),
    "a key besides another one": (
        [{"name": "A", "key": "x", "code": "y"}], "--tree-by children=in,key=code", 'CATEGORY has no attribute "key"',
    ),
    "children that are no list": ([{"name": "A", "in": 7}], "--tree-by children=in", '"in" is a list of nodes, or an'),
    "a key that is no text": ([{"name": 1.5}], "--tree-by children=in", "not 1.5; write a text."),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_TREES)
def test_a_wrong_node_is_rejected_with_those_below(clade: Clade, tmp_path: Path, what: str) -> None:
    document, options, reason = WRONG_TREES[what]
    _, words = split(f"category {options}")
    (tmp_path / "a.json").write_text(json.dumps([{"name": "Right"}, *document]))
    done = clade("import", "category", "a.json", *words)
    assert done.exit_code == 1
    assert {*stored(clade, "category")} <= {"Right", "A"}
    assert reason in done.stderr, done.output
    if "path" in reason:
        assert "Parent A is missing, since row 2 was rejected." in done.stderr
        assert clade("import", "category", "a.json", *words, "--ignore-unknown").exit_code == 0
        assert [*stored(clade, "category")] == ["A", "A/B", "Right"]


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        ([{"name": "A", "in": [], "subs": [{"name": "B"}]}], "--tree-by children=in", f'"subs" {LOST}'),
        (
            [{"name": "A"}],
            "--tree-by children=in --level product=items",
            '--level names the list "items", and --tree-by',
        ),
        ([{"name": "A"}], "--tree-by children=in --null x", "are for tables, and --tree-by children is none."),
        ([{"name": "A"}], "--tree-by children=in --name product=t --attr product.size=x", 'no attribute "size"'),
        (7, "--tree-by children=in", "a.json has no list of nodes, nor one of the lists of --tree-by."),
        ({"n": 7}, "--tree-by children=in", "a.json has no list of nodes, nor one of the lists of --tree-by."),
    ],
)
def test_a_document_that_is_no_such_tree_stops(
    clade: Clade, tmp_path: Path, document: Any, options: str, message: str
) -> None:  # fmt: skip
    _, words = split(f"category {options}")
    (tmp_path / "a.json").write_text(json.dumps(document))
    refused = clade("import", "category", "a.json", *words)
    assert isinstance(refused.exception, BadInput), refused.output
    assert message in str(refused.exception)
    assert not (tmp_path / "clade.db").exists()


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
        for state in (tree, changed(choose, tree)):
            document = other_tree(choose, state, (), names)
            roots = document[names[2]]
            (tmp_path / "a.json").write_text(json.dumps(roots if isinstance(roots, list) else document))
            tree_by = "--tree-by=key={},name={},children={}".format(*names)
            done = clade("import", "category", "a.json", tree_by, "--prune")
            assert done.exit_code == 0, (seed, done.output, done.exception)
            assert {tuple(one["path"]): one["name"] for one in stored(clade, "category").values()} == state, seed
            assert "Nothing changed." in clade("import", "category", "a.json", tree_by, "--prune").stdout


@pytest.mark.parametrize("own", [True, False])
def test_what_is_below_the_second_of_two_nodes_with_one_key_is_not_put_below_the_first(
    clade: Clade, tmp_path: Path, own: bool
) -> None:
    kids = "children" if own else "kids"
    level = {"level": "CATEGORY"}
    nodes = [
        {"id": "2", "name": "X"} | level,
        {"id": "3", "name": "X", kids: [{"id": "4", "name": "Y"} | level]} | level,
    ]
    (tmp_path / "a.json").write_text(json.dumps([{"id": "1", "name": "A", kids: nodes} | level]))
    options = [] if own else ["--tree-by", "children=kids"]
    done = clade("import", "category", "a.json", *options)
    assert (done.exit_code, [*stored(clade, "category")]) == (1, ["A", "A/X"]), done.output
    assert "row 3: A/X has the id 2 in row 2 already, not 3" in done.output
