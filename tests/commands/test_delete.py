"""`clade delete`: a node, alone, with its descendants, or with its children moved to its parent."""

import json
import os
import pty
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from commands.interrupt import EXIT_INTERRUPTED
from store.dynamodb.store import DynamoDBStore
from store.errors import BadInput, CladeError
from store.metadata import moves
from store.sqlite.store import SQLiteStore
from tests.commands.conftest import Clade
from tests.conftest import CLADE

PATHS = {"US": "COUNTRY", "US/NE": "STATE", "US/NE/Omaha": "CITY", "US/NE/Lin coln": "CITY", "SG": "COUNTRY"}
"""The levels of nodes by path."""
UNDO = "To undo this: clade restore-nodes location "
ALL = "4 nodes (1 COUNTRY, 1 STATE, 2 CITY)"


@pytest.fixture
def filled(clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command on a table with five places."""
    monkeypatch.setenv("CLADE_REQUEST_SECONDS", "0.1")  # which a large deletion waits for, and
    monkeypatch.setenv("CLADE_SETTLE_SECONDS", "0")
    monkeypatch.setattr(moves, "MARGIN_SECONDS", 0.0)
    file = tmp_path / "places.jsonl"
    nodes = [{"path": path, "level": level, "id": f"i{number}"} for number, (path, level) in enumerate(PATHS.items())]
    file.write_text("".join(json.dumps(node) + "\n" for node in nodes))
    assert clade("import", "location", file).exit_code == 0
    return clade


def paths(clade: Clade) -> list[str]:
    return ["/".join(json.loads(line)["path"]) for line in clade("export", "location").stdout.splitlines()]


@pytest.mark.both_stores
def test_a_node_is_deleted_by_its_path_or_its_id(filled: Clade) -> None:
    left = dict(PATHS)
    for place, path, undo in (
        ("US/NE/Lin coln", "US/NE/Lin coln", "i3"), ("--id=i2", "US/NE/Omaha", "i2"), ("--id=location:i4", "SG", "i4"),
    ):  # fmt: skip
        done = filled("delete", "location", place, "--yes")
        said = f"deleted: 1 node (1 {left.pop(path)})\nTo undo this: clade restore-nodes location {undo}\n"
        assert (done.exit_code, done.output) == (0, said)
        assert paths(filled) == sorted(left)
        assert filled("delete", "location", place, "--yes").exception is not None


def test_a_dry_run_counts_and_deletes_nothing(filled: Clade) -> None:
    words = ["delete", "location", "US", "--policy", "cascade", "--dry-run"]
    assert filled(*words).output == f"would be deleted: {ALL}\n"
    assert json.loads(filled(*words, "--json").stdout) == {
        "path": "US", "id": "i0", "dryRun": True, "deleted": {"COUNTRY": 1, "STATE": 1, "CITY": 2},
    }  # fmt: skip
    assert sorted(paths(filled)) == sorted(PATHS)


REFUSED = [
    (["US"], "US has 3 descendants; --policy cascade deletes them, too, --policy reparent moves"),
    (["US", "--policy", "cascade"], f"{ALL} would be deleted; --yes deletes without a question"),
    (["SG"], "1 node (1 COUNTRY) would be deleted; --yes deletes"),
    (["US", "--policy", "REPARENT", "--yes"], "STATE may not stand as a root"),
    (["US/IA", "--yes"], 'location has no node "US/IA".'),
    (["US//NE", "--yes"], "empty"),
    (["x" * 3_000, "--yes"], "bytes"),
    (["--id", "none", "--yes"], 'location has no node with the id "none".'),
    (["--id", "i" * 3_000, "--yes"], "characters; at most"),
]


def test_what_cannot_be_deleted_is_refused_with_a_sentence(filled: Clade) -> None:
    for words, sentence in REFUSED:
        refused = filled("delete", "location", *words)
        assert (refused.stdout, isinstance(refused.exception, CladeError)) == ("", True), refused.output
        assert sentence in str(refused.exception)
        assert len(str(refused.exception)) < 400
    assert len(paths(filled)) == len(PATHS)


def test_reparent_moves_the_children_to_the_parent(filled: Clade, tmp_path: Path) -> None:
    done = filled("delete", "location", "US/NE", "--policy", "reparent", "--yes")
    assert (done.exit_code, done.output) == (0, f"deleted: 1 node (1 STATE)\n{UNDO}i1\n")
    assert paths(filled) == ["SG", "US", "US/Lin coln", "US/Omaha"]
    more = '{"path": "US/NE", "level": "STATE"}\n{"path": "US/NE/Omaha", "level": "CITY"}\n'
    (tmp_path / "more.jsonl").write_text(more)
    assert filled("import", "location", tmp_path / "more.jsonl").exit_code == 0
    refused = filled("delete", "location", "US/NE", "--policy", "reparent", "--yes")
    assert "US/NE/Omaha: There is another node at US/Omaha" in str(refused.exception)
    assert "US/NE/Omaha" in paths(filled)


def test_more_nodes_than_fit_into_a_transaction_are_gone_when_the_command_ends(
    filled: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cities.csv").write_text("country,city\n" + "".join(f"US,C{number}\n" for number in range(12)))
    assert filled("import", "location", tmp_path / "cities.csv").exit_code == 0
    for store in (SQLiteStore, DynamoDBStore):
        monkeypatch.setattr(store, "max_commit_changes", 24)
    done = filled("delete", "location", "US", "--policy", "cascade", "--yes")
    assert (done.exit_code, done.output) == (0, f"deleted: 16 nodes (1 COUNTRY, 1 STATE, 14 CITY)\n{UNDO}i0\n")
    assert paths(filled) == ["SG"]
    assert "no findings" in filled("check").stdout


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", ["SG"]), (None, sorted(PATHS))])
def test_on_a_terminal_it_asks(filled: Clade, store_url: str, answer: bytes | None, left: list[str]) -> None:
    """Ctrl-C is an answer, too; between the question and the wait for an answer it has no effect."""
    main, worker = pty.openpty()
    command = [CLADE, "delete", "location", "US", "--policy", "cascade", "--store", store_url]
    with (
        os.fdopen(main, "r+b", buffering=0) as terminal,
        os.fdopen(worker, "rb") as standard,
        subprocess.Popen(command, stdin=standard, stderr=standard, stdout=subprocess.PIPE) as running,
    ):
        asked = b""
        while b"[y/N]" not in asked:
            asked += terminal.read(1 << 16)
        try:
            if answer is not None:
                terminal.write(answer)
            for _ in range(200 if answer is None else 0):
                running.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):  # it came before the command was waiting for the answer
                    running.wait(timeout=0.2)
                    break
            printed, _ = running.communicate(timeout=60)
        finally:
            running.kill()
    assert f"Delete US: {ALL}?".encode() in asked
    status = 0 if answer else EXIT_INTERRUPTED
    assert (running.returncode, printed) == (
        status,
        f"deleted: {ALL}\n{UNDO}i0 --store {shlex.quote(store_url)}\n".encode() if answer else b"",
    )
    assert sorted(paths(filled)) == left


def test_it_needs_a_path_or_an_id(filled: Clade) -> None:
    for words in ([], ["US", "--id", "i0"]):
        assert filled("delete", "location", *words, "--yes").exit_code == 2
    assert isinstance(filled("delete", "planets", "US").exception, BadInput)
