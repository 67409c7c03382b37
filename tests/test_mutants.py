"""scripts/mutants: which changes it makes of code, and what is noted of the lines that tests execute."""

import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = b'''"""A text."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import ast
LIMIT: int = 7

def shorter(one: int | None, others: list[int] = (1,)) -> bool:
    assert one
    if one is None or not others:
        raise ValueError(LIMIT + 1)
    print(one)
    return 0 < one <= LIMIT and all(other + 1 for other in others if other)
'''
MUTANTS = """\
LIMIT: int = 8
def shorter(one: int | None, others: list[int] = (2,)) -> bool:
    if (not (one is None or not others)):
    if (one is None and (not others)):
    if (one is not None) or not others:
    if one is None or (others):
        pass
        raise ValueError((LIMIT - 1))
        raise ValueError(LIMIT + 2)
    pass
    return (0 < one <= LIMIT or all((other + 1 for other in others if other)))
    return (0 <= one <= LIMIT) and all(other + 1 for other in others if other)
    return (0 < one < LIMIT) and all(other + 1 for other in others if other)
    return 1 < one <= LIMIT and all(other + 1 for other in others if other)
    return 0 < one <= LIMIT and all((other - 1) for other in others if other)
    return 0 < one <= LIMIT and all(other + 2 for other in others if other)
    return 0 < one <= LIMIT and all(other + 1 for other in others if (not other))
"""


@pytest.fixture(scope="module")
def mutants():
    loader = SourceFileLoader("scripts_mutants", str(ROOT / "scripts/mutants"))
    module = module_from_spec(spec_from_loader("scripts_mutants", loader))
    sys.modules["scripts_mutants"] = module
    loader.exec_module(module)
    return module


def test_a_mutant_differs_in_one_place(mutants):
    found = mutants.Finder("store/shorter.py", SOURCE).found
    changed = [
        line
        for mutant in found
        for line, old in zip(mutant.source(SOURCE).decode().split("\n"), SOURCE.decode().split("\n"), strict=True)
        if line != old
    ]
    assert sorted(changed) == sorted(MUTANTS.splitlines())
    assert {mutant.place for mutant in found if mutant.line < 8} == {"store/shorter.py:*"}
    assert len({mutant.name for mutant in found}) == len(found)


def test_all_mutants_of_a_module_can_be_compiled(mutants):
    file = "store/text.py"
    source = (ROOT / file).read_bytes()
    found = mutants.Finder(file, source).found
    assert len(found) > 10
    for mutant in found:
        compile(mutant.source(source), file, "exec", dont_inherit=True)


def test_tests_are_noted_with_the_lines_that_they_execute_also_in_processes(tmp_path):
    (tmp_path / "shorter.py").write_text(
        "def double(n):\n    m = n\n    if n > 1:\n        return m * 2\n    return 0\n"
    )
    (tmp_path / "test_shorter.py").write_text(
        "import os, subprocess, sys\nfrom shorter import double\ndef test_one(): double(1)\n"
        "def test_two(): subprocess.run([sys.executable, '-c', 'import reached_lines; from shorter import double; "
        "double(2)'], check=True)\n"
    )
    (tmp_path / "reached_lines.py").write_text((ROOT / "tests/plugins/reached_lines.py").read_text())
    settings = {
        "root": str(tmp_path),
        "out": str(tmp_path),
        "offsets": {"shorter.py": 0},
        "places": ["shorter.py:4", "shorter.py:5"],
    }
    (tmp_path / "reached_lines.json").write_text(json.dumps(settings))
    (tmp_path / "lines").write_bytes(bytes(7))
    for name in ("reached", "tests"):
        (tmp_path / name).touch()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "reached_lines",
        f"--rootdir={tmp_path}",
        "test_shorter.py",
    ]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    if not hasattr(sys, "monitoring"):  # before Python 3.12 nothing is noted, and scripts/mutants does not run
        assert (tmp_path / "tests").read_bytes() == (tmp_path / "reached").read_bytes() == b""
        return
    reached = [json.loads(line) for line in (tmp_path / "reached").read_text().splitlines()]
    assert reached == [
        ["shorter.py:5", "test_shorter.py::test_one (call)"],
        ["shorter.py:4", "test_shorter.py::test_two (call)"],
    ]
    assert (tmp_path / "lines").read_bytes() == bytes([0, 1, 1, 1, 1, 1, 0])
    tests = [json.loads(line) for line in (tmp_path / "tests").read_text().splitlines()]
    assert [name for name, *_ in tests] == ["test_shorter.py::test_one", "test_shorter.py::test_two"]
