"""Ids and keys of files: ids before the paths of a taxonomy, or numbers that belong to its keys; ids that are unique
within a level only; the names of nodes that are renamed under their ids; keys that look alike.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of

Clade = Callable[..., Result]


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command in a directory of its own; the first import makes the store, clade.db by default."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object, store: str = "clade") -> Result:
        environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/{store}.db"}
        return CliRunner().invoke(app_of(), [*map(str, words)], env=environment)

    return run


def stored(clade: Clade, hierarchy: str = "category", store: str = "clade") -> dict[str, dict[str, Any]]:
    """The nodes by their paths."""
    nodes = [json.loads(line) for line in clade("export", hierarchy, store=store).stdout.splitlines()]
    return {"/".join(node["path"]): node for node in nodes}


def ids(clade: Clade) -> dict[str, str]:
    return {path: node["id"] for path, node in stored(clade).items()}


# -- taxonomies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [" - ", " : ", "\t", " | ", "   -  ", " \t "])
@pytest.mark.parametrize("numbers", ["3237 1", "aa-1-2 aa-1", "07.1 07"])
def test_an_id_on_each_line_of_a_taxonomy_is_that_of_its_node(
    clade: Clade, tmp_path: Path, sign: str, numbers: str
) -> None:
    below, above = numbers.split()
    (tmp_path / "a.txt").write_text(f"# ids\n\n{below}{sign}Pets > 3 - 5 kg\n{above}{sign}Pets\n")
    done = clade("import", "category", "a.txt", "--format", "taxonomy")
    assert (done.exit_code, ids(clade)) == (0, {"Pets": above, "Pets/3 - 5 kg": below}), done.output


@pytest.mark.parametrize(
    "lines",
    [
        "01 - Bakery|01 - Bakery > 01.1 - Bread|02 - Dairy|02 - Dairy > 02.1 - Milk",
        "01 - Bakery > 01.1 - Bread|02 - Dairy > 02.1 - Milk",
        "1 : Bakery|1 : Bakery > Bread|1 : Bakery > Rolls",
        "No. 1 - Bakery|No. 1 - Bakery > Bread",
    ],
)
def test_numbers_of_keys_stay_in_them(clade: Clade, tmp_path: Path, lines: str) -> None:
    (tmp_path / "a.txt").write_text(lines.replace("|", "\n"))
    done = clade("import", "category", "a.txt")
    expected = {"/".join(line.split(" > ")[:depth]) for line in lines.split("|") for depth in (1, 2)}
    assert (done.exit_code, {*stored(clade)}) == (0, expected), done.output


DOUBTS = {
    "some lines without an id": (
        "3 - Pets > Cats\n1 - Pets\nFood > Tea\n", 'but not row 3, "Food > Tea". Give each line an id',
        {"3 - Pets", "3 - Pets/Cats", "1 - Pets", "Food", "Food/Tea"},
    ),
    "an id of two nodes": (
        "1 - Pets\n2 - Pets > Cats\n2 - Pets > Dogs\n", "The id 2 is in rows 2 and 3 of a.txt. Give each line an id",
        {"1 - Pets", "2 - Pets", "2 - Pets/Cats", "2 - Pets/Dogs"},
    ),
    "ids that cannot be stored": (
        "gid://example/t   : Pets\ngid://example/t-1 : Pets > Cats\n",
        'Row 1 of a.txt: The id "gid://example/t" has white space, a control character, # or :, which ids may not. '
        "Write others, such as the last part; now ids would be made from the paths.",
        {"Pets", "Pets/Cats"},
    ),
    "an outline": ("# pets\nPets\n\n  Cats\n\tDogs\nFood\n", "is an outline: row 4 is indented",
                   {"Pets", "Cats", "Dogs", "Food"}),
    "an outline with ids": ("1 - Pets\n\t2 - Cats\n", "is an outline: row 2 is indented", {"Pets", "Cats"}),
}  # fmt: skip


@pytest.mark.parametrize("what", DOUBTS)
def test_a_taxonomy_whose_ids_or_levels_are_unclear_is_imported_only_with_yes(
    clade: Clade, tmp_path: Path, what: str
) -> None:
    lines, reason, paths = DOUBTS[what]
    (tmp_path / "a.txt").write_text(lines)
    for more in ([], ["--describe"], ["--dry-run"]):
        refused = clade("import", "category", "a.txt", *more)
        assert (refused.exit_code, (tmp_path / "clade.db").exists()) == (1, False), refused.output
        assert reason in str(refused.exception)
        assert str(refused.exception).endswith("If that is right, --yes imports it as it is.")
    done = clade("import", "category", "a.txt", "--yes")
    assert (done.exit_code, {*stored(clade)}) == (0, paths), done.output


def test_a_rejected_line_of_a_taxonomy_can_be_corrected(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 - Pets\n2 - Pets >  > Cats\n1 - Pets\n")
    assert "row 2: A path has an empty segment" in clade("import", "category", "a.txt").stderr
    rejected = tmp_path / "a.rejected.txt"
    rejected.write_text(rejected.read_text().replace(">  >", ">"))
    assert clade("import", "category", rejected).exit_code == 0
    assert ids(clade) == {"Pets": "1", "Pets/Cats": "2"}
