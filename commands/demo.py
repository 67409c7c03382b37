"""`clade demo`: demo data, real places and a small catalogue, for an empty store."""

import asyncio
import time
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from commands.interrupt import interruptible
from commands.options import StoreUrl
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
        bool,
        typer.Option(help="Load missing demo data into a store that is not empty, for example after an interrupt."),
    ] = False,
) -> None:
    """Load the demo data into an empty store; other stores are not changed.

    A missing SQLite file is created. A DynamoDB table must exist: create it with `clade table create`.

    Example: clade demo
    """
    with interruptible(lambda: "Stopped: the demo data is incomplete; clade demo --again loads the rest."):
        asyncio.run(_load_demo(store or Settings().store, again))


async def _load_demo(url: str, again: bool) -> None:
    async with opened(url, make=True) as store:
        if not again and await _has_data(store):
            return typer.echo("The store is not empty, so no demo data was loaded.")
        typer.echo("Loading the demo data; this takes some seconds.")
        started = time.monotonic()
        rows = _demo_rows()
        nodes = [await _load_rows(store, one, rows.get(name, ())) for name, one in hierarchies().items()]
        typer.echo(f"Loaded {quantity(sum(nodes), 'node')} in {time.monotonic() - started:.1f} s.")


async def _has_data(store: Store) -> bool:
    """Whether a served hierarchy was ever written to: it has a tree version, even if all nodes were deleted."""
    return any(await store.get([tree_version_key(name) for name in hierarchies()], ReadUsage(), strong=True))


def _demo_rows() -> dict[str, Iterable[dict[str, Any]]]:
    try:
        from clade import demo
    except ModuleNotFoundError as missing:
        raise BadInput(f"The demo data needs {missing.name}; run pip install '.[demo]'.") from None
    return demo.rows()


async def _load_rows(store: Store, hierarchy: Hierarchy, rows: Iterable[dict[str, Any]]) -> int:
    """Load the rows of one hierarchy; the number of written nodes."""
    plan, outcome = ImportPlan(hierarchy), LoadResult()
    for number, row in enumerate(rows, start=1):
        attributes = {name: value for name, value in row.items() if name not in _OWN}
        plan.take(Row(number, row["path"], [Part(row["level"], row["name"], row.get("id"), attributes)]))
    await load(store, plan, outcome)
    if outcome.rejections:
        raise BadInput(f"The demo data does not match the served hierarchies: {outcome.rejections[0].reason}")
    return outcome.written
