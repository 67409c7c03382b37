"""Names of files: names in an archive, and what is no file that can be read. Their contents are in case files."""

import os
from pathlib import Path

import pytest

from commands.importing.files import Source
from tests.commands.importing.files import Clade, clade, zipped

__all__ = ["clade"]  # a fixture


@pytest.mark.parametrize("name", ["a" * 300 + ".csv", "é" * 150 + ".csv", "a\x1b[31m\n.csv", "../../a.csv", ".."])
def test_a_name_in_an_archive_is_no_place_for_rejected_rows(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({name: b"Country,City\n"}))
    found = Source(tmp_path / "a.zip", "a.zip", tmp_path).rejected(".csv")
    assert found.parent == tmp_path
    assert found.name.isprintable()
    found.write_bytes(b"")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (f"https://host/{'x' * 300}.csv?{'y' * 5_000}", "is an address, and only files are read; download it"),
        ("pipe.csv", "pipe.csv is a pipe or a device, which can be read only once; pipe it in: clade import"),
        ("folder", "folder is not an export of a DynamoDB table"),
    ],
)
def test_what_cannot_be_described_gets_one_sentence(clade: Clade, tmp_path: Path, address: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for more in ([], ["--describe"]):
        result = clade("import", "location", address, *more)
        assert message in " ".join(result.output.replace("│", "").split()) + str(result.exception)
        assert result.exit_code > 0
    assert not (tmp_path / "clade.db").exists()
