"""`clade check` and `clade repair`: a consistency check of the table, and the repair of derived data."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from commands.options import (
    OptionalHierarchy,
    StoreUrl,
    hierarchy_named,
    interruptible,
    served_hierarchies,
    store_url,
    with_store,
)
from commands.output import AsJson, print_json
from commands.progress import progress
from store.checking.check import Check
from store.checking.findings import Finding
from store.connect import opened
from store.engine.protocol import Store
from store.text import quantity, rfc3339, shorten

EXIT_FINDINGS = 1

# Of a page of items nothing is left to the garbage collector, which by default looks for it all the time.
GC_THRESHOLD = 200_000


class _Scan:
    """One scan of a table: the checked hierarchies, its start, the number of nodes, and what else it found."""

    def __init__(self, hierarchy: str | None, *, as_json: bool) -> None:
        self._served = served_hierarchies()
        self._hierarchies = {hierarchy: hierarchy_named(hierarchy)} if hierarchy else self._served
        self._as_json = as_json
        self._started = time.time()
        self._nodes = 0
        self._notes: list[str] = []
        self._unserved: dict[str, int] = {}
        self._findings: list[dict[str, object]] = []

    @contextmanager
    def check(self, store: Store, activity: str) -> Iterator[Check]:
        """A check of the store, with its progress."""
        gc.set_threshold(GC_THRESHOLD)
        gc.freeze()
        with progress(activity, "items") as meter:

            def count(nodes: int) -> None:
                self._nodes += nodes

            check = Check(store, self._hierarchies, rfc3339(self._started), count, meter)
            yield check
        self._notes = [sentence for level in check.undefined.values() for sentence in level.sentences()]
        self._unserved = {name: count for name, count in sorted(check.others.items()) if name not in self._served}

    def note(self, finding: Finding, line: str, **facts: object) -> None:
        """Print a finding, or keep it for the document."""
        if self._as_json:
            fields = {"hierarchy": finding.hierarchy, "path": finding.path, "problem": finding.problem}
            self._findings.append({**fields, **facts})
        else:
            typer.echo(line)

    def print_summary(self, outcome: str, *, with_notes: bool) -> None:
        """Print how long it took, and what is no finding."""
        seconds = time.time() - self._started
        if self._as_json:
            return print_json({
                "hierarchies": [*self._hierarchies],
                "nodes": self._nodes,
                "seconds": round(seconds, 1),
                "findings": self._findings,
                "notes": self._notes,
                "unserved": self._unserved,
            })  # fmt: skip
        typer.echo(f"{', '.join(self._hierarchies)}: {quantity(self._nodes, 'node')} in {seconds:.1f} s, {outcome}.")
        for sentence in self._notes if with_notes else ():
            typer.echo(sentence)
        for name, count in self._unserved.items():
            typer.echo(
                f"{shorten(name)}: {quantity(count, 'node')}, not checked, since no class has this hierarchy; "
                "CLADE_HIERARCHIES names the files of hierarchies."
            )


def check(hierarchy: OptionalHierarchy = None, as_json: AsJson = False, store: StoreUrl = None) -> None:
    """Check that the table is consistent, and print each finding.

    It verifies parents, ids, counts, revisions, tree versions, change logs, redirects and search items, and that
    the engine has transactions. The whole table is read; servers may write meanwhile. The exit status is 1 if there
    are findings. It also counts stored attributes, levels and hierarchies that no class defines, values under former
    names, and values that break a rule; of these, only an undefined level is a finding.

    Example: clade check location
    """
    scan = _Scan(hierarchy, as_json=as_json)

    async def find(store: Store) -> int:
        count = 0
        await store.check_transactions()
        with scan.check(store, "Checking") as check:
            async for finding in check.findings():
                scan.note(finding, str(finding))
                count += 1
        return count

    with interruptible(lambda: "Stopped; the rest of the table was not checked."):
        findings = with_store(opened(store_url(store)), find)
    found = f"{quantity(findings, 'finding')}; run clade repair to repair what can be repaired"
    scan.print_summary(found if findings else "no findings", with_notes=True)
    if findings:
        raise typer.Exit(EXIT_FINDINGS)


def repair(hierarchy: OptionalHierarchy = None, as_json: AsJson = False, store: StoreUrl = None) -> None:
    """Repair derived data, and print each repair.

    Derived data are counts, levels of ancestors, keys, id records, tree versions and search items. After `search=` or
    `location=` was added to a hierarchy with nodes, a repair writes their search items. A large move that a server left
    unfinished is completed 30 seconds after its last progress.

    Data of the node itself and of its history are never changed or deleted: findings there are printed, and the exit
    status is 1. Servers may write meanwhile. After an interruption, the same command continues.

    Example: clade repair location
    """
    from graph.settings import Settings
    from store.checking.repair import Repair  # whose many modules a check does without

    scan = _Scan(hierarchy, as_json=as_json)
    counts = {True: 0, False: 0}

    async def mend(store: Store) -> None:
        with scan.check(store, "Repairing") as check:
            async for finding, is_repaired in Repair(check, Settings().move_timing).run():
                line = f"{'repaired' if is_repaired else 'cannot repair'}: {finding}"
                scan.note(finding, line, repaired=is_repaired)
                counts[is_repaired] += 1

    with interruptible(lambda: "Stopped. All printed repairs were made; run the same command to continue."):
        with_store(opened(store_url(store)), mend)
    repaired, remaining = counts[True], counts[False]
    rest = f", {remaining:,} cannot be repaired" if remaining else ""
    outcome = f"{repaired:,} repaired{rest}" if repaired or remaining else "no findings"
    scan.print_summary(outcome, with_notes=False)
    if remaining:
        raise typer.Exit(EXIT_FINDINGS)
