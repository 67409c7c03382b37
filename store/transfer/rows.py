"""What a file says, row by row, and the nodes that its rows ask for, gathered by tree."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from uuid import uuid4

from msgspec import Struct

from store.errors import BadInput, BadPath
from store.model.attributes import Value
from store.model.hierarchy import (
    LEVEL_NAME,
    MAX_NAME_CHARACTERS,
    Hierarchy,
    Level,
    may_stand,
    misplaced,
)
from store.model.keys import (
    MAX_ROOT_BYTES,
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    Path,
    encode_segment,
    first_rank,
    path_of,
)
from store.model.paths import check_sizes, checked_segment, format_path
from store.model.ranks import manual_rank
from store.model.records import checked_id, checked_name, derived_id
from store.model.undefined_values import undefined_values
from store.text import shorten

NOTHING: Mapping[str, object] = {}
_NO_VALUES: dict[str, Value] = {}


class Part(NamedTuple):
    """What a row says of one node. None is what it leaves open; an attribute given as None shall have no value.

    `rank` is its place among its siblings, without the level. `undefined` are attributes to be kept although the level
    does not define them; where it is given, the level need not be defined either.
    """

    level: str
    name: object = None
    id: object = None
    attributes: Mapping[str, object] = NOTHING
    rank: object = None
    undefined: object = None


class Row(NamedTuple):
    """One row: a path, and a part for each of its last segments. `number` is its line as a person counts them."""

    number: int
    path: Sequence[object]
    parts: Sequence[Part]


class Rejection(NamedTuple):
    """A row that cannot be taken, and why; `moved` where only its node lies elsewhere."""

    number: int
    reason: str
    moved: bool = False


class Node(Struct, gc=False):
    """A node that the file asks for, as light as can be, since all of a file are held at once.

    `root` is its tree's root as it stands in keys, `number` the first row that names it, `values` its attributes as
    stored; None among them clears one. `rank` is the one that it gets if it is new, None for the first rank.
    """

    root: str
    sk: str
    level: str
    name: str | None
    id: str | None
    values: dict[str, Value]
    number: int
    rank: str | None = None

    @property
    def path(self) -> Path:
        return path_of(f"#{self.root}", self.sk)

    def __str__(self) -> str:
        return shorten(format_path(self.path), 200)


class Tree:
    """What the file asks for in one tree: `nodes` by sort key, and the numbers of the rows that were `refused`."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.refused: dict[str, int] = {}


