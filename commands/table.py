"""`clade table`: make the table, and look at it."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from graph.settings import Settings
from store.attributes import Value
from store.stores import open_store

app = typer.Typer(help="Make the table that CLADE_STORE names, or look at it.", no_args_is_help=True)

StoreUrl = Annotated[str | None, typer.Option("--store", help="Another store than CLADE_STORE names.", metavar="URL")]


@app.command()
def create(store: StoreUrl = None) -> None:
    """Make the table with its indexes, and wait until it can be used; harmless where it exists.

    Example: CLADE_STORE="dynamodb://clade?region=eu-west-1" clade table create
    """
    url = store or Settings().store
    made = asyncio.run(_create(url))
    print(f"{url}: {'the table is made' if made else 'the table exists'}.")


@app.command()
def describe(store: StoreUrl = None) -> None:
    """Show what there is: status, items, size, indexes.

    Example: clade table describe
    """
    description = asyncio.run(_describe(store or Settings().store))
    table = Table("", "", show_header=False)
    for name, value in description.items():
        table.add_row(name, str(value))
    Console().print(table)


async def _create(url: str) -> bool:
    async with open_store(url) as store:
        return await store.create()


async def _describe(url: str) -> dict[str, Value]:
    async with open_store(url) as store:
        return await store.describe()
