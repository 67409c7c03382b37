"""Real files of `tests/data`, unpacked for tests and benchmarks."""

import gzip
import shutil
import tempfile
from functools import cache
from pathlib import Path

STARBUCKS = "starbucks.csv"
TAXONOMY = "google-product-taxonomy.txt"
ISO_3166_2 = "iso-3166-2.csv"

_DATA = Path(__file__).parent / "data"
_unpacked = tempfile.TemporaryDirectory(prefix="clade-real-files-")  # removed when the process ends


@cache
def real_file(name: str) -> Path:
    """The unpacked file of this name; it is there until the process ends."""
    file = Path(_unpacked.name, name)
    with gzip.open(_DATA / f"{name}.gz") as packed, file.open("wb") as target:
        shutil.copyfileobj(packed, target)
    return file
