"""Repair of search items: missing and wrong ones are written, those of no node are removed, the marker comes last.

A repair also rewrites items that are outdated by moves of ancestors. Each transaction requires the tree version that
the nodes were read with, and changes no node, so the version stays as it is. Where the marker is missing, there are
further passes until one of them writes nothing: a subtree may be moved past the first one.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from store.checking.check import Check as TableCheck
from store.checking.findings import Finding, path_text
from store.checking.search_items import NodeFinding, NodesPage, SearchCheck
from store.edits.transaction_batches import Step, in_transactions
from store.errors import Conflict
from store.model.items import ABSENT, Change, Check, Delete, Item, Put, size_of
from store.model.keys import hierarchy_of, tree_version_key
from store.retry import RetryPolicy
from store.search.node_items import Located

ROUNDS = 20  # of one page while others write to its tree, and of passes until one writes nothing
RETRIES = RetryPolicy(0.02, 0.25)

Result = tuple[Finding, bool]
"""A finding, and whether it is fixed now."""


class SearchRepair:
    """The repair of the search items of all hierarchies of a check."""

    def __init__(self, check: TableCheck) -> None:
        self._check = check
        self._store = check.store
        self._searches: Mapping[str, SearchCheck] = check.searches
        self._filling: set[str] = set()  # hierarchies whose items are not complete
        self._incomplete: set[str] = set()  # those of which a tree could not be written
        self._written = 0

    async def begin(self) -> AsyncIterator[Result]:
        """Find hierarchies that lack items, and correct the items of moved nodes."""
        for name, search in self._searches.items():
            if search.is_indexed and await search.marker() is not None:
                self._filling.add(name)
            async for found in search.moved():
                yield found.finding, await self._commit(found.changes)

    async def tree(self, pk: str) -> AsyncIterator[Result]:
        """Write the items of all nodes of a tree that are not as they are made now."""
        search, pauses = self._searches[hierarchy_of(pk)], RETRIES.pauses()
        after: str | None = "" if search.is_indexed else None
        conflicts = 0
        while after is not None:
            page = await search.page(pk, after)
            try:
                if page is None or conflicts == ROUNDS:
                    self._incomplete.add(search.hierarchy.name)
                    problem = "the search items were not written, since other writes to the tree did not stop"
                    yield Finding(search.hierarchy.name, path_text(pk, "#"), f"{problem}; repair again later"), False
                    return
                async for finding in self._write(search, pk, page):
                    yield finding, True
                after, conflicts = page.last, 0
            except Conflict:
                conflicts += 1
                await asyncio.sleep(next(pauses))

    async def _write(self, search: SearchCheck, pk: str, page: NodesPage) -> AsyncIterator[Finding]:
        """Write the items of a page; raises Conflict where another write to the tree was first."""
        when = ABSENT if page.version is None else {"n": page.version.get("n")}

        def step(node: Located) -> Step[Located]:
            changes = search.changes(page, node)
            return Step(node, changes, sum(size_of(one.item) for one in changes if isinstance(one, Put)))

        max_changes = self._store.max_changes - 1  # besides the tree version that is required
        for changes, nodes in in_transactions(map(step, page.nodes), max_changes):
            if not changes:
                continue
            await self._store.commit([*changes, Check(tree_version_key(pk), when)])
            self._written += len(changes)
            for node in nodes:
                problem = search.problem(page, node)
                if problem and search.hierarchy.name not in self._filling:
                    yield search.finding(node.record.key, problem)

    async def fill(self) -> AsyncIterator[Result]:
        """Pass through all trees again where items were not complete, until a pass writes nothing."""
        for _ in range(ROUNDS):
            if not self._filling or not self._written:
                return
            self._written = 0
            rootless: set[str] = set()
            async for page in self._check.pages():
                for pk in await self._check.trees(page, rootless):
                    if hierarchy_of(pk) in self._filling:
                        async for result in self.tree(pk):
                            yield result
        self._incomplete |= self._filling

    async def strays(self, page: Sequence[Item]) -> AsyncIterator[Result]:
        """Remove the items on a page of the table that no node has."""
        for search in self._searches.values():
            for found in await search.strays(page):
                yield found.finding, await self._remove(found)

    async def _remove(self, found: NodeFinding) -> bool:
        deletions = [change for change in found.changes if isinstance(change, Delete)]
        checks = [change for change in found.changes if not isinstance(change, Delete)]
        size = self._store.max_changes - len(checks)
        return all([await self._commit([*deletions[n : n + size], *checks]) for n in range(0, len(deletions), size)])

    async def markers(self) -> AsyncIterator[Result]:
        """Write the markers of all hierarchies whose items are right, and remove those that none needs."""
        for name, search in self._searches.items():
            finding = await search.marker(has_nodes=name in self._check.seen)
            if finding is None or finding.fix is None:
                continue
            if name in self._incomplete:
                yield finding, False
            elif finding.fix.values is None:
                yield finding, await self._commit([Delete(finding.fix.key, finding.fix.when)])
            else:
                item: Item = {one: value for one, value in finding.fix.values.items() if value is not None}
                yield finding, await self._commit([Put(item, finding.fix.when)])

    async def _commit(self, changes: Sequence[Change]) -> bool:
        """Whether changes were committed; where another write was first, the next repair checks again."""
        try:
            await self._store.commit(changes)
        except Conflict:
            return False
        return True
