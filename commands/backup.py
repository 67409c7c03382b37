"""`clade backup` and `clade restore`: an SQLite store as one file, and back."""

from pathlib import Path
from typing import Annotated

import typer

from commands.options import StoreUrl, store_url, with_store
from store.connect import open_store
from store.errors import BadInput
from store.sqlite.store import SQLiteStore

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
