"""Edit: a change of one node that a client requests, as a value that builds its transaction.

Its nodes are named by their current paths, since edits follow no redirects, or by their ids. They are found, and the
rights to them asked, where the transaction is built: after the versions of the trees and with the changes of the edits
before it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

from store.errors import BadPath, Conflict, Fault, FaultList, Forbidden, NotFound, shorten, shown
from store.kinds.marker import marker_key
from store.kinds.unique import Holder, UniqueValue
from store.metadata.history import Gone, current_key, redirect_key
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, ancestor_keys, id_key, node_key, path_of, tree_key
from store.model.paths import check_limits, check_new_key, check_sizes, format_path
from store.model.records import Item, Record, derived_id, is_id
from store.writing.reads import Reader, ReadSet, Rights, WriteContext
from store.writing.transaction import TransactionBuilder

UNUSABLE = "\x7f"  # the key of an edit whose input has a fault in its key; no node has it
NOWHERE = (UNUSABLE, UNUSABLE)  # the path of a node that is not found, which is among the faults of the edit already
ATTEMPTS = 5  # at the path for an id, while its node is being moved


class Named(NamedTuple):
    """A node by its path, its id or a unique value; by none where what is given can be none. `field` is that of the
    input, `key` that of the item of the value, once it is known.
    """

    field: str
    path: Path | None = None
    id: str | None = None
    value: UniqueValue | None = None
    key: Key | None = None


class Places(NamedTuple):
    """What is known of nodes that edits name: their keys by id, and ids by unique value, None for each of no node; and
    the tombstone of one to restore.
    """

    keys: Mapping[str, Key | None] = {}
    ids: Mapping[UniqueValue, str | None] = {}
    gone: Gone | None = None

    def id_of(self, named: Named) -> str | None:
        """The id of a node that is not named by its path."""
        return named.id if named.value is None else self.ids.get(named.value)


async def places_of(hierarchy: Hierarchy, names: Sequence[Named], reader: Reader) -> Places:
    """Where the nodes are that are named by ids or unique values."""
    values = {one.value: one.key for one in names if one.value is not None and one.key is not None}
    ids = dict[UniqueValue, str | None]()
    if values:
        read_set = await reader.read([], values.values())
        ids = {value: None if (item := read_set[key]) is None else Holder.of(item).id for value, key in values.items()}
    wanted = [one.id for one in names if one.id is not None and is_id(hierarchy, one.id)]
    # A value that no node has takes the reads of one that a node has, which may be hidden.
    wanted += [one or f" {value.text}" for value, one in ids.items()]
    if not wanted:
        return Places()
    read_set = await reader.read([], map(id_key, wanted))
    return Places({one: current_key(read_set[id_key(one)]) for one in wanted}, ids)


@dataclass(frozen=True)
class Edit(ABC):
    """A change that a client requests of the node at a path.

    With `names`, those of the nodes that its input names, the path is that of the field `node`, whatever is given here;
    without them it is known to be valid. `ids` are those of nodes that were named by them, by the paths at which they
    were found. `faults` are those that the input has besides what the store knows; all are raised together.
    """

    hierarchy: Hierarchy
    path: Path
    names: Sequence[Named] | None = field(default=None, kw_only=True)
    ids: Mapping[Path, str] = field(default_factory=dict, kw_only=True)
    faults: Sequence[Fault] = field(default=(), kw_only=True)

    # -- places --------------------------------------------------------------------------------------------------------

    @property
    def named_ids(self) -> list[str]:
        """The ids that it names and that nodes of its hierarchy can have."""
        return [one.id for one in self.names or () if one.id is not None and is_id(self.hierarchy, one.id)]

    @property
    def named_values(self) -> list[UniqueValue]:
        """The unique values that it names."""
        return [one.value for one in self.names or () if one.value is not None]

    def keyed(self, keys: Mapping[UniqueValue, Key]) -> Self:
        """The edit with the keys of the items of the unique values that it names."""
        if self.names is None:
            return self
        return replace(self, names=[one._replace(key=keys[one.value]) if one.value else one for one in self.names])

    @property
    def before(self) -> Path:
        """The path of the node before, empty for a new one."""
        return self.path

    def placed(self, places: Places, rights: Rights) -> Self:
        """The edit at the paths of its nodes, of which the present `places` are given; at NOWHERE, with a fault, for
        one that is not found or hidden. It has no names, and is placed for good. Raises Forbidden.
        """
        if self.names is None:
            return self
        faults, found, ids = FaultList(), dict[str, Path](), dict[Path, str]()
        for named in self.names:
            with faults.collecting(named.field):
                path = named.path
                if named.id is not None or named.value is not None:
                    path = self._path_of(named, places, rights)
                    ids[path] = str(places.id_of(named))
                if path is not None:
                    # Whoever may not change the node is refused before the other ones are looked at.
                    (rights.check_change if named.field == "node" else rights.check_visible)(self.hierarchy.name, path)
                    found[named.field] = path
        made = replace(self, **self._at(found, [*faults.errors, *self.faults]), ids=ids, names=None)
        rights.check(made)
        return made

    def _path_of(self, named: Named, places: Places, rights: Rights) -> Path:
        """The path of a node with an id or a unique value; raises NotFound where there is none, or a hidden one."""
        if (key := places.keys.get(places.id_of(named) or "")) is not None:
            with suppress(NotFound):
                path = path_of(*key)
                rights.check_visible(self.hierarchy.name, path)
                return path
        if named.value is not None:
            raise NotFound(f"There is no node with the {named.value.text}.")
        prefix = f"{self.hierarchy.name}:"
        way = "" if str(named.id).startswith(prefix) else f'; one begins with "{prefix}"'
        raise NotFound(f"There is no node with the id {shown(named.id)}{way}.")

    def _at(self, found: Mapping[str, Path], faults: Sequence[Fault]) -> dict[str, Any]:
        """The fields of the edit of nodes at these paths, by the fields that name them; those not found are NOWHERE."""
        return {"path": found.get("node", NOWHERE), "faults": faults}

    def refusal(self, ways: Sequence[tuple[Path, Path]], rights: Rights) -> NotFound | Forbidden | None:
        """Why its stored result, by which a node went the only one of these ways, from a path to another, may not be
        returned: the edit may not be made there now. None where it may.
        """
        ((before, path),) = ways
        try:
            for one in (before, path):
                rights.check_visible(self.hierarchy.name, one)
            if self.before:
                rights.check_change(self.hierarchy.name, before)
            rights.check(self._from_to(before, path))
        except (NotFound, Forbidden) as error:
            return error
        return None

    def _from_to(self, before: Path, path: Path) -> Self:
        """The edit by which a node came from one path to another."""
        return replace(self, path=path)

    # -- reads ---------------------------------------------------------------------------------------------------------

    @cached_property
    def key(self) -> Key:
        return node_key(self.hierarchy.name, self.path)

    def partitions(self) -> set[str]:
        """The trees that it writes to, and the hierarchy where its roots change, as far as known before any read."""
        return touched(self.hierarchy.name, self.path)

    def keys_to_read(self) -> list[Key]:
        """The keys that it reads in any case, as far as known before any read; the marker of kinds is another one."""
        return [self.key, *ancestor_keys(self.key)]

    def all_keys(self) -> list[Key]:
        """These keys, those of the nodes that are named by ids, and that of the marker of kinds."""
        name = self.hierarchy.name
        return [*self.keys_to_read(), *[node_key(name, path) for path in self.ids], marker_key(name)]

    def ahead(self, places: Places, rights: Rights) -> "Sequence[Edit]":
        """The edits that will be built if its nodes are at these places: itself, placed. Raises Forbidden."""
        return [self.placed(places, rights)]

    async def places(self, reader: Reader, rights: Rights) -> Places:
        """Where the nodes are that it names by ids or unique values."""
        return await places_of(self.hierarchy, self.names or (), reader)

    async def _located(self, reader: Reader, context: WriteContext) -> tuple[Self, ReadSet]:
        """The edit at the paths of its nodes, and what it reads in any case. Raises Forbidden, and Conflict where a
        node is moved, or its value passed on, again and again.
        """
        for _ in range(ATTEMPTS):
            places = await self.places(reader, context.rights) if self.names else Places()
            placed = self.placed(places, context.rights)
            read_set = await reader.read(placed.partitions(), placed.all_keys())
            found = {path: read_set.record(node_key(self.hierarchy.name, path)) for path in placed.ids}
            records = {record.id: record for record in found.values() if record is not None}
            if [record and record.id for record in found.values()] == [*placed.ids.values()] and all(
                value.is_of(records[one]) for value, one in places.ids.items() if one in records
            ):
                return placed, read_set
            reader.overlay.forget([one.key for one in self.names or () if one.key is not None])
            reader.overlay.forget(map(id_key, places.keys))
        raise Conflict("The node is moved by someone else again and again, so nothing was changed; retry later.")

    # -- building ------------------------------------------------------------------------------------------------------

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        """Read what is needed and build the transaction; raises a CladeError where the edit is not possible."""
        transaction = await self.build_part(reader, context)
        await transaction.settle(reader)
        return transaction

    async def build_part(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        """The same without the changes of what is waiting, which follow from all edits of a transaction."""
        placed, read_set = await self._located(reader, context)
        transaction = await placed._build(reader, read_set, context)
        transaction.before, parent = placed.before, placed.former_parent
        if context.is_stored and parent is not None:
            await reader.read_into(read_set, [], [parent])
            record = read_set.record(parent)
            transaction.parent_before = None if record is None else record.id
        return transaction

    @abstractmethod
    async def _build(self, reader: Reader, read_set: ReadSet, context: WriteContext) -> TransactionBuilder:
        """The transaction of the edit at its paths, of which the read set has `all_keys`."""

    @property
    def former_parent(self) -> Key | None:
        """The key of the parent that a node has before it is moved or deleted."""
        return node_key(self.hierarchy.name, self.before[:-1]) if len(self.before) > 1 else None

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

    def find(self, reader: Reader, read_set: ReadSet, faults: FaultList, expected: int | None) -> Record | None:
        """The node, None where there is none; that, and another revision than the expected one, is a fault."""
        record = read_set.record(self.key)
        if record is None:
            if self.path != NOWHERE:
                faults.add(not_found(self.path).at("node"))
        elif expected is not None and (revision := reader.revision(record)) != expected:
            text = f"{shorten(format_path(self.path))} is at revision {revision}, not {expected}; read it again"
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


def touched(hierarchy: str, *paths: Path) -> set[str]:
    """The partitions of the trees of some paths, and the hierarchy where one is a root's."""
    roots = {hierarchy for path in paths if len(path) == 1}
    return {tree_key(hierarchy, path) for path in paths} | roots


def not_found(path: Path) -> NotFound:
    """The error for an edit of a node that does not exist, as at a former path: edits follow no redirects."""
    return NotFound(f"There is no node at {shorten(format_path(path))}; give the current path of one.")


def child_path(parent: Path, key: str, faults: Sequence[Fault], field: str = "key") -> tuple[Path, Sequence[Fault]]:
    """The path of a child, and the faults with that of its `field`; then another path, which no node has, is returned.

    The segments are valid, only the path may be too deep or too long.
    """
    found, path = FaultList(faults), (*parent, key)
    with found.collecting(field):
        check_limits(path)
        if field == "key" and key != UNUSABLE:  # the present one may be one that no new node could have
            check_new_key(key)
        return path, found.errors
    path = (*parent, UNUSABLE)
    with suppress(BadPath):
        check_sizes(path)
        return path, found.errors
    return (*NOWHERE, UNUSABLE), found.errors
