"""`clade import` and `clade export`: output, files and exit status."""

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from store.errors import BadInput, NoTable
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


def test_an_export_is_in_path_order_and_imports_as_the_same(clade: Clade, shops: Path, tmp_path: Path) -> None:
    first = clade("import", "location", shops, *OPTIONS)
    assert first.exit_code == 0, first.output
    assert "shops.csv: 3 rows, 8 nodes" in first.stdout
    assert "added: 8 (2 COUNTRY, 1 STATE, 2 CITY, 3 STORE)" in first.stdout
    lines = clade("export", "location").stdout.splitlines()
    assert [json.loads(line)["path"][-1] for line in lines] == [
        "SG", "Singapore", "3", "US", "NE", "OMAHA", "1", "2",
    ]  # fmt: skip
    assert list(json.loads(lines[2])) == ["path", "level", "name", "id", "street"]
    file = tmp_path / "nodes.jsonl"
    assert clade("export", "location", "--output", file).exit_code == 0
    assert file.read_text(encoding="utf-8").splitlines() == lines
    assert [found.name for found in tmp_path.iterdir() if "part" in found.name] == []
    for again in (clade("import", "location", file), clade("import", "location", shops, *OPTIONS)):
        assert (again.exit_code, "Nothing changed.\nunchanged: 8" in again.stdout) == (0, True)
    assert clade("export", "location", "US/NE").stdout.splitlines() == lines[4:]


def test_an_export_of_nothing_is_empty_and_of_an_unknown_path_an_error(clade: Clade, tmp_path: Path) -> None:
    assert clade("export", "location").stdout == ""
    kept = written(tmp_path / "kept.jsonl", "kept")
    refused = clade("export", "location", "US/XX", "--output", kept)
    assert isinstance(refused.exception, BadInput)
    assert str(refused.exception) == 'location has no node "US/XX".'
    assert kept.read_text() == "kept"


