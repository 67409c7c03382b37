"""Dirty files of every format: what is right is imported, and what is wrong is named with file, row and column.

Files of rejected rows can be corrected and imported again.
"""

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from commands.main import app_of
from store.errors import BadInput

GEO = "--attr city.latitude=latitude --attr city.longitude=longitude"


@dataclass
class Dirty:
    """A file: its options, the number of nodes that are right, and the start of each reason by row.

    `mended` are the bytes that replace others in the file of rejected rows, after which `total` nodes are stored.
    """

    name: str
    content: bytes
    options: list[str] = field(default_factory=list)
    nodes: int = 0
    reasons: dict[int, str] = field(default_factory=dict)
    mended: list[tuple[bytes, bytes]] = field(default_factory=list)
    total: int = 0
    says: str = ""


def excel(rows: list[list[Any]], *, sheets: dict[str, list[list[Any]]] | None = None) -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "First"
    for row in rows:
        book.active.append(row)
    for name, others in (sheets or {}).items():
        for row in others:
            (book[name] if name in book.sheetnames else book.create_sheet(name)).append(row)
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def parquet_file(rows: list[dict[str, Any]]) -> bytes:
    file = BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def feature(properties: Any, *coordinates: float, **more: Any) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": properties,
        "geometry": {"type": "Point", "coordinates": list(coordinates)},
        **more,
    }


CITIES = "Country,City,Population\n"
GERMAN = "Land;Stadt;Einwohner\nDE;München;1.512.491\nDE;Köln;1,5 Mio\nDE;Gießen;93.000\n"
GERMAN_OPTIONS = "--level country=Land --level city=Stadt --attr city.population=Einwohner --numbers 1.234,56".split()
POPULATION = 'Column "{}": population: '
NO_LONG = POPULATION.format("Population") + "'many' is not a valid Int"
MANY_TO_7 = [(b"many", b"7")]

