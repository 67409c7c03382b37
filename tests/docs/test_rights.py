"""docs/rights.md: its commands are run as they are written, its token is accepted."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CLADE
from tests.readme import DOCS, blocks


@pytest.mark.thorough
def test_all_commands_of_the_page_run(tmp_path: Path) -> None:
    (tmp_path / "nodes.jsonl").write_text('{"path": "US", "level": "COUNTRY"}\n')
    commands = "\n".join(blocks("sh", (DOCS / "rights.md").read_text("utf-8")))
    output = subprocess.run(
        ["sh", "-ec", f"clade import location nodes.jsonl\n{commands}"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", "CLADE_STORE": "sqlite:///clade.db"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert output.returncode == 0, output.stderr
    assert re.search(r"^clade_[0-9a-f]{16}_[\w-]{43}$", output.stdout, re.MULTILINE)
