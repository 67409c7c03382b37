"""`clade export`: the nodes of a hierarchy or of a subtree as JSON lines or CSV."""

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer

from commands.interrupt import interruptible
from commands.options import HierarchyName, StoreUrl, hierarchy_named, store_url, with_store
from commands.progress import progress
from store.connect import opened
from store.engine import Store
from store.errors import BadInput
from store.model.hierarchy import Undefined
from store.model.paths import parse_path
from store.output_file import output_file
from store.transfer.export import count, export, json_line
from store.transfer.formats.source import csv_line
from store.transfer.formats.tables import path_header, path_line

Subtree = Annotated[
    str | None, typer.Argument(help="Path of a subtree, such as US/NE; all nodes by default.", metavar="PATH")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write; the standard output by default.", dir_okay=False),
]
FormatName = Annotated[
    Literal["jsonl", "csv"] | None,
    typer.Option("--format", help="Format of the lines; from the file's extension by default, else jsonl."),
]

OTHER_FORMATS = frozenset((".xlsx", ".parquet", ".json", ".geojson", ".geojsonl", ".txt", ".tsv", ".gz", ".zip"))
"""Extensions by which an import would take the lines for something else."""


def export_file(
    hierarchy: HierarchyName,
    path: Subtree = None,
    output: Output = None,
    format_name: FormatName = None,
    store: StoreUrl = None,
) -> None:
    """Write the nodes of a hierarchy or of a subtree as JSON lines or CSV, which clade import reads.

    The lines are in path order. Stored attributes and levels that no class defines are written, too, and counted on
    standard error. Histories, redirects and change logs are not written; use clade copy for these.

    Example: clade export location US/NE --output nebraska.jsonl
    """
    definition = hierarchy_named(hierarchy)
    start = None if path is None else parse_path(path)
    undefined = Undefined(definition)
    header = path_header(definition) if _is_csv(format_name, output) else None
    line = json_line if header is None else lambda fields: f"{path_line(header, fields)}\n".encode()

    async def write(store: Store, target: BinaryIO) -> None:
        with progress("Exporting", "nodes", await count(store, definition, start)) as meter:
            target.write(b"" if header is None else f"{csv_line(header)}\n".encode())
            async for lines in export(store, definition, start, undefined=undefined, line=line):
                target.write(lines)
                meter(lines.count(b"\n"))
        target.flush()

    try:
        with (
            interruptible(lambda: "Stopped: the export is incomplete."),
            nullcontext(sys.stdout.buffer) if output is None else output_file(output) as target,
        ):
            with_store(opened(store_url(store)), lambda store: write(store, target))
    except BrokenPipeError:  # the reader closed the pipe; without this Python reports that again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        for sentence in undefined.sentences():
            typer.echo(sentence, err=True)


def _is_csv(name: str | None, output: Path | None) -> bool:
    """Whether the lines are CSV, else JSON. Raises BadInput for a file with the extension of another format."""
    ending = "" if name is not None or output is None else output.suffix.lower()
    if ending in OTHER_FORMATS:
        raise BadInput(
            f"{output} would not be what its extension says; exports are JSON lines or CSV: name it .jsonl or .csv, or "
            "add --format."
        )
    return name == "csv" or ending == ".csv"
