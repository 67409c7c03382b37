"""File formats: rows from CSV, JSON lines and taxonomies, valid and not."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.paths import format_path
from store.transfer.formats.columns import LevelColumns, read_csv
from store.transfer.formats.lines import read_jsonl, read_taxonomy, taxonomy_level
from store.transfer.rows import ImportPlan, Node
from tests.hierarchies import CATEGORY, LOCATION, hierarchy, level

PLACES = partial(
    read_csv,
    [
        LevelColumns("COUNTRY", "Country"),
        LevelColumns("STATE", "State"),
        LevelColumns("CITY", "City", fold=True),
        LevelColumns(
            "STORE", "Store", name="Name", id="Id", attributes={"street": "Street", "square_feet": "Square Feet"}
        ),
    ],
)
HEADER = "Country,State,City,Store,Name,Id,Street,Square Feet\n"


def read(tmp_path: Path, content: str | bytes, form: Any, kind: Hierarchy = LOCATION, **options: bool) -> ImportPlan:
    file = tmp_path / "file.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    wanted = ImportPlan(kind, **options)
    for _, row in form(file):
        wanted.take(row)
    return wanted


def nodes(wanted: ImportPlan) -> dict[str, Node]:
    return {format_path(node.path): node for tree in wanted.trees.values() for node in tree.nodes.values()}


def reasons(wanted: ImportPlan) -> dict[int, str]:
    return {rejection.number: rejection.reason for rejection in wanted.rejections}


# -- CSV ---------------------------------------------------------------------------------------------------------------


def test_a_row_makes_a_node_for_each_level(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "US,NE,Omaha,1,Main Shop,s1,100 St Andrews lane,921\n", PLACES)
    found = nodes(wanted)
    assert list(found) == ["US", "US/NE", "US/NE/Omaha", "US/NE/Omaha/1"]
    shop = found["US/NE/Omaha/1"]
    assert (shop.level, shop.name, shop.id) == ("STORE", "Main Shop", "s1")
    assert shop.values == {"street": "100 St Andrews lane", "square_feet": 921}


def test_levels_repeat_from_row_to_row(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "US,NE,Omaha,1,,,,\nUS,NE,Omaha,2,,,,\nUS,NE,Lincoln,3,,,,\n", PLACES)
    assert (wanted.rows, wanted.nodes, wanted.rejections) == (3, 7, [])


def test_an_empty_cell_skips_its_level(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "SG,,Singapore,,,,,\nUS,NE, ,1,,,,\n", PLACES)
    assert list(nodes(wanted)) == ["SG", "SG/Singapore", "US", "US/NE", "US/NE/1"]


def test_a_level_may_not_be_skipped_where_the_next_could_not_stand(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "US,,,1,,,,\n", PLACES)
    assert reasons(wanted)[2].startswith("STORE may not stand under COUNTRY, only under CITY,")
    assert nodes(wanted) == {}, "a row is taken whole or not at all"


def test_siblings_that_differ_in_case_are_one_where_that_is_asked_for(tmp_path: Path) -> None:
    rows = "US,NE,OMAHA,1,,,,\nUS,NE,Omaha,2,,,,\nUS,ne,omaha,3,,,,\n"
    assert list(nodes(read(tmp_path, HEADER + rows, PLACES))) == [
        "US", "US/NE", "US/NE/OMAHA", "US/NE/OMAHA/1", "US/NE/OMAHA/2", "US/ne", "US/ne/omaha", "US/ne/omaha/3",
    ]  # fmt: skip


def test_the_name_of_folded_siblings_is_that_of_the_first(tmp_path: Path) -> None:
    form = partial(read_csv, [LevelColumns("COUNTRY", "C"), LevelColumns("CITY", "Key", name="Name", fold=True)])
    wanted = read(tmp_path, "C,Key,Name\nDE,koeln,KÖLN\nDE,KOELN,Köln\nDE,Koeln,Cologne\n", form)
    assert nodes(wanted)["DE/koeln"].name == "KÖLN"
    assert list(reasons(wanted)) == [4]


def test_two_spellings_of_the_same_letters_are_one_key(tmp_path: Path) -> None:
    wanted = read(tmp_path, "C\nCafe\u0301\nCaf\u00e9\n", partial(read_csv, [LevelColumns("COUNTRY", "C")]))
    assert list(nodes(wanted)) == ["Caf\u00e9"]


def test_a_row_may_say_what_an_earlier_one_left_open(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "US,NE,Omaha,1,,,,\nUS,NE,Omaha,1,Shop,s1,Main Street,\n", PLACES)
    shop = nodes(wanted)["US/NE/Omaha/1"]
    assert (shop.name, shop.id, shop.values) == ("Shop", "s1", {"street": "Main Street", "square_feet": None})
    assert not wanted.rejections


def test_of_two_rows_that_disagree_the_second_is_rejected(tmp_path: Path) -> None:
    rows = "US,NE,Omaha,1,Shop,s1,Main Street,1\nUS,NE,Omaha,1,Shop,s1,Main Street,2\nUS,NE,Omaha,1,Store,,,\n"
    assert reasons(read(tmp_path, HEADER + rows, PLACES)) == {
        3: "US/NE/Omaha/1 has the square_feet 1 in row 2 already, not 2.",
        4: "US/NE/Omaha/1 has the name Shop in row 2 already, not Store.",
    }


def test_one_key_for_two_levels_is_rejected(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "US,NE,,,,,,\nUS,,NE,,,,,\n", PLACES)
    assert reasons(wanted) == {3: "US/NE has the level STATE in row 2 already, not CITY."}


def test_an_id_of_two_nodes_is_rejected(tmp_path: Path) -> None:
    wanted = read(tmp_path, HEADER + "US,NE,Omaha,1,,s1,,\nUS,NE,Omaha,2,,s1,,\n", PLACES)
    assert reasons(wanted) == {3: 'Column "Id": The id s1 is that of another node already, in row 2.'}


def test_an_id_of_two_nodes_of_one_row_is_rejected(tmp_path: Path) -> None:
    form = partial(read_csv, [LevelColumns("COUNTRY", "C", id="I"), LevelColumns("CITY", "T", id="J")])
    wanted = read(tmp_path, "C,T,I,J\nUS,Omaha,1,1\n", form)
    assert reasons(wanted) == {2: 'Column "J": The id 1 is that of another node in the same row.'}


def test_a_column_of_several_levels_has_values_of_the_last_node_of_a_row(tmp_path: Path) -> None:
    columns = {"name": "Name", "id": "Id", "attributes": {"population": "People"}, "names": {"de": "Deutsch"}}
    form = partial(read_csv, [LevelColumns("COUNTRY", "C", **columns), LevelColumns("CITY", "T", **columns)])
    rows = "US,,United States,1,340,Amerika\nUS,Omaha,Omaha City,2,5,Omaha\nSG,Singapore,Lion City,3,6,Singapur\n"
    wanted = read(tmp_path, f"C,T,Name,Id,People,Deutsch\n{rows}", form)
    assert not wanted.rejections
    assert {path: (node.name, node.id) for path, node in nodes(wanted).items()} == {
        "US": ("United States", "1"), "US/Omaha": ("Omaha City", "2"),
        "SG": (None, None), "SG/Singapore": ("Lion City", "3"),
    }  # fmt: skip
    assert nodes(wanted)["SG"].values == {}


def test_a_header_that_is_repeated_is_no_row(tmp_path: Path) -> None:
    wanted = read(tmp_path, "C\nUS\nC\nSG\n", partial(read_csv, [LevelColumns("COUNTRY", "C")]))
    assert reasons(wanted) == {3: "The row is the header again; remove it."}
    assert list(nodes(wanted)) == ["US", "SG"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("US,NE,Omaha,1,,,,12.5", "Column \"Square Feet\": square_feet: '12.5' is not a valid Int (a 32-bit integer)."),
        (
            "US,NE,Omaha,1,,,,99999999999",
            "Column \"Square Feet\": square_feet: '99999999999' is not a valid Int (a 32-bit integer).",
        ),
        (
            "US,NE,Omaha,1,,a b,,",
            'Column "Id": The id "a b" has white space, a control character, # or :, which ids may not.',
        ),
        ("US,NE,Omaha", "The row has 3 columns, the header 8."),
        ("US,NE,Omaha,1,,,,,", "The row has 9 columns, the header 8."),
        (",,,,,,,", "The row has no key in any column of a level."),
        (",NE,Omaha,1,,,,", "STATE may not stand as a root, only under COUNTRY, under REGION."),
        (
            "US,NE,Oma\x07ha,1,,,,",
            'Column "City": A path has the character U+0007, which no key may contain.',
        ),
    ],
)
def test_a_rejected_row_has_a_reason(tmp_path: Path, row: str, reason: str) -> None:
    wanted = read(tmp_path, HEADER + row + "\nUS,NE,Omaha,2,,,,\n", PLACES)
    assert reasons(wanted) == {2: reason}
    assert wanted.nodes == 4, "the next row is taken"


def test_keys_that_are_too_long_name_the_size_and_the_limit(tmp_path: Path) -> None:
    form = partial(read_csv, [LevelColumns("COUNTRY", "C"), LevelColumns("NEIGHBORHOOD", "N")])
    kind = hierarchy("location", level("COUNTRY", "-"), level("NEIGHBORHOOD", "COUNTRY"))
    rows = ["US," + "x" * 1023, "US," + "x" * 1012, "x" * 901 + ",", "US," + "ü" * 500, "US," + "x" * 1009]
    found = reasons(read(tmp_path, "C,N\n" + "\n".join(rows), form, kind))
    assert "1025 bytes in a key; at most 1024 fit" in found[2]
    assert "its level NEIGHBORHOOD take 1026 bytes in a key; at most 1024 fit" in found[3]
    assert "takes 901 bytes in a key; at most 900 fit" in found[4]
    assert list(found) == [2, 3, 4]


def test_a_line_that_is_not_utf8_affects_no_other(tmp_path: Path) -> None:
    wanted = read(
        tmp_path,
        "Country\nUS\nÖ\nK\udcf6ln\nFR\n".encode(errors="surrogateescape"),
        partial(read_csv, [LevelColumns("COUNTRY", "Country")]),
    )
    assert reasons(wanted) == {4: "The row is not valid UTF-8."}
    assert list(nodes(wanted)) == ["US", "Ö", "FR"]


def test_rows_are_counted_by_the_line_they_begin_on(tmp_path: Path) -> None:
    rows = 'US,NE,"Omaha\nNebraska",,,,,\n\nUS,NE,Lincoln,1,,,,many\n'
    wanted = read(tmp_path, HEADER + rows, PLACES)
    assert list(reasons(wanted)) == [2, 5]
    contents = {row.number: text.rstrip("\r\n") for text, row in PLACES(tmp_path / "file.csv")}
    assert contents[2] == 'US,NE,"Omaha\nNebraska",,,,,'
    assert contents[5] == "US,NE,Lincoln,1,,,,many"


def test_a_byte_order_mark_and_tabs_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "places.tsv"
    file.write_bytes("\ufeffCountry\tX\r\nUS\t1\r\n".encode())
    ((_, row),) = read_csv([LevelColumns("COUNTRY", "Country")], file)
    assert row[:2] == (2, ["US"])


def test_an_unknown_column_lists_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='has no column "Land"; it has "Country", "State"'):
        read(tmp_path, "Country,State\n", partial(read_csv, [LevelColumns("COUNTRY", "Land")]))


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='has two columns "C"'):
        read(tmp_path, "C,C\n", partial(read_csv, [LevelColumns("COUNTRY", "C")]))


def test_a_file_without_a_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no header"):
        read(tmp_path, "", PLACES)


# -- JSON lines --------------------------------------------------------------------------------------------------------


def test_a_line_is_a_node(tmp_path: Path) -> None:
    lines = """
        {"path": ["US"], "level": "country", "name": "United States", "population": 331000000}
        {"path": "US/St. Louis%2FMO", "level": "City", "id": "4407066", "population": null}
    """
    found = nodes(read(tmp_path, lines, read_jsonl))
    assert list(found) == ["US", "US/St. Louis%2FMO"]
    assert found["US"].values == {"population": 331000000}
    city = found["US/St. Louis%2FMO"]
    assert (city.level, city.name, city.id, city.values) == ("CITY", None, "4407066", {"population": None})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "The line is not valid JSON: unexpected end of data (column 2)."),
        ("[1]", "The line is not a JSON object: [1]."),
        ('{"level": "CITY"}', "The line has no path;"),
        ('{"path": 7, "level": "CITY"}', "A path is a list of texts or one text, not 7."),
        ('{"path": ["US", 7], "level": "CITY"}', "The segments of a path must be strings, not 7."),
        ('{"path": ["US", [7]], "level": "CITY"}', "The segments of a path must be strings, not "),
        ('{"path": [], "level": "CITY"}', "A path has 1 to 32 segments, not 0."),
        ('{"path": "US//Omaha", "level": "CITY"}', "A path has an empty segment;"),
        ('{"path": ["' + '","'.join("x" * 33) + '"], "level": "CITY"}', "A path has 1 to 32 segments, not 33."),
        ('{"path": "US"}', "The level is missing; location has COUNTRY, REGION,"),
        ('{"path": "US", "level": null}', "The level is missing;"),
        ('{"path": "US", "level": 3}', 'location has no level "3";'),
        ('{"path": "US", "level": "TOWN"}', 'location has no level "TOWN"; it has COUNTRY, REGION,'),
        ('{"path": "US", "level": "COUNTRY", "name": ""}', "A name must be a non-empty string, not ''."),
        ('{"path": "US", "level": "COUNTRY", "name": 7}', "A name must be a non-empty string, not 7."),
        ('{"path": "US", "level": "COUNTRY", "id": 7}', "An id must be a non-empty string, not 7."),
        ('{"path": "US", "level": "COUNTRY", "colour": "red"}', 'COUNTRY has no attribute "colour"; it has iso3,'),
        ('{"path": "US", "level": "COUNTRY", "population": "many"}', "population: 'many' is not a valid Long."),
        (b'{"path": "\xff", "level": "COUNTRY"}', "The line is not valid UTF-8."),
    ],
)
def test_a_rejected_line_has_a_reason(tmp_path: Path, line: str | bytes, reason: str) -> None:
    content = line if isinstance(line, bytes) else line.encode()
    wanted = read(tmp_path, b'{"path": "FR", "level": "COUNTRY"}\n' + content + b"\n", read_jsonl)
    assert reasons(wanted)[2].startswith(reason)
    assert list(nodes(wanted)) == ["FR"]


def test_unknown_attributes_can_be_left_out(tmp_path: Path) -> None:
    line = '{"path": "US", "level": "COUNTRY", "colour": "red", "iso3": "USA"}'
    wanted = read(tmp_path, line, read_jsonl, ignore_unknown=True)
    assert nodes(wanted)["US"].values == {"iso3": "USA"}


# -- taxonomies --------------------------------------------------------------------------------------------------------


def test_a_taxonomy_has_a_path_a_line_with_ids_or_without(tmp_path: Path) -> None:
    lines = "# Version 1\n\n3237 - Pets > Live Animals\n1 - Pets\nFood > Tea > Green\n"
    wanted = read(tmp_path, lines, partial(read_taxonomy, taxonomy_level(CATEGORY)), CATEGORY)
    found = nodes(wanted)
    assert set(found) == {"Pets", "Pets/Live Animals", "Food", "Food/Tea", "Food/Tea/Green"}
    assert {path: node.id for path, node in found.items() if node.id} == {"Pets": "1", "Pets/Live Animals": "3237"}
    assert not wanted.rejections


def test_a_taxonomy_with_an_empty_segment_is_rejected(tmp_path: Path) -> None:
    wanted = read(tmp_path, "Pets >  > Cats\nPets >\n", partial(read_taxonomy, taxonomy_level(CATEGORY)), CATEGORY)
    assert list(reasons(wanted)) == [1, 2]


def test_a_taxonomy_needs_a_level_that_is_allowed_under_itself() -> None:
    with pytest.raises(BadInput, match="location has none"):
        taxonomy_level(LOCATION)
