"""`clade repair`: repair of derived data that a check finds wrong."""

import asyncio

import typer

from commands.check import EXIT_FINDINGS, Scan
from commands.interrupt import interruptible
from commands.options import OptionalHierarchy, StoreUrl
from commands.progress import progress
from graph.settings import Settings
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import opened


def repair(hierarchy: OptionalHierarchy = None, store: StoreUrl = None) -> None:
    """Repair derived data, and print each repair.

    Derived data are counts, levels above, keys, id records and tree versions. A move that a server left unfinished is
    completed, 30 seconds after that server's last sign of life.

    Data of the node itself and of its history are never changed or deleted: findings there are printed, and the exit
    status is 1. Servers may write meanwhile. After an interrupt the same command continues.

    Example: clade repair location
    """
    scan = Scan(hierarchy, store)
    with interruptible(lambda: "Stopped. All printed repairs were made; run the same command to continue."):
        repaired, remaining = asyncio.run(_repair(scan))
    rest = f", {remaining:,} cannot be repaired" if remaining else ""
    typer.echo(scan.summary(f"{repaired:,} repaired{rest}" if repaired or remaining else "no findings"))
    if remaining:
        raise typer.Exit(EXIT_FINDINGS)


async def _repair(scan: Scan) -> tuple[int, int]:
    """Print repaired and remaining findings and return the numbers of both."""
    counts = {True: 0, False: 0}
    async with opened(scan.url) as store:
        with progress("Repairing", "items") as meter:
            check = Check(store, scan.hierarchies, scan.at, scan.counting(meter), meter)
            async for finding, is_repaired in Repair(check, Settings().move_timing).run():
                typer.echo(f"{'repaired' if is_repaired else 'cannot repair'}: {finding}")
                counts[is_repaired] += 1
    return counts[True], counts[False]
