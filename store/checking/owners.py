"""Owners: whether the node of each item that is kept because of a node is still so.

Id records, former revisions, items of kinds and moves of nodes name their node by its id. They are checked as they
come, a page of the table at a time. Others may write meanwhile, so what an item names is read twice: a problem is only
reported if the item and its owner were the same before and after all that shows it was read.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self, TypeGuard, cast

from store.checking.findings import Finding, Fix, mismatch, path_text, value_text
from store.checking.sums import ATTEMPTS
from store.checking.trees import TreeReader, is_readable, marker_in, records_of
from store.errors import DamagedItem, quantity, shorten
from store.kinds.items import moved_keys, node_items
from store.kinds.kind import Located, NodeKind
from store.kinds.lineage import STEP, Lineage, MovedNode, Moves, id_hash, lineage, moved_id
from store.kinds.marker import Marker, Recipes, marker_key
from store.kinds.registry import KINDS, is_asked
from store.metadata.history import DELETION, Revision, Tombstone, deletion_of, id_record_key, revisions
from store.model.attributes import Value
from store.model.decoding import problem_of
from store.model.keys import MAX_SEGMENTS, Key, ancestor_keys, depth_of, id_key, tree_version_key
from store.model.records import ABSENT, MAX_REVISION, Check, Item, is_id, is_revision, key_of


def owner_id(item: Item) -> str | None:
    """The full id of the node because of which an item is kept, None for any other item."""
    pk = cast(str, item["pk"])
    if pk.startswith("id#"):
        return pk[3:]
    if pk.startswith("kinds/"):
        return moved_id(item) or None
    kind = _kind_of(item)
    return None if kind is None else kind.owner(item)


def is_of_kind(item: Item) -> bool:
    """Whether an item that has an owner is of a kind."""
    return not cast(str, item["pk"]).startswith(("id#", "kinds/"))


def _kind_of(item: Item) -> NodeKind | None:
    return next((kind for kind in KINDS.values() if kind.owner(item)), None)


class Owner(NamedTuple):
    """A node by its id with some of its items, those of its id, of kinds and of its moves: its id record, and the item
    at the key to which that points, or without a record, where the latest revision was.

    For items of kinds and moves there are also the marker, whether a move runs in the tree, and the lineage with those
    ancestors that were read, which is None where one is missing.
    """

    id: str
    items: Sequence[Item]
    record: Item | None
    key: Key | None
    node: Item | None = None
    marker: Marker | None = None
    is_moving: bool = False
    line: Lineage | None = None

    @property
    def has_record(self) -> bool:
        """Whether its id record is among the items."""
        return any(item["sk"] == "v0" for item in self.ids)

    @property
    def ids(self) -> list[Item]:
        return [item for item in self.items if cast(str, item["pk"]).startswith("id#")]

    @property
    def revisions(self) -> list[Item]:
        return [item for item in self.ids if item["sk"] != "v0"]

    @property
    def kinds(self) -> list[Item]:
        return [item for item in self.items if is_of_kind(item)]

    @property
    def moves(self) -> list[Item]:
        return [item for item in self.items if cast(str, item["pk"]).startswith("kinds/")]

    @property
    def named(self) -> list[Key]:
        """The keys of all that tells whether the items are right: of ids the node alone, of kinds also the version and
        the root of its tree, of moves all its ancestors.
        """
        if self.key is None or len(self.ids) == len(self.items):
            return [self.key] if self.key else []
        return [self.key, tree_version_key(self.key.pk), *ancestor_keys(self.key)[: None if self.moves else 1]]

    def read(self, found: Sequence[Item | None], marker: Marker | None) -> Self:
        """The owner with what was found at the keys that it named."""
        if len(found) < 2:
            return self._replace(node=found[0] if found else None, marker=marker)
        node, version, *above = found
        ids = [item.get("id") if item else None for item in (*above, node)]
        line = lineage(cast(list[str], ids)) if all(isinstance(one, str) for one in ids) else None
        is_moving = version is not None and bool(version.get("moves"))
        return self._replace(node=node, marker=marker, is_moving=is_moving, line=line)

    @property
    def has_node(self) -> bool:
        return self.node is not None and self.node.get("id") == self.id

    @property
    def is_live(self) -> bool:
        """Whether its record, which is no tombstone, points to it."""
        return self.record is not None and not _is_deleted(self.record) and self.has_node

    @property
    def recipes(self) -> Recipes:
        """What its items are made of."""
        return self.marker.recipes if self.marker else {}

    def unchanged(self, *names: str) -> Check:
        """The condition that these attributes of its id record are as they were read."""
        return Check(id_key(self.id), {name: (self.record or {}).get(name) for name in names})


class OwnerCheck:
    """Asks for the owners in one hierarchy; `at` is the time for tombstones."""

    def __init__(self, reader: TreeReader, at: str) -> None:
        self._reader = reader
        self._hierarchy = reader.hierarchy
        self._at = at
        self._is_asked = is_asked(reader.hierarchy)
        self._marker = marker_key(reader.hierarchy.name)

    async def check(self, items: Mapping[str, Sequence[Item]]) -> list[Finding]:
        """The findings on items, by the ids of their owners."""
        owners = await self._owners(items)
        findings = self._unasked(owners)
        for _ in range(ATTEMPTS):
            found = await self._findings(owners)
            if not found:
                break
            stored = await self._reader.get_by_key([key_of(item) for one in found for item in owners[one].items])
            again = {
                one: [now for item in owners[one].items if (now := stored[key_of(item)]) and owner_id(now) == one]
                for one in found  # without items that another node has taken
            }
            before, owners = owners, await self._owners(again)
            findings += [told for one, owner in owners.items() if owner == before[one] for told in found[one]]
            owners = {one: owner for one, owner in owners.items() if owner != before[one]}
        return findings

    async def _owners(self, items: Mapping[str, Sequence[Item]]) -> dict[str, Owner]:
        """The owners as they are now; an id record among the items is not read again."""
        records: dict[str, Item | None] = {
            one: item for one, some in items.items() for item in some if key_of(item) == id_key(one)
        }
        unread = [one for one in items if one not in records]
        records |= zip(unread, await self._reader.get([id_key(one) for one in unread]), strict=True)
        owners = [Owner(one, some, records[one], None) for one, some in items.items()]
        owners = [one._replace(key=id_record_key(one.record or (one.revisions or [{}])[-1])) for one in owners]
        wanted = dict.fromkeys([self._marker, *(key for owner in owners for key in owner.named)])
        found = await self._reader.get_by_key([*wanted])
        marker = marker_in(self._hierarchy, found[self._marker])
        return {owner.id: owner.read([found[key] for key in owner.named], marker) for owner in owners}

    def _unasked(self, owners: Mapping[str, Owner]) -> list[Finding]:
        """The finding on all items of kinds of a class that asks for none, without a marker."""
        keys = [key_of(item) for owner in owners.values() if owner.marker is None for item in owner.kinds]
        if not keys or self._is_asked:
            return []
        problem = f"{quantity(len(keys), 'item')} of search or unique values, which its class does not ask for"
        return [self._finding(None, problem, Fix.removing(keys, Check(self._marker, ABSENT)))]

    async def _findings(self, owners: Mapping[str, Owner]) -> dict[str, list[Finding]]:
        """The findings by the ids of the owners that have any."""
        last = {
            one: cast(int, owner.record["revision"])
            for one, owner in owners.items()
            if owner.has_record and _is_deleted(owner.record) and is_revision(owner.record.get("revision"))
        }
        missing = await self._reader.missing_revisions(last)  # they have all up to the last one
        moved = await self._reader.moved() if any(owner.moves for owner in owners.values()) else Moves([])
        found = {}
        for one, owner in owners.items():
            told = await self._of_id(owner, missing[one]) if owner.ids else []
            told += self._of_kinds(owner) if owner.kinds else []
            if told := told + [finding for item in owner.moves for finding in self._of_move(owner, item, moved)]:
                found[one] = told
        return found

    def _finding(self, key: Key | None, problem: str, fix: Fix | None = None) -> Finding:
        return Finding(self._hierarchy.name, path_text(*key) if key else "", problem, fix)

    # -- items of kinds and moves --------------------------------------------------------------------------------------

    def _of_kinds(self, owner: Owner) -> list[Finding]:
        """The findings on items that a node does not have; none where it may have others, as it is moving or cannot be
        read.
        """
        if owner.marker is None or owner.is_moving:
            return []
        checks = [owner.unchanged("tree", "key", "deleted"), Check(self._marker, owner.marker.when)]
        key, right, of, rest = None, set[Key](), "", f"of the node {shorten(owner.id)}, which does not exist"
        if owner.is_live:
            (record,) = records_of([cast(Item, owner.node)])
            if owner.line is None or not is_readable(record):
                return []
            right = {key_of(item) for item in node_items(owner.recipes, Located(record, owner.line))}
            checks.append(Check(record.key, {"id": owner.id, "revision": record.revision}))
            key, of, rest = record.key, " of words or a place", "that it does not need"
        wrong, findings = list[Key](), list[Finding]()
        for item in owner.kinds:
            if key_of(item) in right:
                continue
            if (kind := _kind_of(item)) is None or not kind.has_conditions:
                wrong.append(key_of(item))
                continue
            fix = Fix(key_of(item), None, {"id": item.get("id")}, tuple(checks))
            findings.append(self._finding(key, f"an item of {kind.label(None, None, item)} {rest}", fix))
        text = f"{quantity(len(wrong), 'search item')}{of} {rest}"
        return [*findings, self._finding(key, text, Fix.removing(wrong, *checks))] if wrong else findings

    def _of_move(self, owner: Owner, item: Item, moved: Moves) -> list[Finding]:
        """The finding on the move of a node, whose lineage may only be outdated by moves of its ancestors."""
        found, key = {name: item.get(name) for name in ("line", "deepest")}, key_of(item)
        is_gone = owner.key is None or _is_deleted(owner.record) or owner.record is None
        if is_gone or (not owner.recipes and not self._is_asked):
            problem = "which does not exist" if is_gone else "but its class has no search="
            text = f"search has a move of {shorten(owner.id)}, {problem}"
            return [self._finding(None, text, Fix(key, None, found))] if owner.recipes or not self._is_asked else []
        if not owner.recipes or owner.is_moving or owner.line is None or not owner.is_live:
            return []  # found by the check of the marker, or of nodes and ids
        same = owner.unchanged("tree", "key")
        if key not in moved_keys(owner.recipes, owner.id, owner.line[:STEP]):
            return [self._finding(owner.key, "search has its move in another tree", Fix(key, None, found, (same,)))]
        if _is_moved_node(item) and moved.present(cast(str, item["line"])) == owner.line:
            return []
        fix = Fix.of(key, item, {"line": owner.line, "deepest": MAX_SEGMENTS - 1}, same)
        return [self._finding(owner.key, "what search has of its move is wrong", fix)]

    # -- ids -----------------------------------------------------------------------------------------------------------

    async def _of_id(self, owner: Owner, missing: int) -> list[Finding]:
        """The findings on an id; `missing` revisions of a deleted node."""
        findings = [self._finding(owner.key, problem) for problem in _revision_problems(owner)]
        if owner.record is not None and not owner.has_record:
            pass  # the id is checked with the page that the record is on
        elif not is_id(self._hierarchy, owner.id):
            findings.append(self._finding(owner.key, f"{owner.id} is not a valid id of a node"))
        elif _is_deleted(owner.record):
            if problem := problem_of(owner.record, Tombstone):
                text = f"the deleted node {owner.id}: {problem}"
                findings.append(self._finding(owner.key, text, await self._tombstone(owner)))
            elif missing:
                text = f"{quantity(missing, 'revision')} of the deleted node {owner.id} missing"
                findings.append(self._finding(owner.key, text))
        elif not owner.has_node:
            findings.append(await self._orphan(owner))
        return findings

    async def _orphan(self, owner: Owner) -> Finding:
        """The finding on an id that the node has not to which its record points; the node may have lost it."""
        node, key = owner.node, id_record_key(owner.record or {})
        if node is None or key is None:
            lacking = "node" if owner.record else "record"
            return self._finding(owner.key, f"id {owner.id} has no {lacking}", await self._tombstone(owner))
        other = node.get("id")
        if is_id(self._hierarchy, other) and not await self._is_wrong_id(cast(str, other), key):
            problem = f"the record of id {owner.id} points to the node with the id {other}"
            return self._finding(owner.key, problem, await self._tombstone(owner))
        problem = mismatch("id", value_text(other), value_text(owner.id))
        return self._finding(
            key, problem, Fix.of(key, node, {"id": owner.id}, owner.unchanged("tree", "key", "deleted"))
        )

    async def _is_wrong_id(self, node_id: str, key: Key) -> bool:
        """Whether the node at a key cannot have this id: it has no record, or is that of another node."""
        (record,) = await self._reader.get([id_key(node_id)])
        led = id_record_key(record) if record else None
        if led is None or led == key:
            return led is None
        (other,) = await self._reader.get([led])
        return other is not None and other.get("id") == node_id

    async def _tombstone(self, owner: Owner) -> Fix:
        """The fix of an id without a node: a tombstone of its last revision, or no record where there is none."""
        record, key, history = owner.record, owner.key, revisions(owner.id, MAX_REVISION)
        last = await self._reader.store.range(history, self._reader.reads, limit=1, reverse=True, strong=True)
        if key is None and last:
            key = id_record_key(last[0])
        checks = (Check(key, {"id": owner.node.get("id") if owner.node else None}),) if key else ()
        if not last or key is None:
            return Fix(id_key(owner.id), None, owner.unchanged("tree", "key", "deleted").when, checks)
        values = {
            "tree": key.pk, "key": key.sk, "deleted": self._at, "deleted_by": None, "level": last[0].get("level"),
            "revision": int(cast(str, last[0]["sk"])[1:]), "above": _levels_above(record, key),
            **({"rank": key.sk} if record and deletion_of(record) else dict.fromkeys(DELETION)),
        }  # fmt: skip
        return Fix.of(id_key(owner.id), record, values, *checks)


def _levels_above(record: Item | None, key: Key) -> list[Value]:
    """The levels above a node in its tombstone; none where they are damaged."""
    found = None if record is None else record.get("above")
    is_whole = isinstance(found, list) and len(found) == depth_of(key.sk) and all(isinstance(one, str) for one in found)
    return cast(list[Value], found) if is_whole else []


def _is_deleted(record: Item | None) -> TypeGuard[Item]:
    return record is not None and "deleted" in record


def _is_moved_node(item: Item) -> bool:
    """Whether the item of a moved node has valid attributes."""
    with contextlib.suppress(DamagedItem):
        found = MovedNode.of(item)
        return found.line[-STEP:] == id_hash(found.id)
    return False


def _revision_problems(owner: Owner) -> list[str]:
    """Problems of the earlier revisions of a page; they are below the node's own revision, or a tombstone's."""
    problems = []
    is_deleted = _is_deleted(owner.record)
    newest = owner.record if is_deleted else owner.node if owner.has_node else None
    revision = (newest or {}).get("revision")
    last = cast(int, revision) - (not is_deleted) if is_revision(revision) else MAX_REVISION
    for item in owner.revisions:
        digits = cast(str, item["sk"])[1:]
        if not digits.isdigit() or int(digits) != item.get("revision"):
            problem = mismatch("revision", value_text(item.get("revision")), digits.lstrip("0") or digits)
            problems.append(f"history of id {owner.id}: {problem}")
        elif damage := problem_of(item, Revision):
            problems.append(f"history of id {owner.id}: revision {int(digits)} is damaged: {damage}")
        elif int(digits) > last:
            problems.append(f"history of id {owner.id} has revision {int(digits)}, but the node is at {revision}")
    return problems
