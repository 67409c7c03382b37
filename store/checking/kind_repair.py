"""Items of kinds, written page by page: what a check finds missing or wrong, what moves of ancestors left outdated, and
all that a class asks for and the marker does not name.

What the marker names and the class does not is kept: another version of the class may ask for it. Each transaction
requires the tree version and the marker that the nodes were read with, and changes no node, so the version stays as it
is. What the class asks for and the marker does not name is written so:

1. The marker names it as what is being made. All who read the marker from now on write such items.
2. The versions of the roots and of each tree are raised, so that no write commits that has read the marker before.
3. All trees are passed through until a pass writes nothing, since a subtree may be moved past the first one.
4. The marker names it as made, unless it was taken off meanwhile.

What is made of other things than before is taken off in the first step; then the repair waits, until no search runs
that does not know. A hierarchy whose class asks for nothing loses its marker in the first step.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar, cast

from store.checking.check import Check as TableCheck
from store.checking.findings import Finding, RepairResult, path_text
from store.checking.trees import NodeItems, NodesPage, Tree
from store.concurrency import RetryPolicy
from store.errors import Conflict, DamagedItem
from store.kinds.marker import Marker, Recipes, marker_key, named, targets
from store.kinds.registry import is_asked
from store.metadata.tree_version import TreeVersion
from store.model.keys import hierarchy_of
from store.model.records import ABSENT, Delete, Put, key_of, size_of
from store.reading import read_marker
from store.writing.transaction import Step, in_transactions

ROUNDS = 20  # to repair one tree or page while others write to it, and of passes until one writes nothing
RETRIES = RetryPolicy(0.02, 0.25)
T = TypeVar("T")


class KindRepair:
    """The items of kinds of all hierarchies of a check; `raise_version` is that of a tree or of roots, and `grace` the
    seconds until all searches know a marker.
    """

    def __init__(self, check: TableCheck, raise_version: Callable[[str], Awaitable[TreeVersion]], grace: float) -> None:
        self._check = check
        self._store = check.store
        self._raise_version = raise_version
        self._grace = grace
        self._found: dict[str, Finding] = {}  # on the markers
        self._targets: dict[str, Recipes] = {}  # of hierarchies whose items are not complete
        self._incomplete: set[str] = set()  # hierarchies of which a tree could not be written
        self._is_first_pass = True
        self._written = 0

    async def begin(self) -> None:
        """Find the hierarchies that lack items, or have too many, and write their markers."""
        if any([await _retried(self._begin, name) for name in self._check.hierarchies]):
            await asyncio.sleep(self._grace)

    async def _begin(self, name: str) -> bool:
        """Write the marker of a hierarchy that lacks items or has too many; whether less can be searched now."""
        hierarchy = self._check.hierarchies[name]
        item, marker, finding = await self._check.marker(name)
        if finding is None:
            return False
        self._found[name] = finding
        if not is_asked(hierarchy):
            await self._store.commit([Delete(marker_key(name), {"n": (item or {}).get("n")})])
            return True
        wanted = self._targets[name] = targets(hierarchy, marker)
        begun = (marker or Marker(name, 0, {})).begun(wanted)
        put = begun.put()
        if marker is None:
            put = Put(put.item, ABSENT if item is None else {one: item.get(one) for one in ("n", "kinds")})
        if begun != marker:
            await self._store.commit([put])
        with contextlib.suppress(DamagedItem):  # which the repair of the roots writes anew
            await _retried(self._raise_version, name)
        return marker is not None and any(begun.parts[one].made != part.made for one, part in marker.parts.items())

    async def tree(self, pk: str) -> AsyncIterator[RepairResult]:
        """Write the items of all nodes of a tree that are not as they are made now."""
        name, reader, pauses = hierarchy_of(pk), self._check.reader(pk), RETRIES.pauses()
        conflicts, after = 0, cast(str | None, "")
        is_raised = name not in self._targets or not self._is_first_pass
        stopped = "written, since other writes to the tree did not stop; repair again later"
        while after is not None:
            try:
                if not is_raised:
                    version, is_raised = await self._raise_version(pk), True
                    if version.moves and any(one.by_tree for one in self._targets[name].values()):
                        running = "all written, since a large move is running; repair again when it has ended"
                        yield self._not_written(pk, running)
                tree = await reader.tree(pk)
                if tree.marker is None:
                    return
                page = await reader.page(tree, after)
                if await self._is_named(tree.marker, page):
                    async for finding in self._write(tree, tree.marker.recipes, page):
                        yield RepairResult(finding, is_fixed=True)
                    after, conflicts = page.last, 0
            except DamagedItem:  # of a running move, which the check of the tree reports
                yield self._not_written(pk, stopped)
                return
            except Conflict:
                conflicts += 1
                if conflicts == ROUNDS:
                    yield self._not_written(pk, stopped)
                    return
                await asyncio.sleep(next(pauses))

    def _not_written(self, pk: str, reason: str) -> RepairResult:
        """Note that the items of a tree are not complete."""
        name = hierarchy_of(pk)
        self._incomplete.add(name)
        return RepairResult(Finding(name, path_text(pk, "#"), f"the search items were not {reason}"), is_fixed=False)

    async def _is_named(self, marker: Marker, page: NodesPage) -> bool:
        """Whether the marker names the levels of all nodes; if not, it is written."""
        hierarchy = self._check.hierarchies[marker.hierarchy]
        levels = {node.record.level for node in page.nodes}
        added = marker.adding(hierarchy, levels)
        if added is marker:
            return True
        await self._store.commit([added.put()])
        present = self._targets.get(hierarchy.name, added.recipes)
        self._targets[hierarchy.name] = named(present, hierarchy, levels)
        return False

    async def _write(self, tree: Tree, recipes: Recipes, page: NodesPage) -> AsyncIterator[Finding]:
        """Write the items of a page, also those that are only outdated; raises Conflict where another write to the tree
        was first.
        """

        def step(node: NodeItems) -> Step[NodeItems]:
            changes = [Put(item) for _, item in node.items if page.stored[key_of(item)] != item]
            return Step(node, changes, sum(size_of(one.item) for one in changes))

        for changes, nodes in in_transactions(map(step, page.nodes), self._store.max_changes - len(tree.checks)):
            if changes:
                await self._store.commit([*changes, *tree.checks])
                self._written += len(changes)
                for node in nodes:
                    if (problem := page.problem(node, recipes)) and hierarchy_of(tree.pk) not in self._targets:
                        yield Finding(hierarchy_of(tree.pk), path_text(*node.record.key), problem)

    async def fill(self) -> AsyncIterator[RepairResult]:
        """Pass through all trees again where items were not complete, until a pass writes nothing."""
        self._is_first_pass = False
        for _ in range(ROUNDS):
            if not self._targets or not self._written:
                return
            self._written = 0
            async for pk in self._check.all_trees():
                if hierarchy_of(pk) in self._targets:
                    async for result in self.tree(pk):
                        yield result
        self._incomplete |= self._targets.keys()

    async def end(self) -> AsyncIterator[RepairResult]:
        """Mark what is written now as complete; yields the findings on the markers."""
        for name, finding in self._found.items():
            is_fixed = name not in self._targets or (name not in self._incomplete and await _retried(self._end, name))
            yield RepairResult(finding, is_fixed)

    async def _end(self, name: str) -> bool:
        """Whether the marker names what was written, unless others have taken it off."""
        marker = await read_marker(self._store, name)
        ended = marker and marker.ended(self._check.hierarchies[name], self._targets[name])
        if ended is None:
            return False
        await self._store.commit([ended.put()])
        return True


async def _retried(work: Callable[[str], Awaitable[T]], name: str) -> T:
    """The result of work that is begun again while other writes come first."""
    pauses = RETRIES.pauses()
    while True:
        try:
            return await work(name)
        except Conflict:
            await asyncio.sleep(next(pauses))
