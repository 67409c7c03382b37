"""Output files: written under another name and renamed when they are complete, so that no file is half-written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from store.errors import BadInput


@contextmanager
def output_file(target: Path) -> Iterator[BinaryIO]:
    """A file that becomes `target` at the end of the block; on an error `target` is unchanged. Raises BadInput."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    is_created = False
    try:
        with part.open("xb") as file:  # an existing file or link of this name is not overwritten
            is_created = True
            yield file
        part.replace(target)
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        if is_created:
            part.unlink(missing_ok=True)
