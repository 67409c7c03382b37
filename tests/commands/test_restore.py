"""`clade restore-nodes` and `clade delete --list`: what the commands say to type undoes deletions."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import Result

from commands.interrupt import EXIT_INTERRUPTED
from store.connect import open_store
from store.dynamodb.store import DynamoDBStore
from store.engine import ReadUsage
from store.errors import CladeError
from store.metadata import moves
from store.reading import recent_moves
from store.sqlite.store import SQLiteStore
from tests.commands.conftest import Clade
from tests.conftest import CLADE

PATHS = {"US": "COUNTRY", "US/NE": "STATE", "US/NE/Omaha": "CITY", "US/NE/Lin coln": "CITY", "SG": "COUNTRY"}
ID = {path: f"i{number}" for number, path in enumerate(PATHS)}
CITIES = 60  # more than fit into a transaction of DynamoDB


@pytest.fixture
def filled(clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command on a table with five places."""
    monkeypatch.setenv("CLADE_REQUEST_SECONDS", "0.1")  # which a large deletion or restore waits for, and
    monkeypatch.setenv("CLADE_SETTLE_SECONDS", "0")
    monkeypatch.setattr(moves, "MARGIN_SECONDS", 0.0)
    import_nodes(clade, tmp_path, "location", {path: (level, {"id": ID[path]}) for path, level in PATHS.items()})
    return clade


def import_nodes(clade: Clade, folder: Path, hierarchy: str, nodes: dict[str, tuple[str, dict[str, str]]]) -> None:
    """Import nodes, given by path with their levels and other fields."""
    lines = [json.dumps({"path": path, "level": level, **more}) for path, (level, more) in nodes.items()]
    (folder / "nodes.jsonl").write_text("\n".join(lines))
    assert clade("import", hierarchy, folder / "nodes.jsonl").exit_code == 0


def exported(clade: Clade) -> dict[str, str]:
    """The ids of all nodes by path."""
    lines = map(json.loads, clade("export", "location").stdout.splitlines())
    return {"/".join(line["path"]): line["id"] for line in lines}


def delete(clade: Clade, *paths: str) -> None:
    for path in paths:
        assert clade("delete", "location", path, "--policy", "cascade", "--yes").exit_code == 0


def listed(clade: Clade, *words: str) -> list[tuple[str, str, int]]:
    """Path, id and number of nodes of each deletion that is listed."""
    lines = map(json.loads, clade("delete", "location", *words, "--list", "--json").stdout.splitlines())
    return [(line["path"], line["id"], line["nodes"]) for line in lines]


def advice(text: str) -> list[str]:
    """The words of the last command that a text says to type, without the first one."""
    line = [line for line in text.splitlines() if "clade restore-nodes" in line][-1]
    return shlex.split(line[line.index("clade restore-nodes") :])[1:]


def refused(done: Result, sentence: str) -> None:
    assert isinstance(done.exception, CladeError), done.output
    assert sentence in str(done.exception)


@pytest.mark.both_stores
def test_a_deletion_is_undone_by_the_command_that_it_ends_with(filled: Clade) -> None:
    for path, nodes in (("US", 4), ("SG", 1), ("US/NE/Lin coln", 1)):
        done = filled("delete", "location", path, "--policy", "cascade", "--yes")
        back = filled(*advice(done.stdout))
        said = f"restored: {nodes} node{'s' * (nodes > 1)} at {path}\n"
        assert (back.exit_code, back.output) == (0, said)
        assert exported(filled) == ID
    assert "no findings" in filled("check").stdout


