"""Mutations: what is asked for, the steps that the writer makes of it, and whether the caller may do them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from resolvers.access.grants import may_read
from resolvers.access.permissions import (
    check_change,
    check_create,
    check_put,
    check_reorder,
    check_visible,
    check_writable,
)
from resolvers.session.request import Request
from store.edits.batch import Batch, OneEdit, Refused, Step
from store.edits.create_update import Create, Edit, Update
from store.edits.delete import Delete
from store.edits.delete import Policy as Policy
from store.edits.move import Move
from store.edits.sibling_order import Position
from store.edits.sibling_order import Side as Side
from store.edits.transaction import Way
from store.engine.usage import ReadUsage
from store.errors import BadInput, CladeError, Conflict, FaultList, Forbidden, NodeMoved, NotFound
from store.metadata.history import current_key
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Path, id_key, node_key, path_of
from store.model.paths import checked_path, format_path
from store.model.records import is_id
from store.text import shorten
from store.writer.writer import EditOptions as EditOptions
from store.writer.writer import EditResult as EditResult

WAITING = "\x7f"  # repeated, the key of a node that waits; no path from outside has it

UNUSABLE = ""  # a key with a fault, which is among the faults of its edit

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Named:
    """A node by its path or by its id, of which exactly one is given, and the field of the input that names it."""

    field: str
    path: Path | None = None
    id: str | None = None


@dataclass(frozen=True)
class AskedCreate:
    """A new node below `parent`, None: a root; `id` is with or without the hierarchy's prefix."""

    parent: Named | None
    key: str
    level: str
    name: str
    values: Values
    id: str | None = None
    faults: Sequence[CladeError] = ()


@dataclass(frozen=True)
class AskedUpdate:
    """Another name or other values: those that are left out stay, None clears a value."""

    node: Named
    name: str | None
    level: str | None
    values: Values
    expected: int | None = None
    faults: Sequence[CladeError] = ()


@dataclass(frozen=True)
class AskedMove:
    """Another parent `to`, or none (`to_root`), another key, and a position, each None where it stays."""

    node: Named
    to: Named | None = None
    to_root: bool = False
    key: str | None = None
    side: Side | None = None
    beside: Named | None = None
    expected: int | None = None
    faults: Sequence[CladeError] = ()


@dataclass(frozen=True)
class AskedDelete:
    """A deletion with what becomes of the children."""

    node: Named
    policy: Policy
    expected: int | None = None


Asked = AskedCreate | AskedUpdate | AskedMove | AskedDelete
Check = Callable[[Step], None]


def names_in(asked: Asked) -> list[Named]:
    """The nodes that an edit names."""
    match asked:
        case AskedCreate(parent=parent):
            found: list[Named | None] = [parent]
        case AskedMove(node=node, to=to, beside=beside):
            found = [node, to, beside]
        case _:
            found = [asked.node]
    return [one for one in found if one is not None]


@dataclass
class _Waiting:
    """A step that is made when the edit at `until` has left its target; of a move, `place` is where its node waits."""

    until: int
    number: int
    asked: AskedCreate | AskedMove
    target: Path
    place: Path | None = None
    way: Way | None = None