def test_rejected_rows_are_written_beside_the_file(clade: Clade, tmp_path: Path) -> None:
    rows = [
        {"path": "US", "level": "COUNTRY"},
        {"path": "US/NE", "level": "STATE", "code": "NE"},
        {"path": "US/NE", "level": "CITY"},
        {"path": "US/IA/Ames", "level": "CITY"},
    ]
    file = written(tmp_path / "places.jsonl", "".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    result = clade("import", "location", file)
    assert result.exit_code == 1
    assert "added: 2" in result.stdout
    assert "rejected: 3 rows" in result.stderr
    assert (tmp_path / "places.rejected.jsonl").read_text(encoding="utf-8").splitlines()[:4] == [
        '{"$reason":"row 3: US/NE has the level STATE in row 2 already, not CITY."}',
        '{"path": "US/NE", "level": "CITY"}',
        '{"$reason":"row 4: Parent US/IA is neither in the file nor in the table; --create-parents creates it."}',
        '{"path": "US/IA/Ames", "level": "CITY"}',
    ]
    assert clade("import", "location", file, "--allow-rejects").exit_code == 0
    written(file, json.dumps(rows[0]))
    assert clade("import", "location", file).exit_code == 0
    assert not (tmp_path / "places.rejected.jsonl").exists(), "an earlier import's are taken away"


def test_a_dry_run_prints_the_changes_and_writes_nothing(clade: Clade, shops: Path, tmp_path: Path) -> None:
    written(shops, SHOPS + "FR,,Paris,4,X,\nFR,,,5,X,\n")
    result = clade("import", "location", shops, *OPTIONS, "--dry-run")
    assert result.exit_code == 1
    _, head, *told = result.stdout.splitlines()[:7]
    assert head == "would be added: 11 (3 COUNTRY, 1 STATE, 3 CITY, 4 STORE)"
    assert told[0] in ("  US", "  SG", "  FR")  # whichever tree comes first
    assert len({path for path in told if re.fullmatch("  [A-Z]{2}(/.*)?", path)}) == 5
    assert "row 6: STORE may not stand under COUNTRY" in result.stderr
    assert clade("export", "location").stdout == ""
    assert not (tmp_path / "shops.rejected.csv").exists()


def test_pruning_prints_the_removed_nodes_unless_a_rejected_row_does_not_identify_its_node(
    clade: Clade, shops: Path
) -> None:
    clade("import", "location", shops, *OPTIONS)
    first = "".join(SHOPS.splitlines(keepends=True)[:2])
    written(shops, first + f"US,NE{',x' * 9}\n")
    kept = clade("import", "location", shops, *OPTIONS, "--prune")
    assert ("Nothing was removed" in kept.stderr, "removed:" in kept.stdout) == (True, False)
    written(shops, first)
    dry = clade("import", "location", shops, *OPTIONS, "--prune", "--dry-run").stdout
    assert "would be removed: 1 (1 STORE)\n  US/NE/OMAHA/2" in dry
    assert "removed: 1 (1 STORE)" in clade("import", "location", shops, *OPTIONS, "--prune").stdout


def test_nodes_at_another_path_are_moved_only_with_the_option(clade: Clade, tmp_path: Path) -> None:
    lines = [{"path": path, "level": level} for path, level in (("a", "CATEGORY"), ("b", "CATEGORY"))]
    lines += [{"path": "a/x", "level": "CATEGORY", "id": "x"}, {"path": "a/x/1", "level": "PRODUCT", "id": "x1"}]
    clade("import", "category", json_lines(tmp_path / "before.jsonl", lines))
    lines[2:] = [{**line, "path": line["path"].replace("a/", "b/")} for line in lines[2:]]
    after = json_lines(tmp_path / "after.jsonl", [*lines, {"path": "b/x/1/y", "level": "CATEGORY", "id": "x"}])
    plain = clade("import", "category", after)
    assert "not moved: 2" in plain.stdout
    assert "row 3: The id x belongs to a/x; use --moves to move it." in plain.stderr
    told = "moved: 1 (1 CATEGORY)\n  a/x -> b/x\nunchanged: 4\n"
    assert f"would be {told}" in clade("import", "category", after, "--moves", "--dry-run").stdout
    assert '"path":["a","x"]' in clade("export", "category").stdout
    moved = clade("import", "category", after, "--moves")
    assert (told in moved.stdout, moved.exit_code) == (True, 1), moved.output
    assert "rejected: 1 row; written to " in moved.stderr
    assert [json.loads(line)["path"] for line in clade("export", "category").stdout.splitlines()] == [
        ["a"], ["b"], ["b", "x"], ["b", "x", "1"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--name", "region=Name"], "--name region needs a column for this level; add --level region=Column."),
        (["--level", "planet=Country"], 'location has no level "planet"; it has COUNTRY,'),
        (["--level", "contry=Country"], "POSTAL_CODE, STORE. Did you mean COUNTRY?"),
        (["--level", "country"], '--level country has no column; use --level country="Column".'),
        (["--level", "country=Land"], 'has no column "Land"; it has "Country", "State"'),
        (
            ["--level", "country=Country", "--level", "country=State"],
            "--level country is in the wrong position: COUNTRY is",
        ),
        (["--level", "city=City"], "--level city is in the wrong position: CITY is allowed under COUNTRY,"),
        ([*LEVELS, "--attr", "street=Street"], "--attr street=Street has no attribute; use --attr"),
        ([*LEVELS, "--attr", "store.color=Street"], 'STORE has no attribute "color"; it has'),
        ([*LEVELS, "--fold-case", "town"], 'location has no level "town"'),
        (["--format", "jsonl", *LEVELS], "need a table: CSV, Excel"),
        (["--format", "jsonl", "--delimiter", ";"], "--delimiter, --encoding and --quote need a CSV file; add"),
        (["--sheet", "x"], "--sheet needs an Excel file; add --format excel if it is one."),
        ([*LEVELS, "--delimiter", "ab"], "A delimiter is one character, such as ; or tab, not 'ab'."),
        ([*LEVELS, "--encoding", "utf-9"], '"utf-9" is not an encoding; use utf-8, utf-8-sig, utf-16, cp1252'),
        ([*LEVELS, "--quote", "`"], "--quote is '\"', \"'\" or none, not `."),
        ([*LEVELS, "--header-row", "2", "--columns", "Country"], "--header-row is for a file with a header, --columns"),
        (["--columns", "Country,,City"], "--columns has an empty name; name all columns"),
        (["--format", "jsonl", "--header-row", "2"], "--header-row and --columns need a CSV or an Excel file; add"),
        ([*LEVELS, "--numbers", "1.0"], '"1.0" is not a format of numbers; use "1,234.56" or'),
        ([*LEVELS, "--null", "Land=NA"], 'The file has no column "Land" for --null; it has "Country", "State"'),
    ],
)
def test_a_wrong_option_is_one_sentence(clade: Clade, shops: Path, options: list[str], message: str) -> None:
    result = clade("import", "location", shops, *options)
    assert isinstance(result.exception, BadInput)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


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


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_file_of_rejected_rows_is_replaced_and_then_removed(clade: Clade, tmp_path: Path) -> None:
    target = tmp_path / "bad.rejected.csv"
    rejected(clade, tmp_path)
    heading, *rows = target.read_text().splitlines()
    assert heading == "Country,State,City,Shop,Name,Street,reason"
    assert rows[0] == 'US,NE,,,,,x,"row 5: The row has 7 columns, the header 6."'
    assert rows[1].startswith('=1+1,@x,+2,-3,4,,5,"row 6: The row has 7 columns'), "the bytes of the row are unchanged"
    written(target, target.read_text() + "9,more,rows\n" * 100)
    assert "written to" in rejected(clade, tmp_path).stderr
    assert len(target.read_text().splitlines()) == 3
    clade("import", "location", written(tmp_path / "bad.csv", SHOPS), *OPTIONS)
    assert not target.exists()


def test_an_export_as_csv_imports_as_the_same(clade: Clade, tmp_path: Path) -> None:
    nodes = [
        {"path": "A/B", "level": "CATEGORY", "name": 'B, "quoted"\nand long', "id": "b1", "names": {"de": "Ä;"}},
        {"path": "A", "level": "CATEGORY"},
        {"path": "A/B/x%2Fy", "level": "PRODUCT", "price": "799.90", "brand": ' "=1+1" '},
        {"path": "A/B/x%2Fy/v", "level": "VARIANT", "stock": 0, "undefined": {"old": ["a;b", 7]}},
    ]
    file = json_lines(tmp_path / "nodes.jsonl", nodes)
    assert clade("import", "category", file).exit_code == 0
    exported = tmp_path / "nodes.csv"
    assert clade("export", "category", "--output", exported).exit_code == 0
    assert exported.read_text().splitlines()[0] == ("path,level,name,id,brand,price,color,stock,names,rank,undefined")
    assert "Nothing changed.\nunchanged: 4" in clade("import", "category", exported).stdout
    lines = [json.loads(line) for line in clade("export", "category").stdout.splitlines()]
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert clade("import", "category", exported, "--store", other).exit_code == 0
    assert [json.loads(line) for line in clade("export", "category", "--store", other).stdout.splitlines()] == lines
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
    assert "--yes imports them so.\r\nImport it as it is? [y/N]" in asked
    assert (command.returncode, "added: 4" in output, (tmp_path / "a.db").exists()) == (status, not status, not status)


def test_json_has_all_figures_of_the_text_and_all_rejected_rows(clade: Clade, shops: Path, tmp_path: Path) -> None:
    written(shops, SHOPS + "FR,,Paris,4,X,\n" + "FR,,,5,X,\n" * 7)
    for is_dry in (True, False):
        done = clade("import", "location", shops, *OPTIONS, "--json", *["--dry-run"] * is_dry)
        report = json.loads(done.stdout)
        assert done.exit_code == 1
        assert done.stdout.count("\n") == 1
        assert report.pop("seconds") >= 0
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
