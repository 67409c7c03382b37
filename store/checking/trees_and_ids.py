"""Constraints between stored items: ids with their histories, and trees with their versions, logs and redirects.

Others may write meanwhile. A problem of an id is only reported if its record was the same before and after the node was
read that it points to. A tree is read as a snapshot: each transaction on it increments its version, so what was read
between two equal versions is consistent, and a tree whose version changed is read again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeGuard, cast

from store.checking.findings import Finding, Findings, Fix, counts_text, mismatch, path_text, value_text
from store.checking.nodes import IdState, NodeChecks
from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import DamagedItem, quantity
from store.metadata.history import (
    DELETION,
    Revision,
    Tombstone,
    deletion_of,
    id_record_key,
    redirect_key,
    revisions,
)
from store.metadata.tree_version import StoredVersion, decode_moves, encode_moves
from store.model.attributes import Value
from store.model.decoding import problem_of
from store.model.hierarchy import Hierarchy, Undefined
from store.model.keys import Index, Key, KeyRange, id_key, revision_key, subtree, tree_version_key
from store.model.records import MAX_REVISION, Check, Counts, Item, is_id, is_revision, key_of, nonzero_counts
from store.reading import LOG_PAGE_ITEMS, PAGE_ITEMS, ActiveMoves, Pages, registered_moves

ATTEMPTS = 10  # to read a tree, or a record and its node, while nobody writes to them
MAX_READ_REVISIONS = 100  # of a node; more are counted in a request of their own
SKEW_SECONDS = 3600.0  # by so much log items may expire in another order than that of their numbers


def number_of(version: Item | None) -> int:
    """The number in the item of a tree version, 0 where it is not valid."""
    number = version.get("n") if version else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0


def expiry_of(version: Item | None) -> int | None:
    """The valid `log_expires` in the item of a tree version, None without one."""
    expires = version.get("log_expires") if version else None
    return expires if isinstance(expires, int) and not isinstance(expires, bool) and expires >= 0 else None


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
        for attempt in range(ATTEMPTS):
            (version,) = await self._get([tree_version_key(pk)])
            try:
                report = await self._read(pk, version, is_counted=not repeated and attempt == 0)
            except DamagedItem as error:
                report = TreeReport(pk, version, Undefined(self._hierarchy))
                self._report(report, f"the tree was not checked, since a running move is damaged: {error.problem}")
            if await self._get([tree_version_key(pk)]) == [version]:
                return report
        report = TreeReport(pk, version, Undefined(self._hierarchy))
        self._report(report, "the tree was not checked, since other writes to it did not stop; check again later")
        return report

    async def _read(self, pk: str, version: Item | None, *, is_counted: bool) -> TreeReport:
        checks = NodeChecks(self._hierarchy, pk, self._root_ranks)
        moves = await registered_moves(self._store, pk, version, self._reads)
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
        soon = self._store.now() + SKEW_SECONDS  # as the clock of another machine may differ so much
        may_be_expired = isinstance(expires, int | float) and expires < soon
        if report.logged and first <= last and not may_be_expired:
            numbers = f"number {first}" if first == last else f"the numbers {first} to {last}"
            self._report(report, f"the change log lacks {numbers}")

    async def _check_redirects(self, report: TreeReport) -> None:
        """Each redirect points to an id that has a record, of its node or of the deletion."""
        redirects = subtree(redirect_key(Key(report.pk, "#")).pk, "#")
        async for items in Pages(self._store, redirects, self._reads):
            report.has_redirects |= any(item.get("deleted") is not True for item in items)
            ids = [cast(str, item["id"]) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
            records = await self._get_by_key([id_key(node_id) for node_id in ids if node_id])
            for item, node_id in zip(items, ids, strict=True):
                if isinstance(item.get("id"), str) and records.get(id_key(node_id)) is None:
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
        # Those three are compared above and below.
        damage = problem_of({**version, "n": 1, "shape": {}, "aliases": False}, StoredVersion)
        if damage:
            moves = encode_moves(report.moves.refs) or None
            self._report(report, f"tree version: {damage}", moves=moves, log_expires=expiry_of(version))
        for ref in () if damage else decode_moves(version):
            if ref not in report.moves.refs:
                self._report(report, f"tree version: the move {ref.id} is not running", moves=None)
        known = version.get("aliases")  # whether there was ever a redirect
        if not isinstance(known, bool) or (report.has_redirects and not known):
            problem = mismatch("aliases", value_text(known), value_text(report.has_redirects))
            self._report(report, f"tree version: {problem}", aliases=report.has_redirects)

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


class _Id(NamedTuple):
    """An id with its record, the node to which that points, and its earlier revisions on the page.

    `is_on_page` where the record itself is on the page.
    """

    id: str
    is_on_page: bool
    record: Item | None
    node: Item | None
    revisions: Sequence[Item]

    @property
    def key(self) -> Key | None:
        """The key to which the record points, or without a record, where the latest revision was."""
        return id_record_key(self.record or (self.revisions[-1] if self.revisions else {}))

    @property
    def has_node(self) -> bool:
        return self.node is not None and self.node.get("id") == self.id


class OrphanCheck:
    """Checks the ids of one hierarchy, a page of the table at a time; `at` is the time for tombstones."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage, at: str) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads
        self._at = at

    async def check(self, page: Sequence[Item]) -> list[Finding]:
        """The findings on the ids of which any item is on a page of the table."""
        revisions: dict[str, list[Item]] = {}
        on_page: dict[str, Item | None] = {}
        for item in page:
            pk, sk = cast(str, item["pk"]), cast(str, item["sk"])
            if pk.startswith(f"id#{self._hierarchy.name}:"):
                revisions.setdefault(pk[3:], []).extend([item] if sk != "v0" else [])
                on_page |= {pk[3:]: item} if sk == "v0" else {}
        findings: list[Finding] = []
        records = {**await self._records([node_id for node_id in revisions if node_id not in on_page]), **on_page}
        for _ in range(ATTEMPTS):
            ids = [_Id(one, one in on_page, record, None, revisions[one]) for one, record in records.items()]
            missing, nodes = await self._missing(ids), await self._nodes(ids)
            suspects = {one.id: found for one in nodes if (found := await self._findings(one, missing[one.id]))}
            again = await self._records(list(suspects))
            findings += [one for node_id in suspects if again[node_id] == records[node_id] for one in suspects[node_id]]
            records = {node_id: record for node_id, record in again.items() if record != records[node_id]}
            if not records:
                break
        return findings

    async def _missing(self, ids: Sequence[_Id]) -> Counter[str]:
        """The number of missing revisions of the deleted nodes on the page; they have all up to the last one."""
        last = {
            one.id: cast(int, one.record["revision"])
            for one in ids
            if one.is_on_page and _is_deleted(one.record) and is_revision(one.record.get("revision"))
        }
        return await missing_revisions(self._store, last, self._reads)

    async def _nodes(self, ids: Sequence[_Id]) -> list[_Id]:
        """The same ids with the nodes to which their records point."""
        keys = [one.key for one in ids if one.key is not None]
        nodes = dict(zip(keys, await self._store.get(keys, self._reads, strong=True), strict=True))
        return [one._replace(node=nodes[one.key]) if one.key is not None else one for one in ids]

    async def _records(self, ids: Sequence[str]) -> dict[str, Item | None]:
        found = await self._store.get([id_key(node_id) for node_id in ids], self._reads, strong=True)
        return dict(zip(ids, found, strict=True))

    # -- findings ------------------------------------------------------------------------------------------------------

    async def _findings(self, one: _Id, missing: int) -> list[Finding]:
        problems, orphans = _revision_problems(one), []
        if one.record is not None and not one.is_on_page:
            pass  # the id is checked with the page that the record is on
        elif not is_id(self._hierarchy, one.id):
            problems.append(f"{one.id} is not a valid id of a node")
        elif _is_deleted(one.record):
            if problem := problem_of(one.record, Tombstone):
                orphans.append(self._finding(one, f"the deleted node {one.id}: {problem}", await self._tombstone(one)))
            elif missing:
                problems.append(f"{quantity(missing, 'revision')} of the deleted node {one.id} missing")
        elif not one.has_node:
            orphans.append(await self._orphan(one))
        return [*[self._finding(one, problem) for problem in problems], *orphans]

    async def _orphan(self, one: _Id) -> Finding:
        """The finding on an id that the node has not to which its record points; the node may have lost it."""
        node, key = one.node, id_record_key(one.record or {})
        if node is None or key is None:
            lacking = "node" if one.record else "record"
            return self._finding(one, f"id {one.id} has no {lacking}", await self._tombstone(one))
        other = node.get("id")
        if is_id(self._hierarchy, other) and not await self._is_wrong_id(cast(str, other), key):
            problem = f"the record of id {one.id} points to the node with the id {other}"
            return self._finding(one, problem, await self._tombstone(one))
        same = Check(id_key(one.id), {"tree": key.pk, "key": key.sk, "deleted": None})
        problem = mismatch("id", value_text(other), value_text(one.id))
        return self._finding(one, problem, Fix.of(key, node, {"id": one.id}, same))

    async def _is_wrong_id(self, node_id: str, key: Key) -> bool:
        """Whether the node at a key cannot have this id: it has no record, or is that of another node."""
        (record,) = (await self._records([node_id])).values()
        led = id_record_key(record) if record else None
        if led is None or led == key:
            return led is None
        (other,) = await self._store.get([led], self._reads, strong=True)
        return other is not None and other.get("id") == node_id

    async def _tombstone(self, one: _Id) -> Fix:
        """The fix of an id without a node: a tombstone of its last revision, or no record where there is none."""
        record, key, history = one.record, one.key, revisions(one.id, MAX_REVISION)
        last = await self._store.range(history, self._reads, limit=1, reverse=True, strong=True)
        if key is None and last:
            key = id_record_key(last[0])
        checks = (Check(key, {"id": one.node.get("id") if one.node else None}),) if key else ()
        if not last or key is None:
            when = {name: (record or {}).get(name) for name in ("tree", "key", "deleted")}
            return Fix(id_key(one.id), None, when, checks)
        values = {
            "tree": key.pk, "key": key.sk, "deleted": self._at, "deleted_by": None, "level": last[0].get("level"),
            "revision": int(cast(str, last[0]["sk"])[1:]), "above": [],
            **({"rank": key.sk} if record and deletion_of(record) else dict.fromkeys(DELETION)),
        }  # fmt: skip
        return Fix.of(id_key(one.id), record, values, *checks)

    def _finding(self, one: _Id, problem: str, fix: Fix | None = None) -> Finding:
        return Finding(self._hierarchy.name, path_text(*one.key) if one.key else "", problem, fix)


