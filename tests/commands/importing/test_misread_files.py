"""Files that an import could take for something else: it stops with a sentence, or says what the file says."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

RUN_SECONDS = 120
PRODUCTS = ["--key", "{category*#}"]


class Done(NamedTuple):
    """A command that has ended: its exit status, its output, and the nodes that are stored then, by path."""

    status: int
    said: str
    nodes: dict[str, dict[str, Any]]


Import = Callable[..., Done]


@pytest.fixture
def clade(tmp_path: Path) -> Import:
    """Imports a file in a process of its own into a new SQLite file, and exports that."""
    environment = {**os.environ, "CLADE_STORE": f"sqlite:///{tmp_path}/nodes.db", "CLADE_LOG": "warning"}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from commands.main import run; run()", *map(str, words)],
            env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
        )  # fmt: skip

    def imported(hierarchy: str, *words: object) -> Done:
        done = run("import", hierarchy, *words)
        lines = run("export", hierarchy).stdout.splitlines() if (tmp_path / "nodes.db").exists() else []
        nodes = {"/".join(node["path"]): node for node in map(json.loads, lines)}
        return Done(done.returncode, done.stdout + done.stderr, nodes)

    return imported


def written(file: Path, rows: Sequence[Sequence[object]]) -> Path:
    output = io.StringIO()
    csv.writer(output).writerows(rows)
    file.write_text(output.getvalue())
    return file


def items(file: Path, *found: dict[str, str]) -> Path:
    """The items of a DynamoDB table as in an export to S3."""
    lines = [{"Item": {name: {"S": value} for name, value in item.items()}} for item in found]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


# -- values of a row belong to its last node ---------------------------------------------------------------------------


def test_the_name_of_an_item_is_that_of_its_last_node(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden#mowers", "SK": "1", "title": "Lawn mowers"})
    done = clade("category", file, *PRODUCTS, "--keys", "PK", "--name", "category=title", "--name-in", "category.de=SK")
    assert done.status == 0, done.said
    assert {path: (node["name"], node.get("names")) for path, node in done.nodes.items()} == {
        "garden": ("garden", None), "garden/mowers": ("Lawn mowers", {"de": "1"}),
    }  # fmt: skip


def test_an_attribute_of_an_item_that_two_levels_have_is_that_of_the_last_node(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden", "SK": "mower", "title": "Mower", "owner": "Garden Ltd"})
    names = ["--name", "category=title", "--name", "product=title", "--name-in", "category.en=owner"]
    done = clade("category", file, "--key", "{category} / {product}", "--keys", "PK,SK", *names)
    assert done.status == 0, done.said
    assert (done.nodes["garden"]["name"], done.nodes["garden/mower"]["name"]) == ("garden", "Mower")
    assert done.nodes["garden"]["names"] == {"en": "Garden Ltd"}, "a column of that level alone is a value of it"


def test_two_items_that_contradict_each_other_are_rejected_with_both_lines(clade: Import, tmp_path: Path) -> None:
    both = [{"PK": "garden", "SK": f"{number}", "owner": f"Owner {number}"} for number in range(2)]
    file = items(tmp_path / "x.json", *both)
    names = ["--name", "category=owner", "--keys", "PK,SK"]
    done = clade("category", file, "--key", "{category} / {product}", *names)
    assert done.status == 1
    assert "line 2" in done.said or "row 2" in done.said
    assert "garden has the name Owner 0 in row 1 already, not Owner 1." in done.said


def test_keys_of_items_are_not_folded_in_silence(clade: Import, tmp_path: Path) -> None:
    file = items(tmp_path / "x.json", {"PK": "garden"})
    done = clade("category", file, "--key", "{category}", "--keys", "PK", "--fold-case", "category")
    assert (done.status, done.nodes) == (1, {})
    assert "--fold-case is for files, not for DynamoDB tables" in done.said