FILES = {
    "a number that is none": Dirty(
        "c.csv", f"{CITIES}US,Omaha,many\nUS,Lincoln,291082\n".encode(), [], 2, {2: NO_LONG}, MANY_TO_7, 3
    ),
    "a value without the key of its node": Dirty(
        "c.csv",
        f"{CITIES}DE,,2\nUS,Lincoln,291082\nFR,,\n".encode(),
        [],
        3,
        {2: 'Column "Population" has \'2\', but "City" is empty; fill in or clear both.'},
        [(b"DE,,2", b"DE,Bonn,2")],
        5,
    ),
    "all reasons of a row": Dirty(
        "c.csv",
        b"Country,City,Population,Latitude,City Id\nUS,Omaha,many,north,a b\nUS,Lincoln,1,2.5,l1\n",
        [],
        2,
        {
            2: "Column \"Population\": population: 'many' is not a valid Int (a 32-bit integer). "
            "Column \"Latitude\": latitude: 'north' is not a valid Float. "
            'Column "City Id": The id "a b" has white space'
        },
        [(b"many,north,a b", b"7,8.5,ab")],
        3,
    ),
    "all reasons of a row whose key is not valid": Dirty(
        "c.csv",
        b"Country;City;Population;Latitude\nUS;Om\x07aha;1.5;1,5\nUS;Ames;1.500;2,5\n",
        ["--numbers", "1.234,56"],
        2,
        {
            2: 'Column "City": A path has the character U+0007, which no key may contain. '
            "Column \"Population\": population: '1.5', which is not written like 1.234,56, is not a valid Int"
        },
        [(b"\x07", b""), (b"1.5;", b"1.500;")],
        3,
    ),
    "rows that are too short and too long": Dirty(
        "c.csv",
        f"{CITIES}US\nUS,Omaha,1,2\n\nUS,Lincoln,3\n".encode(),
        [],
        2,
        {2: "The row has 1 column, the header 3.", 3: "The row has 4 columns, the header 3."},
        [(b"US,Omaha,1,2,", b"US,Omaha,1,"), (b'US,"', b'US,,,"')],
        3,
    ),
    "semicolons, commas in numbers, Windows-1252": Dirty(
        "c.csv",
        GERMAN.encode("cp1252"),
        GERMAN_OPTIONS,
        3,
        {3: POPULATION.format("Einwohner") + "'1,5 Mio', which is not written like 1.234,56, is not a valid Int"},
        [(b"1,5 Mio", b"1.073.096")],
        4,
        "encoding cp1252 and delimiter ;, guessed; --encoding and --delimiter set them.",
    ),
    "UTF-16 as Excel writes it": Dirty(
        "c.csv",
        b"\xff\xfe" + GERMAN.replace(";", "\t").encode("utf-16-le"),
        GERMAN_OPTIONS,
        3,
        {3: POPULATION.format("Einwohner")},
        [("1,5 Mio".encode("utf-16-le"), "2".encode("utf-16-le"))],
        4,
        "encoding utf-16 and delimiter tab",
    ),
    "UTF-16 without a mark, big-endian": Dirty(
        "c.csv", GERMAN.encode("utf-16-be"), GERMAN_OPTIONS, 3, {3: POPULATION.format("Einwohner")}
    ),
    "UTF-8 with a mark": Dirty(
        "c.csv",
        "\ufeffCountry,City,Population\r\nDE,Köln,many\r\nDE,Bonn,1\r\n".encode(),
        [],
        2,
        {2: NO_LONG},
        MANY_TO_7,
        3,
    ),
    "bytes of another encoding in one row": Dirty(
        "c.csv",
        "Country,City,Population\nDE,Köln,1\n".encode() + b"DE,D\xfcren,2\n" + b"DE,Bonn,3\n",
        [],
        3,
        {3: "The row is not valid UTF-8."},
        [(b"D\xfcren", "Düren".encode())],
        4,
    ),
    "bytes that Windows-1252 does not have": Dirty(
        "c.csv",
        b"Country,City\nDE,K\xf6ln\nDE,D\x81ren\n",
        ["--encoding", "cp1252"],
        2,
        {3: "The row is not valid cp1252."},
        [(b"D\x81", b"D\xfc")],
        3,
    ),
    "null markers": Dirty(
        "c.csv",
        f"{CITIES}NA,Windhoek,NA\nNULL,NULL,\\N\nNA,Oranjemund,n/a\n".encode(),
        ["--null", "Population=NA", "--null", "NULL", "--null", "\\N"],
        2,
        {3: "The row has no key in any column of a level.", 4: POPULATION.format("Population") + "'n/a' is not"},
        [(b"n/a", b""), (b"NULL,NULL", b"NA,Outjo")],
        4,
    ),
    "French numbers": Dirty(
        "c.tsv",
        "Country\tCity\tPopulation\tLatitude\nFR\tParis\t2\u202f102\u00a0650\t48,85\nFR\tLyon\t522 96\t1.5\n".encode(),
        ["--numbers", "1 234,56"],
        2,
        {
            3: "Column \"Population\": population: '522 96', which is not written like 1 234,56, "
            "is not a valid Int (a 32-bit integer). "
            "Column \"Latitude\": latitude: '1.5', which is not written like 1 234,56, is not a valid Float"
        },
        [(b"522 96\t1.5", b"522 960\t1,5")],
        3,
    ),
    "Swiss numbers and pipes": Dirty(
        "c.csv",
        b"Country|City|Population\nCH|Bern|144'447\nCH|Chur|40,000\n",
        ["--numbers", "1'234.56"],
        2,
        {3: POPULATION.format("Population")},
        [(b"40,000", b"40'000")],
        3,
        "delimiter |",
    ),
    "the separator line of Excel": Dirty(
        "c.csv",
        b"sep=;\r\nCountry;City;Population\r\nUS;Omaha;many\r\nUS;Lincoln;1\r\n",
        [],
        2,
        {3: NO_LONG},
        MANY_TO_7,
        3,
    ),
    "quotes in the middle of a cell": Dirty(
        "c.csv",
        b'Country,City\nUS,"St." Louis\nUS,"O""Fallon, MO"\nUS,"two\nlines"\n',
        [],
        2,
        {2: "The row is not valid CSV:", 4: 'Column "City": A path has the character U+000A'},
        [(b'"St." Louis', b"St. Louis"), (b'"two\nlines"', b"two lines")],
        4,
    ),
    "gzip": Dirty(
        "c.csv.gz", gzip.compress(f"{CITIES}US,Omaha,many\nUS,Lincoln,1\n".encode()), [], 2, {2: NO_LONG}, MANY_TO_7, 3
    ),
    "zip with what macOS adds": Dirty(
        "c.zip",
        zipped({"data/c.csv": f"{CITIES}US,Omaha,many\nUS,Lincoln,1\n".encode(), "__MACOSX/._c": b"x"}),
        [],
        2,
        {2: NO_LONG},
        MANY_TO_7,
        3,
    ),
    "two nodes with one id": Dirty(
        "c.csv",
        b"Country,City,City Id\nUS,Omaha,1\nUS,Lincoln,1\n",
        [],
        2,
        {3: 'Column "City Id": The id 1 is that of another node already, in row 2.'},
        [(b"Lincoln,1", b"Lincoln,2")],
        3,
    ),
    "two rows that disagree": Dirty(
        "c.csv",
        f"{CITIES}US,Omaha,1\nUS,Omaha,2\n".encode(),
        [],
        2,
        {3: "US/Omaha has the population 1 in row 2 already, not 2."},
        [],
        2,
    ),
    "levels that do not fit": Dirty(
        "c.csv",
        b"Country,City,Store,Street\nUS,,7,Main Street\nUS,Omaha,8,Side Street\n",
        [],
        3,
        {2: "STORE may not stand under COUNTRY"},
        [(b"US,,7", b"US,Lincoln,7")],
        5,
    ),
    "a key that is too long": Dirty(
        "c.csv",
        f"Country,City\nUS,{'x' * 1100}\nUS,Omaha\n".encode(),
        [],
        2,
        {2: "Below its root the path takes 1102 bytes in a key"},
        [(b"x" * 1100, b"x")],
        3,
    ),
    "Excel with types, an empty start and more sheets": Dirty(
        "c.xlsx",
        excel(
            [["see the other sheet"]],
            sheets={
                "Cities": [
                    [],
                    ["Country", "City", "Population", "Latitude", None],
                    ["US", "Omaha", 486051.0, 41.25, None],
                    ["US", 68118, "many", None, None],
                    [None, None, None, None, None],
                    ["US", "Lincoln", 291082, "north", None],
                    ["US", "Ames", 1, 2, "beside the table"],
                ]
            },
        ),
        ["--sheet", "Cities"],
        2,
        {4: NO_LONG, 6: "Column \"Latitude\": latitude: 'north'", 7: "The row has 5 columns, the header 4."},
        [(b"many", b"7"), (b"north", b"40.8"), (b",beside the table", b"")],
        5,
    ),
    "Parquet with structures": Dirty(
        "c.parquet",
        parquet_file(
            [
                {"Country": "US", "place": {"city": "Omaha", "population": "1"}},
                {"Country": None, "place": {"city": None, "population": "1"}},
                {"Country": "US", "place": {"city": "Lincoln", "population": "many"}},
                {"Country": "US", "place": None},
            ]
        ),
        [],
        2,
        {2: "The row has no key in any column of a level.", 3: POPULATION.format("place.population")},
        [(b"many", b"7"), (b"\n,,1", b"\nUS,Ames,1")],
        4,
    ),
    "GeoJSON with positions outside of the world": Dirty(
        "c.geojson",
        json.dumps(
            {
                "type": "FeatureCollection",
                "features": [
                    feature({"country": "US", "city": "Omaha"}, -95.9, 41.2),
                    feature({"country": "US", "city": "Lincoln"}, 40.8, -96.7),
                    feature({"country": "US", "city": "Ames"}, -1000, 42),
                    {"type": "Point"},
                    feature({"country": "US", "city": "Nowhere"}),
                    {**feature({"country": "US", "city": "Area"}), "geometry": {"type": "Polygon"}},
                    {**feature({}, 1, 2), "properties": ["US"]},
                ],
            }
        ).encode(),
        [],
        3,
        {
            2: 'Columns "latitude", "longitude": [40.8, -96.7] is not a longitude from -180 to 180 and latitude',
            3: 'Columns "latitude", "longitude": [-1000, 42]',
            4: "The row is not a GeoJSON feature.",
            5: 'Columns "latitude", "longitude": []',
            7: "The properties of the feature are not an object.",
        },
        [(b"-96.7,40.8", b"40.8,-96.7"), (b"-1000", b"-93.6")],
        6,
    ),
    "GeoJSON of one feature": Dirty(
        "c.geojson",
        json.dumps(feature({"country": "US", "city": "Omaha", "population": "many"}, -95.9, 41.2)).encode(),
        [],
        0,
        {1: "population: 'many' is not a valid Int"},
        [(b"many", b"7")],
        2,
    ),
    "GeoJSON by lines": Dirty(
        "c.geojsonl",
        "\n".join(
            [
                json.dumps(feature({"country": "US", "city": "Omaha"}, -95.9, 41.2, id=7)),
                "{not json",
                json.dumps(feature({"country": "US", "city": "Ames"}, "x", 2)),
            ]
        ).encode(),
        [],
        2,
        {2: "The line is not valid JSON", 3: 'Columns "latitude", "longitude": [\'x\', 2]'},
        [(b"2,x", b"2,1")],
        3,
    ),
    "JSON, nested": Dirty(
        "c.json",
        json.dumps(
            [
                {"country": "US", "states": [{"state": "NE", "cities": [{"city": "Omaha", "population": "many"}, 7]}]},
                {"country": "SG", "states": []},
                "FR",
            ]
        ).encode(),
        [],
        1,
        {
            1: POPULATION.format("states.cities.population"),
            2: "The row is not a JSON object. It is 7.",
            4: 'The row is not a JSON object. It is "FR".',
        },
        [(b"many", b"7")],
        4,
    ),
    "JSON as a tree": Dirty(
        "c.json",
        json.dumps(
            {
                "key": "US",
                "level": "COUNTRY",
                "children": [
                    {"name": "Omaha", "level": "CITY", "population": "many"},
                    {"name": "Ames", "level": "CITY", "children": {}},
                    {"level": "CITY"},
                    {"key": "NE", "level": "STATE", "children": [{"key": "Lincoln", "level": "CITY"}, []]},
                ],
            }
        ).encode(),
        [],
        3,
        {
            2: "population: 'many' is not a valid Int",
            3: '"children" is a list of nodes.',
            4: "The node below US has no key and no name.",
            7: "The node below US/NE is not a JSON object.",
        },
        [(b'"many"', b"7")],
        4,
    ),
    "JSON lines": Dirty(
        "c.jsonl",
        b'{"path": "US", "level": "COUNTRY"}\n{"path": "US/\xff", "level": "CITY"}\n{"path": "US/B", "level": "CITY"\n',
        [],
        1,
        {2: "The line is not valid UTF-8.", 3: "The line is not valid JSON"},
        [(b"\xff", b"A"), (b'"CITY"\n', b'"CITY"}\n')],
        3,
    ),
    "JSON lines in gzip": Dirty(
        "c.jsonl.gz",
        gzip.compress(b'{"path": "US", "level": "COUNTRY"}\n[]\n'),
        [],
        1,
        {2: "The line is not a JSON object: []."},
        [(b"[]", b'{"path": "SG", "level": "COUNTRY"}')],
        2,
    ),
    "a table of paths": Dirty(
        "c.csv",
        b'path,level,names,population\nUS,country,"{""de"": ""USA""}",\n'
        b"US/Omaha,CITY,{,1\nUS/A/,CITY,,\nUS/B,CITY,,many\n"
        b'"""U""S""",COUNTRY,,\nUS/C,CITY\n',  # only a JSON string is read as one
        [],
        2,
        {
            3: 'Column "names": { is not valid JSON',
            4: "A path has an empty segment",
            5: "population: 'many' is not a valid Int",
            7: "The row has 2 columns, the header 4.",
        },
        [(b"CITY,{", b"CITY,{}"), (b"US/A/", b"US/A"), (b"many", b"7"), (b"US/C,CITY", b"US/C,CITY,,")],
        6,
    ),
    "a table of paths in Parquet": Dirty(
        "c.parquet",
        parquet_file(
            [
                {"path": "US", "level": "COUNTRY", "population": None, "since": None},
                {"path": "US/A", "level": "CITY", "population": "7", "since": datetime(2026, 11, 23)},
                {"path": "US/B", "level": "CITY", "population": "8", "since": datetime(2026, 11, 22, 8, 30)},
            ]
        ),
        [],
        1,
        {2: 'CITY has no attribute "since"', 3: 'CITY has no attribute "since"'},
        [(b"7,2026-11-23,", b"7,,"), (b"8,2026-11-22T08:30:00,", b"8,,")],
        3,
    ),
    "a taxonomy": Dirty(
        "c.txt",
        b"# of pets\nPets > Cats\nPets >  > Dogs\n",
        ["--taxonomy"],
        2,
        {3: "A path has an empty segment"},
        [(b">  >", b">")],
        3,
    ),
    "rows of zeros": Dirty(
        "c.csv",
        b"Country,City\nUS,Om\0aha\nUS,Ames\n",
        [],
        2,
        {2: 'Column "City": A path has the character U+0000'},
        [(b"\0", b"")],
        3,
    ),
    "blank lines above the header": Dirty(
        "c.csv",
        b"\n;;\nCountry;City;Notes\n\nUS;Omaha;x\n;Ames;y\n",
        [],
        2,
        {6: "CITY may not stand as a root"},
        [(b"\n;Ames", b"\nUS;Ames")],
        3,
        says='by their names; --level sets them.\nc.csv: not imported: "Notes".',
    ),
    "headers in other cases, with spaces": Dirty(
        "c.csv",
        b" COUNTRY , city_name ,POSTAL CODE,notes\nUS,Omaha,68118,x\n,Omaha,68118,y\n",
        [],
        3,
        {3: "CITY may not stand as a root"},
        [(b"\n,Omaha", b"\nUS,Omaha")],
        3,
    ),
}
STOPPED = {
    "an open quote": ("c.csv", b'Country,City\nUS,Ames\nUS,"Omaha\nUS,Lincoln\n', "c.csv, line 3: a quote in this row"),
    "half a gzip file": ("c.csv.gz", gzip.compress(b"Country\nUS\n" * 1000)[:-20], "c.csv.gz cannot be decompressed"),
    "a zip file of many": ("c.zip", zipped({"a.csv": b"Country\n", "b.csv": b""}), "c.zip has 2 files (a.csv, b.csv)"),
    "a zip file of nothing": ("c.zip", zipped({}), "c.zip has 0 files (none), expected 1; unpack it."),
    "no zip file": ("c.zip", b"PK\x03\x04nothing", "c.zip is not a zip archive"),
    "half a character": ("c.csv", "Country\nUS\n".encode("utf-16") + b"U", "c.csv is no utf-16 from line"),
    "no Excel file": ("c.xlsx", b"Country\nUS\n", "c.xlsx cannot be read as an Excel workbook"),
    "a zip file as Excel": ("c.xlsx", zipped({"a.csv": b"Country\n"}), "c.xlsx cannot be read as an Excel workbook"),
    "an empty sheet": ("c.xlsx", excel([]), "has no header: the first row of its sheet must name the columns"),
    "no Parquet file": ("c.parquet", b"PAR1 and no more", "c.parquet cannot be read as Parquet"),
    "no JSON": ("c.json", b'[{"country": "US"}', "c.json is not valid JSON"),
    "a number as JSON": ("c.json", b"7", "c.json is neither a list of objects nor an object"),
    "JSON without objects": ("c.json", b"[1, 2]", "c.json has no objects."),
    "no GeoJSON": ("c.geojson", b"{}", "c.geojson is not GeoJSON: it is neither a feature nor a list of features."),
    "no features": ("c.geojson", b'{"features": []}', "c.geojson has no features."),
    "UTF-16 as JSON lines": ("c.jsonl", "{}".encode("utf-16"), "c.jsonl is UTF-16; write it as UTF-8."),
    "two columns of one name": ("c.csv", b"Country,Country\nUS,US\n", 'The file has two columns "Country"; it has'),
    "two columns of a lower level": (
        "c.csv",
        b"Country,City,City,Population\nUS,Ames,Omaha,7\n",
        'The file has two columns "City"; it has "Country", "City", "City", "Population".',
    ),
    "columns of other names": (
        "c.csv",
        b"Land,Stadt\nUS,Ames\n",
        ' --level city=City. The file has "Land", "Stadt"; --describe shows more.',
    ),
    "an empty sheet before another": (
        "c.xlsx",
        excel([], sheets={"Data": [["Country"], ["US"]]}),
        'The sheet "First" of c.xlsx is empty; --sheet names another: "Data".',
    ),
}


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db"}
    return lambda *words: CliRunner().invoke(app_of(), [str(word) for word in words], env=environment)


