"""`clade repair`: what a check finds, made right where it can be."""

import asyncio

import typer

from commands.check import EXIT_INTERRUPTED, EXIT_WRONG, MaybeHierarchy, Pass
from commands.move_timing import pace
from commands.progress import progress
from commands.table import StoreUrl
from store.checking.repair import Repair
from store.connect import opened


def repair(hierarchy: MaybeHierarchy = None, store: StoreUrl = None) -> None:
    """Mend what follows from the rest: counts, levels above, keys, records of ids, stamps; print each thing mended.

    Moves that a server has left half-way are brought to their ends, once it was silent for half a minute.

    What only a node itself or its history says is never changed or deleted; what is wrong with that is printed, too,
    and the exit status is then 1. Others may write meanwhile. The same command goes on where it was stopped.

    Example: clade repair location
    """
    work = Pass(hierarchy, store)
    try:
        mended, lasting = asyncio.run(_repair(work))
    except KeyboardInterrupt:
        typer.echo("Stopped. What is printed is mended; the same command goes on.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    rest = f", {lasting:,} cannot be mended" if lasting else ""
    typer.echo(work.summary(f"{mended:,} mended{rest}" if mended or lasting else "all is right"))
    if lasting:
        raise typer.Exit(EXIT_WRONG)


async def _repair(work: Pass) -> tuple[int, int]:
    """Print what is mended and what cannot be; how many things each are."""
    counts = {True: 0, False: 0}
    async with opened(work.url) as store:
        with progress("Repairing", "items") as meter:

            def met(nodes: int) -> None:
                work.nodes += nodes
                meter(nodes)

            async for finding, mended in Repair(store, work.hierarchies, work.at, met, meter, pace()).run():
                typer.echo(f"{'mended' if mended else 'cannot mend'}: {finding}")
                counts[mended] += 1
    return counts[True], counts[False]