@dataclass
class StepMaker:
    """Makes the steps of several edits. `paths` are those of the nodes that are named by their ids, before the edits.

    `taken` is whether there is a node at a path before the edits. What is needed and missing there is in `unread` and
    counts as taken: then the steps have to be made anew, with what was read. `check` raises what the caller may not
    do; it is called with each step before the next is made.
    """

    hierarchy: Hierarchy
    paths: dict[str, Path]
    taken: Mapping[Path, bool]
    settle_seconds: float
    check: Check
    steps: list[Step] = field(default_factory=list, init=False)
    waiting_places: list[Path] = field(default_factory=list, init=False)
    unread: dict[Path, None] = field(default_factory=dict, init=False)
    _waiting: list[_Waiting] = field(default_factory=list, init=False)

    def make(self, edits: Sequence[Asked]) -> None:
        """Make the steps of these edits. Raises a CladeError for the first that is not possible, with its number."""
        for number, asked in enumerate(edits):
            try:
                self._add(edits, number, asked)
                for one in [one for one in self._waiting if one.until == number]:
                    self._waiting.remove(one)
                    self._arrive(one)
            except CladeError as error:
                error.edit = number
                raise

    def _add(self, edits: Sequence[Asked], number: int, asked: Asked) -> None:
        match asked:
            case AskedCreate():
                target = self._target(asked, number)
                if (until := self._left_by(edits, number, target)) is not None:
                    self.check(Step(self._create(asked, target), number))
                    self._waiting.append(_Waiting(until, number, asked, target))
                else:
                    self._step(number, self._create(asked, target))
            case AskedUpdate(node=node):
                path = self._path(node)
                update = Update(
                    self.hierarchy, path, asked.name, asked.level, asked.values, asked.expected, self._ids(node),
                    asked.faults,
                )  # fmt: skip
                self._step(number, update)
            case AskedMove():
                self._move(edits, number, asked)
            case AskedDelete(node=node):
                delete = Delete(self.hierarchy, self._path(node), asked.policy, asked.expected, self._ids(node))
                self._step(number, delete)

    # -- creations and moves -------------------------------------------------------------------------------------------

    def _create(self, asked: AskedCreate, target: Path) -> Create:
        ids = self._ids(*names_in(asked))
        node_id = None if asked.id is None else asked.id.removeprefix(f"{self.hierarchy.name}:")
        return Create(self.hierarchy, target, asked.level, asked.name, asked.values, node_id, ids, asked.faults)

    def _target(self, asked: AskedCreate | AskedMove, number: int) -> Path:
        if isinstance(asked, AskedMove):
            return self._target_of_move(asked, self._path(asked.node), number)
        return _child(self._path(asked.parent) if asked.parent else (), asked.key, number)

    def _move(self, edits: Sequence[Asked], number: int, asked: AskedMove) -> None:
        source = self._path(asked.node)
        target = self._target(asked, number)
        position = self._position(asked, target)
        until = None if target == source else self._left_by(edits, number, target)
        ids = self._ids(*names_in(asked))
        if until is None:
            self._step(number, Move(self.hierarchy, source, target, asked.expected, position, ids, None, asked.faults))
            return
        place = (*source[:-1], WAITING * (len(self.waiting_places) + 1))
        self.waiting_places.append(place)
        self.check(Step(Move(self.hierarchy, source, target, position=position), number))
        former = node_key(self.hierarchy.name, source)
        self._waiting.append(_Waiting(until, number, asked, target, place, Way(former)))
        self._step(number, Move(self.hierarchy, source, place, asked.expected, None, ids, Way(None)), checked=True)

    def _arrive(self, one: _Waiting) -> None:
        """Make the step that waited."""
        if isinstance(one.asked, AskedCreate):
            self._step(one.number, self._create(one.asked, one.target))
        elif one.place is not None:
            position = self._position(one.asked, one.target)
            move = Move(self.hierarchy, one.place, one.target, None, position, {}, one.way)
            self._step(one.number, move, checked=True)

    def _target_of_move(self, asked: AskedMove, source: Path, number: int) -> Path:
        beside = None if asked.beside is None else self._path(asked.beside)
        parent = source[:-1] if beside is None else beside[:-1]
        if asked.to is not None or asked.to_root:
            given = () if asked.to is None else self._path(asked.to)
            if beside is not None and given != parent:
                place = shorten(format_path(given)) if given else "the roots"
                text = f"{shorten(format_path(beside))} is not among {'the children of ' if given else ''}{place}; "
                raise BadInput(f"{text}omit `to`, or give a sibling there.").at("position")
            parent = given
        return _child(parent, source[-1] if asked.key is None else asked.key, number)

    def _position(self, asked: AskedMove, target: Path) -> Position | None:
        if asked.side is None:
            return None
        beside = None if asked.beside is None else self._path(asked.beside)
        return Position(asked.side, beside, self.settle_seconds)

    def _left_by(self, edits: Sequence[Asked], number: int, target: Path) -> int | None:
        """The place of the next edit that moves or deletes the node that is at a path now; None without one."""
        place = self._next_leaving(edits, number, target)
        return place if place is not None and self._is_taken(target, len(self.steps)) else None

    def _next_leaving(self, edits: Sequence[Asked], number: int, target: Path) -> int | None:
        for place, later in enumerate(edits[number + 1 :], number + 1):
            if isinstance(later, AskedDelete) and self._peek(later.node) == target:
                return place
            if isinstance(later, AskedMove) and self._peek(later.node) == target:
                is_leaving = later.key is not None or later.to is not None or later.to_root
                is_leaving |= later.beside is not None and self._peek(later.beside)[:-1] != target[:-1]
                if is_leaving:
                    return place
        return None

    def _is_taken(self, path: Path, steps: int) -> bool:
        """Whether a node is at a path after so many steps."""
        for count in range(steps, 0, -1):
            match self.steps[count - 1].edit:
                case Create(path=made) if path[: len(made)] == made:
                    return path == made
                case Move(path=source, target=target) if source != target:
                    if path[: len(target)] == target:
                        path = source + path[len(target) :]
                    elif path[: len(source)] == source:
                        return False
                case Delete(path=gone, policy=Policy.REPARENT) if path[: len(gone) - 1] == gone[:-1]:
                    is_child = self._is_taken(gone + path[len(gone) - 1 :], count - 1)
                    return is_child or (path[: len(gone)] != gone and self._is_taken(path, count - 1))
                case Delete(path=gone) if path[: len(gone)] == gone:
                    return False
        if path not in self.taken:
            self.unread[path] = None
        return self.taken.get(path, True)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _peek(self, named: Named) -> Path:
        """The path of a node by now, empty where there is none."""
        return named.path if named.path is not None else self.paths.get(named.id or "", ())

    def _path(self, named: Named) -> Path:
        """The path of a node after the steps so far. Raises NotFound for an id that no node has."""
        found = self._peek(named)
        if not found:
            raise no_such_id(self.hierarchy.name, str(named.id)).at(named.field)
        return found

    def _ids(self, *named: Named) -> dict[Path, str]:
        return {self._path(one): one.id for one in named if one.id is not None}

    def _step(self, number: int, edit: Create | Update | Move | Delete, *, checked: bool = False) -> None:
        """Add a step, and follow the nodes that it moves."""
        step = Step(edit, number)
        if not checked:
            self.check(step)
        self.steps.append(step)
        if isinstance(edit, Create) and edit.node_id is not None:
            self.paths[f"{self.hierarchy.name}:{edit.node_id}"] = edit.path
        if isinstance(edit, Delete):
            left = {one: _left(path, edit) for one, path in self.paths.items()}
            self.paths = {one: path for one, path in left.items() if path}
        if isinstance(edit, Move):
            self.paths = {one: _moved(path, edit) for one, path in self.paths.items()}
            for waiting in self._waiting:
                # What leaves the target takes its own path with it; what is above the target takes both.
                waiting.target = (*_moved(waiting.target[:-1], edit), waiting.target[-1])
                waiting.place = waiting.place and _moved(waiting.place, edit)


