"""Files of every format: the nodes that they make, rows that are rejected with a reason, files that stop an import, and
files that it could take for something else. Rejected rows can be corrected and imported again.
"""

import gzip
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from commands.importing.files import Source
from store.errors import BadInput
from store.transfer.formats.lines import MAX_LINE_BYTES
from tests.commands.importing.files import Clade, clade, excel, items, parquet_file, split, stored, table, zipped
from tests.real_files import STARBUCKS, TAXONOMY, real_file

__all__ = ["clade"]  # a fixture


# -- what files make ---------------------------------------------------------------------------------------------------

PLACES = "--level country=Country --level state=State --level city=City --level store=Store --name store=Name"
PLACES += " --id store=Id --attr store.street=Street --attr store.square_feet=Feet --fold-case city"
ROW = b"Country,State,City,Store,Name,Id,Street,Feet\n"
SHARED = " ".join(
    f"--{option} {level}.{field}={column}" if "." in option + field else f"--{option} {level}={column}"
    for level in ("country", "city")
    for option, field, column in (("name", "", "Name"), ("id", "", "Id"))
)
SHARED += " --name-in country.de=Deutsch --name-in city.de=Deutsch --level country=C --level city=T"
NODES: dict[str, tuple[str, bytes, str, dict[str, dict[str, Any]]]] = {
    "a row of CSV is a node for each level": (
        "a.csv", ROW + b"US,NE,Omaha,1,Main Shop,s1,100 St Andrews lane,921\nUS,NE,Omaha,2,,,,\n", PLACES,
        {"US": {}, "US/NE": {"level": "STATE"}, "US/NE/Omaha": {"level": "CITY", "name": "Omaha"},
         "US/NE/Omaha/1": {"level": "STORE", "name": "Main Shop", "id": "s1", "street": "100 St Andrews lane",
                           "square_feet": 921}, "US/NE/Omaha/2": {"name": "2"}},
    ),
    "an empty cell skips its level": (
        "a.csv", ROW + b"SG,,Singapore,,,,,\nUS,NE, ,1,,,,\n", PLACES,
        {"SG": {}, "SG/Singapore": {}, "US": {}, "US/NE": {}, "US/NE/1": {"level": "STORE"}},
    ),
    "siblings that differ in case only are one, of the first's spelling": (
        "a.csv", "C,Key,Name\nDE,koeln,KÖLN\nDE,KOELN,Köln\nUS,NE,\nUS,ne,\nus,ne,\n".encode(),
        "--level country=C --level city=Key --name city=Name --fold-case city",
        {"DE": {}, "DE/koeln": {"name": "KÖLN"}, "US": {}, "US/NE": {}, "us": {}, "us/ne": {}},
    ),
    "two spellings of the same letters are one key": (
        "a.csv", "Country\nCafe\u0301\nCaf\u00e9\n".encode(), "", {"Caf\u00e9": {}},
    ),
    "a row may have what an earlier one left open": (
        "a.csv", ROW + b"US,NE,Omaha,1,,,,\nUS,NE,Omaha,1,Shop,s1,Main Street,\n", PLACES,
        {"US": {}, "US/NE": {}, "US/NE/Omaha": {},
         "US/NE/Omaha/1": {"name": "Shop", "id": "s1", "street": "Main Street", "square_feet": None}},
    ),
    "a column of several levels has values of the last node of a row": (
        "a.csv", b"C,T,Name,Id,Deutsch\nUS,,United States,1,Amerika\nUS,Omaha,Omaha City,2,\nSG,Lion,Lion City,3,\n",
        SHARED,
        {"US": {"name": "United States", "id": "1", "names": {"de": "Amerika"}},
         "US/Omaha": {"name": "Omaha City", "id": "2", "names": None},
         "SG": {"name": "SG"}, "SG/Lion": {"name": "Lion City", "id": "3"}},
    ),
    "columns hold names in languages": (
        "a.csv", "Country,Land,Pays,City,Stadt\nDE,Deutschland,,Munich,München\nDE,,Allemagne,Ulm,\n".encode(),
        "--level country=Country --level city=City --name-in country.DE=Land --name-in country.fr=Pays"
        " --name-in city.de=Stadt",
        {"DE": {"names": {"de": "Deutschland", "fr": "Allemagne"}}, "DE/Munich": {"names": {"de": "München"}},
         "DE/Ulm": {"names": None}},
    ),
    "a line of JSON is a node": (
        "a.jsonl",
        b'\n {"path": ["US"], "level": "country", "name": "United States", "names": {"FR": "Etats-Unis", "it": null}}\n'
        b'{"path": "US/St. Louis%2FMO", "level": "City", "id": "44", "population": null}\n',
        "",
        {"US": {"name": "United States", "names": {"fr": "Etats-Unis"}},
         "US/St. Louis%2FMO": {"level": "CITY", "name": "St. Louis/MO", "id": "44", "population": None}},
    ),
    "undefined attributes can be left out": (
        "a.jsonl", b'{"path": "US", "level": "COUNTRY", "colour": "red", "iso3": "USA"}', "--ignore-unknown",
        {"US": {"iso3": "USA", "colour": None, "undefined": None}},
    ),
    "a taxonomy has a path on each line": (
        "a.txt", b"# Version 1\n\nFood > Tea > Green\nPets\n", "category",
        {"Pets": {"level": "CATEGORY"}, "Food": {}, "Food/Tea": {}, "Food/Tea/Green": {"name": "Green"}},
    ),
    "a taxonomy may have commas": ("a.txt", b"Tea\nTea > Green, dry\n", "category", {"Tea": {}, "Tea/Green, dry": {}}),
    **{f"a text file with columns by {one!r}": ("a.txt", f"Country{one}City\nUS{one}Omaha\nDE{one}Ulm\n".encode(), "",
       {"US": {}, "US/Omaha": {}, "DE": {}, "DE/Ulm": {}}) for one in "\t;|,"},
    "a table of paths": (
        "a.csv", b"path,level,name\nKitchen,CATEGORY,Kitchen\nGarden,CATEGORY,Garden\nGarden/Mowers,CATEGORY,M\n",
        "category", {"Kitchen": {}, "Garden": {}, "Garden/Mowers": {"name": "M"}},
    ),
    "an item of a table has values of its last node": (
        "a.json", items({"PK": "garden#mowers", "SK": "1", "title": "Lawn mowers"}),
        "category --keys PK --key {category*#} --name category=title --name-in category.de=SK",
        {"garden": {"name": "garden", "names": None}, "garden/mowers": {"name": "Lawn mowers", "names": {"de": "1"}}},
    ),
    "an attribute of an item for one level alone is a value of it": (
        "a.json", items({"PK": "tools", "SK": "mower", "title": "Mower", "owner": "Tools Ltd"}),
        "category --key '{category} / {product}' --keys PK,SK --name category=title --name product=title"
        " --name-in category.en=owner",
        {"tools": {"name": "tools", "names": {"en": "Tools Ltd"}}, "tools/mower": {"name": "Mower"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NODES)
def test_a_file_makes_these_nodes(clade: Clade, tmp_path: Path, what: str) -> None:
    name, content, options, expected = NODES[what]
    hierarchy, words = split(options)
    (tmp_path / name).write_bytes(content)
    result = clade("import", hierarchy, name, *words)
    assert result.exit_code == 0, result.output + repr(result.exception)
    found = stored(clade, hierarchy)
    assert {path: {field: found[path].get(field) for field in expected.get(path, {})} for path in found} == expected


# -- rejected rows -----------------------------------------------------------------------------------------------------

CITIES = "Country,City,Population\n"
GERMAN = "Land;Stadt;Einwohner\nDE;München;1.512.491\nDE;Köln;1,5 Mio\nDE;Gießen;93.000\n"
GERMAN_OPTIONS = "--level country=Land --level city=Stadt --attr city.population=Einwohner --numbers 1.234,56"
POPULATION = 'Column "{}": population: '
NO_LONG = POPULATION.format("Population") + '"many" is not a whole number'
MANY = (b"many", b"7")
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."


class Dirty(NamedTuple):
    """A file: the number of nodes that are right, the start of each reason by row, and its options.

    `mended` are the bytes that replace others in the file of rejected rows, after which `total` nodes are stored.
    """

    name: str
    content: bytes
    nodes: int
    reasons: dict[int, str]
    options: str = ""
    mended: Sequence[tuple[bytes, bytes]] = ()
    total: int = 0
    says: str = ""


def feature(city: str, *coordinates: Any, **more: Any) -> dict[str, Any]:
    geometry = {"type": "Point", "coordinates": list(coordinates)}
    return {"type": "Feature", "properties": {"country": "US", "city": city}, "geometry": geometry, **more}


FEATURES = [
    feature("Omaha", -95.9, 41.2), feature("Lincoln", 40.8, -96.7), feature("Ames", -1000, 42), {"type": "Point"},
    feature("Nowhere"), {**feature("Area"), "geometry": {"type": "Polygon"}},
]  # fmt: skip
NESTED = [
    {"country": "US", "states": [{"state": "NE", "cities": [{"city": "Omaha", "population": "many"}, 7]}]},
    {"country": "SG", "states": []}, "FR",
]  # fmt: skip
TREE = {
    "key": "US", "level": "COUNTRY", "children": [
        {"name": "Omaha", "level": "CITY", "population": "many"}, {"name": "Ames", "level": "CITY", "children": 7},
        {"level": "CITY"},
        {"key": "NE", "level": "STATE", "children": [{"key": "Lincoln", "level": "CITY"}, []]},
    ],
}  # fmt: skip
SHEET = [
    [], ["Country", "City", "Population", "Latitude", None], ["US", "Omaha", 486051.0, 41.25, None],
    ["US", 68118, "many", None, None], [None] * 5, ["US", "Lincoln", 291082, "north", None],
    ["US", "Ames", 1, 2, "beside the table"],
]  # fmt: skip
STRUCTURES = [
    {"Country": "US", "place": {"city": "Omaha", "population": "1"}},
    {"Country": None, "place": {"city": None, "population": "1"}},
    {"Country": "US", "place": {"city": "Lincoln", "population": "many"}}, {"Country": "US", "place": None},
]  # fmt: skip
CONTRADICTIONS = """Country,State,City,Population,Country Id,City Id
US,,Omaha,1,,1
US,,Omaha,2,,
US,,Lincoln,,,1
FR,,Paris,,9,9
"""
DIRTY = {
    "all reasons of a row": Dirty(
        "c.csv",
        b"Country;City;Population;Latitude;City Id\nUS;Om\x07aha;1.5;north;\nUS;Ames;1.500;2,5;\nUS;O;x;;a b\n",
        2,
        {2: 'Column "City": A key has the character U+0007; leave it out. '
            'Column "Population": population: "1.5", which is not written like 1.234,56, is not a whole '
            'number. Column "Latitude": latitude: "north", which is not written like 1.234,56, '
            "is not a number.",
         4: 'Column "Population": population: "x", which is not written like 1.234,56, is not a whole '
            'number. Column "City Id": The id "a b" has a blank, a control character, # or :'},
        "--numbers 1.234,56", [(b"\x07", b""), (b"1.5;north", b"1.500;1,5"), (b"x;;a b", b"1;;ab")], 4,
    ),
    "a value without the key of its node, an empty row, a number out of range": Dirty(
        "c.csv", f"{CITIES}DE,,2\nUS,Lincoln,291082\nFR,,\n,,\nUS,Omaha,99999999999\n".encode(), 3,
        {2: 'Column "Population" has \'2\', but "City" is empty; fill in or clear both.',
         6: POPULATION.format("Population") + '"99999999999" is out of range'},
        "", [(b"DE,,2", b"DE,Bonn,2"), (b"99999999999", b"99")], 6,
    ),
    "rows that are too long, the header again": Dirty(
        "c.csv", f"{CITIES}US,Omaha,1,2\n\nUS,Lincoln,3,, \n{CITIES}US,Ames".encode(), 2,
        {2: "The row has 4 columns, the header 3.", 5: "The row is the header again; remove it.",
         6: "The file ends in this row, after 2 columns."},
        "", [(b"US,Omaha,1,2,", b"US,Omaha,1,"), (b"Country,City,Population,\"", b",,,\"")], 4,
    ),
    "semicolons, commas in numbers, Windows-1252": Dirty(
        "c.csv", GERMAN.encode("cp1252"), 3,
        {3: POPULATION.format("Einwohner") + '"1,5 Mio", which is not written like 1.234,56, is not a whole number'},
        GERMAN_OPTIONS + " --yes", [(b"1,5 Mio", b"1.073.096")], 4,
        "encoding cp1252 and delimiter ;, guessed; --encoding and --delimiter set them.",
    ),
    "UTF-16 as Excel writes it": Dirty(
        "c.csv", b"\xff\xfe" + GERMAN.replace(";", "\t").encode("utf-16-le"), 3, {3: POPULATION.format("Einwohner")},
        GERMAN_OPTIONS, [("1,5 Mio".encode("utf-16-le"), "2".encode("utf-16-le"))], 4,
        "encoding utf-16 and delimiter tab",
    ),
    "UTF-16 without a mark, big-endian": Dirty(
        "c.csv", GERMAN.encode("utf-16-be"), 3, {3: POPULATION.format("Einwohner")}, GERMAN_OPTIONS
    ),
    "UTF-8 with a mark": Dirty(
        "c.csv", "\ufeffCountry,City,Population\r\nDE,Köln,many\r\nDE,Bonn,1\r\n".encode(), 2, {2: NO_LONG}, "", [MANY],
        3,
    ),
    "bytes of another encoding in one row": Dirty(
        "c.csv", "Country,City,Population\nDE,Köln,1\n".encode() + b"DE,D\xfcren,2\n" + b"DE,Bonn,3\n", 3,
        {3: "The row is not valid UTF-8."}, "", [(b"D\xfcren", "Düren".encode())], 4,
    ),
    "bytes that Windows-1252 does not have": Dirty(
        "c.csv", b"Country,City\nDE,K\xf6ln\nDE,D\x81ren\n", 2, {3: "The row is not valid cp1252."},
        "--encoding cp1252", [(b"D\x81", b"D\xfc")], 3,
    ),
    "null markers": Dirty(
        "c.csv", f"{CITIES}NA,Windhoek,NA\nNULL,NULL,\\N\nNA,Oranjemund,n/a\n".encode(), 2,
        {3: "The row has no key in any column of a level.", 4: POPULATION.format("Population") + '"n/a" is not'},
        "--null Population=NA --null NULL --null '\\N'", [(b"n/a", b""), (b"NULL,NULL", b"NA,Outjo")], 4,
    ),
    "French numbers": Dirty(
        "c.tsv", "Country\tCity\tPopulation\nFR\tParis\t2\u202f102\u00a0650\nFR\tLyon\t522 96\n".encode(), 2,
        {3: 'Column "Population": population: "522 96", which is not written like 1 234,56'}, "--numbers '1 234,56'",
        [(b"522 96\t", b"522 960\t")], 3,
    ),
    "Swiss numbers and pipes": Dirty(
        "c.csv", b"Country|City|Population\nCH|Bern|144'447\nCH|Chur|40,000\n", 2, {3: POPULATION.format("Population")},
        "--numbers \"1'234.56\"", [(b"40,000", b"40'000")], 3, "delimiter |",
    ),
    "the separator line of Excel": Dirty(
        "c.csv", b"sep=;\r\nCountry;City;Population\r\nUS;Omaha;many\r\nUS;Lincoln;1\r\n", 2, {3: NO_LONG}, "",
        [MANY], 3,
    ),
    "quotes in the middle of a cell, rows of two lines": Dirty(
        "c.csv", b'Country,City\nUS,"St." Louis\nUS,"O""Fallon, MO"\nUS,"two\nlines"\n\nUS,O\0maha\n', 2,
        {2: "The row is not valid CSV:", 4: 'Column "City": A key has the character U+000A',
         7: 'Column "City": A key has the character U+0000'},
        "", [(b'"St." Louis', b"St. Louis"), (b'"two\nlines"', b"two lines"), (b"\0", b"")], 5,
    ),
    "gzip": Dirty(
        "c.csv.gz", gzip.compress(f"{CITIES}US,Omaha,many\nUS,O,1\n".encode()), 2,
        {2: NO_LONG}, "", [MANY], 3,
    ),
    "zip with what macOS adds": Dirty(
        "c.zip", zipped({"data/c.csv": f"{CITIES}US,Omaha,many\nUS,Lincoln,1\n".encode(), "__MACOSX/._c": b"x"}), 2,
        {2: NO_LONG}, "", [MANY], 3,
    ),
    "rows that contradict others": Dirty(
        "c.csv", CONTRADICTIONS.encode(), 2,
        {3: "US/Omaha has the population 1 in row 2 already, not 2.",
         4: 'Column "City Id": The id 1 is that of another node already, in row 2.',
         5: 'Column "City Id": The id 9 is that of another node in the same row.'},
        "", [(b"US,,Lincoln,,,1", b"US,,Lincoln,,,2"), (b"9,9", b"9,10")], 5,
    ),
    "keys of two levels, keys that are too long": Dirty(
        "c.csv", f"Country,State,City\nUS,NE,\nUS,,NE\nUS,,{'x' * 1023}\n{'x' * 901},,\nUS,,Omaha\n".encode(), 3,
        {3: "US/NE has the level STATE in row 2 already, not CITY.",
         4: "The path takes 1025 bytes below its root; at most 1024 fit.", 5: 'The key "xxx'},
    ),
    "levels that do not fit": Dirty(
        "c.csv", b"Country,City,Store,Street\nUS,,7,Main Street\nUS,Omaha,8,Side Street\n,Ulm,,\n", 3,
        {2: "STORE may not stand under COUNTRY", 4: "CITY may not stand as a root, only under COUNTRY"},
        "", [(b"US,,7", b"US,Lincoln,7"), (b",Ulm", b"DE,Ulm")], 7,
    ),
    "Excel with types, an empty start and more sheets": Dirty(
        "c.xlsx", excel([["see the other sheet"]], {"Cities": SHEET}), 2,
        {4: NO_LONG, 6: 'Column "Latitude": latitude: "north"', 7: "The row has 5 columns, the header 4."},
        "--sheet Cities", [MANY, (b"north", b"40.8"), (b",beside the table", b"")], 5,
    ),
    "Parquet with structures": Dirty(
        "c.parquet", parquet_file(STRUCTURES), 2,
        {2: "The row has no key in any column of a level.", 3: POPULATION.format("place.population")},
        "", [MANY, (b"\n,,1", b"\nUS,Ames,1")], 4,
    ),
    "GeoJSON with positions outside of the world": Dirty(
        "c.geojson", json.dumps({"type": "FeatureCollection", "features": FEATURES}).encode(), 3,
        {2: 'Columns "latitude", "longitude": [40.8, -96.7] is not a longitude from -180 to 180 and latitude',
         3: 'Columns "latitude", "longitude": [-1000, 42]', 4: "The row is not a GeoJSON feature.",
         5: 'Columns "latitude", "longitude": []'},
        "", [(b"-96.7,40.8", b"40.8,-96.7"), (b"-1000", b"-93.6")], 6,
    ),
    "GeoJSON by lines": Dirty(
        "c.geojsonl", "\n".join([json.dumps(feature("Omaha", -95.9, 41.2, id=7)), "{not json",
                                 json.dumps(feature("Ames", "x", 2))]).encode(), 2,
        {2: 'The line is not valid JSON: unexpected character, expected a string key (column 2). It is "{not json".',
         3: 'Columns "latitude", "longitude": ["x", 2]'}, "", [(b"2,x", b"2,1")], 3,
    ),
    "JSON, nested": Dirty(
        "c.json", json.dumps(NESTED).encode(), 1,
        {1: POPULATION.format("states.cities.population"), 2: "The row is not a JSON object. It is 7.",
         4: 'The row is not a JSON object. It is "FR".'}, "", [MANY], 4,
    ),
    "JSON as a tree": Dirty(
        "c.json", json.dumps(TREE).encode(), 3,
        {2: 'population: "many" is not a whole number',
         3: '"children" is a list of nodes, or an object of nodes by key.',
         4: "The node below US has no key and no name.", 7: "The node below US/NE has no level; write"},
        "", [(b'"many"', b"7")], 4,
    ),
    "JSON lines in gzip": Dirty(
        "c.jsonl.gz", gzip.compress(b'{"path": "US", "level": "COUNTRY"}\n[]\n{"path": "US/\xff", "level": "CITY"}\n'),
        1, {2: "The line is not a JSON object: [].", 3: "The line is not valid UTF-8."},
        "", [(b"[]", b'{"path": "SG", "level": "COUNTRY"}'), (b"\xff", b"A")], 3,
    ),
    "a table of paths": Dirty(
        "c.csv", b'path,level,names,population\nUS,country,"{""de"": ""USA""}",\nUS/Omaha,CITY,{,1\nUS/A/,CITY,,\n'
        b"US/B,CITY,,many\n", 1,
        {3: 'Column "names": { is not valid JSON', 4: "The path has an empty key",
         5: 'population: "many" is not a whole number'},
        "", [(b"CITY,{", b"CITY,{}"), (b"US/A/", b"US/A"), MANY], 4,
    ),
    "a taxonomy": Dirty(
        "c.txt", b"# of pets\nPets > Cats\nPets >  > Dogs\nPets >\n", 2,
        {3: "The path has an empty key", 4: "The path has an empty key"}, "category", [(b">  >", b">")], 3,
    ),
    "blank lines above the header": Dirty(
        "c.csv", b"\n;;\nCountry;City;Notes\n\nUS;Omaha;x\n;Ames;y\n", 2, {6: "CITY may not stand as a root"},
        "", [(b"\n;Ames", b"\nUS;Ames")], 3, 'by their names; --level sets them. Not imported: "Notes".',
    ),
    "headers in other cases, with spaces": Dirty(
        "c.csv", b" COUNTRY , city_name ,POSTAL CODE,notes\nUS,Omaha,68118,x\n,Omaha,68118,y\n", 3,
        {3: "CITY may not stand as a root"}, "", [(b"\n,Omaha", b"\nUS,Omaha")], 3,
    ),
    "items that contradict each other": Dirty(
        "c.json", items({"PK": "garden", "SK": "0", "owner": "Ann"}, {"PK": "garden", "SK": "1", "owner": "Bo"}), 2,
        {2: "garden has the name Ann in row 1 already, not Bo."},
        "category --key '{category} / {product}' --name category=owner --keys PK,SK", [(b"Bo", b"Ann")], 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DIRTY)
def test_valid_rows_are_imported_and_rejected_rows_can_be_corrected(clade: Clade, tmp_path: Path, what: str) -> None:
    dirty = DIRTY[what]
    hierarchy, options = split(dirty.options)
    (tmp_path / dirty.name).write_bytes(dirty.content)
    result = clade("import", hierarchy, dirty.name, *options)
    assert result.exit_code == 1, result.output + repr(result.exception)
    assert dirty.says in result.stderr
    assert len(stored(clade, hierarchy)) == dirty.nodes, stored(clade, hierarchy)
    for number, reason in dirty.reasons.items():
        assert f"  {dirty.name}, row {number}: {reason}" in result.stderr, result.stderr
    again = clade("import", hierarchy, dirty.name, *options)
    assert "Nothing changed." in again.stdout
    assert again.stderr == result.stderr
    (rejected,) = tmp_path.glob("*.rejected.*")
    if dirty.mended:
        content = rejected.read_bytes()
        for old, new in dirty.mended:
            assert old in content, content
            content = content.replace(old, new)
        rejected.write_bytes(content)
        options = [option for option in options if option not in ("--sheet", "Cities")]
        mended = clade("import", hierarchy, rejected.name, *options)
        assert len(stored(clade, hierarchy)) == dirty.total, mended.output + repr(mended.exception)


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.csv"])
def test_a_line_that_is_too_long_is_rejected_with_its_number(clade: Clade, tmp_path: Path, name: str) -> None:
    long = "x" * (MAX_LINE_BYTES + 1)
    lines = {
        "a.jsonl": ['{"path": "a", "level": "CATEGORY"}', f'{{"path": "{long}"}}', "[]", long * 2],
        "a.txt": ["a", f"b > {long}", "a > b"],
        "a.csv": ["Category,Product", f"{long},{long}", "a,b"],
    }[name]
    (tmp_path / name).write_text("\n".join(lines))
    said = clade("import", "category", name).stderr
    assert f"  {name}, row 2: {TOO_LONG}\n" in said
    assert (f"row 3: The line is not a JSON object: [].\n  {name}, row 4: {TOO_LONG}" in said) == (name == "a.jsonl")
    assert len(stored(clade, "category")) == (1 if name == "a.jsonl" else 2)
    (rejected,) = tmp_path.glob("*.rejected.*")
    assert rejected.stat().st_size < 10_000


LINES = [
    ("{", "The line is not valid JSON: unexpected end of data (column 2)."),
    ('{"level": "CITY"}', "The line has no path;"),
    ('{"path": 7, "level": "CITY"}', "A path is a list of texts or one text, not 7."),
    ('{"path": ["US", 7.0], "level": "CITY"}', "A key is a text or a whole number of at most 64 bits, not 7.0; write"),
    (
        '{"path": ["US", [7]], "level": "CITY"}',
        "A key is a text or a whole number of at most 64 bits, not [7]; write a",
    ),
    ('{"path": [], "level": "CITY"}', "A path has 1 to 32 keys, not 0."),
    ('{"path": "US//Omaha", "level": "CITY"}', "The path has an empty key;"),
    ('{"path": ["' + '","'.join("x" * 33) + '"], "level": "CITY"}', "A path has 1 to 32 keys, not 33."),
    ('{"path": "US"}', "The level is missing; location has COUNTRY, REGION,"),
    ('{"path": "US", "level": null}', "The level is missing;"),
    ('{"path": "US", "level": 3}', 'location has no level "3";'),
    ('{"path": "US", "level": "TOWN"}', 'location has no level "TOWN"; it has COUNTRY, REGION,'),
    ('{"path": "US", "level": "COUNTRY", "name": ""}', "The name is empty; write a text."),
    ('{"path": "US", "level": "COUNTRY", "name": 7}', "The name is 7, which is not a text; write a text."),
    ('{"path": "US", "level": "COUNTRY", "id": 7}', "The id is 7, which is not a text; write a text."),
    ('{"path": "US", "level": "COUNTRY", "colour": "red"}', 'COUNTRY has no attribute "colour"; it has code,'),
    ('{"path": "US", "level": "COUNTRY", "population": "many"}', 'population: "many" is not a whole number; write'),
    ('{"path": "FR", "level": "COUNTRY", "names": {"de": "Frankreisch"}}', "FR has the name in de Frankreich in row 1"),
    ('{"path": "US", "level": "COUNTRY", "names": {"en": 7}}', "names in en is 7, which is not a text; write a text."),
    ('{"path": "US", "level": "COUNTRY", "names": ["en"]}', 'names: ["en"] is not texts by language; write them'),
    (
        json.dumps({"path": "US", "level": "COUNTRY", "names": {f"de-{n:03}": "x" for n in range(51)}}),
        "names has 51 languages; at most 50 are allowed.",
    ),
]


def test_a_rejected_line_has_a_reason(clade: Clade, tmp_path: Path) -> None:
    first = '{"path": "FR", "level": "COUNTRY", "names": {"de": "Frankreich"}}'
    (tmp_path / "a.jsonl").write_text("\n".join([first, *[line for line, _ in LINES]]))
    assert "rejected: 21 rows" in clade("import", "location", "a.jsonl").stderr
    assert list(stored(clade, "location")) == ["FR"]
    written = (tmp_path / "a.rejected.jsonl").read_text().splitlines()
    for number, ((line, reason), kept) in enumerate(zip(LINES, written[1::2], strict=True), start=2):
        assert kept == line
        assert json.loads(written[2 * number - 4])["$reason"].startswith(f"row {number}: {reason}")


# -- files that stop an import -----------------------------------------------------------------------------------------

OPEN_QUOTE = "a quote in this row is not closed (column "
STOPPED: dict[str, tuple[Any, ...]] = {
    "an open quote": ("c.csv", b'Country,City\nUS,Ames\nUS,"Omaha\nUS,Lincoln\n',
                      f'c.csv, line 3: {OPEN_QUOTE}2, "Omaha); close it, double it if it is part of the text, or add'),
    "an open quote up to the next one": ("c.csv", b'Country,X\n"a,1\nb,"2"\nc,3\n', f'line 2: {OPEN_QUOTE}1, "a); '),
    "half a gzip file": ("c.csv.gz", gzip.compress(b"Country\nUS\n" * 1000)[:-20], "c.csv.gz cannot be decompressed"),
    "a zip file of many": ("c.zip", zipped({"a.csv": b"Country\n", "b.csv": b""}), "c.zip has 2 files (a.csv, b.csv)"),
    "a zip file of nothing": ("c.zip", zipped({}), "c.zip has 0 files (none), expected 1; unpack it."),
    "no zip file": ("c.zip", b"PK\x03\x04nothing", "c.zip is not a zip archive"),
    "half a character": ("c.csv", "Country\nUS\n".encode("utf-16") + b"U", "c.csv is no utf-16 from line"),
    "no UTF-16": ("c.csv", b"Country\nUS\n", "c.csv is no utf-16 from line 1 on: ", "--encoding utf-16"),
    "no UTF-16 in a taxonomy": ("c.txt", b"A\nB\n", "c.txt is no utf-16: UTF-16 stream", "category --encoding utf-16"),
    "half a character in a taxonomy": ("c.txt", "A\n".encode("utf-16") + b"B", "c.txt is no utf-16: ", "category"),
    "no header": ("c.csv", b"", '"c.csv" has no header: its first line must'),
    "no Excel file": ("c.xlsx", b"Country\nUS\n", "c.xlsx cannot be read as an Excel workbook"),
    "a zip file as Excel": ("c.xlsx", zipped({"a.csv": b"Country\n"}), "c.xlsx cannot be read as an Excel workbook"),
    "an empty sheet": ("c.xlsx", excel([]), "has no header: the first row of its sheet must name the columns"),
    "an empty sheet before another": ("c.xlsx", excel([], {"Data": [["Country"], ["US"]]}),
                                      'The sheet "First" of c.xlsx is empty; --sheet names another: "Data".'),
    "no Parquet file": ("c.parquet", b"PAR1 and no more", "c.parquet cannot be read as Parquet"),
    "no JSON": ("c.json", b'[{"country": "US"}', "c.json is not valid JSON"),
    "a number as JSON": ("c.json", b"7", "c.json is neither a list of objects nor an object"),
    "no GeoJSON": ("c.geojson", b"{}", "c.geojson is not GeoJSON: it is neither a feature nor a list of features."),
    "no features": ("c.geojson", b'{"features": []}', "c.geojson has no features."),
    "UTF-16 as JSON lines": ("c.jsonl", "{}".encode("utf-16"), "c.jsonl is UTF-16; write it as UTF-8."),
    "two columns of one name": ("c.csv", b"Country,City,City,Population\nUS,Ames,Omaha,7\n",
                                'The file has 2 columns "City" (2, 3); it has "Country", "City", "City", "Pop'),
    "columns of other names": ("c.csv", b"Land,Stadt\nUS,Ames\n", '--level country=COLUMN. The file has "Land", "S'),
    "a taxonomy of levels": ("c.txt", b"US > NE\n", "allowed under itself; location has none: use csv or jsonl."),
    "folded keys of items": ("c.json", items({"PK": "garden"}), "--fold-case is for files, not for DynamoDB tables",
                             "category --key {category} --keys PK --fold-case category"),
    "paths as keys of items": ("c.json", items({"PK": "Pets"}, {"PK": "Pets > Cats > Siamese"}),
                               'has whole paths, such as "Pets > Cats > Siamese", where a key of one CATEGORY belongs',
                               "category --keys PK --key {category}"),
}  # fmt: skip


@pytest.mark.parametrize("what", STOPPED)
def test_a_file_that_cannot_be_read_stops_the_import_with_one_sentence(clade: Clade, tmp_path: Path, what: str) -> None:
    name, content, message, *more = STOPPED[what]
    hierarchy, options = split(*more or [""])
    (tmp_path / name).write_bytes(content)
    result = clade("import", hierarchy, name, *options)
    assert isinstance(result.exception, BadInput), result.output + repr(result.exception)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "clade.db").exists(), "nothing is written before the file is read"


def test_a_quote_that_is_not_closed_is_found_within_a_cell_or_a_row(clade: Clade, tmp_path: Path) -> None:
    cell, row = b'"' + b"xx\n" * 500_000 + b'"\n', (b'"' + b"x" * 9_999 + b'\n",') * 1_010 + b"c\n"
    for content in (cell, row):
        (tmp_path / "c.csv").write_bytes(b"Country\n" + content + b"b\n")
        assert f"c.csv, line 2: {OPEN_QUOTE}" in str(clade("import", "location", "c.csv").exception)


def test_a_document_that_is_read_whole_has_a_largest_size(clade: Clade, tmp_path: Path) -> None:
    for name in ("c.json.gz", "c.geojson.gz"):
        with gzip.open(tmp_path / name, "wb", compresslevel=1) as target:
            for _ in range(201):
                target.write(b" " * 1_000_000)
        message = "is a JSON document of more than 200,000,000 bytes; write it as JSON lines"
        assert message in str(clade("import", "location", name).exception)


# -- files that could be taken for something else ----------------------------------------------------------------------


def children(count: int, header: Sequence[str], root: str = "") -> list[list[str]]:
    """A header and rows of an id, the id of the parent and a name: a tree of four children each."""
    kinds = ("Garden", "Mowers", "Robots", "Blades", "Tools", "Hoses")
    rows = [[f"{n}", f"{(n - 2) // 4 + 1}" if n > 1 else root, f"{kinds[n % 6]} {n}"] for n in range(1, count + 1)]
    return [[*header], *rows]


BY_ID = "category --level category=id --name category=name"
BY_PARENT = 'is a tree by parent ids: column "{0}" has values of "{1}" of other rows; --tree-by '
IDS = children(9, ["id", "parentId", "name"])
OBJECTS = [dict(zip(IDS[0], row, strict=True)) for row in IDS[1:]]
PATHS = [["Garden"], ["Garden", "Mowers"], ["Garden", "Mowers", "Robots"], ["Garden", "Hoses"], ["Kitchen", "Knives"]]
BY_PATH = 'has whole paths, such as "{}", where a key of one CATEGORY belongs; '
JOINED = ["/".join(path) for path in PATHS]
NO_HEADER = "columns of a file without a header, such as --columns a,b,c"
NEBRASKA = [["US", "NE", "Omaha"], ["US", "NE", "Lincoln"]]
DATES = [["S-001", "2019-01-02"], ["S-002", "2020-02-03"]]
MISREAD: dict[str, tuple[str, bytes, str, str, int]] = {
    "root 0": ("a.csv", table(children(150, ["id", "parent_id", "name"], "0")), BY_ID,
               BY_PARENT.format("parent_id", "id"), 150),
    "root refers to itself": ("a.csv", table(children(150, ["id", "parent_id", "name"], "1")), BY_ID,
                              BY_PARENT.format("parent_id", "id"), 150),
    "three rows": ("a.csv", table(IDS[:4]), BY_ID, BY_PARENT.format("parentId", "id"), 3),
    "another name": ("a.csv", table(children(150, ["id", "belongs under", "name"])), BY_ID,
                     BY_PARENT.format("belongs under", "id"), 150),
    "children first": ("a.csv", table([["id", "parent_id", "name"], *reversed(children(5_500, [])[1:])]), BY_ID,
                       BY_PARENT.format("parent_id", "id"), 5_500),
    "texts": ("a.csv", b"slug,x,name\ng,,G\ng-m,g,M\ng-m-r,g-m,R\n", "category --level category=slug",
              BY_PARENT.format("x", "slug"), 3),
    "ids in JSON": ("a.json", json.dumps(OBJECTS).encode(), BY_ID, BY_PARENT.format("parentId", "id"), 9),
    "ids in Parquet": ("a.parquet", parquet_file(OBJECTS), BY_ID, BY_PARENT.format("parentId", "id"), 9),
    "ids in Excel": ("a.xlsx", excel(IDS), BY_ID, BY_PARENT.format("parentId", "id"), 9),
    "ids of items": ("a.json", items(*[{**one, "PK": f"C{one['id']}"} for one in OBJECTS]),
                     "category --keys id --key {category}", BY_PARENT.format("parentId", "id"), 9),
    **{f"paths with {one!r}": ("a.csv", table([["Path", "n"], *[[one.join(path), "1"] for path in PATHS]]),
                               "category --level category=Path", BY_PATH.format(one.join(PATHS[2])), 5)
       for one in (" > ", ">", "/", " / ", "|", " | ", " » ")},
    "a table of paths": ("a.csv", table([["path", "level"], *[[" > ".join(one), "CATEGORY"] for one in PATHS]]),
                         "category", BY_PATH.format(" > ".join(PATHS[2])), 5),
    "lines of paths": ("a.jsonl", "\n".join(json.dumps({"path": " > ".join(one), "level": "CATEGORY"}) for one in PATHS)
                       .encode(), "category", BY_PATH.format(" > ".join(PATHS[2])), 5),
    "paths in a text": ("a.txt", "\n".join(JOINED).encode(), "category", BY_PATH.format(JOINED[2]), 5),
    "keys": ("a.csv", table(NEBRASKA), "--level country=US --level state=NE --level city=Omaha", NO_HEADER, 3),
    "numbers": ("a.csv", b"Omaha,478192\nLincoln,291082\n",
                "--level country=Omaha --attr country.population=478192", NO_HEADER, 1),
    "codes and dates": ("a.csv", table(DATES), "--level country=S-001", NO_HEADER, 1),
    "codes and dates in Excel": ("a.xlsx", excel(DATES), "--level country=S-001", NO_HEADER, 1),
    "negative numbers": ("a.csv", b"Omaha,41.26,-95.94\nUlm,48.4,9.99\n",
                         "--level country=Omaha --attr country.latitude=41.26", NO_HEADER, 1),
}  # fmt: skip


@pytest.mark.parametrize("what", MISREAD)
def test_a_file_that_would_become_another_tree_needs_a_confirmation(clade: Clade, tmp_path: Path, what: str) -> None:
    name, content, options, message, count = MISREAD[what]
    hierarchy, words = split(options)
    (tmp_path / name).write_bytes(content)
    for more in ([], ["--dry-run"]):
        refused = clade("import", hierarchy, name, *words, *more)
        assert isinstance(refused.exception, BadInput), refused.output
        assert message in str(refused.exception)
    described = clade("import", hierarchy, name, *words, "--describe")
    assert message in described.stdout + str(described.exception)
    confirmed = clade("import", hierarchy, name, *words, "--yes", "--dry-run")
    assert f"would be added: {count:,} (" in confirmed.stdout, confirmed.output
    assert not (tmp_path / "clade.db").exists()


ORDINARY = [
    pytest.param([["City", "Capital", "n"], ["Lyon", "Paris", "1"], ["Paris", "Paris", "2"], ["Nice", "Paris", "3"]],
                 id="capitals"),
    pytest.param([["City", "depth"], *[[f"{n}", f"{min(n - 1, 3)}"] for n in range(1, 40)]], id="depths"),
    pytest.param([["City", "rooms"], *[[f"{n}", f"{n * 7 % 11}"] for n in range(1, 400)]], id="small numbers"),
    pytest.param([["City", "next"], *[[f"C{n}", f"C{n % 9 + 1}"] for n in range(1, 10)]], id="a circle"),
    pytest.param([["City", "parent company"], ["A", "Acme"], ["B", "Acme"], ["C", "B & Sons"]], id="companies"),
    pytest.param([["City", "Road"], ["A/B", "1/2"], ["C/D", "1/3"], ["E/F", "1/4"]], id="slashes"),
    pytest.param([["City", "n"], ["Main St 5/1", "1"], ["Main St 5/2", "2"], ["Main St 5/3", "3"]], id="houses"),
    pytest.param([["City", "n"], ["https://a.example/x", "1"], ["https://a.example/y", "2"]], id="addresses"),
    pytest.param([["City", "2019", "2020"], ["Bonn", "1", "2"], ["Köln", "3", "4"]], id="years"),
    pytest.param([["Land", "2019", "City"], ["DE", "1999", "Bonn"], ["DE", "2020", "Ulm"]], id="years above years"),
    pytest.param([["City"], ["Bonn"]], id="one column"),
    pytest.param([["City", "Q1", "Q2"], ["Bonn", "Q3", "Q4"], ["Ulm", "Q2", "Q1"]], id="quarters"),
]  # fmt: skip


@pytest.mark.parametrize("rows", ORDINARY)
def test_an_ordinary_table_is_imported(clade: Clade, tmp_path: Path, rows: list[list[str]]) -> None:
    (tmp_path / "a.csv").write_bytes(table(rows))
    done = clade("import", "location", "a.csv", "--level", "country=City")
    assert (done.exit_code, len(stored(clade, "location"))) == (0, len(rows) - 1), done.output


@pytest.mark.parametrize(
    ("name", "hierarchy", "levels"),
    [
        (STARBUCKS, "location", []),
        (STARBUCKS, "location", ["country=Country", "city=City", "store=Store Number"]),
        (STARBUCKS, "location", ["country=Street Address"]),
        (TAXONOMY, "category", []),
    ],
)
def test_a_real_file_is_what_it_seems(clade: Clade, name: str, hierarchy: str, levels: list[str]) -> None:
    options = [word for one in levels for word in ("--level", one)]
    done = clade("import", hierarchy, real_file(name), *options, "--describe")
    assert (done.exit_code, "Proposed command" in done.stdout) == (0, True), done.output


# -- sources -----------------------------------------------------------------------------------------------------------

OMAHA = f"{CITIES}US,Omaha,many\nUS,Lincoln,291082\n".encode()


def test_the_standard_input_is_imported_and_its_rejected_rows_are_in_the_working_directory(
    clade: Clade, tmp_path: Path
) -> None:
    done = clade("import", "location", "-", "--format", "csv", stdin=gzip.compress(OMAHA))
    assert "added: 2 (1 COUNTRY, 1 CITY)" in done.stdout, done.output
    assert (tmp_path / "stdin.rejected.csv").read_bytes().startswith(b"Country,City,Population,reason\nUS,Omaha,many,")
    assert "add --format with one of csv," in str(clade("import", "location", "-", stdin=OMAHA).exception)


@pytest.mark.parametrize("name", ["a" * 300 + ".csv", "é" * 150 + ".csv", "a\x1b[31m\n.csv", "../../a.csv", ".."])
def test_a_name_in_an_archive_is_no_place_for_rejected_rows(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({name: OMAHA}))
    found = Source(tmp_path / "a.zip", "a.zip", tmp_path).rejected(".csv")
    assert found.parent == tmp_path
    assert found.name.isprintable()
    found.write_bytes(b"")


def test_the_described_command_imports_the_file(clade: Clade, tmp_path: Path) -> None:
    content = "Country;City;Population;Latitude;Note\nDE;Köln;1.073.096;50,9;x\nDE;Bonn;NULL;50,7;y\n"
    (tmp_path / "cities.csv").write_bytes(content.encode("cp1252"))
    described = clade("import", "location", "cities.csv", "--describe")
    assert "cities.csv is not UTF-8; a guess is --encoding cp1252" in described.stdout
    assert "cities.csv: delimiter ;, guessed" in described.stdout
    assert "  City: Köln, Bonn (key of city)\n" in described.stdout
    assert "  Note: x, y (not imported)\n" in described.stdout
    command = described.stdout.splitlines()[-1].strip()
    assert "--null Population=NULL --numbers 1.234,56" in command
    assert not (tmp_path / "clade.db").exists()
    assert "added: 3 (1 COUNTRY, 2 CITY)" in clade(*shlex.split(command)[1:]).stdout
    cologne = stored(clade, "location")["DE/Köln"]
    assert (cologne["population"], cologne["latitude"]) == (1073096, 50.9)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://bucket/cities.csv?key=x", "s3://bucket/cities.csv is an address, and only files are read; download"),
        ("https://me:secret@host/cities.csv", "https://host/cities.csv is an address, and only files are read"),
        (f"https://host/{'x' * 300}.csv?{'y' * 5_000}", "is an address, and only files are read; download it"),
        ("https://host/a.json --keys PK --key {country}", "https://host/a.json is an address, and only files are"),
        ("x" * 300, "x…' does not exist."),
        ("a\0.csv", "file 'a\N{REPLACEMENT CHARACTER}.csv' does not exist."),
        ("none.json --keys PK --key {country}", "file 'none.json' does not exist."),
        ("pipe.csv", "pipe.csv is a pipe or a device, which can be read only once; pipe it in: clade import"),
        ("folder", "folder is not an export of a DynamoDB table"),
        ("land.csv", "No column is named like a level of location"),
    ],
)
def test_what_cannot_be_described_gets_one_sentence(clade: Clade, tmp_path: Path, address: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "land.csv").write_text("Land;Stadt\nDE;Bonn\n")
    for more in ([], ["--describe"]):
        result = clade("import", "location", *address.split(" "), *more)
        assert message in " ".join(result.output.replace("│", "").split()) + str(result.exception)
        assert result.exit_code > 0
    assert not (tmp_path / "clade.db").exists()
