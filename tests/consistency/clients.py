"""Clients that write and read through several servers, and compare each answer with what docs/consistency.md allows."""

import asyncio
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.consistency.states import Node
from tests.systems.test_read_your_writes import CREATE, DELETE, MOVE, UPDATE, Server

PLACES = ("P", "Q")
AGAIN = 60  # of a hundred reads ask what was asked a short time ago
_NODE = "id path name revision"
_IN_LIST = f"totalCount nodes {{ {_NODE} }}"
READS = {
    "path": f"query($path: Path!) {{ found: categoryNode(path: $path) {{ {_NODE} }} }}",
    "id": f"query($id: ID!) {{ found: node(id: $id) {{ ... on CategoryNode {{ {_NODE} }} }} }}",
    "ids": f"query($id: ID!) {{ found: nodes(ids: [$id, $id]) {{ ... on CategoryNode {{ {_NODE} }} }} }}",
    "entity": f"""query($id: ID!) {{
      found: _entities(representations: [{{ __typename: "CategoryNode", id: $id }}]) {{
        ... on Category {{ {_NODE} }} }} }}""",
    "list": f"query($path: Path!) {{ place: categoryNode(path: $path) {{ childCount children {{ {_IN_LIST} }} }} }}",
    "part": """query($path: Path!) { place: categoryNode(path: $path) {
      childCount children(where: {key: {gte: "a", lt: "z"}}, orderBy: {field: KEY}) { totalCount } } }""",
    "below": f"query($tree: Path!) {{ tree: categoryNode(path: $tree) {{ descendants {{ {_IN_LIST} }} }} }}",
    "changes": """query($tree: Path!, $since: String) {
      feed: changes(hierarchy: CATEGORY, tree: $tree, after: $since) { changes { event nodeId } cursor hasMore } }""",
}


class Question(NamedTuple):
    """What is read of a tree: of one of its nodes, of one of its places, or of all of it."""

    tree: "Tree"
    kind: str
    node: Node
    place: str


@dataclass
class Tree:
    """A tree with two places, between which its nodes are moved; `writes` are made in so many of a hundred goes."""

    name: str
    writes: int
    nodes: list[Node] = field(default_factory=list)

    def path(self, place: str) -> str:
        return f"{self.name}/{place}"


