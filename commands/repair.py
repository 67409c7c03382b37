"""`clade repair`: fixes for what a check finds, where they follow from the rest."""

import asyncio

import typer

from commands.check import EXIT_INTERRUPTED, EXIT_WRONG, MaybeHierarchy, Pass
from commands.move_timing import move_timing
from commands.progress import progress
from commands.table import StoreUrl
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import opened


def repair(hierarchy: MaybeHierarchy = None, store: StoreUrl = None) -> None:
    """Repair what follows from the rest: counts, levels above, keys, id records, tree versions; print each repair.

    Moves that a server has left unfinished are finished, once it was silent for half a minute.

    What only a node or its history contains is never changed or deleted; problems of that are printed, too, and the
    exit status is then 1. Others may write meanwhile. The same command continues where it was stopped.

    Example: clade repair location
    """
    work = Pass(hierarchy, store)
    try:
        repaired, lasting = asyncio.run(_repair(work))
    except KeyboardInterrupt:
        typer.echo("Stopped. What is printed is repaired; the same command continues.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    rest = f", {lasting:,} cannot be repaired" if lasting else ""
    typer.echo(work.summary(f"{repaired:,} repaired{rest}" if repaired or lasting else "no problems"))
    if lasting:
        raise typer.Exit(EXIT_WRONG)


async def _repair(work: Pass) -> tuple[int, int]:
    """Print what is repaired and what cannot be; returns the number of each."""
    counts = {True: 0, False: 0}
    async with opened(work.url) as store:
        with progress("Repairing", "items") as meter:

            def on_nodes(nodes: int) -> None:
                work.nodes += nodes
                meter(nodes)

            check = Check(store, work.hierarchies, work.at, on_nodes, meter)
            async for finding, is_fixed in Repair(check, move_timing()).run():
                typer.echo(f"{'repaired' if is_fixed else 'cannot repair'}: {finding}")
                counts[is_fixed] += 1
    return counts[True], counts[False]
