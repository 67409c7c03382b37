"""Creating and updating one node; the interface of all edits, which are values that build their transactions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from store.errors import (
    AlreadyExists,
    Conflict,
    Fault,
    FaultList,
    Misplaced,
    NodeMoved,
    NotFound,
    WrongLevel,
    shorten,
)
from store.metadata.history import Tombstone, current_key, redirect_key
from store.model.attributes import Value
from store.model.decoding import decoded
from store.model.hierarchy import Hierarchy, may_stand, misplaced
from store.model.keys import Key, Path, ancestor_keys, id_key, node_key, tree_key
from store.model.names import NAMES, with_changes
from store.model.paths import format_path
from store.model.records import ABSENT, Condition, Item, Record, check_content, derived_id
from store.search.marker import is_indexed, marker_key
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.transaction import TransactionBuilder

UNUSABLE = "\x7f"  # the key of an edit whose input has a fault in its key; no node has it
NOWHERE = (UNUSABLE, UNUSABLE)  # the path of a node that is not found, which is among the faults of the edit already


@dataclass(frozen=True)
class Edit(ABC):
    """A change that a client requests of the node at a path.

    `ids` are those of nodes that were named by them, by the paths at which they were. `faults` are those that the input
    has besides what the store knows; all are raised together.
    """

    hierarchy: Hierarchy
    path: Path
    ids: Mapping[Path, str] = field(default_factory=dict, kw_only=True)
    faults: Sequence[Fault] = field(default=(), kw_only=True)

    @cached_property
    def key(self) -> Key:
        return node_key(self.hierarchy.name, self.path)

    def partitions(self) -> set[str]:
        """The trees that it writes to, and the hierarchy where its roots change, as far as known before any read."""
        return touched(self.hierarchy.name, self.path)

    def keys_to_read(self) -> list[Key]:
        """The keys that it reads in any case, as far as known before any read; the marker of search is another one."""
        return [self.key, *ancestor_keys(self.key)]

    def all_keys(self) -> list[Key]:
        """These keys, and that of the marker of search."""
        return [*self.keys_to_read(), marker_key(self.hierarchy.name)]

    @abstractmethod
    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        """Read what is needed and build the transaction; raises a CladeError where the edit is not possible."""

    async def read(self, reader: Reader) -> ReadSet:
        """The versions and items that it reads in any case.

        Raises NodeMoved where a node is no longer at the path that its id had led to.
        """
        read_set = await reader.read(self.partitions(), self.all_keys())
        for path, node_id in self.ids.items():
            record = read_set.record(node_key(self.hierarchy.name, path))
            if record is None or record.id != node_id:
                raise NodeMoved(f"{shorten(node_id)} is being moved by someone else; retry.")
        return read_set

    def keys_of_others(self, expected: int | None) -> list[Key]:
        """The keys that tell of other nodes at the path before: that of the redirect of the last one that has left it,
        and that of the first id of a node which was created there without one.

        None without an expected revision, and where the node was named by its id: then no path says whose it is.
        """
        return [] if expected is None or self.path in self.ids else [*self._others]

    @cached_property
    def _others(self) -> tuple[Key, Key]:
        name = self.hierarchy.name
        return redirect_key(self.key), id_key(f"{name}:{derived_id(name, self.path)}")

    def find(self, read_set: ReadSet, faults: FaultList, expected: int | None) -> Record | None:
        """The node, None where there is none; that, and another revision than the expected one, is a fault."""
        record = read_set.record(self.key)
        if record is None:
            if self.path != NOWHERE:
                faults.add(not_found(self.path).at("node"))
        elif expected is not None and record.revision != expected:
            text = f"{shorten(format_path(self.path))} is at revision {record.revision}, not {expected}; read it again"
            faults.add(Conflict(f"{text} and retry.").at("expected_revision"))
        elif self._may_be_another(record, *[(key, read_set[key]) for key in self.keys_of_others(expected)]):
            text = f"{shorten(format_path(self.path))} has been left by a node before, so revision {expected} may be"
            faults.add(Conflict(f"{text} another node's; name the node by its id.").at("expected_revision"))
        return record

    def _may_be_another(self, record: Record, *others: tuple[Key, Item | None]) -> bool:
        """Whether another node than this may have been at the path before, by what is at `keys_of_others`.

        A redirect of this node may have taken the place of another one's, so it tells nothing better.
        """
        if not others:
            return False
        (_, redirect), (key, first) = others
        return redirect is not None or (first is not None and key != id_key(record.id))


@dataclass(frozen=True)
class Create(Edit):
    """A new node at a path; `node_id` is without its hierarchy's prefix, None for an id that no node ever had."""

    level: str
    name: str
    values: Mapping[str, Value]
    node_id: str | None = None

    def keys_to_read(self) -> list[Key]:
        return [*super().keys_to_read(), id_key(f"{self.hierarchy.name}:{self._wanted_id}")]

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        keys, hierarchy = self.keys_to_read(), self.hierarchy.name
        key, record_key = keys[0], keys[-1]
        read_set = await self.read(reader)
        faults, id_record = FaultList(self.faults), read_set[record_key]
        above, values, (node_id, revision, when) = [""], {**self.values}, ("", 1, ABSENT)
        if self.path[:-1] != NOWHERE:
            with faults.collecting("parent"):
                above = levels_above(read_set, self.hierarchy, self.path, self.level)
        with faults.collecting("id"):
            await self._check_not_in_cascade(reader, read_set, id_record)
            node_id, revision, when = self._identity(id_record)
        with faults.collecting("attributes"):
            values = self._new_values(values)
            check_content(shorten(format_path(self.path)), self.name, values)
        with faults.collecting():
            read_set.check_not_moving(key)
            if read_set[key] is not None:
                raise taken(self.path).at("key")
        faults.check()
        record = Record.new(hierarchy, self.path, self.level, self.name, node_id, context.at, values, above=above)
        record = replace(record, revision=revision, changed_by=context.by)
        transaction = TransactionBuilder(self.hierarchy, read_set, context, record)
        transaction.create(record, when)
        return transaction

    def _new_values(self, values: dict[str, Value]) -> dict[str, Value]:
        """The values with defaults. Raises BadValue or Faults for required ones without, unless their value has a fault
        already.
        """
        faults = FaultList()
        with faults.collecting():
            return self.hierarchy.any_level(self.level).new_values(values)
        known = {fault.field[:2] for fault in self.faults}
        FaultList([fault for fault in faults.errors if not fault.field or fault.field not in known]).check()
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

    def _identity(self, id_record: Item | None) -> tuple[str, int, Condition]:
        """The id, its next revision, and the condition for its record.

        A deleted node's id and history continue only where the id is given; the id of an existing node is rejected.
        """
        if id_record is None:
            return self._wanted_id, 1, ABSENT
        if self.node_id is None:
            return uuid4().hex, 1, ABSENT
        if current_key(id_record) is not None:
            raise AlreadyExists(f"The id {self.node_id} is that of another node; give another, or leave it out.")
        gone = decoded(id_record, Tombstone)
        return self.node_id, 1 + gone.revision, {"deleted": gone.deleted}


