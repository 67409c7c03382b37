"""Creating and updating one node, and the interface of all edits: a value that builds its transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol
from uuid import uuid4

from msgspec.structs import replace

from store.edits.reader import Reader, ReadSet, WriteContext
from store.edits.transaction import TransactionBuilder
from store.errors import (
    AlreadyExists,
    BadInput,
    CladeError,
    Conflict,
    FaultList,
    Faults,
    Misplaced,
    NodeMoved,
    NotFound,
    WrongLevel,
)
from store.kinds.kinds import Kinds
from store.metadata.history import current_key, tombstone
from store.metadata.move_record import Move as SubtreeMove
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy, may_stand, misplaced
from store.model.items import Change, Item, check_content
from store.model.keys import Key, Path, ancestor_keys, id_key, node_key, tree_key
from store.model.paths import format_path
from store.model.records import Record, derived_id
from store.text import shorten


class Edit(Protocol):
    """A change that a client requests."""

    @property
    def hierarchy(self) -> Hierarchy: ...

    def partitions(self) -> set[str]:
        """The trees that it writes to, and the hierarchy where its roots change, as far as known before any read."""
        ...

    def keys_to_read(self) -> list[Key]:
        """The keys that it reads in any case, as far as known before any read."""
        ...

    async def build(self, reader: Reader, context: WriteContext) -> "BuiltEdit":
        """Read what is needed and build the transaction; raises a CladeError where the edit is not possible."""
        ...


class BuiltEdit(Protocol):
    """The transaction of an edit, as `TransactionBuilder` has it; `records` are the nodes that it is about."""

    @property
    def records(self) -> list[Record]: ...

    @property
    def nodes(self) -> int: ...

    @property
    def move(self) -> SubtreeMove | None: ...

    @property
    def is_empty(self) -> bool: ...

    def changes(self) -> list[Change]: ...


@dataclass(frozen=True)
class Create:
    """A new node at a path; `node_id` is without its hierarchy's prefix, None for an id that no node ever had.

    `ids` are those that the nodes at some of its paths have to have, `faults` those that the input has besides.
    """

    hierarchy: Hierarchy
    path: Path
    level: str
    name: str
    values: Mapping[str, Value]
    node_id: str | None = None
    ids: Mapping[Path, str] = field(default_factory=dict)
    faults: Sequence[CladeError] = ()

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    def keys_to_read(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        return [key, *ancestor_keys(key), id_key(f"{self.hierarchy.name}:{self._wanted_id}")]

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        keys, hierarchy = self.keys_to_read(), self.hierarchy.name
        key, record_key = keys[0], keys[-1]
        read_set = await reader.read(self.partitions(), keys)
        check_ids(read_set, self.hierarchy, self.ids)
        read_set.check_not_moving(key)
        faults, id_record = FaultList(self.faults), read_set.item(record_key)
        above: list[str] = []
        values, identity = dict(self.values), (self._wanted_id, 1)
        with faults.collecting("parent"):
            above = levels_above(read_set, self.hierarchy, self.path, self.level, reader)
        with faults.collecting("id"):
            await self._check_not_in_cascade(reader, read_set, id_record)
            identity = self._identity(id_record, key)
        with faults.collecting("attributes"):
            values = self._new_values(values)
            check_content(shorten(format_path(self.path)), self.name, values)
        if read_set.item(key) is not None:
            faults.add(taken(self.path, "key"))
        faults.check()
        node_id, revision = identity
        record = Record.new(hierarchy, self.path, self.level, self.name, node_id, context.at, values, above=above)
        record = replace(record, revision=revision, changed_by=context.by)
        transaction = TransactionBuilder(self.hierarchy, reader, read_set, context, record)
        await transaction.create(record)
        return transaction

    def _new_values(self, values: dict[str, Value]) -> dict[str, Value]:
        """The values with defaults. Raises BadInput or Faults for required ones without, unless they have a fault."""
        try:
            return self.hierarchy.any_level(self.level).new_values(values)
        except BadInput as error:
            known = {fault.field[-1] for fault in self.faults if fault.field}
            errors = error.errors if isinstance(error, Faults) else [error]
            FaultList([one for one in errors if not one.field or one.field[-1] not in known]).check()
            return values

    @cached_property
    def _wanted_id(self) -> str:
        return self.node_id or derived_id(self.hierarchy.name, self.path)

    async def _check_not_in_cascade(self, reader: Reader, read_set: ReadSet, id_record: Item | None) -> None:
        """Raise Conflict where the given id is that of a node which a running cascade is about to delete."""
        place = current_key(id_record)
        if self.node_id is not None and place is not None:
            await reader.read_into(read_set, [place.pk], [])
            for running in read_set.version(place.pk).moves:
                if running.target is None and running.holds(place):
                    raise Conflict(running.refusal(place))

    def _identity(self, id_record: Item | None, key: Key) -> tuple[str, int]:
        """The id, and its next revision.

        A deleted node's id and history continue only where the id is given; the id of an existing node is rejected.
        """
        if id_record is None:
            return self._wanted_id, 1
        place = current_key(id_record)
        if self.node_id is not None and (gone := tombstone(id_record)) is not None:
            return self.node_id, 1 + gone.revision
        if self.node_id is not None and place != key:
            raise AlreadyExists(f"The id {self.node_id} belongs to another node; choose another, or omit it.")
        return uuid4().hex, 1


@dataclass(frozen=True)
class Update:
    """Other content for a node: a value that is left out stays, None clears it; a name that is None stays.

    `ids` and `faults` are as of a new node.
    """

    hierarchy: Hierarchy
    path: Path
    name: str | None
    level: str | None
    values: Mapping[str, Value]
    expected: int | None = None
    ids: Mapping[Path, str] = field(default_factory=dict)
    faults: Sequence[CladeError] = ()

    def partitions(self) -> set[str]:
        return {tree_key(self.hierarchy.name, self.path)}

    def keys_to_read(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        return [key, *(ancestor_keys(key) if Kinds(self.hierarchy).nodes.by_ancestors else ())]

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        check_ids(read_set, self.hierarchy, self.ids)
        faults = FaultList(self.faults)
        old: Record | None = None
        with faults.collecting():
            old = existing(read_set, self.hierarchy, self.path, reader, self.expected)
        if old is None:
            raise faults.error()
        if self.level is not None and self.level != old.level:
            wrong = f"{shorten(format_path(self.path))} has the level {old.level}, not {self.level}."
            faults.add(WrongLevel(wrong).at("attributes"))
            raise faults.error()
        level = self.hierarchy.any_level(old.level)
        name, values = old.name if self.name is None else self.name, dict(old.attributes)
        with faults.collecting("attributes"):
            values = level.changed(old.attributes, self.values)
            check_content(shorten(format_path(self.path)), name, values)
        faults.check()
        if (name, values) == (old.name, level.current(old.attributes)):
            return TransactionBuilder(self.hierarchy, reader, read_set, context, old)
        new = replace(
            old, name=name, attributes=values, revision=old.revision + 1, updated_at=context.at, changed_by=context.by
        )
        transaction = TransactionBuilder(self.hierarchy, reader, read_set, context, new)
        await transaction.update(old, new)
        return transaction


# -- shared by all edits -----------------------------------------------------------------------------------------------


def touched(hierarchy: str, *paths: Path) -> set[str]:
    """The partitions of the trees of some paths, and the hierarchy where one is a root's."""
    roots = {hierarchy for path in paths if len(path) == 1}
    return {tree_key(hierarchy, path) for path in paths} | roots


