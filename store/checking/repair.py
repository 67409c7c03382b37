"""Repair: the fixes of a check, written by transactions that require what the check has read.

Each transaction on a tree increments its version and adds an empty log item, as every write does, and sets the counts
of the version. Nothing that only a node contains is ever changed or deleted, except that a node gets its id back.

Interrupted moves are finished first. Then come ids, while their records still show which node has lost its id; then the
trees with their items of kinds, for which id records are rewritten; then what has no node, and items for which that was
in the way; the roots are counted last.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar, cast

from store.checking.check import Check as TableCheck
from store.checking.check import marker_problems, worded_problems
from store.checking.findings import Finding, Findings, Fix, path_text
from store.checking.sums import TreeReport, expiry_of, number_of
from store.checking.trees import NodeItems, NodesPage, Tree
from store.concurrency import RetryPolicy, in_chunks
from store.engine import ReadUsage, Store
from store.errors import Conflict, DamagedItem, rfc3339
from store.kinds.marker import Marker, Recipes, marker_key, named, targets
from store.kinds.registry import KINDS, is_asked
from store.metadata.history import REDIRECTS
from store.metadata.moves import Move, MoveTiming
from store.metadata.tree_version import TreeVersion, log_item
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Index, Key, KeyRange, hierarchy_of, tree_version_key
from store.model.records import ABSENT, Delete, Item, Put, canonical_item, key_of, size_of
from store.reading import read_marker
from store.writing.move_worker import MoveWorker
from store.writing.transaction import Step, in_transactions

VERSION_CHANGES = 2  # of each transaction on a tree besides its fixes: version and log
ROUNDS = 20  # to repair one tree or page while others write to it, and of passes until one writes nothing
RETRIES = RetryPolicy(0.02, 0.25)
T = TypeVar("T")


class RepairResult(NamedTuple):
    """A finding, and whether it is fixed now."""

    finding: Finding
    is_fixed: bool


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
                yield result
        await self._kinds.begin()
        async for finding in self._check.moved_nodes():
            yield await self._fixed(finding)
        async for pk in self._check.all_trees():
            async for result in self._tree(pk):
                yield result
            async for result in self._kinds.tree(pk):
                yield result
        async for page in self._check.pages():
            async for result in self._owners(page, only_nodes=False):
                yield result
            for finding in self._check.others(page):
                yield await self._fixed(finding)
        async for result in self._kinds.fill():
            yield result
        async for result in self._kinds.end():
            yield result
        for name in self._check.hierarchies:
            async for result in self._tree(name):
                yield result

    async def _moves(self) -> AsyncIterator[RepairResult]:
        """Finish interrupted moves; those that no tree version lists are only ended, since others may write there."""
        moves = await self._move_worker.finish(self._check.hierarchies)
        items = await self._store.get([move.key for move in moves], ReadUsage(), strong=True) if moves else []
        for move, item in zip(moves, items, strict=True):
            has_ended = item is None or Move.of(item).ended_at is not None
            problem = f"the move {move.id} was interrupted{'' if has_ended else ', and stops again: the log says why'}"
            yield RepairResult(Finding(move.hierarchy, path_text(*move.source), problem), is_fixed=has_ended)
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
        """Give nodes their ids back; unless `only_nodes` replace or remove what has no node, and yield what is left."""
        pauses = RETRIES.pauses()
        for _ in range(ROUNDS):
            found = await self._check.owners(page, () if only_nodes else self._check.hierarchies)
            found = [one for one in found if not only_nodes or (one.fix and _is_node(one.fix))]
            results = [await self._fixed(one) for one in found]
            for result in results:
                if result.is_fixed:
                    yield result
            if all(result.is_fixed or result.finding.fix is None for result in results):
                break
            await asyncio.sleep(next(pauses))
        for result in results:
            if not result.is_fixed and not only_nodes:
                yield result

    async def _fix(self, fix: Fix) -> None:
        """Fix items that are in no count; raises Conflict where another write was first."""
        async for keys in in_chunks(fix.others, self._store.max_changes - len(fix.checks)):
            await self._store.commit([*map(Delete, keys), *fix.checks])
        (item,) = await self._get([fix.key])
        change = Delete(fix.key, fix.when) if fix.values is None else _put(fix.key, item, [fix])
        bump = (await self._bump(fix.key.pk)).changes() if _is_node(fix) else []
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
        bump = await self._bump(pk)
        found = TreeVersion.of(pk, bump.version)
        if bump.version is not None:
            await self._store.commit(bump.changes())
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
        self.version = version
        self._number = number
        self._sums: Item = {
            "shape": {}, "aliases": False, **(version or {}), "log_expires": expiry_of(version), **sums,
        }  # fmt: skip

    def changes(self) -> list[Put]:
        """The changes for the next transaction; each follows on the one before."""
        when = ABSENT if self.version is None else {"n": self.version.get("n")}
        now = self._store.now()
        version = TreeVersion(self._pk, self._number, log_expires=expiry_of(self._sums) or 0)
        log = log_item(version, [], rfc3339(now), now)
        self._number += 1
        key = tree_version_key(self._pk)
        self.version = {**self._sums, "pk": key.pk, "sk": key.sk, "n": self._number}
        return [Put(self.version, when), log]


def _put(key: Key, item: Item | None, fixes: Sequence[Fix]) -> Put:
    """The item with all these fixes, on condition that the attributes that they change are as they were read."""
    values = {name: value for fix in fixes for name, value in (fix.values or {}).items()}
    when = {name: value for fix in fixes for name, value in fix.when.items()}
    return Put(canonical_item({**(item or {}), "pk": key.pk, "sk": key.sk, **values}), when)


def _is_node(fix: Fix) -> bool:
    """Whether a fix is of a node, which none removes."""
    return fix.values is not None and fix.key.sk.startswith("#") and not fix.key.pk.startswith(f"{REDIRECTS}#")


class KindRepair:
    """Repair of the items of kinds of all hierarchies, page by page: those that are missing, wrong or outdated by moves
    of ancestors, and all that a class asks for and the marker does not name. `raise_version` is that of a tree or of
    roots.

    What the marker names and the class does not is kept: another version of the class may ask for it. Each transaction
    requires the tree version and the marker that the nodes were read with, and changes no node, so the version stays as
    it is. What the class asks for and the marker does not name is written so:

    1. The marker names it as what is being made. All who read the marker from now on write such items.
    2. The versions of the roots and of each tree are raised, so that no write commits that has read the marker before.
    3. All trees are passed through until a pass writes nothing, since a subtree may be moved past the first one.
    4. The marker names it as made, unless it was taken off meanwhile.

    What is made of other things than before is taken off in the first step; then the repair waits for `grace` seconds,
    until no search runs that does not know. A hierarchy whose class asks for nothing loses its marker there.
    """

    def __init__(self, check: TableCheck, raise_version: Callable[[str], Awaitable[TreeVersion]], grace: float) -> None:
        self._check = check
        self._store = check.store
        self._raise_version = raise_version
        self._grace = grace
        self._found: dict[str, Finding] = {}  # on the markers
        self._before: dict[str, Marker | None] = {}  # the markers of these findings
        self._targets: dict[str, Recipes] = {}  # of hierarchies whose items are not complete
        self._incomplete: set[str] = set()  # hierarchies of which a tree could not be written
        self._left: dict[str, Findings] = {}  # by tree, on items that nodes need and others have
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
            await self._name_levels(hierarchy, marker)
            return False
        self._found[name], self._before[name] = finding, marker
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

    async def _name_levels(self, hierarchy: Hierarchy, marker: Marker | None) -> None:
        """Let the marker name all levels of which the class asks for items, also those without nodes, of which a server
        with another class may write the first one. Kinds that this version of Clade does not know would be taken off,
        so with these the marker stays as it is.
        """
        if marker is not None and not marker.has_others and (named := marker.asking(hierarchy)) is not marker:
            await self._store.commit([named.put()])

    async def tree(self, pk: str) -> AsyncIterator[RepairResult]:
        """Write the items of all nodes of a tree that are not as they are made now."""
        name, reader, pauses = hierarchy_of(pk), self._check.reader(pk), RETRIES.pauses()
        conflicts, after, left = 0, cast(str | None, ""), Findings()
        self._left[pk] = left
        is_raised = name not in self._targets or not self._is_first_pass
        stopped = "written, since other writes to the tree did not stop; repair again later"
        while after is not None:
            try:
                if not is_raised:
                    version, is_raised = await self._raise_version(pk), True
                    kinds = [(one, KINDS[kind]) for kind, one in self._targets[name].items()]
                    conditional = any(kind.has_conditions and kind.is_asked(reader.hierarchy) for _, kind in kinds)
                    # A move leaves items in its tree, a deletion those that it does not know of.
                    if version.moves and (conditional or any(one.by_tree for one, _ in kinds)):
                        running = "all written, since a large move is running; repair again when it has ended"
                        yield self._not_written(pk, running)
                tree = await reader.tree(pk)
                if tree.marker is None:
                    return
                page = await reader.page(tree, after)
                if await self._is_named(tree.marker, page):
                    async for finding in self._write(tree, tree.marker.recipes, page):
                        yield RepairResult(finding, is_fixed=True)
                    if page.others and not await reader.is_unchanged(tree):
                        continue
                    for finding in page.others.values():
                        left.add(finding)
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
        return RepairResult(Finding(name, path_text(pk, "#"), f"its items of kinds were not {reason}"), is_fixed=False)

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

        name = hierarchy_of(tree.pk)

        def step(node: NodeItems) -> Step[NodeItems]:
            items = [item for _, item in node.items if page.stored[key_of(item)] != item]
            items = [item for item in items if (node.record.sk, key_of(item)) not in page.others]
            return Step(node, [page.puts.get(key_of(one)) or Put(one) for one in items], sum(map(size_of, items)))

        for changes, nodes in in_transactions(map(step, page.nodes), self._store.max_changes - len(tree.checks)):
            if changes:
                await self._store.commit([*changes, *tree.checks])
                self._written += len(changes)
                for node in nodes:
                    problem = page.problem(self._check.hierarchies[name], node, recipes)
                    if problem and name not in self._targets:
                        yield Finding(name, path_text(*node.record.key), problem)

    async def fill(self) -> AsyncIterator[RepairResult]:
        """Pass through all trees again where items were not complete, until a pass writes nothing, and through those in
        which others had items, which are removed now unless these need them.
        """
        self._is_first_pass = False
        for pk in [pk for pk, left in self._left.items() if left.kept]:
            async for result in self.tree(pk):
                yield result
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
        """Mark what is written now as complete, unless others have taken it off, or need the same items; yields the
        findings on the markers and on such items.
        """
        for name, finding in self._found.items():
            is_fixed = name not in self._targets or (name not in self._incomplete and await _retried(self._end, name))
            for result in [RepairResult(finding, True)] if is_fixed else await self._parts(finding):
                yield result
        for finding in (one for left in self._left.values() for one in left):
            yield RepairResult(finding, is_fixed=False)

    async def _parts(self, finding: Finding) -> list[RepairResult]:
        """The finding on a marker that could not be fixed as a whole: the part that is fixed, if any, and the rest."""
        hierarchy, before = self._check.hierarchies[finding.hierarchy], self._before[finding.hierarchy]
        left = marker_problems(hierarchy, await read_marker(self._store, finding.hierarchy))
        whole = marker_problems(hierarchy, before)
        fixed = {word: text for word, text in whole.items() if word not in left}
        if not fixed or not left:
            return [RepairResult(finding, is_fixed=False)]
        return [
            RepairResult(replace(finding, problem=worded_problems(fixed)), is_fixed=True),
            RepairResult(replace(finding, problem=worded_problems(left)), is_fixed=False),
        ]

    async def _end(self, name: str) -> bool:
        marker, wanted = await read_marker(self._store, name), self._targets[name]
        is_left = any(left.kept for pk, left in self._left.items() if hierarchy_of(pk) == name)
        written = {kind: one for kind, one in wanted.items() if not (is_left and KINDS[kind].has_conditions)}
        ended = marker and marker.ended(self._check.hierarchies[name], written)
        if ended:
            await self._store.commit([ended.put()])
        return ended is not None and len(written) == len(wanted)


async def _retried(work: Callable[[str], Awaitable[T]], name: str) -> T:
    """The result of work that is begun again while other writes come first."""
    pauses = RETRIES.pauses()
    while True:
        try:
            return await work(name)
        except Conflict:
            await asyncio.sleep(next(pauses))
