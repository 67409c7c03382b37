"""Moving subtree: one that is moved or deleted while clients read it, and the check of each response."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Self

import httpx

from graph.hierarchies.categories import CategoryNode
from store.engine.protocol import Store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.servers import Server

HERE, THERE = "r/here/moving", "r/there/moving"
NOWHERE = None
PAGE = 37
PATIENCE_SECONDS = 30.0  # with a server on a busy machine

_NODES = "nodes { path"
_WATCH = f"""query($id: ID!, $inner: ID!, $here: Path!, $there: Path!) {{
  flat: categoryNode(path: "r") {{ descendantCount descendants {{ totalCount {_NODES} }} }} }}
  nested: categoryNode(path: "r") {{
    children {{ {_NODES} descendantCount
      children {{ {_NODES} children {{ {_NODES} children {{ {_NODES} }} }} }} }} }} }} }} }}
  }}
  top: node(id: $id) {{ ... on CategoryNode {{ path parent {{ childCount children {{ {_NODES} }} }} }} }} }}
  inner: node(id: $inner) {{ ... on CategoryNode {{ path ancestors {{ path }} }} }}
  here: categoryNode(path: $here) {{ path }}
  there: categoryNode(path: $there) {{ path }}
}}"""
_PAGE = """query($id: ID!, $first: Int!, $after: String) {
  node(id: $id) { ... on CategoryNode {
    path descendants(first: $first, after: $after) { nodes { path } pageInfo { hasNextPage endCursor } } } } }"""
_MOVE = """mutation($path: Path!, $to: Path!, $once: String) {
  changed: moveCategoryNode(
    input: {node: {path: $path}, to: {parent: {path: $to}}}, idempotencyKey: $once
  ) { node { path } } }"""
_RENAME = """mutation($path: Path!, $key: String!, $once: String) {
  changed: moveCategoryNode(input: {node: {path: $path}, key: $key}, idempotencyKey: $once) { node { path } } }"""
_DELETE = """mutation($path: Path!, $once: String) {
  changed: deleteCategoryNode(
    input: {node: {path: $path}, policy: CASCADE}, idempotencyKey: $once
  ) { node { path } } }"""


class MovingSubtree:
    """Groups of parts below one node, which is at HERE at first."""

    def __init__(self, groups: int, parts: int) -> None:
        self.inner = [f"/g{g}" for g in range(groups)]
        self.inner += [f"{group}/p{p}" for group in self.inner for p in range(parts)]
        self.size = 1 + len(self.inner)

    async def plant(self, store: Store) -> None:
        """Write its tree into a store, with fixed ids."""
        wanted = ImportPlan(CategoryNode.definition())
        paths = ["r", "r/here", "r/there", "r/there/other", *self.at(HERE)]
        for number, path in enumerate(paths):
            part = Part("CATEGORY", id=path.replace("/", "."))
            wanted.take(Row(number, tuple(path.split("/")), [part]))
        await load(store, wanted, LoadResult())

    def at(self, place: str | None) -> list[str]:
        """The paths of all its nodes at a place."""
        return [] if place is NOWHERE else [place, *(place + path for path in self.inner)]

    def below_root(self, place: str | None) -> list[str]:
        return sorted(["r/here", "r/there", "r/there/other", *self.at(place)])

    async def move(self, server: Server, to: str, key: str | None = None) -> dict[str, Any]:
        """Move it to the other place; the data of the response."""
        path = HERE if to == THERE else THERE
        return await server.ask(_MOVE, path=path, to=to.rpartition("/")[0], once=key)

    async def delete(self, server: Server, key: str | None = None) -> dict[str, Any]:
        return await server.ask(_DELETE, path=HERE, once=key)

    async def rename(self, server: Server, key: str | None = None) -> dict[str, Any]:
        """Rename its top; the data of the response."""
        return await server.ask(_RENAME, path=HERE, key=f"{HERE.rpartition('/')[2]}-renamed", once=key)

    async def seen_by(self, server: Server) -> str | None:
        """The place at which one response shows it, by every field that leads to it; fails if there are several.

        Raises Unanswered where the server says for long that it cannot tell now.
        """
        query, variables = self.watch()
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.place_in(_data(await server.ask(query, **variables)))
            except Unanswered:
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(0.01)

    def watch(self) -> tuple[str, dict[str, str]]:
        """A query with every field that leads to it, and its variables."""
        here, there = HERE + self.inner[-1], THERE + self.inner[-1]
        return _WATCH, {"id": _id(HERE), "inner": _id(here), "here": here, "there": there}

    def place_in(self, data: dict[str, Any]) -> str | None:
        flat = data["flat"]["descendants"]["nodes"]
        paths = [one["path"] for one in flat]
        place = next((one for one in (HERE, THERE) if one in paths), NOWHERE)
        assert sorted(paths) == self.below_root(place)
        assert data["flat"]["descendantCount"] == data["flat"]["descendants"]["totalCount"] == len(paths)
        assert sorted(_paths(data["nested"])) == self.below_root(place)
        for parent in data["nested"]["children"]["nodes"]:
            below = [path for path in paths if path.startswith(parent["path"] + "/")]
            assert parent["descendantCount"] == len(below), parent["path"]
        if place is NOWHERE:
            assert (data["top"], data["inner"], data["here"], data["there"]) == (None, None, None, None)
            return place
        inner = {"path": place + self.inner[-1]}
        family = [one["path"] for one in data["top"]["parent"]["children"]["nodes"]]
        assert data["top"]["path"] == place
        assert (family.count(place), data["top"]["parent"]["childCount"]) == (1, len(family))
        assert data["inner"]["path"] == inner["path"]
        assert data["inner"]["ancestors"][2] == {"path": place}
        assert data["here"] == inner  # by its path, or by a redirect
        assert data["there"] in ([inner] if place == THERE else [inner, None])
        return place

    async def pages_by(self, server: Server) -> int:
        """Page through its descendants while it moves; the number of pages.

        Each page must show one place, and all pages together each node once.
        """
        found: list[str] = []
        after, pages = None, 0
        while True:
            node = _data(await server.ask(_PAGE, id=_id(HERE), first=PAGE, after=after))["node"]
            if node is None:  # deleted meanwhile
                return pages
            page = node["descendants"]
            assert all(one["path"].startswith(node["path"] + "/") for one in page["nodes"])
            found += [one["path"].removeprefix(node["path"]) for one in page["nodes"]]
            pages += 1
            if not page["pageInfo"]["hasNextPage"]:
                assert sorted(found) == sorted(self.inner)
                return pages
            after = page["pageInfo"]["endCursor"]


class Unanswered(Exception):
    """The server was unavailable."""


class Watchers:
    """Clients that read a subtree through servers in turn during the block; `seen` counts its places."""

    def __init__(self, subtree: MovingSubtree, servers: Sequence[Server], count: int = 1, pause: float = 0.02) -> None:
        self._subtree = subtree
        self._servers = servers
        self._count = count
        self._pause = pause
        self.seen: Counter[str | None] = Counter()
        self.pages = 0

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._watch(number)) for number in range(self._count)]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if not isinstance(outcome, asyncio.CancelledError):
                raise AssertionError("A reader saw what it should not.") from outcome

    async def _watch(self, number: int) -> None:
        for server in itertools.islice(itertools.cycle(self._servers), number, None):
            try:
                self.seen[await self._subtree.seen_by(server)] += 1
                self.pages += await self._subtree.pages_by(server)
            except (httpx.TransportError, Unanswered):
                await asyncio.sleep(0.01)
            await asyncio.sleep(self._pause)


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    errors = [*answer.get("errors", ()), *answer.get("userErrors", ())]
    if errors and all(_means_later(error) for error in errors):
        raise Unanswered
    assert not errors, errors
    data: dict[str, Any] = answer["data"]
    return data


def _means_later(error: dict[str, Any]) -> bool:
    """Whether the same request may be answered later: a busy client may also have sent its body too slowly."""
    code = error.get("extensions", error)["code"]
    return code in {"UNAVAILABLE", "TIMEOUT"} or "body was not received" in error["message"]


def _paths(node: dict[str, Any]) -> Iterator[str]:
    for child in node.get("children", {}).get("nodes", ()):
        yield child["path"]
        yield from _paths(child)


def _id(path: str) -> str:
    return f"category:{path.replace('/', '.')}"