async def missing_revisions(store: Store, last: Mapping[str, int], reads: ReadUsage) -> Counter[str]:
    """The number of missing revisions by id of node, for nodes that must have those from 1 to `last`."""
    missing: Counter[str] = Counter()
    node_ids: dict[Key, str] = {}
    for node_id, number in last.items():
        if number > MAX_READ_REVISIONS:
            missing[node_id] = number - await store.count(revisions(node_id, number + 1), reads)
        else:
            node_ids.update({revision_key(node_id, revision): node_id for revision in range(1, number + 1)})
    async for keys in in_chunks(list(node_ids), PAGE_ITEMS):
        for key, item in zip(keys, await store.get(keys, reads, strong=True), strict=True):
            missing[node_ids[key]] += item is None
    return +missing


def _is_deleted(record: Item | None) -> TypeGuard[Item]:
    return record is not None and "deleted" in record


def _revision_problems(one: _Id) -> list[str]:
    """Problems of the earlier revisions on the page; they are below the node's own revision, or a tombstone's."""
    problems = []
    is_deleted = _is_deleted(one.record)
    newest = one.record if is_deleted else one.node if one.has_node else None
    revision = (newest or {}).get("revision")
    last = cast(int, revision) - (not is_deleted) if is_revision(revision) else MAX_REVISION
    for revision_item in one.revisions:
        digits = cast(str, revision_item["sk"])[1:]
        if not digits.isdigit() or int(digits) != revision_item.get("revision"):
            problem = mismatch("revision", value_text(revision_item.get("revision")), digits.lstrip("0") or digits)
            problems.append(f"history of id {one.id}: {problem}")
        elif damage := problem_of(revision_item, Revision):
            problems.append(f"history of id {one.id}: revision {int(digits)} is damaged: {damage}")
        elif int(digits) > last:
            problems.append(f"history of id {one.id} has revision {int(digits)}, but the node is at {revision}")
    return problems
