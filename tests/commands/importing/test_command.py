"""`clade import` and `clade export`: files that are somebody else's, copies, terminals and JSON."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from store.errors import NoTable
from tests.cli import app_of
from tests.commands.conftest import Clade
from tests.commands.importing.files import written
from tests.conftest import CLADE

pytestmark = pytest.mark.extenddb

SHOPS = """Country,State,City,Shop,Name,Street
US,NE,OMAHA,1,Main,100 St Andrews lane
US,NE,Omaha,2,Side,1 Farnam
SG,,Singapore,3,East,5 Bugis
"""
LEVELS = ["--level", "country=Country", "--level", "state=State", "--level", "city=City", "--level", "store=Shop"]
OPTIONS = [*LEVELS, "--name", "store=Name", "--attr", "store.street=Street", "--fold-case", "city"]


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    return written(tmp_path / "shops.csv", SHOPS)


def json_lines(file: Path, lines: list[dict[str, str]]) -> Path:
    return written(file, "".join(f"{json.dumps(line)}\n" for line in lines))


def test_a_missing_dynamodb_table_is_an_error_with_the_command(engine: object, shops: Path) -> None:
    url = engine.address("absent")  # type: ignore[attr-defined]
    result = CliRunner().invoke(app_of(), ["import", "location", str(shops), *OPTIONS, "--store", url])
    assert isinstance(result.exception, NoTable)
    assert "clade table create" in str(result.exception)


# -- files that are somebody else's ------------------------------------------------------------------------------------


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_an_export_writes_through_no_link_and_over_no_part_of_another(
    clade: Clade, shops: Path, tmp_path: Path
) -> None:
    clade("import", "location", shops, *OPTIONS)
    other = written(tmp_path / "other.txt", "somebody else's")
    part = tmp_path / f".nodes.jsonl.{os.getpid()}.part"
    part.symlink_to(other)
    assert "cannot be written" in str(clade("export", "location", "--output", tmp_path / "nodes.jsonl").exception)
    assert other.read_text() == "somebody else's"
    assert part.is_symlink()


def rejected(clade: Clade, tmp_path: Path) -> Result:
    return clade(
        "import", "location", written(tmp_path / "bad.csv", f"{SHOPS}US,NE,,,,,x\n=1+1,@x,+2,-3,4,,5\n"), *OPTIONS
    )


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", ["link", "dangling link", "file", "empty heading", "directory", "pipe"])
def test_what_is_not_a_file_of_rejected_rows_is_neither_written_nor_removed(
    clade: Clade, tmp_path: Path, kind: str
) -> None:
    target, content = tmp_path / "bad.rejected.csv", "row,reason\nsomebody's,own\n"
    other = written(tmp_path / "other.txt", content)
    make: dict[str, Callable[[], object]] = {
        "link": lambda: target.symlink_to(other), "dangling link": lambda: target.symlink_to(tmp_path / "absent.txt"),
        "file": lambda: written(target, content), "empty heading": lambda: written(target, "\n" + content),
        "directory": target.mkdir, "pipe": lambda: os.mkfifo(target),
    }  # fmt: skip
    make[kind]()
    before = os.lstat(target)
    result = rejected(clade, tmp_path)
    assert result.exit_code == 1, result.output
    assert f"{target} is not a file of rejected rows; move it away and import again." in result.stderr
    assert "row 5: " in result.stderr
    good = clade("import", "location", written(tmp_path / "bad.csv", SHOPS), *OPTIONS)
    assert good.exit_code == 0, good.output
    after = os.lstat(target)
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    assert other.read_text() == content
    assert not (tmp_path / "absent.txt").exists()


def test_an_export_is_written_as_it_is_printed_and_imports_as_the_same(clade: Clade, tmp_path: Path) -> None:
    nodes = [
        {"path": "A/B", "level": "CATEGORY", "name": 'B, "quoted"\nand long', "id": "b1", "names": {"de": "Ä;"}},
        {"path": "A", "level": "CATEGORY"},
        {"path": "A/B/x%2Fy", "level": "PRODUCT", "price": "799.90", "brand": ' "=1+1" '},
        {"path": "A/B/x%2Fy/v", "level": "VARIANT", "stock": 0, "undefined": {"old": ["a;b", 7]}},
    ]
    file = json_lines(tmp_path / "nodes.jsonl", nodes)
    assert clade("import", "category", file).exit_code == 0
    lines = clade("export", "category").stdout
    assert clade("export", "category", "--output", tmp_path / "again.jsonl").exit_code == 0
    assert (tmp_path / "again.jsonl").read_text(encoding="utf-8") == lines
    exported = tmp_path / "nodes.csv"
    assert clade("export", "category", "--output", exported).exit_code == 0
    assert exported.read_text().splitlines()[0] == ("path,level,name,id,brand,price,color,stock,names,rank,undefined")
    assert "Nothing changed.\nunchanged: 4" in clade("import", "category", exported).stdout
    assert [found.name for found in tmp_path.iterdir() if "part" in found.name] == []
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert clade("import", "category", exported, "--store", other).exit_code == 0
    assert clade("export", "category", "--store", other).stdout == lines
    assert clade("export", "category", "--format", "csv").stdout == exported.read_bytes().decode()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1)])
def test_a_guess_is_a_question_on_a_terminal(tmp_path: Path, answer: str, status: int) -> None:
    (tmp_path / "a.csv").write_text("Country,State,City\nNO,Viken,Moss\nNO,,Halden\n", encoding="utf-8")
    ours, theirs = pty.openpty()
    words = [CLADE, "import", "location", "a.csv", "--store", "sqlite:///a.db"]
    command = subprocess.Popen(words, cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    output, _ = command.communicate(timeout=60)
    asked = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "--fill-down State imports this tree.\r\nImport it as it is? [y/N]" in asked
    assert (command.returncode, "added: 4" in output, (tmp_path / "a.db").exists()) == (status, not status, not status)


def test_json_has_all_figures_of_the_text_and_all_rejected_rows(clade: Clade, shops: Path, tmp_path: Path) -> None:
    written(shops, SHOPS + "FR,,Paris,4,X,\n" + "FR,,,5,X,\n" * 7)
    for is_dry in (True, False):
        done = clade("import", "location", shops, *OPTIONS, "--json", *["--dry-run"] * is_dry)
        report = json.loads(done.stdout)
        assert done.exit_code == 1
        assert done.stdout.count("\n") == 1
        assert report.pop("seconds") >= 0
        assert report.pop("tree", [""])[-1] == (
            "  11 nodes: 3 COUNTRY at depth 1, 2 CITY and 1 STATE at depth 2, "
            "1 CITY and 2 STORE at depth 3, 2 STORE at depth 4." * is_dry
        )
        examples = report.pop("examples")
        assert (list(examples), len(examples["created"])) == (["created"], 5)
        (reason,) = {one.pop("reason") for one in report["rejected"]}
        assert reason.startswith("STORE may not stand under COUNTRY, only under CITY, ")
        assert report == {
            "source": "shops.csv", "rows": 11, "nodes": 11, "dryRun": is_dry, "moved": {}, "updated": {}, "deleted": {},
            "created": {"COUNTRY": 3, "STATE": 1, "CITY": 3, "STORE": 4}, "unchanged": 0, "notMoved": 0,
            "notDeleted": 0, "parentsWithoutRow": {}, "repeated": 0, "invisibleKeys": 0, "undefined": [], "notes": [],
            "rejectedFile": None if is_dry else str(tmp_path / "shops.rejected.csv"),
            "rejected": [{"row": number} for number in range(6, 13)],
        }  # fmt: skip
    again = json.loads(clade("import", "location", shops, *OPTIONS, "--json", "--allow-rejects").stdout)
    assert (again["created"], again["unchanged"]) == ({}, 11)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_very_many_rejected_rows_end_an_import_with_the_last_of_them(
    clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commands.importing.job.MAX_REJECTED", 1)
    file = written(tmp_path / "a.csv", "Country,City,Population\nUS,Omaha,1\nUS,Ames,x\nUS,York,y\n")
    words = ["import", "location", file, *LEVELS[:2], "--level", "city=City", "--attr", "city.population=Population"]
    said = str(clade(*words).exception)
    assert "More than 1 rows of a.csv are rejected; nothing was imported. The last: row 4: " in said
    assert "US/Omaha" in clade(*words, "--yes", "--dry-run").stdout
