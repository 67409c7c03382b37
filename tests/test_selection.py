"""The files that a run begins with."""

from pathlib import Path

from tests.selection import LONGEST


def test_the_files_that_a_run_begins_with_are_there():
    assert [file for file in LONGEST if not (Path(__file__).parents[1] / file).is_file()] == []
