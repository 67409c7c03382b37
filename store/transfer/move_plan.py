"""Move plan: which nodes an import has to move, which of them can go, and in which order.

It is made before anything is written, of places alone: who will be at the places of the file, and where that node is
now. So it does not depend on the order of keys. A node below one that moves comes along; it moves itself where it gets
another parent than that, or another key. It can go where its new parent will be there, and where nobody stays at its
place. Who waits for one that cannot go cannot go either. The rest are chains with a free end, and circles, in which
one is put aside.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import BadInput, BadPath
from store.metadata.history import current_key, key_aside
from store.model.hierarchy import may_stand, misplaced
from store.model.keys import MAX_SORT_KEY_BYTES, Key, ancestor_keys, first_rank, id_key, last_segment, path_of, subtree
from store.model.paths import check_sizes
from store.model.records import Record, SubtreeRewrite
from store.reading import PAGE_ITEMS, Pages, stored_items
from store.transfer.diff import bare_id, filled_levels
from store.transfer.rows import ImportPlan
from store.transfer.staging import Node, path_text
from store.writing.reads import Reader

TOO_LONG = "a key would be too long or too deep there."
NEW_PARENT = "its new parent cannot be moved there either."
RANDOM = "0" * 8  # as long as the random text of a key that is put aside


class _Stored(NamedTuple):
    """A stored node: its id, without its hierarchy's prefix, and its level."""

    id: str
    level: str


@dataclass(eq=False)
class Mover:
    """A node that leaves the place where it is stored, for that of its `node` in the file; without one it is removed.

    Those of `after` have to arrive before, or to be removed. Those of `places` only have to leave: they have arrived,
    or are put aside.
    """

    origin: Key
    id: str
    level: str
    node: Node | None
    after: set["Mover"] = field(default_factory=set)
    places: set["Mover"] = field(default_factory=set)
    dependents: list["Mover"] = field(default_factory=list)
    waits: int = 0  # for so many others
    inner: int = 0  # movers that are stored below it, and below no other
    number: int = 0

    @property
    def target(self) -> Key:
        return self.origin if self.node is None else self.node.key


class Step(NamedTuple):
    """A mover that goes to its target, is removed, or is put aside."""

    mover: Mover
    is_aside: bool = False


