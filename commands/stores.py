"""Whole stores: `clade backup`, `clade restore`, `clade copy`."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from commands.options import StoreUrl, interruptible, store_url, with_store
from commands.progress import progress
from store.connect import open_store, opened
from store.errors import BadInput, NoTable
from store.sqlite.store import SQLiteStore
from store.text import quantity
from store.transfer.copy import Copy, new_store

Target = Annotated[
    Path,
    typer.Argument(
        help="File to write, such as backup.db; an existing file is replaced.", dir_okay=False, metavar="FILE"
    ),
]
Source = Annotated[
    Path,
    typer.Argument(
        help="File that clade backup wrote, such as backup.db.", exists=True, dir_okay=False, metavar="FILE"
    ),
]


def backup(file: Target, store: StoreUrl = None) -> None:
    """Copy an SQLite store into one file.

    The backup is consistent, and servers may read and write meanwhile. It has everything: nodes, revisions, changes
    and API keys. Tables in DynamoDB are backed up by AWS.

    Example: clade backup backup.db
    """

    async def work(store: SQLiteStore) -> None:
        await store.health()
        await store.back_up(file)

    with_store(_sqlite_store(store_url(store)), work)
    typer.echo(f"{file}: {file.stat().st_size / 1e6:,.1f} MB.")


def restore(file: Source, store: StoreUrl = None) -> None:
    """Replace the whole content of an SQLite store with a backup.

    This is one transaction, and servers may keep running. Everything written since the backup is lost.

    Example: clade restore backup.db
    """
    url = store_url(store)
    with_store(_sqlite_store(url), lambda store: store.put_back(file))
    typer.echo(f"{url}: restored from {file}.")


def _sqlite_store(url: str) -> SQLiteStore:
    store = open_store(url)
    if not isinstance(store, SQLiteStore):
        raise BadInput(
            f'"{url}" is a DynamoDB table; back it up with AWS: by point-in-time recovery (clade table create '
            "--recovery) or by aws dynamodb create-backup. docs/backup.md describes both."
        )
    return store


CopySource = Annotated[
    str, typer.Argument(help="URL of the store to copy, such as sqlite:///clade.db.", metavar="SOURCE")
]
CopyTarget = Annotated[
    str,
    typer.Argument(
        help="URL of a new SQLite file, or of an empty table that clade table create made.", metavar="TARGET"
    ),
]


def copy_store(source: CopySource, target: CopyTarget) -> None:
    """Copy a whole store into a new one, SQLite or DynamoDB.

    Unlike an export, a copy is complete: ids, histories, deleted nodes, redirects, change logs, sibling order,
    idempotency keys and API keys. It is rejected while a large move is running. Servers may write to an SQLite source
    meanwhile; the copy of a table fails if anything was written to it. The target can be used only when the copy is
    complete. After an interruption, the same command continues in a table, and starts again in a file.

    Example: clade copy sqlite:///clade.db "dynamodb://clade?region=eu-west-1"
    """
    started = time.monotonic()
    with interruptible(lambda: "Stopped: the copy is incomplete; run the same command to complete it."):
        copy = asyncio.run(_copied(source, target))
    seconds = time.monotonic() - started
    typer.echo(f"Copied {quantity(copy.items, 'item')}, {quantity(copy.nodes, 'node')} among them, in {seconds:.1f} s.")


async def _copied(source: str, target: str) -> Copy:
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
