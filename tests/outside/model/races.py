"""Clients that race: threads on two servers write into shared trees, and each response has to be one the docs allow.

Each client writes nodes of its own, which nobody else changes, and reads them by id; all of them create, move and
rename below shared nodes. At the end, when nobody writes, the trees have to agree with what was acknowledged.
"""

import random
import threading
import time
from collections import Counter
from typing import Any

from tests.outside.failures import Wrong
from tests.outside.model.literals import literal
from tests.outside.model.promises import COUNTS, FOLLOWED, MOMENT, SEEN, Promise
from tests.outside.processes import Place, Server

Node = dict[str, Any]
CLIENTS = 4
SHARED = ("left", "right")
# What somebody else's change may make of a mutation; reference/errors.md says of each that it was not made.
LOST = {"CONFLICT", "NOT_FOUND", "ALREADY_EXISTS", "MISPLACED", "BAD_PATH", "UNAVAILABLE"}


# The same counts and lists twice, with others between, so that the response takes some time.
TWICE = "childCount descendantCount children { totalCount nodes { id } } descendants { totalCount nodes { path } }"
MOMENTS = " ".join(f'{tree}{n}: thing(path: "{tree}") {{ {TWICE} }}' for n in (1, 2) for tree in SHARED)


class Client(threading.Thread):
    """A client with nodes of its own: what it was told of each is what a read by id has to show."""

    def __init__(self, number: int, servers: list[Server], seed: int, until: float, *, is_one_moment: bool) -> None:
        """`is_one_moment` is whether each response shows one moment, which the docs say of SQLite alone."""
        super().__init__(name=f"client {number}")
        self.is_one_moment = is_one_moment
        self.number, self.servers, self.until = number, servers, until
        self.chance = random.Random(f"{seed} {number}")
        self.own: dict[str, Node] = {}
        self.gone: dict[str, Node] = {}
        self.counts: Counter[str] = Counter()
        self.shown: list[str] = []
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while time.monotonic() < self.until or self.counts["races: writes"] < 3:
                self._write()
                self._read()
                if self.is_one_moment and self.chance.random() < 0.3:
                    self._look()
        except BaseException as failed:
            self.failed = failed

    def _look(self) -> None:
        """Both trees in one response, whose counts and lists have to agree."""
        got = self._ask(f"{{ {MOMENTS} }}", MOMENT)
        nodes = [node["path"] for tree in SHARED for node in got[f"{tree}1"]["descendants"]["nodes"]]
        for one, tree in ((got[f"{tree}{n}"], tree) for tree in SHARED for n in (1, 2)):
            below = [path for path in nodes if path.startswith(f"{tree}/")]
            children = [path for path in below if path.count("/") == 1]
            sizes = [one["childCount"], one["children"]["totalCount"], len(one["children"]["nodes"])]
            sizes += [one["descendantCount"], one["descendants"]["totalCount"], len(one["descendants"]["nodes"])]
            expected = [len(children)] * 3 + [len(below)] * 3
            if sizes != expected or one != got[f"{tree}1"]:
                raise Wrong(": ".join(MOMENT), self.shown[-30:], expected, sizes)
        self.counts["races: moments compared"] += 1

    def _ask(self, text: str, promise: Promise = SEEN) -> Any:
        number = self.chance.randrange(len(self.servers))
        self.shown.append(f"{self.name}, server {number}: {text}")
        got = self.servers[number].ask(text)
        if got.errors and not set(got.codes) <= LOST:
            raise Wrong(": ".join(promise), self.shown[-30:], "no such error", got.json)
        return got.json["data"]

    def _write(self) -> None:
        picked = "{ node { id path name revision } }"
        dice = self.chance.random()
        id = self.chance.choice(sorted(self.own)) if self.own else None
        path = self._path(id) if id else None
        key = f"c{self.number}-{self.chance.randrange(10**9)}"
        if self.gone and dice < 0.15:
            to = self.chance.choice(("", "", f", to: {{parent: {{path: {literal(self.chance.choice(SHARED))}}}}}"))
            text = f"restoreThing(input: {{id: {literal(self.chance.choice(sorted(self.gone)))}{to}}})"
        elif path is None or dice < 0.4:
            parent = self.chance.choice((*SHARED, path or "left"))
            text = (
                f'createThing(input: {{parent: {{path: {literal(parent)}}}, key: "{key}", name: '
                f'"{key}", attributes: {{box: {{}}}}}})'
            )
        elif dice < 0.65:
            text = f'updateThing(input: {{node: {{path: {literal(path)}}}, name: "{key}"}})'
        elif dice < 0.8:
            text = (
                f"moveThing(input: {{node: {{path: {literal(path)}}}, to: {{parent: {{path: "
                f"{literal(self.chance.choice(SHARED))}}}}}}})"
            )
        elif dice < 0.9:
            text = f'moveThing(input: {{node: {{path: {literal(path)}}}, key: "{key}"}})'
        else:
            text = f"deleteThing(input: {{node: {{path: {literal(path)}}}, policy: REPARENT}})"
        data = self._ask(f"mutation {{ made: {text} {picked} }}")["made"]
        self.counts["races: writes" if data else "races: writes that lost"] += 1
        if data and text.startswith("restore"):
            gone = self.gone.pop(data["node"]["id"])
            if (data["node"]["name"], data["node"]["revision"]) != (gone["name"], gone["revision"] + 1):
                raise Wrong(": ".join(SEEN), self.shown[-30:], gone, data)
            self.counts["races: restores"] += 1
        if data and text.startswith("delete"):
            self.gone[data["node"]["id"]] = self.own.pop(data["node"]["id"])
        elif data:
            self.own[data["node"]["id"]] = data["node"]

    def _path(self, id: str) -> str | None:
        """Where a node is now; nodes of its own may be moved with what is above them."""
        found = self._ask(f"{{ node(id: {literal(id)}) {{ ... on Thing {{ path }} }} }}")["node"]
        if found is None:
            raise Wrong(": ".join(SEEN), self.shown[-30:], self.own[id], None)
        return str(found["path"])

    def _read(self) -> None:
        """ "The guarantees apply to every client, not only to the writer (read-your-writes), to every server." """
        for id in self.chance.sample(sorted(self.own), min(len(self.own), 3)):
            got = self._ask(f"{{ node(id: {literal(id)}) {{ ... on Thing {{ id name revision }} }} }}")["node"]
            kept = {part: self.own[id][part] for part in ("id", "name", "revision")}
            if got != kept:
                raise Wrong(": ".join(SEEN), self.shown[-30:], kept, got)
        for id in list(self.gone)[-2:]:
            if self._ask(f"{{ node(id: {literal(id)}) {{ id }} }}")["node"] is not None:
                raise Wrong(": ".join(SEEN), self.shown[-30:], None, id)
        self.counts["races: reads compared"] += 1


