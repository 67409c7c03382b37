"""Repeated mutations: what they return of a node that was moved, deleted or hidden since, and to whom.

A case makes one mutation in a tree of its own, lets something happen there, and repeats the mutation as the same caller
with several grants.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from resolvers.access.callers import Caller
from store.engine import Store
from store.model.records import key_of
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests import invariants
from tests.rights.asking import Server, caller, codes
from tests.selection import examples
from tests.store.writing.journaled import SMALL, SOON
from tests.stores import ReadRecorder

pytestmark = pytest.mark.both_stores

ADMIN = caller("write:category", name="admin")
PLACES = ["A", "A/p", "A/p/x", "A/p/x/k", "A/p/y", "A/q", "A/r", "H"]
LARGE = [f"A/p/x/n{number}" for number in range(SMALL // 4)]  # each takes four changes

RELATIONS = """parent { id path } ancestors { id path } descendants { totalCount }
    children { totalCount nodes { id path parent { id path } } }"""
CONTENT = "id path name revision childCount atRevision(n: 1) { name }"
PAYLOAD = f"node {{ {CONTENT} {RELATIONS} history {{ totalCount }} }}"
FORMER, MOVE = "previousParent { id path name }", "move { id from to }"
NOWHERE: dict[str, Any] = {
    "parent": None,
    "ancestors": [],
    "descendants": {"totalCount": 0},
    "children": {"totalCount": 0, "nodes": []},
}


@dataclass(frozen=True, eq=False)
class Mutation:
    """One mutation: its verb, its input, and the places at which it is made, before and after; `parent` is the former
    one. In the input a node is a place: of its path after a `/`, of its id after a `#`, which alone is after a `!`.
    """

    verb: str
    input: dict[str, Any]
    source: str
    target: str
    parent: str | None = None
    is_large: bool = False

    @property
    def is_by_id(self) -> bool:
        """Whether it names a node by its id that has to be there."""
        return "#" in str(self.input) and self.verb != "restore"


def _mutations() -> Iterator[Mutation]:
    x, moved = "A/p/x", ("A/p/x", "A/q/x", "A/p")
    category: dict[str, Any] = {"category": {}}
    for by in "/#":
        node, to = {"node": by + x}, {"to": {"parent": f"{by}A/q"}}
        new = {"parent": f"{by}A/p", "key": "new", "name": "N", "attributes": category}
        yield Mutation("create", new, "A/p/new", "A/p/new")
        yield Mutation("update", node | {"name": "Secret"}, x, x)
        yield Mutation("move", node | to, *moved)
        yield Mutation("move", node | to, *moved, is_large=True)
        yield Mutation("move", node | {"key": "z"}, x, "A/p/z", "A/p")
        yield Mutation("move", node | {"position": {"after": f"{by}A/p/y"}}, x, x, "A/p")
        yield Mutation("delete", {"node": f"{by}A/p/y", "policy": "REFUSE"}, "A/p/y", "A/p/y", "A/p")
        yield Mutation("delete", node | {"policy": "REPARENT"}, x, x, "A/p")
        yield Mutation("delete", node | {"policy": "CASCADE"}, x, x, "A/p")
        yield Mutation("delete", node | {"policy": "CASCADE"}, x, x, "A/p", is_large=True)
        yield Mutation("restore", {"id": f"!{x}"} | to, x, "A/q/x", is_large=by == "#")
    yield Mutation("restore", {"id": f"!{x}"}, x, x)
    yield Mutation("restore", {"id": f"!{x}", "key": "z"}, x, "A/p/z", is_large=True)


MUTATIONS = [*_mutations()]


# What happens since: each is what becomes of the node, of the parent at whose place it was, or of both places.
EVENTS = {
    "nothing": [],
    "moved": ["move node A/r", "take"],
    "hidden": ["move node H", "take"],
    "deleted": ["delete node", "take"],
    "restored": ["delete node", "take", "restore A/r"],
    "below a moved one": ["move parent A/r", "take"],
    "below a hidden one": ["move parent H", "take"],
    "below a deleted one": ["delete parent", "take"],
}
GRANTS = {
    "the same": ("write:category/T/A",),
    "everything": ("write:category",),
    "nothing": (),
    "another subtree": ("write:category/T/H", "read:category/T/A/r"),
    "reads": ("read:category/T/A",),
    "the target": ("write:category/T/A/q",),
    "only below": ("write:category/T/A/r", "read:category/T/A/q"),
}


def document(verb: str) -> str:
    payload = PAYLOAD + (FORMER if verb in ("move", "delete") else "")
    payload += MOVE if verb in ("move", "delete", "restore") else ""
    return f"""mutation($input: {verb.title()}CategoryNodeInput!, $key: String) {{
        it: {verb}CategoryNode(input: $input, idempotencyKey: $key) {{ {payload} }} }}"""


def node_id(tree: str, place: str) -> str:
    return f"category:{tree}-{place.replace('/', '-')}"


class Case:
    """One mutation in a tree of its own, what happens there since, and its repetitions."""

    def __init__(self, store: Store, server: Server, mutation: Mutation, event: str, tree: str) -> None:
        self.store, self.server = store, server
        self.mutation, self.event, self.tree = mutation, event, tree
        self.first: Any = None

    def who(self, grants: str) -> Caller:
        """Always the same caller, but each tree has keys of its own."""
        granted = [grant.replace("/T/", f"/{self.tree}/") for grant in GRANTS[grants]]
        return caller(*granted, name=self.tree)

    async def begin(self) -> None:
        """Make the tree and the mutation, and let happen what happens."""
        plan, outcome = ImportPlan(CategoryNode.definition()), LoadResult()
        places = ["", *PLACES, *(LARGE if self.mutation.is_large else [])]
        for number, place in enumerate(places):
            path = [self.tree, *place.split("/")] if place else [self.tree]
            plan.take(Row(number, path, [Part("CATEGORY", None, node_id(self.tree, place).partition(":")[2])]))
        await load(self.store, plan, outcome)
        assert not outcome.rejections
        if self.mutation.verb == "restore":
            subtree = {"node": f"/{self.mutation.source}", "policy": "CASCADE"}
            assert "errors" not in await self._write(ADMIN, "delete", subtree)
        limit = self.store.max_commit_changes
        self.store.max_commit_changes = SMALL if self.mutation.is_large else limit
        answer = await self._write(self.who("the same"), self.mutation.verb, self.mutation.input, "once")
        await self.server.writer.move_worker.finished()
        self.store.max_commit_changes = limit
        assert "errors" not in answer, answer
        self.first = answer["data"]["it"]
        if "move" in self.first:
            assert (self.first["move"] is not None) is self.mutation.is_large
        for what in EVENTS[self.event]:
            await self._happen(*what.split())

    async def _happen(self, what: str, *given: str) -> None:
        """A step of an event; a deleted node is neither moved nor deleted again."""
        place = self.mutation.target
        above = place.rpartition("/")[0]
        ids = {"node": self.first["node"]["id"], "parent": node_id(self.tree, above)}
        match what, *given:
            case "take":  # by another node with children, below another parent where that is gone
                for path in (above, place, f"{place}/other", f"{place}/other/deep"):
                    await self._create(path)
            case "restore", to:
                await self._create(f"{to}/again", self.first["node"]["id"])
            case "move", which, to:
                place_since = {"to": {"parent": f"/{to}"}, "key": "since"}
                self._has_happened(which, await self._write(ADMIN, "move", {"node": {"id": ids[which]}} | place_since))
            case "delete", which:
                subtree = {"node": {"id": ids[which]}, "policy": "CASCADE"}
                self._has_happened(which, await self._write(ADMIN, "delete", subtree))

    def _has_happened(self, which: str, answer: dict[str, Any]) -> None:
        assert ("errors" in answer) is (which == "node" and self.mutation.verb == "delete"), answer

    async def _create(self, place: str, as_id: str | None = None) -> None:
        above, _, key = place.rpartition("/")
        new = {"parent": f"/{above}", "key": key, "name": "Other", "attributes": {"category": {}}}
        await self._write(ADMIN, "create", new if as_id is None else new | {"id": as_id})

    async def _write(self, who: Caller, verb: str, given: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        return await self.server.write(who, document(verb), input=self._named(given), key=key)

    def _named(self, given: Any) -> Any:
        """An input whose places are nodes of the tree, by their paths and ids."""
        match given:
            case dict():
                return {name: self._named(value) for name, value in given.items()}
            case str() if given[0] == "!":
                return node_id(self.tree, given[1:])
            case str() if given[0] == "#":
                return {"id": node_id(self.tree, given[1:])}
            case str() if given[0] == "/":
                return {"path": self.tree + given}
            case _:
                return given

    async def again(self, grants: str) -> tuple[dict[str, Any], list[str], str]:
        """The payload of a repetition, the codes of its errors, and all of it as text."""
        answer = await self._write(self.who(grants), self.mutation.verb, self.mutation.input, "once")
        payload = (answer["data"] or {}).get("it") or {}
        return payload, list(codes(answer)), json.dumps(answer)

    async def node(self, who: Caller, one: str | None, selection: str) -> Any:
        """What a query shows the caller of the node with an id."""
        if one is None:
            return None
        asked = f"query($id: ID!) {{ categoryNode(id: $id) {{ {selection} }} }}"
        return (await self.server.data(who, asked, id=one))["categoryNode"]

    async def expected(self, grants: str) -> dict[str, Any] | None:
        """The payload that the caller has to get; None where it is told that it may not, or of nothing."""
        who, mutation, written = self.who(grants), self.mutation, self.first["node"]
        assert who.reads is not None
        ends = [(self.tree, *place.split("/")) for place in (mutation.source, mutation.target)]
        named = self.first["node"]["id"] if mutation.verb != "create" else node_id(self.tree, "A/p")
        now = await self.node(ADMIN, named, "path") if mutation.is_by_id else None
        may = all(who.reads.may_write("category", end) for end in ends)
        if mutation.input.get("policy") == "REPARENT":
            may &= who.reads.may_write("category", ends[0][:-1])
        if "position" in mutation.input:
            may &= who.reads.may_read("category", ends[0][:-1])
        if now is not None:  # as with each mutation of a node by its id
            path = tuple(now["path"].split("/"))
            may &= who.reads.may_write("category", path) or not who.reads.may_read("category", path)
        if not may:
            return None
        present = await self.node(who, written["id"], f"{RELATIONS} history {{ totalCount }}")
        history = {"totalCount": written["revision"]}
        found: dict[str, Any] = {"node": written | (present or {**NOWHERE, "history": history})}
        if mutation.parent is not None:
            parent = await self.node(who, node_id(self.tree, mutation.parent), "id path name")
            found |= {"previousParent": parent}
        return found | ({"move": self.first["move"]} if "move" in self.first else {})


def cases() -> list[tuple[Mutation, str]]:
    """All pairs of a mutation and an event; in a plain run some, among them each mutation and each event."""
    pairs = [*product(MUTATIONS, EVENTS)]
    Random(1).shuffle(pairs)  # noqa: S311
    first = {mutation: (mutation, event) for mutation, event in pairs} | {event: (one, event) for one, event in pairs}
    return [*dict.fromkeys([*first.values(), *pairs])][: examples(len(MUTATIONS), 80)]


@pytest.mark.both_stores(False)
async def test_a_repeated_mutation_returns_its_node_and_relations_of_no_other_one_to_who_may_see_both(
    store: Store,
) -> None:
    server = Server(store, CategoryNode, timing=SOON)
    for number, (mutation, event) in enumerate(cases()):
        case = Case(store, server, mutation, event, f"t{number}")
        await case.begin()
        before = sorted(await invariants.all_items(store), key=key_of)
        for grants in GRANTS:
            expected = await case.expected(grants)
            payload, errors, text = await case.again(grants)
            at = (mutation, event, grants)
            if expected is not None:
                assert (payload, errors) == (expected, []), at
                assert (event, grants) != ("nothing", "the same") or payload == case.first, at
            else:
                assert errors in (["FORBIDDEN"], ["NOT_FOUND"]), (at, payload)
                assert not any(payload.values()), at
                assert "Secret" not in text, at
        assert sorted(await invariants.all_items(store), key=key_of) == before, (mutation, event)


async def test_a_repetition_does_not_tell_a_hidden_node_from_a_deleted_one(store: Store) -> None:
    some = Random(2).sample(MUTATIONS, min(examples(4, 20), len(MUTATIONS)))  # noqa: S311
    of_hidden: list[Any] = []
    for (number, mutation), event in product(enumerate(some), ("hidden", "deleted")):
        witness: Any = ReadRecorder(store)
        case = Case(store, Server(witness, CategoryNode, timing=SOON), mutation, event, f"{event}{number}")
        await case.begin()
        told = []
        for grants in ("the same", "another subtree", "reads", "nothing", "only below"):
            reads = case.who(grants).reads
            if (
                mutation.verb == "restore"
                and reads
                and reads.may_read("category", (case.tree, *mutation.target.split("/")))
            ):
                continue  # who may see that it is deleted again
            witness.keys, witness.spans, witness.counts = [], [], []
            _, errors, text = await case.again(grants)
            own = case.tree, case.first["node"]["id"], (case.first.get("move") or {}).get("id", case.tree)
            for one in own[::-1]:
                text = text.replace(one, "IT")
            told.append((grants, errors, text, len(witness.keys), len(witness.spans), len(witness.counts)))
        of_hidden = told if event == "hidden" else of_hidden
        assert told == of_hidden, mutation
