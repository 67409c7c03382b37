"""Sources of imports: the standard input, web addresses with bounds on size and time, and `--describe`."""

import gzip
import shlex
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from commands.importing import source
from commands.main import app_of
from store.errors import BadInput
from store.text import shown_address
from tests.serving import handling

CITIES = b"Country,City,Population\nUS,Omaha,many\nUS,Lincoln,291082\n"


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db"}

    def run(*words: object, stdin: bytes = b"") -> Any:
        return CliRunner().invoke(app_of(), [str(word) for word in words], env=environment, input=stdin)

    return run


@pytest.fixture
def address() -> Iterator[str]:
    """A web server with one file of each kind; the last one never ends."""
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {"/cities.csv": CITIES, "/cities.csv.gz": gzip.compress(CITIES)}
            status = {"/moved.csv": 302, "/slow.csv": 200}.get(self.path, 200 if self.path in answers else 404)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/cities.csv")
            self.end_headers()
            self.wfile.write(answers.get(self.path, b""))
            if self.path == "/slow.csv":
                stopped.wait(30)

    with handling(Handler) as url:
        yield url
        stopped.set()


def test_the_standard_input_is_imported_and_its_rejected_rows_are_in_the_working_directory(
    clade: Callable[..., Any], tmp_path: Path
) -> None:
    result = clade("import", "location", "-", "--format", "csv", stdin=gzip.compress(CITIES))
    assert "added: 2 (1 COUNTRY, 1 CITY)" in result.stdout, result.output + repr(result.exception)
    assert (tmp_path / "stdin.rejected.csv").read_bytes().startswith(b"Country,City,Population,$reason\nUS,Omaha,many,")
    assert "add --format with one of csv," in str(clade("import", "location", "-", stdin=CITIES).exception)


@pytest.mark.parametrize("name", ["cities.csv", "cities.csv.gz", "cities.csv?token=a/b.jsonl"])
def test_a_web_address_is_imported(clade: Callable[..., Any], tmp_path: Path, address: str, name: str) -> None:
    if "?" in name:
        assert "cities.csv cannot be read: the status is 404, expected 200." in str(
            clade("import", "location", f"{address}/{name}").exception
        )
        return
    result = clade("import", "location", f"{address}/{name}")
    assert f"{name}: 2 rows, 2 nodes" in result.stdout, result.output + repr(result.exception)
    assert (tmp_path / "cities.rejected.csv").exists()


def test_what_is_too_large_too_slow_or_elsewhere_is_one_sentence(
    clade: Callable[..., Any], tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = clade("import", "location", f"{address}/moved.csv")
    assert "the status is 302, expected 200; its location is /cities.csv" in str(moved.exception)
    monkeypatch.setattr(source, "MAX_BYTES", len(CITIES) - 1)
    assert f"larger than {len(CITIES) - 1} bytes" in str(clade("import", "location", f"{address}/cities.csv").exception)
    assert f"more than {len(CITIES) - 1} bytes" in str(
        clade("import", "location", "-", "--format", "csv", stdin=CITIES).exception
    )
    monkeypatch.setattr(source, "DOWNLOAD_SECONDS", 0.2)
    slow = clade("import", "location", f"{address}/slow.csv")
    assert isinstance(slow.exception, BadInput)
    assert "was not received within 0 seconds" in str(slow.exception)
    assert not (tmp_path / "clade.db").exists()


@pytest.mark.parametrize(
    "rest",
    ["127.0.0.1:9/a.csv?sig=SECRET", "ann:SECRET@127.0.0.1:9/a.csv", "127.0.0.1:99999999/a.csv?sig=SECRET#SECRET",
     "[::1/a.csv?SECRET", "/a.csv?SECRET", "ann:SECRET@/a.csv?SECRET", "127.0.0.1:9/..",
     f"127.0.0.1:9/{'%C3%A4' * 150}", "127.0.0.1:9/\x1b[31m"],
)  # fmt: skip
def test_an_address_that_cannot_be_read_is_one_sentence_without_its_secrets(rest: str) -> None:
    with pytest.raises(BadInput) as rejected, source.source_at(f"HTTP://{rest}"):
        pass
    message = str(rejected.value)
    assert " cannot be read: " in message
    assert "SECRET" not in message
    assert message.isprintable()
    assert len(message) < 500


def test_the_location_of_a_redirect_is_shown_without_its_secrets() -> None:
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
        ("s3://bucket/cities.csv?key=x", "s3://bucket/cities.csv is of no scheme that is read; download the file"),
        ("ftp://host/cities.csv", "ftp://host/cities.csv is of no scheme that is read"),
        ("ftp://me:secret@host/cities.csv", "ftp://host/cities.csv is of no scheme that is read"),
        ("http://127.0.0.1:9/cities.csv", "cannot be read: Cannot connect to host 127.0.0.1:9 ["),
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
