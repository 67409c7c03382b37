"""Text of CSV files and taxonomies: encodings, quotes, lines above the header, rows of other widths. A file becomes the
tree that a person sees in it, or the import stops with the option that decides.
"""

import csv
import random
import re
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from store.errors import BadInput
from tests.cli import app_of
from tests.commands.importing.files import stored, table

Clade = Callable[..., Result]
CITY = "--level country=Country --level city=City"


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command in a directory of its own, on a store that is made by the first import."""
    monkeypatch.chdir(tmp_path)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db"}
    return lambda *words: CliRunner().invoke(app_of(words[:1]), [*map(str, words)], env=environment)


def paths(tmp_path: Path, clade: Clade, hierarchy: str = "location") -> set[str]:
    return {*stored(clade, hierarchy)} if (tmp_path / "clade.db").exists() else set()


# -- encodings ---------------------------------------------------------------------------------------------------------

PLACES = {
    "cp1250": ("Česko", "Plzeň", "Ústí nad Labem", "Žďár"), "iso8859_2": ("Polska", "Łódź", "Gdańsk", "Żyrardów"),
    "cp1251": ("Сербия", "Ниш", "Суботица"), "cp932": ("日本", "東京都", "大阪府", "表参道"),
    "mac_roman": ("Schweiz", "Zürich", "Genève", "Köniz"), "gb18030": ("中国", "北京市", "上海市"),
    "koi8_r": ("Россия", "Москва", "Тверь"), "cp1252": ("Deutschland", "Köln", "Gießen"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "shape"),
    [
        *[(encoding, "a.csv") for encoding in PLACES],
        *[
            (encoding, shape)
            for encoding in ("cp1251", "cp932")
            for shape in ("far.csv", "header.csv", "a.txt", "paths.csv")
        ],
    ],
)
def test_a_file_that_is_not_utf8_needs_its_encoding(clade: Clade, tmp_path: Path, encoding: str, shape: str) -> None:
    country, *cities = PLACES[encoding]
    hierarchy, options = "location", CITY
    rows = [["Country", "City"], *[["US", "Omaha"]] * (9_000 if shape == "far.csv" else 1)]
    rows += [[country, city] for city in cities]
    if shape == "header.csv":
        rows[0] = [f"{country}_1", f"{cities[0]}_2"]
        options = f"--level country={country}_1 --level city={cities[0]}_2"
    elif shape in ("a.txt", "paths.csv"):
        hierarchy, options = "category", ""
        rows = [["path", "level"], *[[one, "CATEGORY"] for one in (country, *[f"{country}/{city}" for city in cities])]]
    text = table(rows).decode()
    if shape == "a.txt":
        text = "".join(f"{path}\n".replace("/", " > ") for path, _ in rows[1:])
    (tmp_path / shape).write_bytes(text.encode(encoding))
    command = ["import", hierarchy, shape, *shlex.split(options)]
    refused = clade(*command)
    message = str(refused.exception)
    assert isinstance(refused.exception, BadInput), refused.output
    assert re.match(
        rf'{shape} is not UTF-8; a guess is --encoding \w+, which reads ".+" in it; --encoding \w+ ".+" and ', message
    )
    assert not (tmp_path / "clade.db").exists()
    done = clade(*command, "--encoding", encoding)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert {f"{country}/{city}" for city in cities} < paths(tmp_path, clade, hierarchy)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_an_encoding_that_is_certain_needs_no_option(clade: Clade, tmp_path: Path, encoding: str, name: str) -> None:
    text = "Category\nČesko\nСербия\n日本\n" if name == "a.csv" else "Česko\nСербия\nСербия > 日本\n"
    (tmp_path / name).write_bytes(text.encode(encoding))
    done = clade("import", "category", name)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert {"Česko", "Сербия"} < paths(tmp_path, clade, "category")


def test_the_description_of_a_file_has_the_guessed_encoding(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("Country,City\nСербия,Ниш\nСербия,Суботица\n".encode("cp1251"))
    described = clade("import", "location", "a.csv", "--describe")
    assert 'a guess is --encoding cp1251, which reads "Сербия, Ниш, Суботица" in it' in described.stdout
    command = shlex.split(described.stdout.splitlines()[-1])
    assert command[4:6] == ["--encoding", "cp1251"]
    assert clade(*command[1:]).exit_code == 0
    assert paths(tmp_path, clade) == {"Сербия", "Сербия/Ниш", "Сербия/Суботица"}


@pytest.mark.parametrize("more", [["--describe"], ["--yes"], ["--level", "country=Land", "--yes"]])
def test_a_column_that_is_missing_in_a_guessed_encoding_is_told_with_it(
    clade: Clade, tmp_path: Path, more: list[str]
) -> None:  # fmt: skip
    (tmp_path / "a.csv").write_bytes("Страна;Город\nСербия;Ниш\n".encode("cp1251"))
    result = clade("import", "location", "a.csv", *more)
    message = result.stdout + str(result.exception)
    assert '"Страна", "Город"' in message
    assert "a guess is --encoding cp1251" in message


@pytest.mark.parametrize("encoding", ["cp1251", "utf-16", "utf-8-sig", "cp932"])
def test_rejected_lines_of_a_taxonomy_keep_its_encoding(clade: Clade, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("Ниш\nНиш > \x07Ы\nНиш > Ж\n".encode(encoding))
    assert "rejected: 1 row; written" in clade("import", "category", "a.txt", "--encoding", encoding).stderr
    assert "rejected: 1 row; written" in clade("import", "category", "a.txt", "--encoding", encoding).stderr
    rejected = tmp_path / "a.rejected.txt"
    rejected.write_bytes(rejected.read_bytes().decode(encoding).replace("\x07", "").encode(encoding))
    assert clade("import", "category", "a.rejected.txt", "--encoding", encoding).exit_code == 0
    assert paths(tmp_path, clade, "category") == {"Ниш", "Ниш/Ы", "Ниш/Ж"}


# -- quotes ------------------------------------------------------------------------------------------------------------

SWALLOWED = 'Country,City,Also,n\nNO,Moss,"the town,1\nNO,Halden,Fred,2\nNO,Askim,9",3\nNO,Ski,,4\n'
OVER_TWO = 'Country,City,Also\nNO,Moss,"the town\nNO,Halden,9"\nNO,Askim,\nNO,Ski,\n'
ALL = {"NO", "NO/Moss", "NO/Halden", "NO/Askim", "NO/Ski"}


@pytest.mark.parametrize("delimiter", "\t;,|")
@pytest.mark.parametrize(("text", "lost"), [(SWALLOWED, {"NO/Halden", "NO/Askim"}), (OVER_TWO, {"NO/Halden"})])
def test_quotes_over_rows_need_an_option(
    clade: Clade, tmp_path: Path, delimiter: str, text: str, lost: set[str]
) -> None:  # fmt: skip
    (tmp_path / "a.csv").write_text(text.replace(",", delimiter))
    command = ["import", "location", "a.csv", *shlex.split(CITY)]
    message = str(clade(*command).exception)
    assert re.match(r"""a.csv, line 2: a value in quotes .+; --quote none takes .+, --quote '"' the value""", message)
    assert not (tmp_path / "clade.db").exists()
    assert clade(*command, "--quote", '"').exit_code == 0
    assert paths(tmp_path, clade) == ALL - lost
    assert clade(*command, "--quote", "none").exit_code == 0
    assert paths(tmp_path, clade) == ALL


@pytest.mark.parametrize("text", ['NO\tMoss\t"the town\nNO\tSki\t\n', 'NO\tMoss\tx\nNO\t"Ski\t9"\n'])
def test_a_quote_at_the_beginning_of_a_cell_is_text_by_an_option(clade: Clade, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.tsv").write_text("Country\tCity\tAlso\n" + text)
    assert "--quote none" in str(clade("import", "location", "a.tsv").exception)
    assert not (tmp_path / "clade.db").exists()
    assert clade("import", "location", "a.tsv", "--quote", "none").exit_code == 0
    assert len(paths(tmp_path, clade)) == 3


@pytest.mark.parametrize("delimiter", ",\t")
@pytest.mark.parametrize(
    "note",
    ["12 Main St\nOmaha, NE", "one\n\nthree", "first, second, third\nfourth, fifth, sixth\nseventh", 'a "quoted"\nword',
     "5\" pipe, 2 m", "Suite 5\nHall 3, Floor 2, Room 1\n", "a,b;c\td"],
)  # fmt: skip
def test_a_value_of_several_lines_needs_no_option(clade: Clade, tmp_path: Path, delimiter: str, note: str) -> None:
    if delimiter == "\t":
        note = note.replace("\t", " ")
    output = StringIO(newline="")
    for place in (2, 1, 0):
        output.seek(0)
        rows = [["Country", "City"], ["NO", "Moss"], ["NO", "Ski"]]
        for row, cell in zip(rows, ("Note", note, "none"), strict=True):
            row.insert(place, cell)
        csv.writer(output, delimiter=delimiter).writerows(rows)
    (tmp_path / "a.csv").write_text(output.getvalue(), newline="")
    done = clade("import", "location", "a.csv", *shlex.split(CITY))
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert paths(tmp_path, clade) == {"NO", "NO/Moss", "NO/Ski"}


# -- headers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", "|"), ("a.txt", "\t"), ("a.txt", "|")])
@pytest.mark.parametrize("titles", [["Places, with commas"], ["Report", "", "Source: all"], ["Report#", "##"]])
def test_titles_above_a_header_stop_with_its_line(
    clade: Clade, tmp_path: Path, delimiter: str, name: str, titles: list[str]
) -> None:  # fmt: skip
    rows = ["Country#City#Population", "US#Omaha#1", "US#Ames#2", "DE#Ulm#", "DE#Ulm#"]
    text = "".join(f"{line}\n" for line in (*titles, *rows)).replace("#", delimiter)
    (tmp_path / name).write_text(text)
    for more in ([], ["--describe"], ["--yes"]):
        refused = str(clade("import", "location", name, *more).exception)
        assert f'--header-row {len(titles) + 1} takes "Country", "City", "Population" as the names' in refused
    assert not (tmp_path / "clade.db").exists()
    done = clade("import", "location", name, "--header-row", len(titles) + 1)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert paths(tmp_path, clade) == {"US", "US/Omaha", "US/Ames", "DE", "DE/Ulm"}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Title\n\nCountry,City,Population\nUS,Omaha,many\nUS,Ames,1\n", "--header-row 3"),
        ("sep=;\nCountry;City;Population\nUS;Omaha;many\nUS;Ames;1\n", "--header-row 2"),
        ("US,Omaha,many\nUS,Ames,1\n", "--columns Country,City,Population"),
        ("US\tOmaha\tmany\nUS\tAmes\t1\n", "--columns Country,City,Population --delimiter tab"),
        ('"Places\nCountry,City,Population\nUS,Omaha,many\nUS,"Ames",1\n', "--header-row 2 --quote none"),
        ("Country,City,Population,Note\nUS,Omaha,many\nUS,Ames,1\n", ""),
        ("Country,City,Population\nUS,Omaha,many,,\nUS,Ames,1,,,\n", ""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_rejected_rows_are_imported_with_the_same_options(
    clade: Clade, tmp_path: Path, text: str, options: str, encoding: str
) -> None:  # fmt: skip
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    words = [*options.split(), "--encoding", encoding]
    assert "rejected: 1 row" in clade("import", "location", "a.csv", *words).stderr
    rejected = tmp_path / "a.rejected.csv"
    rejected.write_bytes(rejected.read_bytes().decode(encoding).replace(",many", ",7").replace("\tmany", "\t7")
                         .replace(";many", ";7").encode(encoding))  # fmt: skip
    done = clade("import", "location", "a.rejected.csv", *words)
    assert done.exit_code == 0, done.output + repr(done.exception)
    nodes = stored(clade, "location")
    assert nodes["US/Omaha"]["population"] == 7
    assert len(nodes) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('Country,"City"x,n\nNO,Moss,1\n', "a.csv, line 1, is no header: The row is not valid CSV: ',' expected after"),
        ('Country,"City"x,n\nNO,Moss,1\n', '(column 2, "City"x); --quote none takes quotes as text'),
        ('\nCountry,"City,n\nNO,Moss,1\n', 'a.csv, line 2: a quote in this row is not closed (column 2, "City);'),
        ("Country,City,City\nNO,Moss,Moss\n", 'The file has 2 columns "City" (2, 3)'),
    ],
)
def test_what_is_wrong_in_a_header_is_named(clade: Clade, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert message in str(clade("import", "location", "a.csv").exception)


def test_a_wide_table_with_short_rows_is_imported(clade: Clade, tmp_path: Path) -> None:
    header = ["Country", "City", *[f"c{number}" for number in range(10_000)]]
    (tmp_path / "a.csv").write_bytes(table([header, ["NO", "Moss"], ["NO", "Ski", *["x"] * 10_000], ["SG"]]))
    assert clade("import", "location", "a.csv").exit_code == 0
    assert paths(tmp_path, clade) == {"NO", "NO/Moss", "NO/Ski", "SG"}


# -- any file ----------------------------------------------------------------------------------------------------------

WORDS = {
    "cp1250": "Česko Plzeň Žďár Łódź", "cp1251": "Сербия Ниш Нови Београд", "cp932": "日本 東京都 表参道 ソウル",
    "mac_roman": "Zürich Genève Köln Ñuñoa",
}  # fmt: skip


def a_file(choice: random.Random) -> tuple[bytes, set[str], list[str]]:
    """A file with a column for each level, the paths of its nodes, and some of the options that tell what it is."""
    encoding = choice.choice(["utf-8", "utf-8-sig", "utf-16", *WORDS])
    words = [*WORDS.get(encoding, " ".join(WORDS.values())).split(), "Omaha", "Ames", "Ulm", "St. Louis"]
    delimiter = choice.choice(",;\t|")
    is_quoted = choice.random() < 0.5
    signs = ['"', "", "", "'"] if choice.random() < 0.5 else [""]
    notes = ["", "x", "5 m", "a, b" if is_quoted or delimiter != "," else "a b", *(["two\nlines"] if is_quoted else [])]

    def cell(text: str) -> str:
        return choice.choice([f"{sign}{text}" for sign in signs] + [f"{text}{sign}" for sign in signs])

    rows: list[list[str]] = []
    for _ in range(choice.randint(1, 9)):
        path = [cell(choice.choice(words)), choice.choice(["", cell(choice.choice(words))]), cell(choice.choice(words))]
        rows.append([*path, cell(choice.choice(notes))])
    header = ["Country", "State", "City", "Note"]
    titles = choice.choice([0, 0, 1, 2])
    output = StringIO(newline="")
    if is_quoted:
        csv.writer(output, delimiter=delimiter).writerows([["Report"]] * titles + [header, *rows])
    else:
        lines = [delimiter.join(row) for row in [*[["Report"]] * titles, header, *rows]]
        output.write("".join(f"{line}\n" for line in lines))
    nodes: set[str] = set()
    for *path, _ in rows:
        path = [key for key in path if key]
        nodes |= {"/".join(path[:count]) for count in range(1, len(path) + 1)}
    told = [("--encoding", encoding), ("--quote", '"' if is_quoted else "none"), ("--header-row", str(titles + 1))]
    options = [word for pair in told if choice.random() < 0.6 for word in pair]
    return output.getvalue().encode(encoding), nodes, options


@pytest.mark.parametrize("seed", range(8))
def test_any_file_becomes_its_tree_or_is_refused(clade: Clade, tmp_path: Path, seed: int) -> None:
    content, nodes, options = a_file(random.Random(seed))  # noqa: S311
    (tmp_path / "a.csv").write_bytes(content)
    done = clade("import", "location", "a.csv", *options)
    found = paths(tmp_path, clade)
    if done.exit_code == 0:
        assert found == nodes, (content, options)
    else:
        assert found < nodes or not found, (content, options, done.output)
