"""Files to import that are made to take memory, to crash a library, or to write elsewhere: rejected with a sentence."""

import io
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from store.errors import BadInput
from store.transfer.formats.excel import excel_table
from store.transfer.formats.files import content_name
from store.transfer.formats.json_file import is_nodes, json_table, read_nodes, read_objects
from store.transfer.formats.lines import read_jsonl
from store.transfer.formats.parquet import parquet_table
from store.transfer.formats.table_rows import LevelColumns
from store.transfer.rows import Rejection, Row
from tests.level_columns import read_csv, read_table

COUNTRIES = [LevelColumns("COUNTRY", "Country")]
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
WORKBOOK = {
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="a" Type="{_OFFICE}/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet name="S" sheetId="1" r:id="a"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="a" Type="{_OFFICE}/worksheet" '
    'Target="worksheets/sheet1.xml"/></Relationships>',
}


def cell(place: str, text: str = "7") -> str:
    row = place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return f'<row r="{row}"><c r="{place}" t="inlineStr"><is><t>{text}</t></is></c></row>'


def workbook(file: Path, *cells: str, more: dict[str, str] | None = None) -> Path:
    sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{"".join(cells)}</sheetData></worksheet>'
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**WORKBOOK, "xl/worksheets/sheet1.xml": sheet, **(more or {})}.items():
            archive.writestr(name, text)
    return file


def in_a_process(file: Path) -> str:
    """What comes of a workbook in a process with 1.5 GB of memory, which an allocation beyond that aborts."""
    program = (
        "import resource, sys; from pathlib import Path; resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000,) * 2)\n"
        "from store.errors import BadInput; from store.transfer.formats.excel import excel_table\n"
        "try: print(len(list(excel_table(Path(sys.argv[1])).rows())))\n"
        "except BadInput as error: print(error)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, file], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2]
    )
    return ended.stdout if ended.returncode == 0 else f"the process ended with {ended.returncode}"


def test_two_cells_of_a_workbook_that_lie_far_apart_take_no_memory(tmp_path):
    """The library makes a rectangle of all cells: of these 1.5 KB it would be one of 17 billion."""
    far = cell("AAA200000").replace(' r="', f'{" " * 70_000}r\n =\t"')
    assert "at most 20,000,000 cells are read" in in_a_process(
        workbook(tmp_path / "a.xlsx", cell("A1", "Country"), cell("XFD1048576"))
    )
    with pytest.raises(BadInput, match="at most 20,000,000 cells are read"):
        excel_table(workbook(tmp_path / "b.xlsx", cell("A1", "Country"), far))
    table = excel_table(workbook(tmp_path / "c.xlsx", cell("A1", "Country"), cell("A20000")))
    assert len(list(table.rows())) == 19_999


def test_a_reference_that_is_cut_between_two_blocks_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("store.transfer.formats.excel.BLOCK_BYTES", 7)
    with pytest.raises(BadInput, match="1,048,576 rows and 16,384 columns"):
        excel_table(workbook(tmp_path / "a.xlsx", cell("A1", "Country"), cell("XFD1048576")))


def test_a_workbook_is_as_large_as_it_is_and_not_as_it_says(tmp_path, monkeypatch):
    monkeypatch.setattr("store.transfer.formats.excel.MAX_UNPACKED_BYTES", 1_000_000)
    file = workbook(tmp_path / "a.xlsx", *[cell(f"A{row}") for row in range(1, 20_000)])
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    assert content.count(size.to_bytes(4, "little")) == 2  # in the header of the file, and in the directory
    file.write_bytes(content.replace(size.to_bytes(4, "little"), (1_000).to_bytes(4, "little")))
    with pytest.raises(BadInput, match="more than 1,000,000 bytes unpacked"):
        excel_table(file)


def shared_texts(*texts: str) -> dict[str, str]:
    return {
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{"".join(f"<si><t>{text}</t></si>" for text in texts)}</sst>'
    }


def referring(place: str, number: int = 0) -> str:
    """A cell with the shared text of this number."""
    return cell(place).replace('t="inlineStr"><is><t>7</t></is>', f't="s"><v>{number}</v>')


def test_a_workbook_refers_to_no_more_text_than_may_be_in_it(tmp_path, monkeypatch):
    """Any number of cells can refer to one long text."""
    monkeypatch.setattr("store.transfer.formats.excel.MAX_UNPACKED_BYTES", 100_000)
    texts = shared_texts("Country", "", "x" * 30_000)
    for rows in (3, 4):
        cells = [referring("A1"), *(referring(f"A{row}", 2) for row in range(2, 2 + rows))]
        file = workbook(tmp_path / "a.xlsx", *cells, more=texts)
        with pytest.raises(BadInput, match="more than 100,000 bytes in the cells") if rows > 3 else nullcontext():
            assert [len(str(row[1][0])) for row in excel_table(file).rows()] == [30_000] * rows
    with pytest.raises(BadInput, match=r"a\.xlsx has too much text; save the sheet as CSV"):
        excel_table(workbook(tmp_path / "a.xlsx", cell("A1"), more=shared_texts("Country", "x" * 100_000)))


