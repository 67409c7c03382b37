"""Mending a table: what a check finds and knows to make right, by transactions that require what the check saw.

Each repair of a tree raises its stamp and leaves an empty item in its log, as every write does, and sets the stamp's
counts to what there is. Nothing that only a node says is ever changed or deleted, except that a node gets its id back.

Moves that were left half-way are brought to their ends before all else. Then come ids, while their records still tell
which node has lost its own; then the trees, which write the records of ids anew; then what is left of ids that no node
has; the roots are counted last.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from store.background_moves.timing import MoveTiming
from store.background_moves.worker import MoveWorker
from store.checking.check import Check
from store.checking.findings import Finding, Fix, place
from store.checking.trees import Examined, stamped
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.change_log import log_item
from store.metadata.tree_version import TreeVersion, encode_moves
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import (
    ABSENT,
    MAX_BATCH_BYTES,
    Change,
    Delete,
    Item,
    Put,
    canonical_item,
    size_of,
)
from store.model.keys import Index, Key, tree_version_key
from store.model.ranges import KeyRange
from store.text import rfc3339

SEALS = 2  # the changes that each transaction on a tree has beside its own: stamp and log
ROUNDS = 20  # to mend one tree while others write to it, or while it has more findings than are kept
LONGEST_DELAY_SECONDS = 0.25


class RepairResult(NamedTuple):
    """A finding, and whether it is mended now."""

    finding: Finding
    mended: bool


class Repair:
    """One repair of some hierarchies; `at` is the time of the tombstones that it makes, as text; `met` and `scanned`
    hear what those of a check do.

    Moves that were left half-way go on at `pace`.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        at: str,
        met: Callable[[int], None] = lambda _: None,
        scanned: Callable[[int], None] = lambda _: None,
        pace: MoveTiming = MoveTiming(),
    ) -> None:
        self._store = store
        self._mover = MoveWorker(store, pace)
        self._hierarchies = hierarchies
        self._check = Check(store, hierarchies, at, met, scanned)
        self._reads = ReadUsage()

    async def run(self) -> AsyncIterator[RepairResult]:
        """Mend what can be mended, and tell of it and of all the rest. Harmless to repeat, and to stop anywhere.

        Raises Damaged where the store itself finds that it is not whole: what it tells then proves nothing.
        """
        await self._store.check_integrity()
        async for told in self._moves():
            yield told
        async for page in self._check.pages():
            async for told in self._ids(page, lost=False):
                if told.mended:
                    yield told
        examined: set[str] = set()
        async for page in self._check.pages():
            for pk in await self._check.trees(page, examined):
                async for told in self._tree(pk):
                    yield told
        async for page in self._check.pages():
            async for told in self._ids(page, lost=True):
                yield told
        for name in self._hierarchies:
            async for told in self._roots(name):
                yield told

    async def _moves(self) -> AsyncIterator[RepairResult]:
        """Bring moves to their ends that were left half-way; of those without a stamp nothing is known to be theirs."""
        for move in await self._mover.finish(self._hierarchies):
            path = place(*move.source)
            yield RepairResult(
                Finding(move.hierarchy, path, f"the move {move.id} had not come to its end"), mended=True
            )
        for finding in await self._check.moves():
            yield await self._mend_alone(finding)

    # -- trees ---------------------------------------------------------------------------------------------------------

    async def _tree(self, pk: str) -> AsyncIterator[RepairResult]:
        for attempt in range(ROUNDS):
            examined = await self._check.examine(pk, again=attempt > 0)
            if not any(finding.mend for finding in examined.findings):
                break
            try:
                async for finding in self._mended(examined):
                    yield RepairResult(finding, mended=True)
            except Conflict:
                await _pause(attempt)
        for finding in examined.findings:
            yield RepairResult(finding, mended=False)

    async def _mended(self, examined: Examined) -> AsyncIterator[Finding]:
        """The findings of a tree as they are mended, batch by batch; raises Conflict where somebody else writes."""
        counts: Item = {
            "shape": cast(Value, examined.shape), "aliases": examined.aliases,
            "moves": encode_moves(move.running for move in examined.moves) or None,
        }  # fmt: skip
        seal = _VersionBump(examined.pk, examined.stamp, examined.number, counts)
        waiting: list[Finding] = []  # what is wrong with the stamp, which the first transaction makes right
        found: dict[Key, list[Finding]] = {}
        for finding in examined.findings:
            if finding.mend is not None and finding.mend.key == tree_version_key(examined.pk):
                waiting.append(finding)
            elif finding.mend is not None:
                found.setdefault(finding.mend.key, []).append(finding)
        keys, most = list(found), self._store.max_changes - SEALS
        for start in range(0, max(1, len(keys)), most):
            batch = {key: found[key] for key in keys[start : start + most]}
            for puts, mended in _transactions(batch, await self._get(list(batch))):
                await self._store.commit([*puts, *seal.changes()])
                for finding in [*waiting, *mended]:
                    yield finding
                waiting = []

    # -- ids and roots -------------------------------------------------------------------------------------------------

    async def _ids(self, page: Sequence[Item], *, lost: bool) -> AsyncIterator[RepairResult]:
        """Give nodes their ids back, and with `lost` mend as well what is left of ids that no node has."""
        for attempt in range(ROUNDS):
            conflicts, rest = 0, []
            for finding in await self._check.strays(page):
                mend = finding.mend
                if mend is None or not (lost or _is_node(mend.key)):
                    rest.append(finding)
                    continue
                try:
                    await self._mend_id(mend)
                    yield RepairResult(finding, mended=True)
                except Conflict:
                    conflicts += 1
                    rest.append(finding)
            if not conflicts:
                break
            await _pause(attempt)
        for finding in rest:
            yield RepairResult(finding, mended=False)

    async def _mend_id(self, mend: Fix) -> None:
        (item,) = await self._get([mend.key])
        if mend.values is None:
            return await self._store.commit([Delete(mend.key, mend.when), *mend.checks])
        changes: list[Change] = [_put(mend.key, item, [mend]), *mend.checks]
        if _is_node(mend.key):
            changes += (await self._seal(mend.key.pk)).changes()
        return await self._store.commit(changes)

    async def _seal(self, pk: str) -> "_VersionBump":
        """The seal of a tree whose true counts are not known; they stay as they are until the tree is examined."""
        (stamp,) = await self._get([tree_version_key(pk)])
        logs = KeyRange(Index.TABLE, pk, "!0", "!:")
        last = await self._store.range(logs, self._reads, limit=1, reverse=True, strong=True)
        logged = int(cast(str, last[0]["sk"])[1:]) if last else 0
        return _VersionBump(pk, stamp, max(stamped(stamp), logged))

    async def _roots(self, name: str) -> AsyncIterator[RepairResult]:
        finding = await self._check.roots(name)
        if finding is not None:
            yield await self._mend_alone(finding)

    async def _mend_alone(self, finding: Finding) -> RepairResult:
        """Mend one item that no other transaction counts; where somebody was first it is judged at the next repair."""
        mend = finding.mend
        if mend is None:
            return RepairResult(finding, mended=False)
        (item,) = await self._get([mend.key])
        try:
            await self._store.commit([_put(mend.key, item, [mend])])
        except Conflict:
            return RepairResult(finding, mended=False)
        return RepairResult(finding, mended=True)

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self._store.get(keys, self._reads, strong=True)