def test_deletions_that_can_be_undone_are_listed_newest_first(filled: Clade) -> None:
    nothing = filled("delete", "location", "--list")
    assert (nothing.stdout, "no deletion" in nothing.stderr) == ("", True)
    delete(filled, "US/NE/Omaha", "US/NE", "SG")
    found = [("SG", "i4", 1), ("US/NE", "i1", 2), ("US/NE/Omaha", "i2", 1)]
    assert listed(filled) == found
    assert listed(filled, "US") == listed(filled, "US/NE/Lin coln") == found[1:]
    assert (listed(filled, "SG"), listed(filled, "FR")) == (found[:1], [])
    shown = filled("delete", "location", "--list")
    assert [line.split("\t")[1:] for line in shown.stdout.splitlines()] == [["", *map(str, one)] for one in found]
    assert "no findings" in filled("check").stdout
    assert filled(*advice(shown.stderr)).stdout == "restored: 1 node at SG\n"
    assert listed(filled) == found[1:]
    delete(filled, "US")
    assert listed(filled) == [("US", "i0", 1)]
    assert listed(filled, "US") == [("US", "i0", 1), *found[1:]]


def test_a_deletion_by_a_pruning_import_is_one_entry(filled: Clade, tmp_path: Path) -> None:
    (tmp_path / "less.jsonl").write_text('{"path": "US", "level": "COUNTRY", "id": "i0"}\n')
    assert filled("import", "location", tmp_path / "less.jsonl", "--prune").exit_code == 0
    assert listed(filled) == [("US/NE", "i1", 3)]
    assert filled("restore-nodes", "location", "i1").stdout == "restored: 3 nodes at US/NE\n"
    assert exported(filled) == ID


def test_nodes_are_restored_in_the_order_given_up_to_the_first_fault(filled: Clade, tmp_path: Path) -> None:
    delete(filled, "US/NE/Omaha", "US/NE", "SG")
    done = filled("restore-nodes", "location", "location:i1", "i2", "i9", "i4")
    refused(done, 'There is no deleted node with the id "location:i9".')
    assert done.stdout == "restored: 2 nodes at US/NE\nrestored: 1 node at US/NE/Omaha\n"
    assert done.stderr == "Failed: 2 of 4 ids restored. To go on: clade restore-nodes location i9 i4\n"
    delete(filled, "US/NE/Omaha")
    import_nodes(filled, tmp_path, "location", {"US/NE/x": ("CITY", {"id": "i9"})})
    delete(filled, "US/NE/x")
    again = filled(*advice(done.stderr), "--json")
    assert [json.loads(line) for line in again.stdout.splitlines()] == [
        {"path": path, "id": node_id, "dryRun": False, "nodes": 1}
        for path, node_id in (("US/NE/x", "i9"), ("SG", "i4"))
    ]


def test_what_cannot_be_restored_is_refused_with_a_sentence(filled: Clade) -> None:
    delete(filled, "US/NE/Omaha", "US/NE", "SG")
    before = listed(filled)
    for words, sentence in [
        (["i2"], "The parent location:i1 is deleted as well; restore that first, or give --to."),
        (["i2", "--to", "US/XX"], "US/XX"), (["i4", "--to", "US"], "COUNTRY may not stand under COUNTRY"),
        (["i0"], 'There is no deleted node with the id "location:i0".'), (["category:i4"], "a blank, a control"),
        (["i2", "--to", ""], "The path is empty"),
    ]:  # fmt: skip
        refused(filled("restore-nodes", "location", *words), sentence)
    refused(filled("restore-nodes", "planets", "i2"), 'Unknown hierarchy "planets"')
    for words in (["restore-nodes", "location"], ["delete", "location", "--list", "--id", "i2"]):
        assert filled(*words).exit_code == 2
    assert listed(filled) == before


def test_a_node_goes_below_another_parent(filled: Clade) -> None:
    delete(filled, "US/NE/Omaha", "US/NE")
    words = ["restore-nodes", "location", "i2", "--to", "US"]
    tried = filled(*words, "--dry-run")
    assert (tried.exit_code, tried.output) == (0, "would be restored: 1 node at US/Omaha\n")
    assert exported(filled) == {"US": "i0", "SG": "i4"}
    done = filled(*words, "--json")
    assert json.loads(done.stdout) == {"path": "US/Omaha", "id": "i2", "dryRun": False, "nodes": 1}
    assert exported(filled) == {"US": "i0", "US/Omaha": "i2", "SG": "i4"}