def no_such_id(hierarchy: str, node_id: str) -> NotFound:
    """The error for an id that no node has."""
    return NotFound(f"There is no {hierarchy} with the id {shorten(node_id)}.")


def _child(parent: Path, key: str, number: int) -> Path:
    """The path of a child; for an unusable key one that no other node has, so that all other faults are found."""
    try:
        path = checked_path((*parent, f"000{number}" if key == UNUSABLE else key))
    except BadInput as error:
        raise error.at("key") from None
    return (*parent, f"{WAITING}{number}") if key == UNUSABLE else path


def _moved(path: Path, move: Move) -> Path:
    """A path after a move of what is there, or above it."""
    return move.target + path[len(move.path) :] if path[: len(move.path)] == move.path else path


def _left(path: Path, delete: Delete) -> Path:
    """A path after a deletion, empty for a node that was deleted."""
    gone = delete.path
    if path[: len(gone)] != gone:
        return path
    return gone[:-1] + path[len(gone) :] if delete.policy is Policy.REPARENT and path != gone else ()


def ids_in(edits: Iterable[Asked]) -> set[str]:
    """The ids by which nodes are named."""
    return {named.id for asked in edits for named in names_in(asked) if named.id is not None}


def faults_of(asked: Asked, number: int) -> Sequence[CladeError]:
    """The faults of the edit at a place that were found before anything was read."""
    faults = () if isinstance(asked, AskedDelete) else asked.faults
    for fault in faults:
        fault.edit = number
    return faults


ATTEMPTS = 5  # at a path for an id, while the node is being moved


async def edit_one(request: Request, hierarchy: Hierarchy, asked: Asked, options: EditOptions) -> EditResult:
    """Make one edit."""
    return await _edit(request, hierarchy, [asked], options, is_batch=False)


async def edit_all(request: Request, hierarchy: Hierarchy, asked: Sequence[Asked], options: EditOptions) -> EditResult:
    """Make several edits in one transaction, or none of them."""
    return await _edit(request, hierarchy, asked, options, is_batch=True)


