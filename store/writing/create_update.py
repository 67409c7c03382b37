"""Creating and updating one node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from store.errors import AlreadyExists, Conflict, Fault, FaultList, Misplaced, WrongLevel, shorten
from store.kinds.registry import is_asked
from store.kinds.unique import UniqueValue, given_values
from store.metadata.history import Gone, current_key, gone_of
from store.model.attributes import Value
from store.model.decoding import decoded
from store.model.hierarchy import Hierarchy, may_stand, misplaced
from store.model.keys import Key, Path, ancestor_keys, id_key, node_key, tree_key
from store.model.names import NAMES, with_changes
from store.model.paths import format_path
from store.model.records import ABSENT, Condition, Item, Record, check_content, derived_id
from store.writing.edit import NOWHERE, Edit, child_path, not_found
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.transaction import TransactionBuilder


@dataclass(frozen=True)
class Create(Edit):
    """A new node at a path; `node_id` is without its hierarchy's prefix, None for an id that no node ever had.

    With `names` it is below the node of the field `parent`, or a root without one, and the path is its key alone,
    UNUSABLE for one at fault. Where the input says no level it is empty, and nothing else is checked.
    """

    level: str
    name: str
    values: Mapping[str, Value]
    node_id: str | None = None

    @property
    def before(self) -> Path:
        return ()

    def _at(self, found: Mapping[str, Path], faults: Sequence[Fault]) -> dict[str, Any]:
        path, faults = child_path(found.get("parent", NOWHERE) if self.names else (), self.path[-1], faults)
        return {"path": path, "faults": faults}

    def keys_to_read(self) -> list[Key]:
        values = [key for one in self.given_values for key in one.keys]
        return [*super().keys_to_read(), *values, id_key(f"{self.hierarchy.name}:{self._wanted_id}")]

    async def _build(self, reader: Reader, read_set: ReadSet, context: WriteContext) -> TransactionBuilder:
        if not self.level:
            raise FaultList(self.faults).error()
        keys, hierarchy = self.keys_to_read(), self.hierarchy.name
        key, record_key = keys[0], keys[-1]
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
        if self.node_id is not None and (gone := gone_of(id_record)) is not None:
            await transaction.take_out(gone, reader)
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
    def given_values(self) -> list[UniqueValue]:
        """The unique values that the node gets."""
        return given_values(self.hierarchy, self.level, self.values)

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
        gone = decoded(id_record, Gone)
        return self.node_id, 1 + gone.revision, gone.when


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

    @property
    def former_parent(self) -> Key | None:
        return None  # it stays the present one

    def partitions(self) -> set[str]:
        return {tree_key(self.hierarchy.name, self.path)}

    def keys_to_read(self) -> list[Key]:
        keys = super().keys_to_read()
        values = [key for one in self.given_values for key in one.keys]
        return [*(keys if is_asked(self.hierarchy) else keys[:1]), *values, *self.keys_of_others(self.expected)]

    @cached_property
    def given_values(self) -> list[UniqueValue]:
        """The unique values that the node gets."""
        return given_values(self.hierarchy, self.level or "", self.values)

    async def _build(self, reader: Reader, read_set: ReadSet, context: WriteContext) -> TransactionBuilder:
        faults = FaultList(self.faults)
        old, name, values = self.find(reader, read_set, faults, self.expected), "", dict[str, Value]()
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
        if transaction.recipes:  # also where only other versions of the class search
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


def taken(path: Path) -> AlreadyExists:
    """The error for a path that another node has."""
    return AlreadyExists(f"There is a node at {shorten(format_path(path))} already; choose another place.")


def existing(read_set: ReadSet, hierarchy: Hierarchy, path: Path) -> Record:
    """The node at a path; raises NotFound."""
    record = read_set.record(node_key(hierarchy.name, path))
    if record is None:
        raise not_found(path)
    return record


def levels_above(read_set: ReadSet, hierarchy: Hierarchy, path: Path, level: str) -> list[str]:
    """The levels above a node of this level at this path; raises NotFound without its parent, Misplaced where the
    level is not allowed there.
    """
    parent = existing(read_set, hierarchy, path[:-1]) if len(path) > 1 else None
    under = parent.level if parent else None
    if not may_stand(hierarchy, level, under):
        raise Misplaced(misplaced(hierarchy, level, under))
    return [*parent.above, parent.level] if parent else []
