"""What can be done to one node, but for moving and deleting it: each edit is a value that drafts its transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast
from uuid import uuid4

from msgspec.structs import replace

from store.edits.reader import Reader
from store.edits.transaction import ReadSet, TransactionBuilder, WriteContext
from store.errors import AlreadyExists, Conflict, Misplaced, NotFound, WrongLevel
from store.metadata.history import current_key
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy, misplaced
from store.model.items import ABSENT, Condition, Item, check_content
from store.model.keys import (
    Key,
    Path,
    ancestor_keys,
    id_key,
    node_key,
    tree_key,
)
from store.model.paths import format_path
from store.model.records import Record, derived_id
from store.text import shorten


class Edit(Protocol):
    """A change that somebody wants."""

    @property
    def hierarchy(self) -> Hierarchy: ...

    def partitions(self) -> set[str]:
        """The trees, and the hierarchy where its roots change, that it writes to as far as can be told beforehand."""
        ...

    def needs(self) -> list[Key]:
        """The keys of what it reads for certain, as far as can be told beforehand."""
        ...

    def wanted(self) -> dict[str, Any]:
        """What makes it the same wish as another of its kind, None where something is left open."""
        ...

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        """Read what it takes and draft the transaction; raises a CladeError where it cannot be done."""
        ...


@dataclass(frozen=True)
class Create:
    """A new node at a path; `node_id` is without its hierarchy's prefix, None for one that no node ever had."""

    hierarchy: Hierarchy
    path: Path
    level: str
    name: str
    values: Mapping[str, Value]
    node_id: str | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    def needs(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        return [key, *ancestor_keys(key), id_key(f"{self.hierarchy.name}:{self._wanted_id}")]

    def wanted(self) -> dict[str, Any]:
        values = {name: value for name, value in self.values.items() if value is not None}
        return {"path": self.path, "level": self.level, "name": self.name, "values": values, "id": self.node_id}

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        keys, name = self.needs(), self.hierarchy.name
        key, place, node_id = keys[0], keys[-1], self._wanted_id
        seen = await reader.seen(self.partitions(), keys)
        above = levels_above(seen, self.hierarchy, self.path, self.level)
        await self._check_gone(reader, seen, seen.item(place))
        node_id, revision, when = self._identity(node_id, seen.item(place), key)
        values: dict[str, Value] = {name: value for name, value in self.values.items() if value is not None}
        check_content(shorten(format_path(self.path)), self.name, values)
        record = Record.new(name, self.path, self.level, self.name, node_id, moment.at, values, above=above)
        record = replace(record, revision=revision, changed_by=moment.by)
        draft = TransactionBuilder(seen, moment, record)
        draft.keep_out(key)
        if seen.item(key) is not None:
            draft.collisions.append(self.path)
        else:
            draft.create(record, when)
        return draft

    @cached_property
    def _wanted_id(self) -> str:
        return self.node_id or derived_id(self.hierarchy.name, self.path)

    async def _check_gone(self, reader: Reader, seen: ReadSet, found: Item | None) -> None:
        """Raise Conflict where the given id is that of a node which is about to go with a cascade."""
        place = current_key(found)
        if self.node_id is not None and place is not None:
            await reader.add(seen, [place.pk], [])
            for running in seen.stamp(place.pk).moves:
                if running.target is None and running.holds(place):
                    raise Conflict(running.refusal(place))

    def _identity(self, node_id: str, found: Item | None, key: Key) -> tuple[str, int, Condition]:
        """The id, its next revision, and what is required of its record.

        A deleted node's id goes on, with its history, only where it is given; a living one's is then refused.
        """
        if found is None:
            return node_id, 1, ABSENT
        place = current_key(found)
        if self.node_id is not None and place is None:
            return node_id, 1 + cast(int, found["revision"]), {"deleted": found["deleted"]}
        if self.node_id is not None and place != key:
            raise AlreadyExists(f"The id {node_id} belongs to another node already; choose another, or leave it out.")
        return uuid4().hex, 1, ABSENT


@dataclass(frozen=True)
class Update:
    """Other content for a node: a value that is left out stays, None clears it; a name that is None stays."""

    hierarchy: Hierarchy
    path: Path
    name: str | None
    level: str | None
    values: Mapping[str, Value]
    expected: int | None = None

    def partitions(self) -> set[str]:
        return {tree_key(self.hierarchy.name, self.path)}

    def needs(self) -> list[Key]:
        return [node_key(self.hierarchy.name, self.path)]

    def wanted(self) -> dict[str, Any]:
        return {
            "path": self.path, "name": self.name, "level": self.level, "values": dict(self.values),
            "expected": self.expected,
        }  # fmt: skip

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        seen = await reader.seen(self.partitions(), self.needs())
        old = existing(seen, self.hierarchy, self.path, self.expected)
        if self.level is not None and self.level != old.level:
            raise WrongLevel(f"{shorten(format_path(self.path))} is of the level {old.level}, not {self.level}.")
        values = {name: value for name, value in {**old.attributes, **self.values}.items() if value is not None}
        name = old.name if self.name is None else self.name
        if (name, values) == (old.name, old.attributes):
            return TransactionBuilder(seen, moment, old)
        check_content(shorten(format_path(self.path)), name, values)
        new = replace(
            old, name=name, attributes=values, revision=old.revision + 1, updated_at=moment.at, changed_by=moment.by
        )
        draft = TransactionBuilder(seen, moment, new)
        draft.update(old, new)
        return draft


# -- what every edit asks of the nodes that it meets -------------------------------------------------------------------


def touched(hierarchy: str, *paths: Path) -> set[str]:
    """The trees of some paths, and the hierarchy where one is a root's."""
    roots = {hierarchy for path in paths if len(path) == 1}
    return {tree_key(hierarchy, path) for path in paths} | roots


def existing(seen: ReadSet, hierarchy: Hierarchy, path: Path, expected: int | None = None) -> Record:
    """The node at a path; raises NotFound, or Conflict where it has not the expected revision."""
    record = seen.record(node_key(hierarchy.name, path))
    if record is None:
        raise not_found(hierarchy.name, path)
    if expected is not None and record.revision != expected:
        raise Conflict(
            f"{shorten(format_path(path))} has the revision {record.revision} by now, not {expected}; "
            "read it again and repeat."
        )
    return record


def not_found(hierarchy: str, path: Path) -> NotFound:
    """The error for a node to change that is not there."""
    return NotFound(f"There is no {hierarchy} {shorten(format_path(path))}; changes follow no redirects.")


def levels_above(seen: ReadSet, hierarchy: Hierarchy, path: Path, level: str) -> list[str]:
    """The levels above a node of this level at this path; raises NotFound without its parent, Misplaced where it may
    not stand there.
    """
    parent = existing(seen, hierarchy, path[:-1]) if len(path) > 1 else None
    under = parent.level if parent else None
    if not hierarchy.may_stand(level, under):
        raise Misplaced(misplaced(hierarchy.levels[level], under))
    return [*parent.above, parent.level] if parent else []
