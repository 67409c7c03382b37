"""Many clients that change one table at once, and the table that their acknowledged changes must leave."""

from random import Random
from typing import Any

import httpx

from tests.servers import Server

TREES, PLACES = ("t0", "t1"), ("p0", "p1")
BESIDE = ("first", "last")
RETRIED = {"CONFLICT", "UNAVAILABLE", "TIMEOUT"}  # which say that it may be sent again
LONGEST_PATIENCE = 60  # attempts at one change
SENT_TWICE = 0.2  # of the changes, the second time to the other server

_CHANGED = "node { path name revision }"
_MUTATIONS = {
    "create": "createCategoryNode(parent: $parent, key: $key, name: $name, attributes: { category: true }, %s)",
    "update": "updateCategoryNode(path: $path, name: $name, %s)",
    "rename": "renameCategoryNode(path: $path, key: $key, %s)",
    "move": "moveCategoryNode(path: $path, to: $to, %s)",
    "reorder": "reorderCategoryNode(path: $path, first: $first, last: $last, %s)",
    "delete": "deleteCategoryNode(path: $path, %s)",
}
_TYPES = {"parent": "Path", "key": "String!", "name": "String!", "path": "Path!", "to": "Path",
          "first": "Boolean", "last": "Boolean"}  # fmt: skip


class Client:
    """One of many, who works on nodes of its own: `nodes` are their paths, names and revisions as it was told."""

    def __init__(self, number: int, servers: list[Server]) -> None:
        self.random = Random(number)  # noqa: S311
        self.number = number
        self.servers = servers
        self.nodes: dict[str, tuple[str, int]] = {}
        self.changes = 0

    async def act(self) -> None:
        known = list(self.nodes)
        what = self.random.choice(list(_MUTATIONS)) if known else "create"
        path = self.random.choice(known) if known else ""
        place = f"{self.random.choice(TREES)}/{self.random.choice(PLACES)}"
        self.changes += 1
        name = f"c{self.number}-{self.changes}"
        given = {
            "create": {"parent": place, "key": name, "name": name},
            "update": {"path": path, "name": name},
            "rename": {"path": path, "key": name},
            "move": {"path": path, "to": place},
            "reorder": {"path": path, self.random.choice(BESIDE): True},
            "delete": {"path": path},
        }[what]
        node = await self.changed(what, given)
        if what != "create":
            del self.nodes[path]
        if what != "delete":
            self.nodes[node["path"]] = node["name"], node["revision"]

    async def changed(self, what: str, given: dict[str, Any]) -> dict[str, Any]:
        """The node as it was changed, sent until that is acknowledged, and now and then once more."""
        key = f"{self.number}:{self.changes}"
        node = await self._sent(what, given, key)
        if self.random.random() < SENT_TWICE:
            assert await self._sent(what, given, key) == node
        return node

    async def _sent(self, what: str, given: dict[str, Any], key: str) -> dict[str, Any]:
        for _ in range(LONGEST_PATIENCE):
            try:
                answer = await self.random.choice(self.servers).ask(*mutation(what, given), **given, once=key)
            except httpx.TransportError:
                continue
            codes = {error["extensions"]["code"] for error in answer.get("errors", ())}
            if not codes:
                node: dict[str, Any] = answer["data"]["changed"]["node"]
                return node
            assert codes <= RETRIED, (what, given, answer)
        raise AssertionError(f"{what} {given} is never let through.")


def mutation(what: str, given: dict[str, Any]) -> tuple[str]:
    """The operation that makes a change with these variables, and one named `once`."""
    arguments = ", ".join([*(f"${name}: {_TYPES[name]}" for name in given), "$once: String"])
    call = _MUTATIONS[what] % "idempotencyKey: $once"
    for name in _TYPES:
        if name not in given:
            call = call.replace(f"{name}: ${name}, ", "")
    return (f"mutation({arguments}) {{ changed: {call} {{ {_CHANGED} }} }}",)
