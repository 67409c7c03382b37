"""Limits of file formats: memory while files of any size are read, and libraries that are imported only when needed."""

import gzip
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow
import pytest
from pyarrow import parquet

from store.errors import BadInput
from store.transfer.formats import excel, json_file
from store.transfer.formats.excel import excel_table
from store.transfer.formats.json_file import geojson_table, json_table, read_document, read_objects
from store.transfer.formats.lines import read_jsonl
from store.transfer.formats.parquet import parquet_table
from store.transfer.formats.table_rows import LevelColumns, Table
from store.transfer.rows import Rejection
from tests.level_columns import read_csv, read_table

COUNTRIES = [LevelColumns("COUNTRY", "Country")]
ROWS = 150_000
LONG_BYTES = 200_000_000


def peak_bytes(rows: Callable[[], Iterator[tuple[str, Any]]]) -> tuple[int, int, int]:
    """The peak of memory while rows are read and forgotten, their number, and that of the rejected ones."""
    tracemalloc.start()
    try:
        count = rejected = 0
        for _, row in rows():
            count += 1
            rejected += isinstance(row, Rejection)
        return tracemalloc.get_traced_memory()[1], count, rejected
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "read"),
    [pytest.param("x.csv.gz", partial(read_csv, COUNTRIES), marks=pytest.mark.thorough), ("x.jsonl.gz", read_jsonl)],
)
def test_a_line_of_any_length_takes_little_memory(tmp_path: Path, name: str, read: Callable[..., Any]) -> None:
    file = tmp_path / name
    with gzip.open(file, "wb", compresslevel=1) as target:
        target.write(b"Country\n" if read is not read_jsonl else b'{"path": "US", "level": "COUNTRY"}\n')
        for _ in range(LONG_BYTES // 1_000_000):
            target.write(b"x" * 1_000_000)
        target.write(b"\n7\n" if read is not read_jsonl else b'\n{"path": "SG", "level": "COUNTRY"}\n')
    assert file.stat().st_size < LONG_BYTES / 50
    peak, count, rejected = peak_bytes(lambda: read(file))
    assert (count, rejected) == ((2, 1) if read is not read_jsonl else (3, 1))
    assert peak < 100_000_000, "the line has 200 MB, of which at most 10 MB are read at once"


@pytest.mark.thorough
def test_files_of_many_rows_take_little_memory(tmp_path: Path) -> None:
    text = tmp_path / "x.csv"
    with text.open("w") as target:
        target.write("Country;Number\n")
        target.writelines(f"C{number};{number}\n" for number in range(ROWS))
    peak, count, _ = peak_bytes(lambda: read_csv(COUNTRIES, text))
    assert count == ROWS
    assert peak < 10_000_000
    columns = tmp_path / "x.parquet"
    names = [f"C{number}" for number in range(ROWS)]
    parquet.write_table(pyarrow.table({"Country": names}), columns, row_group_size=10_000)
    peak, count, _ = peak_bytes(lambda: read_table(COUNTRIES, parquet_table(columns)))
    assert count == ROWS
    assert peak < 10_000_000


def test_documents_that_are_read_whole_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file, "MAX_JSON_BYTES", 100)
    file = tmp_path / "x.json.gz"
    file.write_bytes(gzip.compress(b"[" + b" " * 1_000 + b"]"))
    for read in (read_document, lambda file: geojson_table(file, is_lines=False)):
        with pytest.raises(BadInput, match=r"is a JSON document of more than 100 bytes; write it as JSON lines"):
            read(file)
    monkeypatch.setattr(excel, "MAX_UNPACKED_BYTES", 100)
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["Country"])
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(BadInput, match=r"x\.xlsx has more than 100 bytes unpacked; save the sheet as CSV"):
        excel_table(tmp_path / "x.xlsx")


def deep(depth: int, inner: object = 1) -> object:
    """A list in an object in a list …, so many times."""
    for _ in range(depth):
        inner = {"a": [inner]}
    return inner


def test_a_table_has_a_largest_number_of_columns_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("csv_file", "table_rows"):
        monkeypatch.setattr(f"store.transfer.formats.{module}.MAX_COLUMNS", 20)
    names = [f"c{number}" for number in range(21)]
    table, objects, columns = tmp_path / "x.csv", tmp_path / "x.json", tmp_path / "x.parquet"
    table.write_text(",".join(names) + "\n")
    # No object has too many, but all have together.
    objects.write_bytes(orjson.dumps([dict.fromkeys(names[:-1], 1), {names[-1]: 1}]))
    parquet.write_table(pyarrow.table({name: [1] for name in names}), columns)
    for file, read in ((table, csv_header), (objects, read_json), (columns, parquet_table)):
        with pytest.raises(BadInput, match=f"{file.name} has 21 columns; at most 20 are read"):
            read(file)
    objects.write_bytes(orjson.dumps([dict.fromkeys(names[:-1], 1)]))
    assert len(read_json(objects).header) == 20


def csv_header(file: Path) -> object:
    return list(read_csv(COUNTRIES, file))


def read_json(file: Path) -> Table:
    return json_table(file, read_objects(file))


