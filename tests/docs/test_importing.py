"""docs/importing.md: its commands are run as they are written, from top to bottom, and trees are as they are shown."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CLADE
from tests.readme import DOCS

PAGE = (DOCS / "importing.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"clade import \w+ ([\w-]+\.\w+)")
FORMS = PAGE[PAGE.index("## Your file has …") : PAGE.index("### What stops an import")]


def run(text: str, folder: Path) -> tuple[str, str]:
    """Run the commands of a text with the files before them; compare each tree that is shown after them."""
    store, output, errors = "", "", ""
    blocks = _BLOCK.findall(text)
    for number, (language, content) in enumerate(blocks):
        if language != "sh":
            continue
        store = next((line for line in content.splitlines() if line.startswith("export ")), store)
        file = _FILE.search(content)
        if file is not None and number and blocks[number - 1][0] != "sh":
            (folder / file[1]).write_text(blocks[number - 1][1], encoding="utf-8")
        done = subprocess.run(
            ["sh", "-ec", f"{store}\n{content}"],
            cwd=folder, env={**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, content + done.stdout + done.stderr
        if "clade tree" in content and blocks[number + 1 : number + 2] and blocks[number + 1][0] == "text":
            assert done.stdout.endswith(blocks[number + 1][1]), done.stdout
        output, errors = output + done.stdout, errors + done.stderr
    return output, errors


def test_every_form_of_a_file_becomes_the_tree_that_is_shown(tmp_path: Path) -> None:
    headings = re.findall("^### (.+)$", FORMS, re.MULTILINE)
    assert len(headings) == 6
    assert FORMS.count("```text\n") == 8, "seven trees and a file"
    run(FORMS, tmp_path)


@pytest.mark.thorough
def test_all_commands_of_the_page_run(tmp_path: Path) -> None:
    output, errors = run(PAGE, tmp_path)
    shown = ("many", "2 COUNTRY, 1 STATE, 2 CITY, 3 STORE", "added: 3 (3 CATEGORY)", "Nothing would change.")
    shown += ("would be moved: 1 (1 CITY)\n  US/NE/Lincoln -> US/NE/Lancaster/Lincoln\nwould be added: 1 (1 COUNTY)",)
    for words in (*shown, "Lincoln CITY"):
        assert words in output, output
    assert "New York City CITY" not in output
    assert "Copied " in output
    assert "no findings" in output
    assert "Proposed command:\n  clade import location stores.csv --level country=Country" in output
    assert "staedte.csv: 2 rows, 3 nodes" in output
    assert "delimiter ;, guessed" in errors
    assert (tmp_path / "nodes.csv").read_text().startswith("path,level,name,id,code,")
    assert (tmp_path / "nebraska.jsonl").read_text().count("\n") == 7
