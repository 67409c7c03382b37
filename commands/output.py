"""Output of commands: JSON documents, tables of texts, and files that are complete or not there."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from store.errors import BadInput

GAP = "  "  # between the columns of a table on a terminal

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")]


def print_json(document: object) -> None:
    """Print a document, whose dates and paths are texts."""
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells: in aligned columns on a terminal, elsewhere with tabs between them."""
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(row))
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo(GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


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