class MovePlan:
    """The moves of the `nodes` of a file by ids; `refused` are those that cannot go, with reasons in `plan.unmoved`,
    `left` those that have other places in the file, by where they are.

    With `prune`, nodes are removed that the file lacks, where it has another node at their places.
    """

    def __init__(self, store: Store, plan: ImportPlan, nodes: Mapping[str, Node], *, prune: bool) -> None:
        self.refused: set[Mover] = set()
        self._store = store
        self._plan = plan
        self._nodes = nodes
        self._prune = prune and not plan.unclear
        self._reads = ReadUsage()
        self._displaced: dict[Key, Key] = {}  # where the nodes are, by their places in the file
        self.left: dict[Key, Node] = {}
        self._candidates: list[tuple[Key, Node]] = []  # the same nodes, and those below them, by where they are
        self._movers: dict[Key, Mover] = {}  # by their origins
        self._removed: dict[Key, Mover] = {}
        self._stored: dict[Key, _Stored | None] = {}
        self._finals: dict[Key, Key | None] = {}

    async def steps(self, on_nodes: Callable[[int], None]) -> list[Step]:
        """The steps in their order; `on_nodes` is called with each number of nodes that are where they should be."""
        await self._find_displaced(on_nodes)
        if not self._displaced:
            return []
        self._candidates = [*self.left.items(), *[(node.key, node) async for node in self._nodes_below_left()]]
        places = {place for _, node in self._candidates for place in (node.key, *ancestor_keys(node.key))}
        await self._look([*places, *(origin for origin, _ in self._candidates)])
        for origin, node in self._candidates:
            # Else it comes along with its parent.
            if node.id is not None and await self._coming(node.key) != origin:
                self._movers[origin] = Mover(origin, node.id, node.level, node)
        obstacles = {mover: reason for mover in self._movers.values() if (reason := await self._obstacle(mover))}
        every = [*self._movers.values(), *self._removed.values()]
        for mover in every:
            for other in mover.after | mover.places:
                other.dependents.append(mover)
        for mover, reason in obstacles.items():
            self.refuse(mover, reason)
        return await _Order(self, every).steps()

    def refuse(self, mover: Mover, reason: str) -> None:
        """Have a mover stay where it is, and all that wait for it."""
        waiting = [(mover, reason)]
        while waiting:
            mover, reason = waiting.pop()
            if mover in self.refused:
                continue
            self.refused.add(mover)
            if mover.node is not None:
                self._plan.unmoved[mover.id] = reason
            held = f"{path_text(*mover.origin)} is the place of another node, which stays."
            for other in mover.dependents:
                waiting.append((other, NEW_PARENT if mover in other.after and mover.node is not None else held))

    def refuse_below(self) -> int:
        """Say of nodes that would be below one that stays why they are not; returns how many of these do not move
        themselves.
        """
        refused = {mover.origin for mover in self.refused}
        for origin, node in self._candidates:
            above = {self._finals.get(key) for key in ancestor_keys(node.key)}
            if origin not in self._movers and node.id is not None and not refused.isdisjoint(above):
                self._plan.unmoved[node.id] = NEW_PARENT
        return sum(origin not in self._movers for origin in self.left)

    async def current_keys(self, ids: Iterable[str]) -> list[Key | None]:
        keys = [id_key(f"{self._plan.hierarchy.name}:{one}") for one in ids]
        return [current_key(item) for item in await self._store.get(keys, self._reads, strong=True)]

    # -- who moves -----------------------------------------------------------------------------------------------------

    async def _find_displaced(self, on_nodes: Callable[[int], None]) -> None:
        async for page in in_chunks(list(self._nodes.items()), PAGE_ITEMS):
            before = len(self.left)
            keys = await self.current_keys(node_id for node_id, _ in page)
            for (_, node), key in zip(page, keys, strict=True):
                if key is not None and key != node.key:
                    self._displaced[node.key] = key
                    self.left[key] = node
            on_nodes(len(page) - len(self.left) + before)

    async def _nodes_below_left(self) -> AsyncIterator[Node]:
        """The nodes that are at their places, but below one that leaves or comes."""
        ends = self.left.keys() | self._displaced.keys()
        nodes = [
            (node_id, node)
            for node_id, node in self._nodes.items()
            if node.key not in self._displaced and not ends.isdisjoint(ancestor_keys(node.key))
        ]
        async for page in in_chunks(nodes, PAGE_ITEMS):
            keys = await self.current_keys(node_id for node_id, _ in page)
            for (_, node), key in zip(page, keys, strict=True):
                if key == node.key:
                    yield node

    async def _final(self, place: Key) -> Key | None:
        """Where the node is stored that will be at a place; None where there will be a new one, or none."""
        if place not in self._finals:
            self._finals[place] = self._displaced.get(place) or await self._find_final(place)
        return self._finals[place]

    async def _find_final(self, place: Key) -> Key | None:
        if (node := self._planned(place)) is not None and node.id is not None:
            found = await self._at(place)
            return place if found is not None and found.id == node.id else None
        key = await self._coming(place)
        if key is None or key in self.left or (found := await self._at(key)) is None:
            return None
        other = self._planned(key)
        return None if key != place and other is not None and other.id == found.id else key

    async def _coming(self, place: Key) -> Key | None:
        """The key of what comes to a place with its parent, if there is anything; None where the parent is new."""
        if place.sk == "#":
            return place
        parent = await self._final(ancestor_keys(place)[-1])
        return None if parent is None else Key(parent.pk, f"{parent.sk}{last_segment(*place)}#")

    def _planned(self, place: Key) -> Node | None:
        tree = self._plan.trees.get(place.pk)
        return None if tree is None else tree.nodes.get(place.sk)

    async def _at(self, key: Key) -> _Stored | None:
        await self._look([key])
        return self._stored[key]

    async def _look(self, keys: Iterable[Key]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self._stored]
        async for key, item in stored_items(self._store, missing, self._reads):
            record = None if item is None else Record.of(item)
            self._stored[key] = None if record is None else _Stored(bare_id(record), record.level)

    # -- who can move --------------------------------------------------------------------------------------------------

    async def _obstacle(self, mover: Mover) -> str:
        """Why a mover cannot go to its target, whatever the others do; else empty, and it has those it waits for."""
        found, node = await self._at(mover.origin), mover.node
        if found is None or node is None or found.id != mover.id:
            return f"The node is no longer at {path_text(*mover.origin)}."
        try:
            is_in_file = await self._find_parents(mover, node)
            if found.level != node.level:
                raise BadInput(f"The node is a {found.level}, not a {node.level}.")
            await self._wait_for_place(mover, node.key, is_in_file=is_in_file)
        except BadInput as error:
            return str(error)
        return ""

    async def _find_parents(self, mover: Mover, node: Node) -> bool:
        """Have a mover wait for its new parent; returns whether one above its target is in the file.

        Raises BadInput where it has none, or one of a wrong level.
        """
        levels: list[str | None] = [node.level]
        is_in_file = is_known = False
        for place in reversed(ancestor_keys(node.key)):
            final, planned = await self._final(place), self._planned(place)
            found = await self._at(final) if final else None
            is_in_file = is_in_file or planned is not None
            self._check_row(place, found, planned)
            if final is None:
                if planned is None and not self._plan.create_parents:
                    if mover.origin.holds(node.key):
                        raise BadInput(f"{path_text(*mover.origin)} cannot be moved below itself.")
                    raise BadInput(f"its parent {path_text(*place)} is neither in the file nor in the table.")
                levels.insert(0, planned.level if planned else None)
                await self._wait_for_place(mover, place, is_in_file=False)
                continue
            if not is_known and found is not None:
                levels.insert(0, found.level)
                is_known = True
            if (above := self._movers.get(final)) is not None:
                mover.after.add(above)
                break
        self._check_levels(levels, is_known=is_known)
        return is_in_file

    def _check_row(self, place: Key, found: _Stored | None, planned: Node | None) -> None:
        """Raise BadInput where the import would reject the row of a new parent, and with it all rows below."""
        plan, tree = self._plan, self._plan.trees.get(place.pk)
        row = tree.rejected.get(place.sk) if tree and planned is None else None
        if row is None and found is not None and planned is None:
            row = plan.rejected_ids.get(found.id)
        if row is not None:
            raise BadInput(f"nothing below {path_text(*place)} is imported, since row {row} was rejected.")
        if found is not None and planned is not None and planned.level != found.level:
            raise BadInput(f"{path_text(*place)} is a {found.level} in the table, not a {planned.level}.")

    def _check_levels(self, levels: list[str | None], *, is_known: bool) -> None:
        """Raise BadInput for a level that may not stand where it is to be; the first is there where it `is_known`."""
        hierarchy = self._plan.hierarchy
        filled = filled_levels(hierarchy, levels) if None in levels else [level for level in levels if level]
        for under, level in zip((None, *filled), filled, strict=False):
            if not (under is None and is_known) and not may_stand(hierarchy, level, under):
                raise BadInput(misplaced(hierarchy, level, under))

    async def _wait_for_place(self, mover: Mover, place: Key, *, is_in_file: bool) -> None:
        """Have a mover wait until a place is free; raises BadInput where another node stays there."""
        key = await self._coming(place)
        if key is None or (found := await self._at(key)) is None:
            return
        other = self._movers.get(key)
        if other is None and is_in_file:
            other = self._removed.get(key) or await self._removal(key, place)
        if other is None:
            stays = f"{path_text(*place)} is the place of another node, which stays"
            if self._prune and is_in_file:
                raise BadInput(f"{stays}, since rows of it or of nodes below it are rejected.")
            removes = "--prune" if is_in_file and key.sk != "#" else "clade delete"
            raise BadInput(f"{stays}; a row with its id {found.id} moves it, {removes} removes it.")
        mover.places.add(other)

    async def _removal(self, key: Key, place: Key) -> Mover | None:
        """The removal of a node that the file lacks, with all below it that does not move away; None if it may stay."""
        plan, top = self._plan, await self._at(key)
        if not self._prune or top is None or self._has_rejected(key) or self._has_rejected(place):
            return None
        inner, skipped = set[Mover](), ""
        async for page in Pages(self._store, subtree(*key), self._reads):
            for record in map(Record.of, page):
                if skipped and record.sk.startswith(skipped):
                    continue
                if (other := self._movers.get(record.key)) is not None:
                    inner.add(other)
                    skipped = record.sk
                elif (node_id := bare_id(record)) in plan.ids or node_id in plan.rejected_ids:
                    return None
        self._removed[key] = Mover(key, top.id, top.level, None, after=inner)
        return self._removed[key]

    def _has_rejected(self, top: Key) -> bool:
        """Whether nodes at or below a key have only rows that are rejected."""
        tree = self._plan.trees.get(top.pk)
        return tree is not None and any(sk.startswith(top.sk) for sk in tree.rejected if sk not in tree.nodes)

    # -- sizes ---------------------------------------------------------------------------------------------------------

    async def fits(self, mover: Mover, target: Key) -> bool:
        """Whether all keys of a subtree fit at another place."""
        rewrite = SubtreeRewrite(mover.origin, target, [], first_rank(mover.level, last_segment(*target)))
        try:
            check_sizes(path_of(*target))
            if rewrite.may_not_fit:
                await Reader(self._store, self._reads).check_fits(rewrite)
        except BadPath:
            return False
        return len(rewrite.rank.encode()) <= MAX_SORT_KEY_BYTES


