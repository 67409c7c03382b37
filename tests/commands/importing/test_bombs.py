"""Limits of file formats: small files with gigabytes of values end in bounded memory, as processes of their own show;
libraries are imported only when needed.
"""

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands.main import app_of

MAX_PEAK_BYTES = 1_200_000_000
MAX_FILE_BYTES = 3_000_000
MAX_CPU_SECONDS = 120  # so that a fault ends, however busy the machine is
RUN_SECONDS = 900  # the same for one that waits


COMMAND = f"""
import atexit, re, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, -1))  # so that a fault does not take the machine down
resource.setrlimit(resource.RLIMIT_CPU, ({MAX_CPU_SECONDS}, -1))
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


def wrong_rows(folder: Path) -> Path:
    parts = (b"x,x,x\n" * 500_000 for _ in range(40))
    return packed(folder / "x.csv.gz", chain([b"Country,City\n", b"x\n" * 2_000], parts))


def long_line(folder: Path) -> Path:
    return packed(folder / "x.jsonl.gz", (b"x" * 1_000_000 for _ in range(400)))


def exported(folder: Path) -> Path:
    (folder / "export").mkdir()
    packed(folder / "export" / "x.json.gz", (b'{"Item":{}}\n' * 500_000 for _ in range(20)))
    return folder / "export"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bomb", "sentence"),
    [
        (wrong_rows, "More than 500,000 rows of x.csv.gz are rejected; nothing was imported."),
        (long_line, "row 1: The line is longer than 10,000,000 bytes."),
        (exported, 'The last: row 500001: x.json.gz, line 500001: The line has no "Item"'),
    ],
    ids=["wrong_rows", "long_line", "exported"],
)
def test_a_small_file_of_many_values_takes_bounded_memory(
    tmp_path: Path, bomb: Callable[[Path], Path], sentence: str
) -> None:  # fmt: skip
    file = bomb(tmp_path)
    sizes = [one.stat().st_size for one in (file.iterdir() if file.is_dir() else (file,))]
    assert sum(sizes) < MAX_FILE_BYTES
    words = ["--keys", "PK", "--key", "{country}"] if file.is_dir() else []
    if file.name.split(".")[1:2] == ["csv"]:
        words = ["--level", "country=Country"]
    status, said, memory = peak(tmp_path, "import", "location", file, *words)
    assert status == 1, said
    assert sentence in said
    assert "Traceback" not in said
    assert memory < MAX_PEAK_BYTES, said


def test_the_libraries_of_the_extra_are_imported_only_when_needed() -> None:
    code = "import sys, commands.importing.job; sys.exit(bool({'pyarrow', 'openpyxl'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(("library", "name"), [("openpyxl", "x.xlsx"), ("pyarrow", "x.parquet")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, name: str
) -> None:
    for module in {library, *(one for one in sys.modules if one.startswith(f"{library}."))}:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"x")
    said = CliRunner().invoke(app_of(), ["import", "location", str(tmp_path / name), "--store", "sqlite://:memory:"])
    assert str(said.exception).endswith(f"need {library}; install with: {sys.executable} -m pip install {library}")
