"""Rows of a file, and the import plan: the nodes that the rows describe, by tree."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, Never, cast
from uuid import uuid4

from store.errors import BadInput, BadPath, quantity, shorten, shown
from store.kinds.unique import given_values
from store.model.attributes import Value
from store.model.hierarchy import LEVEL_NAME, Hierarchy, Level, Undefined, may_stand, misplaced, undefined_values
from store.model.keys import MAX_ROOT_BYTES, MAX_SEGMENTS, MAX_SORT_KEY_BYTES, Key, encode_segment, node_key, path_of
from store.model.names import NAMES, checked_name, checked_names, merged_names
from store.model.paths import check_sizes, checked_segment, visible_key
from store.model.ranks import manual_rank
from store.model.records import Record, checked_id, derived_id
from store.transfer.staging import Node, PlannedTrees, Tree

NOTHING: Mapping[str, Never] = {}
IN_FILE = "file"  # the order of siblings as the file has them
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


class Part(NamedTuple):
    """One node of a row. None is what the row leaves open; None as the value of an attribute removes it.

    `rank` is its rank among its siblings without the level, or the value by which they are in order. `undefined` are
    attributes to store although the level does not define them; where it is given, the level need not be defined
    either. `columns` are the columns of a table by attribute, `name` and `id`, for messages.
    """

    level: str
    name: object = None
    id: object = None
    attributes: Mapping[str, object] = NOTHING
    rank: object = None
    undefined: object = None
    columns: Mapping[str, str] = NOTHING


class Link(NamedTuple):
    """What a row of a tree by parents says of its node: by what others name it, its parent, empty without one, and its
    key, which `is_fixed` where it is not made of a name. `level` is None where its place decides, `cells` are its
    content.
    """

    own: str
    parent: str
    key: str
    is_fixed: bool
    level: str | None
    node_id: str | None
    cells: list[object]


class Row(NamedTuple):
    """One row: a path, and a part for each of its last segments. `number` is its line, counted from 1.

    `columns` are the columns of a table that the segments come from, for messages. A row with a `version` is one of the
    former versions of its node, counted from 1. A row that `is_deleted` says that its node is no more. The path of one
    that `is_exact`, as those of exports, may have characters that nobody sees. `others` are further paths of the same
    line, which are imported with this one or not at all. `ParentTree` gives one with a `link` its path.
    """

    number: int
    path: Sequence[object]
    parts: Sequence[Part]
    columns: Sequence[str] = ()
    version: int | None = None
    is_deleted: bool = False
    is_exact: bool = False
    others: Sequence["Row"] = ()
    link: Link | None = None


class Rejection(NamedTuple):
    """A row that cannot be imported, and why.

    `moved` where its node is at another path, and `has_other_key` where that is as deep and ends in another key. `own`
    is by what others name its node in a tree by parents.
    """

    number: int
    reason: str
    moved: bool = False
    has_other_key: bool = False
    own: str = ""


TextRows = Iterator[tuple[str, Row | Rejection]]  # the rows of a file in its order, each with its text
AskedNodes = Sequence[tuple[str, Callable[[Record], Row | Rejection]]]  # ids or values, each with the row of its node
NodesOf = Callable[[Row], AskedNodes]  # the nodes of a row that is for stored nodes; raises BadInput


@dataclass(eq=False)
class ImportPlan:
    """All nodes that a file asks for, and the rows rejected from the file alone.

    `trees` are by partition. `ids` are the given ids, each with the row that first gives it, `rejected_ids` those of
    rejected rows, likewise, `unmoved` why a node at another path was not moved to the one in the file, by id. `unclear`
    counts the rejected rows of which a path or an id is not valid, so that it is not known which nodes they describe,
    `repeated` the rows with a path that an earlier row has. `versions` are the former versions of nodes by number, with
    the `revisions` that their nodes get, `deleted` the rows of nodes that are no more. `undefined` are the attributes
    and levels of the file that no class defines. `unseen` are the keys with characters that nobody sees, which are left
    out, except in the keys of `stored` nodes. With `level_ids` each id gets its level before it. With `create_parents`
    parents that are neither in the file nor stored are created. Siblings are in the order of the file, or by the ranks
    that the parts have, where `order` says so; `roots` are then those of the file by their partitions.
    """

    hierarchy: Hierarchy
    _: KW_ONLY
    ignore_unknown: bool = False
    level_ids: bool = False
    create_parents: bool = False
    order: str | None = None
    stored: Collection[Key] = ()
    unseen: set[Key] = field(init=False, default_factory=set)
    trees: PlannedTrees = field(init=False, default_factory=PlannedTrees)
    ids: dict[str, int] = field(init=False, default_factory=dict)
    rejected_ids: dict[str, int] = field(init=False, default_factory=dict)
    unmoved: dict[str, str] = field(init=False, default_factory=dict)
    rejections: list[Rejection] = field(init=False, default_factory=list)
    rows: int = field(init=False, default=0)
    nodes: int = field(init=False, default=0)
    unclear: int = field(init=False, default=0)
    repeated: int = field(init=False, default=0)
    versions: dict[int, "ImportPlan"] = field(init=False, default_factory=dict)
    revisions: dict[Key, int] = field(init=False, default_factory=dict)
    deleted: dict[Key, int] = field(init=False, default_factory=dict)
    creates: bool = field(init=False, default=True)  # nodes that are not stored

    def __post_init__(self) -> None:
        self.undefined = Undefined(self.hierarchy)
        self.values: dict[str, int] = {}  # unique ones with their attributes, each with the row that first gives it
        self.roots: dict[str, Node] = {}
        self.root_ranks: dict[str, str] = {}  # the new ones, by partition
        self._has_numbers = True  # as ranks, and nothing else
        self._collisions = Counter[tuple[str, str, str | None]]()  # id, level, that of the other if known
        self._twins: dict[Key, str] = {}  # nodes to which rows give two ids, with the reason against further rows

    def take(self, row: Row | Rejection) -> None:
        """Add the nodes of a row, all or none."""
        self.rows += 1
        try:
            if isinstance(row, Rejection):
                raise BadPath(row.reason)
            first, *others = [self._placed(one) for one in (row, *row.others)] if row.others else [self._placed(row)]
        except BadPath as error:
            self.rejections.append(Rejection(row.number, str(error)))
            self.unclear += 1
            return
        row, pk, keys = first
        if row.is_deleted:
            self.deleted[Key(pk, keys[-1])] = row.number
            return
        if row.version is not None:
            if row.version not in self.versions:
                self.versions[row.version] = replace(self)  # with the same options, and without rows
            return self.versions[row.version].take(row._replace(version=None))
        tree = self.trees.use(pk)
        keys = keys[len(keys) - len(row.parts) :]
        is_repeated = not row.columns and len(keys) == 1 and keys[0] in tree.nodes
        found: list[Node] = []
        try:
            self._plan(row, keys, tree, found)
            for one, pk, keys in others:
                self._plan(one, keys[len(keys) - len(one.parts) :], self.trees.use(pk), found)
            for node in found:
                self._add(node, self.trees.use(node.pk))
            self.repeated += is_repeated
        except BadInput as error:
            self.rejections.append(Rejection(row.number, str(error)))
            for one, pk, keys in (first, *others):
                for sk in keys[len(keys) - len(one.parts) :]:
                    self.trees.use(pk).rejected.setdefault(sk, row.number)
            self._note_ids(row.number, [part for one, *_ in (first, *others) for part in one.parts])

    def _note_ids(self, number: int, parts: Iterable[Part]) -> None:
        """Note the ids of a rejected row, whose nodes may be at other paths."""
        is_clear = True
        for part in parts:
            try:
                if part.id is not None:
                    is_any = self.level_ids and self.hierarchy.find(part.level) is None
                    for level in self.hierarchy.levels if is_any else [part.level]:
                        node_id = checked_id(given_id(part._replace(level=level), of_level=self.level_ids))
                        self.rejected_ids.setdefault(node_id, number)
            except BadInput:
                is_clear = False
        self.unclear += not is_clear

    def _placed(self, row: Row) -> tuple[Row, str, list[str]]:
        """A row without what nobody sees in its keys, its tree's partition, and the sort keys of the nodes on its path.

        Raises BadPath with all reasons against the row.
        """
        try:
            segments = _encoded_path(row.path)
            if "" in segments:
                row = self._visible(row)
                segments = [encode_segment(checked_segment(segment)) for segment in row.path]
            return row, f"{self.hierarchy.name}#{segments[0]}", _sort_keys(segments)
        except BadPath as error:
            raise BadPath(self._reasons(row, str(error))) from None

    def place(self, node: Node) -> tuple[object, ...]:
        """By what siblings are sorted: those without a value last, those of one value in the order of the rows."""
        if self.order == IN_FILE:
            return node.number, node.rank
        value = Decimal(node.rank) if node.rank and self._has_numbers else node.rank
        return (1, node.number) if value is None else (0, value, node.number)

    def check_ids(self) -> None:
        """Raise BadInput where ids are those of nodes of two levels, unless that is a slip of one row."""
        ids = {node_id for node_id, _, _ in self._collisions}
        nodes = (node for tree in self.trees.values() for node in tree.nodes.values()) if ids else ()
        holders = {node.id: node.level for node in nodes if node.id in ids}
        found = [
            (node_id, level, holder, count)
            for (node_id, level, other), count in self._collisions.items()
            if (holder := other or holders.get(node_id, level)) != level
        ]
        if sum(count for *_, count in found) > 1:
            node_id, level, holder, _ = found[0]
            raise BadInput(
                f"The id {node_id} is that of a {holder} and of a {level}, and {len(self.rejections):,} of "
                f"{quantity(self.rows, 'row')} would be rejected. If ids are unique within a level only, add "
                f"--level-ids, which puts the level before each, such as {level.lower()}-{node_id}."
            )

    def _visible(self, row: Row) -> Row:
        """The row without what nobody sees in its keys, and in names that equal them; raises BadPath."""
        path: list[str] = []
        parts = [*row.parts]
        for index, segment in enumerate(row.path, start=len(parts) - len(row.path)):
            exact = checked_segment(segment)
            key = exact if row.is_exact else visible_key(exact)
            if key != exact:
                place = node_key(self.hierarchy.name, (*path, exact))
                if place in self.stored:
                    key = exact
                else:
                    self.unseen.add(place)
            if not key:
                raise BadPath("Nobody sees a key of the path; write one that is seen.")
            path.append(key)
            if index >= 0 and parts[index].name == segment:
                parts[index] = parts[index]._replace(name=key)
        return row._replace(path=path, parts=parts)

    def _reasons(self, row: Row, reason: str) -> str:
        """All reasons against a row whose path is not valid, with the column of the first segment that is not."""
        for column, segment in zip(row.columns, row.path, strict=False):
            try:
                _encoded(segment)
            except BadPath:
                reason = f'Column "{column}": {reason}'
                break
        reasons = [reason]
        for part in row.parts:
            if level := self.hierarchy.levels.get(part.level):
                self._values(level, part, reasons)
        return " ".join(reasons)

    def id_of(self, node: Node) -> str | None:
        """The id that the file gives a node, without its hierarchy's prefix; None for the default id made from its
        path, and a random one where the file gives that to another node.
        """
        if node.id is not None:
            return node.id
        is_given = self.ids and derived_id(self.hierarchy.name, node.path) in self.ids
        return uuid4().hex if is_given else None

    def _plan(self, row: Row, keys: list[str], tree: Tree, found: list[Node]) -> None:
        """Add the nodes of a row that are new or have more content to those that are `found`.

        Raises BadInput with all reasons against them.
        """
        reasons: list[str] = []
        whole = len(row.parts) == len(row.path)
        above: str | None = None
        for sk, part in zip(keys, row.parts, strict=True):
            if self._twins and (reason := self._twins.get(Key(tree.pk, sk))):
                raise BadInput(reason)
            try:
                level = self.hierarchy.levels.get(part.level) or self._level(part)
            except BadInput as error:
                raise BadInput(" ".join([*reasons, str(error)])) from None
            if (above or whole) and not may_stand(self.hierarchy, level.name, above):
                reasons.append(misplaced(self.hierarchy, level.name, above))
            above = level.name
            earlier = tree.nodes.get(sk)
            if earlier is not None and earlier.level == level.name and part == Part(part.level):
                continue
            node = Node(tree.pk, sk, level.name, None, None, row.number)
            if faults := self._fill(node, part, level, earlier, found):
                reasons += faults
            else:
                found.append(node)
        if reasons:
            raise BadInput(" ".join(dict.fromkeys(reasons)))

    def _fill(self, node: Node, part: Part, level: Level, earlier: Node | None, found: list[Node]) -> list[str]:
        """Give a node the content of its part; returns all reasons against that.

        `earlier` is the node as former rows have it, `found` are those of the same row.
        """
        reasons: list[str] = []
        if part.attributes or part.undefined is not None:
            node.values = self._values(level, part, reasons)
            reasons += self._repeated_values(part, node, earlier, found)
        try:
            node.name = checked_name(part.name)
        except BadInput as error:
            reasons.append(_in_column(part, "name", str(error)))
        try:
            if part.rank is not None and not self.order:
                node.rank = manual_rank(level.name, part.rank)
            elif part.rank is not None and self.order != IN_FILE:
                node.rank = str(part.rank)
                self._has_numbers = self._has_numbers and bool(_NUMBER.fullmatch(node.rank))
            if part.id is not None:
                node.id = self._id(part, earlier, found)
            if reasons:
                return reasons
            if earlier is not None:
                if earlier.level == node.level and node.id and earlier.id and earlier.id != node.id:
                    self._take_back(earlier, node)
                _check_agreement(earlier, node)
            elif len(node.sk) > MAX_SORT_KEY_BYTES // 8 or len(node.pk) > MAX_ROOT_BYTES // 8:
                # Raises BadPath where the rank, which contains the level, is too long.
                Record.new(self.hierarchy.name, node.path, level.name, "", "", "", {}, above=[])
        except BadInput as error:
            reasons.append(str(error))
        return reasons

    def _take_back(self, earlier: Node, node: Node) -> None:
        """Reject the rows of a node to which another row gives another id, since these are two nodes at one path."""
        tree, first = self.trees.use(earlier.pk), self.ids.pop(str(earlier.id), earlier.number)
        del tree.nodes[earlier.sk]
        self.nodes -= 1
        self.rejected_ids.setdefault(str(earlier.id), first)
        for value in self._unique_values(earlier):
            self.values.pop(value, None)
        old, new = shorten(str(earlier.id)), shorten(str(node.id))
        reason = f"{earlier} has the id {old} in row {first}, and {new} in row {node.number}; two nodes need two paths."
        for number in dict.fromkeys((first, earlier.number)):
            self.rejections.append(Rejection(number, reason))
        tree.rejected.setdefault(earlier.sk, first)
        self._twins[earlier.key] = reason

    def _id(self, part: Part, earlier: Node | None, found: list[Node]) -> str:
        """The id of a part; raises BadInput where it is not valid, or that of another node."""
        try:
            node_id = checked_id(given_id(part, of_level=self.level_ids))
            if node_id in self.ids and (earlier is None or earlier.id != node_id):
                self._collisions[node_id, part.level.upper(), None] += 1
                raise BadInput(f"The id {node_id} is that of another node already, in row {self.ids[node_id]}.")
            if other := next((node for node in found if node.id == node_id), None):
                self._collisions[node_id, part.level.upper(), other.level] += 1
                raise BadInput(f"The id {node_id} is that of another node in the same row.")
        except BadInput as error:
            raise BadInput(_in_column(part, "id", str(error))) from None
        return node_id

    def _unique_values(self, node: Node) -> dict[str, str]:
        """The attributes of the unique values of a node, by their names with the value."""
        found = given_values(self.hierarchy, node.level, node.values) if self.hierarchy.unique else ()
        return {f"{one.names[0]} {one.value}": one.names[0] for one in found}

    def _repeated_values(self, part: Part, node: Node, earlier: Node | None, found: list[Node]) -> Iterator[str]:
        """The reasons against unique values of a part that other nodes of the file have."""
        own = {} if earlier is None else self._unique_values(earlier)
        for value, name in self._unique_values(node).items():
            if value not in own and (row := self.values.get(value)):
                yield _in_column(part, name, f"The {shorten(value)} is that of another node already, in row {row}.")
            elif any(one.key != node.key and value in self._unique_values(one) for one in found):
                yield _in_column(part, name, f"The {shorten(value)} is that of another node in the same row.")

    def _level(self, part: Part) -> Level:
        """The level of a part, in upper or lower case; also one that is not defined, where the part allows it."""
        if part.undefined is None or self.hierarchy.find(part.level) is not None:
            return self.hierarchy.level(part.level)
        if not LEVEL_NAME.fullmatch(part.level):
            raise BadInput(f'"{shorten(part.level)}" is not a valid name of a level; use capitals, digits and _.')
        return self.hierarchy.any_level(part.level)

    def _values(self, level: Level, part: Part, reasons: list[str]) -> dict[str, Value]:
        """The attributes of a part as stored; what is wrong with them is added to `reasons`."""
        values: dict[str, Value] = {}
        if part.undefined is not None:
            try:
                values = undefined_values(level, part.undefined)
                self.undefined.see(level.name, values)
            except BadInput as error:
                reasons.append(str(error))
        for name, value in part.attributes.items():
            attribute = level.attribute(name)
            try:
                if name == NAMES:
                    values[name] = checked_names(value)
                elif attribute is not None:
                    values[attribute.name] = attribute.change(value)
                elif not self.ignore_unknown:
                    defined = ", ".join(level.attributes) or "none"
                    raise BadInput(f'{level.label} has no attribute "{shorten(name)}"; it has {defined}.')
                else:
                    self.undefined.see(level.name, {name: cast(Value, value)})
            except BadInput as error:
                reasons.append(_in_column(part, name, str(error)))
        return values

    def _add(self, node: Node, tree: Tree) -> None:
        """Add a node to the plan, or its content to the one that is there."""
        earlier = tree.nodes.setdefault(node.sk, node)
        if earlier is node:
            self.nodes += 1
            node.rank = f"{self.nodes:012}" if self.order == IN_FILE else node.rank
        else:
            earlier.name = earlier.name if node.name is None else node.name
            earlier.id = earlier.id or node.id
            earlier.rank = earlier.rank or node.rank
            before, values = earlier.values, node.values
            more = {name: value for name, value in values.items() if before.get(name) is None}
            if (first := before.get(NAMES)) and (second := values.get(NAMES)):
                more[NAMES] = {**cast(dict[str, Value], second), **merged_names(first, {})}
            if more:
                earlier.values = {**before, **more}
        if self.order and node.sk == "#":
            self.roots[node.pk] = earlier
        if node.id is not None:
            self.ids.setdefault(node.id, node.number)
        for value in self._unique_values(node):
            self.values.setdefault(value, node.number)


def given_id(part: Part, *, of_level: bool) -> object:
    """The id of a part, with its level where ids are unique within a level only."""
    return f"{part.level.lower()}-{part.id}" if of_level and isinstance(part.id, str) and part.id else part.id


def _in_column(part: Part, name: str, reason: str) -> str:
    """A reason with the column that the value comes from, if that has another name."""
    column = part.columns.get(name)
    return reason if column in (None, name) else f'Column "{column}": {reason}'


def _check_agreement(earlier: Node, node: Node) -> None:
    """Raise BadInput where two rows contradict each other; one may leave open what the other has."""
    pairs = [(name, getattr(earlier, name), getattr(node, name)) for name in ("level", "name", "id")]
    before = earlier.values
    for name, value in node.values.items():
        if name == NAMES:
            first, second = (cast(dict[str, Value], found or {}) for found in (before.get(name), value))
            pairs += [(f"name in {language}", first.get(language), text) for language, text in second.items()]
        else:
            pairs.append((name, before.get(name), value))
    for name, first, second in pairs:
        if first is not None and second is not None and first != second:
            old, new = shorten(str(first)), shorten(str(second))
            raise BadInput(f"{earlier} has the {name} {old} in row {earlier.number} already, not {new}.")


@lru_cache(1 << 16)
def _encoded(segment: object) -> str:
    """A key as it is stored, empty where that differs from what one sees; raises BadPath."""
    key = checked_segment(segment)
    return encode_segment(key) if visible_key(key) == key else ""


def _encoded_path(path: Sequence[object]) -> list[str]:
    """The `_encoded` keys of a path; with `_sort_keys` checked as by `paths.checked_path`, which takes much longer."""
    if not 0 < len(path) <= MAX_SEGMENTS:
        raise BadPath(f"A path has 1 to {MAX_SEGMENTS} keys, not {len(path)}.")
    try:
        return [_encoded(segment) for segment in path]
    except TypeError:  # a value that cannot be hashed is not a text
        raise BadPath(f"{shown(path)} has a key that is not a text; write texts.") from None


def _sort_keys(segments: Sequence[str]) -> list[str]:
    """The sort keys of the nodes on a path of encoded keys, the root's first; raises BadPath for too long ones."""
    keys = ["#"]
    for segment in segments[1:]:
        keys.append(f"{keys[-1]}{segment}#")
    if len(keys[-1]) > MAX_SORT_KEY_BYTES // 8 or len(segments[0]) > MAX_ROOT_BYTES // 8:
        check_sizes(path_of(f"#{segments[0]}", keys[-1]))
    return keys