async def _edit(
    request: Request, hierarchy: Hierarchy, asked: Sequence[Asked], options: EditOptions, *, is_batch: bool
) -> EditResult:
    if request.writer is None:
        raise Forbidden("Mutations are disabled on this server; CLADE_WRITES=granted or on enables them.")
    options = replace(options, by=request.caller.name, caller=request.caller.id)
    # The reads of an edit are bounded by the size of a transaction; a dry run has the read budget of a query.
    reads = request.reads if options.dry_run else ReadUsage(trace=request.reads.trace)
    settle = request.settle_seconds
    request.state.accepts_stale = False
    try:
        for _ in range(ATTEMPTS):
            paths, hides = await _paths(request, hierarchy, sorted(ids_in(asked)), reads)
            maker = StepMaker(hierarchy, paths, {}, settle, lambda step: _check(request, hierarchy, step.edit))
            try:
                maker, steps = await _steps(request, maker, asked, reads)
            except (BadInput, Conflict) as error:
                if options.key is None:
                    raise
                # A node may have been deleted or moved since the edit was made, whose result is then stored.
                kind = Batch.__name__ if is_batch else type(asked[0]).__name__.removeprefix("Asked")
                result = await request.writer.write(Refused(hierarchy, kind, error), reads, options)
                if hides:
                    raise
                break
            made: Edit = Batch(hierarchy, steps, maker.waiting_places) if is_batch else steps[0].edit
            try:
                result = await request.writer.write(made, reads, options)
            except NodeMoved:
                continue
            break
        else:
            raise Conflict("The node is being moved by someone else again and again; retry later.")
    finally:
        if reads is not request.reads:
            request.reads.include(reads)
    if not options.dry_run:
        request.discard_reads()
    return result


async def _steps(
    request: Request, maker: StepMaker, asked: Sequence[Asked], reads: ReadUsage
) -> tuple[StepMaker, list[Step]]:
    """The steps of the edits. Raises where one is not possible, together with the faults of all of them."""
    failed: CladeError | None = None
    while True:
        made = replace(maker, paths=dict(maker.paths))
        try:
            made.make(asked)
        except CladeError as error:
            failed = error
        if not made.unread:
            break
        keys = [node_key(maker.hierarchy.name, path) for path in made.unread]
        items = await request.store.get(keys, reads, strong=True)
        known = {path: item is not None for path, item in zip(made.unread, items, strict=True)}
        maker, failed = replace(maker, taken={**maker.taken, **known}), None
    if failed is None:
        return made, made.steps
    with FaultList().collecting():
        raise failed  # which passes through unless it is a fault
    place = failed.edit or 0
    faults = await _faults_of_steps(request, made, reads)
    for number, one in enumerate(asked[place:], place):
        faults.errors += faults_of(one, number)
    is_gone = any(named.id in maker.paths and named.id not in made.paths for named in names_in(asked[place]))
    if not (is_gone and faults.errors):  # then a step that failed would have deleted the node
        faults.add(failed)
    raise faults.error()


async def _faults_of_steps(request: Request, maker: StepMaker, reads: ReadUsage) -> FaultList:
    """The faults of the steps that were made, before one that is not possible."""
    found = FaultList()
    if request.writer is not None and maker.steps:
        with found.collecting():
            batch = Batch(maker.hierarchy, maker.steps, maker.waiting_places)
            await request.writer.write(batch, reads, EditOptions(dry_run=True))
    return found


async def _paths(
    request: Request, hierarchy: Hierarchy, ids: Sequence[str], reads: ReadUsage
) -> tuple[dict[str, Path], bool]:
    """The current paths of the nodes with these ids that the caller may see, and whether there are others."""
    possible = [one for one in ids if is_id(hierarchy, one)]
    items = await request.store.get([id_key(one) for one in possible], reads, strong=True) if possible else []
    found: dict[str, Path] = {}
    hides = False
    for node_id, item in zip(possible, items, strict=True):
        if (key := current_key(item)) is not None:
            if may_read(request.caller.reads, key):
                found[node_id] = path_of(*key)
            else:
                hides = True
    return found, hides


def _check(request: Request, hierarchy: Hierarchy, made: OneEdit) -> None:
    """Raise NotFound or Forbidden for what the caller may not do."""
    caller, name = request.caller, hierarchy.name
    match made:
        case Create(path=path, node_id=node_id):
            check_create(caller, name, path)
            if node_id is not None:
                check_writable(caller, name, (), "choose an id, since ids are shared by all; leave it out")
        case Update(path=path):
            check_change(caller, name, path)
        case Move(path=path, target=target, position=position):
            check_change(caller, name, path)
            if target[:-1] == path[:-1]:  # another key needs no look at the parent, which may be hidden
                check_put(caller, name, target)
            else:
                check_create(caller, name, target)
            if position is not None:
                check_visible(caller, name, position.beside or target)
                check_reorder(caller, name, target)
        case Delete(path=path, policy=policy):
            check_change(caller, name, path)
            if policy is Policy.REPARENT:
                check_writable(caller, name, path[:-1], "let its children take its place")