def test_objects_have_a_largest_depth(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for depth, message in ((33, None), (34, "An object is nested more than 32 times")):
        text: object = 1
        for _ in range(depth):
            text = {"a": text}
        file.write_bytes(orjson.dumps([text]))
        with pytest.raises(BadInput, match=message) if message else nullcontext():
            read_json(file)
    for depth, message in ((33, None), (34, "Lists of objects are nested more than 32 times")):
        file.write_bytes(orjson.dumps([deep(depth)]))
        with pytest.raises(BadInput, match=message) if message else nullcontext():
            read_json(file)


def test_a_document_of_many_values_is_too_large_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three bytes each object is 200 in memory."""
    monkeypatch.setattr(json_file, "MAX_JSON_MEMORY", 10_000)
    file = tmp_path / "x.json"
    file.write_text(f"[{','.join(['{}'] * 30)}]")
    assert len(read_document(file)) == 30
    for text in ("{},", "[],", "1,"):
        file.write_text(f"[{text * 300}1]")
        with pytest.raises(BadInput, match=r"x\.json is a JSON document of too many values; write it as JSON lines"):
            read_document(file)


def test_a_row_group_that_unpacks_to_very_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.transfer.formats.parquet.MAX_CHUNK_BYTES", 1_000)
    file = tmp_path / "x.parquet"
    parquet.write_table(
        pyarrow.table({"Country": ["x" * 100_000] * 10}), file, use_dictionary=False, compression="gzip"
    )
    with pytest.raises(BadInput, match=r'Column "Country" of x\.parquet has 10 values and .*write smaller row groups'):
        parquet_table(file)
    monkeypatch.undo()
    monkeypatch.setattr("store.transfer.formats.parquet.MAX_VALUES", 5)
    parquet.write_table(pyarrow.table({"Country": [["US"]] * 6}), file)
    with pytest.raises(BadInput, match="has 6 values"):
        parquet_table(file)
    parquet.write_table(pyarrow.table({"Country": ["US"] * 6}), file)
    assert len(list(parquet_table(file).rows())) == 6


def test_rows_beside_one_that_is_too_large_are_the_same_in_every_type(tmp_path: Path) -> None:
    """Long values are read as references to a dictionary, and rows piece by piece."""
    types: dict[str, tuple[pyarrow.DataType, Any]] = {
        "text": (pyarrow.string(), "a"),
        "large": (pyarrow.large_string(), "b"),
        "bytes": (pyarrow.binary(), b"c"),
        "fixed": (pyarrow.binary(2), b"de"),
        "list": (pyarrow.list_(pyarrow.string()), ["f", None]),
        "struct": (pyarrow.struct([("x", pyarrow.string())]), {"x": "g"}),
        "map": (pyarrow.map_(pyarrow.string(), pyarrow.string()), [("h", "i")]),
        "date": (pyarrow.date32(), date(2026, 11, 22)),
        "decimal": (pyarrow.decimal128(10, 2), Decimal("1.10")),
        "true": (pyarrow.bool_(), True),
        "null": (pyarrow.null(), None),
        "long": (pyarrow.string(), "x"),
    }
    schema = pyarrow.schema([(name, one) for name, (one, _) in types.items()])
    row = {name: value for name, (_, value) in types.items()}
    empty = dict.fromkeys(types)
    tables = []
    for number, rows in enumerate(([row, empty], [row, {**row, "long": "x" * 9_000_000}, empty])):
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema), tmp_path / f"{number}.parquet")
        tables.append([(cells, reason) for _, cells, reason in parquet_table(tmp_path / f"{number}.parquet").rows()])
    small, (first, large, last) = tables
    assert small == [first, last]
    assert large[1] == "The row has more than 10,000,000 bytes, or a value of more than 4,000,000."


@pytest.mark.parametrize(
    ("column", "of"),
    [
        (pyarrow.string(), lambda text: text),
        (pyarrow.list_(pyarrow.string()), lambda text: [text]),
        (pyarrow.struct([("x", pyarrow.string())]), lambda text: {"x": text}),
        (pyarrow.map_(pyarrow.string(), pyarrow.string()), lambda text: [("x", text)]),
        (pyarrow.list_(pyarrow.struct([("x", pyarrow.string())])), lambda text: [{"x": text}]),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_value_that_is_too_large_is_found_in_any_row(
    tmp_path: Path, column: pyarrow.DataType, of: Callable[[str], object], place: int
) -> None:
    rows = [{"c": of("x" * 4_000_001 if row == place else "y"), "more": "z" * 3_900_000} for row in range(3)]
    file = tmp_path / "x.parquet"
    schema = pyarrow.schema([("c", column), ("more", pyarrow.string())])
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file)
    reasons = [reason for _, _, reason in parquet_table(file).rows()]
    assert [reason is not None for reason in reasons] == [row == place for row in range(3)]


def test_the_libraries_of_the_extra_are_imported_only_when_needed() -> None:
    code = "import sys, commands.importing.job; sys.exit(bool({'pyarrow', 'python_calamine'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(("library", "table"), [("python_calamine", excel_table), ("pyarrow", parquet_table)])
def test_a_missing_library_is_named_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, table: Callable[[Path], Any]
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput, match=r"install it with: pip install 'clade-graphql\[files\]'"):
        table(tmp_path / "absent")
