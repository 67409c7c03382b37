"""Commands in scripts: JSON documents, plain tables, exit status, and the completion of a shell."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of
from tests.commands.importing.imports import written
from tests.conftest import CLADE

pytestmark = pytest.mark.both_stores

PLACES = "Country,City,Phone\nUS,Omaha,1\nUS,Lincoln,2\nSG,Singapore,3\n,Nowhere,4\n"
LEVELS = ["--level", "country=Country", "--level", "city=City"]

Run = Callable[..., Result]


@pytest.fixture
def clade(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on an empty store."""
    monkeypatch.setenv("CLADE_STORE", store_url)
    CliRunner().invoke(app_of(), ["table", "create"])
    return lambda *words: CliRunner().invoke(app_of(), list(map(str, words)))


def document(result: Result) -> Any:
    """What a command printed, which is one JSON document."""
    return json.loads(result.stdout)


def test_an_import_is_a_document_with_counts_and_what_was_not_imported(clade: Run, tmp_path: Path) -> None:
    file = written(tmp_path / "places.csv", PLACES)
    result = clade("import", "location", file, *LEVELS, "--json")
    found = document(result)
    assert result.exit_code == 1
    reason = found["reasons"][0].pop("reason")
    assert reason.startswith("CITY may not stand as a root")
    assert found.pop("seconds") >= 0
    assert found == {
        "file": "places.csv",
        "dryRun": False,
        "rows": 4,
        "nodes": 5,
        "roots": 2,
        "nodesByDepth": [2, 3],
        "nodesByLevel": {"COUNTRY": 2, "CITY": 3},
        "moved": {},
        "added": {"COUNTRY": 2, "CITY": 3},
        "changed": {},
        "removed": {},
        "unchanged": 0,
        "createdParents": {},
        "notImported": ["Phone"],
        "rejected": 1,
        "rejectedFile": str(tmp_path / "places.rejected.csv"),
        "reasons": [{"row": 5}],
    }
    again = document(clade("import", "location", file, *LEVELS, "--json", "--dry-run"))
    assert (again["dryRun"], again["unchanged"], again["added"], again["rejectedFile"]) == (True, 5, {}, None)


def test_a_tree_is_a_document_down_to_its_depth(clade: Run, tmp_path: Path) -> None:
    clade("import", "location", written(tmp_path / "places.csv", PLACES), *LEVELS)
    singapore, us = document(clade("tree", "location", "--json"))
    assert singapore == {
        "path": "SG", "key": "SG", "name": "SG", "level": "COUNTRY", "descendants": {"CITY": 1},
        "children": [
            {"path": "SG/Singapore", "key": "Singapore", "name": "Singapore", "level": "CITY", "descendants": {}}
        ],
    }  # fmt: skip
    assert [child["path"] for child in us["children"]] == ["US/Lincoln", "US/Omaha"]
    assert "children" not in document(clade("tree", "location", "US", "--depth", "0", "--json"))[0]
    assert document(clade("tree", "--json"))["category"] == ["CATEGORY", "PRODUCT", "VARIANT"]


def test_a_check_is_a_document_and_counts_hierarchies_that_are_not_served(
    clade: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clade("import", "location", written(tmp_path / "places.csv", PLACES), *LEVELS)
    classes = "from clade import Node\nclass Place(Node, hierarchy='place', many='places'):\n  'A place.'\n"
    file = written(tmp_path / "renamed.py", f"{classes}class City(Place, under=[None, 'self']):\n  'A city.'\n")
    found = document(clade("check", "location", "--json"))
    assert (found["hierarchies"], found["nodes"], found["findings"], found["unserved"]) == (["location"], 5, [], {})
    monkeypatch.setenv("CLADE_HIERARCHIES", str(file))
    result = clade("check")
    assert result.exit_code == 0
    assert "location: 5 nodes, not checked, since no class has this hierarchy; CLADE_HIERARCHIES" in result.stdout
    for command in ("check", "repair"):
        assert document(clade(command, "--json"))["unserved"] == {"location": 5}


def test_keys_are_documents_and_a_plain_table(clade: Run) -> None:
    made = document(clade("key", "create", "--name", "shop", "--grant", "read:location", "--json"))
    (listed,) = document(clade("key", "list", "--json"))
    assert made.pop("key").startswith(f"clade_{made['id']}_")
    assert listed == made
    header, row = clade("key", "list").stdout.splitlines()
    assert header.split("\t") == ["id", "name", "created", "state", "grants"]
    assert row.split("\t") == [made["id"], "shop", made["created"][:10], "never expires", "read:location"]


def test_a_description_of_the_table_is_a_document_and_a_plain_table(clade: Run) -> None:
    found = document(clade("table", "describe", "--json"))
    lines = dict(line.split("\t") for line in clade("table", "describe").stdout.splitlines())
    assert found.keys() == lines.keys() >= {"name", "layout", "status", "items"}
    assert lines["indexes"] == ", ".join(found["indexes"])


def test_a_table_on_a_terminal_is_aligned(clade: Run) -> None:
    clade("key", "create", "--name", "a shop of a long name", "--grant", "read:location")
    clade("key", "create", "--name", "b", "--grant", "read:location")
    main, worker = pty.openpty()
    with os.fdopen(main, "rb", buffering=0) as terminal:
        with os.fdopen(worker, "wb") as output:
            subprocess.run([CLADE, "key", "list"], stdout=output, check=True, env=os.environ)
        header, *rows = terminal.read(10_000).decode().splitlines()
    starts = {row.index("never expires") for row in rows}
    assert starts == {header.index("state")}


@pytest.mark.both_stores(False)
@pytest.mark.parametrize(
    ("words", "found"),
    [("che", {"check"}), ("tree lo", {"location"}), ("import --tr", {"--tree-by"}), ("key rev", {"revoke"})],
)
def test_a_shell_completes_commands_options_and_hierarchies(words: str, found: set[str]) -> None:
    env = {
        **os.environ,
        "_CLADE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"clade {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    done = subprocess.run([CLADE], env=env, capture_output=True, text=True, check=False)
    assert {*done.stdout.split()} == found, done.stderr
