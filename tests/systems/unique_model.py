"""Model of unique values: nodes and jobs in dictionaries, which say what an edit leaves and why it is refused."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any
from unicodedata import normalize

from store.errors import Fault, Faults, shorten
from store.metadata.moves import Move as Journaled
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import Path, path_of
from store.model.paths import format_path
from store.writing.create_update import Create, Update
from store.writing.edit import Edit, Named
from store.writing.move_delete import Delete, Move, Policy

CODE = Attribute("code", Kind.TEXT, "Code.", unique=True)
NUMBER = Attribute("number", Kind.INT, "Number.", unique=True)
UNDER = {"FOLDER": (None, "FOLDER"), "ITEM": ("FOLDER",)}
NAMES = {"FOLDER": ("code",), "ITEM": ("code", "number")}
LEVELS = {
    name: Level(name, name.title(), name, frozenset(UNDER[name]), {a.name: a for a in (CODE, NUMBER) if a.name in own})
    for name, own in NAMES.items()
}
SHOP = Hierarchy("shop", LEVELS)
MAX_VALUE = 500  # bytes in a key, and characters that are normalized
MAX_BYTES = 1024  # of all keys below a root

Told = tuple[str, int | None, tuple[str, ...], str]
"""A fault: code, place of the edit, field, message."""
Had = tuple[str, str, str]
"""Id of a node, name of an attribute, value in canonical form."""


@dataclass(frozen=True)
class Node:
    id: str
    level: str
    values: dict[str, Any]

    def had(self) -> set[Had]:
        return {(self.id, name, canonical(value)) for name, value in self.values.items()}


Nodes = dict[Path, Node]


class Refused(Exception):
    """An edit is refused with a code, BUSY where a job holds one of its nodes; `edit` is its place among several."""

    def __init__(self, code: str, edit: int | None = None) -> None:
        super().__init__(code)
        self.code, self.edit = code, edit


class Busy(Refused):
    """A job holds a node of the edit: it is refused somehow."""


@dataclass
class Model:
    nodes: Nodes = field(default_factory=dict)
    hidden: Nodes = field(default_factory=dict)  # of deletions that are committed, until they are swept
    jobs: list[Journaled] = field(default_factory=list)  # those that run
    committed: set[str] = field(default_factory=set)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def follow(self, moves: Sequence[Journaled], there: Nodes) -> None:
        """Take over what the jobs have done since, which leaves these nodes in the table."""
        for job in moves:
            if job.has_committed and job.id not in self.committed:
                self._commit(job)
        self.jobs = [job for job in moves if job.ended_at is None]
        self.hidden = {path: node for path, node in self.hidden.items() if there.get(path) == node}

    def _commit(self, job: Journaled) -> None:
        self.committed.add(job.id)
        source = path_of(*job.source)
        moved = {path: self.nodes.pop(path) for path in below(self.nodes, source)}
        if job.target is None:
            self.hidden |= moved
        else:
            self.nodes |= {(*path_of(*job.target), *path[len(source) :]): node for path, node in moved.items()}

    def is_busy(self, path: Path, *, whole: bool = False) -> bool:
        """Whether a job holds a path, or if `whole` something below it."""
        ends = [path_of(*end) for job in self.jobs for end in job.running.ends]
        return any(path[: len(end)] == end or (whole and end[: len(path)] == path) for end in ends)

    def is_dying(self, path: Path) -> bool:
        """Whether a running job deletes the node at a path."""
        tops = [path_of(*job.source) for job in self.jobs if job.target is None]
        return any(path[: len(top)] == top for top in tops)

    # -- edits ---------------------------------------------------------------------------------------------------------

    def made(self, edits: Sequence[Edit], *, single: bool = False) -> tuple[Nodes, list[Told]]:
        """The nodes after edits that are made together, and the faults of values that other nodes have; new nodes
        without an id have that of their edit's place. Raises Refused, with the first edit that is refused by itself.
        """
        nodes, last = {**self.nodes}, dict[Had, int]()
        for place, edit in enumerate(edits):
            before = had(nodes)
            try:
                self._apply(nodes, edit, place)
            except Refused as error:
                raise type(error)(error.code, None if single else place) from None
            last |= dict.fromkeys(had(nodes) - before, place)
        before, after, faults = had(self.nodes), had(nodes), list[Told]()
        places = {node.id: path for path, node in [*self.hidden.items(), *nodes.items()]}
        held = {one[1:]: one[0] for one in (before & after) | had(self.hidden)}
        for one in sorted(after - before, key=last.__getitem__):
            holder = held.setdefault(one[1:], one[0])
            if holder != one[0]:
                faults.append(self._told(one, places[holder], None if single else last[one]))
        return nodes, sorted(faults, key=str)

    def _told(self, one: Had, holder: Path, edit: int | None) -> Told:
        name, text = one[1:]
        if self.is_dying(holder):
            return "CONFLICT", edit, ("attributes", name), ""
        path = shorten(format_path(holder))
        text = shorten(text) or '""'
        return "TAKEN", edit, ("attributes", name), f"{text} is the {name} of {path}; choose another."

    def _apply(self, nodes: Nodes, edit: Edit, place: int) -> None:
        if edit.names:
            edit = replace(edit, path=_named(nodes, edit.names[0]), names=None)
        match edit:
            case Create():
                given = None if edit.node_id is None else f"shop:{edit.node_id}"
                dying = [node.id for path, node in [*self.hidden.items(), *nodes.items()] if self.is_dying(path)]
                if self.is_busy(edit.path) or given in dying:
                    raise Busy("BUSY")
                _check_place(nodes, edit.path, edit.level)
                if given in {node.id for node in nodes.values()}:
                    raise Refused("ALREADY_EXISTS")
                nodes[edit.path] = Node(given or f"new {place}", edit.level, _changed({}, edit.values))
            case Update():
                old = _existing(nodes, edit)
                new = replace(old, values=_changed(old.values, edit.values))
                if new != old and self.is_busy(edit.path):
                    raise Busy("BUSY")
                nodes[edit.path] = new
            case Move():
                if self.is_busy(edit.path, whole=True) or self.is_busy(edit.target, whole=True):
                    raise Busy("BUSY")
                node = _existing(nodes, edit)
                if edit.target[: len(edit.path)] == edit.path:
                    raise Refused("MISPLACED")
                _check_place(nodes, edit.target, node.level)
                _relocate(nodes, {edit.path: edit.target})
            case Delete():
                if self.is_busy(edit.path, whole=True):
                    raise Busy("BUSY")
                _existing(nodes, edit)
                self._delete(nodes, edit)

    def _delete(self, nodes: Nodes, edit: Delete) -> None:
        children = [path for path in nodes if path[:-1] == edit.path]
        ways = {child: (*edit.path[:-1], child[-1]) for child in children}
        if edit.policy is Policy.CASCADE:
            for path in below(nodes, edit.path):
                del nodes[path]
            return
        if edit.policy is Policy.REFUSE and children:
            raise Refused("NOT_EMPTY")
        if any(self.is_busy(target, whole=True) for target in ways.values()):
            raise Busy("BUSY")
        left = {path: node for path, node in nodes.items() if path != edit.path}
        for child, target in ways.items():
            _check_place(left, target, nodes[child].level)
        del nodes[edit.path]
        _relocate(nodes, ways)


def _named(nodes: Nodes, named: Named) -> Path:
    """The path of the node with a code."""
    assert named.value is not None
    for path, node in nodes.items():
        if (node.id, "code", named.value.value) in node.had():
            return path
    raise Refused("NOT_FOUND")


def _existing(nodes: Nodes, edit: Update | Move | Delete) -> Node:
    if edit.path not in nodes:
        raise Refused("NOT_FOUND")
    if edit.expected is not None:  # which is a wrong one
        raise Refused("CONFLICT")
    return nodes[edit.path]


def _check_place(nodes: Nodes, path: Path, level: str) -> None:
    if len(path) > 1 and path[:-1] not in nodes:
        raise Refused("NOT_FOUND")
    if (nodes[path[:-1]].level if len(path) > 1 else None) not in UNDER[level]:
        raise Refused("MISPLACED")
    if path in nodes:
        raise Refused("ALREADY_EXISTS")


def _relocate(nodes: Nodes, ways: dict[Path, Path]) -> None:
    moved = {(*target, *one[len(top) :]): one for top, target in ways.items() for one in below(nodes, top)}
    if not all(map(fits, moved)):
        raise Refused("BAD_PATH")
    found = {new: nodes.pop(old) for new, old in moved.items()}
    nodes |= found


def _changed(values: dict[str, Any], changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def canonical(value: Any) -> str:
    """A value as it is compared; long ones stay as they are."""
    return normalize("NFC", str(value)) if len(str(value)) <= MAX_VALUE else str(value)


def fits(path: Path) -> bool:
    """Whether the table has room for the keys of a path, which are ASCII."""
    return 1 + sum(len(key) + 1 for key in path[1:]) <= MAX_BYTES


def below(nodes: Nodes, top: Path) -> list[Path]:
    """The node at a path and all below it."""
    return [path for path in nodes if path[: len(top)] == top]


def had(nodes: Nodes) -> set[Had]:
    return {one for node in nodes.values() for one in node.had()}


def stored(found: Iterable[Had]) -> dict[tuple[str, str], str]:
    """The ids by the keys that the table has for values."""
    keys = {}
    for one, name, text in found:
        is_long = len(text.encode()) > MAX_VALUE
        pk = f"unique/shop.{name}#{blake2b(text.encode(), digest_size=32).hexdigest() if is_long else text}"
        keys[pk, "##" if is_long else "#"] = one
    assert len(keys) == len(set(found)), "Two nodes have one value."
    return keys


def told(error: BaseException) -> list[Told]:
    """The faults of an error; of a conflict with a job not the message, which has the id of that."""
    faults: list[Any] = [*error.errors] if isinstance(error, Faults) else [error]
    assert all(isinstance(one, Fault) for one in faults), repr(error)
    found = [(one.code, one.edit, one.field, "" if one.code == "CONFLICT" else str(one)) for one in faults]
    return sorted(found, key=str)
