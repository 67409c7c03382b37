"""Small files that have gigabytes of values: an import ends in bounded memory, as a process of its own shows."""

import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

pytestmark = pytest.mark.thorough

MAX_PEAK_BYTES = 1_200_000_000
MAX_FILE_BYTES = 3_000_000
RUN_SECONDS = 120
ZERO_ROWS = 60_000_000


COMMAND = """
import atexit, re, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, -1))  # so that a fault does not take the machine down
atexit.register(lambda: print(re.search(r"VmHWM:.*", Path("/proc/self/status").read_text())[0], file=sys.stderr))
from commands.main import run
run()
"""


def peak(folder: Path, *words: object) -> tuple[int, str, int]:
    """The exit status of a command, its standard error and its peak memory in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        env={**os.environ, "CLADE_STORE": f"sqlite:///{folder}/x.db"},
        capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    found = re.search(r"VmHWM:\s*(\d+) kB\n$", done.stderr)
    assert found, done.stderr
    return done.returncode, done.stderr, int(found[1]) * 1024


def packed(file: Path, parts: Iterator[bytes]) -> Path:
    with gzip.open(file, "wb", compresslevel=6) as target:
        for part in parts:
            target.write(part)
    return file


def one_text(folder: Path) -> Path:
    text = pyarrow.DictionaryArray.from_arrays([0] * 1_000, ["x" * 6_600_000])
    parquet.write_table(pyarrow.table({"Country": text}), folder / "x.parquet", compression="zstd")
    return folder / "x.parquet"


def one_text_in_lists(folder: Path) -> Path:
    texts = pyarrow.DictionaryArray.from_arrays([0] * 1_000, ["x" * 6_600_000])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 10, 500, 1_000], "int32"), texts)
    parquet.write_table(pyarrow.table({"Country": lists}), folder / "x.parquet", compression="zstd")
    return folder / "x.parquet"


def prefixes(folder: Path) -> Path:
    table = pyarrow.table({"Country": ["x" * 1_000_000 + str(number) for number in range(600)]})
    encoding = {"Country": "DELTA_BYTE_ARRAY"}
    parquet.write_table(table, folder / "x.parquet", use_dictionary=False, column_encoding=encoding, compression="zstd")
    return folder / "x.parquet"


def numbers_in_a_list(folder: Path) -> Path:
    zeros = pyarrow.ListArray.from_arrays([0, ZERO_ROWS], pyarrow.repeat(pyarrow.scalar(0, "int8"), ZERO_ROWS))
    parquet.write_table(pyarrow.table({"Country": zeros}), folder / "x.parquet", compression="zstd")
    return folder / "x.parquet"


def objects(folder: Path) -> Path:
    return packed(folder / "x.json.gz", (b"[" if n == 0 else b"{}," * 300_000 for n in range(100)))


def numbers(folder: Path) -> Path:
    return packed(folder / "x.json.gz", (b"[" if n == 0 else b"0," * 450_000 for n in range(100)))


def columns(folder: Path) -> Path:
    return packed(folder / "x.csv.gz", iter([b"Country" + b"," * 9_000_000 + b"\n", b"," * 9_000_000 + b"\n"]))


def wrong_rows(folder: Path) -> Path:
    return packed(folder / "x.csv.gz", (b"Country,City\n" if n == 0 else b"x\n" * 500_000 for n in range(40)))


def wrong_lines(folder: Path) -> Path:
    return packed(folder / "x.jsonl.gz", (b"{}\n" * 500_000 for _ in range(40)))


def zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.csv", "w") as target:
        target.write(b"Country,City\n")
        for _ in range(40):
            target.write(b"x\n" * 500_000)
    return folder / "x.zip"


def properties(folder: Path) -> Path:
    """Features with other properties each."""
    features = (
        json.dumps({"type": "Feature", "properties": {f"p{row * 200 + n}": 0 for n in range(200)}}).encode() + b"\n"
        for row in range(2_000)
    )
    return packed(folder / "x.geojsonl.gz", features)


def exported(folder: Path) -> Path:
    (folder / "export").mkdir()
    packed(folder / "export" / "x.json.gz", (b'{"Item":{}}\n' * 500_000 for _ in range(20)))
    return folder / "export"


@pytest.mark.parametrize(
    "bomb",
    [
        one_text, one_text_in_lists, prefixes, numbers_in_a_list, objects, numbers, columns, wrong_rows,
        wrong_lines, zipped, properties, exported,
    ],
)  # fmt: skip
def test_a_small_file_of_many_values_takes_bounded_memory(tmp_path: Path, bomb: Callable[[Path], Path]) -> None:
    file = bomb(tmp_path)
    sizes = [one.stat().st_size for one in (file.iterdir() if file.is_dir() else (file,))]
    assert sum(sizes) < MAX_FILE_BYTES
    words = ["--keys", "PK", "--key", "{country}"] if file.is_dir() else []
    if file.name.split(".")[1:2] in (["csv"], ["parquet"], ["geojsonl"]):
        words = ["--level", f"country={'p1' if 'geo' in file.name else 'Country'}"]
    status, said, memory = peak(tmp_path, "import", "location", file, *words)
    assert status == 1, said
    assert "Traceback" not in said
    assert memory < MAX_PEAK_BYTES, said
