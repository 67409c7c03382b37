"""Sheets of Excel: numbers as the sheet shows them, merged cells, and what a workbook has besides cells. What cannot be
read as a person sees it is rejected with its column.
"""

import random
import warnings
import zipfile
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from store.errors import BadInput
from store.transfer.formats import workbooks
from store.transfer.formats.workbook_parts import MAX_ELEMENTS, TextScan
from store.transfer.formats.workbooks import excel_table, shown_number
from tests.commands.importing.files import Clade, clade, stored

__all__ = ["clade"]  # a fixture

HEADER = ["Country", "City", "Postcode"]
LEVELS = ["--level", "country=Country", "--level", "city=City", "--level", "postal_code=Postcode"]


def workbook(file: Path, rows: list[list[Any]], formats: dict[str, str] | None = None) -> Any:
    """A workbook with a sheet of rows, whose cells have these number formats."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, code in (formats or {}).items():
        book.active[cell].number_format = code
    book.save(file)
    return book


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (1234, "00000", "01234"), (18100501, "00000-0000", "01810-0501"), (78051120, "000-00-0000", "078-05-1120"),
        (42, '"US-"0000', "US-0042"), (1.1, "0.00", "1.10"), (1234.0, "General", "1234"), (7, "@", "7"),
        (4006381333931, "General", "4006381333931"), (-5, "000", "-005"), (-5, "000;[Red](000)", "(005)"),
        (0, '0;-0;"none"0', "none0"), (123456, "000", "123456"), (111, r"00\.00", "01.11"), (0.5, "#.00", ".50"),
        (12345, "[$-409]00000_)", "12345"), (1.5, "General", "1.5"), (0.1 + 0.2, "General", "0.3"), (0, "0", "0"),
        (123456789012345, "0", "123456789012345"), (1234567890123456, "0", None), (1e22, "General", None),
        (1 / 3, "General", None), (1.25, "0.0", None), (0.00001, "General", None), (0, "#", None), (5, ";;;", None),
        (1234, "#,##0", None), (0.5, "0%", None), (1e6, "0.00E+00", None), (0.5, "# ?/?", None), (5, "yyyy", None),
        (5, "[>3]0;00", None), (5, "0.0.0", None), (5, "number 27", None), (5, '"hidden"', None), (5, "", None),
        (5, "0" * 255, "5".zfill(255)), (5, "0" * 256, None),
    ],
)  # fmt: skip
def test_a_number_is_what_its_format_shows_or_is_not_known(value: float, code: str, text: str | None) -> None:
    assert shown_number(value, code) == text


def test_a_key_is_what_the_sheet_shows_and_any_other_is_rejected_with_its_column(clade: Clade, tmp_path: Path) -> None:
    cells = [
        (1234, "00000"), (18100501, "00000-0000"), (1.1, "0.00"), (1234567890123456, "0"), (12345678901234567, "0"),
        (datetime(2026, 1, 2), "d-m"), (True, "General"), (1234, "#,##0"),
    ]  # fmt: skip
    rows = [["US", f"{number}", cell] for number, (cell, _) in enumerate(cells)]
    formats = {f"C{number}": code for number, (_, code) in enumerate(cells, start=2)}
    workbook(tmp_path / "a.xlsx", [HEADER, *rows], formats)
    result = clade("import", "location", "a.xlsx", *LEVELS)
    assert result.exit_code == 1, result.output
    assert {*stored(clade, "location")} == {"US", "US/0", "US/0/01234", "US/1", "US/1/01810-0501", "US/2", "US/2/1.10"}
    for row, reason in {
        5: '1234567890123456 in the format "0" is not known as Excel shows it; format the column as text.',
        6: '1.234567890123457e+16 in the format "0"',
        7: "2026-01-02 is neither a text nor a whole number; write it as a text.",
        8: "true is neither a text nor a whole number",
        9: '1234 in the format "#,##0"',
    }.items():
        assert f'a.xlsx, row {row}: Column "Postcode": {reason}' in result.stderr


def test_attributes_have_the_plain_values_of_their_kinds(clade: Clade, tmp_path: Path) -> None:
    rows = [["Country", "City", "Population", "Latitude", "Fips"], ["US", "Omaha", 486051, 41.256789, 55]]
    workbook(tmp_path / "a.xlsx", rows, {"C2": "#,##0", "D2": "0.0", "E2": "000"})
    options = ["--attr", "city.population=Population", "--attr", "city.latitude=Latitude", "--id", "city=Fips"]
    result = clade("import", "location", "a.xlsx", *LEVELS[:4], *options)
    assert result.exit_code == 0, result.output
    omaha = stored(clade, "location")["US/Omaha"]
    assert (omaha["population"], omaha["latitude"], omaha["id"]) == (486051, 41.256789, "055")


# -- generated sheets --------------------------------------------------------------------------------------------------


def grown(rng: random.Random, depth: int) -> dict[tuple[int, ...], str]:
    """The keys of a tree as a sheet shows them, by paths of numbers."""
    found: dict[tuple[int, ...], str] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop()
        numbers = rng.sample(range(1, 99_999), rng.randint(1, 3)) if len(path) < depth else []
        waiting += [(*path, number) for number in numbers]
        found |= {(*path, number): "" for number in numbers}
    return found


@pytest.mark.parametrize("seed", range(7))
def test_a_random_tree_in_a_sheet_is_read_as_it_is_shown_or_is_not_imported(
    clade: Clade, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311
    tree = grown(rng, 3)
    formats = ["0" * rng.randint(1, 6) + rng.choice(["", "_)", ";-0", '" "']) for _ in range(3)]
    for path in tree:
        zeros = formats[len(path) - 1].split(";")[0].count("0")
        tree[path] = f"{path[-1]:0{zeros}}"
    leaves = [path for path in tree if len(path) == 3]
    book = openpyxl.Workbook()
    sheet = book.active
    titles = rng.choice([0, 2])
    for _ in range(titles):
        sheet.append(["Places of 2026"])
    sheet.append(HEADER)
    before: tuple[int, ...] = ()
    is_merged, merges = rng.random() < 0.5, False
    for row, path in enumerate(leaves, start=titles + 2):
        sheet.append(path)
        for column, code in enumerate(formats, start=1):
            sheet.cell(row, column).number_format = code
        if is_merged and before[:1] == path[:1]:
            sheet.merge_cells(start_row=row - 1, end_row=row, start_column=1, end_column=1)
            merges = True
        before = () if is_merged and before[:1] == path[:1] else path
    book.save(tmp_path / "a.xlsx")
    if titles:
        refused = clade("import", "location", "a.xlsx", *LEVELS)
        assert "--header-row 3 takes" in str(refused.exception)
        assert not (tmp_path / "clade.db").exists()
    table = excel_table(tmp_path / "a.xlsx", header_row=titles + 1)
    assert list(table.merged) == (["Country"] if merges else [])
    result = clade("import", "location", "a.xlsx", *LEVELS, "--header-row", titles + 1)
    expected = {"/".join(tree[path[:depth]] for depth in range(1, len(path) + 1)) for path in tree}
    if merges:
        assert isinstance(result.exception, BadInput), result.output
        assert not (tmp_path / "clade.db").exists()
        result = clade("import", "location", "a.xlsx", *LEVELS, "--header-row", titles + 1, "--fill-down", "Country")
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert {*stored(clade, "location")} == expected


def test_a_header_of_two_rows_has_names_in_either_of_them_where_cells_are_merged(clade: Clade, tmp_path: Path) -> None:
    groups = ["Nr", "Area", None, "People", None]
    names = [None, "country", "state", "all", "men"]
    book = workbook(tmp_path / "a.xlsx", [groups, names, ["x", "NO", "03", "5", "2"], ["y", "SE", "46", "6", "3"]])
    for place in ("A1:A2", "B1:C1", "D1:E1"):
        book.active.merge_cells(place)
    book.save(tmp_path / "a.xlsx")
    table = excel_table(tmp_path / "a.xlsx")
    assert (table.header, table.header_row) == (["Nr", "country", "state", "all", "men"], 2)
    result = clade("import", "location", "a.xlsx")
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert {*stored(clade, "location")} == {"NO", "NO/03", "SE", "SE/46"}


def test_a_last_name_over_several_cells_is_that_of_several_columns(tmp_path: Path) -> None:
    book = workbook(tmp_path / "a.xlsx", [["Sector", None, "Trade", None], [10, "Energy", 1010, "Oil"]])
    for place in ("A1:B1", "C1:D1"):
        book.active.merge_cells(place)
    book.save(tmp_path / "a.xlsx")
    table = excel_table(tmp_path / "a.xlsx")
    assert table.header == ["Sector", "", "Trade", ""]
    assert [reason for _, _, reason, *_ in table.rows()] == [None]


def test_a_first_row_of_data_that_is_merged_with_those_below_is_no_header_of_two_rows(tmp_path: Path) -> None:
    book = workbook(tmp_path / "a.xlsx", [["Art", "Oil"], [None, "Ink"], ["Toys", "Lego"]])
    book.active.merge_cells("A1:A2")
    book.save(tmp_path / "a.xlsx")
    assert excel_table(tmp_path / "a.xlsx").header == ["Art", "Oil"]


# -- workbooks ---------------------------------------------------------------------------------------------------------

NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def patched(
    file: Path, rows: str, *, shared: str = "", dimension: str = "", prolog: str = "", after: str = "",
    styles: str = "",
) -> Path:  # fmt: skip
    """A workbook whose sheet has these rows as XML, and whose shared strings are these."""
    workbook(file, [["x"]])
    source = zipfile.ZipFile(BytesIO(file.read_bytes()))
    sheet = f"{prolog}<worksheet {NAMESPACE}>{dimension}<sheetData>{rows}</sheetData>{after}</worksheet>"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    types = source.read("[Content_Types].xml").decode()
    types = types.replace("</Types>", f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>')
    parts = {name: source.read(name).decode() for name in source.namelist()}
    parts |= {"[Content_Types].xml": types, "xl/worksheets/sheet1.xml": sheet}
    parts["xl/sharedStrings.xml"] = f"<sst {NAMESPACE}>{shared}</sst>"
    parts["xl/styles.xml"] = styles or parts["xl/styles.xml"]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file


def texts(file: Path) -> list[list[str]]:
    table = excel_table(file)
    return [list(table.header), *table.texts()]


HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>Country</t></is></c></row>'


def test_texts_of_all_forms_are_read_and_a_wrong_dimension_cuts_nothing(tmp_path: Path) -> None:
    shared = '<si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si>'
    shared += "<si><r><t>New </t></r><r><t>York</t></r></si><si><t>a_x000A_b</t></si>"
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>{n - 2}</v></c></row>' for n in (2, 3, 4))
    computed = '<row r="6"><c r="A6" t="str"><f>A2</f><v>x</v></c></row><row><c><v>7</v></c></row>'
    file = patched(tmp_path / "a.xlsx", HEAD + cells + computed, shared=shared, dimension='<dimension ref="A1"/>')
    assert texts(file) == [["Country"], ["東京"], ["New York"], ["a\nb"], ["x"], ["7"]]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ('<c r="A2" t="e"><v>#REF!</v></c>', "The sheet has the error #REF!; mend it, or write the value."),
        ('<c r="A2"><f>1+1</f></c>', "The formula has no computed value; open the file in Excel and save it."),
    ],
)
def test_a_key_without_a_value_that_the_sheet_shows_is_rejected(
    clade: Clade, tmp_path: Path, cell: str, reason: str
) -> None:
    patched(tmp_path / "a.xlsx", f'{HEAD}<row r="2">{cell}</row><row r="3"><c r="A3"><v>7</v></c></row>')
    result = clade("import", "location", "a.xlsx")
    assert f'a.xlsx, row 2: Column "Country": {reason}' in result.stderr
    assert {*stored(clade, "location")} == {"7"}


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
BROKEN = {
    "entities": ({"prolog": f'<!DOCTYPE x [<!ENTITY e0 "{"x" * 99}">{BOMB}]>', "rows": "&e9;"}, "amplification"),
    "rows without order": ({"rows": f'<row r="2"/>{HEAD}'}, "row 1 or a cell in it is not in order"),
    "rows without end": ({"rows": f'{HEAD}<row r="9000000"/>'}, "row 9000000 or a cell in it is not in order"),
    "cells without order": ({"rows": '<row r="1"><c r="B1"/><c r="A1"/></row>'}, "row 1 or a cell in it is not"),
    "a missing text": ({"rows": '<row r="1"><c r="A1" t="s"><v>7</v></c></row>'}, "list index out of range"),
    "half a sheet": ({"rows": "<row>"}, "mismatched tag"),
    "a column that Excel has not": ({"rows": '<row r="1"><c r="XFE1"/></row>'}, "row 1 has more than 16,384 columns"),
    "columns without names": ({"rows": f'<row r="1">{"<c/>" * 16_385}</row>'}, "row 1 has more than 16,384 columns"),
    "elements in a cell": ({"rows": f"<row><c>{'<is/>' * 131_072}</c></row>"}, "row 1 has more than 131,072 elements"),
    "other elements": ({"dimension": "<col/>" * 32_769, "rows": HEAD}, "row 1 comes after more than 32,768 elements"),
    "deep elements": ({"rows": HEAD, "after": "<a>" * 70 + "</a>" * 70}, "elements are nested more than 64 times"),
    "a long tag": (
        {"rows": HEAD, "after": f'<a b="{" " * 3_000_000}"/>'},
        "a tag or a comment has more than 1,048,576",
    ),
    "elements of a text": (
        {"rows": HEAD, "shared": f"<si>{'<t/>' * 131_073}</si>"},
        "a text has more than 131,072 elem",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_workbook_that_is_not_read_as_a_whole_stops_the_import(clade: Clade, tmp_path: Path, what: str) -> None:
    parts, message = BROKEN[what]
    patched(tmp_path / "a.xlsx", **parts)
    result = clade("import", "location", "a.xlsx")
    assert isinstance(result.exception, BadInput), repr(result.exception)
    assert message in str(result.exception)
    assert "save it as .xlsx in Excel, or the sheet as CSV." in str(result.exception)
    assert not (tmp_path / "clade.db").exists()


LONG = "x" * 32_768
HUGE = {
    "a cell": (
        {"rows": f'<row r="2"><c r="B2" t="str"><v>{LONG * 8}</v></c></row>'},
        "Cell B2 has more than 32,767 char",
    ),
    "a text": (
        {"rows": HEAD, "shared": f"<si><t>{LONG * 8}</t></si>"},
        "A text of the workbook has more than 32,767 char",
    ),
    "a row": (
        {"rows": f'<row r="2">{"".join(f"<c><v>{LONG}</v></c>" for _ in range(306))}</row>'},
        "Row 2 of the sheet has more than 10,000,000 characters",
    ),
    "styles": (
        {"rows": HEAD, "styles": " " * 20_000_001},
        "Its part xl/styles.xml has 20,000,001 bytes; at most 20,000",
    ),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_part_beyond_what_excel_has_stops_the_import(clade: Clade, tmp_path: Path, what: str) -> None:
    parts, message = HUGE[what]
    patched(tmp_path / "a.xlsx", **parts)
    assert message in str(clade("import", "location", "a.xlsx").exception)


def test_a_text_that_no_cell_of_excel_has_rejects_its_row(clade: Clade, tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>{text}</t></is></c></row>'
        for n, text in ((2, LONG), (3, "_x000A_" * 32_767 + "x"), (4, "US"))
    )
    patched(tmp_path / "a.xlsx", HEAD + rows)
    result = clade("import", "location", "a.xlsx")
    for row in (2, 3):
        said = f'row {row}: Column "Country": It has 32,768 characters; Excel has at most 32,767 in a cell.'
        assert said in result.stderr
    assert {*stored(clade, "location")} == {"US"}


def test_what_comes_after_the_rows_is_not_read(tmp_path: Path) -> None:
    links = '<hyperlinks><hyperlink of="another version"/></hyperlinks>'
    assert texts(patched(tmp_path / "a.xlsx", HEAD, after=links)) == [["Country"]]


def test_the_first_visible_sheet_of_cells_is_read_without_warnings(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Hidden"])
    book.active.sheet_state = "hidden"
    book.create_chartsheet("Chart", 0).add_chart(openpyxl.chart.BarChart())
    sheet = book.create_sheet("Shown")
    sheet.append(["Country"])
    sheet.append(["US"])
    book.active = 2
    book.save(tmp_path / "a.xlsx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert texts(tmp_path / "a.xlsx") == [["Country"], ["US"]]
    assert workbooks.excel_table(tmp_path / "a.xlsx", "Sheet").header == ["Hidden"]


def test_a_text_has_at_most_as_many_elements_as_its_error_says() -> None:
    text = f"<sst {NAMESPACE}><si>{'<r/>' * MAX_ELEMENTS}%s</si></sst>"
    TextScan(BytesIO((text % "").encode()))
    with pytest.raises(ValueError, match=f"more than {MAX_ELEMENTS:,} elements"):
        TextScan(BytesIO((text % "<r/>").encode()))
