"""`clade check` and `clade repair`: a consistency check of the table, and the repair of derived data."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from commands.common import (
    OptionalHierarchy,
    StoreUrl,
    hierarchy_named,
    progress,
    served_hierarchies,
    store_url,
    with_store,
)
from commands.interrupt import interruptible
from commands.output import AsJson, print_json, say
from store.checking.check import Check
from store.connect import opened
from store.engine import Store
from store.errors import quantity, rfc3339, shorten

EXIT_FINDINGS = 1


class _Scan:
    """One scan of a table: the checked hierarchies, its start, and the number of nodes."""

    def __init__(self, hierarchy: str | None) -> None:
        self._hierarchies = {hierarchy: hierarchy_named(hierarchy)} if hierarchy else served_hierarchies()
        self._started = time.monotonic()
        self._nodes = 0

    @contextmanager
    def check(self, store: Store, activity: str) -> Iterator[Check]:
        """A check of the store, with its progress."""
        with progress(activity, "items") as meter:

            def count(nodes: int) -> None:
                self._nodes += nodes
                meter(nodes)

            yield Check(store, self._hierarchies, rfc3339(store.now()), count, meter)

    def print_summary(self, outcome: str) -> None:
        names, nodes = ", ".join(self._hierarchies), quantity(self._nodes, "node")
        say(f"{names}: {nodes} in {time.monotonic() - self._started:.1f} s, {outcome}.")

    def summary(self) -> dict[str, object]:
        """The same for programs, without the outcome."""
        seconds = round(time.monotonic() - self._started, 3)
        return {"hierarchies": [*self._hierarchies], "nodes": self._nodes, "seconds": seconds}


def check(hierarchy: OptionalHierarchy = None, as_json: AsJson = False, store: StoreUrl = None) -> None:
    """Check that the table is consistent, and print each finding.

    It verifies parents, ids, counts, revisions, tree versions, change logs, redirects and items of search and unique
    values, and that the engine has transactions. The whole table is read; servers may write meanwhile. The exit status
    is 1 if there are findings. It also counts stored attributes and levels that no class defines, values under former
    names, and values that break a rule; of these, only an undefined level is a finding. Stored nodes of hierarchies
    that are not served are counted, too. JSON has a line for each finding, and the summary as its last line.

    Example: clade check location
    """
    scan = _Scan(hierarchy)

    async def find(store: Store) -> tuple[int, Check]:
        count = 0
        await store.check_transactions()
        with scan.check(store, "Checking") as check:
            async for finding in check.findings():
                if as_json:
                    print_json({"hierarchy": finding.hierarchy, "path": finding.path, "problem": finding.problem})
                else:
                    say(finding)
                count += 1
        return count, check

    with interruptible(lambda: "Stopped; the rest of the table was not checked."):
        findings, done = with_store(opened(store_url(store)), find)
    unserved = sorted((name, nodes) for name, nodes in done.unchecked.items() if name not in served_hierarchies())
    if as_json:
        undefined = [entry for one in done.undefined.values() for entry in one.entries()]
        others = [{"hierarchy": name, "nodes": nodes} for name, nodes in unserved]
        print_json({**scan.summary(), "findings": findings, "undefined": undefined, "notServed": others})
    else:
        _print_outcome(scan, findings, done, unserved)
    if findings:
        raise typer.Exit(EXIT_FINDINGS)


def _print_outcome(scan: _Scan, findings: int, done: Check, unserved: list[tuple[str, int]]) -> None:
    found = f"{quantity(findings, 'finding')}; run clade repair to repair what can be repaired"
    scan.print_summary(found if findings else "no findings")
    for undefined in done.undefined.values():
        for sentence in undefined.sentences():
            say(sentence)
    for name, nodes in unserved:
        say(
            f"{shorten(name)}: {quantity(nodes, 'node')} of a hierarchy that is not served. Add its classes to "
            "CLADE_HIERARCHIES, to read and export them, or to delete them with clade delete."
        )


def repair(hierarchy: OptionalHierarchy = None, store: StoreUrl = None) -> None:
    """Repair derived data, and print each repair.

    Derived data are counts, levels of ancestors, keys, id records, tree versions and items of search and unique values.
    After `search=`, `location=` or `unique=` was added to a hierarchy with nodes, a repair writes their items. Of a
    value that two nodes have it prints both, and leaves it. A large move that a server left
    unfinished is completed 30 seconds after its last progress.

    Data of the node itself and of its history are never changed or deleted: findings there are printed, and the exit
    status is 1. Servers may write meanwhile. After an interruption, the same command continues.

    Example: clade repair location
    """
    from graph.settings import Settings
    from store.checking.repair import Repair  # whose many modules a check does without

    scan = _Scan(hierarchy)
    counts = {True: 0, False: 0}

    async def mend(store: Store) -> None:
        with scan.check(store, "Repairing") as check:
            async for finding, is_repaired in Repair(check, Settings().move_timing).run():
                say(f"{'repaired' if is_repaired else 'cannot repair'}: {finding}")
                counts[is_repaired] += 1

    with interruptible(lambda: "Stopped. All printed repairs were made; run the same command to continue."):
        with_store(opened(store_url(store)), mend)
    repaired, remaining = counts[True], counts[False]
    rest = f", {remaining:,} cannot be repaired" if remaining else ""
    scan.print_summary(f"{repaired:,} repaired{rest}" if repaired or remaining else "no findings")
    if remaining:
        raise typer.Exit(EXIT_FINDINGS)
