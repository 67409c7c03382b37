"""Output files: written under another name and renamed when they are complete, so that no file is half-written."""

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from store.errors import BadInput


@contextmanager
def output_file(target: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that becomes `target` at the end of the block; on an error `target` is unchanged. Raises BadInput.

    What is beside it under its name then, such as a log of SQLite, is removed.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    is_created = False
    try:
        # An existing file or link of this name is not overwritten.
        with open(part, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
            is_created = True
            yield file
        part.replace(target)
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        for left in part.parent.glob(f"{glob.escape(part.name)}*") if is_created else ():
            left.unlink(missing_ok=True)