def race(place: Place, seed: int, until: float) -> Counter[str]:
    """Some clients at once; then what is there has to be what they were told."""
    settle = {"settle_seconds": "0.2"} if place.kind == "dynamodb" else {}
    store = place.new_store()
    servers = [place.server(store, **settle) for _ in range(2)]
    for key in SHARED:
        servers[0].ask(
            f'mutation {{ createThing(input: {{key: "{key}", name: "{key}", attributes: {{box: '
            f"{{}}}}}}) {{ node {{ id }} }} }}"
        )
    is_sqlite = place.kind == "sqlite"
    clients = [Client(number, servers, seed, until, is_one_moment=is_sqlite) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for client in clients:
        if client.failed:
            raise client.failed
    time.sleep(0.5)
    _quiet(servers, {id: node for client in clients for id, node in client.own.items()})
    for server in servers:
        server.stop()
    return sum((client.counts for client in clients), Counter({"races: quiet moments": 1}))


def _quiet(servers: list[Server], own: dict[str, Node]) -> None:
    """Ids and paths are unique, counts are those of the lists, and the feeds lead to the same trees."""
    built: dict[str, str] = {}
    seen: dict[str, Node] = {}
    for tree, server in zip(SHARED, servers, strict=True):
        picked = "id path name revision childCount descendantCount children { totalCount nodes { id } }"
        root = server.ask(
            f'{{ thing(path: "{tree}") {{ {picked} descendants {{ totalCount nodes {{ {picked} }} }} }} }}'
        ).data
        nodes = [root["thing"], *root["thing"]["descendants"]["nodes"]]
        if root["thing"]["descendantCount"] != len(nodes) - 1:
            raise Wrong(": ".join(COUNTS), [tree], len(nodes) - 1, root["thing"]["descendantCount"])
        paths = [node["path"] for node in nodes]
        for node in nodes:
            below = [path for path in paths if path.startswith(node["path"] + "/")]
            depth = node["path"].count("/") + 1
            children = [path for path in below if path.count("/") == depth]
            counts = [len(children), len(below), len(children), len(children)]
            got = [
                node["childCount"],
                node["descendantCount"],
                node["children"]["totalCount"],
                len(node["children"]["nodes"]),
            ]
            if counts != got or node["id"] in seen or len(set(paths)) != len(paths):
                raise Wrong(": ".join(COUNTS), [tree, node["path"]], counts, got)
            seen[node["id"]] = node
        _follow(server, tree, built)
    names = {id: (node["name"], node["revision"]) for id, node in seen.items() if id in own}
    if names != {id: (node["name"], node["revision"]) for id, node in own.items()}:
        raise Wrong(": ".join(SEEN), list(own), own, names)
    places = {id: node["path"] for id, node in seen.items()}
    if built != places:
        raise Wrong(": ".join(FOLLOWED), [], places, built)


def _follow(server: Server, tree: str, built: dict[str, str]) -> None:
    """The paths of a tree from its feed alone, with what came from another tree read by its ids at the end."""
    after, more, here = "", True, dict[str, str]()
    while more:
        given = f'hierarchy: THING, tree: "{tree}"{after}'
        page = server.ask(f"{{ changes({given}) {{ changes {{ event nodeId path from to }} cursor hasMore }} }}").data[
            "changes"
        ]
        after, more = f", after: {literal(page['cursor'])}", page["hasMore"]
        for change in page["changes"]:
            _apply(change, tree, here)
    top = server.ask(f'{{ thing(path: "{tree}") {{ descendants {{ nodes {{ id path }} }} }} }}').data["thing"]
    there = {node["id"]: node["path"] for node in top["descendants"]["nodes"]}
    # "If it comes from another tree, read it with its subtree", and so one that is restored: what is below such a node
    # is known by reading only.
    brought = tuple(f"{path}/" for id, path in here.items() if id.endswith("\0"))
    here = {id.removesuffix("\0"): path for id, path in here.items()}
    here |= {id: path for id, path in there.items() if path.startswith(brought) and brought}
    built |= here


def _apply(change: Node, tree: str, here: dict[str, str]) -> None:
    id, source, target = change["nodeId"], change["from"], change["to"]
    mark = next((each for each in (id, id + "\0") if each in here), None)
    if change["event"] == "CREATED":
        here[id] = change["path"]
    elif change["event"] == "RESTORED":
        here[id + "\0"] = change["path"]
    elif change["event"] == "DELETED" and mark:
        del here[mark]
    elif change["event"] == "MOVED":
        inside = target.split("/")[0] == tree
        for each, path in list(here.items()):
            if path == source or path.startswith(source + "/"):
                del here[each]
                if inside:
                    here[each] = target + path[len(source) :]
        if inside and mark is None:
            here[id + "\0"] = target
