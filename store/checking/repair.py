"""Repair: the fixes of a check, written by transactions that require what the check has read.

Each transaction on a tree increments its version and adds an empty log item, as every write does, and sets the counts
of the version. Nothing that only a node contains is ever changed or deleted, except that a node gets its id back.

Interrupted moves are finished first. Then come ids, while their records still show which node has lost its id; then the
trees with their items of kinds, for which id records are rewritten; then what has no node; the roots are counted last.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast

from store.checking.check import Check as TableCheck
from store.checking.findings import Finding, Fix, RepairResult, path_text
from store.checking.kind_repair import RETRIES, ROUNDS, KindRepair
from store.checking.sums import TreeReport, expiry_of, number_of
from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import Conflict, rfc3339
from store.metadata.history import REDIRECTS
from store.metadata.moves import MoveTiming
from store.metadata.tree_version import TreeVersion, log_item
from store.model.attributes import Value
from store.model.keys import Index, Key, KeyRange, tree_version_key
from store.model.records import ABSENT, Delete, Item, Put, canonical_item, size_of
from store.writing.move_worker import MoveWorker
from store.writing.transaction import Step, in_transactions

VERSION_CHANGES = 2  # of each transaction on a tree besides its fixes: version and log


class Repair:
    """Repair of the hierarchies of a check; interrupted moves are resumed with `timing`."""

    def __init__(self, check: TableCheck, timing: MoveTiming = MoveTiming()) -> None:
        self._check = check
        self._store = check.store
        self._move_worker = MoveWorker(check.store, timing)
        self._kinds = KindRepair(check, self._raise_version, timing.grace_seconds)
        self._reads = ReadUsage()

    async def run(self) -> AsyncIterator[RepairResult]:
        """Fix what can be fixed; yields all findings. Harmless to repeat, and to stop anywhere.

        Raises Damaged where the engine itself finds the table damaged: what it reads then proves nothing.
        """
        await self._store.check_integrity()
        async for result in self._moves():
            yield result
        async for page in self._check.pages():
            async for result in self._owners(page, only_nodes=True):
                if result.is_fixed:
                    yield result
        await self._kinds.begin()
        async for finding in self._check.moved_nodes():
            yield await self._fixed(finding)
        async for pk in self._check.all_trees():
            async for result in self._tree(pk):
                yield result
            async for result in self._kinds.tree(pk):
                yield result
        async for result in self._kinds.fill():
            yield result
        async for page in self._check.pages():
            async for result in self._owners(page, only_nodes=False):
                yield result
            for finding in self._check.others(page):
                yield await self._fixed(finding)
        async for result in self._kinds.end():
            yield result
        for name in self._check.hierarchies:
            async for result in self._tree(name):
                yield result

    async def _moves(self) -> AsyncIterator[RepairResult]:
        """Finish interrupted moves; those that no tree version lists are only ended, since others may write there."""
        for move in await self._move_worker.finish(self._check.hierarchies):
            problem = f"the move {move.id} was interrupted"
            yield RepairResult(Finding(move.hierarchy, path_text(*move.source), problem), is_fixed=True)
        for finding in await self._check.moves():
            yield await self._fixed(finding)

    # -- trees ---------------------------------------------------------------------------------------------------------

    async def _tree(self, pk: str) -> AsyncIterator[RepairResult]:
        pauses = RETRIES.pauses()
        for attempt in range(ROUNDS):
            report = await self._check.tree(pk, is_counted=attempt == 0)
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
        bump = _VersionBump(self._store, report.pk, report.version, report.number, report.sums)
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

    # -- single items --------------------------------------------------------------------------------------------------

    async def _owners(self, page: Sequence[Item], *, only_nodes: bool) -> AsyncIterator[RepairResult]:
        """Give nodes their ids back, and unless `only_nodes` replace or remove what has no node."""
        pauses = RETRIES.pauses()
        for _ in range(ROUNDS):
            conflicts, rest = 0, []
            for finding in await self._check.owners(page, () if only_nodes else self._check.hierarchies):
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
        """Fix items that are in no count; raises Conflict where another write was first."""
        async for keys in in_chunks(fix.others, self._store.max_changes - len(fix.checks)):
            await self._store.commit([*map(Delete, keys), *fix.checks])
        (item,) = await self._get([fix.key])
        change = Delete(fix.key, fix.when) if fix.values is None else _put(fix.key, item, [fix])
        bump = (await self._bump(fix.key.pk)).changes() if _is_node(fix.key) else []
        await self._store.commit([change, *fix.checks, *bump])

    async def _bump(self, pk: str) -> "_VersionBump":
        """The version bump of a tree whose true counts are not known, so that they stay until the tree is checked."""
        (version,) = await self._get([tree_version_key(pk)])
        log = KeyRange(Index.TABLE, pk, "!0", "!:")
        last = await self._store.range(log, self._reads, limit=1, reverse=True, strong=True)
        logged = int(cast(str, last[0]["sk"])[1:]) if last else 0
        return _VersionBump(self._store, pk, version, max(number_of(version), logged), {})

    async def _raise_version(self, pk: str) -> TreeVersion:
        """Let all writes to a tree fail that have read its version before; returns that. Raises Conflict."""
        (version,) = await self._get([tree_version_key(pk)])
        found = TreeVersion.of(pk, version)
        if version is not None:
            await self._store.commit((await self._bump(pk)).changes())
        return found

    async def _fixed(self, finding: Finding) -> RepairResult:
        """Fix the one item of a finding; where another write was first, the next repair checks it again."""
        try:
            if finding.fix is not None:
                await self._fix(finding.fix)
        except Conflict:
            return RepairResult(finding, is_fixed=False)
        return RepairResult(finding, is_fixed=finding.fix is not None)

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self._store.get(keys, self._reads, strong=True)


class _VersionBump:
    """The changes of each transaction on a tree besides its own: the version incremented, and an empty log item."""

    def __init__(self, store: Store, pk: str, version: Item | None, number: int, sums: Mapping[str, Value]) -> None:
        self._store = store
        self._pk = pk
        self._version = version
        self._number = number
        self._sums: Item = {
            "shape": {}, "aliases": False, **(version or {}), "log_expires": expiry_of(version), **sums,
        }  # fmt: skip

    def changes(self) -> list[Put]:
        """The changes for the next transaction; each follows on the one before."""
        when = ABSENT if self._version is None else {"n": self._version.get("n")}
        now = self._store.now()
        version = TreeVersion(self._pk, self._number, log_expires=expiry_of(self._sums) or 0)
        log = log_item(version, [], rfc3339(now), now)
        self._number += 1
        key = tree_version_key(self._pk)
        self._version = {**self._sums, "pk": key.pk, "sk": key.sk, "n": self._number}
        return [Put(self._version, when), log]


def _put(key: Key, item: Item | None, fixes: Sequence[Fix]) -> Put:
    """The item with all these fixes, on condition that the attributes that they change are as they were read."""
    values = {name: value for fix in fixes for name, value in (fix.values or {}).items()}
    when = {name: value for fix in fixes for name, value in fix.when.items()}
    return Put(canonical_item({**(item or {}), "pk": key.pk, "sk": key.sk, **values}), when)


def _is_node(key: Key) -> bool:
    return key.sk.startswith("#") and not key.pk.startswith(f"{REDIRECTS}#")
