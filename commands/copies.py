"""Copies of what is stored: `clade copy`, `clade backup` and `clade restore`, and `clade export`."""

import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer

from commands import interrupt
from commands.common import HierarchyName, StoreUrl, hierarchy_named, progress, store_url, with_store
from commands.interrupt import interruptible
from commands.output import say
from store.connect import open_store, opened
from store.engine import Store
from store.errors import BadInput, NoTable, quantity, shell_words
from store.model.hierarchy import Undefined
from store.model.paths import parse_path
from store.output_file import output_file
from store.sqlite.store import SQLiteStore
from store.transfer.copy import Copy, new_store, put_back
from store.transfer.export import count, export, json_line
from store.transfer.formats.source import csv_line
from store.transfer.shapes.paths import path_header, path_line

Source = Annotated[str, typer.Argument(help="URL of the store to copy, such as sqlite:///clade.db.", metavar="SOURCE")]
Target = Annotated[
    str,
    typer.Argument(
        help="URL of a new SQLite file, or of an empty table that clade table create made.", metavar="TARGET"
    ),
]


def copy_store(source: Source, target: Target) -> None:
    """Copy a whole store into a new one, SQLite or DynamoDB.

    Unlike an export, a copy is complete: ids, histories, deleted nodes, redirects, change logs, sibling order,
    idempotency keys and API keys. It is rejected while a large move is running. Servers may write to an SQLite source
    meanwhile; the copy of a table fails if anything was written to it. The target can be used only when the copy is
    complete. After an interruption, the same command continues in a table, and starts again in a file.

    Example: clade copy sqlite:///clade.db "dynamodb://clade?region=eu-west-1"
    """
    started = time.monotonic()
    with interruptible(lambda: "Stopped: the copy is incomplete; run the same command to complete it."):
        copy = interrupt.run(_copy(source, target))
    seconds = time.monotonic() - started
    say(f"Copied {quantity(copy.items, 'item')}, {quantity(copy.nodes, 'node')} among them, in {seconds:.1f} s.")


async def _copy(source: str, target: str) -> Copy:
    try:
        async with opened(source):
            pass
    except NoTable as error:
        raise BadInput(f"{str(error).partition(';')[0]}; name a store that can be copied.") from error
    async with opened(source) as original, new_store(target) as new:
        with progress("Copying", "items") as meter:
            copy = Copy(original, new, meter)
            await copy.run()
    return copy


NewFile = Annotated[
    Path,
    typer.Argument(
        help="File to write, such as backup.db; an existing file is replaced.", dir_okay=False, metavar="FILE"
    ),
]
BackupFile = Annotated[
    Path,
    typer.Argument(
        help="File that clade backup wrote, such as backup.db.", exists=True, dir_okay=False, metavar="FILE"
    ),
]


def backup(file: NewFile, store: StoreUrl = None) -> None:
    """Copy an SQLite store into one file.

    The backup is consistent, and servers may read and write meanwhile. It has everything: nodes, revisions, changes
    and API keys. Tables in DynamoDB are backed up by AWS.

    Example: clade backup backup.db
    """

    async def work(store: SQLiteStore) -> None:
        await store.health()
        await store.back_up(file)

    with_store(_sqlite_store(store_url(store)), work)
    say(f"{file}: {file.stat().st_size / 1e6:,.1f} MB.")


def restore(file: BackupFile, store: StoreUrl = None) -> None:
    """Replace the whole content of an SQLite store with a backup.

    This is one transaction, and servers may keep running. Everything written since the backup is lost, except that API
    keys that this store has as revoked stay revoked; other valid keys of the backup are listed.

    Example: clade restore backup.db
    """
    url = store_url(store)
    unknown = with_store(_sqlite_store(url), lambda store: put_back(store, file))
    say(f"{url}: restored from {file}.")
    if unknown:
        say("These API keys of the backup are valid now, even if they have been revoked since:", err=True)
        say(*[f"  {key.id} {key.name}".rstrip() for key in unknown], err=True)
        say(f"To revoke one: clade key revoke ID --store {shell_words([url])}", err=True)


def _sqlite_store(url: str) -> SQLiteStore:
    store = open_store(url)
    if not isinstance(store, SQLiteStore):
        raise BadInput(
            f'"{url}" is a DynamoDB table; back it up with AWS: by point-in-time recovery (clade table create '
            "--recovery) or by aws dynamodb create-backup. docs/backup.md describes both."
        )
    return store


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
            say(sentence, err=True)


def _is_csv(name: str | None, output: Path | None) -> bool:
    """Whether the lines are CSV, else JSON. Raises BadInput for a file with the extension of another format."""
    ending = "" if name is not None or output is None else output.suffix.lower()
    if ending in OTHER_FORMATS:
        raise BadInput(
            f"{output} would not be what its extension says; exports are JSON lines or CSV: name it .jsonl or .csv, or "
            "add --format."
        )
    return name == "csv" or ending == ".csv"
