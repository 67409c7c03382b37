"""Many clients that change one table at once, and the table that their acknowledged changes must leave."""

from random import Random
from typing import Any

import httpx

from tests.servers import Server, codes_of

TREES, PLACES = ("t0", "t1"), ("p0", "p1")
BESIDE = ("first", "last")
RETRIED = {"CONFLICT", "UNAVAILABLE", "TIMEOUT"}  # which say that it may be sent again
LONGEST_PATIENCE = 60  # attempts at one change
SENT_TWICE = 0.2  # of the changes, the second time to the other server

_CHANGED = "node { path name revision }"
_VERBS = {"create": "create", "update": "update", "rename": "move", "move": "move", "reorder": "move",
          "delete": "delete"}  # fmt: skip


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
        what = self.random.choice(list(_VERBS)) if known else "create"
        path = self.random.choice(known) if known else ""
        place = f"{self.random.choice(TREES)}/{self.random.choice(PLACES)}"
        self.changes += 1
        name = f"c{self.number}-{self.changes}"
        node = {"node": {"path": path}}
        given = {
            "create": {"parent": {"path": place}, "key": name, "name": name, "level": "CATEGORY"},
            "update": {**node, "name": name},
            "rename": {**node, "key": name},
            "move": {**node, "to": {"parent": {"path": place}}},
            "reorder": {**node, "position": {self.random.choice(BESIDE): True}},
            "delete": node,
        }[what]
        made = await self.changed(_VERBS[what], given)
        if what != "create":
            del self.nodes[path]
        if what != "delete":
            self.nodes[made["path"]] = made["name"], made["revision"]

    async def changed(self, verb: str, given: dict[str, Any]) -> dict[str, Any]:
        """The node as it was changed, sent until that is acknowledged, and now and then once more."""
        key = f"{self.number}:{self.changes}"
        node = await self._sent(verb, given, key)
        if self.random.random() < SENT_TWICE:
            assert await self._sent(verb, given, key) == node
        return node

    async def _sent(self, verb: str, given: dict[str, Any], key: str) -> dict[str, Any]:
        for _ in range(LONGEST_PATIENCE):
            try:
                answer = await self.random.choice(self.servers).ask(mutation(verb), input=given, once=key)
            except httpx.TransportError:
                continue
            codes = {*codes_of(answer)}
            if not codes:
                node: dict[str, Any] = answer["data"]["changed"]["node"]
                return node
            assert codes <= RETRIED, (verb, given, answer)
        raise AssertionError(f"{verb} {given} is never let through.")


def mutation(verb: str) -> str:
    """The operation of a verb, with the variables `input` and `once`."""
    declared = f"$input: {verb.title()}CategoryNodeInput!, $once: String"
    call = f"{verb}CategoryNode(input: $input, idempotencyKey: $once)"
    return f"mutation({declared}) {{ changed: {call} {{ {_CHANGED} }} }}"