def existing(
    read_set: ReadSet, hierarchy: Hierarchy, path: Path, reader: Reader, expected: int | None = None,
    field: str = "node",
) -> Record:  # fmt: skip
    """The node at a path, named by a `field`; raises NotFound, or Conflict where it had another revision than the
    expected one before the edits that are committed with this one.
    """
    record = read_set.record(node_key(hierarchy.name, path))
    if record is None:
        raise not_found(hierarchy.name, path).at(field)
    revision = reader.revision_before(record)
    if expected is not None and revision != expected:
        text = f"{shorten(format_path(path))} is at revision {revision}, not {expected}; read it again and retry."
        raise Conflict(text).at("expected_revision")
    return record


def check_ids(read_set: ReadSet, hierarchy: Hierarchy, ids: Mapping[Path, str]) -> None:
    """Raise NodeMoved where a path that an id had led to has no longer the node with this id."""
    for path, node_id in ids.items():
        record = read_set.record(node_key(hierarchy.name, path))
        if record is None or record.id != node_id:
            raise NodeMoved(f"{shorten(node_id)} is being moved by someone else; retry.").at("node")


def taken(path: Path, field: str) -> AlreadyExists:
    """The error for a path that another node has, by the `field` that leads to it."""
    return AlreadyExists(f"A node already exists at {shorten(format_path(path))}; choose another path.").at(field)


def not_found(hierarchy: str, path: Path) -> NotFound:
    """The error for an edit of a node that does not exist."""
    return NotFound(
        f"There is no {hierarchy} at {shorten(format_path(path))}; write the current path, since former paths are "
        "redirected only in reads."
    )


def levels_above(read_set: ReadSet, hierarchy: Hierarchy, path: Path, level: str, reader: Reader) -> list[str]:
    """The levels above a node of this level at this path; raises NotFound without its parent, Misplaced where the
    level is not allowed there.
    """
    parent = existing(read_set, hierarchy, path[:-1], reader, field="") if len(path) > 1 else None
    under = parent.level if parent else None
    if not may_stand(hierarchy, level, under):
        raise Misplaced(misplaced(hierarchy.levels[level], under))
    return [*parent.above, parent.level] if parent else []
