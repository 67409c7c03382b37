"""Repair: the fixes of a check, written by transactions that require what the check has read.

Each transaction on a tree increments its version and adds an empty log item, as every write does, and sets the counts
of the version. Nothing that only a node contains is ever changed or deleted, except that a node gets its id back.

Interrupted moves are finished first. Then come ids, while their records still show which node has lost its id; then the
trees with their search items, for which id records are rewritten; then ids without a node; the roots are counted last.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, cast

from store.checking.check import Check as TableCheck
from store.checking.findings import Finding, Fix, path_text
from store.checking.search_items import NodesPage, SearchCheck
from store.checking.trees_and_ids import TreeReport, expiry_of, number_of
from store.concurrency import RetryPolicy, in_chunks
from store.engine import ReadUsage, Store
from store.errors import Conflict, DamagedItem, rfc3339
from store.kinds.kind import Located
from store.kinds.marker import Marker, Recipes, marker_key, named, targets
from store.metadata.history import REDIRECTS
from store.metadata.moves import MoveTiming
from store.metadata.tree_version import TreeVersion, encode_moves, log_item
from store.model.attributes import Value
from store.model.keys import Index, Key, KeyRange, hierarchy_of, tree_version_key
from store.model.records import ABSENT, Check, Delete, Item, Put, canonical_item, size_of
from store.writing.move_worker import MoveWorker
from store.writing.transaction import Step, in_transactions

VERSION_CHANGES = 2  # of each transaction on a tree besides its fixes: version and log
ROUNDS = 20  # to repair one tree or page while others write to it, and of passes until one writes nothing
RETRIES = RetryPolicy(0.02, 0.25)


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
        self._search = SearchRepair(check, self._raise_version, timing.grace_seconds)
        self._reads = ReadUsage()

    async def run(self) -> AsyncIterator[RepairResult]:
        """Fix what can be fixed; yields all findings. Harmless to repeat, and to stop anywhere.

        Raises Damaged where the engine itself finds the table damaged: what it reads then proves nothing.
        """
        await self._store.check_integrity()
        async for result in self._moves():
            yield result
        async for page in self._check.pages():
            async for result in self._ids(page, only_nodes=True):
                if result.is_fixed:
                    yield result
        await self._search.begin()
        async for finding in self._check.moved_nodes():
            yield await self._fixed(finding)
        rootless: set[str] = set()
        async for page in self._check.pages():
            for pk in await self._check.trees(page, rootless):
                async for result in self._tree(pk):
                    yield result
                async for result in self._search.tree(pk):
                    yield result
        async for result in self._search.fill():
            yield result
        async for page in self._check.pages():
            async for result in self._ids(page, only_nodes=False):
                yield result
            for finding in self._check.others(page):
                yield await self._fixed(finding)
            async for result in self._search.strays(page):
                yield result
        async for result in self._search.end():
            yield result
        async for finding in self._check.roots():
            yield await self._fixed(finding)

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
            report = await self._check.tree(pk, repeated=attempt > 0)
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
        counts: Item = {
            "shape": cast(Value, report.shape), "moves": encode_moves(report.moves.refs) or None,
            "aliases": report.has_redirects or (report.version or {}).get("aliases") is True,
        }  # fmt: skip
        bump = _VersionBump(self._store, report.pk, report.version, report.number, counts)
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
        if fix.key == tree_version_key(fix.key.pk) and fix.values is not None:  # of the roots, whose log has no gap
            version, log = (await self._bump(fix.key.pk, fix.values)).changes()
            return await self._store.commit([Put(version.item, fix.when), *fix.checks, log])
        (item,) = await self._get([fix.key])
        change = Delete(fix.key, fix.when) if fix.values is None else _put(fix.key, item, [fix])
        bump = (await self._bump(fix.key.pk)).changes() if _is_node(fix.key) else []
        await self._store.commit([change, *fix.checks, *bump])

    async def _bump(self, pk: str, counts: Mapping[str, Value] | None = None) -> "_VersionBump":
        """The version bump of a tree; where its true counts are not known, they stay until the tree is checked."""
        (version,) = await self._get([tree_version_key(pk)])
        log = KeyRange(Index.TABLE, pk, "!0", "!:")
        last = await self._store.range(log, self._reads, limit=1, reverse=True, strong=True)
        logged = int(cast(str, last[0]["sk"])[1:]) if last else 0
        return _VersionBump(self._store, pk, version, max(number_of(version), logged), counts)

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

    def __init__(
        self, store: Store, pk: str, version: Item | None, number: int, counts: Mapping[str, Value] | None
    ) -> None:
        self._store = store
        self._pk = pk
        self._version = version
        self._number = number
        known = {**(version or {}), "log_expires": expiry_of(version)}
        self._counts: Item = {"shape": {}, "aliases": False, **known, **(counts or {})}

    def changes(self) -> list[Put]:
        """The changes for the next transaction; each follows on the one before."""
        when = ABSENT if self._version is None else {"n": self._version.get("n")}
        now = self._store.now()
        version = TreeVersion(self._pk, self._number, log_expires=expiry_of(self._counts) or 0)
        log = log_item(version, [], rfc3339(now), now)
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
    return key.sk.startswith("#") and not key.pk.startswith(f"{REDIRECTS}#")


class SearchRepair:
    """The repair of the search items of all hierarchies of a check; `raise_version` is that of a tree or of roots.

    Missing and wrong ones are written, those of no node removed, those outdated by moves of ancestors rewritten. What
    the marker names and the class does not is kept: another version of the class may search it.

    Each transaction requires the tree version and the marker that the nodes were read with, and changes no node, so the
    version stays as it is. What the class searches and the marker does not name is written so:

    1. The marker names it as what is being made. All who read the marker from now on write such items.
    2. The versions of the roots and of each tree are raised, so that no write commits that has read the marker before.
    3. All trees are passed through until a pass writes nothing, since a subtree may be moved past the first one.
    4. The marker names it as made, unless it was taken off meanwhile.

    What is made of other things than before is taken off in the first step; then the repair waits for `grace` seconds,
    until no search runs that does not know. A hierarchy whose class has no search loses its marker in the first step.

    `incomplete` are the hierarchies of which a tree could not be written, so that they may not be marked as searched.
    """

    def __init__(self, check: TableCheck, raise_version: Callable[[str], Awaitable[TreeVersion]], grace: float) -> None:
        self._check = check
        self._store = check.store
        self._searches = check.searches
        self._raise_version = raise_version
        self._grace = grace
        self._found: dict[str, Finding] = {}  # on the markers
        self._targets: dict[str, Recipes] = {}  # of hierarchies whose items are not complete
        self._is_first_pass = True
        self.incomplete: set[str] = set()
        self._written = 0

    async def begin(self) -> None:
        """Find the hierarchies that lack items, or have too many, and write their markers."""
        is_less = False
        for name, search in self._searches.items():
            finding = await search.check_marker(has_nodes=name in self._check.seen)
            if finding is None:
                continue
            self._found[name] = finding
            pauses = RETRIES.pauses()
            while True:
                try:
                    is_less |= await self._begin(name, search)
                    break
                except Conflict:
                    await asyncio.sleep(next(pauses))
        if is_less:
            await asyncio.sleep(self._grace)

    async def _begin(self, name: str, search: SearchCheck) -> bool:
        """Write the marker of a hierarchy, and raise the version of its roots; whether less can be searched now."""
        key = marker_key(name)
        (item,) = await self._store.get([key], ReadUsage(), strong=True)
        try:
            marker = Marker.of(name, item)
        except DamagedItem:
            marker = None
        if not search.is_asked:
            await self._store.commit([Delete(key, {"n": (item or {}).get("n")})])
            search.marker = None
            return True
        wanted = self._targets[name] = targets(search.hierarchy, marker)
        put = (begun := (marker or Marker(name, 0, {})).begun(wanted)).put()
        if marker is None:
            put = Put(put.item, ABSENT if item is None else {one: item.get(one) for one in ("n", "kinds")})
        if begun != marker:
            await self._store.commit([put])
        await search.read_marker()
        with contextlib.suppress(DamagedItem):  # which the repair of the roots writes anew
            await self._raise_version(name)
        return marker is not None and any(begun.parts[one].made != part.made for one, part in marker.parts.items())

    async def tree(self, pk: str) -> AsyncIterator[RepairResult]:
        """Write the items of all nodes of a tree that are not as they are made now."""
        search, pauses = self._searches[hierarchy_of(pk)], RETRIES.pauses()
        name = search.hierarchy.name
        after: str | None = "" if search.marker is not None else None
        conflicts, is_raised = 0, name not in self._targets or not self._is_first_pass
        problem = "the search items were not written, since other writes to the tree did not stop; repair again later"
        while after is not None:
            try:
                if not is_raised:
                    version, is_raised = await self._raise_version(pk), True
                    if version.moves and any(one.by_tree for one in self._targets[name].values()):
                        problem = "the search items were not all written, since a large move is running; repair again "
                        problem += "when it has ended"
                        self.incomplete.add(name)
                        yield RepairResult(search.finding(Key(pk, "#"), problem), is_fixed=False)
                page = await search.page(pk, after)
                if page is None or conflicts == ROUNDS:
                    self.incomplete.add(name)
                    yield RepairResult(search.finding(Key(pk, "#"), problem), is_fixed=False)
                    return
                if await self._named(search, page):
                    continue
                async for finding in self._write(search, pk, page):
                    yield RepairResult(finding, is_fixed=True)
                after, conflicts = page.last, 0
            except Conflict:
                conflicts += 1
                await asyncio.sleep(next(pauses))

    async def _named(self, search: SearchCheck, page: NodesPage) -> bool:
        """Whether the marker had to be written, since it did not name the level of a node."""
        levels = {node.record.level for node in page.nodes}
        added = page.marker.adding(search.hierarchy, levels)
        if added is page.marker:
            return False
        await self._store.commit([added.put()])
        name = search.hierarchy.name
        self._targets[name] = named(self._targets.get(name, added.recipes), search.hierarchy, levels)
        return True

    async def _write(self, search: SearchCheck, pk: str, page: NodesPage) -> AsyncIterator[Finding]:
        """Write the items of a page; raises Conflict where another write to the tree was first."""
        when = ABSENT if page.version is None else {"n": page.version.get("n")}
        checks = [Check(tree_version_key(pk), when), Check(marker_key(search.hierarchy.name), page.marker.when)]

        def step(node: Located) -> Step[Located]:
            changes = search.changes(page, node)
            return Step(node, changes, sum(size_of(one.item) for one in changes if isinstance(one, Put)))

        max_changes = self._store.max_changes - len(checks)
        for changes, nodes in in_transactions(map(step, page.nodes), max_changes):
            if not changes:
                continue
            await self._store.commit([*changes, *checks])
            self._written += len(changes)
            for node in nodes:
                problem = search.problem(page, node)
                if problem and search.hierarchy.name not in self._targets:
                    yield search.finding(node.record.key, problem)

    async def fill(self) -> AsyncIterator[RepairResult]:
        """Pass through all trees again where items were not complete, until a pass writes nothing."""
        self._is_first_pass = False
        for _ in range(ROUNDS):
            if not self._targets or not self._written:
                return
            self._written = 0
            rootless: set[str] = set()
            async for page in self._check.pages():
                for pk in await self._check.trees(page, rootless):
                    if hierarchy_of(pk) in self._targets:
                        async for result in self.tree(pk):
                            yield result
        self.incomplete |= self._targets.keys()

    async def end(self) -> AsyncIterator[RepairResult]:
        """Mark what is written now as complete; yields the findings on the markers."""
        ended = {name for name in self._targets if name not in self.incomplete and await self._end(name)}
        for name, finding in self._found.items():
            yield RepairResult(finding, name in ended or name not in self._targets)

    async def _end(self, name: str) -> bool:
        """Whether the marker names what was written, unless others have taken it off."""
        search, pauses = self._searches[name], RETRIES.pauses()
        while True:
            marker = await search.read_marker()
            ended = marker and marker.ended(search.hierarchy, self._targets[name])
            if ended is None:
                return False
            try:
                await self._store.commit([ended.put()])
                return True
            except Conflict:
                await asyncio.sleep(next(pauses))

    async def strays(self, page: Sequence[Item]) -> AsyncIterator[RepairResult]:
        """Remove the items on a page that no node has; where another write was first, the next repair checks again."""
        for search in self._searches.values():
            for found in await search.strays(page):
                is_fixed = True
                try:
                    async for keys in in_chunks(found.keys, self._store.max_changes - len(found.checks)):
                        await self._store.commit([*map(Delete, keys), *found.checks])
                except Conflict:
                    is_fixed = False
                yield RepairResult(found.finding, is_fixed)
