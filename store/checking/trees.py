"""Tree reader: one tree with its version, log and redirects, read as a snapshot and checked.

Others may write meanwhile. Each of their transactions increments the tree's version, so what was read between two equal
versions is consistent; a tree whose version changed is read again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from store.checking.findings import Finding, Findings, Fix, counts_text, mismatch, path_text, value_text
from store.checking.ids import missing_revisions
from store.checking.nodes import IdState, NodeChecks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import id_record_key
from store.metadata.redirects import redirect_key, redirected_id
from store.metadata.tree_version import decode_moves
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import Item, key_of
from store.model.keys import Index, Key, id_key, tree_version_key
from store.model.ranges import KeyRange, subtree
from store.model.records import Counts, is_id, is_revision, nonzero_counts
from store.model.undefined_values import Undefined
from store.reading.active_moves import ActiveMoves, active_moves
from store.reading.pages import LOG_PAGE_ITEMS, Pages

ATTEMPTS = 10  # to read a tree while nobody writes to it
SKEW_SECONDS = 3600.0  # by so much log items may expire in another order than that of their numbers


@dataclass
class TreeReport:
    """A tree as it was read: the item of its version, its true counts, and the last number in its log.

    `moves` are the running ones with an end in it. What they hide is not checked: nobody sees it, and only they write
    to it.
    """

    pk: str
    version: Item | None
    undefined: Undefined
    findings: Findings = field(default_factory=Findings)
    shape: Counts = field(default_factory=dict)
    has_redirects: bool = False
    logged: int = 0
    moves: ActiveMoves = field(default_factory=ActiveMoves)

    @property
    def number(self) -> int:
        """The least number that the version must have."""
        return max(number_of(self.version), self.logged)


class TreeReader:
    """Checks the trees of one hierarchy one after another; `on_nodes` is called with each number of nodes checked."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage, on_nodes: Callable[[int], None]) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads
        self._on_nodes = on_nodes
        self._root_ranks: dict[str, str] = {}  # of reordered roots

    async def check(self, pk: str, *, repeated: bool = False) -> TreeReport:
        """The report on a tree; a finding says so where other writes made a consistent read impossible.

        `on_nodes` is not called where the check is `repeated`.
        """
        is_counted = not repeated
        for _ in range(ATTEMPTS):
            (version,) = await self._get([tree_version_key(pk)])
            report = await self._read(pk, version, is_counted=is_counted)
            if await self._get([tree_version_key(pk)]) == [version]:
                return report
            is_counted = False
        report = TreeReport(pk, version, Undefined(self._hierarchy))
        self._report(report, "the tree was not checked, since other writes to it did not stop; check again later")
        return report

    async def _read(self, pk: str, version: Item | None, *, is_counted: bool) -> TreeReport:
        checks = NodeChecks(self._hierarchy, pk, self._root_ranks)
        moves = await active_moves(self._store, decode_moves(version), self._reads)
        async for page in Pages(self._store, subtree(pk, "#"), self._reads):
            items = moves.visible(page)
            for item, id_state in zip(items, await self._id_states(items, moves), strict=True):
                checks.check(item, id_state)
            if is_counted:
                self._on_nodes(len(items))
        checks.finish()
        if moves.moves:  # until they have ended, nobody else writes to what may be theirs
            checks.findings.kept = [replace(finding, fix=None) for finding in checks.findings.kept]
        report = TreeReport(pk, version, checks.undefined, checks.findings, dict(checks.shape), moves=moves)
        await self._check_log(report)
        await self._check_redirects(report)
        self._check_version(report)
        return report

    def _report(self, report: TreeReport, problem: str, **values: Value) -> None:
        """Add a finding on the tree's version, log or redirects."""
        fix = Fix.of(tree_version_key(report.pk), report.version, values) if values else None
        report.findings.add(Finding(self._hierarchy.name, path_text(report.pk, "#"), problem, fix))

    # -- ids of the nodes ----------------------------------------------------------------------------------------------

    async def _id_states(self, items: Sequence[Item], moves: ActiveMoves) -> list[IdState]:
        """The partitions of the nodes' ids; an id that is not valid is not looked up.

        A record that points to the old place of a moved node is taken for one that points to the new place.
        """
        ids = [cast(str, item["id"]) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
        records = await self._get_by_key([id_key(node_id) for node_id in ids if node_id])
        if moves.moves:
            records = {key: _as_moved(record, moves) for key, record in records.items()}
        led = {node_id: id_record_key(records[id_key(node_id)] or {}) for node_id in ids if node_id}
        keys = [led.get(node_id) for node_id in ids]
        elsewhere = [key for key, item in zip(keys, items, strict=True) if key and key != key_of(item)]
        others = await self._get_by_key(elsewhere)
        last = {
            node_id: cast(int, item["revision"]) - 1
            for node_id, item in zip(ids, items, strict=True)
            if node_id and is_revision(item.get("revision"))
        }
        missing = await missing_revisions(self._store, last, self._reads)
        return [
            IdState(records.get(id_key(node_id)), others.get(key) if key else None, missing.get(node_id, 0))
            for node_id, key in zip(ids, keys, strict=True)
        ]

    # -- metadata of the tree ------------------------------------------------------------------------------------------

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
        may_be_expired = isinstance(expires, int | float) and expires < time.time() + SKEW_SECONDS  # by another clock
        if report.logged and first <= last and not may_be_expired:
            numbers = f"number {first}" if first == last else f"the numbers {first} to {last}"
            self._report(report, f"the change log lacks {numbers}")

    async def _check_redirects(self, report: TreeReport) -> None:
        """Each redirect points to an id that has a record, of its node or of the deletion."""
        redirects = subtree(redirect_key(Key(report.pk, "#")).pk, "#")
        async for items in Pages(self._store, redirects, self._reads):
            report.has_redirects |= bool(items)
            ids = [redirected_id(item) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
            records = await self._get_by_key([id_key(node_id) for node_id in ids if node_id])
            for item, node_id in zip(items, ids, strict=True):
                if records.get(id_key(node_id)) is None:
                    problem = f"the redirect points to id {value_text(item.get('id'))}, which has no record"
                    path = path_text(report.pk, item["sk"])
                    report.findings.add(Finding(self._hierarchy.name, path, problem))

    def _check_version(self, report: TreeReport) -> None:
        version = report.version
        shape = cast(Value, report.shape)
        if version is None:
            if report.shape or report.logged or report.has_redirects:
                self._report(
                    report, "the tree version is missing", n=report.number, shape=shape, aliases=report.has_redirects
                )
            return
        if version.get("n") != report.number or not report.number:
            problem = mismatch("n", value_text(version.get("n")), str(max(1, report.number)))
            self._report(report, f"tree version: {problem}", n=report.number)
        if nonzero_counts(version.get("shape")) != report.shape:
            problem = mismatch("shape", counts_text(version.get("shape")), counts_text(report.shape))
            self._report(report, f"tree version: {problem}", shape=shape)
        for ref in decode_moves(version):
            if ref not in report.moves.refs:
                self._report(report, f"tree version: the move {ref.id} is not running", moves=None)
        known = version.get("aliases")  # whether there was ever a redirect
        if not isinstance(known, bool) or (report.has_redirects and not known):
            problem = mismatch("aliases", value_text(known), value_text(report.has_redirects))
            self._report(report, f"tree version: {problem}", aliases=report.has_redirects)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self._store.get(keys, self._reads, strong=True)

    async def _get_by_key(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        return dict(zip(keys, await self._get(keys), strict=True))


def _as_moved(record: Item | None, moves: ActiveMoves) -> Item | None:
    """The record of an id as it will be when these moves have ended."""
    key = id_record_key(record or {})
    moved = moves.current(key) if key is not None else None
    if moved is None or moved == key:
        return record
    return {**(record or {}), "tree": moved.pk, "key": moved.sk}


def number_of(version: Item | None) -> int:
    """The number in the item of a tree version, 0 where it is not valid."""
    number = version.get("n") if version else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0