def test_a_shared_text_is_not_longer_than_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr("store.transfer.formats.excel.MAX_LINE_BYTES", 10_000)
    monkeypatch.setattr("store.transfer.formats.excel.BLOCK_BYTES", 1_000)
    with pytest.raises(BadInput, match=r"a\.xlsx has too much text"):
        excel_table(workbook(tmp_path / "a.xlsx", cell("A1"), more=shared_texts("x" * 20_000)))


def test_spaces_without_end_in_a_workbook_are_not_searched(tmp_path, monkeypatch):
    monkeypatch.setattr("store.transfer.formats.excel.BLOCK_BYTES", 1_000)
    monkeypatch.setattr("store.transfer.formats.excel.OVERLAP_BYTES", 2_000)
    excel_table(workbook(tmp_path / "a.xlsx", cell("A1", "Country"), " " * 1_000, cell("A2")))
    with pytest.raises(BadInput, match=r"it has more than 2,000 spaces"):
        excel_table(workbook(tmp_path / "a.xlsx", cell("A1", "Country"), " " * 10_000, cell("A2")))


def test_a_sheet_that_a_workbook_has_not_is_an_error_that_names_the_others(tmp_path):
    with pytest.raises(BadInput, match=r'a\.xlsx has no sheet "T"; it has "S"\.'):
        excel_table(workbook(tmp_path / "a.xlsx", cell("A1", "Country")), "T")


def test_a_spreadsheet_of_another_format_is_no_workbook(tmp_path):
    """In OpenDocument a cell can be repeated a billion times."""
    file = workbook(tmp_path / "a.ods", cell("A1", "Country"), more={"content.xml": "<a/>"})
    with pytest.raises(BadInput, match=r"no \.xlsx workbook"):
        excel_table(file)


def zipped(method: int, name: str = "places.csv") -> bytearray:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr(name, "Country\n" + "US\n" * 200)
    return bytearray(target.getvalue())


def damaged() -> dict[str, bytes]:
    """Archives for each of which zipfile raises another error than BadZipFile."""
    found = {name: zipped(zipfile.ZIP_LZMA) for name in ("lzma", "version", "encoding", "encrypted")}
    found["method"] = zipped(zipfile.ZIP_DEFLATED)
    directory = found["lzma"].index(b"PK\1\2")
    found["lzma"][60:70] = b"\xff" * 10
    found["version"][directory + 6] = 99
    found["encoding"][directory + 9] |= 8  # the name is UTF-8
    found["encoding"][directory + 46] = 0xFF
    found["encrypted"][6] = found["encrypted"][directory + 8] = 1
    found["method"][8] = found["method"][found["method"].index(b"PK\1\2") + 10] = 77
    return {name: bytes(content) for name, content in found.items()}


def read(file: Path) -> None:
    content_name(file)
    list(excel_table(file).rows() if file.suffix == ".xlsx" else read_csv(COUNTRIES, file))


@pytest.mark.parametrize("damage", damaged())
def test_a_damaged_archive_is_rejected_whatever_its_library_raises(tmp_path, damage):
    for name in ("places.zip", "places.xlsx", "places.csv"):
        file = tmp_path / name
        file.write_bytes(damaged()[damage])
        with pytest.raises(BadInput, match="places"):
            read(file)


def test_a_file_without_a_name_in_an_archive_is_read(tmp_path):
    file = tmp_path / "places.csv"
    file.write_bytes(bytes(zipped(zipfile.ZIP_DEFLATED, "c")).replace(b"c", b"\0"))
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == [""]
    assert len(list(read_csv(COUNTRIES, file))) == 200


@pytest.mark.parametrize("nested", ["[" * 1_015 + "]" * 1_015, '{"a":' * 1_015 + "1" + "}" * 1_015])
@pytest.mark.parametrize("field", ["level", "name", "names", "id", "rank", "undefined", "area", "address", "greeting"])
def test_a_value_that_is_nested_without_end_rejects_its_line(tmp_path, nested, field):
    file = tmp_path / "a.jsonl"
    line = f'"level": "MALL", "{field}": {nested}}}\n'
    file.write_text(f'{{"path": ["M"], {line}{{"path": ["M"], "level": "MALL"}}\n')
    (_, rejected), (_, row) = read_jsonl(file)
    assert rejected == Rejection(1, "The line is nested more than 100 times.")
    assert isinstance(row, Row)


@pytest.mark.parametrize("text", ['[{"Country": %s}]', '[{"level": "MALL", "name": "x", "children": %s}]'])
def test_a_document_that_is_nested_without_end_is_rejected(tmp_path, text):
    file = tmp_path / "a.json"
    file.write_text(text % ("[" * 1_000 + "]" * 1_000))
    with pytest.raises(BadInput, match="nest it less deeply"):
        read_json(file)


def read_json(file: Path) -> None:
    objects = read_objects(file)
    list(read_nodes(objects) if is_nodes(objects) else read_table(COUNTRIES, json_table(file, objects)))


def test_texts_of_parquet_that_are_not_utf_8_are_one_sentence(tmp_path):
    file = tmp_path / "cities.parquet"
    offsets = b"".join(end.to_bytes(4, "little") for end in (0, 2, 4))
    texts = pyarrow.StringArray.from_buffers(2, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"US\xff\xfe"))
    parquet.write_table(pyarrow.table({"Country": texts}), file)
    with pytest.raises(BadInput, match="cannot be read as Parquet: 'utf-8' codec"):
        list(parquet_table(file).rows())
