"""Files to import that are made to take memory or to crash a library: rejected with a sentence."""

import io
import zipfile
from itertools import islice
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from commands.importing.files import FileOptions, shape_of_file
from graph.hierarchies.locations import Location
from store.errors import BadInput
from store.transfer.formats.csv import csv_table
from store.transfer.formats.lines import TOO_LONG
from store.transfer.formats.source import content_name
from store.transfer.formats.workbooks import excel_table, parquet_table
from store.transfer.rows import Rejection, Row


def rows(file: Path) -> list[Row | Rejection]:
    return list(shape_of_file(Location.definition(), file, None, FileOptions()).rows())


@pytest.mark.parametrize("last", ["A20000", "XFD1048576"])
def test_cells_of_a_workbook_that_lie_far_apart_take_no_memory(tmp_path, last):
    book = openpyxl.Workbook()
    book.active["A1"], book.active[last] = "Country", "7"
    book.save(tmp_path / "a.xlsx")
    ((number, cells, *_),) = excel_table(tmp_path / "a.xlsx").rows()
    assert (number, cells[-1]) == (book.active[last].row, "7")


def test_a_spreadsheet_of_another_format_is_no_workbook(tmp_path):
    """In OpenDocument a cell can be repeated a billion times."""
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("content.xml", "<a/>")
    with pytest.raises(BadInput, match=r"cannot be read as an Excel workbook .* save it as \.xlsx in Excel"):
        excel_table(tmp_path / "a.ods")


def zipped(method: int) -> bytearray:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("places.csv", "Country\n" + "US\n" * 200)
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
    list((excel_table(file) if file.suffix == ".xlsx" else csv_table(file)).rows())


@pytest.mark.parametrize("damage", damaged())
def test_a_damaged_archive_is_rejected_whatever_its_library_raises(tmp_path, damage):
    for name in ("places.zip", "places.xlsx", "places.csv"):
        file = tmp_path / name
        file.write_bytes(damaged()[damage])
        with pytest.raises(BadInput, match="places"):
            read(file)


@pytest.mark.parametrize("nested", ["[" * 1_015 + "]" * 1_015, '{"a":' * 1_015 + "1" + "}" * 1_015])
@pytest.mark.parametrize("field", ["level", "names", "undefined"])
def test_a_value_that_is_nested_without_end_rejects_its_line(tmp_path, nested, field):
    file = tmp_path / "a.jsonl"
    line = f'"level": "MALL", "{field}": {nested}}}\n'
    file.write_text(f'{{"path": ["M"], {line}{{"path": ["M"], "level": "MALL"}}\n')
    rejected, row = rows(file)
    assert rejected == Rejection(1, "The line is nested more than 100 times.")
    assert isinstance(row, Row)


@pytest.mark.parametrize("text", ['[{"Country": %s}]', '[{"level": "MALL", "name": "x", "children": %s}]'])
def test_a_document_that_is_nested_without_end_is_rejected(tmp_path, text):
    file = tmp_path / "a.json"
    file.write_text(text % ("[" * 1_000 + "]" * 1_000))
    with pytest.raises(BadInput, match="nest it less deeply"):
        rows(file)


@pytest.mark.parametrize("shape", ["text", "list", "struct"])
def test_a_long_text_in_all_rows_of_parquet_is_in_memory_once(tmp_path, shape):
    """It is written once, and would be a gigabyte in a batch of rows."""
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, *[1] * 99]), ["US", "x" * 11_000_000])
    column = texts
    if shape == "list":
        column = pyarrow.ListArray.from_arrays(range(101), texts)
    elif shape == "struct":
        column = pyarrow.StructArray.from_arrays([texts], ["name"])
    file = tmp_path / "cities.parquet"
    parquet.write_table(pyarrow.table({"Country": column}), file, store_schema=False)
    default = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(default)  # which counts by itself
    pyarrow.set_memory_pool(pool)
    found = list(islice(parquet_table(file).rows(), 5))
    pyarrow.set_memory_pool(default)
    assert pool.max_memory() < 200_000_000
    assert {reason for _, _, reason, *_ in found[1:]} == ({None} if shape == "list" else {TOO_LONG})


def test_texts_of_parquet_that_are_not_utf_8_are_one_sentence(tmp_path):
    file = tmp_path / "cities.parquet"
    offsets = b"".join(end.to_bytes(4, "little") for end in (0, 2, 4))
    texts = pyarrow.StringArray.from_buffers(2, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"US\xff\xfe"))
    parquet.write_table(pyarrow.table({"Country": texts}), file)
    with pytest.raises(BadInput, match=r"cannot be read as Parquet \('utf-8' codec"):
        list(parquet_table(file).rows())
