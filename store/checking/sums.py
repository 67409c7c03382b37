"""Sums: the version of a tree, or of the roots of a hierarchy, compared with its nodes, its log and its redirects.

Roots are counted in an index, which may be behind the table: what is wrong there is only reported when it was the same
twice.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Self, cast

from store.checking.findings import Finding, Findings, Fix, counts_text, mismatch, path_text, value_text
from store.engine import ReadUsage, Store
from store.errors import DamagedItem
from store.metadata.history import redirect_key
from store.metadata.tree_version import StoredVersion, decode_moves, encode_moves, level_at_depth
from store.model.attributes import Value
from store.model.decoding import problem_of
from store.model.hierarchy import LEVEL_NAME, Hierarchy, Undefined
from store.model.keys import Index, Key, KeyRange, hierarchy_of, id_key, listed, siblings, subtree, tree_version_key
from store.model.records import Counts, Item, is_id, nonzero_counts
from store.reading import LOG_PAGE_ITEMS, ActiveMoves, Pages, registered_moves

ATTEMPTS = 10  # to read what belongs together while nobody writes to it
SETTLE_SECONDS = 2.0  # until an index has caught up with the table
MOVE_DAMAGED = "a running move is damaged"
OTHER_WRITES = "other writes to it did not stop; check again later"
SKEW_SECONDS = 3600.0  # by so much log items may expire in another order than that of their numbers


def number_of(version: Item | None) -> int:
    """The number in the item of a tree version, 0 where it is not valid."""
    return _natural(version, "n") or 0


def expiry_of(version: Item | None) -> int | None:
    """The valid `log_expires` in the item of a tree version, None without one."""
    return _natural(version, "log_expires")


def _natural(version: Item | None, name: str) -> int | None:
    found = (version or {}).get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


@dataclass
class TreeReport:
    """A tree, or the roots of a hierarchy, as read: the item of the version, the true counts, the last number in the
    log, and the running moves with an end there.

    `items` are the findings on the items of kinds, which are not fixed with the tree.
    """

    pk: str
    version: Item | None
    findings: Findings = field(default_factory=Findings)
    items: Findings = field(default_factory=Findings)
    undefined: Undefined | None = None
    shape: Counts = field(default_factory=dict)
    has_redirects: bool = False
    logged: int = 0
    moves: ActiveMoves = field(default_factory=ActiveMoves)

    @classmethod
    def unchecked(cls, pk: str, reason: str, items: Findings | None = None) -> Self:
        """The report on what could not be read."""
        report = cls(pk, None, items=items or Findings())
        report.add(f"the {'roots were' if report.is_of_roots else 'tree was'} not checked, since {reason}")
        return report

    @property
    def is_of_roots(self) -> bool:
        return "#" not in self.pk

    @property
    def number(self) -> int:
        """The least number that the version must have."""
        return max(number_of(self.version), self.logged)

    @property
    def sums(self) -> Item:
        """The values of the version that follow from the rest."""
        return {
            "shape": cast(Value, self.shape), "moves": encode_moves(self.moves.refs) or None,
            "aliases": self.has_redirects or (self.version or {}).get("aliases") is True,
            "log_expires": expiry_of(self.version), **(listed(self.pk) if self.is_of_roots else {}),
        }  # fmt: skip

    def add(self, problem: str, **values: Value) -> None:
        """Add a finding on the version, the log or the redirects, with the values that fix it where they are known."""
        fix = Fix.of(tree_version_key(self.pk), self.version, values) if values else None
        hierarchy, path = (self.pk, "") if self.is_of_roots else (hierarchy_of(self.pk), path_text(self.pk, "#"))
        self.findings.add(Finding(hierarchy, path, problem, fix))


class Sums:
    """Checks the sums of one hierarchy."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads

    async def check(self, report: TreeReport) -> None:
        """Add the findings on the version to a report that has the true counts."""
        await self._check_log(report)
        if not report.is_of_roots:
            await self._check_redirects(report)
        _check_version(report)

    async def roots(self) -> TreeReport:
        """The report on the roots of the hierarchy."""
        name, before = self._hierarchy.name, None
        for _ in range(ATTEMPTS):
            (version,) = await self._store.get([tree_version_key(name)], self._reads, strong=True)
            try:
                moves = await registered_moves(self._store, name, version, self._reads)
            except DamagedItem as error:
                return TreeReport.unchecked(name, f"{MOVE_DAMAGED}: {error.problem}")
            report = TreeReport(name, version, shape=await self._listed(version, moves), moves=moves)
            await self.check(report)
            if not report.findings.kept or before == (version, report.sums, report.logged):
                return report
            before = version, report.sums, report.logged
            await asyncio.sleep(SETTLE_SECONDS)
        return TreeReport.unchecked(name, OTHER_WRITES)

    async def _listed(self, version: Item | None, moves: ActiveMoves) -> Counts:
        """The number of roots by level that the index lists, without those that moves hide.

        Of levels that the class lacks those that the version counts are listed, too: another version of the class may
        define them.
        """
        counted = (version or {}).get("shape")
        others = {one.partition("@")[0] for one in counted} if isinstance(counted, dict) else set()
        levels = [*self._hierarchy.levels, *(one for one in sorted(others) if LEVEL_NAME.fullmatch(one))]
        counts = {
            level: await self._store.count(siblings(self._hierarchy.name, level), self._reads)
            for level in dict.fromkeys(levels)
        }
        hidden = [key for key in moves.hidden if key.sk == "#"]
        for item in await self._store.get(hidden, self._reads, strong=True):
            if item is not None and (level := value_text(item.get("level")).strip("'")) in counts:
                counts[level] -= 1
        return {level_at_depth(level, 0): count for level, count in counts.items() if count}

    async def _check_log(self, report: TreeReport) -> None:
        """The numbers of the log go up to the version's without a gap, but for the oldest, which expire."""
        expires: object = None
        log = KeyRange(Index.TABLE, report.pk, "!0", "!:")
        async for items in Pages(self._store, log, self._reads, limit=LOG_PAGE_ITEMS):
            for item in items:
                digits = cast(str, item["sk"])[1:]
                number = int(digits) if digits.isdigit() else report.logged
                self._check_gap(report, number - 1, expires)
                report.logged, expires = number, item.get("expires")
        self._check_gap(report, number_of(report.version), expires)

    def _check_gap(self, report: TreeReport, last: int, expires: object) -> None:
        """Report numbers that lack after the present end of the log up to `last`; `expires` is that of the end."""
        first = report.logged + 1
        soon = self._store.now() + SKEW_SECONDS  # as the clock of another machine may differ so much
        may_be_expired = isinstance(expires, int | float) and expires < soon
        if report.logged and first <= last and not may_be_expired:
            numbers = f"number {first}" if first == last else f"the numbers {first} to {last}"
            report.add(f"the change log lacks {numbers}")

    async def _check_redirects(self, report: TreeReport) -> None:
        """Each redirect points to an id that has a record, of its node or of the deletion."""
        redirects = subtree(redirect_key(Key(report.pk, "#")).pk, "#")
        async for items in Pages(self._store, redirects, self._reads):
            report.has_redirects |= any(item.get("deleted") is not True for item in items)
            ids = [cast(str, item["id"]) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
            keys = [id_key(node_id) for node_id in ids if node_id]
            records = dict(zip(keys, await self._store.get(keys, self._reads, strong=True), strict=True))
            for item, node_id in zip(items, ids, strict=True):
                if isinstance(item.get("id"), str) and records.get(id_key(node_id)) is None:
                    problem = f"the redirect points to id {value_text(item.get('id'))}, which has no record"
                    report.findings.add(Finding(self._hierarchy.name, path_text(report.pk, item["sk"]), problem))


def _check_version(report: TreeReport) -> None:
    """Compare the item of a version with the sums of its report."""
    version, sums = report.version, report.sums
    name = "version of the roots" if report.is_of_roots else "tree version"
    if version is None:
        if report.shape or report.logged or report.has_redirects:
            report.add(f"the {name} is missing", n=report.number, **sums)
        return
    if number_of(version) != report.number or not report.number:
        problem = mismatch("n", value_text(version.get("n")), str(max(1, report.number)))
        report.add(f"{name}: {problem}", n=report.number)
    if nonzero_counts(version.get("shape")) != report.shape:
        problem = mismatch("shape", counts_text(version.get("shape")), counts_text(report.shape))
        report.add(f"{name}: {problem}", shape=sums["shape"])
    # Those three are compared above and below.
    damage = problem_of({**version, "n": 1, "shape": {}, "aliases": False}, StoredVersion)
    if damage:
        report.add(f"{name}: {damage}", moves=sums["moves"], log_expires=sums["log_expires"])
    for ref in () if damage else decode_moves(version):
        if ref not in report.moves.refs:
            report.add(f"{name}: the move {ref.id} is not running", moves=None)
    known = version.get("aliases")  # whether there was ever a redirect
    if not isinstance(known, bool) or (report.has_redirects and not known):
        report.add(
            f"{name}: {mismatch('aliases', value_text(known), value_text(report.has_redirects))}",
            aliases=sums["aliases"],
        )
    for attribute, value in listed(report.pk).items() if report.is_of_roots else ():
        if version.get(attribute) != value:
            problem = mismatch(attribute, value_text(version.get(attribute)), value_text(value))
            report.add(f"{name}: {problem}", **{attribute: value})