class Addition(NamedTuple):
    """An amount to add to the value of an attribute; `label` is its name in messages, `place` that in the input."""

    place: int
    name: str
    label: str
    amount: str


@dataclass(frozen=True)
class Update(Edit):
    """Other content for a node: a value that is left out stays, None clears it; a name that is None stays. `adds` has
    at most one amount for each attribute, none that is among the values.
    """

    name: str | None
    level: str | None
    values: Mapping[str, Value]
    expected: int | None = None
    adds: Sequence[Addition] = ()

    def partitions(self) -> set[str]:
        return {tree_key(self.hierarchy.name, self.path)}

    def keys_to_read(self) -> list[Key]:
        keys = super().keys_to_read()
        return [*(keys if is_indexed(self.hierarchy) else keys[:1]), *self.keys_of_others(self.expected)]

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await self.read(reader)
        faults = FaultList(self.faults)
        old, name, values = self.find(read_set, faults, self.expected), "", dict[str, Value]()
        sums = {} if old is None else self._sums(old, faults)
        if old is not None and self.level not in (None, old.level):
            found, given = [self.hierarchy.any_level(one).label for one in (old.level, str(self.level))]
            wrong = f"{shorten(format_path(self.path))} has the level {found}, not {given}"
            faults.add(WrongLevel(f"{wrong}; give the attributes of {found}.").at("attributes"))
            with faults.collecting("names"):
                with_changes(old.attributes, {name: one for name, one in self.values.items() if name == NAMES})
        elif old is not None:
            name = old.name if self.name is None else self.name
            with faults.collecting("attributes"):
                values = self.hierarchy.any_level(old.level).changed(old.attributes, {**self.values, **sums})
                check_content(shorten(format_path(self.path)), name, values)
        if old is None or faults.errors:
            raise faults.error()
        level = self.hierarchy.any_level(old.level)
        if (name, values) == (old.name, level.current(old.attributes)):
            return TransactionBuilder(self.hierarchy, read_set, context, old)
        new = replace(
            old, name=name, attributes=values, revision=old.revision + 1, updated_at=context.at, changed_by=context.by
        )
        transaction = TransactionBuilder(self.hierarchy, read_set, context, new)
        if transaction.recipe is not None:  # also where only other versions of the class search
            await reader.read_into(read_set, [], ancestor_keys(self.key))
        transaction.update(old, new)
        return transaction

    def _sums(self, old: Record, faults: FaultList) -> dict[str, Value]:
        """The values after the amounts are added to the present ones."""
        level, sums = self.hierarchy.any_level(old.level), dict[str, Value]()
        for place, name, label, amount in self.adds:
            attribute = level.attributes.get(name)
            if attribute is None or not attribute.takes_amounts:
                text = f"{level.label} has no {label} that takes an amount; leave it out."
                faults.add(WrongLevel(text).at("add", str(place), "field"))
                continue
            with faults.collecting("add", str(place), "amount"):
                sums[name] = attribute.plus(attribute.value_in(old.attributes), amount)
        return sums


