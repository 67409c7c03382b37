"""`clade export`: the nodes of a hierarchy, or of a subtree, as JSON lines."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from commands.importing.command import HierarchyName, StoreUrl, hierarchy_named
from commands.progress import progress
from graph.settings import Settings
from store.connect import opened
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import Path as NodePath
from store.model.paths import parse_path
from store.model.undefined_values import Undefined
from store.transfer.export import count, export

EXIT_INTERRUPTED = 130


def export_file(
    hierarchy: HierarchyName,
    path: Annotated[str | None, typer.Argument(help="A node's path: it and all below it. Else all.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; else the standard output.", dir_okay=False)
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Write the nodes of a hierarchy, or of one of its subtrees, in path order as JSON lines; import takes them back.

    Attributes and levels that the class does not define are written as well, and counted on the error output.
    Histories, redirects and change logs are not; clade copy keeps them.

    Example: clade export location US/NE --output nebraska.jsonl
    """
    kind = hierarchy_named(hierarchy)
    start = None if path is None else parse_path(path)
    try:
        with _target(output) as target:
            asyncio.run(_export(store or Settings().store, kind, start, target))
    except KeyboardInterrupt:
        typer.echo("Stopped: the export is not whole.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:  # whoever reads has seen enough; Python would complain of it once more at its end
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
    """Where the lines go: a file appears when it is whole, and keeps what it had where that does not come to be."""
    if output is None:
        yield sys.stdout.buffer
        return
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    is_ours = False
    try:
        with part.open("xb") as target:  # what has this name already, or a link, is somebody else's
            is_ours = True
            yield target
        part.replace(output)
    except OSError as error:
        raise BadInput(f"{output} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        if is_ours:
            part.unlink(missing_ok=True)
