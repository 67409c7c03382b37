"""What lies under ids and no tree can tell of: records that lead nowhere, former states that cannot be.

An id is judged by its record and by the node that this leads to. Others may write meanwhile, so what looks wrong is
only told where the record is the same after the node was read as it was before.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard, cast

from store.checking.findings import Finding, Fix, place
from store.checking.missing_states import missing_states
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import id_record_key, revisions
from store.model.hierarchy import Hierarchy
from store.model.items import Check, Item
from store.model.keys import Key, id_key
from store.model.records import MAX_REVISION, is_id, is_revision
from store.text import quantity, shorten

ATTEMPTS = 10  # to read a record and its node while nobody writes to them


class _Stray(NamedTuple):
    """An id: its record, the node at the place that this leads to, and what of it came by: record, former states."""

    id: str
    came: bool
    record: Item | None
    node: Item | None
    states: Sequence[Item]

    @property
    def place(self) -> Key | None:
        """Where the record leads, or where the latest state lay where there is no record."""
        return id_record_key(self.record or (self.states[-1] if self.states else {}))

    @property
    def is_at_home(self) -> bool:
        return self.node is not None and self.node.get("id") == self.id


class OrphanCheck:
    """Judges the ids of one hierarchy, a page of the table at a time; `at` is the time that tombstones get."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage, at: str) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads
        self._at = at

    async def judge(self, page: Sequence[Item]) -> list[Finding]:
        """What is wrong with the ids of which anything is on a page of the table."""
        states: dict[str, list[Item]] = {}
        came: dict[str, Item | None] = {}
        for item in page:
            pk, sk = cast(str, item["pk"]), cast(str, item["sk"])
            if pk.startswith(f"id#{self._hierarchy.name}:"):
                states.setdefault(pk[3:], []).extend([item] if sk != "v0" else [])
                came |= {pk[3:]: item} if sk == "v0" else {}
        findings: list[Finding] = []
        records = {**await self._records([node_id for node_id in states if node_id not in came]), **came}
        for _ in range(ATTEMPTS):
            found = [_Stray(one, one in came, record, None, states[one]) for one, record in records.items()]
            missing = await self._missing(found)
            suspects = {
                stray.id: wrong
                for stray in await self._at_home(found)
                if (wrong := await self._wrong(stray, missing[stray.id]))
            }
            again = await self._records(list(suspects))
            findings += [one for node_id in suspects if again[node_id] == records[node_id] for one in suspects[node_id]]
            records = {node_id: record for node_id, record in again.items() if record != records[node_id]}
            if not records:
                break
        return findings

    async def _missing(self, strays: Sequence[_Stray]) -> Counter[str]:
        """How many states are missing of the deleted ones that came by; each has all up to its last one."""
        last = {
            stray.id: cast(int, stray.record["revision"])
            for stray in strays
            if stray.came and _is_deleted(stray.record) and is_revision(stray.record.get("revision"))
        }
        return await missing_states(self._store, last, self._reads)

    async def _at_home(self, strays: Sequence[_Stray]) -> list[_Stray]:
        """The same with the nodes where their records lead."""
        places = [stray.place for stray in strays if stray.place is not None]
        nodes = dict(zip(places, await self._store.get(places, self._reads, strong=True), strict=True))
        return [stray._replace(node=nodes[stray.place]) if stray.place is not None else stray for stray in strays]

    async def _records(self, ids: Sequence[str]) -> dict[str, Item | None]:
        found = await self._store.get([id_key(node_id) for node_id in ids], self._reads, strong=True)
        return dict(zip(ids, found, strict=True))

    # -- judging -------------------------------------------------------------------------------------------------------

    async def _wrong(self, stray: _Stray, missing: int) -> list[Finding]:
        findings = [self._finding(stray, wrong) for wrong in _wrong_states(stray)]
        record = stray.record
        if record is not None and not stray.came:
            return findings  # it is judged when it comes by
        if not is_id(self._hierarchy, stray.id):
            findings.append(self._finding(stray, f"the id {stray.id} is none that a node can have"))
        elif record is not None and "deleted" in record:
            findings += self._wrong_tombstone(stray, record, missing)
        elif not stray.is_at_home:
            findings.append(await self._lost(stray))
        return findings

    def _wrong_tombstone(self, stray: _Stray, record: Item, missing: int) -> list[Finding]:
        if not is_revision(record.get("revision")):
            return [self._finding(stray, f"the deleted node {stray.id} has no revision")]
        wrong = f"{quantity(missing, 'state')} of the deleted node {stray.id} missing"
        return [self._finding(stray, wrong)] if missing else []

    async def _lost(self, stray: _Stray) -> Finding:
        """An id that no node has where its record leads; the node there may have lost it."""
        node, led = stray.node, id_record_key(stray.record or {})
        if node is None or led is None:
            there = "no node" if stray.record else "no record"
            return self._finding(stray, f"the id {stray.id} has {there}", await self._buried(stray))
        other = node.get("id")
        if is_id(self._hierarchy, other) and not await self._is_mistaken(cast(str, other), led):
            wrong = f"the id {stray.id} leads to the node with the id {other}"
            return self._finding(stray, wrong, await self._buried(stray))
        same = Check(id_key(stray.id), {"tree": led.pk, "key": led.sk, "deleted": None})
        wrong = f"the id {stray.id} leads here, but the node says that it is {other}"
        return self._finding(stray, wrong, Fix.of(led, node, {"id": stray.id}, same))

    async def _is_mistaken(self, node_id: str, key: Key) -> bool:
        """Whether a node at a key cannot have this id: no record knows it, or it is that of another node."""
        (record,) = (await self._records([node_id])).values()
        led = id_record_key(record) if record else None
        if led is None or led == key:
            return led is None
        (other,) = await self._store.get([led], self._reads, strong=True)
        return other is not None and other.get("id") == node_id

    async def _buried(self, stray: _Stray) -> Fix:
        """What is left of a lost node becomes a tombstone of its last state that is known, or goes where none is."""
        key, record, led = id_key(stray.id), stray.record, stray.place
        checks = (Check(led, {"id": stray.node.get("id") if stray.node else None}),) if led else ()
        span = revisions(stray.id, MAX_REVISION)
        last = await self._store.range(span, self._reads, limit=1, reverse=True, strong=True)
        if not last or led is None:
            return Fix(key, None, {name: (record or {}).get(name) for name in ("tree", "key", "deleted")}, checks)
        values = {
            "tree": led.pk, "key": led.sk, "deleted": self._at, "level": last[0].get("level"),
            "revision": int(cast(str, last[0]["sk"])[1:]), "above": [],
        }  # fmt: skip
        return Fix.of(key, record, values, *checks)

    def _finding(self, stray: _Stray, wrong: str, mend: Fix | None = None) -> Finding:
        path = place(*stray.place) if stray.place else ""
        return Finding(self._hierarchy.name, path, wrong, mend)


def _is_deleted(record: Item | None) -> TypeGuard[Item]:
    return record is not None and "deleted" in record


def _wrong_states(stray: _Stray) -> list[str]:
    """What is wrong with the former states that came by; the node's own revision, or a tombstone's, bounds them."""
    wrong = []
    gone = stray.record is not None and "deleted" in stray.record
    newest = stray.record if gone else stray.node if stray.is_at_home else None
    revision = (newest or {}).get("revision")
    most = cast(int, revision) - (not gone) if is_revision(revision) else MAX_REVISION
    for state in stray.states:
        digits = cast(str, state["sk"])[1:]
        if not digits.isdigit() or int(digits) != state.get("revision"):
            wrong.append(
                f"the former state {digits} of {stray.id} says that it is {shorten(repr(state.get('revision')))}"
            )
        elif int(digits) > most:
            wrong.append(f"there is a former state {int(digits)} of {stray.id}, which is at revision {revision}")
    return wrong
