"""`clade export`: the nodes of a hierarchy or of a subtree as JSON lines."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from commands.interrupt import interruptible
from commands.options import HierarchyName, StoreUrl, hierarchy_named
from commands.progress import progress
from graph.settings import Settings
from store.connect import opened
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import Path as NodePath
from store.model.paths import parse_path
from store.model.undefined_values import Undefined
from store.transfer.export import count, export


def export_file(
    hierarchy: HierarchyName,
    path: Annotated[
        str | None, typer.Argument(help="Path of a subtree, such as US/NE; all nodes by default.", metavar="PATH")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; the standard output by default.", dir_okay=False),
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Write the nodes of a hierarchy or of a subtree as JSON lines, which clade import reads.

    The lines are in path order. Stored attributes and levels that no class defines are written, too, and counted on
    the error output. Histories, redirects and change logs are not written; use clade copy for these.

    Example: clade export location US/NE --output nebraska.jsonl
    """
    definition = hierarchy_named(hierarchy)
    start = None if path is None else parse_path(path)
    try:
        with interruptible(lambda: "Stopped: the export is incomplete."), _target(output) as target:
            asyncio.run(_export(store or Settings().store, definition, start, target))
    except BrokenPipeError:  # the reader closed the pipe; without this Python reports that again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _export(url: str, hierarchy: Hierarchy, path: NodePath | None, target: BinaryIO) -> None:
    undefined = Undefined(hierarchy)
    async with opened(url) as store:
        with progress("Exporting", "nodes", await count(store, hierarchy, path)) as meter:
            async for lines in export(store, hierarchy, path, undefined=undefined):
                target.write(lines)
                meter(lines.count(b"\n"))
        target.flush()
    for sentence in undefined.sentences():
        typer.echo(sentence, err=True)


@contextmanager
def _target(output: Path | None) -> Iterator[BinaryIO]:
    """The output. A file is written under another name and renamed at the end, so it is complete or unchanged."""
    if output is None:
        yield sys.stdout.buffer
        return
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    is_created = False
    try:
        with part.open("xb") as target:  # an existing file or link of this name is not overwritten
            is_created = True
            yield target
        part.replace(output)
    except OSError as error:
        raise BadInput(f"{output} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        if is_created:
            part.unlink(missing_ok=True)
