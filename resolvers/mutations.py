"""Mutations: what is asked for, checked against the caller's grants, made as edits of the store, after which the
request discards what it has read.

A node is named by its current path, since mutations follow no redirects, or by its id, which is looked up first. Grants
are checked by paths alone, so an error discloses nothing about hidden nodes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from resolvers.access.callers import check_change, check_put, check_reorder, check_visible, check_writable
from resolvers.access.grants import may_read
from resolvers.session.request import Request
from store.engine import ReadUsage
from store.errors import BadInput, CladeError, Conflict, FaultList, Forbidden, NodeMoved, NotFound, shorten, shown
from store.metadata.history import current_key
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Path, id_key, path_of
from store.model.paths import check_new_key, checked_path, format_path
from store.model.records import is_id
from store.writing.create_update import Create, Edit, Refused, Update
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Delete, Move
from store.writing.move_delete import Policy as Policy
from store.writing.positions import Position
from store.writing.positions import Side as Side
from store.writing.writer import Writer

ATTEMPTS = 5  # at the path for an id, while its node is being moved
UNUSABLE = "\x7f"  # the key of an edit whose input has a fault in its key; no node has it

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Named:
    """A node by its path or by its id, of which exactly one is given; `field` is that of the input."""

    field: str
    path: Path | None = None
    id: str | None = None


class Places:
    """The paths of nodes that are named: of those with an id the present ones."""

    def __init__(self, hierarchy: Hierarchy, by_id: Mapping[str, Path], settle_seconds: float) -> None:
        self.hierarchy, self._by_id, self.settle_seconds = hierarchy, by_id, settle_seconds

    def path(self, named: Named) -> Path:
        """Raises NotFound for an id without a node."""
        found = self._by_id.get(named.id or "") if named.path is None else named.path
        if found is None:
            text = f"There is no {self.hierarchy.name} with the id {shown(named.id)}"
            prefix = f"{self.hierarchy.name}:"
            way = "" if str(named.id).startswith(prefix) else f'; one begins with "{prefix}"'
            raise NotFound(f"{text}{way}.").at(named.field)
        return found

    def ids(self, *named: Named | None) -> dict[Path, str]:
        """The ids by which some nodes are named, by their paths."""
        return {self.path(one): one.id for one in named if one is not None and one.id is not None}


@dataclass(frozen=True)
class Asked(ABC):
    """What a mutation asks for. `faults` are those of its input that were found before anything was read."""

    faults: Sequence[CladeError]

    @abstractmethod
    def names(self) -> list[Named]:
        """The nodes that it names."""

    @abstractmethod
    def edit(self, places: Places) -> Edit:
        """The edit of nodes at these places. Raises BadInput where there can be none."""


@dataclass(frozen=True)
class AskedCreate(Asked):
    """A new node below `parent`, None: a root; `id` is without its hierarchy's prefix."""

    parent: Named | None
    key: str
    level: str
    name: str
    values: Values
    id: str | None

    def names(self) -> list[Named]:
        return [] if self.parent is None else [self.parent]

    def edit(self, places: Places) -> Edit:
        path, faults = _child(() if self.parent is None else places.path(self.parent), self.key, self.faults)
        ids = places.ids(self.parent)
        return Create(
            places.hierarchy, path, self.level, self.name, self.values, self.id, ids=ids, faults=faults
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

    def edit(self, places: Places) -> Edit:
        path, ids = places.path(self.node), places.ids(self.node)
        return Update(
            places.hierarchy, path, self.name, self.level, self.values, self.expected, ids=ids, faults=self.faults
        )  # fmt: skip


@dataclass(frozen=True)
class AskedMove(AskedChange):
    """Another parent `to`, or none with `to_root`, another key, and a position, each None where it stays."""

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
        if self.side is not None:
            beside = None if self.beside is None else places.path(self.beside)
            position = Position(self.side, beside, places.settle_seconds)
            if beside is not None and parent != beside[:-1]:
                if self.to_root or self.to is not None:
                    text = f"{shorten(format_path(beside))} is not below the parent that `to` gives"
                    found.append(BadInput(f"{text}; omit `to`, or give a sibling there.").at("position"))
                    position = None
                else:
                    parent = beside[:-1]
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
    """Make what is asked for. Raises its faults, all of them at once, and Forbidden for what the caller may not do."""
    writer = enabled_writer(request)
    request.state.accepts_stale = False
    options = replace(options, by=request.caller.name, caller=request.caller.id)
    # The reads of an edit are bounded by the size of a transaction; a dry run has the read budget of a query.
    reads = request.reads if options.dry_run else ReadUsage(trace=request.reads.trace)
    try:
        for _ in range(ATTEMPTS):
            made = await _edit(request, hierarchy, asked, reads, is_repeatable=options.key is not None)
            with suppress(NodeMoved):
                return await writer.write(made, reads, options)
        raise Conflict("The node is moved by someone else again and again, so nothing was changed; retry later.")
    finally:
        if reads is not request.reads:
            request.reads.include(reads)
        if not options.dry_run:
            request.discard_reads()


async def _edit(
    request: Request, hierarchy: Hierarchy, asked: Asked, reads: ReadUsage, *, is_repeatable: bool
) -> Edit:  # fmt: skip
    """The edit that is asked for. Raises Forbidden, NotFound for what the caller may not see, and faults."""
    names = asked.names()
    ids = [one.id for one in names if one.id is not None and is_id(hierarchy, one.id)]
    items = await request.store.get([id_key(one) for one in ids], reads, strong=True) if ids else []
    keys = {node_id: key for node_id, item in zip(ids, items, strict=True) if (key := current_key(item)) is not None}
    # A store that has a version has no lag.
    settle = request.settle_seconds if request.state.store_version is None else 0.0
    visible = {one: path_of(*key) for one, key in keys.items() if may_read(request.caller.reads, key)}
    places, faults, lost = Places(hierarchy, visible, settle), FaultList(), [*names]
    for named in names:
        with faults.collecting(named.field):
            path = places.path(named)
            # Whoever may not change the node is refused before the other ones are looked at.
            (check_change if named.field == "node" else check_visible)(request.caller, hierarchy.name, path)
            lost.remove(named)
    if lost:
        faults.errors += asked.faults
        # A node may be gone since the same request was made before; of a hidden one nothing is told.
        if is_repeatable and all(one.path is None and one.id not in keys for one in lost):
            return Refused(hierarchy, (), faults.error())
        raise faults.error()
    made = asked.edit(places)
    _check(request, made)
    return made


def _check(request: Request, made: Edit) -> None:
    """Raise Forbidden for what the caller may not do with nodes that it may see."""
    caller, name, path = request.caller, made.hierarchy.name, made.path
    target = made.target if isinstance(made, Move) else path
    if isinstance(made, Create | Move) and target[-1] != UNUSABLE:  # which is a fault, whoever gives it
        check_put(caller, name, target)
    match made:
        case Create(node_id=str()):
            check_writable(caller, name, (), "choose an id, since ids are shared by all; leave it out")
        case Move(position=Position()):
            check_reorder(caller, name, target)
        case Delete(policy=Policy.REPARENT):
            check_writable(caller, name, path[:-1], "let its children take its place")


def _child(
    parent: Path, key: str, faults: Sequence[CladeError], field: str = "key"
) -> tuple[Path, Sequence[CladeError]]:  # fmt: skip
    """The path of a child, and the faults with that of its `field`; then another path, which no node has, is returned.

    Raises all faults where there is not even room for that.
    """
    found = FaultList(faults)
    with found.collecting(field):
        if key != UNUSABLE:
            path = checked_path((*parent, key))
            if field == "key":  # the present one may be one that no new node could have
                check_new_key(key)
            return path, found.errors
    with found.collecting(field):
        return (*checked_path((*parent, "0000"))[:-1], UNUSABLE), found.errors
    raise found.error()