class ImportPlan:
    """All nodes that a file asks for, and the rows that cannot be taken as far as the file alone tells.

    `trees` are by their root as it stands in keys. `ids` tells which node claims an id, `refused_ids` are those of
    rejected rows, `unmoved` why a node that lies elsewhere was not moved to where the file has it, by id. `obscure`
    counts the rows that do not even tell which node they are about.
    """

    def __init__(self, hierarchy: Hierarchy, *, ignore_unknown: bool = False) -> None:
        self.hierarchy = hierarchy
        self.ignore_unknown = ignore_unknown
        self.trees: dict[str, Tree] = {}
        self.ids: dict[str, Node] = {}
        self.refused_ids: set[str] = set()
        self.unmoved: dict[str, str] = {}
        self.rejections: list[Rejection] = []
        self.rows = 0
        self.nodes = 0
        self.obscure = 0

    def take(self, row: Row | Rejection) -> None:
        """Add what a row asks for, the whole of it or nothing."""
        self.rows += 1
        if isinstance(row, Rejection):
            return self._reject(row)
        try:
            root, keys = _keys(row.path)
        except BadPath as error:
            return self._reject(Rejection(row.number, str(error)))
        tree = self.trees.get(root)
        if tree is None:
            tree = self.trees[root] = Tree()
        keys = keys[len(keys) - len(row.parts) :]
        try:
            found = self._nodes(row, root, keys, tree)
        except BadInput as error:
            self.rejections.append(Rejection(row.number, str(error)))
            for sk in keys:
                tree.refused.setdefault(sk, row.number)
            self.refused_ids.update([part.id for part in row.parts if isinstance(part.id, str)])
            return None
        for node in found:
            self._keep(node, tree)
        return None

    def id_of(self, node: Node) -> str | None:
        """The id that the file gives a node, without its hierarchy's prefix; None for the one that is made from its
        path, and a random one where the file gives that one to another node.
        """
        if node.id is not None:
            return node.id
        return uuid4().hex if derived_id(self.hierarchy.name, node.path) in self.ids else None

    def _reject(self, rejection: Rejection) -> None:
        self.rejections.append(rejection)
        self.obscure += 1

    def _nodes(self, row: Row, root: str, keys: list[str], tree: Tree) -> list[Node]:
        """The nodes that a row adds or says more of; raises BadInput where one of them cannot be."""
        found: list[Node] = []
        whole = len(row.parts) == len(row.path)
        above: Level | None = None
        for sk, part in zip(keys, row.parts, strict=True):
            level = self.hierarchy.levels.get(part.level) or self._level(part)
            if (above or whole) and not may_stand(self.hierarchy, level.name, above.name if above else None):
                raise BadInput(misplaced(level, above.name if above else None))
            above = level
            known = tree.nodes.get(sk)
            if known is not None and known.level == level.name and part == Part(part.level):
                continue
            node = Node(root, sk, level.name, checked_name(part.name), None, self._values(level, part), row.number)
            if part.rank is not None:
                node.rank = manual_rank(level.name, part.rank)
            if part.id is not None:
                node.id = self._id(part.id, node, found)
            if known is not None:
                _check_agreement(known, node)
            elif len(sk) > MAX_SORT_KEY_BYTES // 8 or len(root) > MAX_ROOT_BYTES // 8:
                _check_rank(level, node)
            found.append(node)
        return found

    def _id(self, given: object, node: Node, found: list[Node]) -> str:
        node_id = checked_id(given)
        other = self.ids.get(node_id) or next((one for one in found if one.id == node_id), None)
        if other is not None and (other.sk, other.root) != (node.sk, node.root):
            raise BadInput(f"The id {node_id} is that of {other} already, in row {other.number}.")
        return node_id

    def _level(self, part: Part) -> Level:
        """The level that a part names in any case, or where that may be an undefined one, this."""
        if part.undefined is None or part.level.upper() in self.hierarchy.levels:
            return self.hierarchy.level(part.level)
        if not LEVEL_NAME.fullmatch(part.level) or len(part.level) > MAX_NAME_CHARACTERS:
            raise BadInput(f'"{shorten(part.level)}" is no name of a level: capitals, digits and _.')
        return Level(part.level, part.level, "", frozenset())

    def _values(self, level: Level, part: Part) -> dict[str, Value]:
        if not part.attributes and not part.undefined:
            return _NO_VALUES
        values = undefined_values(level, part.undefined) if part.undefined else {}
        for name, value in part.attributes.items():
            attribute = level.attributes.get(name)
            if attribute is not None:
                values[name] = None if value is None else attribute.parse(value)
            elif not self.ignore_unknown:
                known = ", ".join(level.attributes) or "none"
                raise BadInput(f'{level.name} has no attribute "{shorten(name)}"; it has {known}.')
        return values

    def _keep(self, node: Node, tree: Tree) -> None:
        """Put a node among the wanted ones, or add what it says to the one that is there."""
        known = tree.nodes.setdefault(node.sk, node)
        if known is node:
            self.nodes += 1
        else:
            known.name = known.name if node.name is None else node.name
            known.id = known.id or node.id
            known.rank = known.rank or node.rank
            more = {name: value for name, value in node.values.items() if known.values.get(name) is None}
            known.values = {**known.values, **more} if more else known.values
        if node.id is not None:
            self.ids.setdefault(node.id, known)


def _check_agreement(known: Node, node: Node) -> None:
    """Raise BadInput where two rows say different things of one node; one may leave open what the other says."""
    differ = next(
        (name for name in ("level", "name", "id") if _differ(getattr(known, name), getattr(node, name))), None
    )
    if differ:
        was, now = getattr(known, differ), getattr(node, differ)
    else:
        differ = next((name for name, value in node.values.items() if _differ(known.values.get(name), value)), None)
        if differ is None:
            return
        was, now = known.values[differ], node.values[differ]
    raise BadInput(
        f"{known} has the {differ} {shorten(str(was))} in row {known.number} already, not {shorten(str(now))}."
    )


def _differ(one: Value, other: Value) -> bool:
    return one is not None and other is not None and one != other


def _check_rank(level: Level, node: Node) -> None:
    """Raise BadPath where a node's place among its siblings would be too long, as the level stands in it too."""
    own = node.sk[node.sk.rindex("#", 0, -1) + 1 : -1] if len(node.sk) > 1 else node.root
    if (size := len(first_rank(level.name, own).encode())) > MAX_SORT_KEY_BYTES:
        raise BadPath(
            f'"{shorten(own)}" and its level {level.name} take {size} bytes in a key; at most {MAX_SORT_KEY_BYTES} fit.'
        )


@lru_cache(maxsize=1 << 16)
def _encoded(segment: object) -> str:
    return encode_segment(checked_segment(segment))


def _keys(path: Sequence[object]) -> tuple[str, list[str]]:
    """The root of a path as it stands in keys, and the sort keys of the nodes on it, the root's first.

    Raises BadPath where it can be no path, as `keys.checked_path` does, which would take several times as long.
    """
    if not 0 < len(path) <= MAX_SEGMENTS:
        raise BadPath(f"A path has 1 to {MAX_SEGMENTS} segments, not {len(path)}.")
    try:
        root, *others = [_encoded(segment) for segment in path]
    except TypeError:  # what cannot be hashed is no text either
        raise BadPath(f"A path's segments are texts, not {shorten(repr(path))}.") from None
    sk = "#"
    keys = [sk]
    for segment in others:
        sk = f"{sk}{segment}#"
        keys.append(sk)
    if len(sk) > MAX_SORT_KEY_BYTES // 8 or len(root) > MAX_ROOT_BYTES // 8:
        check_sizes(path_of(f"#{root}", sk))
    return root, keys
