"""Mutations: what is asked for, checked against the caller's grants, made as edits of the store, after which the
request discards what it has read.

A node is named by its current path, since mutations follow no redirects, or by its id, which is looked up first. Grants
are checked by paths alone, so an error discloses nothing about hidden nodes. They come before all faults: a part of an
input that is at fault counts as whatever would need the fewest of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

from resolvers.access.callers import (
    check_change,
    check_put,
    check_put_child,
    check_reorder,
    check_visible,
    check_writable,
    check_writes,
)
from resolvers.access.grants import may_read
from resolvers.session.request import Request
from store.engine import ReadUsage
from store.errors import (
    BadPath,
    BadValue,
    CladeError,
    Conflict,
    Fault,
    FaultList,
    Forbidden,
    NodeMoved,
    NotFound,
    Rule,
    shorten,
    shown,
)
from store.metadata.history import current_key
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, id_key, path_of
from store.model.paths import check_limits, check_new_key, check_sizes, format_path
from store.model.records import is_id
from store.writing.create_update import NOWHERE, Create, Edit, Update
from store.writing.create_update import UNUSABLE as UNUSABLE
from store.writing.create_update import Addition as Addition
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Delete, Move
from store.writing.move_delete import Policy as Policy
from store.writing.positions import Position
from store.writing.positions import Side as Side
from store.writing.writer import Writer

ATTEMPTS = 5  # at the path for an id, while its node is being moved

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Named:
    """A node by its path or by its id; by neither where what is given can be none. `field` is that of the input."""

    field: str
    path: Path | None = None
    id: str | None = None


class Places:
    """The paths of the nodes that are named, by their fields; those that are not found are NOWHERE.

    What else is wrong with the input is then found all the same.
    """

    def __init__(self, hierarchy: Hierarchy, found: Mapping[str, Path], settle_seconds: float) -> None:
        self.hierarchy, self._found, self.settle_seconds = hierarchy, found, settle_seconds

    def path(self, named: Named) -> Path:
        return self._found.get(named.field, NOWHERE)

    def ids(self, *named: Named | None) -> dict[Path, str]:
        """The ids by which some nodes are named, by the paths at which they were found."""
        given = [one for one in named if one is not None and one.id is not None]
        return {self._found[one.field]: str(one.id) for one in given if one.field in self._found}


@dataclass(frozen=True)
class Asked(ABC):
    """What a mutation asks for. `faults` are those of its input that were found before anything was read."""

    faults: Sequence[Fault]

    @abstractmethod
    def names(self) -> list[Named]:
        """The nodes that it names."""

    @abstractmethod
    def edit(self, places: Places) -> Edit:
        """The edit of nodes at these places."""


@dataclass(frozen=True)
class AskedCreate(Asked):
    """A new node below `parent`, None: a root; `id` is without its hierarchy's prefix.

    A key and an id at fault are UNUSABLE; the level is None where none is given.
    """

    parent: Named | None
    key: str
    level: str | None
    name: str
    values: Values
    id: str | None

    def names(self) -> list[Named]:
        return [] if self.parent is None else [self.parent]

    def edit(self, places: Places) -> Edit:
        path, faults = _child(() if self.parent is None else places.path(self.parent), self.key, self.faults)
        ids = places.ids(self.parent)
        return Create(
            places.hierarchy, path, self.level or "", self.name, self.values, self.id, ids=ids, faults=faults
        )  # fmt: skip


@dataclass(frozen=True)
class AskedChange(Asked):
    """A change of a node, `expected` to have this revision."""

    node: Named
    expected: int | None

    def names(self) -> list[Named]:
        return [self.node]


@dataclass(frozen=True)
class AskedUpdate(AskedChange):
    """Other content: values that are left out stay, None clears one; a name and a level that are None stay."""

    name: str | None
    level: str | None
    values: Values
    adds: Sequence[Addition] = ()

    def edit(self, places: Places) -> Edit:
        path, ids = places.path(self.node), places.ids(self.node)
        return Update(
            places.hierarchy, path, self.name, self.level, self.values, self.expected, self.adds,
            ids=ids, faults=self.faults,
        )  # fmt: skip


@dataclass(frozen=True)
class AskedMove(AskedChange):
    """Another parent `to`, or none with `to_root`, another key, and a position, each None where it stays.

    A key at fault is UNUSABLE, a position at fault a `side` alone.
    """

    to: Named | None
    to_root: bool
    key: str | None
    side: Side | None
    beside: Named | None

    def names(self) -> list[Named]:
        return [one for one in (self.node, self.to, self.beside) if one is not None]

    def edit(self, places: Places) -> Edit:
        path, position, found = places.path(self.node), None, [*self.faults]
        parent = () if self.to_root else places.path(self.to) if self.to is not None else path[:-1]
        beside = None if self.beside is None else places.path(self.beside)
        if beside == NOWHERE:
            parent, beside = parent if self.to_root or self.to is not None else NOWHERE, None
        elif beside is not None and parent not in (beside[:-1], NOWHERE):
            if self.to_root or self.to is not None:
                text = f"{shorten(format_path(beside))} is not below the new parent; give one of its children."
                found.append(BadValue(text, Rule.SIBLING).at("position"))
                beside = None
            else:
                parent = beside[:-1]
        if self.side is not None:
            position = Position(self.side, beside, places.settle_seconds)
        field = "to" if self.to_root or self.to is not None else "position"
        if self.key in (None, path[-1]):
            target, faults = (path, found) if parent == path[:-1] else _child(parent, path[-1], found, field)
        else:
            target, faults = _child(parent, str(self.key), found)
        ids = places.ids(self.node, self.to, self.beside)
        return Move(places.hierarchy, path, target, self.expected, position, field, ids=ids, faults=faults)


@dataclass(frozen=True)
class AskedDelete(AskedChange):
    """A deletion, with what happens to the children."""

    policy: Policy

    def edit(self, places: Places) -> Edit:
        path, ids = places.path(self.node), places.ids(self.node)
        return Delete(places.hierarchy, path, self.policy, self.expected, ids=ids, faults=self.faults)


def enabled_writer(request: Request) -> Writer:
    """The writer of a request. Raises Forbidden where the server accepts no mutations, whoever sends them."""
    if request.writer is None:
        raise Forbidden("Mutations are disabled on this server; CLADE_WRITES=granted or on enables them.")
    return request.writer


async def edit(request: Request, hierarchy: Hierarchy, asked: Asked, options: EditOptions) -> EditResult:
    """Make what is asked for. Raises Forbidden for what the caller may not do, else its faults, all of them at once."""
    writer = enabled_writer(request)
    check_writes(request.caller, hierarchy.name)
    if (refusal := request.budget.refusal) is not None:  # by a mutation before: there will be no response
        raise refusal
    request.state.accepts_stale = False
    options = replace(options, by=request.caller.name, caller=request.caller.id)
    # The reads of an edit are bounded by the size of a transaction; a dry run has the read budget of a query.
    reads = request.reads if options.dry_run else ReadUsage(trace=request.reads.trace)
    try:
        for _ in range(ATTEMPTS):
            made = _edit(request, hierarchy, asked, await _keys_of(request, hierarchy, asked, reads))
            with suppress(NodeMoved):
                result = await writer.write(made, reads, replace(options, refuse=partial(_refusal, request, made)))
                if result.repeats is not None and result.repeats.refusal is not None:
                    await _refuse(request, hierarchy, asked, result.repeats.refusal, reads)
                return result
        raise Conflict("The node is moved by someone else again and again, so nothing was changed; retry later.")
    finally:
        if reads is not request.reads:
            request.reads.include(reads, free=True)
        if not options.dry_run:
            request.forget_reads()


async def _keys_of(request: Request, hierarchy: Hierarchy, asked: Asked, reads: ReadUsage) -> dict[str, Key]:
    """The present keys of the nodes that are named by their ids, by these."""
    ids = [one.id for one in asked.names() if one.id is not None and is_id(hierarchy, one.id)]
    items = await request.store.get([id_key(one) for one in ids], reads, strong=True) if ids else []
    return {node_id: key for node_id, item in zip(ids, items, strict=True) if (key := current_key(item)) is not None}


def _edit(request: Request, hierarchy: Hierarchy, asked: Asked, keys: Mapping[str, Key]) -> Edit:
    """The edit that is asked for, with the faults of all that it names. Raises Forbidden."""
    faults, found = FaultList(), dict[str, Path]()
    for named in asked.names():
        with faults.collecting(named.field):
            path = named.path
            if named.id is not None:
                key = keys.get(named.id)
                if key is None or not may_read(request.caller.reads, key):
                    raise _no_such_id(hierarchy, named.id)
                path = path_of(*key)
            if path is not None:
                # Whoever may not change the node is refused before the other ones are looked at.
                (check_change if named.field == "node" else check_visible)(request.caller, hierarchy.name, path)
                found[named.field] = path
    if faults.errors:
        asked = replace(asked, faults=[*faults.errors, *asked.faults])
    settle = request.settle_seconds if request.state.validators.has_lag else 0.0
    made = asked.edit(Places(hierarchy, found, settle))
    _check(request, made)
    if isinstance(asked, AskedCreate) and asked.level is None:  # nothing says what else would be wrong with it
        raise FaultList(made.faults).error()
    return made


def _refusal(request: Request, made: Edit, before: Path, path: Path) -> CladeError | None:
    """Why the caller may not have the result of the same edit, by which a node came from one path to another: it may
    not make it there now. None where it may.
    """
    caller, hierarchy = request.caller, made.hierarchy
    try:
        for one in (before, path):
            check_visible(caller, hierarchy.name, one)
        there = replace(made, path=before, target=path) if isinstance(made, Move) else replace(made, path=path)
        if not isinstance(made, Create):
            check_change(caller, hierarchy.name, before)
        _check(request, there)
    except (NotFound, Forbidden) as error:
        return error
    return None


async def _refuse(
    request: Request, hierarchy: Hierarchy, asked: Asked, refusal: CladeError, reads: ReadUsage
) -> NoReturn:
    """Raise what somebody is told who may not make a change; what is hidden is not found, at the price of that."""
    if isinstance(refusal, NotFound):
        await enabled_writer(request).write(_edit(request, hierarchy, asked, {}), reads, EditOptions(dry_run=True))
        refusal = NotFound("There is no such node.")  # without the path, which is hidden
    raise refusal


def _no_such_id(hierarchy: Hierarchy, node_id: str) -> NotFound:
    prefix = f"{hierarchy.name}:"
    way = "" if node_id.startswith(prefix) else f'; one begins with "{prefix}"'
    return NotFound(f"There is no node with the id {shown(node_id)}{way}.")


def _check(request: Request, made: Edit) -> None:
    """Raise Forbidden for what the caller may not do with nodes that it may see."""
    caller, name, path = request.caller, made.hierarchy.name, made.path
    target = made.target if isinstance(made, Move) else path
    if isinstance(made, Create | Move) and UNUSABLE not in target[:-1]:
        if target[-1] == UNUSABLE:
            check_put_child(caller, name, target[:-1])
        else:
            check_put(caller, name, target)
    match made:
        case Create(node_id=str()):
            check_writable(caller, name, (), "choose an id, since ids are shared by all; leave it out")
        case Move(position=Position()) if NOWHERE not in (path, target[:-1]):
            check_reorder(caller, name, target)
        case Delete(policy=Policy.REPARENT) if path != NOWHERE:
            check_writable(caller, name, path[:-1], "let its children take its place")


def _child(
    parent: Path, key: str, faults: Sequence[Fault], field: str = "key"
) -> tuple[Path, Sequence[Fault]]:  # fmt: skip
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
