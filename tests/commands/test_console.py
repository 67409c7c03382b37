"""Consoles whose encoding lacks the characters of names: commands print them replaced and end as usual, and data is
written unchanged.
"""

import os
import subprocess

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from tests.conftest import CLADE

HIERARCHY = '''
from clade import Node


class Thing(Node, hierarchy="thing"):
    """Ding von großem Wert, вещь."""


class Box(Thing, under=None):
    """A box."""
'''
PATHS = {"Сербия", "Сербия/Ниш", "Köln", "日本", "日本/東京"}
ESCAPED = r"\u0421\u0435\u0440\u0431\u0438\u044f"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The store with such names, and its folder with a class that is described so."""
    folder = tmp_path_factory.mktemp("console")
    (folder / "thing.py").write_text(HIERARCHY, "utf-8")
    (folder / "cities.csv").write_text("Country,City\nСербия,Ниш\nKöln,\n日本,東京\n", "utf-8")
    found = {"CLADE_STORE": f"sqlite:///{folder}/clade.db"}
    for words in (
        ["import", "location", str(folder / "cities.csv")],
        ["key", "create", "--name", "Сербия", "--grant", "read:location"],
    ):
        done = CliRunner().invoke(app_of(), words, env=found)
        assert done.exit_code == 0, done.output
    return {**found, "FOLDER": str(folder)}


def run(settings: dict[str, str], encoding: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **settings, "PYTHONIOENCODING": encoding}
    done = subprocess.run([CLADE, *words], env=environment, cwd=settings["FOLDER"], capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    ("encoding", "words", "status", "text"),
    [
        ("cp1252:strict", "tree location --depth 2", 0, f"{ESCAPED} COUNTRY (1 CITY)\n`-- "),
        pytest.param(
            "cp1252", "import location cities.csv --dry-run --store sqlite:///other.db", 0, f"  {ESCAPED}",
            marks=pytest.mark.thorough,
        ),
        ("ascii:strict", "key list", 0, r"\u0421"),
        ("cp1252", "tree location Ниш", 1, r'location has no node "\u041d'),
    ],
)  # fmt: skip
def test_names_that_a_console_lacks_are_replaced(
    settings: dict[str, str], encoding: str, words: str, status: int, text: str
) -> None:
    done = run(settings, encoding, *words.split())
    output = (done.stdout + done.stderr).decode(encoding.partition(":")[0])
    assert (done.returncode, text in output) == (status, True), output


def test_data_is_utf_8_on_any_console(settings: dict[str, str]) -> None:
    exported = run(settings, "ascii:strict", "export", "location", "--format", "csv").stdout.decode()
    assert {line.partition(",")[0] for line in exported.splitlines()} == {"path", *PATHS}
    schema = run({**settings, "CLADE_HIERARCHIES": "thing.py"}, "cp1252:strict", "schema").stdout.decode()
    assert "Ding von großem Wert, вещь." in schema
