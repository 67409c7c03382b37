"""`clade rewrite-names`: output and effect."""

import json
from pathlib import Path

import pytest

from tests.commands.importing.test_command import Clade, clade  # noqa: F401 - a fixture

BEFORE, AFTER = "tests.classes.land_before", "tests.classes.land_after"
LINES = [
    {"path": "DE", "level": "COUNTRY"},
    {"path": "DE/Bonn", "level": "TOWN", "people": 7, "gone": "x"},
    {"path": "DE/Ulm", "level": "TOWN", "mayor": "Ann"},
]


def test_former_names_are_counted_and_rewritten(
    clade: Clade,  # noqa: F811 - a fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "nodes.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    monkeypatch.setenv("CLADE_HIERARCHIES", BEFORE)
    assert clade("import", "land", file).exit_code == 0
    monkeypatch.setenv("CLADE_HIERARCHIES", AFTER)
    assert clade("tree", "land", "DE").output.splitlines()[0] == "DE COUNTRY (2 CITY)"
    checked = clade("check", "land")
    assert checked.exit_code == 0
    assert "land: 1 node of CITY has population under its former name people." in checked.output
    assert clade("rewrite-names", "land", "--dry-run").output == "land: 2 nodes would be rewritten.\n"
    assert clade("rewrite-names", "land").output == "land: 2 nodes were rewritten.\n"
    assert clade("rewrite-names", "land").output == "land: 0 nodes were rewritten.\n"
    checked = clade("check", "land")
    assert "former" not in checked.output
    assert "land: 1 node has a value of gone, which CITY does not define." in checked.output
    exported = [json.loads(line) for line in clade("export", "land").output.splitlines() if line.startswith("{")]
    assert [(one["level"], one.get("population"), one.get("major")) for one in exported] == [
        ("COUNTRY", None, None), ("CITY", 7, None), ("CITY", None, "Ann"),
    ]  # fmt: skip
