"""`clade demo`: real places and a small catalogue for a store that holds nothing yet."""

import asyncio
import time
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from commands.table import StoreUrl
from graph.hierarchies.registry import hierarchies
from graph.settings import Settings
from store.connect import opened
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import tree_version_key
from store.text import quantity
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row

_OWN = frozenset(("path", "level", "name", "id"))


def load_demo(
    store: StoreUrl = None,
    again: Annotated[
        bool, typer.Option(help="Load what is missing into a store that holds something, as after an interruption.")
    ] = False,
) -> None:
    """Load the demo data when the store holds nothing; else say so and change nothing.

    An SQLite file is made where there is none; a table of DynamoDB is made by `clade table create` first.

    Example: clade demo
    """
    try:
        asyncio.run(_load_demo(store or Settings().store, again))
    except KeyboardInterrupt:
        typer.echo("Only a part of the demo data is loaded; clade demo --again loads the rest.", err=True)
        raise typer.Exit(130) from None


async def _load_demo(url: str, again: bool) -> None:
    async with opened(url, make=True) as store:
        if not again and await _holds_something(store):
            return typer.echo("The store holds something already, so no demo data is loaded.")
        typer.echo("Loading the demo data, which takes some seconds.")
        began = time.monotonic()
        rows = _rows()
        nodes = [await _load_rows(store, kind, rows.get(name, ())) for name, kind in hierarchies().items()]
        typer.echo(f"Loaded {quantity(sum(nodes), 'node')} in {time.monotonic() - began:.1f} s.")


async def _holds_something(store: Store) -> bool:
    """Whether anything was ever written to a served hierarchy: its stamp tells, also after all was deleted again."""
    return any(await store.get([tree_version_key(name) for name in hierarchies()], ReadUsage(), strong=True))


def _rows() -> dict[str, Iterable[dict[str, Any]]]:
    try:
        from clade import demo
    except ModuleNotFoundError as missing:
        raise BadInput(f"The demo data needs {missing.name}: pip install '.[demo]' brings it.") from None
    return demo.rows()


async def _load_rows(store: Store, hierarchy: Hierarchy, rows: Iterable[dict[str, Any]]) -> int:
    """Load the rows of one hierarchy; how many nodes were written."""
    wanted, outcome = ImportPlan(hierarchy), LoadResult()
    for number, row in enumerate(rows, start=1):
        attributes = {name: value for name, value in row.items() if name not in _OWN}
        wanted.take(Row(number, row["path"], [Part(row["level"], row["name"], row.get("id"), attributes)]))
    await load(store, wanted, outcome)
    if outcome.rejections:
        raise BadInput(f"The demo data does not fit the hierarchies that are served: {outcome.rejections[0].reason}")
    return outcome.written
