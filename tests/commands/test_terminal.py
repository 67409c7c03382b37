"""What a terminal would obey, and what would begin a line: texts of files, of the store and of errors are printed on
their line without it, and JSON escapes it.
"""

import asyncio
import csv
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands import main
from store.api_keys import add_key, new_key
from store.connect import open_store
from store.model.keys import Key
from tests.conftest import CLADE
from tests.store.checking.broken import change
from tests.store.transfer.test_load import imported

CONTROLS = ("\x1b]0;title\x07", "\r", "\n", "\x85", "\x9b2J", "\u2028", "\u202e", "\u2066", "\x7f", "\t", "\b")
FORGED = "forged"
TEXT = "Store" + "".join(f"{control}{FORGED}" for control in CONTROLS)
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as a process does, on a store with such texts; both its outputs."""
    url = f"sqlite:///{tmp_path}/clade.db"

    async def fill() -> None:
        async with open_store(url) as store:
            await store.create()
            await imported(store, [("US", "COUNTRY", {"name": TEXT}), ("US/NE", "STATE")])
            key, _ = new_key("", ["read:location"], None)
            await add_key(store, replace(key, name=TEXT, grants=(f"read:location/{TEXT}", "read:category")))
            await change(store, Key("location#US", "#NE#"), level=TEXT)

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLADE_STORE", url)

    def run(*words: object) -> str:
        monkeypatch.setattr("sys.argv", ["clade", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main.run()
        printed = "".join(capsys.readouterr()) + (ended.value.code if isinstance(ended.value.code, str) else "")
        assert not OBEYED.search(printed), ascii(printed)
        assert not [line for line in printed.splitlines() if line.strip().startswith(FORGED)], printed
        return printed

    return run


def test_one_module_prints() -> None:
    folder = Path(main.__file__).parent
    printing = {file.name for file in folder.rglob("*.py") if re.search(r"\b(print|\w*echo)\(", file.read_text())}
    assert printing == {"output.py"}


def test_texts_of_the_store_are_printed_on_their_lines(run: Run) -> None:
    assert len(run("tree", "location").splitlines()) == 2
    assert "2 findings" in run("check", "location")
    assert run("key", "list").count("\t") == 4  # between the cells


def test_json_escapes_what_a_terminal_obeys(run: Run) -> None:
    names = [json.loads(line)["name"] for line in run("tree", "location", "--json").splitlines()]
    assert names == [TEXT, "NE"]
    (key,) = json.loads(run("key", "list", "--json"))
    assert (key["name"], key["grants"]) == (TEXT, [f"read:location/{TEXT}", "read:category"])


def table(rows: list[list[str]]) -> str:
    """A file whose name and header have such texts."""
    with open(name := f"{TEXT}.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return name


def test_texts_of_a_file_are_printed_on_their_lines(run: Run) -> None:
    name = table([["country", TEXT], ["FR", TEXT], ["", TEXT], ["DE\n", TEXT]])
    options = ("--level", "country=country", "--name", f"country={TEXT}", "--yes")
    printed = run("import", "location", name, *options, "--dry-run")
    assert "rejected: 1 row" in printed
    assert "would be added: 2" in printed
    document, *_ = run("import", "location", name, *options, "--json").splitlines()
    assert json.loads(document)["source"] == name
    assert "No column is named" in run("import", "location", table([[TEXT], ["x"]]))


def test_a_proposed_command_names_columns_so_that_a_shell_reads_them(run: Run) -> None:
    described = run("import", "location", table([["country", TEXT], ["FR", "N/A"], ["DE", "Germany"]]), "--describe")
    command = described.splitlines()[-1].replace("clade", str(CLADE), 1)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    described = run("import", "location", table([["country\0"], ["FR"]]), "--describe", "--level", "country=country\0")
    assert described.splitlines()[-1].startswith("No command is proposed: a name has the character NUL")
