"""`clade backup` and `clade restore`: a SQLite store as one file, and back."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from commands.table import StoreUrl
from graph.settings import Settings
from store.connect import open_store
from store.errors import BadInput
from store.sqlite.store import SQLiteStore

Target = Annotated[Path, typer.Argument(help="The file to write; one that is there is replaced.", dir_okay=False)]
Source = Annotated[Path, typer.Argument(help="A file that clade backup has written.", exists=True, dir_okay=False)]


def backup(file: Target, store: StoreUrl = None) -> None:
    """Copy a SQLite store into a file as it is at one moment, while servers read and write.

    Nodes, revisions, changes and API keys are all in it. A table of DynamoDB is backed up by AWS.

    Example: clade backup backup.db
    """
    asyncio.run(_backup(store or Settings().store, file))
    typer.echo(f"{file}: {file.stat().st_size / 1e6:,.1f} MB.")


def restore(file: Source, store: StoreUrl = None) -> None:
    """Replace all that a SQLite store holds by a backup, in one transaction; servers may go on.

    What was written since the backup is lost.

    Example: clade restore backup.db
    """
    url = store or Settings().store
    asyncio.run(_restore(url, file))
    typer.echo(f"{url}: restored from {file}.")


async def _backup(url: str, file: Path) -> None:
    async with _sqlite(url) as store:
        await store.health()
        await store.back_up(file)


async def _restore(url: str, file: Path) -> None:
    async with _sqlite(url) as store:
        await store.put_back(file)


def _sqlite(url: str) -> SQLiteStore:
    store = open_store(url)
    if not isinstance(store, SQLiteStore):
        raise BadInput(
            f'"{url}" is a table of DynamoDB, which AWS backs up: by point-in-time recovery (clade table create '
            "--recovery) and by aws dynamodb create-backup. docs/backup.md has both."
        )
    return store
