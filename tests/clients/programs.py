"""Node's programs of the clients, as they come from npm by tests/package.json."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands.main import app_of

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "node_modules" / ".bin"
RUN_SECONDS = 120

needs_node = pytest.mark.skipif(
    not shutil.which("node") or not (PROGRAMS / "relay-compiler").exists(),
    reason="node or the packages of tests/package.json are missing",
)


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a program prints; that it complains is a failure."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=RUN_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout


def compile_relay(project: Path, schema: Path, language: str) -> Path:
    """The folder with what Relay's compiler makes of the operations in `source` of a project."""
    made = project / "made"
    made.mkdir()
    config = {
        "src": "./source", "schema": str(schema), "language": language, "artifactDirectory": "./made",
        "eagerEsModules": False,
    }  # fmt: skip
    (project / "relay.config.json").write_text(json.dumps(config))
    run(PROGRAMS / "relay-compiler", "relay.config.json", "--noWatchman", cwd=project)
    return made


def write_schema(folder: Path, hierarchies: str) -> Path:
    """The file `schema.graphql` of a folder with the schema of these hierarchies."""
    file = folder / "schema.graphql"
    done = CliRunner().invoke(app_of(), ["schema", str(file)], env={"CLADE_HIERARCHIES": hierarchies})
    assert done.exit_code == 0, done.output
    return file


def create(store: str) -> None:
    """Make the table of a store."""
    done = CliRunner().invoke(app_of(), ["table", "create", "--store", store])
    assert done.exit_code == 0, done.output
