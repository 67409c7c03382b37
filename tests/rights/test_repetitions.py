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
from tests.recorded_reads import ReadRecorder
from tests.rights.asking import Server, caller, codes
from tests.selection import examples
from tests.store.writing.journaled import SMALL, SOON

pytestmark = pytest.mark.both_stores

ADMIN = caller("write:category", name="admin")
PLACES = ["A", "A/p", "A/p/x", "A/p/x/k", "A/p/y", "A/q", "A/r", "H"]
LARGE = [f"A/p/x/n{number}" for number in range(SMALL // 4)]  # each takes four changes

RELATIONS = """parent { id path } ancestors { id path } descendants { totalCount }
    children { totalCount nodes { id path parent { id path } } }"""
CONTENT = "id path name revision childCount atRevision(n: 1) { name }"
PAYLOAD = f"node {{ {CONTENT} {RELATIONS} history {{ totalCount }} }}"
FORMER = "previousParent { id path name } move { id from to }"
NOWHERE: dict[str, Any] = {
    "parent": None,
    "ancestors": [],
    "descendants": {"totalCount": 0},
    "children": {"totalCount": 0, "nodes": []},
}


@dataclass(frozen=True)
class Mutation:
    """One mutation: its field, its input with places in braces, and the places at which it is made, before and after;
    `parent` is the former one.
    """

    verb: str
    input: str
    source: str
    target: str
    parent: str | None = None
    is_large: bool = False

    def text(self, tree: str) -> str:
        """The mutation in a tree; a node is named by its path or, after a `#`, by its id."""
        given = self.input
        for place in sorted([*PLACES, *LARGE], key=len, reverse=True):
            given = given.replace(f"<{place}>", f'{{path: "{tree}/{place}"}}')
            given = given.replace(f"#{place}#", f'{{id: "{node_id(tree, place)}"}}')
        former = FORMER if self.parent is not None else ""
        return f"""mutation {{ it: {self.verb}CategoryNode(input: {{{given}}}, idempotencyKey: "{tree}") {{
            {PAYLOAD} {former} }} }}"""


def _mutations() -> Iterator[Mutation]:
    x, moved = "A/p/x", ("A/p/x", "A/q/x", "A/p")
    for a, b in ("<>", "##"):
        yield Mutation("create", f'parent: {a}A/p{b}, key: "new", name: "N", attributes: {{category: {{}}}}', "A/p/new",
                       "A/p/new")  # fmt: skip
        yield Mutation("update", f'node: {a}{x}{b}, name: "Secret"', x, x)
        yield Mutation("move", f"node: {a}{x}{b}, to: {{parent: {a}A/q{b}}}", *moved)
        yield Mutation("move", f"node: {a}{x}{b}, to: {{parent: {a}A/q{b}}}", *moved, is_large=True)
        yield Mutation("move", f'node: {a}{x}{b}, key: "z"', x, "A/p/z", "A/p")
        yield Mutation("move", f"node: {a}{x}{b}, position: {{after: {a}A/p/y{b}}}", x, x, "A/p")
        yield Mutation("delete", f"node: {a}A/p/y{b}, policy: REFUSE", "A/p/y", "A/p/y", "A/p")
        yield Mutation("delete", f"node: {a}{x}{b}, policy: REPARENT", x, x, "A/p")
        yield Mutation("delete", f"node: {a}{x}{b}, policy: CASCADE", x, x, "A/p")
        yield Mutation("delete", f"node: {a}{x}{b}, policy: CASCADE", x, x, "A/p", is_large=True)


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
    "only below": ("write:category/T/A/r", "read:category/T/A/q"),
}


def node_id(tree: str, place: str) -> str:
    return f"category:{tree}-{place.replace('/', '-')}"


class Case:
    """One mutation in a tree of its own, what happens there since, and its repetitions."""

    def __init__(self, store: Store, mutation: Mutation, event: str, tree: str) -> None:
        self.store, self.mutation, self.event, self.tree = store, mutation, event, tree
        self.witness = ReadRecorder(store)
        self.server = Server(self.witness, CategoryNode, timing=SOON)
        self.first: Any = None

    def who(self, grants: str) -> Caller:
        return caller(*[grant.replace("/T/", f"/{self.tree}/") for grant in GRANTS[grants]])

    async def begin(self) -> None:
        """Make the tree and the mutation, and let happen what happens."""
        plan, outcome = ImportPlan(CategoryNode.definition()), LoadResult()
        places = ["", *PLACES, *(LARGE if self.mutation.is_large else [])]
        for number, place in enumerate(places):
            path = [self.tree, *place.split("/")] if place else [self.tree]
            plan.take(Row(number, path, [Part("CATEGORY", None, node_id(self.tree, place).partition(":")[2])]))
        await load(self.store, plan, outcome)
        assert not outcome.rejections
        limit = self.store.max_commit_changes
        self.store.max_commit_changes = SMALL if self.mutation.is_large else limit
        answer = await self.server.write(self.who("the same"), self.mutation.text(self.tree))
        await self.server.writer.move_worker.finished()
        self.store.max_commit_changes = limit
        assert "errors" not in answer, answer
        self.first = answer["data"]["it"]
        if self.mutation.parent:
            assert (self.first["move"] is not None) is self.mutation.is_large
        for what in EVENTS[self.event]:
            await self._happen(*what.split())

    async def _happen(self, what: str, *given: str) -> None:
        """Some of it is impossible after some mutations, such as the move of a deleted node."""
        place = self.mutation.target
        above = place.rpartition("/")[0]
        ids = {"node": self.first["node"]["id"], "parent": node_id(self.tree, above)}
        match what, *given:
            case "take":  # by another node with children, below another parent where that is gone
                for path in (above, place, f"{place}/other", f"{place}/other/deep"):
                    await self._create(path)
            case "restore", to:
                await self._create(f"{to}/again", self.first["node"]["id"].partition(":")[2])
            case "move", which, to:
                await self._change(f'moveCategoryNode(input: {{node: {{id: "{ids[which]}"}}, to: {{parent: '
                                   f'{{path: "{self.tree}/{to}"}}}}, key: "since"}})')  # fmt: skip
            case "delete", which:
                await self._change(f'deleteCategoryNode(input: {{node: {{id: "{ids[which]}"}}, policy: CASCADE}})')

    async def _create(self, place: str, as_id: str = "") -> None:
        parent, _, key = f"{self.tree}/{place}".rpartition("/")
        given = f', id: "{as_id}"' if as_id else ""
        await self._change(f'createCategoryNode(input: {{parent: {{path: "{parent}"}}, key: "{key}", name: "Other", '
                           f"attributes: {{category: {{}}}}{given}}})")  # fmt: skip

    async def _change(self, field: str) -> None:
        await self.server.write(ADMIN, f"mutation {{ {field} {{ node {{ id }} }} }}")

    async def again(self, grants: str) -> tuple[dict[str, Any], list[str], str, int]:
        """The payload of a repetition, the codes of its errors, all of it as text, and how many items it read."""
        self.witness.keys.clear()
        answer = await self.server.write(self.who(grants), self.mutation.text(self.tree))
        payload = (answer["data"] or {}).get("it") or {}
        return payload, list(codes(answer)), json.dumps(answer), len(self.witness.keys)

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
        now = await self.node(ADMIN, named, "path")
        may = all(who.reads.may_write("category", end) for end in ends)
        if "REPARENT" in mutation.input:
            may &= who.reads.may_write("category", ends[0][:-1])
        if "position" in mutation.input:
            may &= who.reads.may_read("category", ends[0][:-1])
        if "#" in mutation.input and now is not None:  # as with each mutation of a node by its id
            path = tuple(now["path"].split("/"))
            may &= who.reads.may_write("category", path) or not who.reads.may_read("category", path)
        if not may:
            return None
        present = await self.node(who, written["id"], f"{RELATIONS} history {{ totalCount }}")
        history = {"totalCount": written["revision"]}
        found: dict[str, Any] = {"node": written | (present or {**NOWHERE, "history": history})}
        if mutation.parent is not None:
            parent = await self.node(who, node_id(self.tree, mutation.parent), "id path name")
            found |= {"previousParent": parent, "move": self.first["move"]}
        return found


def cases() -> list[tuple[Mutation, str]]:
    """All pairs of a mutation and an event; in a plain run some, among them each mutation and each event."""
    pairs = [*product(MUTATIONS, EVENTS)]
    Random(1).shuffle(pairs)  # noqa: S311
    first = {mutation: (mutation, event) for mutation, event in pairs} | {event: (one, event) for one, event in pairs}
    return [*dict.fromkeys([*first.values(), *pairs])][: examples(24, len(pairs))]


async def test_a_repeated_mutation_returns_its_node_and_relations_of_no_other_one_to_who_may_see_both(
    store: Store,
) -> None:
    for number, (mutation, event) in enumerate(cases()):
        case = Case(store, mutation, event, f"t{number}")
        await case.begin()
        before = sorted(await invariants.all_items(store), key=key_of)
        for grants in GRANTS:
            expected = await case.expected(grants)
            payload, errors, text, _ = await case.again(grants)
            at = (mutation, event, grants)
            if expected is not None:
                assert (payload, errors) == (expected, []), at
            else:
                assert errors in (["FORBIDDEN"], ["NOT_FOUND"]), (at, payload)
                assert not any(payload.values()), at
                assert "Secret" not in text, at
        assert sorted(await invariants.all_items(store), key=key_of) == before, (mutation, event)


async def test_a_repetition_does_not_tell_a_hidden_node_from_a_deleted_one(store: Store) -> None:
    some = Random(2).sample(MUTATIONS, examples(8, len(MUTATIONS)))  # noqa: S311
    of_hidden: list[Any] = []
    for (number, mutation), event in product(enumerate(some), ("hidden", "deleted")):
        case = Case(store, mutation, event, f"{event}{number}")
        await case.begin()
        told = []
        for grants in ("the same", "another subtree", "reads", "nothing", "only below"):
            _, errors, text, reads = await case.again(grants)
            own = case.tree, case.first["node"]["id"], (case.first.get("move") or {}).get("id", case.tree)
            for one in own[::-1]:
                text = text.replace(one, "IT")
            told.append((grants, errors, text, reads))
        of_hidden = told if event == "hidden" else of_hidden
        assert told == of_hidden, mutation
