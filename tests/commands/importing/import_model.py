"""Model of `clade import`: what becomes of a stored tree by the rows of a file, by the rules of docs/importing.md.

It knows nothing of the product's code. Keys are ASCII letters, so that the order of paths is that of the table.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

Path = tuple[str, ...]

UNDER: dict[str, set[str | None]] = {"CATEGORY": {None, "CATEGORY"}, "PRODUCT": {"CATEGORY"}, "VARIANT": {"PRODUCT"}}
BAD_ID, BAD_PRICE = "a:b", "5 EUR"
OPEN = "open"  # the price of what leaves it open; None removes it


@dataclass(frozen=True)
class Stored:
    level: str
    id: str
    price: str | None = None


@dataclass(frozen=True)
class Part:
    """What a row says of one node."""

    path: Path
    level: str
    id: str | None = None
    price: str | None = OPEN

    @property
    def is_bare(self) -> bool:
        return self.id is None and self.price == OPEN

    @property
    def is_right(self) -> bool:
        return self.id != BAD_ID and self.price in (OPEN, None, "5", "7") and self._may_have_price

    @property
    def _may_have_price(self) -> bool:
        return self.level != "CATEGORY" or self.price == OPEN


@dataclass(frozen=True)
class Row:
    """A row by its number; `parts` are the last nodes of its path, and it has none where that is not valid."""

    number: int
    parts: Sequence[Part]


@dataclass(frozen=True)
class Options:
    prune: bool = False
    moves: bool = False
    create_parents: bool = False


@dataclass
class Outcome:
    """The nodes after an import, its rejected rows, and the numbers of nodes by level."""

    nodes: dict[Path, Stored]
    rejected: set[int] = field(default_factory=set)
    moved: Counter[str] = field(default_factory=Counter)
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    prunable: int = 0


@dataclass
class _Planned:
    """A node of the rows that are right by themselves."""

    number: int
    part: Part


class Import:
    """An import of rows into stored nodes."""

    def __init__(self, stored: Mapping[Path, Stored], rows: Iterable[Row], options: Options) -> None:
        self.nodes = dict(stored)
        self.options = options
        self.outcome = Outcome(self.nodes)
        self.plan: dict[Path, _Planned] = {}
        self.ids: dict[str, Path] = {}
        self.rejected_paths: set[Path] = set()
        self.rejected_ids: set[str] = set()
        self.made: set[Path] = set()
        self.is_clear = True
        # What becomes of these moves is for the tests of moves: their nodes wait for one another, or they go to the
        # place of a node that the file lacks.
        self.waits = self.yields = False
        for row in rows:
            self._take(row)

    def run(self) -> Outcome:
        if self.options.moves:
            self._move()
        self._compare()
        return self.outcome

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _take(self, row: Row) -> None:
        if not row.parts:
            self.outcome.rejected.add(row.number)
            self.is_clear = False
        elif self._is_right(row.parts):
            for part in row.parts:
                self._add(row.number, part)
        else:
            self._reject(row.number, *row.parts)

    def _reject(self, number: int, *parts: Part) -> None:
        self.outcome.rejected.add(number)
        self.rejected_paths |= {part.path for part in parts}
        ids = {part.id for part in parts if part.id is not None}
        self.is_clear = self.is_clear and BAD_ID not in ids
        self.rejected_ids |= ids - {BAD_ID}

    def _is_right(self, parts: Sequence[Part]) -> bool:
        above = None
        for part in parts:
            earlier = self.plan.get(part.path)
            if part.level not in UNDER or not part.is_right:
                return False
            if (above or len(part.path) == 1) and above not in UNDER[part.level]:
                return False
            if part.id in self.ids and self.ids[part.id] != part.path:
                return False
            if earlier is not None and not _agree(earlier.part, part):
                return False
            above = part.level
        return True

    def _add(self, number: int, part: Part) -> None:
        earlier = self.plan.setdefault(part.path, _Planned(number, part))
        had = earlier.part
        price = part.price if had.price in (OPEN, None) and part.price != OPEN else had.price
        earlier.part = replace(had, id=had.id or part.id, price=price)
        if part.id is not None:
            self.ids.setdefault(part.id, part.path)

    # -- what is known -------------------------------------------------------------------------------------------------

    def _accepts(self, path: Path) -> bool:
        """Whether a stored node has a row that speaks of it."""
        if path not in self.plan or self._is_below_unknown(path):
            return False
        part, node = self.plan[path].part, self.nodes[path]
        return part.level == node.level and part.id in (None, node.id)

    def _is_unknown(self, path: Path) -> bool:
        """Whether it is not known what the file says of a stored node and all below it."""
        if self._is_below_unknown(path):
            return True
        if not self._accepts(path) and (path in self.plan or path in self.rejected_paths):
            return True
        node_id = self.nodes[path].id
        return self.ids.get(node_id, path) != path or (node_id in self.rejected_ids and node_id not in self.ids)

    def _is_below_unknown(self, path: Path) -> bool:
        return any(one in self.nodes and self._is_unknown(one) for one in _above(path)[:1])

    def _place(self, node_id: str | None) -> Path | None:
        return next((path for path, node in self.nodes.items() if node.id == node_id), None)

    # -- moves ---------------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        waiting = True
        while waiting:
            waiting = False
            for path, planned in sorted(self.plan.items()):
                here = self._place(planned.part.id)
                if here is not None and here != path and self._try_move(here, path, planned.part.level):
                    waiting = True
        movers = self._movers()
        self.waits = any(one in movers for target in movers.values() for one in [target, *_above(target)])
        self.yields = any(one in self.nodes and self.nodes[one].id not in self.ids for one in movers.values())

    def _movers(self) -> dict[Path, Path]:
        places = {self._place(planned.part.id): path for path, planned in self.plan.items()}
        return {here: path for here, path in places.items() if here is not None and here != path}

    def _try_move(self, here: Path, path: Path, level: str) -> bool:
        """Move a node with all below it, where all of it is known to be possible."""
        above, movers = _above(path)[:1], self._movers()
        if self.nodes[here].level != level or path in self.nodes or path[: len(here)] == here:
            return False
        if any(one in movers for one in _above(path)):
            return False
        made = self._parents(path, level, is_move=True)
        if made is None:
            return False
        for parent, part in made:
            self._create(parent, part)
        under = self.nodes[above[0]].level if above else None
        assert under in UNDER[level]
        for one in [*self.nodes]:
            if one[: len(here)] == here:
                self.nodes[path + one[len(here) :]] = self.nodes.pop(one)
        self.outcome.moved[level] += 1
        return True

    # -- comparison ----------------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        before = dict(self.nodes)
        for path, planned in sorted(self.plan.items()):
            if path in before:
                self._update(path, planned)
            else:
                self._add_node(path, planned)
        if self.options.prune and self.is_clear:
            self._prune(before)

    def _update(self, path: Path, planned: _Planned) -> None:
        node, price = self.nodes[path], planned.part.price
        if not self._accepts(path):
            self._reject(planned.number, planned.part)
        elif price in (OPEN, node.price):
            self.outcome.unchanged += path not in self.made
        else:
            self.nodes[path] = replace(node, price=price)
            self.outcome.updated[node.level] += 1

    def _add_node(self, path: Path, planned: _Planned) -> None:
        made = self._parents(path, planned.part.level)
        if made is None or (planned.part.id is not None and self._place(planned.part.id)):
            return self._reject(planned.number, planned.part)
        for parent, part in [*made, (path, planned.part)]:
            self._create(parent, part)
        return None

    def _create(self, path: Path, part: Part) -> None:
        self.made.add(path)
        self.nodes[path] = Stored(part.level, part.id or "", None if part.price == OPEN else part.price)
        self.outcome.created[part.level] += 1

    def _parents(self, path: Path, level: str, *, is_move: bool = False) -> list[tuple[Path, Part]] | None:
        """The missing parents of a node, to be created; None where it cannot stand there."""
        missing = [one for one in reversed(_above(path)) if one not in self.nodes]
        nearest = path[: len(path) - len(missing) - 1]
        under = self.nodes[nearest].level if nearest else None
        if nearest and self._is_unknown(nearest):
            return None
        planned = [self.plan[one].part if is_move and one in self.plan else None for one in missing]
        if any(part is None and one in self.rejected_paths for part, one in zip(planned, missing, strict=True)):
            return None
        if None in planned and not self.options.create_parents:
            return None
        if any(part is not None and part.id is not None and self._place(part.id) for part in planned):
            return None
        ways = [
            way
            for way in product(*[[part.level] if part else [*UNDER] for part in planned])
            if all(above in UNDER[below] for above, below in zip((under, *way), (*way, level), strict=True))
        ]
        if len(ways) != 1:
            return None
        return [(one, part or Part(one, of)) for one, part, of in zip(missing, planned, ways[0], strict=True)]

    def _prune(self, stored: Iterable[Path]) -> None:
        accepted = {path for path in stored if self._accepts(path)}
        prunable = {path for path in stored if accepted.intersection(_above(path)) and not self._is_unknown(path)}
        self.outcome.prunable = len(prunable)
        gone = prunable - accepted - {one for path in self.rejected_paths for one in [path, *_above(path)]}
        for path in sorted(gone, reverse=True):
            if not any(one[: len(path)] == path and one != path for one in self.nodes):
                self.outcome.deleted[self.nodes.pop(path).level] += 1


def _above(path: Path) -> list[Path]:
    """The paths above one, the nearest first."""
    return [path[:length] for length in range(len(path) - 1, 0, -1)]


def _agree(first: Part, second: Part) -> bool:
    prices = {first.price, second.price} - {OPEN, None}
    ids = {first.id, second.id} - {None}
    return first.level == second.level and len(prices) < 2 and len(ids) < 2
