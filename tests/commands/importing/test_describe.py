"""`clade import --describe`: every column is listed, and what is proposed imports the file."""

import shlex
from pathlib import Path

import pytest

from tests.commands.importing.imports import Import, importer, written
from tests.commands.importing.test_parent_ids import UNITS
from tests.real_files import ISO_3166_2, real_file


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Imports a file into an SQLite file, and exports that."""
    (tmp_path / "units.py").write_text(UNITS)
    return importer(
        tmp_path, monkeypatch, tmp_path / "units.py", "graph.hierarchies.locations", "graph.hierarchies.categories"
    )


def proposed(said: str) -> list[str]:
    """The words of the proposed command, without the program and the hierarchy."""
    command = said.partition("Proposed command:\n")[2].splitlines()[0]
    program, name, _, *words = shlex.split(command)
    assert (program, name) == ("clade", "import")
    return words


@pytest.mark.parametrize(
    ("text", "hierarchy", "words", "paths"),
    [
        pytest.param(
            "id,parent_id,name,note\n2,1,Mowers,x\n1,,Garden,\n3,2,Robots,\n", "category",
            ["--tree-by", "id=id,parent=parent_id"], ["Garden", "Garden/Mowers", "Garden/Mowers/Robots"], id="parents",
        ),
        pytest.param(
            "id,parent_id,name,kind\nR1,2,Robot,product\n1,,Garden,category\n2,1,Mowers,category\n", "category",
            ["--tree-by", "id=id,parent=parent_id,level=kind"], ["Garden", "Garden/Mowers", "Garden/Mowers/Robot"],
            id="levels",
        ),
        pytest.param(
            "product,name,path\nA1,Robot,Garden > Mowers\nA2,Hose,Garden > Hoses\n", "category",
            ["--level", 'category=path split " > "', "--level", "product=product", "--name", "product=name"],
            ["Garden", "Garden/Hoses", "Garden/Hoses/A2", "Garden/Mowers", "Garden/Mowers/A1"], id="path",
        ),
        pytest.param(
            "SKU,Title,Category,Price\n1,Hose,Garden|Water,\"1,200.50\"\n2,Saw,Tools,12.00\n3,Drill,Tools|Power,n/a\n"
            "4,Bit,Tools|Power|Bits,3\n",
            "category",
            ["--level", 'category=Category split "|"', "--level", "product=SKU", "--name", "product=Title",
             "--attr", "product.price=Price", "--null", "Price=n/a", "--numbers", "1,234.56"],
            ["Garden", "Garden/Water", "Garden/Water/1", "Tools", "Tools/2", "Tools/Power", "Tools/Power/3",
             "Tools/Power/Bits", "Tools/Power/Bits/4"], id="feed",
        ),
        pytest.param(
            "id,naam,boss,title\n1,Ana,,CEO\n2,Bo,1,CTO\n3,Cy,2,Dev\n", "unit",
            ["--tree-by", "id=id,parent=boss,level=PERSON"], ["Ana", "Ana/Bo", "Ana/Bo/Cy"], id="several levels",
        ),
        pytest.param(
            "Country,City,Note\nDE,Ulm,x\n", "location", ["--level", "country=Country", "--level", "city=City"],
            ["DE", "DE/Ulm"], id="columns",
        ),
    ],
)  # fmt: skip
def test_the_proposed_command_imports_the_file(
    clade: Import, tmp_path: Path, text: str, hierarchy: str, words: list[str], paths: list[str]
) -> None:
    file = written(tmp_path / "x.csv", text)
    done = clade(hierarchy, file, "--describe")
    assert (done.status, done.nodes) == (0, {}), done.said
    assert proposed(done.said) == [str(file), *words]
    imported = clade(hierarchy, *proposed(done.said))
    assert (imported.status, list(imported.nodes)) == (0, paths), imported.said


def test_every_column_is_listed_and_a_column_that_is_left_out_is_called_so(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", "id,parent_id,name,note,empty\n2,1,Mowers,x,\n1,,Garden,,\n")
    lines = clade("category", file, "--describe").said.splitlines()
    assert [line for line in lines if line.startswith("  ") and "clade" not in line] == [
        "  id: 2, 1", "  parent_id: 1", "  name: Mowers, Garden", "  note: x (not imported)",
        "  empty: no values (not imported)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("Land,Stadt\nDE,Ulm\n", "No column is named like a level of location", id="unknown columns"),
        pytest.param(
            "Country,City,Population\nDE,Ulm,many\nDE,Bonn,few\n",
            "2 of 2 rows would be rejected; row 2: ",
            id="rejected rows",
        ),
        pytest.param(
            "US,NE,Omaha,1\nUS,NE,Lincoln,2\n", 'The first row of x.csv looks like data: "US"', id="no header"
        ),
    ],
)
def test_what_was_not_imported_in_the_trial_is_not_proposed(
    clade: Import, tmp_path: Path, text: str, reason: str
) -> None:
    file = written(tmp_path / "x.csv", text)
    done = clade("location", file, "--describe")
    assert (done.status, "Proposed command" in done.said, done.nodes) == (1, False, {})
    assert reason in done.said, done.said
    for column in text.partition("\n")[0].split(","):
        assert f"  {column}: " in done.said


def test_a_command_is_proposed_unless_it_would_reject_more_than_half_of_the_rows(clade: Import, tmp_path: Path) -> None:
    header, bad, good = "Country,City,Population\n", "DE,Ulm {},many\n", "DE,Bonn {},1\n"
    half = header + "".join(row.format(n) for row in (bad, good) for n in range(3))
    done = clade("location", written(tmp_path / "half.csv", half), "--describe")
    assert (done.status, "Proposed command" in done.said) == (0, True), done.said
    done = clade("location", written(tmp_path / "more.csv", half + bad.format(3)), "--describe")
    assert (done.status, "4 of 7 rows would be rejected" in done.said) == (1, True), done.said


def test_what_is_given_is_kept(clade: Import, tmp_path: Path) -> None:
    file = written(tmp_path / "x.txt", "DE\tUlm\t1\nDE\tKiel\t2\n")
    done = clade("location", file, "--columns", "country,city,population", "--describe")
    assert proposed(done.said)[:3] == [str(file), "--columns", "country,city,population"], done.said
    imported = clade("location", *proposed(done.said))
    assert imported.nodes["DE/Kiel"]["population"] == 2, imported.said


def test_a_real_file_by_parents_is_recognized(clade: Import) -> None:
    done = clade("category", real_file(ISO_3166_2), "--describe")
    assert proposed(done.said)[1:] == ["--tree-by", "id=code,parent=parent"], done.said


@pytest.mark.parametrize(
    ("hierarchy", "words", "reason"),
    [
        ("location", ["http://127.0.0.1:9/x.csv", "--level", "planet=A"], 'no level "planet"'),
        ("category", ["http://127.0.0.1:9/x.csv", "--tree-by", "id=A"], "use --tree-by id=ID,parent=PARENT"),
        ("category", ["dynamodb://T?endpoint=http://127.0.0.1:9", "--key", "{categry}"], 'no level "categry"'),
        (
            "category",
            ["dynamodb://T?endpoint=http://127.0.0.1:9", "--key", "{category}", "--name", "x=y"],
            'no level "x"',
        ),
    ],
)
def test_options_are_parsed_before_anything_is_read(
    clade: Import, hierarchy: str, words: list[str], reason: str
) -> None:
    done = clade(hierarchy, *words)
    assert (done.status, reason in done.said) == (1, True), done.said


def test_a_tree_whose_levels_cannot_stand_below_one_another_is_not_proposed(clade: Import, tmp_path: Path) -> None:
    rows = "".join(f"{n},{n // 2},product\n" for n in range(1, 9))
    done = clade("category", written(tmp_path / "x.csv", f"id,parent,level\n{rows}"), "--describe")
    assert (done.status, "Proposed command" in done.said) == (1, False), done.said
    assert "8 of 8 rows would be rejected; row 2: PRODUCT may not stand as a root" in done.said


def test_a_tree_in_which_most_names_are_alike_is_proposed(clade: Import, tmp_path: Path) -> None:
    rows = "".join(f"{n},{n // 2},Springfield\n" for n in range(1, 9))
    file = written(tmp_path / "x.csv", f"id,parent,name\n{rows}")
    done = clade("category", file, "--describe")
    assert (done.status, proposed(done.said)[1:]) == (0, ["--tree-by", "id=id,parent=parent"]), done.said
    assert len(clade("category", file, "--tree-by", "id=id,parent=parent").nodes) == 8
