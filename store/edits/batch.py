"""Batch: several edits in one transaction with one entry of the change log, each built over those before it."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from msgspec.structs import replace

from store.edits.create_update import Create, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.edits.reader import MAX_NODES, Reader, WriteContext, WriteOverlay
from store.errors import AlreadyExists, CladeError, FaultList, NodeMoved, NotFound, TooLarge
from store.metadata.redirects import is_redirect, log_place, placed_in, redirect_key, with_places
from store.metadata.tree_version import TreeVersion
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import MAX_BATCH_BYTES, MAX_ITEM_BYTES, Change, Item, Put, canonical_item, size_of
from store.model.keys import Key, Path, log_key, node_key, tree_version_key
from store.model.records import Record

OneEdit = Create | Update | Move | Delete


class Step(NamedTuple):
    """An edit, and the place of the edit that was asked for of which it is a part."""

    edit: OneEdit
    number: int


@dataclass(frozen=True)
class Batch:
    """Edits of one hierarchy, in the order in which they are made.

    `waiting` are paths at which moved nodes wait until their targets are free; no step leaves a node there.
    """

    hierarchy: Hierarchy
    steps: Sequence[Step]
    waiting: Sequence[Path] = ()

    def partitions(self) -> set[str]:
        return {one for step in self.steps for one in step.edit.partitions()} - {key.pk for key in self._own_trees()}

    def keys_to_read(self) -> list[Key]:
        return list(dict.fromkeys([key for step in self.steps for key in step.edit.keys_to_read()]))

    async def build(self, reader: Reader, context: WriteContext) -> "BuiltBatch":
        """Raises the faults of all its edits, and TooLarge where one transaction does not hold them."""
        over, overlay = reader.over()
        await over.read(self.partitions(), self.keys_to_read())
        faults, records, failures = FaultList(), dict[int, Record](), _Failures()
        nodes, deleted = 0, set[int]()
        for edit, number in self.steps:
            before = len(faults.errors)
            with faults.collecting(), _skipping_moved(bool(before)):
                built = await edit.build(over, context)
                if built.move is not None:
                    raise TooLarge(
                        f"This edit changes {built.move.nodes:,} nodes, which takes several transactions, and a batch "
                        "is one. Make it alone."
                    )
                changes = built.changes()
                await overlay.add(changes)
                for place in records.keys() - deleted:
                    records[place] = _record_after(edit, records[place])
                records[number], nodes = built.record, nodes + built.nodes
                if isinstance(edit, Delete):
                    deleted.add(number)
                failures.follow(edit)
            for error in faults.errors[before:]:
                error.edit = number
            faults.errors[before:] = failures.causes(edit, faults.errors[before:])
        faults.check()
        if nodes > MAX_NODES:
            text = f"The edits change {nodes:,} nodes; one transaction holds {MAX_NODES:,}. Make fewer at once."
            raise TooLarge(text)
        if overlay.size > MAX_BATCH_BYTES:
            raise TooLarge(
                f"The edits write {overlay.size:,} bytes; one transaction of DynamoDB holds {MAX_BATCH_BYTES:,}. "
                "Make fewer at once."
            )
        changes = self._changes(overlay, reader)
        final = [await self._final(over, records[number]) for number in sorted(records)]
        return BuiltBatch(final, nodes, changes)

    def _changes(self, overlay: WriteOverlay, reader: Reader) -> list[Change]:
        """The changes of all edits, as one transaction: each tree has one version more, and one item in its log."""
        own = self._own_trees()
        found = {change.key: change for change in overlay.changes}
        for key in [key for key in found if any(_is_of(top, key) for top in own)]:
            del found[key]
        first: dict[str, int] = {}  # number in each log that is of the batch
        for put in [one for one in found.values() if isinstance(one, Put) and one.key == tree_version_key(one.key.pk)]:
            version = reader.version(put.key.pk)
            first[put.key.pk] = version.number + 1
            numbers = range(version.number + 1, cast(int, put.item["n"]) + 1)
            logs = [found.pop(log_key(put.key.pk, number), None) for number in numbers]
            found[put.key] = Put(put.item | {"n": version.number + 1}, put.when)
            if items := [log.item for log in logs if isinstance(log, Put)]:
                log = _one_log(version, items)
                found[log.key] = log

        def place(tree: str, place: str) -> str:
            """The place of a move in the one log item of the batch, that of an earlier move as it is."""
            step = placed_in(place) - first.get(tree, placed_in(place))
            return log_place(first[tree], step) if step > 0 else place

        redirects = [one for one in found.values() if isinstance(one, Put) and is_redirect(one.key)]
        found |= {one.key: Put(with_places(one.item, place), one.when) for one in redirects}
        return list(found.values())

    async def _final(self, reader: Reader, record: Record) -> Record:
        """A node as it is after all edits; one that was deleted as it was before."""
        read_set = await reader.read([record.pk], [record.key])
        found = read_set.record(record.key)  # of another node, or none, where it was deleted
        return found if found is not None and found.id == record.id else record

    def _own_trees(self) -> list[Key]:
        return [node_key(self.hierarchy.name, path) for path in self.waiting]


class _Failures:
    """Edits that failed. Faults of later edits may follow from that: at paths where nodes have not come (`_missing`),
    maybe not come (`_moved_up`), or from which they have not gone (`_kept`).
    """

    def __init__(self) -> None:
        self._missing: list[Path] = []
        self._moved_up: list[Path] = []
        self._kept: set[Path] = set()

    def follow(self, edit: OneEdit) -> None:
        """Follow paths through an edit that was made."""
        self._missing = [_after(edit, path) for path in self._missing]

    def causes(self, edit: OneEdit, errors: Sequence[CladeError]) -> list[CladeError]:
        """Those errors of an edit that do not follow from earlier ones."""
        if not errors:
            return []
        named, target = _named(edit), _target(edit)
        found = [
            error
            for error in errors
            if not any(path[: len(top)] == top for top in self._missing for path in named)
            and not (isinstance(error, AlreadyExists) and target in self._kept)
            and not (
                isinstance(error, NotFound) and any(path[: len(top)] == top for top in self._moved_up for path in named)
            )
        ]
        if isinstance(edit, Delete) and edit.policy is Policy.REPARENT:
            self._moved_up.append(edit.path[:-1])
        if isinstance(edit, Move | Delete):
            self._kept.add(edit.path)
        is_taken = all(isinstance(error, AlreadyExists) for error in errors)
        if isinstance(edit, Create | Move) and (target in self._kept or not is_taken):
            self._missing.append(target)
        return found


@dataclass(frozen=True)
class Refused:
    """An edit of a `kind` that is not possible any more: it has only the stored result of when it was made."""

    hierarchy: Hierarchy
    kind: str
    error: CladeError

    def partitions(self) -> set[str]:
        return set()

    def keys_to_read(self) -> list[Key]:
        return []

    async def build(self, reader: Reader, context: WriteContext) -> "BuiltBatch":
        raise self.error


@dataclass(frozen=True)
class BuiltBatch:
    """The transaction of a batch; `records` are the nodes of its edits, in their order."""

    records: list[Record]
    nodes: int
    all_changes: list[Change]
    move: None = None

    @property
    def is_empty(self) -> bool:
        return not self.all_changes

    def changes(self) -> list[Change]:
        """All changes for one commit."""
        return self.all_changes


def _target(edit: OneEdit) -> Path:
    """The path of the node after the edit."""
    return edit.target if isinstance(edit, Move) else edit.path


def _named(edit: OneEdit) -> list[Path]:
    """The paths that an edit names."""
    beside = [edit.position.beside] if isinstance(edit, Move) and edit.position and edit.position.beside else []
    return [edit.path, _target(edit), *beside]


@contextlib.contextmanager
def _skipping_moved(has_faults: bool) -> Iterator[None]:
    """Pass over an id that leads to where an edit that failed would have brought its node."""
    try:
        yield
    except NodeMoved:
        if not has_faults:
            raise


def _after(edit: OneEdit, path: Path) -> Path:
    """The path of a node after an edit of itself or of one above it."""
    if path[: len(edit.path)] != edit.path:
        return path
    if isinstance(edit, Move):
        return edit.target + path[len(edit.path) :]
    is_child = isinstance(edit, Delete) and edit.policy is Policy.REPARENT and path != edit.path
    return edit.path[:-1] + path[len(edit.path) :] if is_child else path


def _record_after(edit: OneEdit, record: Record) -> Record:
    """The node of an earlier edit at its key after another one."""
    path = _after(edit, record.path)
    if path == record.path:
        return record
    key = node_key(edit.hierarchy.name, path)
    return replace(record, pk=key.pk, sk=key.sk)


def _is_of(top: Key, key: Key) -> bool:
    """Whether an item is in the subtree at a key, or, of a root, in its tree, or a redirect from there."""
    if top.sk == "#":
        return key.pk in (top.pk, redirect_key(top).pk)
    return top.holds(key) or redirect_key(top).holds(key)


def _one_log(version: TreeVersion, items: Sequence[Item]) -> Put:
    """The log item of a batch, with the entries of all its edits; raises TooLarge where one item does not hold them."""
    changes = [entry for item in items for entry in cast(list[Value], item["changes"])]
    ranks = {name: rank for item in items for name, rank in cast(dict[str, Value], item.get("ranks", {})).items()}
    found: Item = {**items[-1], "sk": log_key(version.partition, version.number + 1).sk, "changes": changes}
    if ranks:
        found["ranks"] = ranks
    if size_of(canonical_item(found)) > MAX_ITEM_BYTES:
        raise TooLarge("The edits have more changes than fit into one entry of the change feed. Make fewer at once.")
    return Put(found)