class _Order:
    """The order of movers: each after those for which it waits, and where possible before those that it is below."""

    def __init__(self, moves: MovePlan, movers: Iterable[Mover]) -> None:
        self._moves = moves
        self._waiting = dict.fromkeys(sorted(movers, key=lambda mover: (mover.target, mover.node is None)))
        self._above: dict[Mover, Mover] = {}  # the next one below which a mover is stored
        self._aside = set[Mover]()
        self._ready: list[tuple[bool, int]] = []
        self._movers = list(self._waiting)
        self._fitting = set[Mover]()
        by_origin = {mover.origin: mover for mover in self._waiting}
        for number, mover in enumerate(self._waiting):
            mover.number, mover.waits = number, len(mover.after) + len(mover.places)
            found = (by_origin[key] for key in reversed(ancestor_keys(mover.origin)) if key in by_origin)
            if (above := next(found, None)) is not None:
                self._above[mover] = above
                above.inner += 1

    async def steps(self) -> list[Step]:
        steps: list[Step] = []
        self._drop_refused()
        for mover in self._waiting:
            self._offer(mover)
        while self._waiting:
            if self._ready:
                mover = self._movers[heappop(self._ready)[1]]
                if mover in self._waiting:
                    self._leave(mover)
                    steps.append(Step(mover))
            elif (aside := await self._break_circle()) is not None:
                steps.append(Step(aside, is_aside=True))
        return [step for step in steps if step.mover not in self._moves.refused]

    def _offer(self, mover: Mover) -> None:
        if mover in self._waiting and mover.waits == 0:
            heappush(self._ready, (mover.inner > 0, mover.number))

    def _leave(self, mover: Mover) -> None:
        """Note that a mover has arrived."""
        del self._waiting[mover]
        for other in mover.dependents:
            self._satisfy(other, (mover in other.after) + (mover in other.places and mover not in self._aside))
        self._uncover(mover)

    def _uncover(self, mover: Mover) -> None:
        if (above := self._above.get(mover)) is not None:
            above.inner -= 1
            if above.inner == 0:
                self._offer(above)

    def _satisfy(self, mover: Mover, times: int) -> None:
        if times:
            mover.waits -= times
            self._offer(mover)

    def _drop_refused(self) -> None:
        for mover in [mover for mover in self._waiting if mover in self._moves.refused]:
            del self._waiting[mover]
            self._uncover(mover)

    async def _break_circle(self) -> Mover | None:
        """Put one mover of a circle aside, if all that it waits for can go; else those that cannot are refused."""
        circle = self._circle()
        following = zip(circle, (*circle[1:], circle[0]), strict=True)
        for aside in [second for first, second in following if self._holds_place(first, second)]:
            if not await self._moves.fits(aside, key_aside(aside.origin, RANDOM)):
                continue
            for mover in self._needed(aside):
                if mover not in self._fitting and not await self._moves.fits(mover, mover.target):
                    self._moves.refuse(mover, TOO_LONG)
                    self._drop_refused()
                    return None
                self._fitting.add(mover)
            self._aside.add(aside)
            for other in aside.dependents:
                self._satisfy(other, aside in other.places)
            return aside
        self._moves.refuse(circle[0], "its key would be too long while others take its place.")
        self._drop_refused()
        return None

    def _holds_place(self, waiting: Mover, other: Mover) -> bool:
        return other in waiting.places and other in self._waiting and other not in self._aside

    def _unsatisfied(self, mover: Mover) -> list[Mover]:
        held = [one for one in mover.places if self._holds_place(mover, one)]
        return sorted({*held, *(one for one in mover.after if one in self._waiting)}, key=lambda one: one.number)

    def _circle(self) -> list[Mover]:
        mover = next(iter(self._waiting))
        trail = dict[Mover, int]()
        while mover not in trail:
            trail[mover] = len(trail)
            mover = self._unsatisfied(mover)[0]
        return [*trail][trail[mover] :]

    def _needed(self, mover: Mover) -> list[Mover]:
        """A mover, and all that have to go before it can."""
        needed = {mover: None}
        waiting = [mover]
        while waiting:
            for other in self._unsatisfied(waiting.pop()):
                if other not in needed:
                    needed[other] = None
                    waiting.append(other)
        return [*needed]
