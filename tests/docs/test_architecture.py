"""docs/architecture.md: every folder is on the map, and each invariant names the tests that hold it."""

import re
import subprocess

from tests.readme import DOCS, ROOT, section

PAGE = DOCS / "architecture.md"


def test_every_folder_is_on_the_map():
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    tops = {f"{file.partition('/')[0]}/" for file in files if "/" in file}
    packages = {file.removesuffix("__init__.py") for file in files if file.endswith("/__init__.py")}
    wanted = tops | {name for name in packages if not name.startswith(("tests/", "bench/", "clade/"))}
    assert wanted <= set(re.findall(r"`([\w./]+/)`", section("Map of the code", PAGE)))


def test_each_invariant_names_the_tests_that_hold_it():
    _, _, text = PAGE.read_text("utf-8").partition("## Invariants")
    invariants = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(invariants) >= 20
    assert [one for one in invariants if not re.search(r"`tests/[\w/]+\.py`", one)] == []  # test_pages: they exist