class Clients:
    """Several clients of some servers. Lists may be `late`, and all but changes `stale`, by so many seconds."""

    def __init__(self, servers: Sequence[Server], trees: Sequence[Tree], late: float, stale: float, seed: int) -> None:
        self._servers, self._trees, self._late, self._stale = servers, trees, late, stale
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self.counts: Counter[str] = Counter()
        self.kept = 0  # answers
        self._followed: dict[str, tuple[str | None, dict[str, list[str]]]] = defaultdict(
            lambda: (None, defaultdict(list))
        )

    @property
    def _server(self) -> Server:
        return self._random.choice(self._servers)

    async def plant(self) -> None:
        for tree in self._trees:
            await self._server.ask(CREATE, key=tree.name)
            for place in PLACES:
                await self._server.ask(CREATE, parent={"path": tree.name}, key=place)
            for _ in range(4):
                await self._create(tree)

    async def run(self, until: Callable[[], bool], clients: int) -> None:
        """Have so many clients write and read until this is true."""
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(self._run(until, number))

    async def _run(self, until: Callable[[], bool], number: int) -> None:
        asked: deque[Question] = deque(maxlen=4)
        while not until():
            tree = self._random.choice(self._trees)
            if self._random.randrange(100) < tree.writes:
                await self._write(tree)
            elif asked and self._random.randrange(100) < AGAIN:
                await self._read(self._random.choice(asked), number)
            else:
                asked.append(self._question(tree))
                await self._read(asked[-1], number)
            await asyncio.sleep(self._random.uniform(0.0, 0.01))

    # -- writes --------------------------------------------------------------------------------------------------------

    async def _write(self, tree: Tree) -> None:
        idle = [node for node in tree.nodes if not node.turn.locked() and node.last.path is not None]
        if len(idle) < 3:
            return await self._create(tree)
        node = self._random.choice(idle)
        write = self._random.choice((self._update, self._update, self._move, self._move, self._delete))
        async with node.turn:
            await write(tree, node)
        self.counts[write.__name__] += 1

    async def _create(self, tree: Tree) -> None:
        node = Node(f"n{len(tree.nodes)}")
        tree.nodes.append(node)
        place = tree.path(self._random.choice(PLACES))
        async with node.turn:
            with node.writing("CREATED", f"{place}/{node.key}", "0", 1):
                answer = await self._server.ask(CREATE, parent={"path": place}, key=node.key)
                node.id = answer["createCategoryNode"]["node"]["id"]
        self.counts["_create"] += 1

    async def _update(self, tree: Tree, node: Node) -> None:
        path, revision = node.last.path, node.last.revision + 1
        with node.writing("UPDATED", path, str(revision), revision):
            await self._server.ask(UPDATE, path=path, name=str(revision))

    async def _move(self, tree: Tree, node: Node) -> None:
        last = node.last
        assert last.path is not None
        (there,) = [tree.path(place) for place in PLACES if f"/{place}/" not in last.path]
        with node.writing("MOVED", f"{there}/{node.key}", last.name, last.revision):
            await self._server.ask(MOVE, path=last.path, to=there)

    async def _delete(self, tree: Tree, node: Node) -> None:
        path = node.last.path
        with node.writing("DELETED", None, "", 0):
            await self._server.ask(DELETE, path=path)

    # -- reads ---------------------------------------------------------------------------------------------------------

    def _question(self, tree: Tree) -> Question:
        known = [node for node in tree.nodes if node.id]
        place = tree.path(self._random.choice(PLACES))
        return Question(tree, self._random.choice(list(READS)), self._random.choice(known), place)

    async def _read(self, question: Question, client: int) -> None:
        tree, kind, node, place = question
        follower = f"{tree.name} {client}"
        known = [one for one in tree.nodes if one.id]
        now = time.monotonic()
        former = [state.path for state in node.states if state.path is not None and state.acknowledged < now]
        variables = {
            "path": {"path": self._random.choice(former)},
            "list": {"path": place},
            "part": {"path": place},
            "below": {"tree": tree.name},
            "changes": {"tree": tree.name, "since": self._followed[follower][0]},
        }.get(kind, {"id": node.id})
        began = time.monotonic()
        data, reads = await self._server.told(READS[kind], **variables)
        ended = time.monotonic()
        self.counts[kind] += 1
        self.kept += reads["cached"]
        match kind:
            case "changes":
                self._check_feed(known, data["feed"], follower, began, ended)
            case "below":
                places = [tree.path(one) for one in PLACES]
                self._check_list(known, data["tree"]["descendants"], places, began - self._stale, ended)
            case "list" | "part":
                began -= self._stale
                self._check_count(tree, place, data["place"]["childCount"], began, ended)
                children = data["place"]["children"]
                late = self._late if kind == "part" else 0.0
                self._check_count(tree, place, children["totalCount"], began - late, ended)
                if kind == "list":
                    self._check_list(known, children, [place], began, ended)
            case _:
                for one in data["found"] if isinstance(data["found"], list) else [data["found"]]:
                    told = one and (one["path"], one["name"], one["revision"])
                    allowed = node.told(began - self._stale, ended)
                    assert told in allowed, f"{kind}: {told}, not {allowed}; {node.states}"

    def _check_list(self, nodes: Sequence[Node], told: Any, places: Sequence[str], began: float, ended: float) -> None:
        found: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        for one in told["nodes"]:
            found[one["id"]].append((one["path"], one["name"], one["revision"]))
        for node in nodes:
            allowed = node.told(began - self._late, ended)
            shown = found[node.id]
            assert set(shown) <= allowed, f"{shown}, not {allowed}"
            may_be = {any(one is not None and one[0] == f"{place}/{node.key}" for place in places) for one in allowed}
            assert bool(shown) in may_be, f"{node.key} in {places}: {shown}, not {allowed}"

    def _check_count(self, tree: Tree, place: str, count: int, since: float, until: float) -> None:
        sure = [node.in_place(place, since, until) for node in tree.nodes]
        least, most = sum(one == {True} for one in sure), sum(True in one for one in sure)
        assert least <= count <= most, f"{place} has {count}, not {least} to {most}"

    def _check_feed(self, nodes: Sequence[Node], feed: Any, follower: str, began: float, ended: float) -> None:
        _, events = self._followed[follower]
        for change in feed["changes"]:
            events[change["nodeId"]].append(change["event"])
        self._followed[follower] = feed["cursor"], events
        if feed["hasMore"]:
            return
        for node in nodes:
            allowed = node.seen(began, ended)
            first = node.states.index(allowed[0])
            written = [state.event for state in node.states[1:]]
            told = events[node.id]
            assert told == written[: len(told)], f"{told}, not {written}"
            assert first <= len(told) <= first + len(allowed) - 1, f"{told}, not {written}"
