"""`clade delete`: a node with its descendants, after a question or with --yes."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of
from store.edits import reader
from tests.conftest import CLADE

pytestmark = pytest.mark.both_stores

Run = Callable[..., Result]
PATHS = {"US": "COUNTRY", "US/NE": "STATE", "US/NE/Omaha": "CITY", "US/NE/Lincoln": "CITY", "SG": "COUNTRY"}
"""The levels of nodes by path."""


@pytest.fixture
def clade(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a store with five places."""
    monkeypatch.setenv("CLADE_STORE", store_url)
    monkeypatch.setenv("CLADE_REQUEST_SECONDS", "0.5")  # which a large deletion waits for
    file = tmp_path / "places.jsonl"
    file.write_text("".join(json.dumps({"path": path, "level": level}) + "\n" for path, level in PATHS.items()))

    def run(*words: object) -> Result:
        return CliRunner().invoke(app_of(), list(map(str, words)))

    run("table", "create")
    assert run("import", "location", file).exit_code == 0
    return run


def paths(clade: Run, hierarchy: str = "location") -> list[str]:
    return ["/".join(json.loads(line)["path"]) for line in clade("export", hierarchy).stdout.splitlines()]


def test_a_node_without_descendants_is_deleted(clade: Run) -> None:
    result = clade("delete", "location", "US/NE/Omaha")
    assert (result.exit_code, result.stdout) == (0, "deleted: 1 (1 CITY)\n"), result.output
    assert paths(clade) == ["SG", "US", "US/NE", "US/NE/Lincoln"]


def test_a_dry_run_counts_and_deletes_nothing(clade: Run) -> None:
    result = clade("delete", "location", "US", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, "would be deleted: 4 (1 COUNTRY, 1 STATE, 2 CITY)\n")
    found = json.loads(clade("delete", "location", "US", "--dry-run", "--json").stdout)
    assert found == {"path": "US", "dryRun": True, "deleted": {"COUNTRY": 1, "STATE": 1, "CITY": 2}}
    assert len(paths(clade)) == len(PATHS)


def test_descendants_are_deleted_only_with_a_confirmation(clade: Run) -> None:
    refused = clade("delete", "location", "US")
    assert (refused.exit_code, str(refused.exception)) == (
        1, "US has 3 descendants; --yes deletes them, too, --dry-run counts them by level.",
    )  # fmt: skip
    assert len(paths(clade)) == len(PATHS)
    assert clade("delete", "location", "US", "--yes").stdout == "deleted: 4 (1 COUNTRY, 1 STATE, 2 CITY)\n"
    assert paths(clade) == ["SG"]
    assert "no findings" in clade("check").stdout


def test_more_nodes_than_fit_into_a_transaction_are_gone_when_the_command_ends(
    clade: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_NODES", 2)
    result = clade("delete", "location", "US", "--yes")
    assert (result.exit_code, result.stdout) == (0, "deleted: 4 (1 COUNTRY, 1 STATE, 2 CITY)\n"), result.output
    assert paths(clade) == ["SG"]
    assert "no findings" in clade("check").stdout


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", ["SG"]), (b"n\n", [*PATHS])])
def test_on_a_terminal_it_asks(clade: Run, answer: bytes, left: list[str]) -> None:
    main, worker = pty.openpty()
    command = [CLADE, "delete", "location", "US"]
    with os.fdopen(main, "wb", buffering=0) as terminal, os.fdopen(worker, "rb") as standard:
        with subprocess.Popen(command, stdin=standard, stderr=standard, stdout=subprocess.PIPE) as running:
            terminal.write(answer)
            running.communicate()
        assert running.returncode == (0 if left == ["SG"] else 1)
    assert sorted(paths(clade)) == sorted(left)


@pytest.mark.parametrize("path", ["US/IA", "US//NE", "US/" + "x" * 3000])
def test_a_path_without_a_node_is_one_sentence(clade: Run, path: str) -> None:
    result = clade("delete", "location", path, "--yes")
    assert result.exit_code == 1
    assert "\n" not in str(result.exception)
    assert len(paths(clade)) == len(PATHS)
