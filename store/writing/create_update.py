"""Creating and updating one node; the interface of all edits, which are values that build their transactions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from store.errors import AlreadyExists, Conflict, Misplaced, NotFound, WrongLevel, shorten
from store.metadata.history import Tombstone, current_key
from store.model.attributes import Value
from store.model.decoding import decoded
from store.model.hierarchy import Hierarchy, may_stand, misplaced
from store.model.keys import Key, Path, ancestor_keys, id_key, node_key, tree_key
from store.model.names import with_changes
from store.model.paths import format_path
from store.model.records import ABSENT, Condition, Item, Record, check_content, derived_id
from store.search.items import is_indexed
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.transaction import TransactionBuilder


@dataclass(frozen=True)
class Edit(ABC):
    """A change that a client requests of the node at a path."""

    hierarchy: Hierarchy
    path: Path

    def partitions(self) -> set[str]:
        """The trees that it writes to, and the hierarchy where its roots change, as far as known before any read."""
        return touched(self.hierarchy.name, self.path)

    def keys_to_read(self) -> list[Key]:
        """The keys that it reads in any case, as far as known before any read."""
        key = node_key(self.hierarchy.name, self.path)
        return [key, *ancestor_keys(key)]

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """The arguments that distinguish it from other edits of its class, as JSON; None for an omitted one."""

    @abstractmethod
    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        """Read what is needed and build the transaction; raises a CladeError where the edit is not possible."""


@dataclass(frozen=True)
class Create(Edit):
    """A new node at a path; `node_id` is without its hierarchy's prefix, None for an id that no node ever had."""

    level: str
    name: str
    values: Mapping[str, Value]
    node_id: str | None = None

    def keys_to_read(self) -> list[Key]:
        return [*super().keys_to_read(), id_key(f"{self.hierarchy.name}:{self._wanted_id}")]

    def arguments(self) -> dict[str, Any]:
        values = with_changes({}, self.values)  # as they were given, without what is a default by now
        return {"path": self.path, "level": self.level, "name": self.name, "values": values, "id": self.node_id}

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        keys, hierarchy = self.keys_to_read(), self.hierarchy.name
        key, record_key = keys[0], keys[-1]
        read_set = await reader.read(self.partitions(), keys)
        above = levels_above(read_set, self.hierarchy, self.path, self.level)
        id_record = read_set[record_key]
        await self._check_not_in_cascade(reader, read_set, id_record)
        node_id, revision, when = self._identity(id_record, key)
        values = self.hierarchy.any_level(self.level).new_values({**self.values})
        check_content(shorten(format_path(self.path)), self.name, values)
        record = Record.new(hierarchy, self.path, self.level, self.name, node_id, context.at, values, above=above)
        record = replace(record, revision=revision, changed_by=context.by)
        transaction = TransactionBuilder(self.hierarchy, read_set, context, record)
        transaction.check_not_moving(key)
        if read_set[key] is not None:
            transaction.collisions.append(self.path)
        else:
            transaction.create(record, when)
        return transaction

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

    def _identity(self, id_record: Item | None, key: Key) -> tuple[str, int, Condition]:
        """The id, its next revision, and the condition for its record.

        A deleted node's id and history continue only where the id is given; the id of an existing node is rejected.
        """
        if id_record is None:
            return self._wanted_id, 1, ABSENT
        place = current_key(id_record)
        if self.node_id is not None and place is None:
            gone = decoded(id_record, Tombstone)
            return self.node_id, 1 + gone.revision, {"deleted": gone.deleted}
        if self.node_id is not None and place != key:
            raise AlreadyExists(f"The id {self.node_id} belongs to another node; choose another, or omit it.")
        return uuid4().hex, 1, ABSENT


@dataclass(frozen=True)
class Update(Edit):
    """Other content for a node: a value that is left out stays, None clears it; a name that is None stays."""

    name: str | None
    level: str | None
    values: Mapping[str, Value]
    expected: int | None = None

    def partitions(self) -> set[str]:
        return {tree_key(self.hierarchy.name, self.path)}

    def keys_to_read(self) -> list[Key]:
        keys = super().keys_to_read()
        return keys if is_indexed(self.hierarchy) else keys[:1]

    def arguments(self) -> dict[str, Any]:
        return {
            "path": self.path, "name": self.name, "level": self.level, "values": dict(self.values),
            "expected": self.expected,
        }  # fmt: skip

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        old = existing(read_set, self.hierarchy, self.path, self.expected)
        if self.level is not None and self.level != old.level:
            raise WrongLevel(f"{shorten(format_path(self.path))} has the level {old.level}, not {self.level}.")
        level = self.hierarchy.any_level(old.level)
        values = level.changed(old.attributes, self.values)
        name = old.name if self.name is None else self.name
        if (name, values) == (old.name, level.current(old.attributes)):
            return TransactionBuilder(self.hierarchy, read_set, context, old)
        check_content(shorten(format_path(self.path)), name, values)
        new = replace(
            old, name=name, attributes=values, revision=old.revision + 1, updated_at=context.at, changed_by=context.by
        )
        transaction = TransactionBuilder(self.hierarchy, read_set, context, new)
        transaction.update(old, new)
        return transaction


# -- shared by all edits -----------------------------------------------------------------------------------------------


def touched(hierarchy: str, *paths: Path) -> set[str]:
    """The partitions of the trees of some paths, and the hierarchy where one is a root's."""
    roots = {hierarchy for path in paths if len(path) == 1}
    return {tree_key(hierarchy, path) for path in paths} | roots


def existing(read_set: ReadSet, hierarchy: Hierarchy, path: Path, expected: int | None = None) -> Record:
    """The node at a path; raises NotFound, or Conflict where it does not have the expected revision."""
    record = read_set.record(node_key(hierarchy.name, path))
    if record is None:
        raise not_found(hierarchy.name, path)
    if expected is not None and record.revision != expected:
        raise Conflict(
            f"{shorten(format_path(path))} is at revision {record.revision}, not {expected}; read it again and retry."
        )
    return record


def not_found(hierarchy: str, path: Path) -> NotFound:
    """The error for an edit of a node that does not exist."""
    return NotFound(
        f"There is no {hierarchy} at {shorten(format_path(path))}; write the current path, since former paths are "
        "redirected only in reads."
    )


def levels_above(read_set: ReadSet, hierarchy: Hierarchy, path: Path, level: str) -> list[str]:
    """The levels above a node of this level at this path; raises NotFound without its parent, Misplaced where the
    level is not allowed there.
    """
    parent = existing(read_set, hierarchy, path[:-1]) if len(path) > 1 else None
    under = parent.level if parent else None
    if not may_stand(hierarchy, level, under):
        raise Misplaced(misplaced(hierarchy.levels[level], under))
    return [*parent.above, parent.level] if parent else []
