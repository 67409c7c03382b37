"""Sources of imports: files, the standard input, and `--describe`."""

import gzip
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from commands.importing import source
from commands.main import app_of
from store.text import shown_address

CITIES = b"Country,City,Population\nUS,Omaha,many\nUS,Lincoln,291082\n"


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db"}

    def run(*words: object, stdin: bytes = b"") -> Any:
        return CliRunner().invoke(app_of(), [str(word) for word in words], env=environment, input=stdin)

    return run


def test_the_standard_input_is_imported_and_its_rejected_rows_are_in_the_working_directory(
    clade: Callable[..., Any], tmp_path: Path
) -> None:
    result = clade("import", "location", "-", "--format", "csv", stdin=gzip.compress(CITIES))
    assert "added: 2 (1 COUNTRY, 1 CITY)" in result.stdout, result.output + repr(result.exception)
    assert (tmp_path / "stdin.rejected.csv").read_bytes().startswith(b"Country,City,Population,reason\nUS,Omaha,many,")
    assert "add --format with one of csv," in str(clade("import", "location", "-", stdin=CITIES).exception)


def test_more_of_the_standard_input_than_is_taken_is_one_sentence(
    clade: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", len(CITIES) - 1)
    result = clade("import", "location", "-", "--format", "csv", stdin=CITIES)
    assert f"more than {len(CITIES) - 1} bytes; import it as a file" in str(result.exception)
    assert not (tmp_path / "clade.db").exists()


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_address("https://ann:SECRET@example.com/a/b?sig=SECRET#SECRET") == "https://example.com/a/b"
    assert shown_address("/cities.csv?SECRET") == "/cities.csv"
    assert len(shown_address("https://example.com/" + "a" * 9_000)) < 250


@pytest.mark.parametrize("name", ["a" * 300 + ".csv", "é" * 150 + ".csv", "a\x1b[31m\n.csv", "../../a.csv", ".."])
def test_a_name_in_an_archive_is_no_place_for_rejected_rows(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, CITIES)
    found = source.Source(tmp_path / "a.zip", "a.zip", tmp_path).rejected(".csv")
    assert found.parent == tmp_path
    assert found.name.isprintable()
    found.write_bytes(b"")


def test_the_described_command_imports_the_file(clade: Callable[..., Any], tmp_path: Path) -> None:
    content = "Country;City;Population;Latitude;Note\nDE;Köln;1.073.096;50,9;x\nDE;Bonn;NULL;50,7;y\n"
    (tmp_path / "cities.csv").write_bytes(content.encode("cp1252"))
    described = clade("import", "location", "cities.csv", "--describe").stdout
    assert "cities.csv: encoding cp1252 and delimiter ;, guessed" in described
    assert "  City: Köln, Bonn\n" in described
    assert "  Note: x, y (not imported)\n" in described
    assert not (tmp_path / "clade.db").exists()
    command = described.splitlines()[-1].strip()
    assert "--null Population=NULL --numbers 1.234,56" in command
    result = clade(*shlex.split(command)[1:])
    assert "added: 3 (1 COUNTRY, 2 CITY)" in result.stdout, result.output + repr(result.exception)
    assert '"population":1073096,"latitude":50.9' in clade("export", "location", "DE/Köln").stdout


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "s3://bucket/cities.csv?key=x",
            "s3://bucket/cities.csv is an address, and only files are imported; download it",
        ),
        ("https://me:secret@host/cities.csv", "https://host/cities.csv is an address, and only files are imported"),
        ("folder", "folder is not an export of a DynamoDB table"),
    ],
)
def test_an_address_that_cannot_be_read_gets_one_sentence(
    clade: Callable[..., Any], tmp_path: Path, address: str, message: str
) -> None:
    (tmp_path / "folder").mkdir()
    result = clade("import", "location", address)
    assert message in str(result.exception), result.output + repr(result.exception)
    assert not (tmp_path / "clade.db").exists()


def test_describing_a_file_without_columns_like_levels_says_how_to_name_them(
    clade: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "cities.csv").write_text("Land;Stadt\nDE;Bonn\n")
    message = str(clade("import", "location", "cities.csv", "--describe").exception)
    assert "No column is named like a level of location" in message