class _VersionBump:
    """What each transaction on a tree has beside its own changes: the stamp raised from what it was, and a log item."""

    def __init__(self, pk: str, stamp: Item | None, number: int, counts: Item | None = None) -> None:
        self._pk = pk
        self._stamp = stamp
        self._number = number
        self._counts: Item = {"shape": {}, "aliases": 0, **(stamp or {}), **(counts or {})}

    def changes(self) -> list[Change]:
        """The changes for the next transaction; each follows on the one before."""
        when = ABSENT if self._stamp is None else {"n": self._stamp.get("n")}
        now = time.time()
        kept = cast(int, self._counts.get("log_expires", 0))
        log = log_item(TreeVersion(self._pk, self._number, log_expires=kept), [], rfc3339(now), now)
        self._number += 1
        key = tree_version_key(self._pk)
        self._stamp = {**self._counts, "pk": key.pk, "sk": key.sk, "n": self._number}
        return [Put(self._stamp, when), log]


def _transactions(
    found: Mapping[Key, Sequence[Finding]], items: Sequence[Item | None]
) -> Iterator[tuple[list[Change], list[Finding]]]:
    """The changes that mend what was found at these items, cut where they are too big, and what each cut mends."""
    changes: list[Change] = []
    mended: list[Finding] = []
    size = 0
    for (key, findings), item in zip(found.items(), items, strict=True):
        put = _put(key, item, [finding.mend for finding in findings if finding.mend])
        size += size_of(put.item)
        if changes and size > MAX_BATCH_BYTES:
            yield changes, mended
            changes, mended, size = [], [], size_of(put.item)
        changes.append(put)
        mended += findings
    yield changes, mended


def _put(key: Key, item: Item | None, mends: Sequence[Fix]) -> Put:
    """The item with all these mends, on condition that it is in what they change as it was seen."""
    values = {name: value for mend in mends for name, value in (mend.values or {}).items()}
    when = {name: value for mend in mends for name, value in mend.when.items()}
    return Put(canonical_item({**(item or {}), "pk": key.pk, "sk": key.sk, **values}), when)


def _is_node(key: Key) -> bool:
    return key.sk.startswith("#")


async def _pause(attempt: int) -> None:
    await asyncio.sleep(random.uniform(0, min(LONGEST_DELAY_SECONDS, 0.02 * (attempt + 1))))  # noqa: S311 - no secret
