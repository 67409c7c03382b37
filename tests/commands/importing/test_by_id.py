"""`clade import --by id`: names and attributes of stored nodes by the ids of a file, whatever their paths."""

import json
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from commands.importing.command import import_file
from commands.importing.files import by_id_column
from store.errors import BadInput
from tests.commands.conftest import Clade
from tests.commands.importing.files import written

SHOPS = [
    ["New", "", "Ann", "12.5", "", "", ""], ["", '{"de":"Neu"}', "Ann", "", "", "", ""],
    ["", "", "", "", "", "", ""], ["", "", "ann", "", "", "", ""], ["", "", "Ann", "5 EUR", "", "", ""],
    ["", "", "Ann", "", "", "", "3"], ["", "", "Ann", "0.4", "", "", ""], ["", "", "Ann", "", '["a","b"]', "", ""],
    ["", "", "Bob", "", "a;b", "", ""], ['" a"', "", '"Ann"', "", "", "", ""], ["", "", "Ann", "9" * 400, "", "", ""],
    ["", "{", "Ann", "", "", "", ""], ["", "", "Ann", "", "", "1889-01-01", ""], ["x" * 400_000, "", "Ann", *[""] * 4],
    ["", "", "Ann", "1e400", "", "9999-12-31", ""], ["", '{"de":null}', "Ann", "", "A;b", "", ""],
]  # fmt: skip
HEAD = ["name", "names", "owner", "area", "codes", "opened", "floors"]


@pytest.mark.parametrize("owner", ["owner", "keeper"])
def test_values_are_taken_and_refused_as_in_a_file_of_paths(
    clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    monkeypatch.setenv("CLADE_HIERARCHIES", "tests.classes.shops")
    shop: dict[str, object] = {"level": "SHOP", "owner": "Eve", "area": "7", "codes": ["x"], "names": {"de": "alt"}}
    tree: list[dict[str, object]] = [{"path": "M", "level": "MALL", "id": "mall", "floors": 4}]
    tree += [shop | {"path": f"M/{n}", "id": f"s{n}"} for n in range(len(SHOPS))]
    assert clade("import", "place", written(tmp_path / "t.jsonl", "\n".join(map(json.dumps, tree)))).exit_code == 0
    rows = {f"s{n}": cells for n, cells in enumerate(SHOPS)} | {"mall": ["", "", "", "", "", "", "9"]}
    head = [owner if name == "owner" else name for name in HEAD]
    files = {"ids": [["id", *head]], "paths": [["path", "level", *head]]}
    for node_id, cells in rows.items():
        files["ids"].append([node_id, *cells])
        files["paths"].append([*(["M", "MALL"] if node_id == "mall" else [f"M/{node_id[1:]}", "SHOP"]), *cells])
    words = {}
    for name, lines in files.items():
        quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines]
        words[name] = ["import", "place", written(tmp_path / f"{name}.csv", "\n".join(quoted)), "--json", "--yes"]
        words[name] += ["--ignore-unknown"] if owner == "keeper" else []
    words["ids"] += ["--by", "id"]

    def report(name: str, *more: str) -> dict[str, Any]:
        found = json.loads(clade(*words[name], *more).stdout)
        return {key: found[key] for key in ("rows", "nodes", "updated", "unchanged", "rejected", "undefined")}

    by_paths = report("paths", "--dry-run")
    assert (by_paths, len(by_paths["rejected"]) > 5) == (report("ids"), True)
    assert (report("ids")["updated"], report("paths")["updated"]) == ({}, {})


@pytest.mark.parametrize(
    ("option", "way_out"),
    [
        ("levels", "--level: levels and paths are those of the stored nodes"), ("tree", "--tree-by: paths are those"),
        ("ids", "--id: --by id=COLUMN names"), ("level_ids", "as they are stored, such as city-30"),
        ("names_only", "--name-in LEVEL.LANGUAGE=COLUMN"), ("prune", "clade delete removes nodes"),
        ("prune_all", "--prune: clade delete"), ("moves", "--moves: a file of paths moves nodes"),
        ("create_parents", "a file of paths creates nodes"), ("describe", "--dry-run shows what would be changed"),
    ],
)  # fmt: skip
def test_options_that_contradict_ids_are_refused_with_the_way_out(option: str, way_out: str) -> None:
    known = signature(import_file).parameters
    with pytest.raises(BadInput, match=f"changes stored nodes where they are, and excludes .*{way_out}"):
        by_id_column("id", dict.fromkeys(known) | {option: True})
    assert option in known
