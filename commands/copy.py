"""`clade copy`: a whole store into a new one."""

import time
from typing import Annotated

import typer

from commands import interrupt
from commands.interrupt import interruptible
from commands.progress import progress
from store.connect import opened
from store.errors import BadInput, NoTable, quantity
from store.transfer.copy import Copy, new_store

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
    typer.echo(f"Copied {quantity(copy.items, 'item')}, {quantity(copy.nodes, 'node')} among them, in {seconds:.1f} s.")


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
