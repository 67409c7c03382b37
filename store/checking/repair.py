"""Repair: the fixes of a check, written by transactions that require what the check has read.

Each transaction on a tree increments its version and adds an empty log item, as every write does, and sets the counts
of the version. Nothing that only a node contains is ever changed or deleted, except that a node gets its id back.

Interrupted moves are finished first. Then come ids, while their records still show which node has lost its id; then the
trees, whose id records are rewritten; then ids without a node, items that no node has, and those that nodes lack; the
roots are counted last.

Of what follows from nodes missing and wrong items are written, those of no node are removed.
A repair also rewrites items that are outdated by moves of ancestors. Each transaction requires the tree version that
the nodes were read with, and changes no node, so the version stays as it is. Where a marker is missing, there are
further passes until one of them writes nothing: a subtree may be moved past the first one.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import cast

from store.background_moves.timing import MoveTiming
from store.background_moves.worker import MoveWorker
from store.checking.check import Check as TableCheck
from store.checking.derived_items import PAGE_NODES, DerivedCheck, DerivedNode, NodesPage, Strays, problem_of
from store.checking.findings import Finding, Fix, RepairResult, path_text
from store.checking.suspects import Suspects, TreeSuspects
from store.checking.trees import VERSION_NAMES, TreeReport, number_of
from store.concurrency import in_chunks
from store.edits.transaction import Step, in_transactions
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict
from store.metadata.change_log import log_item
from store.metadata.tree_version import TreeVersion, encode_moves
from store.model.attributes import Value
from store.model.items import ABSENT, Change, Check, Delete, Item, Put, canonical_item, key_of, size_of
from store.model.keys import Index, Key, hierarchy_of, tree_version_key
from store.model.ranges import KeyRange
from store.retry import RetryPolicy
from store.text import rfc3339

VERSION_CHANGES = 2  # of each transaction on a tree besides its fixes: version and log
ROUNDS = 20  # of a tree or page while others write to it, and of passes until one writes nothing or finds no more
RETRIES = RetryPolicy(0.02, 0.25)


class DerivedRepair:
    """The repair of what follows from the nodes of all hierarchies of a check.

    `filling` are the hierarchies whose items are not complete, `incomplete` those of which a tree could not be written,
    so that they may not be marked as complete.
    """

    def __init__(self, check: TableCheck) -> None:
        self._check = check
        self._store = check.store
        self._derived: Mapping[str, DerivedCheck] = check.derived
        self.filling: set[str] = set()
        self.incomplete: set[str] = set()
        self._written = 0
        self._after: str | None = None

    async def begin(self) -> None:
        """Find the hierarchies that lack items."""
        self.filling = {name for name in self._derived if await self._check.is_incomplete(name)}

    async def nodes(self, pk: str, sort_keys: Collection[str]) -> AsyncIterator[RepairResult]:
        """Write the items of some nodes of a tree that are not as they are made now."""
        keys = sorted(sort_keys)
        for start in range(0, len(keys), PAGE_NODES):
            async for result in self._page(pk, keys[start : start + PAGE_NODES]):
                yield result

    async def _tree(self, pk: str) -> AsyncIterator[RepairResult]:
        """Write the items of all nodes of a tree that are not as they are made now."""
        self._after = ""
        while self._after is not None:
            async for result in self._page(pk, self._after):
                yield result

    async def _page(self, pk: str, nodes: str | Sequence[str]) -> AsyncIterator[RepairResult]:
        """Write the items of these nodes, or of a page of nodes after a sort key; `_after` is then that of the next."""
        search, pauses = self._derived[hierarchy_of(pk)], RETRIES.pauses()
        for _ in range(ROUNDS):
            page = await search.page(pk, nodes)
            if page is None:
                break
            try:
                async for result in self._write(search, pk, page):
                    yield result
                self._after = page.last
                return
            except Conflict:
                await asyncio.sleep(next(pauses))
        self._after = None
        self.incomplete.add(search.hierarchy.name)
        problem = "what follows from nodes was not written, since other writes to the tree did not stop"
        yield RepairResult(search.finding(Key(pk, "#"), f"{problem}; repair again later"), is_fixed=False)

    async def _write(self, search: DerivedCheck, pk: str, page: NodesPage) -> AsyncIterator[RepairResult]:
        """Write the items of a page; raises Conflict where another write to the tree was first."""
        when = ABSENT if page.version is None else {"n": page.version.get("n")}
        refused: set[str] = set()  # ids of nodes of which something may not be written

        def step(node: DerivedNode) -> Step[DerivedNode]:
            changes: list[Change] = []
            for kind, item in node.items:
                stored = page.stored[key_of(item)]
                if stored is None or not kind.is_same(stored, item):
                    try:
                        changes.append(kind.put(item, stored, page.stored))
                    except BadInput:
                        refused.add(node.record.id)
            return Step(node, changes, sum(size_of(one.item) for one in changes if isinstance(one, Put)))

        max_changes = self._store.max_changes - 1  # besides the tree version that is required
        for changes, nodes in in_transactions(map(step, page.nodes), max_changes):
            if changes:
                await self._store.commit([*changes, Check(tree_version_key(pk), when)])
                self._written += len(changes)
            for node in nodes:
                problem = problem_of(page, node)
                is_fixed = node.record.id not in refused
                if problem and not (is_fixed and (search.hierarchy.name in self.filling or not changes)):
                    yield RepairResult(search.finding(node.record.key, problem), is_fixed=is_fixed)

    async def fill(self) -> AsyncIterator[RepairResult]:
        """Write the items of all nodes where they were not complete, in passes until one writes nothing; and remove the
        items that no node has, there and in hierarchies without search.
        """
        for _ in range(ROUNDS if self.filling else 0):
            self._written = 0
            async for page in self._store.scan(self._check.reads):
                for pk in [cast(str, item["pk"]) for item in page if item["sk"] == "!"]:
                    if pk.partition("#")[0] in self.filling and "#" in pk:
                        async for result in self._tree(pk):
                            yield result
            if not self._written:
                break
        else:
            self.incomplete |= self.filling
        unwanted = [search for search in self._derived.values() if search.hierarchy.name in self.filling]
        unwanted += [one for name, one in self._derived.items() if any(self._check.unwanted.get(name, {}).values())]
        if unwanted:
            async for page in self._store.scan(self._check.reads):
                for search in unwanted:
                    for found in await search.strays(page):
                        yield await self.remove(found)

    async def remove(self, found: Strays) -> RepairResult:
        """Remove items that no node has; where another write was first, the next repair checks again."""
        try:
            async for keys in in_chunks(found.keys, self._store.max_changes - len(found.checks)):
                await self._store.commit([*map(Delete, keys), *found.checks])
        except Conflict:
            return RepairResult(found.finding, is_fixed=False)
        return RepairResult(found.finding, is_fixed=True)


class Repair:
    """Repair of the hierarchies of a check; interrupted moves are resumed with `timing`."""

    def __init__(self, check: TableCheck, timing: MoveTiming = MoveTiming()) -> None:
        self._check = check
        self._store = check.store
        self._move_worker = MoveWorker(check.store, timing, hierarchies=check.hierarchies)
        self._derived = DerivedRepair(check)
        self._reads = ReadUsage()
        self._fixes = 0

    async def run(self) -> AsyncIterator[RepairResult]:
        """Fix what can be fixed; yields all findings. Harmless to repeat, and to stop anywhere.

        Raises Damaged where the engine itself finds the table damaged: what it reads then proves nothing.
        """
        await self._store.check_integrity()
        async for result in self._moves():
            yield result
        await self._derived.begin()
        suspects = await self._check.suspects(self._derived.filling, exactly=True)
        async for result in self._all(suspects):
            yield result
        for _ in range(ROUNDS):  # where there are more than are kept at once
            if not suspects.has_more or not self._fixes:
                break
            self._fixes = 0
            suspects = await self._check.suspects(self._derived.filling, exactly=True, repeated=True)
            async for result in self._all(suspects):
                if result.is_fixed:
                    yield result
        async for result in self._derived.fill():
            yield result
        async for finding in self._check.markers():
            is_complete = finding.hierarchy not in self._derived.incomplete
            yield await self._fixed(finding) if is_complete else RepairResult(finding, is_fixed=False)
        async for finding in self._check.roots(suspects):
            yield await self._fixed(finding)

    async def _all(self, suspects: Suspects) -> AsyncIterator[RepairResult]:
        """Fix all suspects but for the roots."""
        async for page in self._check.id_pages(suspects):
            async for result in self._ids(page, only_nodes=True):
                if result.is_fixed:
                    yield self._counted(result)
        async for finding in self._check.moved_nodes(suspects):
            yield self._counted(await self._fixed(finding))
        for pk in sorted(suspects.trees):
            async for result in self._tree(pk, suspects.trees[pk]):
                yield self._counted(result)
        async for page in self._check.id_pages(suspects):
            async for result in self._ids(page, only_nodes=False):
                yield self._counted(result)
        for finding in self._check.unknown(suspects):
            yield RepairResult(finding, is_fixed=False)
        async for stray in self._check.strays(suspects):
            yield self._counted(await self._derived.remove(stray))
        for pk in sorted(suspects.trees):  # what others have wrongly taken is free by now
            async for result in self._derived.nodes(pk, suspects.trees[pk].derived):
                yield self._counted(result)

    def _counted(self, result: RepairResult) -> RepairResult:
        self._fixes += result.is_fixed
        return result

    async def _moves(self) -> AsyncIterator[RepairResult]:
        """Finish interrupted moves; those that no tree version lists are only ended, since others may write there."""
        for move in await self._move_worker.finish(self._check.hierarchies):
            problem = f"the move {move.id} was interrupted"
            yield RepairResult(Finding(move.hierarchy, path_text(*move.source), problem), is_fixed=True)
        for finding in await self._check.moves():
            yield await self._fixed(finding)

    # -- trees ---------------------------------------------------------------------------------------------------------

    async def _tree(self, pk: str, suspects: TreeSuspects) -> AsyncIterator[RepairResult]:
        pauses = RETRIES.pauses()
        for _ in range(ROUNDS):
            report = await self._check.tree(pk, suspects)
            if not any(finding.fix for finding in report.findings):
                break
            try:
                async for finding in self._fix_tree(report):
                    yield RepairResult(finding, is_fixed=True)
            except Conflict:
                await asyncio.sleep(next(pauses))
        for finding in report.findings:
            yield RepairResult(finding, is_fixed=False)

    async def _fix_tree(self, report: TreeReport) -> AsyncIterator[Finding]:
        """The findings of a tree as they are fixed, transaction by transaction; raises Conflict for another write."""
        counts: Item = {"moves": encode_moves(report.moves.refs) or None}
        counts |= {} if report.shape is None else {"shape": cast(Value, report.shape)}
        counts |= {} if report.redirects is None else {"aliases": report.redirects}
        bump = _VersionBump(report.pk, report.version, report.number, counts)
        version_key = tree_version_key(report.pk)
        # The first transaction, which may have no other changes, fixes the version.
        found: dict[Key, list[Finding]] = {version_key: []}
        for finding in report.findings:
            if finding.fix is not None:
                found.setdefault(finding.fix.key, []).append(finding)

        def step(key: Key, item: Item | None) -> Step[list[Finding]]:
            if key == version_key:
                return Step(found[key], [], 0)
            put = _put(key, item, [finding.fix for finding in found[key] if finding.fix])
            return Step(found[key], [put], size_of(put.item))

        max_changes = self._store.max_changes - VERSION_CHANGES
        async for keys in in_chunks(list(found), max_changes):
            steps = map(step, keys, await self._get(keys))
            for changes, fixed in in_transactions(steps, max_changes):
                await self._store.commit([*changes, *bump.changes()])
                for findings in fixed:
                    for finding in findings:
                        yield finding

    # -- ids and single items ------------------------------------------------------------------------------------------

    async def _ids(self, page: Sequence[Item], *, only_nodes: bool) -> AsyncIterator[RepairResult]:
        """Give nodes their ids back, and unless `only_nodes` replace records of ids without a node."""
        pauses = RETRIES.pauses()
        for _ in range(ROUNDS):
            conflicts, rest = 0, []
            for finding in await self._check.orphans(page):
                fix = finding.fix
                if fix is None or (only_nodes and not _is_node(fix.key)):
                    rest.append(finding)
                    continue
                try:
                    await self._fix(fix)
                    yield RepairResult(finding, is_fixed=True)
                except Conflict:
                    conflicts += 1
                    rest.append(finding)
            if not conflicts:
                break
            await asyncio.sleep(next(pauses))
        for finding in rest:
            yield RepairResult(finding, is_fixed=False)

    async def _fix(self, fix: Fix) -> None:
        """Fix one item that is in no count; raises Conflict where another write was first."""
        (item,) = await self._get([fix.key])
        change = Delete(fix.key, fix.when) if fix.values is None else _put(fix.key, item, [fix])
        bump = (await self._bump(fix.key.pk)).changes() if _is_node(fix.key) else []
        await self._store.commit([change, *fix.checks, *bump])

    async def _bump(self, pk: str) -> "_VersionBump":
        """The version bump of a tree whose true counts are not known; they stay until the tree is checked."""
        (version,) = await self._get([tree_version_key(pk)])
        log = KeyRange(Index.TABLE, pk, "!0", "!:")
        last = await self._store.range(log, self._reads, limit=1, reverse=True, strong=True)
        logged = int(cast(str, last[0]["sk"])[1:]) if last else 0
        return _VersionBump(pk, version, max(number_of(version), logged))

    async def _fixed(self, finding: Finding) -> RepairResult:
        """Fix the one item of a finding; where another write was first, the next repair checks it again."""
        if finding.fix is None:
            return RepairResult(finding, is_fixed=False)
        try:
            await self._fix(finding.fix)
        except Conflict:
            return RepairResult(finding, is_fixed=False)
        return RepairResult(finding, is_fixed=True)

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self._store.get(keys, self._reads, strong=True)


class _VersionBump:
    """The changes of each transaction on a tree besides its own: the version incremented, and an empty log item."""

    def __init__(self, pk: str, version: Item | None, number: int, counts: Item | None = None) -> None:
        self._pk = pk
        self._version = version
        self._number = number
        known = {name: value for name, value in (version or {}).items() if name in VERSION_NAMES}
        self._counts: Item = {"shape": {}, "aliases": 0, **known, **(counts or {})}

    def changes(self) -> list[Change]:
        """The changes for the next transaction; each follows on the one before."""
        when = ABSENT if self._version is None else {"n": self._version.get("n")}
        now = time.time()
        log_expires = cast(int, self._counts.get("log_expires", 0))
        log = log_item(TreeVersion(self._pk, self._number, log_expires=log_expires), [], rfc3339(now), now)
        self._number += 1
        key = tree_version_key(self._pk)
        self._version = {**self._counts, "pk": key.pk, "sk": key.sk, "n": self._number}
        return [Put(self._version, when), log]


def _put(key: Key, item: Item | None, fixes: Sequence[Fix]) -> Put:
    """The item with all these fixes, on condition that the attributes that they change are as they were read."""
    values = {name: value for fix in fixes for name, value in (fix.values or {}).items()}
    when = {name: value for fix in fixes for name, value in fix.when.items()}
    return Put(canonical_item({**(item or {}), "pk": key.pk, "sk": key.sk, **values}), when)


def _is_node(key: Key) -> bool:
    return key.sk.startswith("#")
