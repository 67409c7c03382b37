"""`clade copy`: everything in one store into a new one."""

import asyncio
import time
from typing import Annotated

import typer

from commands.progress import progress
from store.connect import opened
from store.text import quantity
from store.transfer.copy import Copy, new_store

EXIT_INTERRUPTED = 130

Source = Annotated[str, typer.Argument(help="The store to copy, such as sqlite:///clade.db.", metavar="SOURCE")]
Target = Annotated[str, typer.Argument(help="A new file, or an empty table that clade table create made.")]


def copy_store(source: Source, target: Target) -> None:
    """Copy everything in a store into a new one of either kind: SQLite or DynamoDB.

    Unlike an export it loses nothing: ids, histories, deleted nodes, redirects, change logs, the order of siblings,
    idempotency keys and API keys are as they were. It is refused while a large move is under way. Servers may write to
    an SQLite source meanwhile; the copy of a table fails where anything was written to it. The target cannot be used
    until the copy is whole. One that was stopped is finished by the same command in a table, begun anew in a file.

    Example: clade copy sqlite:///clade.db "dynamodb://clade?region=eu-west-1"
    """
    began = time.monotonic()
    try:
        done = asyncio.run(_copy(source, target))
    except KeyboardInterrupt:
        typer.echo("Stopped: the copy is not whole.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    seconds = time.monotonic() - began
    typer.echo(f"Copied {quantity(done.items, 'item')}, {quantity(done.nodes, 'node')} among them, in {seconds:.1f} s.")


async def _copy(source: str, target: str) -> Copy:
    async with opened(source) as original, new_store(target) as new:
        with progress("Copying", "items") as meter:
            done = Copy(original, new, meter)
            await done.run()
    return done
