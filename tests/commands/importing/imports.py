"""Imports of files into a new SQLite file, by the command, with the nodes that are stored then."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from commands.main import app_of


class Done(NamedTuple):
    """A command that has ended: its exit status, its output, and the nodes that are stored then, by path."""

    status: int
    said: str
    nodes: dict[str, dict[str, Any]]


Import = Callable[..., Done]


def importer(folder: Path, monkeypatch: pytest.MonkeyPatch, *hierarchies: object) -> Import:
    """A function that imports a file of a hierarchy with the words of the command."""
    monkeypatch.setenv("CLADE_STORE", f"sqlite:///{folder}/nodes.db")
    monkeypatch.setenv("CLADE_HIERARCHIES", ",".join(map(str, hierarchies)))

    def imported(hierarchy: str, *words: object) -> Done:
        done = CliRunner().invoke(app_of(), ["import", hierarchy, *map(str, words)])
        nodes = stored(hierarchy) if os.path.exists(folder / "nodes.db") else {}
        return Done(done.exit_code, f"{done.output}{done.exception or ''}", nodes)

    return imported


def stored(hierarchy: str) -> dict[str, dict[str, Any]]:
    """The stored nodes by path."""
    lines = CliRunner().invoke(app_of(), ["export", hierarchy]).stdout.splitlines()
    return {"/".join(node["path"]): node for node in map(json.loads, lines)}


def written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file
