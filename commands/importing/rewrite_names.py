"""`clade rewrite-names`: attributes under their current names, after classes have changed."""

from typing import Annotated

import typer

from commands.interrupt import interruptible
from commands.options import HierarchyName, StoreUrl, hierarchy_named, store_url, with_store
from commands.progress import progress
from store.connect import opened
from store.engine import Store
from store.errors import quantity
from store.transfer.load import LoadResult
from store.transfer.load import rewrite_names as rewrite

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the number of nodes without writing them.")]


def rewrite_names(hierarchy: HierarchyName, dry_run: DryRun = False, store: StoreUrl = None) -> None:
    """Store attributes under their current names, if their class has was="former name".

    Each node with a former name is written once, as a revision of its own; former revisions stay as they are. Servers
    may read and write meanwhile. After an interruption, the same command continues. Levels keep their stored names.

    Example: clade rewrite-names location
    """
    definition, result = hierarchy_named(hierarchy), LoadResult()

    async def run(store: Store) -> None:
        with progress("Rewriting", "nodes") as meter:
            await rewrite(store, definition, result, dry_run=dry_run, on_nodes=meter)

    stopped = "Run the same command to continue."
    with interruptible(lambda: f"Stopped: {quantity(result.written, 'node')} written. {stopped}"):
        with_store(opened(store_url(store)), run)
    nodes = quantity(result.written, "node")
    typer.echo(f"{definition.name}: {nodes} {'would be' if dry_run else 'were'} rewritten.")
