"""Readers beside moves: wherever the commit comes between the reads of a response, it is that of before or that of
after, never of both.

Servers of which one moves, and is killed, are in tests/outside/faults/large_move.py.
"""

import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from graph.hierarchies.locations import Location
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import BadPath
from store.metadata.moves import PARTITION, MoveState
from store.model.keys import KeyRange, siblings
from store.model.paths import parse_path
from store.model.records import Change, Delete, Put, Record, key_of
from store.writing.edit import Named
from store.writing.move_delete import Delete as Deletion
from store.writing.move_delete import Move, Policy
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.model import Ground, Model
from tests.rights.asking import Server, caller
from tests.store.writing import journaled
from tests.stores import READS, Interrupted, StoreProxy, once
from tests.systems.asking import BOUNDLESS, WIDE, Client
from tests.systems.writing import Clients

GROUND = Ground.definition()
PATHS = "A A/w A/x A/x/1 A/x/2 A/x/2/3 A/y A/y/4 A/z B B/q B/q/5 C".split()
SMALL = Model("ground", {parse_path(path): "AREA_PART" if "q" in path else "AREA" for path in PATHS})
TINY = 14  # changes in a transaction, so that a handful of nodes takes several


class Noted(StoreProxy):
    """A store that notes what is committed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.commits = list[Sequence[Change]]()

    async def commit(self, changes: Sequence[Change]) -> None:
        await self._store.commit(changes)
        self.commits.append(changes)


@asynccontextmanager
async def planted() -> AsyncIterator[Store]:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await SMALL.plant(store)
        yield store


def edit_of(source: str, target: str | None) -> Any:
    """A move to another path, or a cascade."""
    path = parse_path(source)
    return Deletion(GROUND, path, Policy.CASCADE) if target is None else Move(GROUND, path, parse_path(target))


async def commits_of(edit: Any, most: int | None) -> tuple[list[Sequence[Change]], Sequence[Change]]:
    """The transactions of an edit before its commit, and the one that is its commit."""
    async with planted() as store:
        noted: Any = Noted(store)
        store.max_commit_changes = most
        await journaled.write(noted, edit)
    return parts_of(noted.commits)


def parts_of(commits: Sequence[Sequence[Change]]) -> tuple[list[Sequence[Change]], Sequence[Change]]:
    """The transactions of an edit before its commit, and the one that is its commit."""
    moves = [[one.item for one in changes if isinstance(one, Put) and one.key.pk == PARTITION] for changes in commits]
    states = [found[0]["state"] if found else MoveState.SWEEPING for found in moves]
    number = states.index(MoveState.SWEEPING)
    return [*commits[:number]], commits[number]


async def ask(client: Client, store: Any, query: str) -> Any:
    client.store = store
    reply = await client.ask(query)
    assert not reply.errors, query
    return reply.data


async def sides(
    client: Client, store: Store, commit: Sequence[Change], query: str, kind: type[Interrupted] = Interrupted
) -> list[Any]:
    """What is answered before a commit and after it; fails if one that comes between two reads makes it another."""
    items = await store.get([change.key for change in commit], ReadUsage(), strong=True)
    undo = [Delete(one.key) if item is None else Put(item) for one, item in zip(commit, items, strict=True)]
    after: list[Any] = []
    for reads in itertools.count():
        between = kind(store, *READS, before=once(reads + 1, lambda: store.commit(commit)))
        found = await ask(client, between, query)
        if between.calls <= reads:
            assert all(one in (found, after[0]) for one in after), query
            return [found, after[0]]
        after.append(found)
        await store.commit(undo)
    raise AssertionError


BACKWARDS = "(first: 2, orderBy: {field: POSITION, direction: DESC})"
ON_CHILDREN = [f'(first: 2, where: {{children: {{{one}: {{key: {{gte: "2"}}}}}}}})' for one in ("some", "none")]
WINDOWS = ["", "(first: 1)", "(last: 2)", BACKWARDS, "(first: 3, level: AREA)", *ON_CHILDREN]
PAGE = "{ nodes { path } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount }"
NEIGHBOURS = "{ path parent { path } ancestors { path } childCount }"


def pages(name: str) -> str:
    return " ".join(f"{name}{number}: {name}{window} {PAGE}" for number, window in enumerate(WINDOWS))


def everything(source: str, target: str | None) -> Iterator[str]:
    """All lists of the hierarchy and of nodes with any, and each node by its id and by the paths of both ends."""
    moved = (
        []
        if target is None
        else [target + path[len(source) :] for path in PATHS if f"{path}/".startswith(f"{source}/")]
    )
    paths = sorted({*PATHS, *moved})
    yield f"{{ {pages('grounds')} }}"
    for name, values in (("id", SMALL.ids), ("path", paths)):
        nodes = (f'n{number}: ground({name}: "{value}") {NEIGHBOURS}' for number, value in enumerate(values))
        yield f"{{ {' '.join(nodes)} }}"
    for path in paths:
        if any(one.startswith(f"{path}/") for one in paths):
            yield f'{{ ground(path: "{path}") {{ {pages("children")} {pages("descendants")} }} }}'


@pytest.mark.parametrize(
    ("source", "target", "most"),
    [
        ("A/x", "B/x", TINY),
        ("A/x", "B/x", None),
        ("B", None, TINY),
        *[
            pytest.param(*ends, TINY, marks=pytest.mark.thorough)
            for ends in (("A/x", "A/y/x"), ("A/x", "x"), ("B", "A/B"), ("A/x", None))
        ],
    ],
)
async def test_every_list_of_a_small_tree_is_whole_on_one_side(source, target, most):
    edit = edit_of(source, target)
    begun, commit = await commits_of(edit, most)
    assert len(begun) > 1 or most is None
    async with planted() as store, planted() as before, planted() as after:
        await Writer(after).write(edit, ReadUsage())
        for changes in begun:
            await store.commit(changes)
        for query in everything(source, target):
            client = Client(store, Ground, limits=WIDE, budget=BOUNDLESS)
            clean = [await ask(client, one, query) for one in (before, after)]
            assert await sides(client, store, commit, query) == clean, query


@pytest.mark.parametrize(
    ("source", "most"),
    [
        ("A/x", TINY),
        *[pytest.param(*one, marks=pytest.mark.thorough) for one in (("A/x", None), ("A", TINY), ("A", None))],
    ],
)
async def test_every_list_of_a_small_tree_is_without_what_is_restored_or_has_it_all(source, most):
    async with planted() as after, planted() as before, planted() as store:
        node_id = dict(zip(PATHS, SMALL.ids, strict=True))[source]
        await journaled.write(after, edit_of(source, None))
        items = await invariants.all_items(after)
        for one in (before, store):
            await one.commit([Delete(key_of(item)) for item in await invariants.all_items(one)])
            await one.commit([Put(item) for item in items])
        noted: Any = Noted(after)
        after.max_commit_changes = most
        await journaled.write(noted, Restore(GROUND, (), node_id, names=[Named("id", id=node_id)]))
        begun, commit = parts_of(noted.commits)
        assert (len(begun) > 1) == (most is not None)
        for changes in begun:
            await store.commit(changes)
        for query in everything(source, None):
            client = Client(store, Ground, limits=WIDE, budget=BOUNDLESS)
            clean = [await ask(client, one, query) for one in (before, after)]
            assert await sides(client, store, commit, query) == clean, query


class LateRoots(Interrupted):
    """A store whose index of roots still has the counts of before."""

    before: list[Record]

    async def nodes(self, span: KeyRange, reads: ReadUsage, **how: Any) -> list[Record]:
        found = await self.__getattr__("nodes")(span, reads, **how)
        return self.before if span.partition == "ground" else found


NODE = 'node: ground(path: "A/x/2") { path parent { childCount } }'
BESIDE = [
    *[(f'changes(hierarchy: GROUND, tree: "{tree}") {{ changes {{ event }} }}',
       {"changes": []}, {"changes": [{"event": "MOVED"}]}) for tree in "AB"],
    ("move(id: $move) { state }", {"state": "COPYING"}, {"state": "SWEEPING"}),
    ("moves(hierarchy: GROUND) { state }", [{"state": "COPYING"}], [{"state": "SWEEPING"}]),
    ("grounds { nodes { childCount } }",
     *[{"nodes": [{"childCount": count} for count in counts]} for counts in ((4, 1, 0), (3, 2, 0))]),
]  # fmt: skip


@pytest.fixture
async def moving(store: Store) -> tuple[Store, Sequence[Change], str]:
    """A store with the large move of A/x to B/x before its commit, this commit, and the id of the move."""
    await SMALL.plant(store)
    begun, commit = await commits_of(edit_of("A/x", "B/x"), TINY)
    for changes in begun:
        await store.commit(changes)
    return store, commit, (await journaled.only_move(store)).id


@pytest.mark.both_stores
async def test_what_is_told_of_moves_and_counts_is_of_the_same_side_as_what_is_beside_it(moving):
    store, commit, move = moving
    LateRoots.before = await store.nodes(siblings("ground"), ReadUsage())
    for field, before, after in BESIDE:
        for fields in ([f"it: {field}", NODE], [NODE, f"it: {field}"]):
            for kind in (Interrupted, LateRoots) if "grounds" in field else (Interrupted,):
                query = f"{{ {' '.join(fields)} }}".replace("$move", f'"{move}"')
                found = await sides(Client(store, Ground), store, commit, query, kind)
                told = [(one["it"], one["node"]["path"]) for one in found]
                assert told == [(before, "A/x/2"), (after, "B/x/2")], (fields, kind)


TOLD = """query($id: ID!) {
  move(id: $id) { id hierarchy from to state reason nodes written endedAt } moves(hierarchy: GROUND) { id }
}"""


async def test_a_move_is_told_to_those_who_may_read_both_ends(moving):
    store, _, move = moving
    told = {
        "id": move, "hierarchy": "GROUND", "from": "A/x", "to": "B/x", "state": "COPYING", "reason": None, "nodes": 4,
        "written": 4, "endedAt": None,
    }  # fmt: skip
    tops = {("",): True, ("/A", "/B"): True, ("/A/x", "/B/x"): True, ("/A",): False, ("/B/x/2",): False}
    for some, is_seen in tops.items():
        who = caller(*[f"read:ground{top}" for top in some])
        expected = {"move": told, "moves": [{"id": move}]} if is_seen else {"move": None, "moves": []}
        assert await Server(store, Ground).data(who, TOLD, id=move) == expected, some


async def test_moves_come_as_a_window_says_and_only_those_of_served_hierarchies(moving):
    store, _, move = moving
    asked = Client(store, Ground)
    for arguments, expected in (("", 1), (", first: null", 1), (", first: 1", 1), (", first: 0", 0)):
        reply = await asked.ask(f"{{ moves(hierarchy: GROUND{arguments}) {{ id }} }}")
        assert len(reply.data["moves"]) == expected
    reply = await asked.ask("{ moves(hierarchy: GROUND, first: -1) { id } }")
    assert [error["extensions"]["code"] for error in reply.errors] == ["BAD_USER_INPUT"]
    assert (await Client(store, Location).ask(f'{{ move(id: "{move}") {{ id }} }}')).data == {"move": None}


async def test_a_move_that_came_to_nothing_says_why_and_leaves_all_nodes_where_they_were(store):
    """While it is copied, a node is created that would lie too deep at its target."""
    long, key = "m" * 500, "n" * 20
    await journaled.plant(store, f"o/{long}", f"r/a/{long}", *[f"r/a/a{n}" for n in range(40)])
    before = await journaled.paths(store)
    edited: Any = journaled.edited_meanwhile(store, journaled.create(f"r/a/{long}/{key}"))
    writer = Writer(edited, journaled.SOON)
    with pytest.raises(BadPath):
        await writer.write(journaled.move("r/a", f"o/{long}/a"), ReadUsage())
    await writer.move_worker.finished()
    await journaled.has_ended(store, MoveState.UNDONE)
    assert await journaled.paths(store) == before | {f"r/a/{long}/{key}"}
    (move,) = (await Clients(store).ask("{ moves(hierarchy: CATEGORY) { state reason } }"))["moves"]
    assert move["state"] == "UNDONE"
    assert f'The path of "{key}" would take' in move["reason"]