# -- shared by all edits -----------------------------------------------------------------------------------------------


def touched(hierarchy: str, *paths: Path) -> set[str]:
    """The partitions of the trees of some paths, and the hierarchy where one is a root's."""
    roots = {hierarchy for path in paths if len(path) == 1}
    return {tree_key(hierarchy, path) for path in paths} | roots


def taken(path: Path) -> AlreadyExists:
    """The error for a path that another node has."""
    return AlreadyExists(f"There is a node at {shorten(format_path(path))} already; choose another place.")


def existing(read_set: ReadSet, hierarchy: Hierarchy, path: Path) -> Record:
    """The node at a path; raises NotFound."""
    record = read_set.record(node_key(hierarchy.name, path))
    if record is None:
        raise not_found(path)
    return record


def not_found(path: Path) -> NotFound:
    """The error for an edit of a node that does not exist, as at a former path: edits follow no redirects."""
    return NotFound(f"There is no node at {shorten(format_path(path))}; give the current path of one.")


def levels_above(read_set: ReadSet, hierarchy: Hierarchy, path: Path, level: str) -> list[str]:
    """The levels above a node of this level at this path; raises NotFound without its parent, Misplaced where the
    level is not allowed there.
    """
    parent = existing(read_set, hierarchy, path[:-1]) if len(path) > 1 else None
    under = parent.level if parent else None
    if not may_stand(hierarchy, level, under):
        raise Misplaced(misplaced(hierarchy, level, under))
    return [*parent.above, parent.level] if parent else []
