"""Repair of search items: missing and wrong ones are written, those of no node are removed.

A repair also rewrites items that are outdated by moves of ancestors. Each transaction requires the tree version that
the nodes were read with, and changes no node, so the version stays as it is. Where the marker is missing, there are
further passes until one of them writes nothing: a subtree may be moved past the first one.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from store.checking.check import Check as TableCheck
from store.checking.findings import Finding, RepairResult
from store.checking.search_items import NodesPage, SearchCheck, Strays
from store.concurrency import in_chunks
from store.edits.transaction_batches import Step, in_transactions
from store.errors import Conflict
from store.model.items import ABSENT, Check, Delete, Item, Put, size_of
from store.model.keys import Key, hierarchy_of, tree_version_key
from store.retry import RetryPolicy
from store.search.node_items import Located

ROUNDS = 20  # of one page while others write to its tree, and of passes until one writes nothing
RETRIES = RetryPolicy(0.02, 0.25)


class SearchRepair:
    """The repair of the search items of all hierarchies of a check.

    `incomplete` are the hierarchies of which a tree could not be written, so that they may not be marked as searched.
    """

    def __init__(self, check: TableCheck) -> None:
        self._check = check
        self._store = check.store
        self._searches: Mapping[str, SearchCheck] = check.searches
        self._filling: set[str] = set()  # hierarchies whose items are not complete
        self.incomplete: set[str] = set()
        self._written = 0

    async def begin(self) -> None:
        """Find the hierarchies that lack items."""
        for name, search in self._searches.items():
            if search.is_indexed and await search.marker() is not None:
                self._filling.add(name)

    async def tree(self, pk: str) -> AsyncIterator[RepairResult]:
        """Write the items of all nodes of a tree that are not as they are made now."""
        search, pauses = self._searches[hierarchy_of(pk)], RETRIES.pauses()
        after: str | None = "" if search.is_indexed else None
        conflicts = 0
        while after is not None:
            page = await search.page(pk, after)
            try:
                if page is None or conflicts == ROUNDS:
                    self.incomplete.add(search.hierarchy.name)
                    problem = "the search items were not written, since other writes to the tree did not stop"
                    yield RepairResult(search.finding(Key(pk, "#"), f"{problem}; repair again later"), is_fixed=False)
                    return
                async for finding in self._write(search, pk, page):
                    yield RepairResult(finding, is_fixed=True)
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

    async def fill(self) -> AsyncIterator[RepairResult]:
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
        self.incomplete |= self._filling

    async def strays(self, page: Sequence[Item]) -> AsyncIterator[RepairResult]:
        """Remove the items on a page of the table that no node has."""
        for search in self._searches.values():
            for found in await search.strays(page):
                yield RepairResult(found.finding, await self._remove(found))

    async def _remove(self, found: Strays) -> bool:
        """Whether the items are removed; where another write was first, the next repair checks again."""
        try:
            async for keys in in_chunks(found.keys, self._store.max_changes - len(found.checks)):
                await self._store.commit([*map(Delete, keys), *found.checks])
        except Conflict:
            return False
        return True
