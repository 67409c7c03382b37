"""Ctrl-C at chosen moments of every command: one sentence, the exit status 130, and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CLADE

RUN_SECONDS = 120
NODES = 5_002
INTERRUPTING = Path(__file__).with_name("interrupting.py")
READING = "store.transfer.rows:ImportPlan.take*2"
WRITING = "store.sqlite.store:SQLiteStore.commit*2"
CLOSING = "asyncio.runners:_cancel_all_tasks"
TELLING = "typer:echo"
ENDING = "threading:_shutdown"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("CLADE_")}


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
    )


def interrupted(folder: Path, moments: tuple[str, ...], *command: str) -> str:
    """What a command says to which Ctrl-C is pressed at these moments."""
    ended = run(folder, sys.executable, INTERRUPTING, ",".join(moments), *command)
    assert ended.returncode == 130, ended
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two nodes, and with a file of more of them than one commit takes."""
    folder = tmp_path_factory.mktemp("places")
    rows: list[dict[str, object]] = [{"path": ["US"], "level": "COUNTRY"}, {"path": ["US", "NE"], "level": "STATE"}]
    (folder / "few.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows += [{"path": ["US", "NE", str(number)], "level": "CITY"} for number in range(NODES - 2)]
    (folder / "places.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for command in (("table", "create"), ("import", "location", "few.jsonl"), ("backup", "backup.db")):
        ended = run(folder, CLADE, *command)
        assert ended.returncode == 0, ended
    return folder


@pytest.mark.parametrize(
    ("moments", "told"),
    [
        (("import:typer",), "clade: Stopped.\n"),
        (("import:pydantic_settings", ENDING), "clade: Stopped.\n"),
        ((READING, TELLING, ENDING), "Stopped: 0 nodes written. Run the same command to continue.\n"),
        ((WRITING, CLOSING, TELLING, ENDING), "Stopped: "),
    ],
)
def test_an_import_says_one_sentence_whenever_and_however_often_it_is_interrupted(places, tmp_path, moments, told):
    (tmp_path / "places.jsonl").symlink_to(places / "places.jsonl")
    said = interrupted(tmp_path, moments, "import", "location", "places.jsonl")
    assert said.startswith(told)
    if WRITING in moments:
        written = int(said.split()[1].replace(",", ""))
        assert 0 < written < NODES
        assert said == f"Stopped: {written:,} nodes written. Run the same command to continue.\n"
        again = run(tmp_path, CLADE, "import", "location", "places.jsonl")
        assert (again.returncode, f"added: {NODES - written:,} (" in again.stdout) == (0, True), again
        assert run(tmp_path, CLADE, "check").returncode == 0
        assert "Nothing changed." in run(tmp_path, CLADE, "import", "location", "places.jsonl").stdout


COMMANDS = [
    ["tree", "location"],
    ["check"],
    ["repair"],
    ["export", "location"],
    ["export", "location", "--output", "made.jsonl"],
    ["backup", "made.db"],
    ["restore", "backup.db"],
    ["copy", "sqlite:///clade.db", "sqlite:///made.db"],
    ["key", "list"],
    ["key", "create", "--grant", "read:location"],
    ["demo", "--again"],
    ["rewrite-names", "location"],
    ["serve", "--port", "0"],
    ["table", "describe"],
    ["schema", "made.graphql"],
]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(one, id=" ".join(one), marks=[] if one[0] in ("backup", "export") else pytest.mark.thorough)
        for one in COMMANDS
    ],
)
def test_every_command_says_one_sentence_and_leaves_no_file_when_it_is_interrupted(places, command):
    before = {file.name for file in places.iterdir()}
    first = "graph.schema:build_schema" if command[0] == "schema" else "store.sqlite.connection:Database.connection*2"
    interrupted(places, (first, CLOSING, TELLING, ENDING), *command)
    assert {file.name for file in places.iterdir()} - {"clade.db-shm", "clade.db-wal"} <= before
