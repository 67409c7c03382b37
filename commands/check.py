"""`clade check`: the consistency of a table."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated

import typer

from commands.importing.command import hierarchy_named
from commands.progress import progress
from commands.table import StoreUrl
from graph.hierarchies.registry import hierarchies
from graph.settings import Settings
from store.checking.check import Check
from store.connect import opened
from store.model.hierarchy import Hierarchy
from store.text import quantity, rfc3339

EXIT_WRONG = 1
EXIT_INTERRUPTED = 130

MaybeHierarchy = Annotated[
    str | None, typer.Argument(help="One hierarchy, such as location. Else all that are served.", metavar="[HIERARCHY]")
]


class Pass:
    """One pass through the table of a store: its start, the number of nodes checked, and what no class defines."""

    def __init__(self, hierarchy: str | None, url: str | None) -> None:
        self.hierarchies: Mapping[str, Hierarchy] = (
            hierarchies() if hierarchy is None else {hierarchy: hierarchy_named(hierarchy)}
        )
        self.url = url or Settings().store
        self.nodes = 0
        self.undefined: list[str] = []
        self._began = time.time()

    @property
    def at(self) -> str:
        return rfc3339(self._began)

    def summary(self, outcome: str) -> str:
        seconds = time.time() - self._began
        return f"{', '.join(self.hierarchies)}: {quantity(self.nodes, 'node')} in {seconds:.1f} s, {outcome}."


def check(hierarchy: MaybeHierarchy = None, store: StoreUrl = None) -> None:
    """Check parents, ids, counts, revisions, tree versions, logs and redirects; print each problem.

    The whole table is read. Others may write meanwhile. The exit status is 1 where there is a problem. Attributes and
    levels that are stored and that no class defines are counted; such attributes are no problem, and not served.

    Example: clade check location
    """
    work = Pass(hierarchy, store)
    try:
        findings = asyncio.run(_check(work))
    except KeyboardInterrupt:
        typer.echo("Stopped; the rest of the table was not checked.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    found = f"{quantity(findings, 'finding')}; clade repair fixes what it can"
    typer.echo(work.summary(found if findings else "no problems"))
    for sentence in work.undefined:
        typer.echo(sentence)
    if findings:
        raise typer.Exit(EXIT_WRONG)


async def _check(work: Pass) -> int:
    """Print the findings; returns their number."""
    count = 0
    async with opened(work.url) as store:
        with progress("Checking", "items") as meter:

            def on_nodes(nodes: int) -> None:
                work.nodes += nodes
                meter(nodes)

            check = Check(store, work.hierarchies, work.at, on_nodes, meter)
            async for finding in check.findings():
                typer.echo(str(finding))
                count += 1
    work.undefined = [sentence for one in check.undefined.values() for sentence in one.sentences()]
    return count