def test_an_id_that_looks_like_an_option_is_printed_with_its_prefix(filled: Clade, tmp_path: Path) -> None:
    import_nodes(filled, tmp_path, "location", {"FR": ("COUNTRY", {"id": "-x'y"})})
    words = advice(filled("delete", "location", "FR", "--yes").stdout)
    assert words == ["restore-nodes", "location", "location:-x'y"]
    assert filled(*words).stdout == "restored: 1 node at FR\n"


def import_cities(clade: Clade, folder: Path) -> None:
    rows = "".join(f"US,C{number}\n" for number in range(CITIES))
    (folder / "cities.csv").write_text(f"country,city\n{rows}")
    assert clade("import", "location", folder / "cities.csv").exit_code == 0


def test_more_nodes_than_fit_into_a_transaction_are_back_when_the_command_ends(
    filled: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_cities(filled, tmp_path)
    before = exported(filled)
    for store in (SQLiteStore, DynamoDBStore):
        monkeypatch.setattr(store, "max_commit_changes", 60)
    words = advice(filled("delete", "location", "US", "--policy", "cascade", "--yes").stdout)
    nodes = CITIES + 4
    assert listed(filled) == [("US", "i0", nodes)]
    assert filled(*words, "--dry-run").output == f"would be restored: {nodes} nodes at US\n"
    done = filled(*words)
    assert (done.exit_code, done.output) == (0, f"restored: {nodes} nodes at US\n")
    assert exported(filled) == before
    assert "no findings" in filled("check").stdout


def test_a_large_restore_that_is_undone_says_why(
    filled: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLADE_HIERARCHIES", "tests.classes.goods")
    monkeypatch.syspath_prepend(Path.cwd())
    import_nodes(filled, tmp_path, "goods", {
        "A": ("SHELF", {}), "A/TV": ("PRODUCT", {"id": "tv", "sku": "TV-48"}),
        **{f"A/S{number}": ("SHELF", {}) for number in range(CITIES)},
    })  # fmt: skip
    for store in (SQLiteStore, DynamoDBStore):
        monkeypatch.setattr(store, "max_commit_changes", 60)
    words = advice(filled("delete", "goods", "A", "--policy", "cascade", "--yes").stdout)
    other = {"B": ("SHELF", {}), "B/TV": ("PRODUCT", {"id": "other", "sku": "TV-48"})}
    import_nodes(filled, tmp_path, "goods", other)
    refused(filled(*words), "TV-48 is the sku of another node")
    assert len(filled("export", "goods").stdout.splitlines()) == 2
    assert "no findings" in filled("check").stdout
    assert filled("delete", "goods", "--id", "other", "--yes").exit_code == 0
    assert filled(*words).stdout == f"restored: {CITIES + 2} nodes at A\n"


async def restores(url: str) -> int:
    """The number of restores that are running."""
    async with open_store(url) as store:
        return sum(move.gone is not None and move.ended_at is None for move in await recent_moves(store, ReadUsage()))


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
def test_a_large_restore_that_is_interrupted_is_completed_by_a_repair(
    filled: Clade, store_url: str, tmp_path: Path
) -> None:
    import_cities(filled, tmp_path)
    before = exported(filled)
    delete(filled, "SG", "US")
    words = [CLADE, "restore-nodes", "location", "i4", "i0"]
    environment = {**os.environ, "CLADE_STORE": store_url, "CLADE_REQUEST_SECONDS": "60"}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            for _ in range(600):
                if asyncio.run(restores(store_url)):
                    break
                time.sleep(0.05)
            running.send_signal(signal.SIGINT)
            printed, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, printed) == (EXIT_INTERRUPTED, "restored: 1 node at SG\n")
    assert said.startswith("Stopped: 1 of 2 ids restored. A large move, deletion or restore that has begun is")
    assert said.endswith("or by clade repair. To go on: clade restore-nodes location i0\n")
    assert exported(filled) == {"SG": "i4"}
    refused(filled(*advice(said)), "US is being restored with all below it; try again when the move")
    assert filled("repair").exit_code == 0
    assert exported(filled) == before
    refused(filled(*advice(said)), 'There is no deleted node with the id "location:i0".')
    assert "no findings" in filled("check").stdout
