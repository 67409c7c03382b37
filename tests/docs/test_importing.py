"""docs/importing.md: its commands are run as they are written, from top to bottom."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CLADE
from tests.readme import DOCS, blocks

PAGE = (DOCS / "importing.md").read_text("utf-8")


@pytest.mark.thorough
def test_all_commands_of_the_page_run(tmp_path: Path) -> None:
    (tmp_path / "stores.csv").write_text(blocks("csv", PAGE)[0])
    (tmp_path / "staedte.csv").write_text(blocks("csv", PAGE)[1])
    (tmp_path / "garden.csv").write_text(blocks("csv", PAGE)[2])
    (tmp_path / "more.jsonl").write_text(blocks("json", PAGE)[1])
    (tmp_path / "tree.json").write_text(blocks("json", PAGE)[0])
    (tmp_path / "moving.jsonl").write_text(blocks("json", PAGE)[2])
    (tmp_path / "taxonomy.txt").write_text(blocks("text", PAGE)[0])
    output = subprocess.run(
        ["sh", "-ec", "\n".join(blocks("sh", PAGE))],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert output.returncode == 0, output.stderr
    shown = ("many", "2 COUNTRY, 1 STATE, 2 CITY, 3 STORE", "added: 3 (3 CATEGORY)", "Nothing would change.")
    shown += ("would be moved: 1 (1 CITY)\n  US/NE/Lincoln -> US/NE/Lancaster/Lincoln\nwould be added: 1 (1 COUNTY)",)
    for words in (*shown, "Lincoln CITY"):
        assert words in output.stdout, output.stdout
    assert "added: 3 (2 CATEGORY, 1 PRODUCT)" in output.stdout
    assert "New York City CITY" not in output.stdout
    assert "Copied " in output.stdout
    assert "no findings" in output.stdout
    assert "Proposed command:\n  clade import location stores.csv --level country=Country" in output.stdout
    assert "staedte.csv: 2 rows, 3 nodes" in output.stdout
    assert "delimiter ;, guessed" in output.stderr
    assert (tmp_path / "nodes.csv").read_text().startswith("path,level,name,id,code,")
    assert (tmp_path / "nebraska.jsonl").read_text().count("\n") == 7
