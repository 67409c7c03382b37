"""Limits of file formats: memory while files of any size are read, and libraries that are imported only when needed."""

import gzip
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from store.errors import BadInput
from store.transfer.formats import json_file
from store.transfer.formats.columns import read_csv
from store.transfer.formats.excel import excel_table
from store.transfer.formats.geojson import geojson_table
from store.transfer.formats.json_file import read_document
from store.transfer.formats.lines import read_jsonl
from store.transfer.formats.parquet import parquet_table
from store.transfer.formats.row_reader import LevelColumns
from store.transfer.formats.table import read_table
from store.transfer.rows import Rejection

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


def test_the_libraries_of_the_extra_are_imported_only_when_needed() -> None:
    code = "import sys, commands.importing.run; sys.exit(bool({'pyarrow', 'python_calamine'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(("library", "table"), [("python_calamine", excel_table), ("pyarrow", parquet_table)])
def test_a_missing_library_is_named_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, table: Callable[[Path], Any]
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput, match=r"install it with: pip install 'clade-graphql\[files\]'"):
        table(tmp_path / "absent")
