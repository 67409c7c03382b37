"""Orphan check: ids whose record points to no node, and impossible histories. An id is checked by its record and the
node that this points to. Others may write meanwhile, so a problem is only reported if the record was the same before
and after the node was read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard, cast

from store.checking.findings import Finding, Fix, mismatch, path_text, value_text
from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import id_record_key, revisions
from store.model.hierarchy import Hierarchy
from store.model.items import Check, Item
from store.model.keys import Key, id_key, revision_key
from store.model.records import MAX_REVISION, is_id, is_revision
from store.reading.pages import PAGE_ITEMS
from store.text import quantity

ATTEMPTS = 10  # to read a record and its node while nobody writes to them
MAX_READ_REVISIONS = 100  # of a node; more are counted in a request of their own


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
            missing = await self._missing(ids)
            suspects = {
                one.id: found
                for one in await self._with_nodes(ids)
                if (found := await self._findings(one, missing[one.id]))
            }
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

    async def _with_nodes(self, ids: Sequence[_Id]) -> list[_Id]:
        """The same ids with the nodes to which their records point."""
        keys = [one.key for one in ids if one.key is not None]
        nodes = dict(zip(keys, await self._store.get(keys, self._reads, strong=True), strict=True))
        return [one._replace(node=nodes[one.key]) if one.key is not None else one for one in ids]

    async def _records(self, ids: Sequence[str]) -> dict[str, Item | None]:
        found = await self._store.get([id_key(node_id) for node_id in ids], self._reads, strong=True)
        return dict(zip(ids, found, strict=True))

    # -- findings ------------------------------------------------------------------------------------------------------

    async def _findings(self, one: _Id, missing: int) -> list[Finding]:
        findings = [self._finding(one, problem) for problem in _revision_problems(one)]
        if one.record is not None and not one.is_on_page:
            return findings  # checked with the page that the record is on
        if not is_id(self._hierarchy, one.id):
            findings.append(self._finding(one, f"{one.id} is not a valid id of a node"))
        elif _is_deleted(one.record):
            if not is_revision(one.record.get("revision")):
                findings.append(self._finding(one, f"the deleted node {one.id} has no revision"))
            elif missing:
                problem = f"{quantity(missing, 'revision')} of the deleted node {one.id} missing"
                findings.append(self._finding(one, problem))
        elif not one.has_node:
            findings.append(await self._orphan(one))
        return findings

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
        record, key = one.record, one.key
        checks = (Check(key, {"id": one.node.get("id") if one.node else None}),) if key else ()
        history = revisions(one.id, MAX_REVISION)
        last = await self._store.range(history, self._reads, limit=1, reverse=True, strong=True)
        if not last or key is None:
            when = {name: (record or {}).get(name) for name in ("tree", "key", "deleted")}
            return Fix(id_key(one.id), None, when, checks)
        values = {
            "tree": key.pk, "key": key.sk, "deleted": self._at, "level": last[0].get("level"),
            "revision": int(cast(str, last[0]["sk"])[1:]), "above": [],
        }  # fmt: skip
        return Fix.of(id_key(one.id), record, values, *checks)

    def _finding(self, one: _Id, problem: str, fix: Fix | None = None) -> Finding:
        return Finding(self._hierarchy.name, path_text(*one.key) if one.key else "", problem, fix)


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
        elif int(digits) > last:
            problems.append(f"history of id {one.id} has revision {int(digits)}, but the node is at {revision}")
    return problems


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
