"""`clade check`: a consistency check of the table."""

import asyncio
import time
from collections.abc import Mapping

import typer

from commands.interrupt import interruptible
from commands.options import OptionalHierarchy, StoreUrl, hierarchy_named
from commands.progress import Meter, progress
from graph.hierarchies.registry import hierarchies
from graph.settings import Settings
from store.checking.check import Check
from store.connect import opened
from store.model.hierarchy import Hierarchy
from store.text import quantity, rfc3339

EXIT_FINDINGS = 1


class Scan:
    """One scan of a table: the checked hierarchies, the start, the number of nodes, and undefined attributes."""

    def __init__(self, hierarchy: str | None, url: str | None) -> None:
        self.hierarchies: Mapping[str, Hierarchy] = (
            hierarchies() if hierarchy is None else {hierarchy: hierarchy_named(hierarchy)}
        )
        self.url = url or Settings().store
        self.nodes = 0
        self.undefined: list[str] = []
        self._started = time.time()

    @property
    def at(self) -> str:
        """The start of the scan as stored times are written."""
        return rfc3339(self._started)

    def counting(self, meter: Meter) -> Meter:
        """A meter that also counts the nodes of this scan."""

        def count(steps: int = 1) -> None:
            self.nodes += steps
            meter(steps)

        return count

    def summary(self, outcome: str) -> str:
        seconds = time.time() - self._started
        return f"{', '.join(self.hierarchies)}: {quantity(self.nodes, 'node')} in {seconds:.1f} s, {outcome}."


def check(hierarchy: OptionalHierarchy = None, store: StoreUrl = None) -> None:
    """Check that the table is consistent, and print each finding.

    Checked are parents, ids, counts, revisions, tree versions, change logs and redirects. The whole table is read;
    servers may write meanwhile. The exit status is 1 if there are findings. Stored attributes and levels that no class
    defines are counted; such attributes are not findings and are not served.

    Example: clade check location
    """
    scan = Scan(hierarchy, store)
    with interruptible(lambda: "Stopped; the rest of the table was not checked."):
        findings = asyncio.run(_check(scan))
    found = f"{quantity(findings, 'finding')}; run clade repair to repair what can be repaired"
    typer.echo(scan.summary(found if findings else "no findings"))
    for sentence in scan.undefined:
        typer.echo(sentence)
    if findings:
        raise typer.Exit(EXIT_FINDINGS)


async def _check(scan: Scan) -> int:
    """Print the findings and return their number."""
    count = 0
    async with opened(scan.url) as store:
        with progress("Checking", "items") as meter:
            check = Check(store, scan.hierarchies, scan.at, scan.counting(meter), meter)
            async for finding in check.findings():
                typer.echo(str(finding))
                count += 1
    scan.undefined = [sentence for level in check.undefined.values() for sentence in level.sentences()]
    return count