def stored(clade: Callable[..., Any], hierarchy: str) -> int:
    return len(clade("export", hierarchy).stdout.splitlines())


def test_there_are_thirty_dirty_files() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("what", FILES)
def test_valid_rows_are_imported_and_rejected_rows_can_be_corrected(
    clade: Callable[..., Any], tmp_path: Path, what: str
) -> None:
    dirty = FILES[what]
    hierarchy = "category" if "--taxonomy" in dirty.options else "location"
    options = [option for option in dirty.options if option != "--taxonomy"]
    (tmp_path / dirty.name).write_bytes(dirty.content)
    result = clade("import", hierarchy, dirty.name, *options)
    assert result.exit_code == (1 if dirty.reasons else 0), result.output + repr(result.exception)
    assert dirty.says in result.stderr
    assert stored(clade, hierarchy) == dirty.nodes, clade("export", hierarchy).stdout
    for number, reason in dirty.reasons.items():
        assert f"  {dirty.name}, row {number}: {reason}" in result.stderr, result.stderr
    again = clade("import", hierarchy, dirty.name, *options)
    assert "Nothing changed." in again.stdout
    assert again.stderr == result.stderr
    (rejected,) = tmp_path.glob("*.rejected.*")
    content = rejected.read_bytes()
    for old, new in dirty.mended:
        assert old in content, content
        content = content.replace(old, new)
    if dirty.mended:
        rejected.write_bytes(content)
        options = [option for option in options if option not in ("--sheet", "Cities")]
        mended = clade("import", hierarchy, rejected.name, *options)
        assert stored(clade, hierarchy) == dirty.total, mended.output + repr(mended.exception)


@pytest.mark.parametrize("what", STOPPED)
def test_a_file_that_cannot_be_read_stops_the_import_with_one_sentence(
    clade: Callable[..., Any], tmp_path: Path, what: str
) -> None:
    name, content, message = STOPPED[what]
    (tmp_path / name).write_bytes(content)
    result = clade("import", "location", name)
    assert isinstance(result.exception, BadInput), result.output + repr(result.exception)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "clade.db").exists(), "nothing is written before the file is read"
