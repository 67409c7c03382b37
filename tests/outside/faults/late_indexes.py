"""Late indexes: the engine answers eventually consistent reads as of some time ago, within the setting."""

import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests import engines
from tests.outside.failures import Wrong, settled
from tests.outside.faults.tree import Item, Path, Tree, text
from tests.outside.processes import Place, Server, command
from tests.proxy import LateIndexes, in_thread

AT_ONCE = (
    "The guarantees apply to every client, not only to the writer (read-your-writes), to every server of the table"
)
SETTLED = "`children`, `descendants` and the roots of a hierarchy | within `CLADE_SETTLE_SECONDS`"
PROMISES = (
    ("consistency.md", AT_ONCE),
    ("consistency.md", "`totalCount` of all children or all descendants of such a node"),
    ("consistency.md", SETTLED),
    ("consistency.md", "Each read sees each write that was acknowledged before the read was sent"),
)
LAG_SECONDS = 1.5
SETTLE_SECONDS = 2.0


@contextlib.contextmanager
def late_store(place: Place, *, weak: int = 0) -> Iterator[tuple[str, LateIndexes | None]]:
    """A new store, on DynamoDB behind a proxy with late indexes, until the block ends."""
    store = place.new_store(created=False)
    with contextlib.ExitStack() as stack:
        proxy = None
        if place.engine is not None and place.engine.command:
            indexes = stack.enter_context(engines.find())
            proxy = stack.enter_context(in_thread(LateIndexes(place.engine.url, indexes.url, LAG_SECONDS, weak=weak)))
            store = store.replace(place.engine.url, proxy.url)
        command("table", "create", store=store)
        yield store, proxy


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Write on one server, read at once on both, and read lists when the indexes have settled."""
    with late_store(place, weak=70) as (store, proxy):
        servers = [place.server(store, settle_seconds=str(SETTLE_SECONDS)) for _ in range(2)]
        counts = _compared(place, servers, seed, until)
    return counts + Counter({"late replies of the engine": proxy.late} if proxy else {})


def _compared(place: Place, servers: list[Server], seed: int, until: float) -> Counter[str]:
    chance = random.Random(seed)
    world = World(servers, chance)
    while world.counts["writes"] < 12 or time.monotonic() < until - 5:
        world.write()
        world.read_at_once()
        if chance.random() < (1 if place.kind == "sqlite" else 0.1):
            lag = 0.0 if place.kind == "sqlite" else SETTLE_SECONDS + LAG_SECONDS
            settled(world.read_lists, time.monotonic() + lag)
    return world.counts


PAGE = 100  # of changes; those of a longer log come by pages


class World:
    """One tree, its model, and the log of what was written to it."""

    def __init__(self, servers: list[Server], chance: random.Random) -> None:
        self._servers, self._chance = servers, chance
        self.tree = Tree()
        self.revisions: dict[str, int] = {}
        self.log: list[str] = []
        self.counts: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._last: str = ""
        self._create(())

    def write(self) -> None:
        """A mutation of any kind, of which the model knows the result."""
        inner = [path for path in self.tree.nodes if len(path) > 1]
        kind = self._chance.choice(("create", "update", "rename", "move", "delete")) if len(inner) > 4 else "create"
        path = self._chance.choice(inner) if inner else ("L",)
        if kind == "create":
            self._create(self._chance.choice([p for p in self.tree.nodes if len(p) < 5]))
        elif kind == "update":
            self._update(path)
        elif kind == "delete":
            self._ask(f'deleteThing(input: {{node: {{path: "{text(path)}"}}, policy: CASCADE}})')
            self.log.append(f"DELETED {self.tree.nodes[path].id}")
            self._last = self.tree.nodes[path].id
            self.tree = self.tree.deleted(path)
        else:
            self._move(kind, path)

    def _create(self, parent: Path) -> None:
        number = next(self._numbers)
        key = f"k{number}" if parent else "L"
        item = Item(f"i{number}", "BOX", f"Name {number}")
        above = f'parent: {{path: "{text(parent)}"}}, ' if parent else ""
        given = f'{above}key: "{key}", name: "{item.name}", id: "{item.id}", attributes: {{box: {{}}}}'
        self._ask(f"createThing(input: {{{given}}})")
        self.tree = Tree({**self.tree.nodes, (*parent, key): item}, self.tree.former)
        self.revisions[item.id] = 1
        self._logged("CREATED", item.id)

    def _update(self, path: Path) -> None:
        item = self.tree.nodes[path]
        new = Item(item.id, item.level, f"Name {next(self._numbers)}")
        self._ask(f'updateThing(input: {{node: {{path: "{text(path)}"}}, name: "{new.name}"}})')
        self.tree = Tree({**self.tree.nodes, path: new}, self.tree.former)
        self.revisions[item.id] += 1
        self._logged("UPDATED", item.id)

    def _move(self, kind: str, path: Path) -> None:
        parents = [p for p in self.tree.nodes if p[: len(path)] != path and len(p) < 4 and p != path[:-1]]
        if kind == "rename" or not parents:
            new = (*path[:-1], f"r{next(self._numbers)}")
            self._ask(f'moveThing(input: {{node: {{path: "{text(path)}"}}, key: "{new[-1]}"}})')
        else:
            new = (*self._chance.choice(parents), path[-1])
            self._ask(
                f'moveThing(input: {{node: {{path: "{text(path)}"}}, to: {{parent: {{path: "{text(new[:-1])}"}}}}}})'
            )
        item = self.tree.nodes[path]
        self.tree = self.tree.moved(path, new)
        self._logged("MOVED", item.id)

    def _logged(self, event: str, item: str) -> None:
        self._last = item
        self.log.append(f"{event} {item}")

    def _ask(self, field: str) -> None:
        server = self._chance.choice(self._servers)
        answer = server.ask(f"mutation {{ {field} {{ node {{ id }} }} }}")
        if answer.errors:
            raise Wrong("a valid mutation is made", [*self.log[-5:], field], "no errors", answer.json)
        self.counts["writes"] += 1

    def read_at_once(self) -> None:
        """What the table of docs/consistency.md says is seen at once, on each server."""
        item, path = self._last, self.tree.paths.get(self._last)
        former = [old for old, known in self.tree.former.items() if known == item and old not in self.tree.nodes]
        selection = "{ id path name revision childCount descendantCount parent { path name childCount }"
        selection += " ancestors { id path name } children(first: 0) { totalCount } history { totalCount }"
        selection += " descendants(first: 0) { totalCount } }"
        given = [f'id: "thing:{item}"', *(f'path: "{text(p)}"' for p in [path, *former[-3:]] if p)]
        query = "\n ".join(f"a{number}: thing({each}) {selection}" for number, each in enumerate(given))
        expected: dict[str, Any] = {f"a{number}": self._node(path) for number in range(len(given))}
        if len(self.log) < PAGE:
            query += ' changes(hierarchy: THING, tree: "L") { changes { event nodeId } }'
            expected["changes"] = {
                "changes": [{"event": line.split()[0], "nodeId": f"thing:{line.split()[1]}"} for line in self.log]
            }
        self._expect(AT_ONCE, f"{{ {query} }}", expected, "reads at once")

    def _node(self, path: Path | None) -> Any:
        if path is None:
            return None
        tree, revision = self.tree, self.revisions[self.tree.nodes[path].id]
        children, below = len(tree.children(path)), len(tree.below(path))
        above = [self._named(other) for other in tree.ancestors(path)]
        parent = {"path": above[-1]["path"], "name": above[-1]["name"]} if above else None
        return {
            **self._named(path), "revision": revision, "childCount": children, "descendantCount": below,
            "parent": parent and {**parent, "childCount": len(tree.children(path[:-1]))}, "ancestors": above,
            "children": {"totalCount": children}, "descendants": {"totalCount": below},
            "history": {"totalCount": revision},
        }  # fmt: skip

    def _named(self, path: Path) -> dict[str, Any]:
        item = self.tree.nodes[path]
        return {"id": f"thing:{item.id}", "path": text(path), "name": item.name}

    def read_lists(self) -> None:
        """Lists, which are complete once the indexes have settled."""
        nodes = [self._named(path) for path in self.tree.below(("L",))]
        children = sorted(text(path) or "" for path in self.tree.children(("L",)))
        query = "descendants { totalCount nodes { id path name } } children(orderBy: [{field: KEY}]) { nodes { path } }"
        query = f'{{ thing(path: "L") {{ {query} }} }}'
        expected = {
            "thing": {
                "descendants": {"totalCount": len(nodes), "nodes": nodes},
                "children": {"nodes": [{"path": path} for path in children]},
            }
        }
        self._expect(SETTLED, query, expected, "lists read when the indexes had settled")

    def _expect(self, promise: str, query: str, expected: Any, what: str) -> None:
        for server in self._servers:
            answer = server.ask(query)
            if answer.errors or answer.json["data"] != expected:
                raise Wrong(promise, [*self.log[-6:], query], expected, answer.json)
            self.counts[what] += 1
